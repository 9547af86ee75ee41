#include "report/saved_trace.h"

#include <unistd.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "config/config_file.h"
#include "files/safetensors.h"
#include "files/whole_file.h"
#include "trace/trace_attention.h"

namespace attn {
namespace {

using Words = std::vector<std::string>;

RunConfig small_config(const Words& more = {}) {
  Words words = {"B=2", "T=5", "d_model=12", "H=3"};
  words.insert(words.end(), more.begin(), more.end());
  return parse_config("{}", "small.json", ".", words);
}

AttentionTrace traced(const RunConfig& config, bool backward = true) {
  return trace_attention(config, {.backward = backward, .keep_tensors = true});
}

SafetensorsFile saved(const AttentionTrace& trace) { return SafetensorsFile::parse(to_safetensors(trace), "saved"); }

Words names_of(const SafetensorsFile& file) {
  Words names;
  for (const SafetensorsEntry& entry : file.entries()) names.push_back(entry.name);
  return names;
}

/// A file that vanishes with the test.
class SavedFile {
 public:
  explicit SavedFile(const AttentionTrace& trace)
      : path_(std::filesystem::temp_directory_path() / ("saved_trace_test_" + std::to_string(::getpid()))) {
    write_whole_file(path_, to_safetensors(trace));
  }
  ~SavedFile() { std::filesystem::remove(path_); }
  SavedFile(const SavedFile&) = delete;
  SavedFile& operator=(const SavedFile&) = delete;

  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

const KeptTensor* find_kept(const AttentionTrace& trace, const std::string& name) {
  for (const KeptTensor& tensor : trace.kept) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

/// Every step and gradient of both is the same, bit for bit; `first` may have more (its embedding's).
void expect_same_steps(const AttentionTrace& first, const AttentionTrace& second) {
  std::size_t compared = 0;
  for (const KeptTensor& tensor : second.kept) {
    const KeptTensor* other = find_kept(first, tensor.name);
    ASSERT_NE(other, nullptr) << tensor.name;
    EXPECT_EQ(tensor.dtype, other->dtype) << tensor.name;
    EXPECT_EQ(tensor.shape, other->shape) << tensor.name;
    EXPECT_TRUE(tensor.bytes == other->bytes) << tensor.name;
    ++compared;
  }
  EXPECT_GE(compared, 30U);
}

TEST(SavedTrace, HasEveryStepGradientAndParameterByName) {
  Words names = names_of(saved(traced(small_config({"qkv=separate", "bias=true"}))));
  EXPECT_EQ(names.front(), "forward.x");
  EXPECT_EQ(names.back(), "o_proj.bias");
  Words expected = {"forward.x",
                    "forward.q_proj",
                    "forward.k_proj",
                    "forward.v_proj",
                    "forward.q",
                    "forward.k",
                    "forward.v",
                    "forward.scores",
                    "forward.scaled_scores",
                    "forward.masked_scores",
                    "forward.weights",
                    "forward.dropped_weights",
                    "forward.context",
                    "forward.merged",
                    "forward.projected",
                    "forward.output",
                    "backward.output",
                    "backward.projected",
                    "gradient.o_proj.bias",
                    "backward.merged",
                    "gradient.o_proj.weight",
                    "backward.context",
                    "backward.dropped_weights",
                    "backward.v",
                    "backward.v_proj",
                    "gradient.v_proj.bias",
                    "gradient.v_proj.weight",
                    "backward.weights",
                    "backward.masked_scores",
                    "backward.scaled_scores",
                    "backward.scores",
                    "backward.q",
                    "backward.q_proj",
                    "gradient.q_proj.bias",
                    "gradient.q_proj.weight",
                    "backward.k",
                    "backward.k_proj",
                    "gradient.k_proj.bias",
                    "gradient.k_proj.weight",
                    "backward.x",
                    "q_proj.weight",
                    "q_proj.bias",
                    "k_proj.weight",
                    "k_proj.bias",
                    "v_proj.weight",
                    "v_proj.bias",
                    "o_proj.weight",
                    "o_proj.bias"};
  // In which order the gradients of one step's inputs arise is LibTorch's own affair.
  std::sort(names.begin(), names.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(names, expected);
}

TEST(SavedTrace, KeepsTheDtypeOfTheRunAndTokensAsIntegers) {
  const SafetensorsFile file = saved(traced(small_config({"dtype=bfloat16", "embedding.vocab_size=7"})));
  for (const SafetensorsEntry& entry : file.entries()) {
    EXPECT_EQ(entry.dtype, entry.name == "forward.tokens" ? "I64" : "BF16") << entry.name;
  }
  ASSERT_NE(file.find("forward.tokens"), nullptr);
  EXPECT_EQ(file.find("forward.tokens")->shape, (std::vector<std::int64_t>{2, 5}));
  EXPECT_NE(file.find("token_embedding.weight"), nullptr);
  EXPECT_NE(file.find("gradient.position_embedding.weight"), nullptr);
}

TEST(SavedTrace, ReadsBackAsItWasWritten) {
  const AttentionTrace trace = traced(small_config());
  const SafetensorsFile file = saved(trace);
  ASSERT_EQ(file.entries().size(), trace.kept.size());
  for (std::size_t index = 0; index < trace.kept.size(); ++index) {
    const SafetensorsEntry& entry = file.entries()[index];
    EXPECT_EQ(entry.name, trace.kept[index].name);
    EXPECT_EQ(entry.dtype, "F32");
    EXPECT_EQ(entry.shape, trace.kept[index].shape);
    EXPECT_TRUE(entry.bytes == trace.kept[index].bytes) << entry.name;
  }
  EXPECT_EQ(file.find("forward.scores")->shape, (std::vector<std::int64_t>{2, 3, 5, 5}));
}

TEST(SavedTrace, SaysInItsMetadataWhatItIs) {
  const RunConfig config = small_config({"seed=3", "causal=false"});
  const SafetensorsFile file = saved(traced(config));
  EXPECT_EQ(file.metadata().at("format"), "attn-cli trace");
  EXPECT_EQ(file.metadata().at("format_version"), "1");
  EXPECT_EQ(file.metadata().count("tool_version"), 1U);
  EXPECT_EQ(file.metadata().count("torch_version"), 1U);
  EXPECT_EQ(file.metadata().count("tokens"), 0U);
  EXPECT_EQ(parse_config(file.metadata().at("config"), "small.json", "."), config);
}

TEST(SavedTrace, CarriesTheWordsOfATextToTheRunThatReadsIt) {
  const RunConfig config = parse_config(
      R"({"d_model": 8, "H": 2, "embedding": {}, "input": {"kind": "text", "text": ["a \"é\"", "b c d e"],
         "tokenizer": "words"}})",
      "text.json", ".");
  const AttentionTrace trace = traced(config);
  const SavedFile file(trace);
  const AttentionTrace again = traced(
      parse_config(R"({"H": 2, "input": {"kind": "tensor", "file": ")" + file.path() + "\"}}", "again.json", "."));
  EXPECT_EQ(again.token_labels, trace.token_labels);
  EXPECT_EQ(again.token_labels[0][2], "é");
}

