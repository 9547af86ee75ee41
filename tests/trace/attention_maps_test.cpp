#include "trace/attention_maps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "attention/layer_fixture.h"
#include "core/error.h"
#include "support/tensor_helpers.h"
#include "trace/trace_attention.h"
#include "trace/trace_helpers.h"

namespace attn {
namespace {

using test::small_config;

template <typename Work>
std::string config_error(Work work) {
  try {
    work();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no ConfigError";
}

TEST(AttentionMaps, ComeByBatchThenHead) {
  const AttentionMaps maps = capture_attention_maps(small_config(), Step::kWeights);
  ASSERT_EQ(maps.maps.size(), 6U);
  for (std::size_t index = 0; index < 6; ++index) {
    EXPECT_EQ(maps.maps[index].batch, static_cast<std::int64_t>(index / 3));
    EXPECT_EQ(maps.maps[index].head, static_cast<std::int64_t>(index % 3));
    EXPECT_EQ(maps.maps[index].values.rows, 5);
    EXPECT_EQ(maps.maps[index].values.cols, 5);
  }
}

TEST(AttentionMaps, AreTheNumbersOfTheTrace) {
  const RunConfig config = small_config({"dropout=0.3", "mode=train"});
  const AttentionTrace trace = trace_attention(config, {.backward = false, .max_values = 1000});
  for (const std::string name : {"scores", "scaled_scores", "masked_scores", "weights", "dropped_weights"}) {
    std::vector<double> numbers;
    for (const AttentionMap& map : capture_attention_maps(config, *find_step(name)).maps) {
      numbers.insert(numbers.end(), map.values.values.begin(), map.values.values.end());
    }
    EXPECT_EQ(numbers, test::find_step_of(trace, "forward", name).values) << name;
  }
}

TEST(AttentionMaps, SelectionKeepsWhatIsAskedForOnceAndInOrder) {
  const AttentionMaps all = capture_attention_maps(small_config(), Step::kScores);
  const AttentionMaps some = capture_attention_maps(small_config(), Step::kScores, {{1}, {2, 0, 2}});
  ASSERT_EQ(some.maps.size(), 2U);
  EXPECT_EQ(some.maps[0].batch, 1);
  EXPECT_EQ(some.maps[0].head, 0);
  EXPECT_EQ(some.maps[1].head, 2);
  EXPECT_EQ(some.maps[0].values.values, all.maps[3].values.values);
  EXPECT_EQ(some.maps[1].values.values, all.maps[5].values.values);
}

using Cells = std::vector<std::vector<bool>>;

Cells visible_of(const std::vector<std::string>& words, Step step = Step::kWeights) {
  return capture_attention_maps(small_config(words), step).visible;
}

TEST(AttentionMaps, VisibleIsTheDeclaredMaskOnceItIsApplied) {
  const std::vector<bool> lower{true, false, false, true, true, false, true, true, true};
  EXPECT_EQ(visible_of({"T=3"}), (Cells{lower, lower}));
  EXPECT_EQ(visible_of({"T=3"}, Step::kMaskedScores), (Cells{lower, lower}));
  EXPECT_EQ(visible_of({"T=3"}, Step::kScaledScores), Cells(2, std::vector<bool>(9, true)));
  EXPECT_EQ(visible_of({"T=3", "causal=false"}), Cells(2, std::vector<bool>(9, true)));
  EXPECT_EQ(visible_of({"T=3", "window=1"})[0],
            (std::vector<bool>{true, false, false, false, true, false, false, false, true}));
}

TEST(AttentionMaps, PaddingHasNoNumberInItsRowsAndColumnsItemByItem) {
  const std::vector<std::string> words = {"T=3", "causal=false", "padding=right", "lengths=[3,2]"};
  const std::vector<bool> all(9, true);
  const std::vector<bool> two{true, true, false, true, true, false, false, false, false};
  EXPECT_EQ(visible_of(words), (Cells{all, two}));
  EXPECT_EQ(visible_of(words, Step::kScores), (Cells{all, two}));
  const std::vector<bool> left{false, false, false, false, true, false, false, true, true};
  EXPECT_EQ(visible_of({"T=3", "padding=left", "lengths=[3,2]"})[1], left);
}

TEST(AttentionMaps, OfAMemoryHaveItsKeysAndPaddingHidesThemOnly) {
  const std::vector<std::string> words = {"T=2",          "qkv=separate",  R"(memory={"T_k": 3})",
                                          "causal=false", "padding=right", "lengths=[3,1]"};
  const AttentionMaps maps = capture_attention_maps(small_config(words), Step::kWeights);
  EXPECT_EQ(maps.maps[0].values.rows, 2);
  EXPECT_EQ(maps.maps[0].values.cols, 3);
  EXPECT_EQ(maps.visible[1], (std::vector<bool>{true, false, false, true, false, false}));
  EXPECT_EQ(maps.maps[3].values.values, (std::vector<double>{1, 0, 0, 1, 0, 0}));  // item 1, head 0
}

class CachedMaps : public ::testing::TestWithParam<std::vector<std::string>> {};

TEST_P(CachedMaps, ArePutTogetherToThoseOfTheFullRun) {
  std::vector<std::string> words = {"dtype=float64", "T=6"};
  words.insert(words.end(), GetParam().begin(), GetParam().end());
  const AttentionMaps whole = capture_attention_maps(small_config(words), Step::kWeights);
  words.emplace_back(R"(cache={"prefill": 2, "steps": 2, "chunk": 2})");
  const AttentionMaps pieces = capture_attention_maps(small_config(words), Step::kWeights);
  EXPECT_EQ(pieces.visible, whole.visible);
  ASSERT_EQ(pieces.maps.size(), whole.maps.size());
  for (std::size_t index = 0; index < whole.maps.size(); ++index) {
    for (std::int64_t i = 0; i < 6; ++i) {
      for (std::int64_t j = 0; j < 6; ++j) {
        EXPECT_NEAR(pieces.maps[index].values.at(i, j), whole.maps[index].values.at(i, j), 1e-14)
            << "map " << index << ", query " << i << ", key " << j;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, CachedMaps,
                         ::testing::Values(std::vector<std::string>{}, std::vector<std::string>{"window=2"},
                                           std::vector<std::string>{"H_kv=1", R"(rope={"style": "half"})"},
                                           std::vector<std::string>{"padding=left", "lengths=[6,3]"},
                                           std::vector<std::string>{"padding=right", "lengths=[6,3]"}),
                         [](const auto& test) { return "Layer" + std::to_string(test.index); });

TEST(AttentionMaps, OfACacheSayWhichScoresNoCallHasComputed) {
  const Cells visible = visible_of({"B=1", "T=3", R"(cache={"prefill": 1, "steps": 2})"}, Step::kScores);
  EXPECT_EQ(visible[0], (std::vector<bool>{true, false, false, true, true, false, true, true, true}));
}

TEST(AttentionMaps, OfASingleHeadLayerAreHeadZero) {
  const RunConfig config = small_config({"H=1", "module=single-head", "qkv=separate"});
  const AttentionMaps maps = capture_attention_maps(config, Step::kWeights);
  ASSERT_EQ(maps.maps.size(), 2U);
  EXPECT_EQ(maps.maps[1].batch, 1);
  EXPECT_EQ(maps.maps[1].head, 0);
  EXPECT_EQ(maps.maps[1].values.values.size(), 25U);
}

TEST(AttentionMaps, RowsAreQueriesAndSumToOneInEveryDtype) {
  for (const std::string dtype : {"float32", "float64", "bfloat16", "float16"}) {
    const AttentionMaps maps = capture_attention_maps(small_config({"dtype=" + dtype}), Step::kWeights);
    for (const AttentionMap& map : maps.maps) {
      EXPECT_EQ(map.values.at(0, 0), 1.0) << dtype;
      for (std::int64_t row = 0; row < 5; ++row) {
        double sum = 0.0;
        for (std::int64_t col = 0; col < 5; ++col) sum += map.values.at(row, col);
        EXPECT_NEAR(sum, 1.0, dtype == "bfloat16" ? 2e-2 : 3e-3) << dtype << ", row " << row;
      }
    }
  }
}

TEST(AttentionMaps, CarryTheTokensAsLabels) {
  const RunConfig config =
      test::config_of({"d_model=8", "H=2", R"(input={"kind": "text", "text": "the cat sat", "tokenizer": "words"})",
                       R"(embedding={"vocab_size": 5})"});
  const AttentionMaps maps = capture_attention_maps(config, Step::kWeights);
  EXPECT_EQ(maps.token_labels, (std::vector<std::vector<std::string>>{{"the", "cat", "sat"}}));
  EXPECT_EQ(maps.maps.at(0).values.rows, 3);
}

TEST(AttentionMaps, KnowTheStepsOfLayersThatHaveThem) {
  const RunConfig config = small_config({"softcap=0.5", "alibi=true"});
  for (const AttentionMap& map : capture_attention_maps(config, Step::kCappedScores).maps) {
    for (const double value : map.values.values) EXPECT_LT(std::abs(value), 0.5);
  }
  const Matrix capped = capture_attention_maps(config, Step::kCappedScores).maps[0].values;
  const Matrix biased = capture_attention_maps(config, Step::kBiasedScores).maps[0].values;
  EXPECT_EQ(capped.at(2, 2), biased.at(2, 2));
  EXPECT_LT(biased.at(2, 1), capped.at(2, 1));
}

TEST(AttentionMaps, NamesTheStepsThatAreMaps) {
  EXPECT_EQ(map_step_names(), (std::vector<std::string>{"scores", "scaled_scores", "capped_scores", "biased_scores",
                                                        "masked_scores", "weights", "dropped_weights"}));
}

TEST(AttentionMaps, RefusesWhatIsNotThere) {
  EXPECT_EQ(config_error([] { capture_attention_maps(small_config(), Step::kContext); }),
            "test: step \"context\" is no (B, H, T, T) map; known: scores, scaled_scores, capped_scores, "
            "biased_scores, masked_scores, weights, dropped_weights");
  EXPECT_EQ(config_error([] {
              capture_attention_maps(small_config(), Step::kWeights, {{2}, {}});
            }),
            "test: batch 2 is not there, expected 0 to 1");
  EXPECT_EQ(config_error([] {
              capture_attention_maps(small_config(), Step::kWeights, {{}, {0, -1}});
            }),
            "test: head -1 is not there, expected 0 to 2");
  EXPECT_EQ(config_error([] { capture_attention_maps(small_config(), Step::kCappedScores); }),
            "test: step \"capped_scores\" is not there: the layer has no softcap");
  EXPECT_EQ(config_error([] { capture_attention_maps(small_config({"softcap=5"}), Step::kBiasedScores); }),
            "test: step \"biased_scores\" is not there: the layer has no alibi");
  EXPECT_EQ(config_error([] { capture_attention_maps(small_config({"engine=sdpa"}), Step::kWeights); }),
            "test: engine: sdpa computes no weights that could be drawn, use explicit (--set engine=explicit)");
}

}  // namespace
}  // namespace attn
