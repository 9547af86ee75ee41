#include "trace/compare_traces.h"

#include <unistd.h>

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "core/error.h"
#include "files/safetensors.h"
#include "files/whole_file.h"
#include "trace/pipeline_order.h"
#include "trace/trace_attention.h"
#include "trace/trace_helpers.h"

namespace attn {
namespace {

using Words = std::vector<std::string>;

/// A file that vanishes with the test.
class File {
 public:
  explicit File(const std::vector<KeptTensor>& tensors) {
    static int count = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("compare_traces_test_" + std::to_string(::getpid()) + "_" + std::to_string(count++));
    std::vector<SafetensorsEntry> entries;
    for (const KeptTensor& tensor : tensors) entries.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.bytes});
    write_whole_file(path_, to_safetensors(entries, {}));
  }
  ~File() { std::filesystem::remove(path_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

KeptTensor tensor(const std::string& name, const std::vector<std::int64_t>& shape, const std::vector<float>& values) {
  KeptTensor made{name, "F32", shape, std::string(values.size() * sizeof(float), '\0')};
  std::memcpy(made.bytes.data(), values.data(), made.bytes.size());
  return made;
}

TraceComparison compare(const std::vector<KeptTensor>& a, const std::vector<KeptTensor>& b,
                        const CompareOptions& options = {}) {
  const File file_a(a);
  const File file_b(b);
  return compare_traces(file_a.path(), file_b.path(), options);
}

std::vector<KeptTensor> traced(const Words& more = {}) {
  return trace_attention(test::small_config(more), {.keep_tensors = true}).kept;
}

const TensorComparison& find(const TraceComparison& comparison, const std::string& name) {
  for (const TensorComparison& tensor : comparison.tensors) {
    if (tensor.name == name) return tensor;
  }
  throw std::runtime_error(name + " was not compared");
}

std::string error_of(const std::vector<KeptTensor>& a, const std::vector<KeptTensor>& b) {
  try {
    compare(a, b);
  } catch (const Error& error) {
    return error.what();
  }
  return "compared";
}

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

// --- what differs, and where ---

TEST(CompareTraces, SaysHowFarAndWhere) {
  const TraceComparison comparison = compare({tensor("forward.scores", {1, 2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8})},
                                             {tensor("forward.scores", {1, 2, 2, 2}, {1, 2, 3.5F, 4, 5, 6, 6, 8})});
  const TensorComparison& scores = find(comparison, "forward.scores");
  EXPECT_EQ(scores.axes, (Words{"batch", "head", "query", "key"}));
  EXPECT_EQ(scores.different, 2);
  EXPECT_EQ(scores.beyond, 2);
  EXPECT_EQ(scores.elements, 8);
  EXPECT_EQ(scores.largest_difference, 1.0);
  EXPECT_EQ(scores.relative, 1.0 / 8);
  EXPECT_EQ(scores.worst, (std::vector<std::int64_t>{0, 1, 1, 0}));
  EXPECT_EQ(scores.worst_a, 7.0);
  EXPECT_EQ(scores.worst_b, 6.0);
  EXPECT_EQ(comparison.first_parted(), &scores);
}

TEST(CompareTraces, NaNEqualsNaNAndNothingElse) {
  const TraceComparison same =
      compare({tensor("forward.x", {1, 1, 3}, {kNaN, -kInf, 1})}, {tensor("forward.x", {1, 1, 3}, {kNaN, -kInf, 1})});
  EXPECT_EQ(same.tensors[0].different, 0);
  EXPECT_EQ(same.first_parted(), nullptr);
  for (const float other : {1.0F, kInf, -kInf}) {
    const TraceComparison parted =
        compare({tensor("forward.x", {1, 1, 1}, {kNaN})}, {tensor("forward.x", {1, 1, 1}, {other})});
    EXPECT_EQ(parted.tensors[0].beyond, 1) << other;
    EXPECT_EQ(parted.tensors[0].largest_difference, HUGE_VAL) << other;
  }
}

TEST(CompareTraces, InfinityIsFarFromEverythingElse) {
  for (const float other : {3.4e38F, -kInf}) {
    const TraceComparison parted =
        compare({tensor("forward.x", {1, 1, 1}, {kInf})}, {tensor("forward.x", {1, 1, 1}, {other})});
    EXPECT_EQ(parted.tensors[0].beyond, 1) << other;
  }
}

// --- the limit ---

TEST(CompareTraces, RoundingAgreesAndALittleMorePartsByHand) {
  // One tensor, one place, longest sum 4 (the last axis): 2 * (1 + 2) * eps * 8.
  const double limit = 2 * 3 * std::ldexp(1, -23) * 8;
  const auto with_last = [](double last) {
    return std::vector{tensor("forward.x", {1, 1, 4}, {1, 1, 1, static_cast<float>(last)})};
  };
  EXPECT_EQ(find(compare(with_last(8), with_last(8)), "forward.x").limit, limit);
  EXPECT_EQ(compare(with_last(8), with_last(8 - limit)).first_parted(), nullptr);
  EXPECT_NE(compare(with_last(8), with_last(8 - 1.2 * limit)).first_parted(), nullptr);
}

TEST(CompareTraces, AUsersLimitIsTimesTheLargestValue) {
  const std::vector a = {tensor("forward.x", {1, 1, 2}, {1, 8})};
  const std::vector b = {tensor("forward.x", {1, 1, 2}, {2, 8})};
  EXPECT_EQ(compare(a, b, {.limit = 0.125}).first_parted(), nullptr);
  EXPECT_NE(compare(a, b, {.limit = 0.12}).first_parted(), nullptr);
  EXPECT_EQ(compare(a, a, {.limit = 0.0}).first_parted(), nullptr);
}

TEST(CompareTraces, ExactSeesASignOfZeroThatNoNumberShows) {
  const std::vector a = {tensor("forward.x", {1, 1, 2}, {1, 0.0F})};
  const std::vector b = {tensor("forward.x", {1, 1, 2}, {1, -0.0F})};
  EXPECT_EQ(compare(a, b).first_parted(), nullptr);
  EXPECT_FALSE(compare(a, b).all_identical());
  const TraceComparison exact = compare(a, b, {.exact = true});
  ASSERT_NE(exact.first_parted(), nullptr);
  EXPECT_EQ(exact.first_parted()->beyond, 1);
  EXPECT_EQ(exact.first_parted()->worst, (std::vector<std::int64_t>{0, 0, 1}));
}

TEST(CompareTraces, AKeyThatIsHiddenInOneRunOnlyPartsHoweverSmallItsWeight) {
  const auto weights = [](float leak) {
    return std::vector<KeptTensor>{tensor("forward.weights", {1, 1, 1, 2}, {1.0F, leak})};
  };
  EXPECT_EQ(find(compare(weights(0.0F), weights(1e-20F)), "forward.weights").beyond, 1);
  EXPECT_EQ(find(compare(weights(1e-20F), weights(2e-20F)), "forward.weights").beyond, 0);
  EXPECT_EQ(find(compare(weights(0.0F), weights(1e-42F)), "forward.weights").beyond, 0);  // may underflow by right
}

TEST(CompareTraces, ExactDemandsTheSameDtype) {
  std::vector a = {tensor("forward.x", {1, 1, 1}, {1})};
  KeptTensor wide{"forward.x", "F64", {1, 1, 1}, std::string(8, '\0')};
  const double one = 1.0;
  std::memcpy(wide.bytes.data(), &one, sizeof one);
  EXPECT_EQ(compare(a, {wide}).first_parted(), nullptr);
  EXPECT_NE(compare(a, {wide}, {.exact = true}).first_parted(), nullptr);
}

// --- real traces ---

TEST(CompareTraces, OfTheSameRunAreIdentical) {
  const TraceComparison comparison = compare(traced(), traced());
  EXPECT_TRUE(comparison.all_identical());
  EXPECT_EQ(comparison.first_parted(), nullptr);
  EXPECT_GE(comparison.tensors.size(), 32U);
}

class Dtypes : public ::testing::TestWithParam<Words> {};

/// Every dtype against float64; biases, whose gradients are 0 but for rounding; one token, where softmax has none.
TEST_P(Dtypes, AgreeWithFloat64) {
  Words wide = GetParam();
  wide.push_back("dtype=float64");
  for (const char* dtype : {"float32", "bfloat16", "float16"}) {
    Words narrow = GetParam();
    narrow.push_back(std::string("dtype=") + dtype);
    const TraceComparison comparison = compare(traced(narrow), traced(wide));
    for (const TensorComparison& tensor : comparison.tensors) {
      EXPECT_TRUE(tensor.within()) << dtype << ' ' << tensor.name << " is apart by " << tensor.largest_difference
                                   << ", limit " << tensor.limit;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, Dtypes,
                         ::testing::Values(Words{}, Words{"bias=true"}, Words{"qkv=separate", "bias=true"},
                                           Words{"qkv=fused-per-head", "causal=false", "bias=true"},
                                           Words{"T=1", "qkv=separate", "bias=true"},
                                           Words{"T=40", "qkv=separate", "bias=true"},
                                           Words{"H=1", "module=single-head", "qkv=separate", "bias=true"},
                                           Words{"embedding.vocab_size=7"},
                                           Words{"H=6", "H_kv=2", "bias=true", R"(rope={"style": "half"})"},
                                           Words{"qk_norm=true", "qkv=separate", R"(rope={"style": "half"})"},
                                           Words{"T=1", "qk_norm=true", "H=6", "H_kv=2"},
                                           Words{"softcap=2", "alibi=true", "sink=true", "scale=0.7"},
                                           Words{"T=1", "sink=true", "qkv=separate", "bias=true"},
                                           Words{"padding=left", "lengths=[5,2]", "window=2"}, Words{"engine=sdpa"},
                                           Words{"qkv=separate", "causal=false", R"(memory={"T_k": 3})"},
                                           Words{R"(cache={"prefill": 2, "steps": 3})"}),
                         [](const auto& test) { return "Layer" + std::to_string(test.index); });

/// The engine sdpa announces no map, so what cancels must be known without: a bias of k moves every score of a row
/// alike, one visible key has a weight of 1 whatever its score, and with a memory of one key nothing comes back to x.
class Engines : public ::testing::TestWithParam<Words> {};

TEST_P(Engines, AgreeAndARealErrorStillParts) {
  Words sdpa = GetParam();
  sdpa.emplace_back("engine=sdpa");
  const std::vector<KeptTensor> a = traced(GetParam());
  std::vector<KeptTensor> b = traced(sdpa);
  for (const TensorComparison& tensor : compare(a, b).tensors) {
    EXPECT_TRUE(tensor.within()) << tensor.name << " is apart by " << tensor.largest_difference << ", limit "
                                 << tensor.limit;
  }
  for (KeptTensor& tensor : b) {
    if (tensor.name != "gradient.k_proj.bias") continue;
    const float wrong = 0.01F;
    std::memcpy(tensor.bytes.data(), &wrong, sizeof wrong);
  }
  EXPECT_FALSE(find(compare(a, b), "gradient.k_proj.bias").within());
}

INSTANTIATE_TEST_SUITE_P(Layers, Engines,
                         ::testing::Values(Words{"qkv=separate", "bias=true"},
                                           Words{"qkv=separate", "bias=true", "causal=false"},
                                           Words{"qkv=separate", "bias=true", "window=1"},
                                           Words{"qkv=separate", "bias=true", "T=1"},
                                           Words{"qkv=separate", "bias=true", "causal=false", R"(memory={"T_k": 1})"},
                                           Words{"qkv=separate", "bias=true", "causal=false", R"(memory={"T_k": 40})"}),
                         [](const auto& test) { return "Layer" + std::to_string(test.index); });

TEST(CompareTraces, PartWhereTheRunsDo) {
  // Another mask: everything before it is the same, and the parameters too.
  EXPECT_EQ(compare(traced(), traced({"causal=false"})).first_parted()->name, "forward.masked_scores");
  EXPECT_EQ(compare(traced(), traced({"seed=1"})).first_parted()->name, "c_attn.weight");
  EXPECT_EQ(compare(traced({"mode=train", "dropout=0.3"}), traced({"dropout=0.3"})).first_parted()->name,
            "forward.dropped_weights");
}

TEST(CompareTraces, AGradientIsNamedAfterTheStepsBeforeIt) {
  std::vector a = traced();
  std::vector b = a;
  for (KeptTensor& tensor : b) {
    if (tensor.name == "gradient.c_attn.weight" || tensor.name == "backward.v") tensor.bytes[3] ^= 1;
  }
  EXPECT_EQ(compare(a, b).first_parted()->name, "backward.v");
}

TEST(CompareTraces, NamesWhatOnlyOneOfThemHas) {
  const TraceComparison comparison = compare(traced({"qkv=separate"}), traced({"qkv=fused"}));
  EXPECT_EQ(comparison.only_b, (Words{"c_attn.weight", "c_proj.weight", "forward.qkv", "gradient.c_proj.weight",
                                      "backward.qkv", "gradient.c_attn.weight"}));
  EXPECT_EQ(std::count(comparison.only_a.begin(), comparison.only_a.end(), "forward.q_proj"), 1);
}

TEST(CompareTraces, OfACachedRunPartInTheirFirstBadCall) {
  const Words cached = {R"(cache={"prefill": 2, "steps": 3})"};
  std::vector a = traced(cached);
  std::vector b = a;
  for (KeptTensor& tensor : b) {
    if (tensor.name == "forward.3.q" || tensor.name == "forward.2.weights") tensor.bytes[3] ^= 1;
  }
  EXPECT_TRUE(compare(a, a).all_identical());
  EXPECT_EQ(compare(a, b).first_parted()->name, "forward.2.weights");
}

TEST(CompareTraces, AKeyThatIsHiddenInALaterCallOnlyPartsToo) {
  const auto weights = [](float leak) {
    return std::vector<KeptTensor>{tensor("forward.7.weights", {1, 1, 1, 2}, {1.0F, leak})};
  };
  EXPECT_EQ(find(compare(weights(0.0F), weights(1e-20F)), "forward.7.weights").beyond, 1);
}

TEST(CompareTraces, GroupedKeysHaveHeadsOfTheirOwn) {
  const Words grouped = {"H=6", "H_kv=2"};
  EXPECT_EQ(find(compare(traced(grouped), traced(grouped)), "forward.k").axes[1], "key head");
  EXPECT_EQ(find(compare(traced(grouped), traced(grouped)), "forward.q").axes[1], "head");
  EXPECT_EQ(find(compare(traced(), traced()), "forward.k").axes[1], "head");
}

// --- refusals ---

TEST(CompareTraces, RefusesWhatIsNoTrace) {
  const std::string error = error_of({tensor("c_attn.weight", {1}, {1})}, {tensor("forward.x", {1}, {1})});
  EXPECT_NE(error.find(": is no saved trace: it has no step such as \"forward.x\""), std::string::npos) << error;
  const std::string unknown = error_of({tensor("forward.y", {1}, {1})}, {tensor("forward.x", {1}, {1})});
  EXPECT_NE(unknown.find("is no saved trace"), std::string::npos) << unknown;
}

TEST(CompareTraces, RefusesOtherShapesNamingAll) {
  const std::string error = error_of({tensor("forward.x", {1, 2}, {1, 2}), tensor("forward.q", {1}, {1})},
                                     {tensor("forward.x", {2, 1}, {1, 2}), tensor("forward.q", {1, 1}, {1})});
  EXPECT_NE(error.find(": other shapes: forward.x is (1, 2) and (2, 1); forward.q is (1) and (1, 1)"),
            std::string::npos)
      << error;
}

TEST(CompareTraces, RefusesTracesWithoutACommonStep) {
  const std::string error = error_of({tensor("forward.x", {1}, {1})}, {tensor("forward.q", {1}, {1})});
  EXPECT_NE(error.find(": have no step in common"), std::string::npos) << error;
}

TEST(CompareTraces, RefusesADtypeWithoutNumbers) {
  KeptTensor packed{"extra", "F8_E4M3", {1}, "a"};
  const std::string error = error_of({tensor("forward.x", {1}, {1}), packed}, {tensor("forward.x", {1}, {1}), packed});
  EXPECT_NE(error.find("tensor \"extra\" has dtype F8_E4M3, which cannot be compared"), std::string::npos) << error;
}

// --- the order ---

TEST(PipelineOrder, PutsForwardBeforeBackwardAndGradientsBehindTheirStep) {
  const Words order = {"c_attn.weight",
                       "forward.tokens",
                       "forward.x",
                       "forward.memory",
                       "forward.q",
                       "forward.q_normed",
                       "forward.q_rotated",
                       "forward.k_cached",
                       "forward.scores",
                       "forward.capped_scores",
                       "forward.biased_scores",
                       "forward.output",
                       "forward.1.x",
                       "forward.1.output",
                       "forward.2.x",
                       "forward.10.x",
                       "backward.output",
                       "backward.projected",
                       "gradient.c_proj.weight",
                       "backward.context",
                       "gradient.sinks",
                       "backward.masked_scores",
                       "backward.scores",
                       "backward.k_normed",
                       "gradient.k_norm.weight",
                       "backward.q_normed",
                       "gradient.q_norm.weight",
                       "backward.qkv",
                       "gradient.c_attn.weight",
                       "backward.x",
                       "backward.token_embedding",
                       "gradient.token_embedding.weight"};
  for (std::size_t index = 1; index < order.size(); ++index) {
    EXPECT_LT(pipeline_place(order[index - 1]), pipeline_place(order[index])) << order[index];
  }
}

}  // namespace
}  // namespace attn
