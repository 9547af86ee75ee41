#include "experiment/experiment.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <thread>

#include "attention/input_embedding.h"
#include "attention/multi_head_attention.h"
#include "core/error.h"
#include "experiment/torch_guard.h"
#include "files/safetensors.h"
#include "files/whole_file.h"

namespace attn {
namespace {

RunConfig small_config() {
  RunConfig config;
  config.attention.d_model = 8;
  config.attention.H = 2;
  config.attention.qkv = QkvLayout::kSeparate;
  config.attention.max_seq_len = 16;
  config.B = 2;
  config.T = 5;
  config.source_name = "small.json";
  return config;
}

std::map<std::string, at::Tensor> parameters_of(const torch::nn::Module& module) {
  std::map<std::string, at::Tensor> parameters;
  for (const auto& item : module.named_parameters()) parameters.emplace(item.key(), item.value().detach());
  return parameters;
}

/// A .safetensors file that vanishes with the test.
class WeightsFile {
 public:
  explicit WeightsFile(const std::map<std::string, at::Tensor>& tensors, const std::string& dtype = "F32") {
    std::vector<SafetensorsEntry> entries;
    std::vector<at::Tensor> kept;
    for (const auto& [name, tensor] : tensors) {
      const at::ScalarType type = dtype == "F32" ? at::kFloat : dtype == "F64" ? at::kDouble : at::kHalf;
      kept.push_back(tensor.to(type).contiguous());
      entries.push_back({name,
                         dtype,
                         tensor.sizes().vec(),
                         {static_cast<const char*>(kept.back().const_data_ptr()), kept.back().nbytes()}});
    }
    path_ = std::filesystem::path(::testing::TempDir()) / "experiment_test_weights.safetensors";
    write_whole_file(path_, to_safetensors(entries, {}));
  }
  ~WeightsFile() { std::filesystem::remove(path_); }
  WeightsFile(const WeightsFile&) = delete;
  WeightsFile& operator=(const WeightsFile&) = delete;