TEST(SavedTrace, HasNoGradientsWithoutABackwardPass) {
  const SafetensorsFile file = saved(traced(small_config(), false));
  for (const std::string& name : names_of(file)) {
    EXPECT_FALSE(name.starts_with("backward.") || name.starts_with("gradient.")) << name;
  }
  EXPECT_NE(file.find("c_attn.weight"), nullptr);
}

TEST(Trace, KeepsNoTensorsUnlessAsked) { EXPECT_TRUE(trace_attention(small_config()).kept.empty()); }

/// One layer, by `--set` words.
class SavedRun : public ::testing::TestWithParam<Words> {};

TEST_P(SavedRun, GivenItsOwnWeightsAndInputIsTheSameBitForBit) {
  const AttentionTrace trace = traced(small_config(GetParam()));
  const SavedFile file(trace);
  Words words = GetParam();
  std::erase_if(words, [](const std::string& word) { return word.starts_with("embedding"); });
  words.insert(words.end(), {"weights=" + file.path(), "input.kind=tensor", "input.file=" + file.path(), "seed=99"});
  const RunConfig config = parse_config(R"({"H": 3})", "again.json", ".", words);
  // The first call of a cached run has not had all of x.
  EXPECT_EQ(std::get<TensorInput>(config.input).name, config.cache ? "x" : "forward.x");

  AttentionTrace again = traced(config);
  // dy is drawn from the seed, which is another one on purpose: all of the forward pass and every parameter must agree.
  std::erase_if(again.kept, [](const KeptTensor& tensor) {
    return tensor.name.starts_with("backward.") || tensor.name.starts_with("gradient.");
  });
  for (const KeptTensor& tensor : again.kept) {
    const KeptTensor* other = find_kept(trace, tensor.name);
    ASSERT_NE(other, nullptr) << tensor.name;
    EXPECT_TRUE(tensor.bytes == other->bytes) << tensor.name;
  }
  EXPECT_GE(again.kept.size(), 16U);
}

