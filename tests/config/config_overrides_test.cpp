// --set KEY=VALUE: what it changes, whose error an error is, and where its paths start.
#include <gtest/gtest.h>

#include "config/config_test_support.h"

namespace attn {
namespace {

TEST(Set, OverridesAKeyAndLeavesTheOthers) {
  const RunConfig config = parse(tiny(), {"T=32", "device=cuda", "dropout=0.5", "bias=true"});
  EXPECT_EQ(config.T, 32);
  EXPECT_EQ(config.B, 2);
  EXPECT_EQ(config.device, "cuda");
  EXPECT_EQ(config.attention.dropout, 0.5);
  EXPECT_TRUE(config.attention.bias);
}

/// A script can put its own words after those of its caller.
TEST(Set, TheLastWordCounts) { EXPECT_EQ(parse(tiny(), {"T=32", "T=5"}).T, 5); }

TEST(Set, ValueIsJsonElseAString) {
  EXPECT_EQ(parse(tiny(), {"dtype=float64"}).dtype, Dtype::kFloat64);
  EXPECT_EQ(parse(tiny(), {R"(dtype="float64")"}).dtype, Dtype::kFloat64);
  EXPECT_EQ(parse(tiny(), {R"(embedding={"vocab_size": 9})"}).embedding->vocab_size, 9);
  EXPECT_EQ(parse(tiny(), {"threads=null"}).threads, std::nullopt);
}

TEST(Set, EverythingAfterTheFirstEqualsSignIsTheValue) {
  const RunConfig config = parse(R"({"d_model": 4, "H": 2, "embedding": {}})", {"input.kind=text", "input.text=a=b c"});
  EXPECT_EQ(std::get<TextInput>(config.input).texts, (std::vector<std::string>{"a=b c"}));
}

TEST(Set, DotsLeadIntoObjectsAndMakeThem) {
  EXPECT_EQ(parse(tiny(), {"embedding.vocab_size=9"}).embedding->vocab_size, 9);
  EXPECT_EQ(parse(tiny(R"("embedding": null)"), {"embedding.vocab_size=9"}).embedding->vocab_size, 9);
  const RunConfig config =
      parse(tiny(R"("embedding": {"vocab_size": 3, "positions": "none"})"), {"embedding.vocab_size=9"});
  EXPECT_EQ(config.embedding, (EmbeddingConfig{9, Positions::kNone}));
}

TEST(Set, NullMakesAKeyAbsent) {
  EXPECT_EQ(parse(tiny(R"("embedding": {"vocab_size": 3})"), {"embedding=null"}).embedding, std::nullopt);
  EXPECT_EQ(error_of(tiny(), {"T=null"}), "tiny.json: missing T, an integer of at least 1");
}

TEST(Set, AnErrorInItsValueIsItsOwn) {
  EXPECT_EQ(error_of(tiny(), {"T=1.5"}), "--set: /T: must be an integer from 1 to 2147483647, got 1.5");
  EXPECT_EQ(error_of(tiny(), {"T=010"}), "--set: /T: must be an integer from 1 to 2147483647, got the string \"010\"");
  EXPECT_EQ(error_of(tiny(), {"T="}), "--set: /T: must be an integer from 1 to 2147483647, got the string \"\"");
  EXPECT_EQ(error_of(tiny(), {"H=5"}), "--set: /H: must divide d_model (16) unless d_k is given, got 5");
  EXPECT_EQ(error_of(tiny(), {"embedding.vocab_size=x"}),
            "--set: /embedding/vocab_size: must be an integer from 1 to 2147483647, got the string \"x\"");
  EXPECT_EQ(error_of(tiny(), {R"(embedding={"vocab_size": 0})"}),
            "--set: /embedding/vocab_size: must be an integer from 1 to 2147483647, got 0");
}

TEST(Set, AnErrorElsewhereIsTheFiles) {
  EXPECT_EQ(error_of(tiny(R"("dtype": "x")"), {"T=4"}),
            R"(tiny.json: /dtype: unknown dtype "x"; known: float32, float64, bfloat16, float16)");
  // "Tx" merely begins like the key that was set.
  const std::string error = error_of(tiny(R"("Tx": 1)"), {"T=4"});
  EXPECT_EQ(error.rfind("tiny.json: /Tx: unknown key", 0), 0u) << error;
}

TEST(Set, RefusesAnUnknownKey) {
  EXPECT_EQ(error_of(tiny(), {"casual=false"}), R"(--set: /casual: unknown key "casual"; did you mean "causal"?)");
  EXPECT_EQ(error_of(tiny(), {"embedding.vocab_sise=1"}),
            R"(--set: /embedding/vocab_sise: unknown key of embedding "vocab_sise"; did you mean "vocab_size"?)");
}

TEST(Set, RefusesAWordThatIsNoKeyAndValue) {
  EXPECT_EQ(error_of(tiny(), {"T"}), R"(--set: must be KEY=VALUE, got "T")");
  EXPECT_EQ(error_of(tiny(), {""}), R"(--set: must be KEY=VALUE, got "")");
  for (const char* word : {"=4", ".=4", "embedding.=4", ".T=4", "a..b=1"}) {
    EXPECT_EQ(error_of(tiny(), {word}),
              "--set: must be KEY=VALUE with a key, nested keys with dots, got \"" + std::string(word) + "\"");
  }
}

TEST(Set, RefusesAKeyBelowAValue) {
  EXPECT_EQ(error_of(tiny(), {"T.x=1"}), "--set: /T/x: /T must be an object to have keys, got 8");
  EXPECT_EQ(error_of(tiny(), {"input=random", "input.kind=random"}),
            R"(--set: /input/kind: /input must be an object to have keys, got the string "random")");
}

TEST(Set, SaysHowToGiveATextThatLooksLikeJson) {
  const std::string config = R"({"d_model": 4, "H": 2, "embedding": {}, "input": {"kind": "text", "text": "a"}})";
  EXPECT_EQ(
      error_of(config, {"input.text=42"}),
      "--set: /input/text: must be a string or an array of strings, got 42; a text that looks like JSON needs double "
      "quotes of its own");
  EXPECT_EQ(std::get<TextInput>(parse(config, {R"(input.text="42")"}).input).texts[0], "42");
}

TEST(Set, RefusesBytesThatAreNotUtf8) {
  const std::string config = R"({"d_model": 4, "H": 2, "embedding": {}, "input": {"kind": "text", "text": "a"}})";
  EXPECT_EQ(error_of(config, {"input.text=a\xff"}),
            "--set: /input/text: must be UTF-8, got an invalid byte at offset 1");
  EXPECT_EQ(error_of(tiny(), {"weights=\xff"}), R"(--set: /weights: must be UTF-8, got "\xff")");
}

TEST(Set, TakesItsPathsFromTheWorkingFolder) {
  const TemporaryFolder folder;
  folder.write("lines.txt", "ab\n");
  const std::string config =
      R"({"d_model": 4, "H": 2, "embedding": {}, "input": {"kind": "text", "file": "lines.txt"}})";
  const std::string absolute = (folder.path() / "lines.txt").string();
  EXPECT_EQ(std::get<TextInput>(parse(config, {"seed=1"}, folder.path()).input).file, absolute);
  EXPECT_EQ(std::get<TextInput>(parse(config, {"input.file=" + absolute}, "/nowhere").input).file, absolute);
  // The same relative name, now from the working folder, where there is no such file.
  const std::string expected_path = (std::filesystem::current_path() / "lines.txt").string();
  const std::string error = error_of<IoError>(config, {"input.file=lines.txt"}, folder.path());
  EXPECT_EQ(error.rfind("--set: /input/file: " + expected_path + ": ", 0), 0u) << error;
}

TEST(Set, TextReplacesAFileOnlyWhenTheFileIsTakenAway) {
  const std::string config =
      R"({"d_model": 4, "H": 2, "embedding": {}, "input": {"kind": "text", "file": "lines.txt"}})";
  EXPECT_EQ(error_of(config, {"input.text=hello"}), "tiny.json: /input/file: must be left out when text is given");
  EXPECT_EQ(parse(config, {"input.text=hello", "input.file=null"}).T, 5);
}

}  // namespace
}  // namespace attn
