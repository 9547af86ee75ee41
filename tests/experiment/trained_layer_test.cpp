// A real trained layer, shipped with the numbers that PyTorch computed from it in float64.
#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "attention/multi_head_attention.h"
#include "config/config_file.h"
#include "experiment/experiment.h"
#include "experiment/tensor_file.h"
#include "files/safetensors.h"

namespace attn {
namespace {

/// Every number within 1e-6 * max(1, largest): the file holds them rounded to float32.
void expect_close(const at::Tensor& actual, const SafetensorsFile& file, const std::string& name) {
  std::vector<std::string> notes;
  const at::Tensor expected = to_tensor(*file.find(name), file.source_name(), Dtype::kFloat64, notes);
  ASSERT_EQ(actual.sizes(), expected.sizes()) << name;
  const double limit = 1e-6 * std::max(1.0, expected.abs().max().item<double>());
  EXPECT_LE((actual.to(at::kDouble) - expected).abs().max().item<double>(), limit) << name;
}

/// The config's weights and output, compared with those in its weights file. Returns the weights (H, T, T).
at::Tensor expect_as_in_file(const std::string& name, const std::string& dtype) {
  const at::NoGradGuard no_gradients;
  std::istringstream no_input;
  const RunConfig config = load_config("configs/" + name + ".json", no_input, {"dtype=" + dtype});
  const Experiment experiment = make_experiment(config);
  const AttentionOutput output = experiment.layer->forward(experiment.x);
  const SafetensorsFile file = SafetensorsFile::load(*config.weights);
  expect_close(output.weights.value(), file, "expected.weights");
  expect_close(output.output, file, "expected.output");
  return output.weights->select(0, 0);
}

class TrainedLayer : public ::testing::TestWithParam<std::string> {};

TEST_P(TrainedLayer, OfMinilmGivesTheWeightsAndTheOutputOfItsFile) {
  // Head 2 looks at the previous token.
  const at::Tensor previous = expect_as_in_file("minilm_layer0", GetParam())[2].diagonal(-1);  // (20)
  EXPECT_GT(previous.min().item<double>(), 0.99);
}

INSTANTIATE_TEST_SUITE_P(Dtypes, TrainedLayer, ::testing::Values("float32", "float64"),
                         [](const auto& test) { return test.param; });

// In float64 only: its scores are larger, and float32 rounds them by more than the file's numbers are off.
TEST(TrainedLayerWithRope, OfSmollmGivesTheWeightsAndTheOutputOfItsFile) {
  const at::Tensor weights = expect_as_in_file("smollm2_layer18", "float64");
  // Heads 7 and 8 look at the first token: mean over the rows after it.
  for (const std::int64_t head : {7, 8}) {
    EXPECT_GT(weights[head].slice(0, 1).select(1, 0).mean().item<double>(), 0.95) << head;
  }
}

TEST(TrainedLayerLabels, AreTheTokensOfTheSentence) {
  std::istringstream no_input;
  const Experiment experiment = make_experiment(load_config("configs/minilm_layer0.json", no_input, {}));
  ASSERT_EQ(experiment.token_labels.size(), 1U);
  ASSERT_EQ(experiment.token_labels[0].size(), 21U);
  EXPECT_EQ(experiment.token_labels[0][0], "[CLS]");
  EXPECT_EQ(experiment.token_labels[0][5], "cabinet");
}

}  // namespace
}  // namespace attn
