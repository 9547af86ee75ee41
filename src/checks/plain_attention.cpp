#include "checks/plain_attention.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "checks/loop_numbers.h"
#include "checks/may_look.h"
#include "checks/reference_attention.h"
#include "core/error.h"

namespace attn {
namespace {

/// One (batch, head) pair, each tensor (1, 1, T, d_k).
CoreInput pair_of(const CoreInput& input, std::int64_t b, std::int64_t h) {
  const auto cut = [&](const at::Tensor& tensor) {
    return tensor.defined() ? tensor.narrow(0, b, 1).narrow(1, h, 1) : tensor;
  };
  return {cut(input.q), cut(input.k), cut(input.v), cut(input.d_context), input.causal};
}

CoreOutput loops(const CoreInput& pair) {
  ReferenceCoreInput input;
  input.B = 1;
  input.H = 1;
  input.T_q = pair.q.size(2);
  input.T_k = pair.k.size(2);
  input.d_k = pair.q.size(3);
  input.causal = pair.causal;
  input.q = numbers_of(pair.q);
  input.k = numbers_of(pair.k);
  input.v = numbers_of(pair.v);
  CoreOutput output;
  output.context = tensor_of(reference_core(input).context, pair.q.sizes());
  if (!pair.d_context.defined()) return output;
  const ReferenceCoreGradients gradients = reference_core_backward(input, numbers_of(pair.d_context));
  output.dq = tensor_of(gradients.dq, pair.q.sizes());
  output.dk = tensor_of(gradients.dk, pair.k.sizes());
  output.dv = tensor_of(gradients.dv, pair.v.sizes());
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

double pair_cost(const CoreInput& input) {
  const double pairs =
      static_cast<double>(input.q.size(2)) * static_cast<double>(input.k.size(2)) * (input.causal ? 0.5 : 1.0);
  const double products = input.d_context.defined() ? 8.0 : 2.0;  // the backward pass runs the forward again
  return std::max(1.0, pairs * static_cast<double>(input.q.size(3)) * products);
}

void copy_into(const CoreOutput& target, const CoreOutput& source, std::int64_t b, std::int64_t h) {
  const auto copy = [&](const at::Tensor& to, const at::Tensor& from) {
    if (to.defined()) to.narrow(0, b, 1).narrow(1, h, 1).copy_(from);
  };
  copy(target.context, source.context);
  copy(target.dq, source.dq);
  copy(target.dk, source.dk);
  copy(target.dv, source.dv);
}

}  // namespace

CoreOutput plain_core(const CoreInput& input) {
  const bool backward = input.d_context.defined();
  const at::AutoGradMode gradients(backward);
  const auto leaf = [&](const at::Tensor& tensor) { return tensor.detach().clone().requires_grad_(backward); };
  const at::Tensor q = leaf(input.q), k = leaf(input.k), v = leaf(input.v);
  const double scale = 1.0 / std::sqrt(static_cast<double>(q.size(3)));
  const at::Tensor weights = visible_softmax(at::matmul(q, k.transpose(-2, -1)) * scale, input.causal);
  const at::Tensor context = at::matmul(weights, v);
  if (!backward) return {context, {}, {}, {}};
  const auto found = torch::autograd::grad({context}, {q, k, v}, {input.d_context});
  return {context.detach(), found[0], found[1], found[2]};
}

CoreOutput judged_core(const CoreInput& input) {
  const auto in_double = [](const at::Tensor& tensor) {
    return tensor.defined() ? tensor.detach().to(at::kCPU, at::kDouble) : tensor;
  };
  const CoreInput exact{in_double(input.q), in_double(input.k), in_double(input.v), in_double(input.d_context),
                        input.causal};
  const std::int64_t H = exact.q.size(1);
  const std::int64_t pairs = exact.q.size(0) * H;
  const auto affordable = static_cast<std::int64_t>(std::min(kReferenceMultiplyAdds / pair_cost(exact), 1e15));
  const std::int64_t judged = std::clamp<std::int64_t>(affordable, 1, pairs);

  CoreOutput output;
  output.context = at::empty_like(exact.q);
  if (exact.d_context.defined()) {
    output.dq = at::empty_like(exact.q);
    output.dk = at::empty_like(exact.k);
    output.dv = at::empty_like(exact.v);
  }
  std::int64_t done = 0;
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    const std::int64_t b = pair / H, h = pair % H;
    const CoreInput part = pair_of(exact, b, h);
    const bool by_loops = done * pairs < (pair + 1) * judged;  // spreads `judged` of them evenly
    if (by_loops) ++done;
    if (by_loops) {
      const CoreOutput judge = loops(part);
      if (judged < pairs) require_agreement(plain_core(part), judge);
      copy_into(output, judge, b, h);
    } else {
      copy_into(output, plain_core(part), b, h);
    }
  }
  return output;
}

at::Tensor visible_softmax(const at::Tensor& scores, bool causal) {
  if (!causal) return at::softmax(scores, -1);
  const at::Tensor hidden = declared_mask(true, scores.size(-2), scores.size(-1), scores.device()).logical_not();
  return at::softmax(scores.masked_fill(hidden, -std::numeric_limits<double>::infinity()), -1);
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

at::Tensor declared_mask(bool causal, std::int64_t query_len, std::int64_t key_len, const at::Device& device) {
  const at::TensorOptions whole = at::TensorOptions().dtype(at::kLong).device(device);
  const at::Tensor query = at::arange(query_len, whole).unsqueeze(1);
  const at::Tensor key = at::arange(key_len, whole).unsqueeze(0);
  const std::int64_t seen_beyond_itself = causal ? key_len - query_len : key_len;
  return key <= query + seen_beyond_itself;
}

}  // namespace attn
