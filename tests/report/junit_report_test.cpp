#include "report/junit_report.h"

#include <gtest/gtest.h>

#include <limits>

#include "report/records.h"

namespace attn {
namespace {

using testing::make_check;

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

VerifyRun run_of_all_states() {
  CheckResult pass = make_check("shapes", CheckStatus::kPass, "fine");
  pass.seconds = 0.25;
  CheckResult fail = make_check("scale", CheckStatus::kFail, "the factor is \"1\" <not 0.5>");
  fail.measured = std::numeric_limits<double>::quiet_NaN();
  fail.limit = 1e-6;
  fail.where_first = "(batch 0)";
  fail.compared = 4;
  fail.wrong = 2;
  return testing::make_run(
      testing::make_verify_result({pass, fail, make_check("dropout", CheckStatus::kNotApplicable, "p is 0"),
                                   make_check("finite", CheckStatus::kError, "no chalk")}),
      {"dtype=float64"});
}

TEST(Junit, IsASuiteARunAndACaseACheck) {
  EXPECT_EQ(
      to_junit_text({run_of_all_states()}),
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuites name=\"attn-cli verify\" tests=\"4\" failures=\"1\" errors=\"1\" time=\"0.250000\">\n"
      "  <testsuite name=\"small.json dtype=float64\" tests=\"4\" failures=\"1\" errors=\"1\" time=\"0.250000\" "
      "skipped=\"1\">\n"
      "    <testcase classname=\"small.json dtype=float64\" name=\"shapes\" time=\"0.250000\"/>\n"
      "    <testcase classname=\"small.json dtype=float64\" name=\"scale\" time=\"0.000000\">\n"
      "      <failure message=\"the factor is &quot;1&quot; &lt;not 0.5&gt;\" type=\"fail\">measured nan&#10;limit "
      "1e-06&#10;outside 2 of 4 compared&#10;first at (batch 0)&#10;</failure>\n"
      "    </testcase>\n"
      "    <testcase classname=\"small.json dtype=float64\" name=\"dropout\" time=\"0.000000\">\n"
      "      <skipped message=\"p is 0\"/>\n"
      "    </testcase>\n"
      "    <testcase classname=\"small.json dtype=float64\" name=\"finite\" time=\"0.000000\">\n"
      "      <error message=\"no chalk\" type=\"error\"/>\n"
      "    </testcase>\n"
      "  </testsuite>\n"
      "</testsuites>\n");
}

TEST(Junit, OfARunThatCouldNotBeIsOneCaseInError) {
  const std::string text = to_junit_text({testing::make_broken_run("bad.json", "bad.json: /H: must divide")});
  EXPECT_TRUE(has(text, "<testsuite name=\"bad.json\" tests=\"1\" failures=\"0\" errors=\"1\"")) << text;
  EXPECT_TRUE(has(text, "<error message=\"bad.json: /H: must divide\" type=\"config\"/>")) << text;
}

TEST(Junit, OfASelfTestHasACaseAFaultAndAnAlarm) {
  SelfTestResult result = testing::make_self_test(
      {testing::make_fault("a", "scale"), testing::make_fault("b", ""), testing::make_fault("c", "")});
  result.faults[2].not_applicable = "H is 1";
  result.false_alarms = {make_check("finite", CheckStatus::kFail, "nan")};
  const std::string text = to_junit_text({testing::make_self_test_run(result)});
  EXPECT_TRUE(has(text, "tests=\"4\" failures=\"2\" errors=\"0\"")) << text;
  EXPECT_TRUE(has(text, "name=\"fault a\" time=\"0.000000\"/>")) << text;
  EXPECT_TRUE(has(text, "<failure message=\"no check caught it\" type=\"survived\"/>")) << text;
  EXPECT_TRUE(has(text, "<skipped message=\"H is 1\"/>")) << text;
  EXPECT_TRUE(has(text, "name=\"honest layer finite\"")) << text;
}

TEST(Junit, NamesThePlantedFaultAndTheExplanationInEachFailure) {
  VerifyRun run = run_of_all_states();
  std::get<VerifyResult>(run.outcome).fault = "scale-none";
  std::get<VerifyResult>(run.outcome).explained_by = "scale 1";
  EXPECT_TRUE(has(to_junit_text({run}), "planted fault: scale-none&#10;explained by: scale 1&#10;</failure>"));
}

TEST(XmlText, EscapesMarkupAndLineBreaks) {
  EXPECT_EQ(xml_escaped("a<b>&\"c\"\n\t"), "a&lt;b&gt;&amp;&quot;c&quot;&#10;&#9;");
  EXPECT_EQ(xml_escaped("α → 𝛼"), "α → 𝛼");
}

TEST(XmlText, HasNothingThatXmlForbids) {
  EXPECT_EQ(xml_escaped(std::string("a\0b\x01\x1b", 5)), "a\uFFFDb\uFFFD\uFFFD");
  EXPECT_EQ(xml_escaped("\xef\xbf\xbe\xef\xbf\xbf"), "\uFFFD\uFFFD");  // U+FFFE, U+FFFF
  EXPECT_EQ(xml_escaped("caf\xe9"), "caf\uFFFD");
}

}  // namespace
}  // namespace attn
