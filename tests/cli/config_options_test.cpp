#include "cli/config_options.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <sstream>

#include "core/error.h"
#include "core/text.h"

namespace attn {
namespace {

template <typename Work>
std::string refusal(const Work& work) {
  try {
    work();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "(accepted)";
}

TEST(Sizes, AreBytesOrBinaryUnits) {
  EXPECT_EQ(parse_size("--max-memory", "512"), 512u);
  EXPECT_EQ(parse_size("--max-memory", "16K"), 16384u);
  EXPECT_EQ(parse_size("--max-memory", "16KiB"), 16384u);
  EXPECT_EQ(parse_size("--max-memory", "3M"), 3u << 20);
  EXPECT_EQ(parse_size("--max-memory", "4GiB"), std::uint64_t{4} << 30);
  EXPECT_EQ(parse_size("--max-memory", "2T"), std::uint64_t{2} << 40);
}

TEST(Sizes, AreNothingElse) {
  for (const char* word : {"", "0", "-1", "1.5G", "1e9", "8GB", "8 G", "G", "8g", "010x", "+4", "8GiBs", "nan",
                           "9223372036854775808", "9007199254740992G", "0x10"}) {
    EXPECT_EQ(refusal([&] { parse_size("--max-memory", word); }),
              "option --max-memory: expected a size such as 512MiB or 8G, got " + in_quotes(word));
  }
}

RC_GTEST_PROP(Sizes, OfWholeUnitsAreExact, (std::uint16_t number)) {
  RC_PRE(number > 0);
  RC_ASSERT(parse_size("--max-memory", std::to_string(number) + "M") == std::uint64_t{number} * 1048576);
}

TEST(Lists, AreSplitAtCommasAndJoined) {
  EXPECT_EQ(split_list("--check", {"a,b", "c"}), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(split_list("--check", {}), std::vector<std::string>{});
}

TEST(Lists, HaveNoEmptyEntries) {
  for (const char* word : {"", ",", "a,", ",a", "a,,b"}) {
    EXPECT_EQ(refusal([&] { split_list("--check", {word}); }),
              "option --check: empty entry in " + in_quotes(word) + ", expected words with one comma between two");
  }
}

TEST(IndexLists, ComeInOrderEachOnce) {
  EXPECT_EQ(parse_index_list("--head", {"3,0", "3"}), (std::vector<std::int64_t>{0, 3}));
}

TEST(IndexLists, HoldWholeNumbersFromZero) {
  for (const char* word : {"-1", "1.5", "a", "1e2", "0x1", "9223372036854775808"}) {
    EXPECT_EQ(refusal([&] { parse_index_list("--head", {word}); }),
              "option --head: expected whole numbers from 0, as 0,2, got " + in_quotes(word));
  }
}

TEST(ConfigOptions, NeedAConfigOrAKey) {
  std::istringstream in;
  EXPECT_EQ(refusal([&] { load_config({}, in); }),
            "no config given, expected CONFIG (a JSON file, or - for standard input) or --set KEY=VALUE");
}

TEST(ConfigOptions, AreEnoughWithoutAFile) {
  std::istringstream in;
  ConfigOptions options;
  options.set_words = {"B=2", "T=3", "d_model=8", "H=2"};
  EXPECT_EQ(load_config(options, in).T, 3);
}

TEST(ConfigOptions, ReadStandardInputForADash) {
  std::istringstream in(R"({"B": 2, "T": 3, "d_model": 8, "H": 2})");
  ConfigOptions options;
  options.path = "-";
  options.set_words = {"T=5"};
  const RunConfig config = load_config(options, in);
  EXPECT_EQ(config.B, 2);
  EXPECT_EQ(config.T, 5);
}

}  // namespace
}  // namespace attn
