// A model's own config.json, as the `transformers` package writes it, against the config that its layer was made from
// by hand: each fixture of scripts/model_layers.py holds both, and the layer's numbers agree with the latter.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/config_file.h"
#include "files/safetensors.h"

namespace attn {
namespace {

class ModelConfigFixture : public ::testing::TestWithParam<std::string> {};

TEST_P(ModelConfigFixture, IsReadAsTheLayerThatTheModelHas) {
  const std::string name = "model_" + GetParam() + "_f32";
  const auto metadata = SafetensorsFile::load("tests/data/" + name + ".safetensors").metadata();
  const RunConfig run = parse_config(metadata.at("config"), name, ".");
  AttentionConfig expected = run.attention;

  const AttentionConfig read =
      parse_config(metadata.at("model_config"), name, ".", {"B=" + std::to_string(run.B), "T=" + std::to_string(run.T)})
          .attention;

  expected.max_seq_len = read.max_seq_len;  // The fixture's is just above T.
  expected.dropout = read.dropout;          // The fixture is made without, in mode eval.
  EXPECT_EQ(read, expected);
}

INSTANTIATE_TEST_SUITE_P(Models, ModelConfigFixture,
                         ::testing::Values("llama", "llama_linear", "llama_llama3", "llama_yarn", "llama_left_padded",
                                           "llama_cache", "mistral", "mistral_cache", "gemma2", "qwen2", "qwen3",
                                           "gpt2", "bert", "falcon"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace attn
