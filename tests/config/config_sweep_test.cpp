#include "config/config_sweep.h"

#include <gtest/gtest.h>

#include <sstream>

#include "config/config_file.h"
#include "core/error.h"

namespace attn {
namespace {

using Words = std::vector<std::string>;

std::string refusal(const Words& sweeps, const Words& sets = {}) {
  try {
    sweep_combinations(sweeps, sets);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "(accepted)";
}

TEST(Sweep, GivesARunForEachValue) {
  EXPECT_EQ(sweep_combinations({"T=4,8"}, {}), (std::vector<Words>{{"T=4"}, {"T=8"}}));
}

TEST(Sweep, WithoutOneThereIsOneRun) { EXPECT_EQ(sweep_combinations({}, {"T=3"}), std::vector<Words>{{}}); }

TEST(Sweep, SeveralGiveEveryCombinationTheLastFastest) {
  EXPECT_EQ(
      sweep_combinations({"T=4,8", "dtype=float32,float64"}, {}),
      (std::vector<Words>{
          {"T=4", "dtype=float32"}, {"T=4", "dtype=float64"}, {"T=8", "dtype=float32"}, {"T=8", "dtype=float64"}}));
}

TEST(Sweep, CommasInsideAValuePartNothing) {
  EXPECT_EQ(sweep_combinations({R"(input={"kind":"tokens","ids":[[1,2]]},{"kind":"random"})"}, {}),
            (std::vector<Words>{{R"(input={"kind":"tokens","ids":[[1,2]]})"}, {R"(input={"kind":"random"})"}}));
  EXPECT_EQ(sweep_combinations({R"(input.text="a,\"b",c)"}, {}),
            (std::vector<Words>{{R"(input.text="a,\"b")"}, {"input.text=c"}}));
}

TEST(Sweep, RefusesWhatIsNone) {
  EXPECT_EQ(refusal({"T"}), "--sweep: must be KEY=V1,V2,..., got \"T\"");
  EXPECT_EQ(refusal({"=1,2"}), "--sweep: must be KEY=V1,V2,..., got \"=1,2\"");
  for (const char* word : {"T=", "T=1,", "T=,1", "T=1,,2"}) {
    EXPECT_EQ(refusal({word}),
              "--sweep: empty value in \"" + std::string(word) + "\", expected values with one comma between two");
  }
  EXPECT_EQ(refusal({"T=1,2,1"}), "--sweep: the value \"1\" is given twice in \"T=1,2,1\"");
}

TEST(Sweep, RefusesAKeyThatIsGivenElsewhere) {
  EXPECT_EQ(refusal({"T=1,2"}, {"T=3"}), "--sweep: the key \"T\" is given by --set T=3 too");
  EXPECT_EQ(refusal({"input.kind=random"}, {"input={}"}),
            "--sweep: the key \"input.kind\" is given by --set input={} too");
  EXPECT_EQ(refusal({"T=1", "T=2"}), "--sweep: the key \"T\" is given by two sweeps");
  EXPECT_EQ(refusal({"T=1,2"}, {"Tx=3"}), "(accepted)");
}

TEST(Sweep, RefusesMoreRunsThanAnyoneWants) {
  std::string word = "seed=0";
  for (int value = 1; value < 101; ++value) word += "," + std::to_string(value);
  std::string other = word;
  other.replace(0, 4, "H");
  EXPECT_EQ(refusal({word, other}), "--sweep: more than 10,000 combinations");
}

TEST(Sweep, IsNamedInTheErrorOfItsValue) {
  std::istringstream in(R"({"B": 2, "T": 8, "d_model": 16, "H": 4})");
  try {
    load_config("-", in, {"B=3"}, {"T=none"});
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_EQ(std::string(error.what()).substr(0, 13), "--sweep: /T: ") << error.what();
  }
}

TEST(Sweep, ComesAfterSet) {
  std::istringstream in(R"({"B": 2, "T": 8, "d_model": 16, "H": 4})");
  const RunConfig config = load_config("-", in, {"B=3"}, {"T=5"});
  EXPECT_EQ(config.B, 3);
  EXPECT_EQ(config.T, 5);
}

TEST(Words, OfOtherProgramsAreUnderstoodButNotTaken) {
  const auto refused = [](const std::string& word) {
    std::istringstream in(R"({"B": 2, "T": 8, "d_model": 16, "H": 4})");
    try {
      load_config("-", in, {word});
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("(accepted)");
  };
  EXPECT_EQ(refused("dtype=fp16"), "--set: /dtype: unknown dtype \"fp16\"; did you mean \"float16\"?");
  EXPECT_EQ(refused("dtype=half"), "--set: /dtype: unknown dtype \"half\"; did you mean \"float16\"?");
  EXPECT_EQ(refused("dtype=fp32"), "--set: /dtype: unknown dtype \"fp32\"; did you mean \"float32\"?");
  EXPECT_EQ(refused("dtype=bf16"), "--set: /dtype: unknown dtype \"bf16\"; did you mean \"bfloat16\"?");
  EXPECT_EQ(refused("device=gpu"), "--set: /device: unknown device \"gpu\"; did you mean \"cuda\"?");
  EXPECT_EQ(refused("module=single"), "--set: /module: unknown module \"single\"; did you mean \"single-head\"?");
  EXPECT_EQ(refused("mode=training"), "--set: /mode: unknown mode \"training\"; did you mean \"train\"?");
}

TEST(Words, OfAnyLengthAreCutInAMessage) {
  std::istringstream in("{\"" + std::string(5000, 'a') + "\": 1}");
  try {
    load_config("-", in, {});
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_LT(std::string(error.what()).size(), 600u) << error.what();
  }
}

}  // namespace
}  // namespace attn
