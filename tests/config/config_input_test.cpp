// The four kinds of input: what they say about B, T and d_model, and every way in which they can be wrong.
#include <gtest/gtest.h>

#include "config/config_test_support.h"
#include "files/safetensors.h"

namespace attn {
namespace {

const std::string kText = R"("embedding": {}, "input": {"kind": "text", )";
const std::string kTokens = R"("embedding": {"vocab_size": 10}, "input": {"kind": "tokens", "ids": )";

/// A config whose B and T follow from its input.
std::string sizeless(const std::string& more) { return R"({"d_model": 4, "H": 2, )" + more + "}"; }

std::string text_config(const std::string& fields) { return sizeless(kText + fields + "}"); }
std::string tokens_config(const std::string& ids) { return sizeless(kTokens + ids + "}"); }

TEST(TextInput, SaysBatchLengthAndVocabulary) {
  const RunConfig one = parse(text_config(R"("text": "hello")"));
  EXPECT_EQ(one.B, 1);
  EXPECT_EQ(one.T, 5);
  EXPECT_EQ(one.embedding, (EmbeddingConfig{256, Positions::kLearned}));
  const RunConfig two = parse(text_config(R"("text": ["a b a", "b c d"], "tokenizer": "words")"));
  EXPECT_EQ(two.B, 2);
  EXPECT_EQ(two.T, 3);
  EXPECT_EQ(two.embedding->vocab_size, 4);
}

TEST(TextInput, MayBeConfirmedButNotContradicted) {
  EXPECT_EQ(parse(R"({"B": 1, "T": 2, "d_model": 4, "H": 2, )" + kText + R"("text": "ab"}})").T, 2);
  EXPECT_EQ(error_of(R"({"T": 5, "d_model": 4, "H": 2, )" + kText + R"("text": "ab"}})"),
            "tiny.json: /T: must be 2 as the text input has it, or left out, got 5");
  EXPECT_EQ(error_of(R"({"B": 3, "d_model": 4, "H": 2, )" + kText + R"("text": "ab"}})"),
            "tiny.json: /B: must be 1 as the text input has it, or left out, got 3");
}

TEST(TextInput, NeedsAnEmbeddingAndSaysWhich) {
  EXPECT_EQ(error_of(sizeless(R"("input": {"kind": "text", "text": "ab"})")),
            R"(tiny.json: /embedding: missing; a text input needs one: add "embedding": {"vocab_size": 256})");
  EXPECT_EQ(error_of(sizeless(R"("input": {"kind": "text", "text": "a b c", "tokenizer": "words"})")),
            R"(tiny.json: /embedding: missing; a text input needs one: add "embedding": {"vocab_size": 3})");
}

TEST(TextInput, MustFitTheVocabulary) {
  const std::string words = R"("input": {"kind": "text", "text": "a b c", "tokenizer": "words"})";
  EXPECT_EQ(parse(sizeless(R"("embedding": {"vocab_size": 3}, )" + words)).embedding->vocab_size, 3);
  EXPECT_EQ(error_of(sizeless(R"("embedding": {"vocab_size": 2}, )" + words)),
            "tiny.json: /embedding/vocab_size: must be at least 3 for the token ids of this text, got 2");
  EXPECT_EQ(error_of(sizeless(R"("embedding": {"vocab_size": 100}, "input": {"kind": "text", "text": "xyz"})")),
            "tiny.json: /embedding/vocab_size: must be at least 123 for the token ids of this text, got 100");
}

TEST(TextInput, RefusesWhatIsNoText) {
  EXPECT_EQ(error_of(text_config(R"("text": "")")),
            "tiny.json: /input/text: must have at least one character, got an empty text");
  EXPECT_EQ(error_of(text_config(R"("text": ["a", ""])")),
            "tiny.json: /input/text/1: must have at least one character, got an empty text");
  EXPECT_EQ(error_of(text_config(R"("text": " ", "tokenizer": "words")")),
            R"(tiny.json: /input/text: must have at least one word, got " ")");
  EXPECT_EQ(error_of(text_config(R"("text": [])")),
            "tiny.json: /input/text: must have at least one string, got an empty array");
  EXPECT_EQ(error_of(text_config(R"("text": ["a", 1])")), "tiny.json: /input/text/1: must be a string, got 1");
  EXPECT_EQ(error_of(text_config(R"("text": 42)")),
            "tiny.json: /input/text: must be a string or an array of strings, got 42");
  EXPECT_EQ(error_of(text_config(R"("tokenizer": "bytes")")),
            "tiny.json: /input/text: missing; a text input needs text or file");
  EXPECT_EQ(error_of(text_config(R"("text": "a", "file": "b")")),
            "tiny.json: /input/file: must be left out when text is given");
}

TEST(TextInput, RefusesTextsOfDifferentLengthsWithoutPadding) {
  EXPECT_EQ(error_of(text_config(R"("text": ["ab", "abc"])")),
            "tiny.json: /padding: missing; the items of the text input have 2, 3 tokens: say at which side the shorter "
            "ones are filled up, left or right");
  EXPECT_EQ(error_of(text_config(R"("text": ["a b", "ab", "a b"], "tokenizer": "words")")),
            "tiny.json: /padding: missing; the items of the text input have 2, 1, 2 tokens: say at which side the "
            "shorter ones are filled up, left or right");
}

TEST(TextInput, ListsOnlyTheFirstOfManyLengths) {
  std::string texts = R"("a")";
  for (int i = 0; i < 20; ++i) texts += R"(, "ab")";
  EXPECT_EQ(error_of(text_config("\"text\": [" + texts + "]")),
            "tiny.json: /padding: missing; the items of the text input have 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, "
            "2, 2, ... "
            "tokens: say at which side the shorter ones are filled up, left or right");
}

class TextFile : public ::testing::Test {
 protected:
  std::vector<std::string> texts(const std::string& bytes) {
    folder_.write("t.txt", bytes);
    return std::get<TextInput>(parse(config_, {}, folder_.path()).input).texts;
  }
  std::string error(const std::string& bytes) {
    folder_.write("t.txt", bytes);
    return error_of(config_, {}, folder_.path());
  }
  std::string file() const { return "tiny.json: /input/file: " + (folder_.path() / "t.txt").string() + ": "; }

