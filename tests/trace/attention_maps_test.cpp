#include "trace/attention_maps.h"

#include <gtest/gtest.h>

#include <algorithm>

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
  for (const std::string& name : map_step_names()) {
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

TEST(AttentionMaps, VisibleIsTheDeclaredMask) {
  const std::vector<bool> visible = capture_attention_maps(small_config({"T=3"}), Step::kWeights).visible;
  EXPECT_EQ(visible, (std::vector<bool>{true, false, false, true, true, false, true, true, true}));
  const std::vector<bool> all = capture_attention_maps(small_config({"T=3", "causal=false"}), Step::kWeights).visible;
  EXPECT_EQ(all, std::vector<bool>(9, true));
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

TEST(AttentionMaps, NamesTheStepsThatAreMaps) {
  EXPECT_EQ(map_step_names(),
            (std::vector<std::string>{"scores", "scaled_scores", "masked_scores", "weights", "dropped_weights"}));
}

TEST(AttentionMaps, RefusesWhatIsNotThere) {
  EXPECT_EQ(config_error([] { capture_attention_maps(small_config(), Step::kContext); }),
            "test: step \"context\" is no (B, H, T, T) map; known: scores, scaled_scores, masked_scores, weights, "
            "dropped_weights");
  EXPECT_EQ(config_error([] {
              capture_attention_maps(small_config(), Step::kWeights, {{2}, {}});
            }),
            "test: batch 2 is not there, expected 0 to 1");
  EXPECT_EQ(config_error([] {
              capture_attention_maps(small_config(), Step::kWeights, {{}, {0, -1}});
            }),
            "test: head -1 is not there, expected 0 to 2");
}

}  // namespace
}  // namespace attn