  RunConfig used_by(RunConfig config) const {
    config.weights = path_;
    return config;
  }
  std::string name() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

std::string message_of(const RunConfig& config) {
  try {
    make_experiment(config);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Experiment, OneSeedGivesOneLayerAndOneInputOnEveryDtype) {
  RunConfig config = small_config();
  const Experiment single = make_experiment(config);
  config.dtype = Dtype::kFloat64;
  const Experiment twice = make_experiment(config);
  EXPECT_EQ(twice.x.scalar_type(), at::kDouble);
  EXPECT_TRUE(at::equal(single.x.to(at::kDouble), twice.x));
  const auto wide = parameters_of(*twice.layer);
  for (const auto& [name, value] : parameters_of(*single.layer)) {
    EXPECT_TRUE(at::equal(value.to(at::kDouble), wide.at(name))) << name;
  }
}

TEST(Experiment, AnotherSeedGivesAnotherLayerAndInput) {
  RunConfig config = small_config();
  const Experiment first = make_experiment(config);
  config.seed = 1;
  const Experiment second = make_experiment(config);
  EXPECT_FALSE(at::equal(first.x, second.x));
  EXPECT_FALSE(at::equal(parameters_of(*first.layer).begin()->second, parameters_of(*second.layer).begin()->second));
}

TEST(Experiment, ARebuiltLayerIsTheSame) {
  const RunConfig config = small_config();
  const auto first = parameters_of(*make_experiment(config).layer);
  const auto second = parameters_of(*make_layer(config));
  ASSERT_EQ(first.size(), 4U);
  for (const auto& [name, value] : first) EXPECT_TRUE(at::equal(value, second.at(name))) << name;
}

TEST(Experiment, TextBecomesTokensAndLabels) {
  RunConfig config = small_config();
  config.B = 1;
  config.T = 3;
  config.embedding = EmbeddingConfig{256, Positions::kSinusoidal};
  config.input = TextInput{{"abc"}, std::nullopt, Tokenizer::kBytes};
  const Experiment experiment = make_experiment(config);
  ASSERT_TRUE(experiment.tokens.has_value());
  EXPECT_EQ((*experiment.tokens)[0][2].item<std::int64_t>(), 'c');
  EXPECT_EQ(experiment.token_labels, (std::vector<std::vector<std::string>>{{"a", "b", "c"}}));
  EXPECT_EQ(experiment.x.sizes().vec(), (std::vector<std::int64_t>{1, 3, 8}));
  EXPECT_FALSE(experiment.x.requires_grad());
}

TEST(Weights, AreTakenFromTheFileAndConversionIsTold) {
  RunConfig config = small_config();
  config.seed = 9;
  auto wanted = parameters_of(*make_layer(config));
  for (auto& item : wanted) item.second = item.second.to(at::kHalf).to(at::kFloat);
  const WeightsFile file(wanted, "F16");
  const Experiment experiment = make_experiment(file.used_by(small_config()));
  for (const auto& [name, value] : parameters_of(*experiment.layer))
    EXPECT_TRUE(at::equal(value, wanted.at(name))) << name;
  ASSERT_EQ(experiment.notes.size(), 2U);  // the first: that all are square, see StoredLayout
  EXPECT_EQ(experiment.notes.back(), file.name() + ": F16 converted to float32");
}

TEST(Weights, KeepAllDigitsOfFloat64) {
  RunConfig config = small_config();
  config.dtype = Dtype::kFloat64;
  auto wanted = parameters_of(*make_layer(config));
  wanted.begin()->second.fill_(0.1);  // not exact in float32
  const WeightsFile file(wanted, "F64");
  EXPECT_TRUE(
      at::equal(parameters_of(*make_experiment(file.used_by(config)).layer).begin()->second, wanted.begin()->second));
}

TEST(Weights, ThatDoNotFitAreNamedAllAtOnce) {
  auto tensors = parameters_of(*make_layer(small_config()));
  tensors.erase("k_proj.weight");
  tensors["c_attn.weight"] = at::zeros({24, 8});
  tensors["q_proj.weight"] = at::zeros({8, 4});
  tensors["x"] = at::zeros({1});
  tensors["expected.output"] = at::zeros({1});
  const WeightsFile file(tensors);
  EXPECT_EQ(message_of(file.used_by(small_config())),
            file.name() +
                ": does not fit the layer: missing k_proj.weight; left over c_attn.weight; "
                "q_proj.weight is (8, 4), expected (8, 8)");
}

/// R66: GPT-2 keeps its weights as [in, out]; d_model 12, so c_attn is (12, 36) there and c_proj is square.
class Gpt2Weights : public ::testing::Test {
 protected:
  Gpt2Weights() {
    config_.attention.d_model = 12;
    config_.attention.H = 3;
    config_.attention.qkv = QkvLayout::kFused;
    config_.attention.bias = true;
    config_.seed = 5;
    due_ = parameters_of(*make_layer(config_));
    config_.seed = 0;
  }

  /// The layer's parameters with those of these names the other way up.
  std::map<std::string, at::Tensor> lying(const std::vector<std::string>& names) const {
    auto stored = due_;
    for (const std::string& name : names) stored[name] = stored.at(name).t().contiguous();
    return stored;
  }

  void expect_due(const RunConfig& config) const {
    for (const auto& [name, value] : parameters_of(*make_experiment(config).layer)) {
      EXPECT_TRUE(at::equal(value, due_.at(name))) << name;
    }
  }

  RunConfig config_ = small_config();
  std::map<std::string, at::Tensor> due_;
};

TEST_F(Gpt2Weights, AreReadTransposedTheSquareOneToo) {
  ASSERT_FALSE(at::equal(due_.at("c_proj.weight"), due_.at("c_proj.weight").t())) << "must not be symmetric";
  const WeightsFile file(lying({"c_attn.weight", "c_proj.weight"}));
  expect_due(file.used_by(config_));
  EXPECT_EQ(make_experiment(file.used_by(config_)).notes,
            std::vector<std::string>{file.name() +
                                     ": c_attn.weight (12, 36) is [in, out], as GPT-2 keeps it: all 2-D weights of the "
                                     "layer are read transposed, square ones too (c_proj.weight)"});
}

TEST_F(Gpt2Weights, OfASquareLayerAreReadAsTheConfigSays) {
  config_.attention.qkv = QkvLayout::kSeparate;
  config_.seed = 5;
  due_ = parameters_of(*make_layer(config_));
  const WeightsFile file(lying({"q_proj.weight", "k_proj.weight", "v_proj.weight", "o_proj.weight"}));
  RunConfig config = file.used_by(config_);
  config.weights_layout = WeightsLayout::kInOut;
  expect_due(config);
}

TEST_F(Gpt2Weights, ForcedTheWrongWayUpAreRefusedWithTheWayOut) {
  RunConfig config = config_;
  {
    const WeightsFile file(lying({"c_attn.weight", "c_proj.weight"}));
    config = file.used_by(config_);
    config.weights_layout = WeightsLayout::kOutIn;
    EXPECT_EQ(message_of(config), file.name() +
                                      ": does not fit the layer: c_attn.weight is (12, 36), expected (36, 12), its "
                                      "transpose: set weights_layout to auto or in-out");
  }
  const WeightsFile file(due_);
  config = file.used_by(config_);
  config.weights_layout = WeightsLayout::kInOut;
  EXPECT_EQ(message_of(config), file.name() +
                                    ": does not fit the layer: c_attn.weight is (36, 12), expected (12, 36) as the "
                                    "weights are [in, out], its transpose: set weights_layout to auto or out-in");
}

TEST_F(Gpt2Weights, WithAnotherShapeAreNamedWithWhatIsDue) {
  auto stored = lying({"c_attn.weight"});
  stored["c_proj.weight"] = at::zeros({12, 13});
  const WeightsFile file(stored);
  EXPECT_EQ(message_of(file.used_by(config_)), file.name() +
                                                   ": does not fit the layer: c_proj.weight is (12, 13), expected (12, "
                                                   "12) as the weights are [in, out]");
}

TEST(Weights, TooLargeForTheDtypeAreRefused) {
  auto tensors = parameters_of(*make_layer(small_config()));
  tensors["o_proj.weight"] = at::full({8, 8}, 1e6);
  const WeightsFile file(tensors);
  RunConfig config = file.used_by(small_config());
  config.dtype = Dtype::kFloat16;
  EXPECT_EQ(message_of(config), file.name() + ": tensor \"o_proj.weight\": holds numbers too large for dtype float16");
}

TEST(Device, ThatIsNotThereIsRefused) {
  RunConfig config = small_config();
  config.device = "cuda:99";
  EXPECT_EQ(message_of(config).rfind("small.json: device cuda:99: ", 0), 0U) << message_of(config);
}

TEST(TorchGuard, TurnsLibTorchErrorsIntoOneLine) {
  try {
    with_torch_guarded(small_config(), [] { at::zeros({2, 3}).matmul(at::zeros({4, 5})); });
    FAIL() << "expected an error";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_EQ(text.rfind("small.json: LibTorch: ", 0), 0U) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos);
    EXPECT_EQ(text.find("frame #"), std::string::npos);
  }
}

TEST(TorchGuard, AnAllocationThatCannotBeIsAMatterOfMemory) {
  EXPECT_THROW(with_torch_guarded(small_config(), [] { at::empty({std::int64_t{1} << 50}, at::kDouble); }),
               ResourceError);
}

TEST(TorchGuard, TakesTheThreadsOfTheConfig) {
  RunConfig config = small_config();
  config.threads = 1;
  int seen = 0;
  with_torch_guarded(config, [&seen] { seen = at::get_num_threads(); });
  EXPECT_EQ(seen, 1);
}

}  // namespace
}  // namespace attn
