// The gradients of a trace against central differences of the loss: nothing of autograd in the judge.
#include <gtest/gtest.h>

#include <functional>

#include "attention/input_embedding.h"
#include "attention/multi_head_attention.h"
#include "experiment/experiment.h"
#include "experiment/random_input.h"
#include "support/tensor_helpers.h"
#include "trace/trace_attention.h"
#include "trace/trace_helpers.h"

namespace attn {
namespace {

constexpr double kStep = 1e-5;  ///< the error of a central difference falls with its square, rounding grows: 1e-10.
constexpr double kLimit = 1e-8;

class Backward : public ::testing::TestWithParam<std::vector<std::string>> {
 protected:
  Backward() {
    std::vector<std::string> words = {"B=2", "T=3", "d_model=4", "H=2", "dtype=float64", "bias=true", "max_seq_len=4"};
    words.insert(words.end(), GetParam().begin(), GetParam().end());
    config_ = test::config_of(words);
    experiment_ = make_experiment(config_);
    dy_ = random_normal({2, 3, 4}, config_.seed, RandomStream::kGradient);
  }

  double loss() {
    const at::NoGradGuard no_grad;
    const at::Tensor x = experiment_.tokens ? experiment_.embed() : experiment_.x;
    return (experiment_.layer->forward(experiment_.input(x)).output * dy_).sum().item<double>();
  }

  /// The gradient in the trace, number by number, against moving each number of `tensor` up and down.
  void expect_gradient(const TraceStep& traced, const at::Tensor& tensor) {
    ASSERT_EQ(traced.shape, tensor.sizes().vec()) << traced.name;
    const at::Tensor flat = tensor.detach().view({-1});
    for (std::int64_t index = 0; index < flat.numel(); ++index) {
      const double before = flat[index].item<double>();
      flat[index] = before + kStep;
      const double above = loss();
      flat[index] = before - kStep;
      const double below = loss();
      flat[index] = before;
      EXPECT_NEAR(traced.values[static_cast<std::size_t>(index)], (above - below) / (2 * kStep), kLimit)
          << traced.name << '[' << index << ']';
    }
  }

  RunConfig config_;
  Experiment experiment_;
  at::Tensor dy_;
};

TEST_P(Backward, EveryGradientAgreesWithCentralDifferences) {
  const AttentionTrace trace = trace_attention(config_, {.backward = true, .max_values = 1000});
  EXPECT_NEAR(trace.summary.loss, loss(), 1e-12);
  std::size_t compared = 0;
  const auto compare_parameters = [&](const torch::nn::Module& module) {
    for (const auto& parameter : module.named_parameters()) {
      expect_gradient(test::find_step_of(trace, "gradient", parameter.key()), parameter.value());
      ++compared;
    }
  };
  compare_parameters(*experiment_.layer);
  if (experiment_.embedding) compare_parameters(*experiment_.embedding);
  EXPECT_EQ(test::names_of(trace, "gradient").size(), compared);
  if (!experiment_.tokens) expect_gradient(test::find_step_of(trace, "backward", "x"), experiment_.x);
}

INSTANTIATE_TEST_SUITE_P(
    Configs, Backward,
    ::testing::Values(std::vector<std::string>{"qkv=fused"}, std::vector<std::string>{"qkv=fused-per-head"},
                      std::vector<std::string>{"qkv=separate"},
                      std::vector<std::string>{"qkv=separate", "module=single-head", "H=1", "d_k=3"},
                      std::vector<std::string>{"causal=false"},
                      std::vector<std::string>{R"(embedding={"vocab_size": 5, "positions": "learned"})"},
                      std::vector<std::string>{"H_kv=1", R"(rope={"style": "half"})", "qk_norm=true"},
                      std::vector<std::string>{"softcap=2", "alibi=true", "sink=true", "scale=0.7"},
                      std::vector<std::string>{"padding=left", "lengths=[3,1]", "window=2", "sink=true"},
                      std::vector<std::string>{"padding=left", "lengths=[3,1]",
                                               R"(embedding={"vocab_size": 5, "positions": "learned"})"},
                      std::vector<std::string>{"qkv=separate", "causal=false", R"(memory={"T_k": 2})", "H_kv=1"}),
    [](const auto& test) { return "Config" + std::to_string(test.index); });

TEST(Trace, TheGradientOfHiddenScoresIsZeroAndTheFutureGetsNone) {
  const AttentionTrace trace =
      trace_attention(test::small_config({"dtype=float64"}), {.backward = true, .max_values = 1000});
  const TraceStep& scores = test::find_step_of(trace, "backward", "scores");
  const at::Tensor gradient = test::tensor_of(scores.shape, scores.values);
  EXPECT_EQ(test::largest(gradient.triu(1)), 0.0);
  EXPECT_GT(test::largest(gradient.tril()), 0.0);
  // Softmax keeps the sum of a row, so a row's scores moved together move nothing.
  EXPECT_LE(test::largest(gradient.sum(-1)), 1e-14);
}

TEST(Trace, LowPrecisionGradientsStayNearThoseOfFloat64) {
  const auto gradient_of = [](const std::string& dtype) {
    const AttentionTrace trace =
        trace_attention(test::small_config({"dtype=" + dtype}), {.backward = true, .max_values = 1000});
    const TraceStep& x = test::find_step_of(trace, "backward", "x");
    EXPECT_EQ(x.dtype, dtype);
    return test::tensor_of(x.shape, x.values);
  };
  const at::Tensor expected = gradient_of("float64");
  for (const auto& [dtype, unit] :
       std::vector<std::pair<std::string, double>>{{"float32", 6e-8}, {"float16", 4.9e-4}, {"bfloat16", 3.9e-3}}) {
    // About ten roundings one after the other, forward and backward.
    EXPECT_LE(test::max_difference(gradient_of(dtype), expected), 32 * unit * test::largest(expected)) << dtype;
  }
}

}  // namespace
}  // namespace attn
