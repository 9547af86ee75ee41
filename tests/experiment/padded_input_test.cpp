// Items of different lengths as an experiment's input: ids, labels, which keys are tokens.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "attention/input_embedding.h"
#include "experiment/experiment.h"

namespace attn {
namespace {

using Labels = std::vector<std::vector<std::string>>;

/// Two items, of 3 tokens and of 1, filled up to 4.
RunConfig padded_config(PaddingSide side) {
  RunConfig config;
  config.attention.d_model = 8;
  config.attention.H = 2;
  config.attention.max_seq_len = 16;
  config.B = 2;
  config.T = 4;
  config.padding = side;
  config.lengths = {3, 1};
  config.embedding = EmbeddingConfig{256, Positions::kLearned};
  config.source_name = "small.json";
  return config;
}

TEST(PaddedInput, OfTextIsFilledUpWithLabelsThatSayIt) {
  RunConfig config = padded_config(PaddingSide::kRight);
  config.input = TextInput{{"abc", "d"}, std::nullopt, Tokenizer::kBytes};
  const Experiment experiment = make_experiment(config);
  EXPECT_EQ(experiment.token_labels, (Labels{{"a", "b", "c", "<pad>"}, {"d", "<pad>", "<pad>", "<pad>"}}));
  const at::Tensor expected = at::tensor({97, 98, 99, 0, 100, 0, 0, 0}, at::kLong).view({2, 4});
  EXPECT_TRUE(at::equal(*experiment.tokens, expected)) << *experiment.tokens;
  EXPECT_EQ(experiment.x.sizes().vec(), (std::vector<std::int64_t>{2, 4, 8}));
}

TEST(PaddedInput, OfIdsIsFilledUpOnTheLeft) {
  RunConfig config = padded_config(PaddingSide::kLeft);
  config.input = TokensInput{{{7, 8, 9}, {5}}};
  const Experiment experiment = make_experiment(config);
  EXPECT_EQ(experiment.token_labels, (Labels{{"<pad>", "7", "8", "9"}, {"<pad>", "<pad>", "<pad>", "5"}}));
  const at::Tensor expected = at::tensor({0, 7, 8, 9, 0, 0, 0, 5}, at::kLong).view({2, 4});
  EXPECT_TRUE(at::equal(*experiment.tokens, expected)) << *experiment.tokens;
}

TEST(PaddedInput, OfDrawnTokensIsLabelledToo) {
  const Experiment experiment = make_experiment(padded_config(PaddingSide::kRight));
  EXPECT_EQ(experiment.token_labels[0][3], "<pad>");
  EXPECT_NE(experiment.token_labels[0][2], "<pad>");
  EXPECT_EQ(experiment.token_labels[1][1], "<pad>");
}

TEST(PaddedInput, LeavesTheQueriesAloneWhereTheKeysAreAMemorys) {
  RunConfig config = padded_config(PaddingSide::kRight);
  config.attention.qkv = QkvLayout::kSeparate;
  config.attention.causal = false;
  config.memory_length = 3;
  config.input = TokensInput{{{1, 2, 3, 4}, {5, 6, 7, 8}}};
  const Experiment experiment = make_experiment(config);
  EXPECT_EQ(experiment.token_labels[1], (std::vector<std::string>{"5", "6", "7", "8"}));
}

}  // namespace
}  // namespace attn