  TemporaryFolder folder_;
  std::string config_ = text_config(R"("file": "t.txt")");
};

TEST_F(TextFile, HasOneItemALine) {
  const std::vector<std::string> expected{"ab", "cd"};
  EXPECT_EQ(texts("ab\ncd\n"), expected);
  EXPECT_EQ(texts("ab\ncd"), expected);
  EXPECT_EQ(texts("ab\r\ncd\r\n"), expected);
}

TEST_F(TextFile, RefusesAnEmptyLineByItsNumber) {
  EXPECT_EQ(error("ab\n\ncd\n"), file() + "line 2: must have at least one character, got an empty text");
  EXPECT_EQ(error("ab\n\r\n"), file() + "line 2: must have at least one character, got an empty text");
  EXPECT_EQ(error(""), file() + "must have at least one line, got an empty file");
}

TEST_F(TextFile, RefusesInvalidUtf8ByLineAndOffset) {
  EXPECT_EQ(error("ab\nc\xff\n"), file() + "line 2: must be UTF-8, got an invalid byte at offset 1");
}

TEST_F(TextFile, RefusesLinesOfDifferentLengthsWithoutPadding) {
  EXPECT_EQ(error("ab\nabc\n"),
            "tiny.json: /padding: missing; the items of the text input have 2, 3 tokens: say at which side the shorter "
            "ones are filled up, left or right");
}

TEST_F(TextFile, IsRefusedByConfigKeyAndPathWhenItIsMissing) {
  const std::string error = error_of<IoError>(config_, {}, folder_.path());
  EXPECT_EQ(error.rfind(file(), 0), 0u) << error;
}

TEST(TokensInput, SaysBatchAndLength) {
  const RunConfig config = parse(tokens_config("[[0, 9, 1], [2, 2, 2]]"));
  EXPECT_EQ(config.B, 2);
  EXPECT_EQ(config.T, 3);
  EXPECT_EQ(std::get<TokensInput>(config.input).ids, (std::vector<std::vector<std::int64_t>>{{0, 9, 1}, {2, 2, 2}}));
}

TEST(TokensInput, RefusesAnIdOutsideTheVocabularyByItsPlace) {
  EXPECT_EQ(error_of(tokens_config("[[0, 1, 2, 10]]")),
            "tiny.json: /input/ids/0/3: must be an id below vocab_size (10), got 10");
  EXPECT_EQ(error_of(tokens_config("[[0], [10]]")),
            "tiny.json: /input/ids/1/0: must be an id below vocab_size (10), got 10");
  EXPECT_EQ(error_of(tokens_config("[[0, -1]]")),
            "tiny.json: /input/ids/0/1: must be an integer from 0 to 2147483646, got -1");
  EXPECT_EQ(error_of(tokens_config("[[0, 1.0]]")),
            "tiny.json: /input/ids/0/1: must be an integer from 0 to 2147483646, got 1.0; write it without a point or "
            "an exponent");
  EXPECT_EQ(error_of(tokens_config("[[null]]")),
            "tiny.json: /input/ids/0/0: must be an integer from 0 to 2147483646, got null");
}

TEST(TokensInput, RefusesWhatIsNoBatchOfIds) {
  EXPECT_EQ(error_of(tokens_config("null")),
            "tiny.json: /input/ids: missing; a tokens input needs an array of arrays of token ids");
  EXPECT_EQ(error_of(tokens_config("7")), "tiny.json: /input/ids: must be an array of arrays of token ids, got 7");
  EXPECT_EQ(error_of(tokens_config("[]")),
            "tiny.json: /input/ids: must be an array of arrays of token ids, got an empty array");
  EXPECT_EQ(error_of(tokens_config("[1, 2]")), "tiny.json: /input/ids/0: must be an array of token ids, got 1");
  EXPECT_EQ(error_of(tokens_config("[[]]")),
            "tiny.json: /input/ids/0: must be an array of token ids, got an empty array");
  EXPECT_EQ(error_of(tokens_config("[[1, 2], [3]]")),
            "tiny.json: /padding: missing; the items of the tokens input have 2, 1 tokens: say at which side the "
            "shorter ones are filled up, left or right");
}

TEST(TokensInput, NeedsAnEmbeddingWithAVocabulary) {
  EXPECT_EQ(error_of(sizeless(R"("input": {"kind": "tokens", "ids": [[4, 2]]})")),
            R"(tiny.json: /embedding: missing; a tokens input needs one: add "embedding": {"vocab_size": 5})");
  EXPECT_EQ(error_of(sizeless(R"("embedding": {}, "input": {"kind": "tokens", "ids": [[4, 2]]})")),
            "tiny.json: /embedding/vocab_size: missing, an integer of at least 1 with a tokens input");
}

TEST(RandomInput, NeedsBatchAndLengthAlsoWithAnEmbedding) {
  EXPECT_EQ(error_of(sizeless(R"("embedding": {"vocab_size": 5})")),
            "tiny.json: missing B, T, each an integer of at least 1");
}

class TensorFile : public ::testing::Test {
 protected:
  TensorFile() {
    const std::string zeros(64, '\0');
    const std::string_view bytes(zeros);
    const std::vector<SafetensorsEntry> entries{{"x", "F16", {1, 2, 4}, bytes.substr(0, 16)},
                                                {"flat", "F32", {2, 4}, bytes.substr(0, 32)},
                                                {"ids", "I64", {1, 2, 2}, bytes.substr(0, 32)},
                                                {"none", "F32", {1, 0, 4}, bytes.substr(0, 0)}};
    path_ = folder_.write("x.safetensors", to_safetensors(entries, {}));
  }

