// The whole program in one process: words in, status and streams out.
#include "cli/run.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <streambuf>

namespace attn {
namespace {

struct Outcome {
  int status = -1;
  std::string out;
  std::string err;
};

Outcome run_words(std::vector<const char*> words, const std::string& standard_input = "") {
  words.insert(words.begin(), "attn-cli");
  std::istringstream in(standard_input);
  std::ostringstream out, err;
  const int status = run(static_cast<int>(words.size()), words.data(), in, out, err);
  return {status, out.str(), err.str()};
}

/// What every refusal owes the user: the status, nothing on standard output, one line with our prefix.
void expect_refused(const Outcome& outcome, int status) {
  EXPECT_EQ(outcome.status, status) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(outcome.err.starts_with("attn-cli: ")) << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
}

/// Keeps what had been written at each flush.
class FlushedTexts : public std::stringbuf {
 public:
  std::vector<std::string> texts;

 protected:
  int sync() override {
    texts.push_back(str());
    return 0;
  }
};

class InFreshFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "attn_run_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string text_of(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder_ / name, std::ios::binary).rdbuf();
    return text.str();
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

  std::filesystem::path folder_;
};

using RunInFolder = InFreshFolder;

TEST(Run, TracesASmallLayer) {
  const Outcome outcome = run_words({"trace", "configs/tiny.json"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  for (const char* step :
       {"  x ", "  scores ", "  masked_scores ", "  weights ", "  context ", "  output ", "c_proj.weight"}) {
    EXPECT_NE(outcome.out.find(step), std::string::npos) << step << " in\n" << outcome.out;
  }
  EXPECT_NE(outcome.out.find("(2, 4, 8, 8)"), std::string::npos);
}

TEST(Run, GivesTheSameBytesTwice) {
  const std::vector<const char*> words = {"trace", "configs/tiny.json", "--values"};
  EXPECT_EQ(run_words(words).out, run_words(words).out);
}

TEST(Run, PrintsJsonInPlaceOfTheText) {
  const Outcome outcome = run_words({"trace", "configs/tiny.json", "--json", "-", "--no-backward"});
  const nlohmann::json record = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(record["steps"].front()["name"], "x");
  EXPECT_EQ(record["steps"].back()["name"], "output");
  EXPECT_EQ(record["steps"].back()["pass"], "forward");
}

TEST_F(RunInFolder, WritesJsonBesideTheText) {
  const std::string file = path("trace.json");
  const Outcome outcome = run_words({"trace", "configs/tiny.json", "--json", file.c_str()});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.out.find("summary"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(text_of("trace.json"))["kind"], "trace");
  EXPECT_EQ(files(), std::vector<std::string>{"trace.json"});
}

TEST(Run, VerifiesAnHonestLayer) {
  const Outcome outcome = run_words({"verify", "configs/tiny.json"});
  EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  EXPECT_NE(outcome.out.find("  pass   causality"), std::string::npos) << outcome.out;
}

TEST(Run, ACheckThatDoesNotApplyIsNoPass) {
  EXPECT_EQ(run_words({"verify", "configs/encoder.json", "--check", "causality"}).status, 3);
  EXPECT_EQ(run_words({"verify", "configs/encoder.json", "--check", "causality", "--strict"}).status, 1);
  EXPECT_EQ(run_words({"verify", "configs/encoder.json", "--require", "causality"}).status, 1);
}

TEST_F(RunInFolder, JudgesSeveralConfigsInOneGo) {
  std::ofstream(path("bad.json")) << R"({"B": 2, "T": 8, "d_model": 16, "H": 3})";
  const std::string bad = path("bad.json"), junit = path("report.xml"), json = path("report.json");
  const Outcome outcome = run_words({"verify", bad.c_str(), "configs/tiny.json", "--check", "shapes,causality",
                                     "--junit", junit.c_str(), "--json", json.c_str()});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.err, "attn-cli: " + bad + ": /H: must divide d_model (16) unless d_k is given, got 3\n");
  EXPECT_NE(outcome.out.find("configs/tiny.json\n  pass   shapes, causality\n"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("a config is wrong: 1 of 2 runs passed, 0 failed, 0 incomplete, 1 not run\n"),
            std::string::npos);
  const nlohmann::json record = nlohmann::json::parse(text_of("report.json"));
  EXPECT_EQ(record["kind"], "verify_runs");
  EXPECT_EQ(record["runs"][0]["exit_status"], 2);
  EXPECT_EQ(record["runs"][1]["summary"]["pass"], 2);
  EXPECT_NE(text_of("report.xml").find("<testsuites name=\"attn-cli verify\" tests=\"3\" failures=\"0\" errors=\"1\""),
            std::string::npos);
}

TEST_F(RunInFolder, ASingleBrokenConfigIsReportedToCiToo) {
  const std::string junit = path("report.xml");
  expect_refused(run_words({"verify", "-", "--junit", junit.c_str()}, "{"), 2);
  EXPECT_NE(text_of("report.xml").find("<error "), std::string::npos) << text_of("report.xml");
}

TEST(Run, SweepsOverDtypes) {
  const Outcome outcome =
      run_words({"verify", "configs/tiny.json", "--check", "shapes", "--sweep", "dtype=float32,float64"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("\nconfigs/tiny.json dtype=float64\n"), std::string::npos) << outcome.out;
  expect_refused(run_words({"verify", "configs/tiny.json", "--set", "T=3", "--sweep", "T=4,5"}), 2);
  expect_refused(run_words({"verify", "configs/tiny.json", "--sweep", "Tt=4"}), 2);
}

TEST(Run, APlantedFaultExitsWithOne) {
  const Outcome outcome = run_words({"verify", "configs/tiny.json", "--fault", "scale-none"});
  EXPECT_EQ(outcome.status, 1) << outcome.err;
  EXPECT_NE(outcome.out.find("planted fault scale-none: caught by scale"), std::string::npos) << outcome.out;
  expect_refused(run_words({"verify", "configs/tiny.json", "--fault", "scale-non"}), 2);
  expect_refused(run_words({"verify", "configs/single_head.json", "--fault", "heads-reversed"}), 2);
}

TEST_F(RunInFolder, DrawsAMapWhenTheMaskIsNotTheOneDeclared) {
  const std::string file = path("map.png");
  const Outcome faulty =
      run_words({"verify", "configs/tiny.json", "--fault", "leak-random", "--picture", file.c_str()});
  EXPECT_EQ(faulty.status, 1) << faulty.err;
  EXPECT_EQ(faulty.err, "");
  EXPECT_EQ(text_of("map.png").substr(1, 3), "PNG");
}

TEST_F(RunInFolder, DrawsNoMapOfAnHonestLayer) {
  const std::string file = path("map.png");
  const Outcome honest = run_words({"verify", "configs/tiny.json", "--picture", file.c_str()});
  EXPECT_EQ(honest.status, 0);
  EXPECT_EQ(honest.err, "attn-cli: note: no picture written: effective-mask passed\n");
  EXPECT_EQ(files(), std::vector<std::string>{});
}

TEST(Run, RefusesOptionsThatContradictEachOther) {
  const std::vector<std::vector<const char*>> cases = {{"--self-test", "--fault", "scale-none"},
                                                       {"--self-test", "--check", "shapes"},
                                                       {"--self-test", "--quick"},
                                                       {"--self-test", "--strict"},
                                                       {"--self-test", "--picture", "x.png"},
                                                       {"--list-checks", "--json", "-"},
                                                       {"--list-checks", "--list-faults"},
                                                       {"--list-faults", "--self-test"},
                                                       {"--explain", "shapes"},
                                                       {"--picture", "x.png", "--skip", "effective-mask"},
                                                       {"--picture", "x.png", "--check", "shapes"},
                                                       {"--picture", "x.png", "--sweep", "T=4,5"},
                                                       {"--picture", "-"},
                                                       {"--json", "-", "--junit", "-"},
                                                       {"--json", "configs/tiny.json"},
                                                       {"--junit", "configs/../configs/tiny.json"},
                                                       {"--json", "x", "--junit", "./x"}};
  for (std::vector<const char*> words : cases) {
    words.insert(words.begin(), {"verify", "configs/tiny.json"});
    expect_refused(run_words(words), 2);
  }
}

TEST_F(RunInFolder, AHeatmapTakesNoPlaceOfItsConfig) {
  std::ofstream(path("index.json")) << R"({"B": 1, "T": 2, "d_model": 4, "H": 2})";
  const std::string config = path("index.json");
  expect_refused(run_words({"heatmap", config.c_str(), "-o", folder_.c_str()}), 2);
  EXPECT_EQ(files(), std::vector<std::string>{"index.json"});
}

TEST(Run, TellsWhichChecksAndFaultsApply) {
  EXPECT_NE(run_words({"verify", "--list-checks"}).out.find("\ncausality "), std::string::npos);
  EXPECT_EQ(run_words({"verify", "--list-checks", "configs/encoder.json"}).out.find("\ncausality "), std::string::npos);
  EXPECT_NE(run_words({"verify", "--list-faults"}).out.find("\nheads-reversed "), std::string::npos);
  EXPECT_EQ(run_words({"verify", "--list-faults", "configs/single_head.json"}).out.find("\nheads-reversed "),
            std::string::npos);
}

TEST(Run, ExplainsEveryCheckThatItLists) {
  std::istringstream list(run_words({"verify", "--list-checks"}).out);
  for (std::string line; std::getline(list, line);) {
    const std::string name = line.substr(0, line.find(' '));
    const Outcome outcome = run_words({"verify", "--explain", name.c_str()});
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.out.find("no planted fault names it"), std::string::npos) << outcome.out;
  }
  expect_refused(run_words({"verify", "--explain", "causal-leek"}), 2);
}

TEST(Run, ListsChecksWithoutAConfig) {
  const Outcome outcome = run_words({"verify", "--list-checks"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.out.find("\ncausality "), std::string::npos) << outcome.out;
}

TEST_F(RunInFolder, DrawsEachHeadAndAnOverview) {
  const std::string target = path("maps");
  const Outcome outcome =
      run_words({"heatmap", "configs/tiny.json", "-o", target.c_str(), "--batch", "1", "--head", "2,0"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(files(), (std::vector<std::string>{"index.json", "maps", "weights_b1.png", "weights_b1_h0.png",
                                               "weights_b1_h2.png"}));
  const nlohmann::json index = nlohmann::json::parse(text_of("maps/index.json"));
  EXPECT_EQ(index["files"].size(), 3u);
  EXPECT_EQ(index["files"][0]["heads"], nlohmann::json({0, 2}));
  EXPECT_EQ(index["files"][0]["scale"], nlohmann::json({{"low", 0.0}, {"high", 1.0}}));
}

TEST_F(RunInFolder, TellsTheRangeOfScores) {
  const std::string target = path("maps");
  const Outcome outcome =
      run_words({"heatmap", "configs/tiny.json", "-o", target.c_str(), "--what", "scaled_scores", "--batch", "0"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const nlohmann::json index = nlohmann::json::parse(text_of("maps/index.json"));
  EXPECT_FALSE(index["fixed_scale"].get<bool>());
  EXPECT_LT(index["files"][1]["scale"]["low"].get<double>(), 0.0);
  EXPECT_NE(index["files"][1]["scale"], index["files"][2]["scale"]);
}

TEST(Run, ConfigPrintsAConfigThatMeansTheSame) {
  const Outcome once = run_words({"config", "configs/tiny.json", "--set", "T=5"});
  EXPECT_EQ(once.status, 0) << once.err;
  EXPECT_EQ(run_words({"config", "-"}, once.out).out, once.out);
}

TEST(Run, RefusesAWrongCommandLineWithTwo) {
  expect_refused(run_words({}), 2);
  expect_refused(run_words({"tarce"}), 2);
  expect_refused(run_words({"trace", "--jsn"}), 2);
  expect_refused(run_words({"trace"}), 2);
  expect_refused(run_words({"verify", "configs/tiny.json", "--check", "causal-leek"}), 2);
  expect_refused(run_words({"verify", "configs/tiny.json", "--require", "causality", "--skip", "causality"}), 2);
  expect_refused(run_words({"heatmap", "configs/tiny.json", "--what", "wieghts"}), 2);
  expect_refused(run_words({"heatmap", "configs/tiny.json", "--head", "4"}), 2);
  expect_refused(run_words({"trace", "configs/tiny.json", "--max-memory", "lots"}), 2);
}

TEST(Run, RefusesAWrongConfigWithTwo) {
  expect_refused(run_words({"trace", "-"}, R"({"B": 2, "T": 8, "d_model": 16, "H": 3})"), 2);
  expect_refused(run_words({"trace", "-"}, R"({"B": 2, "T": 8, "d_model": 16, "haeds": 4})"), 2);
  expect_refused(run_words({"verify", "-"}, ""), 2);
}

TEST(Run, AnswersWhatCannotBeDoneWithThree) {
  expect_refused(run_words({"trace", "/no/such/config.json"}), 3);
  expect_refused(run_words({"trace", "configs/tiny.json", "--json", "/no/such/folder/x.json"}), 3);
  expect_refused(run_words({"trace", "configs/tiny.json", "--max-memory", "1K"}), 3);
  expect_refused(run_words({"heatmap", "configs/tiny.json", "-o", "configs/tiny.json"}), 3);
}

TEST(Run, SaysMoreWithDebug) {
  const Outcome outcome = run_words({"trace", "-", "--debug"}, "{");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_GT(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1);
}

/// Every write fails, as on a full disk.
class FullBuffer : public std::streambuf {
 protected:
  int_type overflow(int_type) override {
    errno = ENOSPC;
    return traits_type::eof();
  }
};

TEST(Run, AnswersAFullStandardOutputWithThree) {
  FullBuffer buffer;
  std::ostream out(&buffer);
  std::istringstream in;
  std::ostringstream err;
  const char* words[] = {"attn-cli", "--help"};
  EXPECT_EQ(run(2, words, in, out, err), 3);
  EXPECT_EQ(err.str(), "attn-cli: standard output: could not be written: No space left on device\n");
}

TEST(Run, TellsOfEachRunOfSeveralAsSoonAsItIsDone) {
  const std::vector<const char*> words{"attn-cli",  "verify", "--set", "B=1",     "--set",    "T=3",     "--set",
                                       "d_model=4", "--set",  "H=2",   "--sweep", "seed=1,2", "--check", "shapes"};
  std::istringstream in;
  std::ostringstream err;
  FlushedTexts flushed;
  std::ostream out(&flushed);
  EXPECT_EQ(run(static_cast<int>(words.size()), words.data(), in, out, err), 0) << err.str();
  ASSERT_GE(flushed.texts.size(), 2U);
  EXPECT_NE(flushed.texts[0].find("seed=1"), std::string::npos);
  EXPECT_EQ(flushed.texts[0].find("seed=2"), std::string::npos);
  EXPECT_NE(flushed.texts[1].find("seed=2"), std::string::npos);
}

}  // namespace
}  // namespace attn
