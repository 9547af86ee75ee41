// Every way in which a config can be wrong in itself, with the whole text that a user reads.
#include <gtest/gtest.h>

#include "config/config_test_support.h"

namespace attn {
namespace {

struct WrongConfig {
  std::string name;
  std::string config;
  std::string error;
};

std::string sizes(const std::string& key, const std::string& value) {
  std::string text = "{";
  for (const auto& [name, number] : {std::pair{"B", "2"}, {"T", "8"}, {"d_model", "16"}, {"H", "4"}}) {
    text += (text.size() > 1 ? ", \"" : "\"") + std::string(name) + "\": " + (key == name ? value : number);
  }
  return text + "}";
}

class WrongConfigs : public ::testing::TestWithParam<WrongConfig> {};

TEST_P(WrongConfigs, AreRefusedWithTheirPlaceAndTheRule) { EXPECT_EQ(error_of(GetParam().config), GetParam().error); }

const std::string kSize = "must be an integer from 1 to 2147483647, got ";

INSTANTIATE_TEST_SUITE_P(
    Integers, WrongConfigs,
    ::testing::Values(
        WrongConfig{"Fraction", sizes("T", "1.5"), "tiny.json: /T: " + kSize + "1.5"},
        WrongConfig{"String", sizes("H", "\"4\""), "tiny.json: /H: " + kSize + "the string \"4\""},
        WrongConfig{"Boolean", sizes("B", "true"), "tiny.json: /B: " + kSize + "true"},
        WrongConfig{"Exponent", sizes("T", "1e3"),
                    "tiny.json: /T: " + kSize + "1000.0; write it without a point or an exponent"},
        WrongConfig{"Point", sizes("H", "4.0"),
                    "tiny.json: /H: " + kSize + "4.0; write it without a point or an exponent"},
        WrongConfig{"Negative", sizes("d_model", "-1"), "tiny.json: /d_model: " + kSize + "-1"},
        WrongConfig{"Zero", sizes("T", "0"), "tiny.json: /T: " + kSize + "0"},
        WrongConfig{"OneTooLarge", sizes("T", "2147483648"), "tiny.json: /T: " + kSize + "2147483648"},
        WrongConfig{"TwoToThe63", sizes("T", "9223372036854775808"), "tiny.json: /T: " + kSize + "9223372036854775808"},
        WrongConfig{"Array", sizes("T", "[8]"), "tiny.json: /T: " + kSize + "an array"},
        WrongConfig{"Object", sizes("T", "{}"), "tiny.json: /T: " + kSize + "an object"},
        WrongConfig{"WidthOfAHead", tiny(R"("d_k": 0)"), "tiny.json: /d_k: " + kSize + "0"},
        WrongConfig{"LongestSequence", tiny(R"("max_seq_len": "x")"),
                    "tiny.json: /max_seq_len: " + kSize + "the string \"x\""},
        WrongConfig{"NegativeSeed", tiny(R"("seed": -1)"),
                    "tiny.json: /seed: must be an integer from 0 to 9223372036854775807, got -1"},
        WrongConfig{"LargeSeed", tiny(R"("seed": 9223372036854775808)"),
                    "tiny.json: /seed: must be an integer from 0 to 9223372036854775807, got 9223372036854775808"},
        WrongConfig{"NoThreads", tiny(R"("threads": 0)"),
                    "tiny.json: /threads: must be an integer from 1 to 1024, got 0"},
        WrongConfig{"ManyThreads", tiny(R"("threads": 1025)"),
                    "tiny.json: /threads: must be an integer from 1 to 1024, got 1025"}),
    [](const auto& test) { return test.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Keys, WrongConfigs,
    ::testing::Values(
        WrongConfig{"Misspelt", tiny(R"("casual": true)"),
                    R"(tiny.json: /casual: unknown key "casual"; did you mean "causal"?)"},
        WrongConfig{"Unknown", tiny(R"("zzzzzzzz": 1)"),
                    R"(tiny.json: /zzzzzzzz: unknown key "zzzzzzzz"; none of the 37 is near it)"},
        WrongConfig{"UnknownAndNull", tiny(R"("casual": null)"),
                    R"(tiny.json: /casual: unknown key "casual"; did you mean "causal"?)"},
        WrongConfig{"WithASlash", tiny(R"("bi/as": 1)"),
                    R"(tiny.json: /bi~1as: unknown key "bi/as"; did you mean "bias"?)"},
        WrongConfig{
            "OfEmbedding", tiny(R"("embedding": {"vocab_sise": 3})"),
            R"(tiny.json: /embedding/vocab_sise: unknown key of embedding "vocab_sise"; did you mean "vocab_size"?)"},
        WrongConfig{"OfInput", tiny(R"("input": {"kind": "random", "seed": 3})"),
                    R"(tiny.json: /input/seed: unknown key of a random input "seed"; known: kind)"},
        WrongConfig{"OfAnotherInput", tiny(R"("input": {"kind": "text", "ids": [[1]]})"),
                    R"(tiny.json: /input/ids: unknown key of a text input "ids"; known: kind, text, file, tokenizer)"},
        WrongConfig{"NoneGiven", "{}", "tiny.json: missing B, T, d_model, H, each an integer of at least 1"},
        WrongConfig{"SomeMissing", R"({"B": 1, "d_model": null, "H": 2})",
                    "tiny.json: missing T, d_model, each an integer of at least 1"},
        WrongConfig{"NoObject", "[1]", "tiny.json: must be an object, got an array"},
        WrongConfig{"NoObjectButNull", "null", "tiny.json: must be an object, got null"}),
    [](const auto& test) { return test.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Words, WrongConfigs,
    ::testing::Values(
        WrongConfig{"Dtype", tiny(R"("dtype": "flaot32")"),
                    R"(tiny.json: /dtype: unknown dtype "flaot32"; did you mean "float32"?)"},
        WrongConfig{"DtypeInteger", tiny(R"("dtype": 32)"),
                    "tiny.json: /dtype: must be one of float32, float64, bfloat16, float16, got 32"},
        WrongConfig{"Module", tiny(R"("module": "double")"),
                    R"(tiny.json: /module: unknown module "double"; known: multi-head, single-head)"},
        WrongConfig{"Qkv", tiny(R"("qkv": "seperate")"),
                    R"(tiny.json: /qkv: unknown qkv "seperate"; did you mean "separate"?)"},
        WrongConfig{"Mode", tiny(R"("mode": "trian")"),
                    R"(tiny.json: /mode: unknown mode "trian"; did you mean "train"?)"},
        WrongConfig{"Positions", tiny(R"("embedding": {"vocab_size": 2, "positions": "rope"})"),
                    R"(tiny.json: /embedding/positions: unknown positions "rope"; known: learned, sinusoidal, none)"},
        WrongConfig{"InputKind", tiny(R"("input": {"kind": "txt"})"),
                    R"(tiny.json: /input/kind: unknown kind "txt"; did you mean "text"?)"},
        WrongConfig{"NoInputKind", tiny(R"("input": {"file": "x"})"),
                    "tiny.json: /input/kind: missing; known: random, tensor, text, tokens"},
        WrongConfig{"Tokenizer", tiny(R"("embedding": {}, "input": {"kind": "text", "text": "a", "tokenizer": "bpe"})"),
                    R"(tiny.json: /input/tokenizer: unknown tokenizer "bpe"; known: bytes, words)"},
        WrongConfig{"Device", tiny(R"("device": "gpu")"),
                    R"(tiny.json: /device: unknown device "gpu"; did you mean "cuda"?)"},
        WrongConfig{"DeviceBoolean", tiny(R"("device": true)"), "tiny.json: /device: must be a string, got true"},
        WrongConfig{"BiasInteger", tiny(R"("bias": 1)"), "tiny.json: /bias: must be true or false, got 1"},
        WrongConfig{"CausalString", tiny(R"("causal": "true")"),
                    R"(tiny.json: /causal: must be true or false, got the string "true")"},
        WrongConfig{"EmbeddingInteger", tiny(R"("embedding": 256)"),
                    "tiny.json: /embedding: must be an object, got 256"},
        WrongConfig{"InputString", tiny(R"("input": "random")"),
                    R"(tiny.json: /input: must be an object, got the string "random")"},
        WrongConfig{"WeightsEmpty", tiny(R"("weights": "")"), "tiny.json: /weights: must not be empty"},
        WrongConfig{"WeightsArray", tiny(R"("weights": [])"), "tiny.json: /weights: must be a string, got an array"}),
    [](const auto& test) { return test.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Rules, WrongConfigs,
    ::testing::Values(
        WrongConfig{"HeadsDoNotDivide", sizes("H", "5"),
                    "tiny.json: /H: must divide d_model (16) unless d_k is given, got 5"},
        WrongConfig{"SingleHead", tiny(R"("module": "single-head")"),
                    "tiny.json: /H: must be 1 for module single-head, got 4"},
        WrongConfig{"TooLong", tiny(R"("max_seq_len": 7)"), "tiny.json: /max_seq_len: must be at least T (8), got 7"},
        WrongConfig{"Dropout", tiny(R"("dropout": 1.5)"),
                    "tiny.json: /dropout: must be a number of at least 0 and below 1, got 1.5"},
        WrongConfig{"DropoutOne", tiny(R"("dropout": 1)"),
                    "tiny.json: /dropout: must be a number of at least 0 and below 1, got 1"},
        WrongConfig{"DropoutString", tiny(R"("dropout": "0.1")"),
                    R"(tiny.json: /dropout: must be a number, got the string "0.1")"},
        WrongConfig{"TooWide", R"({"B": 1, "T": 1, "d_model": 2147483647, "H": 1})",
                    "tiny.json: /d_model: 3 * H * d_k, the width of q, k and v together, must be at most 2147483647, "
                    "got H = 1, d_k = 2147483647"},
        WrongConfig{"NoVocabulary", tiny(R"("embedding": {})"),
                    "tiny.json: /embedding/vocab_size: missing, an integer of at least 1 with a random input"},
        WrongConfig{"EmptyVocabulary", tiny(R"("embedding": {"vocab_size": 0})"),
                    "tiny.json: /embedding/vocab_size: " + kSize + "0"},
        WrongConfig{
            "OddSinusoid",
            R"({"B": 1, "T": 1, "d_model": 15, "H": 3, "embedding": {"vocab_size": 2, "positions": "sinusoidal"}})",
            "tiny.json: /embedding/positions: sinusoidal needs an even d_model, got d_model 15"}),
    [](const auto& test) { return test.param.name; });

TEST(WrongDevices, AreAllRefused) {
  for (const char* device : {"cuda:", "cuda:-1", "cuda:01", "cuda:128", "cuda:+1", "cuda: 1", "cuda:1 ", "CPU",
                             "cuda:x", "cuda:99999999999999999999"}) {
    EXPECT_EQ(error_of(tiny(R"("device": ")" + std::string(device) + "\"")),
              "tiny.json: /device: unknown device \"" + std::string(device) +
                  "\"; known: cpu, cuda, cuda:N with N from 0 to 127");
  }
}

TEST(WrongJson, IsRefusedWithTheNameOfTheConfig) {
  for (const char* text : {"", "{", R"({"B": NaN})", R"({"B": 1} x)", R"({"B": 1, "B": 1})",
                           R"({"B": 99999999999999999999})", "{'B': 1}"}) {
    const std::string error = error_of(text);
    EXPECT_EQ(error.rfind("tiny.json: ", 0), 0u) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
}

TEST(WrongConfig, WithTwoFaultsNamesTheMisspeltKeyFirst) {
  EXPECT_EQ(error_of(R"({"B": 1, "T": 2, "d_modle": 4, "H": 2})"),
            R"(tiny.json: /d_modle: unknown key "d_modle"; did you mean "d_model"?)");
}

TEST(WrongConfig, CannotMoveTheTerminalsCursor) {
  const std::string error = error_of(R"({"\u001b[2J\n": 1})");
  EXPECT_EQ(error.find('\x1b'), std::string::npos);
  EXPECT_EQ(error.find('\n'), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    NumbersOfADtype, WrongConfigs,
    ::testing::Values(
        WrongConfig{"InfiniteInFloat16", tiny(R"("dtype": "float16", "scale": 65505)"),
                    "tiny.json: /scale: must be at most 65504, the largest number of float16, got 65505"},
        WrongConfig{"InfiniteInFloat32", tiny(R"("softcap": 1e39)"),
                    "tiny.json: /softcap: must be at most 3.4028234663852886e+38, the largest number of float32, got "
                    "9.9999999999999994e+38"},
        WrongConfig{"InfiniteInBFloat16", tiny(R"("dtype": "bfloat16", "scale": 1e300)"),
                    "tiny.json: /scale: must be at most 3.4028234663852886e+38, the largest number of bfloat16, got "
                    "1.0000000000000001e+300"},
        WrongConfig{"TooSmallInFloat16", tiny(R"("dtype": "float16", "softcap": 0.00005)"),
                    "tiny.json: /softcap: must be at least 6.103515625e-05, the smallest normal number of float16, got "
                    "5.0000000000000002e-05"},
        WrongConfig{"TooSmallInFloat32", tiny(R"("scale": 1e-38)"),
                    "tiny.json: /scale: must be at least 1.1754943508222875e-38, the smallest normal number of "
                    "float32, got 9.9999999999999996e-39"}),
    [](const auto& test) { return test.param.name; });

TEST(ConfigErrors, AcceptTheLastNumbersThatADtypeHolds) {
  EXPECT_EQ(error_of(tiny(R"("dtype": "float16", "scale": 65504, "softcap": 0.00006103515625)")), "accepted");
  EXPECT_EQ(error_of(tiny(R"("softcap": 3.4028234663852886e38, "scale": 1.1754943508222875e-38)")), "accepted");
  EXPECT_EQ(error_of(tiny(R"("dtype": "float64", "softcap": 1e300, "scale": 1e-300)")), "accepted");
}

TEST(ConfigErrors, KnowWhatOtherProgramsCallOurKeys) {
  for (const auto& [other, ours] : {std::pair{"num_kv_heads", "H_kv"},
                                    {"num_key_value_heads", "H_kv"},
                                    {"n_kv_heads", "H_kv"},
                                    {"num_heads", "H"},
                                    {"n_heads", "H"},
                                    {"num_attention_heads", "H"},
                                    {"rope_style", "rope.style"},
                                    {"rope_theta", "rope.theta"},
                                    {"max_position_embeddings", "max_seq_len"},
                                    {"hidden_size", "d_model"},
                                    {"n_embd", "d_model"},
                                    {"embed_dim", "d_model"},
                                    {"head_dim", "d_k"},
                                    {"sliding_window", "window"},
                                    {"logit_softcapping", "softcap"}}) {
    const std::string key(other);
    EXPECT_EQ(error_of(tiny("\"" + key + "\": 1")),
              "tiny.json: /" + key + ": unknown key \"" + key + "\"; did you mean \"" + ours + "\"?");
  }
  EXPECT_EQ(error_of(tiny(), {"num_kv_heads=2"}),
            R"(--set: /num_kv_heads: unknown key "num_kv_heads"; did you mean "H_kv"?)");
}

}  // namespace
}  // namespace attn