  std::string config(const std::string& fields = "", const std::string& more = "") const {
    return R"({"H": 2, "input": {"kind": "tensor", "file": "x.safetensors")" + fields + "}" + more + "}";
  }
  std::string error(const std::string& text) const { return error_of(text, {}, folder_.path()); }

  TemporaryFolder folder_;
  std::string path_;
};

TEST_F(TensorFile, SaysBatchLengthAndWidth) {
  const RunConfig run = parse(config(), {}, folder_.path());
  EXPECT_EQ(run.B, 1);
  EXPECT_EQ(run.T, 2);
  EXPECT_EQ(run.attention.d_model, 4);
  EXPECT_EQ(run.input, InputConfig(TensorInput{path_, "x"}));
}

TEST_F(TensorFile, MustNotContradictTheConfig) {
  EXPECT_EQ(error(config("", R"(, "d_model": 8)")),
            "tiny.json: /d_model: must be 4 as the tensor input has it, or left out, got 8");
  EXPECT_EQ(error(config("", R"(, "embedding": {"vocab_size": 4})")),
            "tiny.json: /embedding: must be left out: a tensor input is x itself, not tokens");
}

TEST_F(TensorFile, MustHaveTheTensorAsFloatsOfThreeAxes) {
  EXPECT_EQ(error(config(R"(, "name": "y")")),
            "tiny.json: /input/name: no tensor \"y\" in " + path_ + "; it has x, flat, ids, none");
  EXPECT_EQ(error(config(R"(, "name": "ids")")),
            "tiny.json: /input/name: tensor \"ids\" must have a dtype of F16, BF16, F32, F64, got I64");
  EXPECT_EQ(error(config(R"(, "name": "flat")")),
            "tiny.json: /input/name: tensor \"flat\" must have the shape (B, T, d_model), each size from 1 to "
            "2147483647, got (2, 4)");
  EXPECT_EQ(error(config(R"(, "name": "none")")),
            "tiny.json: /input/name: tensor \"none\" must have the shape (B, T, d_model), each size from 1 to "
            "2147483647, got (1, 0, 4)");
}

TEST_F(TensorFile, IsNamedWithItsKeyWhenItCannotBeRead) {
  EXPECT_EQ(error(R"({"H": 2, "input": {"kind": "tensor"}})"),
            "tiny.json: /input/file: missing; a tensor input needs a .safetensors file");
  const std::string missing =
      error_of<IoError>(R"({"H": 2, "input": {"kind": "tensor", "file": "n"}})", {}, folder_.path());
  EXPECT_EQ(missing.rfind("tiny.json: /input/file: " + (folder_.path() / "n").string(), 0), 0u) << missing;
}

TEST_F(TensorFile, MayBeTheWeightsToo) {
  EXPECT_EQ(parse(config("", R"(, "weights": "x.safetensors")"), {}, folder_.path()).weights, path_);
  folder_.write("cut.safetensors", "abc");
  const std::string cut = error_of<IoError>(config("", R"(, "weights": "cut.safetensors")"), {}, folder_.path());
  EXPECT_EQ(cut.rfind("tiny.json: /weights: " + (folder_.path() / "cut.safetensors").string(), 0), 0u) << cut;
}

TEST_F(TensorFile, OfASavedTraceGivesItsForwardX) {
  const std::string zeros(32, '\0');
  const std::string_view bytes(zeros);
  const SafetensorsEntry saved_x{"forward.x", "F32", {1, 2, 4}, bytes};
  folder_.write("trace.safetensors", to_safetensors({saved_x}, {}));
  folder_.write("both.safetensors", to_safetensors({saved_x, {"x", "F16", {1, 2, 4}, bytes.substr(0, 16)}}, {}));
  const auto name_of = [&](const std::string& file, const std::string& fields = "") {
    const std::string text = R"({"H": 2, "input": {"kind": "tensor", "file": ")" + file + "\"" + fields + "}}";
    return std::get<TensorInput>(parse(text, {}, folder_.path()).input).name;
  };
  EXPECT_EQ(name_of("trace.safetensors"), "forward.x");
  EXPECT_EQ(name_of("both.safetensors"), "x");
  // Only the default falls back: a name that was asked for is that one or an error.
  const std::string asked = R"({"H": 2, "input": {"kind": "tensor", "file": "trace.safetensors", "name": "x"}})";
  EXPECT_NE(error(asked).find("no tensor \"x\""), std::string::npos) << error(asked);
}

TEST_F(TensorFile, PathsAreAbsoluteAndWithoutDots) {
  const RunConfig run =
      parse(R"({"H": 2, "input": {"kind": "tensor", "file": "./a/../x.safetensors"}})", {}, folder_.path());
  EXPECT_EQ(std::get<TensorInput>(run.input).file, path_);
}

}  // namespace
}  // namespace attn
