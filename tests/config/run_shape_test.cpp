// How long the sequences of a run are, and what they are made of: padding, lengths, ragged items, memory, cache.
#include <gtest/gtest.h>

#include "config/config_test_support.h"

namespace attn {
namespace {

using Lengths = std::vector<std::int64_t>;

std::string ragged(const std::string& more) {
  return R"({"d_model": 4, "H": 2, "embedding": {}, "input": {"kind": "text", "text": ["abc", "a", "ab"]})" + more +
         "}";
}

TEST(Padding, TakesItsLengthsFromRaggedItems) {
  const RunConfig config = parse(ragged(R"(, "padding": "left")"));
  EXPECT_EQ(config.B, 3);
  EXPECT_EQ(config.T, 3);
  EXPECT_EQ(config.padding, PaddingSide::kLeft);
  EXPECT_EQ(config.lengths, (Lengths{3, 1, 2}));
  // The items are stored as they are.
  EXPECT_EQ(std::get<TextInput>(config.input).texts, (std::vector<std::string>{"abc", "a", "ab"}));
  EXPECT_EQ(parse(ragged(R"(, "padding": "left", "lengths": [3, 1, 2])")), config);
}

TEST(Padding, TakesItsLengthsFromRaggedIds) {
  const RunConfig config = parse(R"({"d_model": 4, "H": 2, "embedding": {"vocab_size": 9}, "padding": "right",
                                     "input": {"kind": "tokens", "ids": [[1], [2, 3, 4, 5]]}})");
  EXPECT_EQ(config.T, 4);
  EXPECT_EQ(config.lengths, (Lengths{1, 4}));
  EXPECT_EQ(std::get<TokensInput>(config.input).ids, (std::vector<std::vector<std::int64_t>>{{1}, {2, 3, 4, 5}}));
}

TEST(Padding, MayFillUpBeyondTheLongestItem) {
  EXPECT_EQ(parse(ragged(R"(, "padding": "right", "T": 5)")).T, 5);
  EXPECT_EQ(error_of(ragged(R"(, "padding": "right", "T": 2)")),
            "tiny.json: /T: must be at least 3, the longest item of the text input, or left out, got 2");
  EXPECT_EQ(error_of(ragged(R"(, "padding": "right", "lengths": [3, 2, 2])")),
            "tiny.json: /lengths: must be 3, 1, 2 as the text input has them, or left out, got 3, 2, 2");
}

TEST(Padding, KnowsWhichKeysAreTokens) {
  const RunConfig right = parse(tiny(R"("padding": "right", "lengths": [8, 3])"));
  const RunConfig left = parse(tiny(R"("padding": "left", "lengths": [8, 3])"));
  for (std::int64_t j = 0; j < 8; ++j) {
    EXPECT_TRUE(is_real_key(right, 0, j));
    EXPECT_EQ(is_real_key(right, 1, j), j < 3);
    EXPECT_EQ(is_real_key(left, 1, j), j >= 5);
  }
}

TEST(Padding, AndLengthsNeedEachOther) {
  EXPECT_EQ(error_of(tiny(R"("padding": "left")")),
            "tiny.json: /lengths: missing with padding: an array of B (2) integers, how many tokens each item has");
  EXPECT_EQ(error_of(tiny(R"("lengths": [1, 2])")),
            "tiny.json: /padding: missing; lengths need a side that is filled up: left or right");
}

TEST(Padding, RefusesLengthsThatDoNotFit) {
  const auto error = [](const std::string& lengths) {
    return error_of(tiny(R"("padding": "left", "lengths": )" + lengths));
  };
  EXPECT_EQ(error("[1]"), "tiny.json: /lengths: must be an array of B (2) integers, got 1");
  EXPECT_EQ(error("3"), "tiny.json: /lengths: must be an array of B (2) integers, got 3");
  EXPECT_EQ(error("[8, 9]"), "tiny.json: /lengths/1: must be an integer from 1 to 8, got 9");
  EXPECT_EQ(error("[0, 1]"), "tiny.json: /lengths/0: must be an integer from 1 to 8, got 0");
  EXPECT_EQ(error_of(tiny(R"("padding": "centre", "lengths": [1, 1])")),
            R"(tiny.json: /padding: unknown padding "centre"; known: left, right)");
}

TEST(Memory, HasALengthOfItsOwnAndMakesTheLayerNotCausal) {
  const RunConfig config = parse(tiny(R"("qkv": "separate", "memory": {"T_k": 11})"));
  EXPECT_EQ(config.memory_length, 11);
  EXPECT_EQ(key_length(config), 11);
  EXPECT_EQ(config.T, 8);
  EXPECT_FALSE(config.attention.causal);
}

TEST(Memory, HasThePadding) {
  EXPECT_EQ(parse(tiny(R"("qkv": "separate", "memory": {"T_k": 11}, "padding": "right", "lengths": [11, 9])")).lengths,
            (Lengths{11, 9}));
  EXPECT_EQ(error_of(tiny(R"("qkv": "separate", "memory": {"T_k": 4}, "padding": "right")")),
            "tiny.json: /lengths: missing with padding: an array of B (2) integers, how many tokens of the memory each "
            "item has");
  EXPECT_EQ(error_of(tiny(R"("qkv": "separate", "memory": {"T_k": 4}, "padding": "right", "lengths": [4, 5])")),
            "tiny.json: /lengths/1: must be an integer from 1 to 4, got 5");
  // The lengths of the queries' items are not those of the memory.
  EXPECT_EQ(parse(R"({"d_model": 4, "H": 2, "embedding": {}, "qkv": "separate", "memory": {"T_k": 5},
                      "padding": "left", "lengths": [4, 5], "input": {"kind": "text", "text": ["ab", "cd"]}})")
                .lengths,
            (Lengths{4, 5}));
}

