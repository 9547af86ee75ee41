// What holds for attention whatever the numbers are.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "attention/attention_core.h"
#include "attention/mask.h"
#include "support/tensor_helpers.h"

namespace attn {
namespace {

using test::identical;
using test::max_difference;
using test::random_tensor;

/// Scores reach a few thousands, and each of their roundings is one of the weights' exponents.
constexpr double kLimit = 1e-11;

AttentionCoreOptions scaled_by(double scale) {
  AttentionCoreOptions options;
  options.scale = scale;
  return options;
}

/// A random case in float64. Queries and keys are spread so that rows are neither flat nor one-hot only.
struct Case {
  std::int64_t B = *rc::gen::inRange<std::int64_t>(1, 4);
  std::int64_t H = *rc::gen::inRange<std::int64_t>(1, 5);
  std::int64_t T = *rc::gen::inRange<std::int64_t>(1, 12);
  std::int64_t d_k = *rc::gen::inRange<std::int64_t>(1, 8);
  std::uint64_t seed = *rc::gen::inRange<std::uint64_t>(0, 1'000'000);
  double spread = *rc::gen::element(0.1, 1.0, 10.0);
  at::Tensor q = random_tensor({B, H, T, d_k}, 3 * seed) * spread;
  at::Tensor k = random_tensor({B, H, T, d_k}, 3 * seed + 1) * spread;
  at::Tensor v = random_tensor({B, H, T, d_k}, 3 * seed + 2);
  AttentionCoreOptions options = scaled_by(1.0 / std::sqrt(static_cast<double>(d_k)));

  AttentionCoreOutput attend() const { return scaled_dot_product_attention(q, k, v, options); }
};

Case causal_case() {
  Case test;
  test.options.mask = causal_mask(test.T, test.T);
  return test;
}

RC_GTEST_PROP(CoreProperties, RowsSumToOne, ()) {
  const at::Tensor sums = causal_case().attend().weights->sum(-1);
  RC_ASSERT(max_difference(sums, at::ones_like(sums)) <= 1e-14);
}

RC_GTEST_PROP(CoreProperties, HiddenKeysGetNoWeightAtAll, ()) {
  const Case test = causal_case();
  const at::Tensor hidden = test.options.mask->logical_not();
  RC_ASSERT(test.attend()
                .weights->masked_fill(test.options.mask->expand({test.B, test.H, test.T, test.T}), 0.0)
                .eq(0.0)
                .all()
                .item<bool>());
  RC_ASSERT(hidden.sum().item<std::int64_t>() == test.T * (test.T - 1) / 2);
}

RC_GTEST_PROP(CoreProperties, ChangingAKeyAndItsValueMovesNoEarlierQuery, ()) {
  Case test = causal_case();
  const std::int64_t cut = *rc::gen::inRange<std::int64_t>(0, test.T);
  const at::Tensor before = test.attend().context;
  test.k.slice(2, cut) += 3.0;
  test.v.slice(2, cut) *= -2.0;
  const at::Tensor after = test.attend().context;
  RC_ASSERT(identical(before.slice(2, 0, cut), after.slice(2, 0, cut)));
  // From `cut` on the same change is seen, unless far apart scores leave the changed keys no weight.
  RC_ASSERT(test.spread > 1.0 || !identical(before.slice(2, cut), after.slice(2, cut)));
}

RC_GTEST_PROP(CoreProperties, PermutingKeysWithTheirValuesChangesNothingWithoutAMask, ()) {
  const Case test;
  const at::Tensor order = at::randperm(test.T, at::detail::createCPUGenerator(test.seed), at::kLong);
  Case permuted = test;
  permuted.k = test.k.index_select(2, order);
  permuted.v = test.v.index_select(2, order);
  const AttentionCoreOutput expected = test.attend();
  const AttentionCoreOutput actual = permuted.attend();
  RC_ASSERT(max_difference(actual.context, expected.context) <= kLimit * std::max(1.0, test::largest(test.v)));
  RC_ASSERT(max_difference(*actual.weights, expected.weights->index_select(-1, order)) <= kLimit);
}

RC_GTEST_PROP(CoreProperties, PermutingKeysAndTheMasksColumnsChangesNothing, ()) {
  const Case test = causal_case();
  const at::Tensor order = at::randperm(test.T, at::detail::createCPUGenerator(test.seed), at::kLong);
  Case permuted = test;
  permuted.k = test.k.index_select(2, order);
  permuted.v = test.v.index_select(2, order);
  permuted.options.mask = test.options.mask->index_select(1, order);
  RC_ASSERT(max_difference(permuted.attend().context, test.attend().context) <= kLimit * test::largest(test.v));
}

RC_GTEST_PROP(CoreProperties, EveryHeadAndBatchItemIsOnItsOwn, ()) {
  Case test = causal_case();
  const std::int64_t b = *rc::gen::inRange<std::int64_t>(0, test.B);
  const std::int64_t h = *rc::gen::inRange<std::int64_t>(0, test.H);
  const at::Tensor before = test.attend().context;
  for (at::Tensor* tensor : {&test.q, &test.k, &test.v}) tensor->select(0, b).select(0, h) += 1.0;
  at::Tensor changed = (test.attend().context - before).abs().amax({2, 3}).ne(0.0);  // (B, H)
  RC_ASSERT(changed[b][h].item<bool>());
  RC_ASSERT(changed.sum().item<std::int64_t>() == 1);
}

RC_GTEST_PROP(CoreProperties, ContextLiesBetweenTheSmallestAndTheLargestVisibleValue, ()) {
  const Case test = causal_case();
  const at::Tensor context = test.attend().context;
  const at::Tensor high = std::get<0>(test.v.cummax(2));
  const at::Tensor low = std::get<0>(test.v.cummin(2));
  RC_ASSERT(context.le(high + kLimit).all().item<bool>());
  RC_ASSERT(context.ge(low - kLimit).all().item<bool>());
}

RC_GTEST_PROP(CoreProperties, AThreeAxisCallIsTheFourAxisCallWithOneHead, ()) {
  Case test = causal_case();
  const at::Tensor expected = test.attend().context.select(1, 0);
  for (at::Tensor* tensor : {&test.q, &test.k, &test.v}) *tensor = tensor->select(1, 0);  // (B, T, d_k)
  RC_ASSERT(max_difference(test.attend().context, expected) <= kLimit * test::largest(test.v));
}

}  // namespace
}  // namespace attn
