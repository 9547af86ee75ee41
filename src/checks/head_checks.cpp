// head-independence and gqa-map: what a query head has to do with its own key head, and with no other.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <map>
#include <utility>

#include "checks/check_context.h"
#include "checks/reference/reference_attention.h"
#include "checks/sampling.h"
#include "core/text.h"

namespace attn {
namespace {

constexpr double kMostHeads = 8.0;  ///< beyond that a sample: they go through the same code.

double level_of(const at::Tensor& tensor) {
  const double level = tensor.to(at::kDouble).square().mean().sqrt().item<double>();
  return level > 0.0 ? level : 1.0;
}

/// Query heads first ... first + count - 1: one of them, or all that share a key head.
struct HeadRange {
  std::int64_t first = 0, count = 1;

  bool holds(std::int64_t head) const { return first <= head && head < first + count; }
  std::string words() const {
    return count == 1 ? "head " + std::to_string(first)
                      : "heads " + std::to_string(first) + " to " + std::to_string(first + count - 1);
  }
};

/// A key head with all its query heads, or one query head alone.
struct HeadChange {
  HeadRange queries;
  std::optional<std::int64_t> key_head;  ///< changed too; absent: only queries are.
};

/// Rows of a parameter that make the changed q, k or v.
struct HeadRows {
  std::string layer;  ///< "c_attn"
  std::int64_t first, count;
};

std::vector<HeadRows> rows_of(const AttentionConfig& config, const HeadChange& change) {
  const std::int64_t d_k = config.d_k(), all = config.heads_width(), group = config.heads_a_group();
  const std::int64_t q_first = change.queries.first * d_k, q_count = change.queries.count * d_k;
  const std::int64_t key_head = change.key_head.value_or(0);
  std::vector<HeadRows> rows;
  switch (config.qkv) {
    case QkvLayout::kFused:
      rows = {{"c_attn", q_first, q_count},
              {"c_attn", all + key_head * d_k, d_k},
              {"c_attn", all + config.H_kv() * d_k + key_head * d_k, d_k}};
      break;
    case QkvLayout::kFusedPerHead: {
      const std::int64_t block = (group + 2) * d_k, of_group = change.queries.first / group;
      const std::int64_t in_group = change.queries.first % group;
      rows = {{"qkv_proj", of_group * block + in_group * d_k, q_count},
              {"qkv_proj", key_head * block + group * d_k, d_k},
              {"qkv_proj", key_head * block + (group + 1) * d_k, d_k}};
      break;
    }
    case QkvLayout::kSeparate:
      rows = {{"q_proj", q_first, q_count}, {"k_proj", key_head * d_k, d_k}, {"v_proj", key_head * d_k, d_k}};
      break;
  }
  if (!change.key_head.has_value()) rows.resize(1);
  return rows;
}

/// What is tried: every key head with its group, and, where heads share keys, every query head alone.
std::vector<HeadChange> head_changes(const AttentionConfig& config) {
  std::vector<HeadChange> changes;
  const std::int64_t group = config.heads_a_group();
  if (config.H_kv() > 1) {
    for (const std::int64_t key_head : telling_places(0, config.H_kv() - 1, kMostHeads)) {
      changes.push_back({{key_head * group, group}, key_head});
    }
  }
  if (group > 1) {
    for (const std::int64_t head : telling_places(0, config.H - 1, kMostHeads)) {
      changes.push_back({{head, 1}, std::nullopt});
    }
  }
  return changes;
}

/// Judges contexts (B, H, T, d_k) before and after a change. `must_move`: the change reaches its own heads for sure.
void judge_heads(Findings& findings, const at::Tensor& base, const at::Tensor& changed, const HeadChange& change,
                 const std::string& what, bool must_move) {
  const std::int64_t H = base.size(1);
  const auto others = [&](const at::Tensor& heads) {  // the heads that were changed may be anything
    at::Tensor rest = heads.clone();
    rest.narrow(1, change.queries.first, change.queries.count).zero_();
    return rest;
  };
  Comparison comparison = compare_bits(others(changed), others(base), "no bit of another head may move", kQueryAxes);
  comparison.compared = base.numel() / H * (H - change.queries.count);
  findings.add(what, comparison);
  if (comparison.wrong > 0 && comparison.non_finite == 0) {
    findings.fail(what + " of " + change.queries.words() + " move " + comparison.where_worst);
  }
  if (!must_move) return;
  for (std::int64_t head = change.queries.first; change.queries.holds(head); ++head) {
    if (!base.select(1, head).equal(changed.select(1, head))) continue;
    findings.fail(what + " of " + change.queries.words() + " move nothing, not even head " + std::to_string(head));
    return;
  }
}

std::string words_of_core(const HeadChange& change) { return change.key_head.has_value() ? "q, k and v" : "q"; }

/// False when q, k, v cannot be fed in.
bool change_heads_of_core(CheckContext& context, Findings& findings, const std::vector<HeadChange>& changes,
                          bool something_visible) {
  const std::vector<std::int64_t> shape = context.heads_shape(), key_shape = context.keys_shape();
  const at::Tensor q = context.draw(shape, Draw::kQuery), other_q = context.draw(shape, Draw::kDirection);
  const at::Tensor k = context.draw(key_shape, Draw::kKey), v = context.draw(key_shape, Draw::kValue);
  const auto base = context.subject().attend(q, k, v);
  if (!base.has_value()) return false;
  const at::Tensor* base_context = captured_step(*base, Step::kContext, shape);
  if (base_context == nullptr) return false;
  for (const HeadChange& change : changes) {
    at::Tensor new_q = q.clone(), new_k = k.clone(), new_v = v.clone();
    const auto of_range = [&](const at::Tensor& heads) {
      return heads.narrow(1, change.queries.first, change.queries.count);
    };
    of_range(new_q).copy_(of_range(other_q));
    if (change.key_head.has_value()) {
      new_k.select(1, *change.key_head).copy_(v.select(1, *change.key_head));
      new_v.select(1, *change.key_head).copy_(k.select(1, *change.key_head));
    }
    const auto steps = context.subject().attend(new_q, new_k, new_v);
    judge_heads(findings, *base_context, *captured_step(steps.value(), Step::kContext, shape), change,
                words_of_core(change), change.key_head.has_value() && something_visible);
  }
  return true;
}

/// False when the layer does not show its context, or not the parameters that the config's layout has.
bool change_heads_of_projections(CheckContext& context, Findings& findings, const std::vector<HeadChange>& changes,
                                 bool something_visible) {
  const std::unique_ptr<Subject> copy = context.subject().rebuild(context.run().dtype);
  if (copy == nullptr) return false;
  copy->train(false);
  std::map<std::string, at::Tensor> parameters;
  for (const auto& [name, value] : copy->named_parameters()) parameters[name] = value.detach();
  // The run's own input may be all zero.
  AttentionInput input = with_x(context.input(), context.draw(context.x().sizes().vec(), Draw::kOtherInput));
  if (context.has_memory()) input.memory = context.draw(context.input().memory.sizes().vec(), Draw::kMemory);
  const auto contexts = [&]() -> std::optional<at::Tensor> {
    const auto steps = copy->forward_with_steps(input);
    if (!steps.has_value()) return std::nullopt;
    const at::Tensor* found = captured_step(*steps, Step::kContext, context.heads_shape());
    return found == nullptr ? std::nullopt : std::optional<at::Tensor>(*found);
  };
  const std::optional<at::Tensor> base = contexts();
  if (!base.has_value()) return false;
  for (const HeadChange& change : changes) {
    std::vector<std::pair<at::Tensor, at::Tensor>> changed;  // the rows, and what they were
    for (const HeadRows& rows : rows_of(context.config(), change)) {
      const auto weight = parameters.find(rows.layer + ".weight");
      if (weight == parameters.end() || weight->second.size(0) < rows.first + rows.count) return false;
      const at::Tensor part = weight->second.narrow(0, rows.first, rows.count);
      changed.emplace_back(part, part.clone());
      part.add_(context.draw(part.sizes().vec(), Draw::kDirection) * level_of(weight->second));
    }
    const std::optional<at::Tensor> after = contexts();
    for (const auto& [part, was] : changed) part.copy_(was);
    judge_heads(findings, *base, after.value(), change, "projections",
                change.key_head.has_value() && something_visible);
  }
  return true;
}

// ---- gqa-map ----

/// Which key head moves which query head: (H_kv, H) bool on the CPU.
using HeadMap = at::Tensor;

HeadMap declared_map(const AttentionConfig& config) {
  HeadMap map = at::zeros({config.H_kv(), config.H}, at::kBool);
  for (std::int64_t h = 0; h < config.H; ++h) map[reference_key_head(config, h)][h] = true;
  return map;
}

/// Batch item g has the value 1 in key head g and 0 in every other: where the context is not 0, it is served by g.
/// Absent when q, k, v cannot be fed in.
std::optional<HeadMap> map_of_values(CheckContext& context) {
  const AttentionConfig& config = context.config();
  constexpr std::int64_t kTokens = 2;
  const at::TensorOptions options = context.x().options();
  const at::Tensor q = at::zeros({config.H_kv(), config.H, kTokens, config.d_k()}, options);
  const at::Tensor k = at::zeros({config.H_kv(), config.H_kv(), kTokens, config.d_k()}, options);
  at::Tensor v = at::zeros_like(k);
  for (std::int64_t g = 0; g < config.H_kv(); ++g) v[g][g].fill_(1.0);
  const at::Tensor every_key = at::ones({kTokens, kTokens}, options.dtype(at::kBool));
  const auto steps = context.subject().attend(q, k, v, every_key);
  if (!steps.has_value()) return std::nullopt;
  const at::Tensor* found = captured_step(*steps, Step::kContext, q.sizes().vec());
  if (found == nullptr) return std::nullopt;
  return found->flatten(2).ne(0).any(-1).to(at::kCPU);
}

/// Batch item g has a key that attracts every query, in key head g alone: whose context differs from that of the item
/// before all of them, which has none, is served by g.
std::optional<HeadMap> map_of_keys(CheckContext& context) {
  const AttentionConfig& config = context.config();
  constexpr std::int64_t kTokens = 2;
  constexpr double kScore = 4.0;
  const at::TensorOptions options = context.x().options();
  const std::int64_t items = config.H_kv() + 1;
  const double size = kScore / (config.scale() * static_cast<double>(config.d_k()));
  const at::Tensor q = at::ones({items, config.H, kTokens, config.d_k()}, options);
  at::Tensor k = at::zeros({items, config.H_kv(), kTokens, config.d_k()}, options);
  for (std::int64_t g = 0; g < config.H_kv(); ++g) k[g + 1][g][0].fill_(std::min(size, 1e3));
  at::Tensor v = at::ones_like(k);
  v.select(2, 1).fill_(-1.0);
  const at::Tensor every_key = at::ones({kTokens, kTokens}, options.dtype(at::kBool));
  const auto steps = context.subject().attend(q, k, v, every_key);
  if (!steps.has_value()) return std::nullopt;
  const at::Tensor* found = captured_step(*steps, Step::kContext, q.sizes().vec());
  if (found == nullptr) return std::nullopt;
  const at::Tensor base = found->narrow(0, 0, 1);
  return found->narrow(0, 1, config.H_kv()).ne(base).flatten(2).any(-1).to(at::kCPU);
}

/// "0,0,1,1": the key head of each query head; "none" and "0+1" where it is not one.
std::string words_of(const HeadMap& map) {
  std::vector<std::string> words;
  for (std::int64_t h = 0; h < map.size(1); ++h) {
    std::vector<std::string> serving;
    for (std::int64_t g = 0; g < map.size(0); ++g) {
      if (map[g][h].item<bool>()) serving.push_back(std::to_string(g));
    }
    words.push_back(serving.empty() ? "none" : join(serving, "+"));
  }
  return join(words, ",");
}

void judge_map(Findings& findings, const std::string& what, const HeadMap& found, const HeadMap& declared) {
  const at::Tensor wrong = found.ne(declared);
  const Comparison comparison = judge_errors(
      wrong.to(at::kDouble), {0.0, "query head h uses key head floor(h * H_kv / H)"}, {"key head", "query head"});
  findings.add(what, comparison);
  if (comparison.wrong == 0) return;
  const std::int64_t H = declared.size(1), H_kv = declared.size(0);
  const at::Tensor tiled = at::arange(H_kv).unsqueeze(1).eq(at::arange(H).remainder(H_kv).unsqueeze(0));
  findings.fail("the query heads use the " + what + " heads " + words_of(found) + ", expected " + words_of(declared) +
                (found.equal(tiled) ? ": they are tiled, h mod H_kv, not repeated side by side" : ""));
}

}  // namespace

CheckResult check_head_independence(CheckContext& context) {
  const std::int64_t H = context.config().H;
  const at::NoGradGuard no_gradients;
  const std::vector<HeadChange> changes = head_changes(context.config());
  const bool something_visible = context.visible().any().item<bool>();
  Findings findings("largest change of another head");
  const bool core = change_heads_of_core(context, findings, changes, something_visible);
  const bool projections = change_heads_of_projections(context, findings, changes, something_visible);
  if (!core && !projections) return not_applicable("the layer shows neither its context nor lets q, k, v in");
  std::size_t key_heads = 0, alone = 0;
  for (const HeadChange& change : changes) ++(change.key_head.has_value() ? key_heads : alone);
  const bool grouped = alone > 0;
  if (key_heads > 0) findings.tried(key_heads, context.config().H_kv(), grouped ? "key heads with theirs" : "heads");
  if (grouped) findings.tried(alone, H, "query heads");
  if (core) findings.note(grouped ? "q, k and v, or q alone" : "q, k and v");
  if (projections) findings.note("projections");
  return findings.result();
}

CheckResult check_gqa_map(CheckContext& context) {
  const at::NoGradGuard no_gradients;
  const std::optional<HeadMap> values = map_of_values(context), keys = map_of_keys(context);
  if (!values.has_value() || !keys.has_value()) return not_applicable("the layer lets no q, k and v in");
  const HeadMap declared = declared_map(context.config());
  Findings findings("wrong pairs of key head and query head");
  judge_map(findings, "key", *keys, declared);
  judge_map(findings, "value", *values, declared);
  if (findings.all_well()) {
    findings.note("query heads 0 to " + std::to_string(context.config().H - 1) + " use key heads " +
                  words_of(declared));
  }
  return findings.result();
}

}  // namespace attn
