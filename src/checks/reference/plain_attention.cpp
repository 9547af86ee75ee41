#include "checks/reference/plain_attention.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "checks/reference/loop_numbers.h"
#include "checks/reference/may_look.h"
#include "checks/reference/reference_head.h"
#include "core/error.h"

namespace attn {
namespace {

/// One key head of one item, with the query heads that use it.
struct Group {
  std::int64_t b = 0, key_head = 0;
  std::int64_t heads = 1;  ///< query heads of a key head.

  at::Tensor keys(const at::Tensor& k) const { return k.narrow(0, b, 1).narrow(1, key_head, 1); }
  at::Tensor queries(const at::Tensor& q) const { return q.narrow(0, b, 1).narrow(1, key_head * heads, heads); }
};

CoreInput part_of(const CoreInput& input, const Group& group) {
  CoreInput part;
  part.q = group.queries(input.q);
  part.k = group.keys(input.k);
  part.v = group.keys(input.v);
  if (input.d_context.defined()) part.d_context = group.queries(input.d_context);
  part.rules = {input.rules.scale, input.rules.softcap, {}};
  if (!input.rules.slopes.empty()) {
    const auto first = input.rules.slopes.begin() + group.key_head * group.heads;
    part.rules.slopes.assign(first, first + group.heads);
  }
  if (input.mask.defined()) part.mask = input.mask.size(0) == 1 ? input.mask : input.mask.narrow(0, group.b, 1);
  if (input.sinks.defined()) part.sinks = input.sinks.narrow(0, group.key_head * group.heads, group.heads);
  return part;
}

std::vector<bool> visible_pairs(const at::Tensor& mask, std::int64_t query_len, std::int64_t key_len) {
  if (!mask.defined()) return std::vector<bool>(static_cast<std::size_t>(query_len * key_len), true);
  return flags_of(mask.expand({1, 1, query_len, key_len}));
}

/// The loops of one group, which has one key head.
CoreOutput loops(const CoreInput& part) {
  ReferenceHead head;
  head.T_q = part.q.size(2);
  head.T_k = part.k.size(2);
  head.d_k = part.q.size(3);
  head.scale = part.rules.scale;
  head.softcap = part.rules.softcap;
  head.visible = visible_pairs(part.mask, head.T_q, head.T_k);
  for (std::int64_t i = 0; i < head.T_q; ++i) head.positions.push_back(i + head.T_k - head.T_q);
  const std::vector<double> k = numbers_of(part.k), v = numbers_of(part.v);
  head.k = k;
  head.v = v;
  const bool backward = part.d_context.defined();
  std::vector<double> context, dq, dk(k.size(), 0.0), dv(v.size(), 0.0);
  for (std::int64_t h = 0; h < part.q.size(1); ++h) {
    const std::vector<double> q = numbers_of(part.q.select(1, h));
    head.q = q;
    if (!part.rules.slopes.empty()) head.slope = part.rules.slopes[static_cast<std::size_t>(h)];
    if (part.sinks.defined()) head.sink = part.sinks[h].item<double>();
    const std::vector<double> of_head = reference_head(head).context;
    context.insert(context.end(), of_head.begin(), of_head.end());
    if (!backward) continue;
    std::vector<double> dq_of_head(q.size(), 0.0);
    reference_head_backward(head, numbers_of(part.d_context.select(1, h)), dq_of_head, dk, dv);
    dq.insert(dq.end(), dq_of_head.begin(), dq_of_head.end());
  }
  CoreOutput output;
  output.context = tensor_of(context, part.q.sizes());
  if (!backward) return output;
  output.dq = tensor_of(dq, part.q.sizes());
  output.dk = tensor_of(dk, part.k.sizes());
  output.dv = tensor_of(dv, part.v.sizes());
  return output;
}

double relative_difference(const at::Tensor& actual, const at::Tensor& expected) {
  if (!expected.defined()) return 0.0;
  const double largest = std::max(1.0, expected.abs().max().item<double>());
  return (actual - expected).abs().max().item<double>() / largest;
}

void require_agreement(const CoreOutput& plain, const CoreOutput& judge) {
  // Both are float64 sums of T terms; what is more than this is a fault in one of the two.
  constexpr double kLimit = 1e-11;
  for (const double difference :
       {relative_difference(plain.context, judge.context), relative_difference(plain.dq, judge.dq),
        relative_difference(plain.dk, judge.dk), relative_difference(plain.dv, judge.dv)}) {
    if (!(difference <= kLimit)) throw Error("reference: the plain formula in float64 and the loops disagree");
  }
}

/// Of one group.
double group_cost(const CoreInput& input) {
  const double heads = static_cast<double>(input.q.size(1)) / static_cast<double>(input.k.size(1));
  const double pairs = static_cast<double>(input.q.size(2)) * static_cast<double>(input.k.size(2));
  const double visible = input.mask.defined() ? input.mask.to(at::kDouble).mean().item<double>() : 1.0;
  const double products = input.d_context.defined() ? 8.0 : 2.0;  // the backward pass runs the forward again
  return std::max(1.0, heads * pairs * visible * static_cast<double>(input.q.size(3)) * products);
}

void copy_into(const CoreOutput& target, const CoreOutput& source, const Group& group) {
  group.queries(target.context).copy_(source.context);
  if (!target.dq.defined()) return;
  group.queries(target.dq).copy_(source.dq);
  group.keys(target.dk).copy_(source.dk);
  group.keys(target.dv).copy_(source.dv);
}

}  // namespace

CoreOutput plain_core(const CoreInput& input) {
  const bool backward = input.d_context.defined();
  const at::AutoGradMode gradients(backward);
  const auto leaf = [&](const at::Tensor& tensor) { return tensor.detach().clone().requires_grad_(backward); };
  const at::Tensor q = leaf(input.q), k = leaf(input.k), v = leaf(input.v);
  const std::int64_t H = q.size(1);
  const auto explicitly = [&] {
    return product_of_groups(visible_softmax(plain_scores(q, k, input.rules), input.mask, input.sinks), v);
  };
  const at::Tensor context =
      input.by_library ? library_context(q, for_query_heads(k, H), for_query_heads(v, H), input.rules, input.mask)
                       : explicitly();
  if (!backward) return {context, {}, {}, {}};
  const auto found = torch::autograd::grad({context}, {q, k, v}, {input.d_context});
  return {context.detach(), found[0], found[1], found[2]};
}

CoreOutput judged_core(const CoreInput& input) {
  const auto in_double = [](const at::Tensor& tensor) {
    return tensor.defined() ? tensor.detach().to(at::kCPU, at::kDouble) : tensor;
  };
  const CoreInput exact{in_double(input.q),    in_double(input.k),
                        in_double(input.v),    in_double(input.d_context),
                        input.rules,           input.mask.defined() ? input.mask.cpu() : input.mask,
                        in_double(input.sinks)};
  const std::int64_t key_heads = exact.k.size(1);
  const std::int64_t groups = exact.q.size(0) * key_heads;
  const auto affordable = static_cast<std::int64_t>(std::min(kReferenceMultiplyAdds / group_cost(exact), 1e15));
  const std::int64_t judged = std::clamp<std::int64_t>(affordable, 1, groups);

  CoreOutput output;
  output.context = at::empty_like(exact.q);
  if (exact.d_context.defined()) {
    output.dq = at::empty_like(exact.q);
    output.dk = at::empty_like(exact.k);
    output.dv = at::empty_like(exact.v);
  }
  std::int64_t done = 0;
  for (std::int64_t index = 0; index < groups; ++index) {
    const Group group{index / key_heads, index % key_heads, exact.q.size(1) / key_heads};
    const CoreInput part = part_of(exact, group);
    const bool by_loops = done * groups < (index + 1) * judged;  // spreads `judged` of them evenly
    if (by_loops) ++done;
    if (by_loops) {
      const CoreOutput judge = loops(part);
      if (judged < groups) require_agreement(plain_core(part), judge);
      copy_into(output, judge, group);
    } else {
      copy_into(output, plain_core(part), group);
    }
  }
  return output;
}

at::Tensor declared_mask(const AttentionConfig& config, std::int64_t query_len, std::int64_t key_len,
                         const at::Tensor& real_keys, const at::Device& device) {
  at::Tensor mask = at::empty({1, 1, query_len, key_len}, at::kBool);
  bool* visible = mask.mutable_data_ptr<bool>();
  for (std::int64_t i = 0; i < query_len; ++i) {
    for (std::int64_t j = 0; j < key_len; ++j) *visible++ = may_look(config, i, j, query_len, key_len);
  }
  mask = mask.to(device);
  if (!real_keys.defined()) return mask;
  return mask.logical_and(real_keys.to(device).view({-1, 1, 1, key_len}));
}

}  // namespace attn