TEST_P(SavedRun, WithItsSeedGivesTheSameGradientsToo) {
  const AttentionTrace trace = traced(small_config(GetParam()));
  const SavedFile file(trace);
  Words words = GetParam();
  std::erase_if(words, [](const std::string& word) { return word.starts_with("embedding"); });
  words.insert(words.end(), {"weights=" + file.path(), "input.kind=tensor", "input.file=" + file.path()});
  expect_same_steps(trace, traced(parse_config(R"({"H": 3})", "again.json", ".", words)));
}

TEST_P(SavedRun, GivesItsEmbeddingBackToo) {
  const RunConfig config = small_config(GetParam());
  if (!config.embedding) GTEST_SKIP() << "has none";
  const AttentionTrace trace = traced(config);
  const SavedFile file(trace);
  RunConfig again = config;
  again.weights = file.path();
  expect_same_steps(trace, traced(again));
}

INSTANTIATE_TEST_SUITE_P(
    Layers, SavedRun,
    ::testing::Values(Words{"qkv=fused"}, Words{"qkv=fused-per-head", "bias=true"}, Words{"qkv=separate", "bias=true"},
                      Words{"qkv=separate", "d_k=5"}, Words{"causal=false", "dtype=float64"}, Words{"dtype=bfloat16"},
                      Words{"dtype=float16"}, Words{"embedding.vocab_size=7"},
                      Words{"embedding.vocab_size=7", "embedding.positions=sinusoidal", "dtype=bfloat16"},
                      Words{"H_kv=1", "qkv=separate", "qk_norm=true", "sink=true", R"(rope={"style": "half"})"},
                      Words{"padding=left", "lengths=[5,2]", "window=3", "alibi=true", "softcap=2"},
                      Words{R"(cache={"prefill": 2, "steps": 3})"}),
    [](const auto& test) { return "Layer" + std::to_string(test.index); });

TEST(SavedTrace, NotesWhatOfItIsNotUsedAndWhatStandsForX) {
  const SavedFile file(traced(small_config({"embedding.vocab_size=7"})));
  const AttentionTrace again = traced(parse_config(
      R"({"H": 3})", "again.json", ".", {"weights=" + file.path(), "input.kind=tensor", "input.file=" + file.path()}));
  EXPECT_EQ(again.notes, (Words{file.path() + ": not used, as there is no embedding: token_embedding.weight, "
                                              "position_embedding.weight",
                                file.path() + R"(: has no tensor "x", the input is its "forward.x")"}));
}

}  // namespace
}  // namespace attn
