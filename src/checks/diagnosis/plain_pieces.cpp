#include "checks/diagnosis/plain_pieces.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "checks/reference/may_look.h"
#include "checks/reference/plain_heads.h"

namespace attn {
namespace {

/// One call: its tokens are `first` ... `end` - 1, the keys that it uses `oldest` ... `end` - 1.
struct Call {
  std::int64_t first = 0, end = 0, oldest = 0;

  std::int64_t queries() const { return end - first; }
  std::int64_t keys() const { return end - oldest; }
  bool has_kept_keys() const { return oldest < first; }
};

std::vector<Call> calls_of(const std::vector<std::int64_t>& lengths, const AttentionConfig& config,
                           const PieceRules& rules) {
  std::vector<Call> calls;
  std::int64_t first = 0;
  for (const std::int64_t length : lengths) {
    const bool all = rules.mask == CallMask::kWithoutWindow || !config.window.has_value();
    const std::int64_t kept = rules.most_kept.value_or(all ? first : *config.window - 1);
    calls.push_back({first, first + length, std::max<std::int64_t>(0, first - kept)});
    first += length;
  }
  return calls;
}

/// (B or 1, 1, queries, keys), true = may look.
at::Tensor mask_of(const Call& call, const LayerInput& input, const PieceRules& rules) {
  const CallMask rule = call.first == 0 ? CallMask::kDeclared : rules.mask;
  AttentionConfig config = input.config;
  if (rule == CallMask::kWithoutWindow) config.window.reset();
  const std::int64_t first_position = rule == CallMask::kAtFirstKey ? call.oldest : call.first;
  at::Tensor mask = at::ones({1, 1, call.queries(), call.keys()}, at::kBool);
  bool* cell = mask.data_ptr<bool>();
  for (std::int64_t i = 0; i < call.queries(); ++i) {
    for (std::int64_t j = 0; j < call.keys(); ++j) {
      *cell++ = rule == CallMask::kNone || may_look_at(config, first_position + i, call.oldest + j);
    }
  }
  mask = mask.to(input.x.device());
  if (!input.real_keys.defined()) return mask;
  at::Tensor real = input.real_keys.narrow(1, call.oldest, call.keys());
  if (!rules.padding_kept) {
    real = real.clone();
    real.narrow(1, 0, call.first - call.oldest).fill_(true);
  }
  return mask.logical_and(real.view({-1, 1, 1, call.keys()}));
}

/// `heads` (B, H_kv, T, d_k): the keys, or the values, that the call uses, (B, H_kv, keys, d_k).
at::Tensor used_by(const Call& call, const at::Tensor& heads, KeptKeys rule) {
  const at::Tensor all = heads.narrow(2, call.oldest, call.keys());
  if (!call.has_kept_keys() || rule == KeptKeys::kAsTheyAre) return all;
  if (rule == KeptKeys::kAppendedTwice) {
    const std::int64_t twice = std::min(call.first - call.oldest, call.queries());
    return at::cat({all.slice(2, twice), all.slice(2, call.keys() - twice)}, 2);
  }
  const at::Tensor last = at::tensor({call.first - call.oldest - 1}, at::kLong).to(heads.device());
  return all.index_fill(2, last, 0.0);
}

/// 0, 1, ... of every call, (T).
at::Tensor restarting_positions(const std::vector<std::int64_t>& lengths) {
  std::vector<at::Tensor> positions;
  for (const std::int64_t length : lengths) positions.push_back(at::arange(length, at::kDouble));
  return at::cat(positions);
}

}  // namespace

PlainLayerOutput plain_pieces(const LayerInput& input, const std::vector<std::int64_t>& lengths,
                              const PieceRules& rules) {
  LayerRules layer = rules_of(input.config);
  if (rules.positions_restart) layer.positions.fill(restarting_positions(lengths));
  const auto [q, k, v] = plain_qkv(input, layer);
  const at::Tensor sinks = layer.sink ? input.parameters.at("sinks") : at::Tensor();
  std::vector<at::Tensor> contexts, seeing;
  for (const Call& call : calls_of(lengths, input.config, rules)) {
    const at::Tensor mask = mask_of(call, input, rules);
    const at::Tensor keys = used_by(call, k, rules.keys), values = used_by(call, v, rules.keys);
    const at::Tensor scores = plain_scores(q.narrow(2, call.first, call.queries()), keys, layer.scores);
    contexts.push_back(product_of_groups(visible_softmax(scores, mask, sinks), values));
    seeing.push_back(mask.any(-1));
  }
  PlainLayerOutput result;
  result.output = plain_output(input, layer, at::cat(contexts, 2));
  result.open_rows = open_rows(input, at::cat(seeing, 2));
  return result;
}

}  // namespace attn
