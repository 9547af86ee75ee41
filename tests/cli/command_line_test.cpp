#include "cli/command_line.h"

#include <gtest/gtest.h>

#include <sstream>

#include "core/error.h"

namespace attn {
namespace {

/// A program with two commands that do nothing but remember what they were told.
struct Fake {
  CommandLine line{"attn-cli", {"Tests.", "Details.", {"attn-cli trace"}, "  0  done\n"}, [] { return "attn-cli 1"; }};
  std::optional<std::string> config, json, folder;
  std::vector<std::string> set, check, files;
  bool values = false;

  Fake() {
    Command& trace = line.add_command("trace", {"trace it", "", {"attn-cli trace x"}, "  0  done\n"});
    trace.add_argument("CONFIG", config, "a file");
    trace.add_value("--json", "FILE", json, "a file");
    trace.add_value("-o,--output", "DIR", folder, "a folder");
    trace.add_values("--set", "KEY=VALUE", set, "a key");
    trace.add_values("--check", "NAME,...", check, "names");
    trace.add_flag("--values", values, "numbers too");
    trace.set_action([](Streams&) { return ExitStatus::kCheckFailed; });
    Command& verify = line.add_command("verify", {"verify it", "", {}, ""});
    verify.add_arguments("FILE", files, "files");
    verify.add_values("--skip", "NAME,...", check, "names");
    verify.set_action([](Streams&) { return ExitStatus::kOk; });
  }

  Action parse(std::vector<const char*> words) {
    words.insert(words.begin(), "attn-cli");
    return line.parse(static_cast<int>(words.size()), words.data());
  }

  /// What the words print, for those that only print.
  std::string printed(const std::vector<const char*>& words) {
    std::istringstream in;
    std::ostringstream out, err;
    Streams streams{in, out, err};
    EXPECT_EQ(parse(words)(streams), ExitStatus::kOk);
    EXPECT_EQ(err.str(), "");
    return out.str();
  }

