// The config's own mask: every form it is read from, what it does to the default of `causal`, and every refusal.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "config/config_test_support.h"
#include "files/safetensors.h"

namespace attn {
namespace {

std::string short_config(const std::string& more) { return R"({"B": 1, "T": 3, "d_model": 4, "H": 2, )" + more + "}"; }

AttentionConfig layer(const std::string& mask) { return parse(short_config("\"mask\": " + mask)).attention; }

std::string mask_error(const std::string& mask) { return error_of(short_config("\"mask\": " + mask)); }

TEST(Mask, IsReadByItsKind) {
  EXPECT_EQ(layer(R"("bidirectional")").mask, MaskConfig(BidirectionalMask{}));
  EXPECT_EQ(layer(R"({"kind": "bidirectional"})").mask, MaskConfig(BidirectionalMask{}));
  EXPECT_EQ(layer(R"({"kind": "prefix", "length": 2})").mask, MaskConfig(PrefixMask{2}));
  EXPECT_EQ(layer(R"({"kind": "document", "lengths": [1, 2]})").mask, MaskConfig(DocumentMask{{1, 2}}));
  EXPECT_EQ(layer(R"({"kind": "dilated", "stride": 2})").mask, MaskConfig(DilatedMask{2}));
  EXPECT_EQ(layer("null").mask, std::nullopt);
}

TEST(Mask, IsReadFromRowsOfNumbersOrBooleans) {
  const RowsMask expected{3, 3, {true, false, false, true, true, false, false, true, true}, std::nullopt, ""};
  EXPECT_EQ(layer("[[1, 0, 0], [1, 1, 0], [0, 1, 1]]").mask, MaskConfig(expected));
  EXPECT_EQ(layer("[[true, false, false], [true, true, false], [false, true, true]]").mask, MaskConfig(expected));
}

TEST(Mask, ThatOpensTheFutureMakesTheLayerNotCausal) {
  EXPECT_FALSE(layer(R"("bidirectional")").causal);
  EXPECT_FALSE(layer(R"({"kind": "prefix", "length": 2})").causal);
  EXPECT_TRUE(layer(R"({"kind": "document", "lengths": [3]})").causal);
  EXPECT_TRUE(layer(R"({"kind": "dilated", "stride": 2})").causal);
  // BUG_CASES R07: a mask of one's own does not end causality, whatever it opens.
  EXPECT_TRUE(layer("[[1, 1, 1], [1, 1, 1], [1, 1, 1]]").causal);
  EXPECT_EQ(
      error_of(short_config(R"("causal": true, "mask": "bidirectional")")),
      "tiny.json: /causal: must be false with a bidirectional mask, which shows keys that a causal mask hides, got "
      "true");
  EXPECT_EQ(
      error_of(short_config(R"("causal": true, "mask": {"kind": "prefix", "length": 1})")),
      "tiny.json: /causal: must be false with a prefix mask, which shows keys that a causal mask hides, got true");
}

TEST(Mask, RefusesWhatIsNone) {
  EXPECT_EQ(
      mask_error("7"),
      "tiny.json: /mask: must be the word bidirectional, an object with a kind or a file, or rows of 0 and 1, got 7");
  EXPECT_EQ(
      mask_error(R"("bidirectionel")"),
      R"(tiny.json: /mask: unknown mask "bidirectionel"; did you mean "bidirectional"?; all but bidirectional are )"
      R"(objects such as {"kind": "prefix", "length": 3})");
  for (const std::string word : {"prefix", "prefix:3"}) {
    EXPECT_EQ(mask_error('"' + word + '"'),
              "tiny.json: /mask: a prefix mask needs more than its name, an object such as {\"kind\": \"prefix\", "
              "\"length\": 3}, got \"" +
                  word + '"');
  }
  EXPECT_EQ(mask_error(R"("document")"),
            "tiny.json: /mask: a document mask needs more than its name, an object such as {\"kind\": \"document\", "
            "\"lengths\": [3, 2]}, got \"document\"");
  EXPECT_EQ(mask_error("{}"),
            "tiny.json: /mask/kind: missing; known: bidirectional, prefix, document, dilated; or a file");
  EXPECT_EQ(mask_error(R"({"kind": "causal"})"),
            R"(tiny.json: /mask/kind: unknown kind "causal"; known: bidirectional, prefix, document, dilated)");
  EXPECT_EQ(mask_error(R"({"kind": "prefix", "stride": 2})"),
            R"(tiny.json: /mask/stride: unknown key of a prefix mask "stride"; known: kind, length)");
}

TEST(Mask, RefusesAKindWithoutItsNumbers) {
  EXPECT_EQ(mask_error(R"({"kind": "prefix"})"),
            "tiny.json: /mask/length: missing, an integer of at least 1: how many tokens at the start see each other");
  EXPECT_EQ(mask_error(R"({"kind": "dilated"})"),
            "tiny.json: /mask/stride: missing, an integer of at least 1: how far apart the keys are that a query sees, "
            "counted from itself");
  EXPECT_EQ(mask_error(R"({"kind": "document"})"),
            "tiny.json: /mask/lengths: missing, an array of integers: how many tokens each document has");
  EXPECT_EQ(mask_error(R"({"kind": "document", "lengths": 3})"),
            "tiny.json: /mask/lengths: must be an array of integers: how many tokens each document has, got 3");
}

TEST(Mask, RefusesNumbersOutOfRange) {
  const std::string size = "must be an integer from 1 to 2147483647, got 0";
  EXPECT_EQ(mask_error(R"({"kind": "prefix", "length": 0})"), "tiny.json: /mask/length: " + size);
  EXPECT_EQ(mask_error(R"({"kind": "dilated", "stride": 0})"), "tiny.json: /mask/stride: " + size);
  EXPECT_EQ(mask_error(R"({"kind": "document", "lengths": [1, 0]})"), "tiny.json: /mask/lengths/1: " + size);
  EXPECT_EQ(mask_error(R"({"kind": "document", "lengths": []})"),
            "tiny.json: /mask/lengths: must have at least one length, got none");
  EXPECT_EQ(mask_error(R"({"kind": "document", "lengths": [2, 2]})"),
            "tiny.json: /mask/lengths: must add up to at most T (3), got 4");
}

TEST(Mask, RefusesRowsThatDoNotFit) {
  EXPECT_EQ(mask_error("[]"), "tiny.json: /mask: must have a row for each query, 3 rows of 3, got 0");
  EXPECT_EQ(mask_error("[[1, 1, 1]]"), "tiny.json: /mask: must have a row for each query, 3 rows of 3, got 1");
  EXPECT_EQ(mask_error("[[1, 1, 1], [1, 1], [1, 1, 1]]"),
            "tiny.json: /mask/1: must have a cell for each of the 3 keys, got 2");
  EXPECT_EQ(mask_error("[1, 1, 1]"), "tiny.json: /mask/0: must be an array of 0 and 1, got 1");
  const std::string cell = "must be 0 or 1, false or true, got ";
  EXPECT_EQ(mask_error("[[1, 2, 1], [1, 1, 1], [1, 1, 1]]"),
            "tiny.json: /mask/0/1: " + cell + "2; a mask is boolean, 1 = may look");
  EXPECT_EQ(mask_error("[[1, 1, 1], [0.0, 1, 1], [1, 1, 1]]"),
            "tiny.json: /mask/1/0: " + cell + "0.0; a mask is boolean, 1 = may look");
}

class MaskFile : public ::testing::Test {
 protected:
  void write(const std::string& dtype, std::vector<std::int64_t> shape, const std::string& bytes) {
    folder_.write("m.safetensors", to_safetensors({{"mask", dtype, std::move(shape), bytes}}, {}));
  }
  RunConfig read() { return parse(config_, {}, folder_.path()); }
  std::string error() { return error_of(config_, {}, folder_.path()); }