TEST(Memory, RefusesWhatComparesPositionsOfTwoSequences) {
  const auto error = [](const std::string& more) {
    return error_of(tiny(R"("qkv": "separate", "memory": {"T_k": 11}, )" + more));
  };
  const std::string why = " with a memory: its keys are of another sequence, with positions of its own";
  EXPECT_EQ(error(R"("causal": true)"), "tiny.json: /causal: must be false" + why + ", got true");
  EXPECT_EQ(error(R"("window": 3)"), "tiny.json: /window: must be left out" + why);
  EXPECT_EQ(error(R"("rope": {"style": "half"})"), "tiny.json: /rope: must be left out" + why);
  EXPECT_EQ(error(R"("alibi": true)"), "tiny.json: /alibi: must be false" + why + ", got true");
  EXPECT_EQ(error(R"("mask": {"kind": "dilated", "stride": 2})"),
            "tiny.json: /mask: must be given in rows" + why + ", got a dilated mask");
  EXPECT_EQ(error(R"("mask": "bidirectional")"),
            "tiny.json: /mask: must be given in rows" + why + ", got a bidirectional mask");
  EXPECT_EQ(error(R"("cache": {"prefill": 4, "steps": 4})"),
            "tiny.json: /cache: must be left out with a memory: its keys and values are all there from the start");
  EXPECT_EQ(error(R"("window": null, "rope": null, "alibi": false, "cache": null)"), "accepted");
}

TEST(Memory, NeedsSeparateProjectionsAndALength) {
  EXPECT_EQ(error_of(tiny(R"("memory": {"T_k": 11})")),
            "tiny.json: /qkv: must be separate with a memory: q is made from x, k and v from the memory, got fused");
  EXPECT_EQ(error_of(tiny(R"("memory": {})")),
            "tiny.json: /memory/T_k: missing, an integer of at least 1: how many tokens the memory has");
  EXPECT_EQ(error_of(tiny(R"("memory": {"T_k": 0})")),
            "tiny.json: /memory/T_k: must be an integer from 1 to 2147483647, got 0");
  EXPECT_EQ(error_of(tiny(R"("memory": {"T": 3})")), R"(tiny.json: /memory/T: unknown key of memory "T"; known: T_k)");
  EXPECT_EQ(error_of(ragged(R"(, "qkv": "separate", "padding": "left", "memory": {"T_k": 4})")),
            "tiny.json: /memory: must be left out with items of different lengths: padding hides keys, which come from "
            "the memory, so the queries would not be filled up");
}

