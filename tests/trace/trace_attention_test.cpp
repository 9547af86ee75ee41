#include "trace/trace_attention.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <sstream>

#include "attention/layer_fixture.h"
#include "core/error.h"
#include "experiment/experiment.h"
#include "support/shape_cases.h"
#include "support/tensor_helpers.h"
#include "trace/trace_helpers.h"

namespace attn {
namespace {

using test::config_of;
using test::find_step_of;
using test::names_of;
using test::small_config;
using Names = std::vector<std::string>;

constexpr TraceOptions kWithValues{.backward = true, .max_values = 1 << 20};

at::Tensor tensor_of(const TraceStep& step) { return test::tensor_of(step.shape, step.values); }

// --- names and order ---

TEST(Trace, FusedStepsComeInThisOrder) {
  const AttentionTrace trace = trace_attention(small_config({"bias=true"}));
  EXPECT_EQ(names_of(trace, "forward"),
            Names({"x", "qkv", "q", "k", "v", "scores", "scaled_scores", "masked_scores", "weights", "dropped_weights",
                   "context", "merged", "projected", "output"}));
  // Backward from the output. Where paths part, a parameter's gradient comes first, then the path that was walked last
  // in the forward pass.
  EXPECT_EQ(names_of(trace, ""), Names({"output", "projected", "c_proj.bias", "c_proj.weight", "merged", "context",
                                        "dropped_weights", "weights", "masked_scores", "scaled_scores", "scores", "v",
                                        "k", "q", "qkv", "c_attn.bias", "x", "c_attn.weight"}));
}

TEST(Trace, PerHeadStepsComeInThisOrder) {
  const AttentionTrace trace = trace_attention(small_config({"qkv=fused-per-head"}));
  EXPECT_EQ(names_of(trace, "forward"),
            Names({"x", "qkv", "q", "k", "v", "scores", "scaled_scores", "masked_scores", "weights", "dropped_weights",
                   "context", "merged", "projected", "output"}));
  EXPECT_EQ(names_of(trace, ""),
            Names({"output", "projected", "o_proj.weight", "merged", "context", "dropped_weights", "weights",
                   "masked_scores", "scaled_scores", "scores", "v", "k", "q", "qkv", "x", "qkv_proj.weight"}));
}

TEST(Trace, SeparateStepsComeInThisOrder) {
  const AttentionTrace trace = trace_attention(small_config({"qkv=separate"}));
  EXPECT_EQ(names_of(trace, "forward"),
            Names({"x", "q_proj", "k_proj", "v_proj", "q", "k", "v", "scores", "scaled_scores", "masked_scores",
                   "weights", "dropped_weights", "context", "merged", "projected", "output"}));
  EXPECT_EQ(names_of(trace, ""), Names({"output",
                                        "projected",
                                        "o_proj.weight",
                                        "merged",
                                        "context",
                                        "dropped_weights",
                                        "weights",
                                        "masked_scores",
                                        "scaled_scores",
                                        "scores",
                                        "v",
                                        "k",
                                        "q",
                                        "v_proj",
                                        "v_proj.weight",
                                        "k_proj",
                                        "k_proj.weight",
                                        "q_proj",
                                        "x",
                                        "q_proj.weight"}));
}

TEST(Trace, TokensAreFollowedThroughTheEmbedding) {
  const AttentionTrace trace =
      trace_attention(small_config({R"(embedding={"vocab_size": 7, "positions": "learned"})"}));
  const Names forward = names_of(trace, "forward");
  EXPECT_EQ(Names(forward.begin(), forward.begin() + 4),
            Names({"tokens", "token_embedding", "position_embedding", "x"}));
  EXPECT_EQ(find_step_of(trace, "forward", "tokens").dtype, "int64");
  EXPECT_EQ(find_step_of(trace, "forward", "tokens").symbolic, "(B, T)");
  EXPECT_EQ(find_step_of(trace, "forward", "position_embedding").shape, (std::vector<std::int64_t>{5, 12}));
  EXPECT_EQ(find_step_of(trace, "gradient", "token_embedding.weight").shape, (std::vector<std::int64_t>{7, 12}));
  EXPECT_EQ(find_step_of(trace, "gradient", "position_embedding.weight").symbolic, "(max_seq_len, d_model)");
  const Names backward = names_of(trace, "");
  EXPECT_EQ(Names(backward.end() - 6, backward.end()),
            Names({"c_attn.weight", "x", "position_embedding", "position_embedding.weight", "token_embedding",
                   "token_embedding.weight"}));
  EXPECT_EQ(trace.token_labels.size(), 2U);
}

TEST(Trace, SinusoidsAreShownAndHaveNoGradient) {
  const AttentionTrace trace =
      trace_attention(small_config({R"(embedding={"vocab_size": 7, "positions": "sinusoidal"})"}));
  EXPECT_NO_THROW(find_step_of(trace, "forward", "position_embedding"));
  EXPECT_THROW(find_step_of(trace, "backward", "position_embedding"), std::runtime_error);
  EXPECT_NO_THROW(find_step_of(trace, "gradient", "token_embedding.weight"));
}

// --- every kind of config ---

struct TracedConfig {
  std::string name;
  std::vector<std::string> set_words;
};

std::vector<TracedConfig> traced_configs() {
  std::vector<TracedConfig> configs;
  for (const test::LayerShape& shape : test::kLayerShapes) {
    const std::vector<std::string> words = {"B=" + std::to_string(shape.B),
                                            "T=" + std::to_string(shape.T),
                                            "d_model=" + std::to_string(shape.d_model),
                                            "H=" + std::to_string(shape.H),
                                            "max_seq_len=" + std::to_string(shape.max_seq_len),
                                            "bias=true"};
    for (const auto& [layout, name] : std::map<std::string, std::string>{
             {"fused", "Fused"}, {"fused-per-head", "PerHead"}, {"separate", "Separate"}}) {
      configs.push_back({shape.name + name, words});
      configs.back().set_words.push_back("qkv=" + layout);
    }
  }
  const auto add = [&](const std::string& name, const std::vector<std::string>& more) {
    configs.push_back({name, {"B=2", "T=5", "d_model=12", "H=3"}});
    configs.back().set_words.insert(configs.back().set_words.end(), more.begin(), more.end());
  };
  add("GivenHeadWidth", {"d_k=5"});
  add("SingleHead", {"H=1", "d_k=5", "module=single-head", "qkv=separate", "bias=true"});
  add("SingleHeadFused", {"H=1", "d_k=5", "module=single-head", "bias=true"});
  add("NotCausal", {"causal=false"});
  add("Training", {"dropout=0.5", "mode=train"});
  add("Learned", {R"(embedding={"vocab_size": 7, "positions": "learned"})"});
  add("NoPositions", {R"(embedding={"vocab_size": 7, "positions": "none"})"});
  for (const std::string dtype : {"float64", "bfloat16", "float16"}) add(dtype, {"dtype=" + dtype});
  const std::string rope = R"(rope={"style": "half"})";
  add("Grouped", {"H=6", "H_kv=2", "bias=true", rope});
  add("GroupedPerHead", {"H=6", "H_kv=3", "qkv=fused-per-head", "bias=true"});
  add("GroupedSeparate", {"H=6", "H_kv=1", "qkv=separate", "bias=true", "qk_norm=true", rope});
  add("SingleHeadRotated", {"H=1", "module=single-head", "qk_norm=true", "sink=true", rope});
  add("EveryScoreStep", {"softcap=5", "alibi=true", "sink=true", "scale=0.3", "qk_norm=true"});
  add("Windowed", {"window=2", R"(mask={"kind": "dilated", "stride": 2})"});
  add("PaddedLeft", {"padding=left", "lengths=[5,2]", R"(embedding={"vocab_size": 7, "positions": "learned"})"});
  add("PaddedRight", {"padding=right", "lengths=[1,5]", "causal=false"});
  add("Memory", {"qkv=separate", "causal=false", R"(memory={"T_k": 3})", "H=6", "H_kv=2", "bias=true"});
  add("MemorySingleHead", {"H=1", "module=single-head", "qkv=separate", "causal=false", R"(memory={"T_k": 3})"});
  add("Sdpa", {"engine=sdpa", "H=6", "H_kv=2", rope});
  return configs;
}

class Traced : public ::testing::TestWithParam<TracedConfig> {
 protected:
  RunConfig config_ = config_of(GetParam().set_words);
};

TEST_P(Traced, LettersAndNumbersOfEveryShapeAgree) {
  const AttentionTrace trace = trace_attention(config_);
  for (const TraceStep& step : trace.steps) {
    EXPECT_EQ(step.shape, test::evaluate(step.symbolic, config_, trace.calls.at(0)))
        << step.pass << ' ' << step.name << ' ' << step.symbolic;
  }
}

TEST_P(Traced, EveryStepAndParameterHasExactlyOneGradientOfItsShape) {
  const AttentionTrace trace = trace_attention(config_);
  std::size_t gradients = 0;
  for (const TraceStep& step : trace.steps) {
    if (step.pass != "forward" || step.name == "tokens" || step.name == "memory") continue;
    const TraceStep& gradient = find_step_of(trace, "backward", step.name);
    EXPECT_EQ(gradient.shape, step.shape) << step.name;
    EXPECT_EQ(gradient.dtype, step.dtype) << step.name;
    EXPECT_EQ(gradient.stats.nan + gradient.stats.inf, 0) << step.name;
    ++gradients;
  }
  EXPECT_EQ(names_of(trace, "backward").size(), gradients);

  const Experiment experiment = make_experiment(config_);
  std::size_t parameters = 0;
  for (const auto& parameter : experiment.layer->named_parameters()) {
    EXPECT_EQ(find_step_of(trace, "gradient", parameter.key()).shape, parameter.value().sizes().vec());
    ++parameters;
  }
  if (config_.embedding) parameters += config_.embedding->positions == Positions::kLearned ? 2 : 1;
  EXPECT_EQ(names_of(trace, "gradient").size(), parameters);
}

TEST_P(Traced, DoesNotChangeTheOutput) {
  const Experiment experiment = make_experiment(config_);
  experiment.layer->train(config_.mode == Mode::kTrain);
  const at::Tensor output = experiment.layer->forward(experiment.input(experiment.x)).output;
  const AttentionTrace trace = trace_attention(config_, kWithValues);
  EXPECT_TRUE(test::identical(tensor_of(find_step_of(trace, "forward", "output")), output.to(at::kDouble)));
}

TEST_P(Traced, SameSeedGivesTheSameTrace) {
  const AttentionTrace once = trace_attention(config_, kWithValues);
  const AttentionTrace again = trace_attention(config_, kWithValues);
  ASSERT_EQ(once.steps.size(), again.steps.size());
  for (std::size_t index = 0; index < once.steps.size(); ++index) {
    EXPECT_EQ(once.steps[index].name, again.steps[index].name);
    EXPECT_EQ(once.steps[index].stats.mean, again.steps[index].stats.mean) << once.steps[index].name;
    EXPECT_EQ(once.steps[index].stats.std, again.steps[index].stats.std) << once.steps[index].name;
  }
  EXPECT_EQ(once.summary.loss, again.summary.loss);
}

INSTANTIATE_TEST_SUITE_P(Configs, Traced, ::testing::ValuesIn(traced_configs()),
                         [](const auto& test) { return test.param.name; });

// --- numbers ---

TEST(Trace, MaskedScoresCountTheirHiddenKeysAsInfinite) {
  const AttentionTrace trace = trace_attention(small_config());
  EXPECT_EQ(find_step_of(trace, "forward", "masked_scores").stats.inf, 2 * 3 * 10);  // B * H * T (T - 1) / 2
  EXPECT_EQ(find_step_of(trace, "forward", "scaled_scores").stats.inf, 0);
  EXPECT_EQ(find_step_of(trace, "forward", "weights").stats.max, 1.0);  // the first token's own
  EXPECT_EQ(find_step_of(trace, "forward", "weights").stats.min, 0.0);
}

TEST(Trace, SummaryCountsByHand) {
  // B 2, T 5, d_model 12, H 3, d_k 4, bias, float32.
  const TraceSummary summary = trace_attention(small_config({"bias=true", "max_seq_len=9"})).summary;
  EXPECT_EQ(summary.parameters, 12 * 36 + 36 + 12 * 12 + 12);
  const std::int64_t projections = 2 * 10 * 12 * 36 + 2 * 10 * 12 * 12;
  const std::int64_t attention = 2 * (2 * 6 * 5 * 5 * 4);
  EXPECT_EQ(summary.forward_flops, projections + attention);
  EXPECT_EQ(summary.backward_flops, 2 * (projections + attention));
  EXPECT_EQ(summary.attention_bytes, 2 * 3 * 5 * 5 * 4);
  EXPECT_EQ(summary.attention_tensors, 10);
  EXPECT_EQ(summary.mask_bytes, 81);
}

TEST(Trace, SummaryCountsTheEmbeddingAndNoMaskWhereThereIsNone) {
  const RunConfig config =
      small_config({"causal=false", "max_seq_len=9", R"(embedding={"vocab_size": 7, "positions": "learned"})"});
  const TraceSummary summary = trace_attention(config).summary;
  EXPECT_EQ(summary.parameters, 4 * 12 * 12 + (7 + 9) * 12);
  EXPECT_EQ(summary.mask_bytes, 0);
}

TEST(Trace, SummaryCountsGroupsAndAMemoryByHand) {
  // B 2, T_q 5, T_k 3, d_model 12, H 6, H_kv 2, d_k 2.
  const TraceSummary summary =
      trace_attention(small_config({"H=6", "H_kv=2", "qkv=separate", "causal=false", R"(memory={"T_k": 3})"})).summary;
  EXPECT_EQ(summary.parameters, 12 * 12 + 2 * 12 * 4 + 12 * 12);
  const std::int64_t projections = 2 * 10 * 12 * 12 + 2 * (2 * 6 * 12 * 4) + 2 * 10 * 12 * 12;
  EXPECT_EQ(summary.forward_flops, projections + 2 * (2 * 2 * 6 * 5 * 3 * 2));
  EXPECT_EQ(summary.attention_bytes, 2 * 6 * 5 * 3 * 4);
  EXPECT_EQ(summary.built_mask_bytes, 0);
}

TEST(Trace, SummaryCountsTheMaskThatIsBuilt) {
  EXPECT_EQ(trace_attention(small_config()).summary.built_mask_bytes, 0);
  EXPECT_EQ(trace_attention(small_config({"window=2"})).summary.built_mask_bytes, 25);
  EXPECT_EQ(trace_attention(small_config({"padding=right", "lengths=[5,1]"})).summary.built_mask_bytes, 2 * 25);
}

TEST(Trace, NamesTheBackendOfTheEngineSdpaOnly) {
  EXPECT_FALSE(trace_attention(small_config({"engine=sdpa"})).calls.at(0).backend.empty());
  EXPECT_EQ(trace_attention(small_config()).calls.at(0).backend, "");
  const AttentionTrace trace = trace_attention(small_config({"engine=sdpa", "bias=true"}));
  EXPECT_EQ(names_of(trace, "forward"), Names({"x", "qkv", "q", "k", "v", "context", "merged", "projected", "output"}));
  EXPECT_EQ(trace.summary.attention_tensors, 0);
  EXPECT_EQ(trace.summary.attention_bytes, 0);
}

TEST(Trace, LossIsTheSumOfOutputTimesItsGradient) {
  const AttentionTrace trace = trace_attention(small_config(), kWithValues);
  const std::vector<double>& output = find_step_of(trace, "forward", "output").values;
  const std::vector<double>& dy = find_step_of(trace, "backward", "output").values;
  EXPECT_NEAR(trace.summary.loss, std::inner_product(output.begin(), output.end(), dy.begin(), 0.0), 1e-12);
  EXPECT_NE(trace.summary.loss, 0.0);
}

TEST(Trace, WithoutTheBackwardPassThereAreForwardStepsOnly) {
  const AttentionTrace trace = trace_attention(small_config(), {.backward = false, .max_values = 0});
  EXPECT_EQ(trace.steps.size(), 14U);
  EXPECT_EQ(names_of(trace, "").size(), 0U);
  EXPECT_EQ(trace.summary.backward_flops, 0);
  EXPECT_EQ(trace.summary.loss, 0.0);
  EXPECT_EQ(trace.summary.attention_tensors, 5);
}

TEST(Trace, CarriesNumbersOfSmallTensorsWhenAsked) {
  const AttentionTrace trace = trace_attention(small_config(), {.backward = true, .max_values = 120});
  EXPECT_EQ(find_step_of(trace, "forward", "x").values.size(), 120U);     // 2 * 5 * 12
  EXPECT_TRUE(find_step_of(trace, "forward", "weights").values.empty());  // 2 * 3 * 5 * 5 = 150
  EXPECT_TRUE(find_step_of(trace, "gradient", "c_attn.weight").values.empty());
  for (const TraceStep& step : trace_attention(small_config()).steps) EXPECT_TRUE(step.values.empty());
}

TEST(Trace, DropoutActsInTrainingModeOnly) {
  const auto zeros = [](const std::string& mode) {
    const AttentionTrace trace = trace_attention(small_config({"dropout=0.5", "causal=false", mode}), kWithValues);
    const std::vector<double>& weights = find_step_of(trace, "forward", "dropped_weights").values;
    return std::count(weights.begin(), weights.end(), 0.0);
  };
  EXPECT_EQ(zeros("mode=eval"), 0);
  EXPECT_GT(zeros("mode=train"), 30);  // of 150
}

class TracedFixture : public ::testing::TestWithParam<std::string> {};

TEST_P(TracedFixture, OutputAndWeightsAreTheFilesOwn) {
  const test::LayerFixture fixture = test::load_fixture(GetParam());
  RunConfig config = fixture.config;
  config.weights = test::fixture_path(GetParam());
  config.input = TensorInput{test::fixture_path(GetParam()), "x"};
  const AttentionTrace trace = trace_attention(config, kWithValues);
  for (const auto& [step, name] :
       std::map<std::string, std::string>{{"x", "x"}, {"output", "expected.output"}, {"weights", "expected.weights"}}) {
    const at::Tensor& expected = fixture.at(name);
    EXPECT_LE(test::max_difference(tensor_of(find_step_of(trace, "forward", step)), expected),
              test::limit_for(expected, 1e-6))
        << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, TracedFixture, ::testing::ValuesIn(test::attention_fixtures()),
                         [](const auto& test) { return test.param; });

// --- errors ---

TEST(Trace, SaysThatADeviceIsMissing) {
  if (at::hasCUDA()) GTEST_SKIP() << "this machine has a CUDA device";
  EXPECT_THROW(trace_attention(small_config({"device=cuda"})), ResourceError);
}

TEST(Trace, NamesAWeightsFileThatDoesNotFit) {
  RunConfig config = small_config({"qkv=separate"});
  config.weights = test::fixture_path("attention_fused_f32");
  try {
    trace_attention(config);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("attention_fused_f32"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace attn
