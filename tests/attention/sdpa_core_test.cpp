#include "attention/sdpa_core.h"

#include <gtest/gtest.h>

#include "attention/alibi.h"
#include "attention/mask.h"
#include "attention/multi_head_attention.h"
#include "core/error.h"
#include "support/tensor_helpers.h"

namespace attn {
namespace {

using test::identical;
using test::max_difference;
using test::random_tensor;

struct Case {
  std::int64_t H, H_kv, T_q, T_k;
  bool masked, padded, biased;
};

TEST(SdpaCore, EqualsTheExplicitEngine) {
  for (const Case& test :
       {Case{2, 2, 5, 5, true, false, false}, Case{2, 2, 5, 5, false, false, false},
        Case{6, 2, 5, 5, true, false, false}, Case{4, 1, 1, 6, true, false, false}, Case{2, 2, 3, 6, true, false, true},
        Case{2, 2, 4, 6, false, true, false}, Case{4, 2, 5, 5, true, true, true}}) {
    const at::Tensor q = random_tensor({2, test.H, test.T_q, 8}, 1).requires_grad_();
    const at::Tensor k = random_tensor({2, test.H_kv, test.T_k, 8}, 2).requires_grad_();
    const at::Tensor v = random_tensor({2, test.H_kv, test.T_k, 8}, 3).requires_grad_();
    AttentionCoreOptions options;
    options.scale = 0.3;
    if (test.masked) options.mask = causal_mask(test.T_q, test.T_k);
    if (test.padded) {
      at::Tensor real = at::ones({2, 1, 1, test.T_k}, at::kBool);
      real[1].slice(-1, 0, 3).fill_(false);  // under a causal mask the first queries see no key
      options.mask =
          options.mask.has_value() ? options.mask->logical_and(real) : real.expand({2, 1, test.T_q, test.T_k});
    }
    if (test.biased) options.bias = alibi_bias(test.H, test.T_q, test.T_k, at::kDouble);
    const AttentionCoreOutput sdpa = SdpaCore().attend(q, k, v, options);
    const AttentionCoreOutput expected = AttentionCore().attend(q, k, v, options);
    EXPECT_FALSE(sdpa.weights.has_value());
    EXPECT_LE(max_difference(sdpa.context, expected.context), 1e-13);
    const at::Tensor direction = random_tensor(sdpa.context.sizes(), 4);
    const auto gradients = [&](const at::Tensor& context) {
      return torch::autograd::grad({(context * direction).sum()}, {q, k, v});
    };
    const auto actual = gradients(sdpa.context), wanted = gradients(expected.context);
    for (std::size_t n = 0; n < 3; ++n) EXPECT_LE(max_difference(actual[n], wanted[n]), 1e-12) << n;
  }
}

TEST(SdpaCore, WorksWithoutAHeadAxis) {
  const at::Tensor q = random_tensor({2, 5, 8}, 1);
  AttentionCoreOptions options;
  options.mask = causal_mask(5, 5);
  EXPECT_LE(
      max_difference(SdpaCore().attend(q, q, q, options).context, AttentionCore().attend(q, q, q, options).context),
      1e-14);
  options.mask = options.mask->expand({2, 5, 5});
  EXPECT_LE(
      max_difference(SdpaCore().attend(q, q, q, options).context, AttentionCore().attend(q, q, q, options).context),
      1e-14);
}

TEST(SdpaCore, AnnouncesTheContextAlone) {
  AttentionConfig config;
  config.d_model = 12;
  config.H = 3;
  config.engine = Engine::kSdpa;
  MultiHeadAttention layer(config);
  test::CapturingObserver observer;
  const AttentionOutput result = layer->forward(AttentionInput{random_tensor({2, 5, 12}, 1, at::kFloat)}, &observer);
  EXPECT_FALSE(result.weights.has_value());
  EXPECT_EQ(observer.names(),
            (std::vector<std::string>{"x", "qkv", "q", "k", "v", "context", "merged", "projected", "output"}));
}

TEST(SdpaCore, RefusesWhatTheFunctionHasNot) {
  const at::Tensor q = random_tensor({1, 2, 3, 4}, 1);
  AttentionCoreOptions capped, sunk;
  capped.softcap = 2.0;
  sunk.sink = at::zeros({2}, at::kDouble);
  EXPECT_THROW(SdpaCore().attend(q, q, q, capped), ShapeError);
  EXPECT_THROW(SdpaCore().attend(q, q, q, sunk), ShapeError);
  AttentionCoreOptions additive;
  additive.mask = at::zeros({3, 3});
  EXPECT_THROW(SdpaCore().attend(q, q, q, additive), ShapeError);
}

TEST(SdpaCore, NamesTheBackend) {
  const at::Tensor q = random_tensor({1, 2, 3, 8}, 1, at::kFloat);
  const std::string backend = sdpa_backend(q, q, q, {});
  EXPECT_TRUE(backend == "flash" || backend == "math") << backend;
}

}  // namespace
}  // namespace attn