  TemporaryFolder folder_;
  std::string config_ = short_config(R"("mask": {"file": "m.safetensors"})");
  const std::string where_ = "tiny.json: /mask/name: tensor \"mask\" ";
};

TEST_F(MaskFile, IsReadAsBooleansOrZeroAndOne) {
  const std::string triangle("\1\0\0\1\1\0\1\1\1", 9);
  for (const char* dtype : {"BOOL", "U8"}) {
    write(dtype, {3, 3}, triangle);
    const RunConfig config = read();
    const RowsMask expected{
        3, 3, {true, false, false, true, true, false, true, true, true}, folder_.path() / "m.safetensors", "mask"};
    EXPECT_EQ(config.attention.mask, MaskConfig(expected));
    EXPECT_EQ(parse(to_json(config).dump()), config);  // the file stays a file, by its absolute path
  }
}

TEST_F(MaskFile, RefusesWhatIsNoMask) {
  write("F32", {1, 1}, std::string(4, '\0'));
  EXPECT_EQ(error(), where_ + "must be BOOL, or U8 of 0 and 1: a mask is boolean, true = may look, got F32");
  write("BOOL", {3, 2}, std::string(6, '\1'));
  EXPECT_EQ(error(), where_ + "must have the shape (T_q, T_k) = (3, 3), got (3, 2)");
  write("U8", {3, 3}, "\1\1\1\1\xff\1\1\1\1");
  EXPECT_EQ(error(), where_ + "must hold 0 and 1 only, got 255");
}

TEST_F(MaskFile, RefusesANameThatIsNotThere) {
  write("BOOL", {3, 3}, std::string(9, '\1'));
  config_ = short_config(R"("mask": {"file": "m.safetensors", "name": "keep"})");
  EXPECT_EQ(error(), "tiny.json: /mask/name: no tensor \"keep\" in " + (folder_.path() / "m.safetensors").string() +
                         "; it has mask");
  config_ = short_config(R"("mask": {"file": "m.safetensors", "stride": 2})");
  EXPECT_EQ(error(), R"(tiny.json: /mask/stride: unknown key of a mask file "stride"; known: file, name)");
}

TEST_F(MaskFile, IsRefusedByItsPathWhenItIsMissing) {
  const std::string text = error_of<IoError>(config_, {}, folder_.path());
  EXPECT_EQ(text.rfind("tiny.json: /mask/file: " + folder_.path().string(), 0), 0U) << text;
}

}  // namespace
}  // namespace attn