TEST(Memory, IsNoLongerThanTheLayerTakes) {
  const std::string config = R"("qkv": "separate", "memory": {"T_k": 2000})";
  EXPECT_EQ(parse(tiny(config)).attention.max_seq_len, 2000);
  EXPECT_EQ(error_of(tiny(config + R"(, "max_seq_len": 1999)")),
            "tiny.json: /max_seq_len: must be at least the memory's T_k (2000), got 1999");
}

TEST(Memory, TakesRowsOfItsOwnLength) {
  const std::string config = R"({"B": 1, "T": 2, "d_model": 4, "H": 2, "qkv": "separate", "memory": {"T_k": 3},
                                 "mask": )";
  EXPECT_EQ(parse(config + "[[1, 0, 1], [0, 1, 1]]}").attention.mask,
            MaskConfig(RowsMask{2, 3, {true, false, true, false, true, true}, std::nullopt, ""}));
  EXPECT_EQ(error_of(config + "[[1, 0], [0, 1]]}"),
            "tiny.json: /mask/0: must have a cell for each of the 3 keys, got 2");
}

TEST(Cache, IsReadWithChunksOfOne) {
  EXPECT_EQ(parse(tiny(R"("cache": {"prefill": 5, "steps": 3})")).cache, (CacheConfig{5, 3, 1}));
  EXPECT_EQ(parse(tiny(R"("cache": {"prefill": 2, "steps": 2, "chunk": 3})")).cache, (CacheConfig{2, 2, 3}));
}

TEST(Cache, RefusesPiecesThatAreNotT) {
  EXPECT_EQ(error_of(tiny(R"("cache": {"prefill": 4, "steps": 3})")),
            "tiny.json: /cache: prefill + steps * chunk must be T (8), got 4 + 3 * 1 = 7");
  EXPECT_EQ(error_of(tiny(R"("cache": {"prefill": 0, "steps": 8})")),
            "tiny.json: /cache/prefill: must be an integer from 1 to 2147483647, got 0");
  EXPECT_EQ(error_of(tiny(R"("cache": {"steps": 8})")),
            "tiny.json: /cache/prefill: missing, an integer of at least 1: how many tokens the first call has");
  EXPECT_EQ(error_of(tiny(R"("cache": {"prefill": 8})")),
            "tiny.json: /cache/steps: missing, an integer of at least 1: how many calls follow the first");
  EXPECT_EQ(error_of(tiny(R"("cache": {"prefill": 4, "steps": 4, "size": 1})")),
            R"(tiny.json: /cache/size: unknown key of cache "size"; known: prefill, steps, chunk)");
}

TEST(Cache, NeedsACausalLayerInModeEval) {
  const std::string cache = R"("cache": {"prefill": 4, "steps": 4}, )";
  const std::string needs =
      "tiny.json: /cache: needs causal true: without it earlier tokens look at later ones, which are not there yet, "
      "got causal false";
  EXPECT_EQ(error_of(tiny(cache + R"("causal": false)")), needs);
  EXPECT_EQ(
      error_of(tiny(cache + R"("mask": {"kind": "prefix", "length": 3})")),
      "tiny.json: /cache: must be left out with a prefix mask: with it earlier tokens look at later ones, which are "
      "not there yet");
  EXPECT_EQ(error_of(tiny(cache + R"("mode": "train")")),
            "tiny.json: /mode: must be eval with a cache: dropout would differ from call to call, got train");
}

}  // namespace
}  // namespace attn