  /// The error that the words are refused with.
  std::string refusal(const std::vector<const char*>& words) {
    try {
      parse(words);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "(accepted)";
  }
};

TEST(CommandLine, FillsTargetsAndReturnsTheCommandsAction) {
  Fake fake;
  const Action action = fake.parse({"trace", "a.json", "--json", "out", "--set", "T=3", "--values", "--set=B=2"});
  std::istringstream in;
  std::ostringstream out, err;
  Streams streams{in, out, err};
  EXPECT_EQ(action(streams), ExitStatus::kCheckFailed);
  EXPECT_EQ(fake.config, "a.json");
  EXPECT_EQ(fake.json, "out");
  EXPECT_EQ(fake.set, (std::vector<std::string>{"T=3", "B=2"}));
  EXPECT_TRUE(fake.values);
  EXPECT_FALSE(fake.folder.has_value());
}

TEST(CommandLine, AnOptionDoesNotSwallowTheConfigBehindIt) {
  Fake fake;
  fake.parse({"trace", "--check", "a,b", "x.json"});
  EXPECT_EQ(fake.check, std::vector<std::string>{"a,b"});
  EXPECT_EQ(fake.config, "x.json");
}

TEST(CommandLine, ManyWordsAreKeptInOrderWhereverTheyStand) {
  Fake fake;
  fake.parse({"verify", "b.json", "--skip", "x", "a.json", "-", "--", "--odd.json"});
  EXPECT_EQ(fake.files, (std::vector<std::string>{"b.json", "a.json", "-", "--odd.json"}));
  EXPECT_EQ(fake.check, std::vector<std::string>{"x"});
  EXPECT_NE(fake.printed({"verify", "--help"}).find("usage: attn-cli verify [FILE...] [options]"), std::string::npos);
}

TEST(CommandLine, HelpIsACommandToo) {
  EXPECT_EQ(Fake().printed({"help"}), Fake().printed({"--help"}));
  EXPECT_EQ(Fake().printed({"help", "trace"}), Fake().printed({"trace", "--help"}));
  EXPECT_EQ(Fake().refusal({"help", "tarce"}), "help: unknown command \"tarce\"; did you mean \"trace\"?");
  EXPECT_EQ(Fake().refusal({"help", "trace", "x"}), "help: expected one command at most, got \"x\" too");
}

TEST(CommandLine, RefusesEmptyWords) {
  EXPECT_EQ(Fake().refusal({"trace", "--json", ""}), "option --json: expected FILE after it, got an empty word");
  EXPECT_EQ(Fake().refusal({"trace", "-o", ""}), "option --output: expected DIR after it, got an empty word");
  EXPECT_EQ(Fake().refusal({"trace", ""}), "trace: expected CONFIG, got an empty word");
  EXPECT_EQ(Fake().refusal({"verify", "a", ""}), "verify: expected FILE, got an empty word");
}

TEST(CommandLine, CutsLongWordsInItsMessages) {
  const std::string word(5000, 'x');
  for (const std::string& given : {word, "--" + word, "--" + word + "=", "--" + word + "=3", "--values=" + word}) {
    EXPECT_LT(Fake().refusal({"trace", "a.json", given.c_str()}).size(), 200u);
  }
  EXPECT_LT(Fake().refusal({word.c_str()}).size(), 200u);
  EXPECT_LT(Fake().refusal({"trace", "--json", ("--set=" + word).c_str()}).size(), 200u);
}

TEST(CommandLine, ADashAloneIsAWord) {
  Fake fake;
  fake.parse({"trace", "-", "--json", "-"});
  EXPECT_EQ(fake.config, "-");
  EXPECT_EQ(fake.json, "-");
}

TEST(CommandLine, ABracketedValueStaysAWord) {
  Fake fake;
  fake.parse({"trace", "--set", "input.ids=[[1,2]]", "--set", "[a,b]"});
  EXPECT_EQ(fake.set, (std::vector<std::string>{"input.ids=[[1,2]]", "[a,b]"}));
}

TEST(CommandLine, WordsAfterTwoDashesAreNoOptions) {
  Fake fake;
  fake.parse({"trace", "--values", "--", "-odd.json"});
  EXPECT_EQ(fake.config, "-odd.json");
}

TEST(CommandLine, AConfigMayBeNamedLikeACommand) {
  Fake fake;
  fake.parse({"trace", "verify"});
  EXPECT_EQ(fake.config, "verify");
}

TEST(CommandLine, ShortAndLongNamesMeanTheSame) {
  Fake one, other;
  one.parse({"trace", "-o", "d"});
  other.parse({"trace", "--output=d"});
  EXPECT_EQ(one.folder, "d");
  EXPECT_EQ(other.folder, "d");
}

TEST(CommandLine, RefusesWhatItDoesNotKnowAndOffersTheNearest) {
  EXPECT_EQ(Fake().refusal({"tarce"}), "unknown command \"tarce\"; did you mean \"trace\"?");
  EXPECT_EQ(Fake().refusal({"xyz", "--json", "a"}), "unknown command \"xyz\"; known: trace, verify");
  EXPECT_EQ(Fake().refusal({"trace", "--jsn", "a"}), "trace: unknown option \"--jsn\"; did you mean \"--json\"?");
  EXPECT_EQ(Fake().refusal({"trace", "--jsn=a"}), "trace: unknown option \"--jsn\"; did you mean \"--json\"?");
  EXPECT_EQ(Fake().refusal({"--vers"}), "unknown option \"--vers\"; did you mean \"--version\"?");
}

TEST(CommandLine, DoesNotTakeAbbreviations) { EXPECT_NE(Fake().refusal({"trace", "--val"}), "(accepted)"); }

TEST(CommandLine, RefusesNoCommand) {
  EXPECT_EQ(Fake().refusal({}), "no command given, expected trace, verify (attn-cli --help tells more)");
}

TEST(CommandLine, RefusesAMissingValue) {
  EXPECT_EQ(Fake().refusal({"trace", "--json"}), "option --json: expected FILE after it");
  EXPECT_EQ(Fake().refusal({"trace", "--json="}), "option --json: expected a value after \"=\"");
  EXPECT_EQ(Fake().refusal({"trace", "--json", "--values"}),
            "option --json: expected FILE after it, got the option --values");
  EXPECT_EQ(Fake().refusal({"trace", "--set", "--json=x"}),
            "option --set: expected KEY=VALUE after it, got the option --json=x");
}

TEST(CommandLine, RefusesTwoOfOneAndAValueForAFlag) {
  EXPECT_EQ(Fake().refusal({"trace", "--json", "a", "--json", "b"}), "option --json: given 2 times, expected once");
  EXPECT_EQ(Fake().refusal({"trace", "a", "b"}), "trace: unexpected argument \"b\", expected one CONFIG at most");
  EXPECT_EQ(Fake().refusal({"trace", "--values=3"}), "option --values: takes no value, got \"3\"");
}

TEST(CommandLine, HelpNamesEveryOptionAndWinsOverEverythingElse) {
  const std::string help = Fake().printed({"trace", "--nonsense", "--help"});
  for (const char* part :
       {"usage: attn-cli trace [CONFIG] [options]", "--json FILE", "-o, --output DIR", "--set KEY=VALUE",
        "--check NAME,...", "--values ", "--debug", "-h, --help", "attn-cli trace x", "exit status:"}) {
    EXPECT_NE(help.find(part), std::string::npos) << part << " in\n" << help;
  }
  EXPECT_EQ(Fake().printed({"trace", "-h"}), help);
}

TEST(CommandLine, ProgramHelpNamesEveryCommand) {
  const std::string help = Fake().printed({"--help"});
  EXPECT_NE(help.find("  trace       trace it\n"), std::string::npos) << help;
  EXPECT_NE(help.find("  verify      verify it\n"), std::string::npos) << help;
}

TEST(CommandLine, PrintsItsVersion) { EXPECT_EQ(Fake().printed({"--version"}), "attn-cli 1\n"); }

TEST(CommandLine, SeesDebugAlsoWhenItRefusesTheRest) {
  Fake fake;
  EXPECT_FALSE(fake.line.debug());
  EXPECT_NE(fake.refusal({"trace", "--debug", "--nonsense"}), "(accepted)");
  EXPECT_TRUE(fake.line.debug());
}

}  // namespace
}  // namespace attn
