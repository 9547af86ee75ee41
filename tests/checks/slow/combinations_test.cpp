// Every two features of a layer together: refused with the reason, or judged right by all checks. And the two engines.
#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include <map>
#include <utility>

#include "attention/multi_head_attention.h"
#include "checks/check_test_support.h"
#include "checks/slow/random_config.h"
#include "config/config_file.h"
#include "core/error.h"
#include "experiment/experiment.h"

namespace attn {
namespace {

using Keys = std::map<std::string, std::string>;  ///< config key to JSON value

struct Feature {
  std::string name;
  Keys keys;
};

const Keys kBase{{"B", "2"}, {"T", "6"}, {"d_model", "16"}, {"H", "4"}, {"d_k", "4"}};

const std::vector<Feature>& features() {
  static const std::vector<Feature> all{
      {"rope half", {{"rope", R"({"style": "half"})"}}},
      {"rope adjacent", {{"rope", R"({"style": "adjacent", "theta": 500})"}}},
      {"rope linear", {{"rope", R"({"style": "half", "scaling": {"kind": "linear", "factor": 2}})"}}},
      {"rope llama3",
       {{"rope", R"({"style": "half", "scaling": {"kind": "llama3", "factor": 8, "original_max_seq_len": 16}})"}}},
      {"rope yarn",
       {{"rope", R"({"style": "half", "scaling": {"kind": "yarn", "factor": 4, "original_max_seq_len": 64}})"}}},
      {"two key heads", {{"H_kv", "2"}}},
      {"one key head", {{"H_kv", "1"}}},
      {"fused", {{"qkv", R"("fused")"}}},
      {"fused per head", {{"qkv", R"("fused-per-head")"}}},
      {"separate", {{"qkv", R"("separate")"}}},
      {"single head", {{"module", R"("single-head")"}, {"H", "1"}}},
      {"bias", {{"bias", "true"}}},
      {"bias of qkv only", {{"bias", "true"}, {"output_bias", "false"}}},
      {"not causal", {{"causal", "false"}}},
      {"window", {{"window", "3"}}},
      {"window of one", {{"window", "1"}}},
      {"left padding", {{"padding", R"("left")"}, {"lengths", "[4, 6]"}}},
      {"right padding", {{"padding", R"("right")"}, {"lengths", "[6, 3]"}}},
      {"prefix mask", {{"mask", R"({"kind": "prefix", "length": 3})"}}},
      {"document mask", {{"mask", R"({"kind": "document", "lengths": [2, 3]})"}}},
      {"dilated mask", {{"mask", R"({"kind": "dilated", "stride": 2})"}}},
      {"bidirectional mask", {{"mask", R"("bidirectional")"}}},
      {"mask in rows",
       {{"mask", "[[1,1,1,1,1,1],[0,1,1,1,1,1],[1,1,1,0,1,1],[1,1,1,1,1,1],[1,0,0,1,1,0],[0,0,0,0,0,0]]"}}},
      {"alibi", {{"alibi", "true"}}},
      {"softcap", {{"softcap", "1.5"}}},
      {"sink", {{"sink", "true"}}},
      {"scale", {{"scale", "0.2"}}},
      {"qk norm", {{"qk_norm", "true"}}},
      {"dropout", {{"dropout", "0.25"}}},
      {"sdpa", {{"engine", R"("sdpa")"}}},
      {"cache", {{"cache", R"({"prefill": 2, "steps": 2, "chunk": 2})"}}},
      {"memory", {{"memory", R"({"T_k": 6})"}, {"qkv", R"("separate")"}}},
      {"embedding", {{"embedding", R"({"vocab_size": 17})"}}},
      {"sinusoids", {{"embedding", R"({"vocab_size": 17, "positions": "sinusoidal"})"}}},
      {"bfloat16", {{"dtype", R"("bfloat16")"}}},
      {"float64", {{"dtype", R"("float64")"}}},
  };
  return all;
}

/// Which two make no sense together, and a part of the reason that is told. Either order.
const std::map<std::pair<std::string, std::string>, std::string>& refusals() {
  static const std::string positions = "two sequences";
  static const std::map<std::pair<std::string, std::string>, std::string> all{
      {{"sdpa", "softcap"}, "scaled_dot_product_attention has none"},
      {{"sdpa", "sink"}, "scaled_dot_product_attention has none"},
      {{"single head", "two key heads"}, "H_kv"},
      {{"not causal", "cache"}, "cache"},
      {{"prefix mask", "cache"}, "cache"},
      {{"bidirectional mask", "cache"}, "cache"},
      {{"memory", "cache"}, "cache"},
      {{"memory", "rope half"}, "rope"},
      {{"memory", "rope adjacent"}, "rope"},
      {{"memory", "rope linear"}, "rope"},
      {{"memory", "rope llama3"}, "rope"},
      {{"memory", "rope yarn"}, "rope"},
      {{"memory", "alibi"}, "alibi"},
      {{"memory", "window"}, "window"},
      {{"memory", "window of one"}, "window"},
      {{"memory", "prefix mask"}, "mask"},
      {{"memory", "document mask"}, "mask"},
      {{"memory", "dilated mask"}, "mask"},
      {{"memory", "bidirectional mask"}, "mask"},
  };
  return all;
}

std::string json_of(const Keys& keys) {
  std::string json;
  for (const auto& [key, value] : keys) json += (json.empty() ? "{\"" : ", \"") + key + "\": " + value;
  return json + "}";
}

/// Absent where the two say different things about one key: they are not two features then.
std::optional<Keys> together(const Feature& a, const Feature& b) {
  Keys keys = kBase;
  for (const auto& [key, value] : a.keys) keys[key] = value;
  for (const auto& [key, value] : b.keys) {
    if (a.keys.count(key) != 0 && a.keys.at(key) != value) return std::nullopt;
    keys[key] = value;
  }
  return keys;
}

std::optional<std::string> reason_of(const Feature& a, const Feature& b) {
  for (const auto& pair : {std::pair{a.name, b.name}, std::pair{b.name, a.name}}) {
    const auto found = refusals().find(pair);
    if (found != refusals().end()) return found->second;
  }
  return std::nullopt;
}

class Combinations : public ::testing::TestWithParam<std::size_t> {};

TEST_P(Combinations, AreRefusedWithTheReasonOrWork) {
  const Feature& first = features()[GetParam()];
  for (std::size_t n = GetParam(); n < features().size(); ++n) {
    const Feature& second = features()[n];
    const std::optional<Keys> keys = together(first, second);
    if (!keys.has_value()) continue;
    const std::string what = first.name + " and " + second.name + ": " + json_of(*keys);
    const std::optional<std::string> reason = reason_of(first, second);
    RunConfig run;
    try {
      run = parse_config(json_of(*keys), "combination", ".");
    } catch (const ConfigError& error) {
      EXPECT_TRUE(reason.has_value()) << what << "\n" << error.what();
      if (reason.has_value()) {
        EXPECT_NE(std::string(error.what()).find(*reason), std::string::npos) << error.what();
      }
      continue;
    }
    EXPECT_FALSE(reason.has_value()) << "not refused: " << what;
    run.threads = 1;
    const VerifyResult result = verify_attention(run);
    EXPECT_GT(result.count(CheckStatus::kPass), 0) << what;
    for (const CheckResult& check : result.checks) {
      const bool alarm = check.status == CheckStatus::kFail || check.status == CheckStatus::kError;
      EXPECT_FALSE(alarm) << what << "\n" << describe({check});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Features, Combinations, ::testing::Range(std::size_t{0}, features().size()),
                         [](const auto& test) {
                           std::string name = features()[test.param].name;
                           for (char& letter : name) {
                             if (letter == ' ') letter = '_';
                           }
                           return name;
                         });

/// The config's layer with this engine, on the config's input.
at::Tensor output_of(RunConfig run, Engine engine) {
  run.attention.engine = engine;
  const Experiment experiment = make_experiment(run);
  return experiment.layer->forward(experiment.input(experiment.x)).output;
}

TEST(Engines, AgreeInFloat64) {
  const at::NoGradGuard no_grad;
  int compared = 0;
  for (std::uint64_t seed = 2000000; compared < 200; ++seed) {
    const RandomConfig config = random_config(seed, {"float64"}, 24);
    const AttentionConfig& layer = config.run.attention;
    if (layer.softcap.has_value() || layer.sink) continue;
    const at::Tensor explicit_output = output_of(config.run, Engine::kExplicit);
    const at::Tensor sdpa_output = output_of(config.run, Engine::kSdpa);
    const double largest = explicit_output.abs().max().item<double>();
    const double difference = (explicit_output - sdpa_output).abs().max().item<double>();
    EXPECT_LE(difference, 1e-12 * std::max(1.0, largest)) << config.command();
    ++compared;
  }
}

}  // namespace
}  // namespace attn
