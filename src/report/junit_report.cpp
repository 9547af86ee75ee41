#include "report/junit_report.h"

#include <cstdint>
#include <cstdio>

#include "core/text.h"

namespace attn {
namespace {

/// One test case, whatever it was made from.
struct TestCase {
  enum class State { kPassed, kFailure, kError, kSkipped };
  std::string name;
  State state = State::kPassed;
  std::string type;     ///< of a failure or an error.
  std::string message;  ///< one line.
  std::string details;  ///< lines below it.
  double seconds = 0.0;
};

struct TestSuite {
  std::string name;
  std::vector<TestCase> cases;
  double seconds = 0.0;

  std::int64_t count(TestCase::State state) const {
    std::int64_t number = 0;
    for (const TestCase& test : cases) number += test.state == state ? 1 : 0;
    return number;
  }
};

bool is_allowed(char32_t point) {  // XML 1.0, 2.2
  return point == '\t' || point == '\n' || point == '\r' || (point >= 0x20 && point <= 0xD7FF) ||
         (point >= 0xE000 && point <= 0xFFFD) || (point >= 0x10000 && point <= 0x10FFFF);
}

void append_utf8(std::string& out, char32_t point) {
  const auto byte = [&](char32_t value) { out += static_cast<char>(static_cast<unsigned char>(value)); };
  if (point < 0x80) {
    byte(point);
  } else if (point < 0x800) {
    byte(0xC0 | (point >> 6));
    byte(0x80 | (point & 0x3F));
  } else if (point < 0x10000) {
    byte(0xE0 | (point >> 12));
    byte(0x80 | ((point >> 6) & 0x3F));
    byte(0x80 | (point & 0x3F));
  } else {
    byte(0xF0 | (point >> 18));
    byte(0x80 | ((point >> 12) & 0x3F));
    byte(0x80 | ((point >> 6) & 0x3F));
    byte(0x80 | (point & 0x3F));
  }
}

std::string attribute(const std::string& name, const std::string& value) {
  return " " + name + "=\"" + xml_escaped(value) + "\"";
}

/// A plain decimal, never with an exponent: readers take it as xs:decimal.
std::string decimal(double seconds) {
  char buffer[64];
  const int length = std::snprintf(buffer, sizeof buffer, "%.6f", seconds >= 0.0 ? seconds : 0.0);
  return std::string(buffer, static_cast<std::size_t>(length));
}

void add_line(std::string& text, const std::string& name, const std::string& value) {
  if (!value.empty()) text += name + value + "\n";
}

TestCase case_of(const CheckResult& check) {
  TestCase test;
  test.name = check.name;
  test.seconds = check.seconds;
  test.message = check.detail;
  switch (check.status) {
    case CheckStatus::kPass:
      return test;
    case CheckStatus::kNotApplicable:
      test.state = TestCase::State::kSkipped;
      return test;
    case CheckStatus::kError:
      test.state = TestCase::State::kError;
      test.type = "error";
      return test;
    case CheckStatus::kFail:
      break;
  }
  test.state = TestCase::State::kFailure;
  test.type = "fail";
  if (check.measured) {
    add_line(test.details, "measured ",
             format_number(*check.measured, 6) + (check.unit.empty() ? "" : " (" + check.unit + ")"));
  }
  if (check.limit) add_line(test.details, "limit ", format_number(*check.limit, 6));
  add_line(test.details, "limit is ", check.limit_reason);
  if (check.compared > 0) {
    add_line(test.details, "outside ",
             std::to_string(check.wrong) + " of " + std::to_string(check.compared) + " compared");
  }
  add_line(test.details, "first at ", check.where_first);
  add_line(test.details, "worst at ", check.where_worst);
  if (test.message.empty()) test.message = test.details.substr(0, test.details.find('\n'));
  return test;
}

TestCase case_of(const FaultVerdict& fault) {
  TestCase test;
  test.name = "fault " + fault.name;
  if (!fault.not_applicable.empty()) {
    test.state = TestCase::State::kSkipped;
    test.message = fault.not_applicable;
  } else if (!fault.caught()) {
    test.state = TestCase::State::kFailure;
    test.type = fault.caught_by.empty() ? "survived" : "missed";
    test.message = fault.caught_by.empty() ? "no check caught it" : "caught by " + fault.caught_by;
    if (!fault.missed_by.empty()) test.message += "; missed by " + join(fault.missed_by);
  }
  return test;
}

struct SuiteOf {
  std::string name;

  TestSuite operator()(const RunError& error) const {
    TestCase test;
    test.name = "run";
    test.state = TestCase::State::kError;
    test.type = error.exit_status == 2 ? "config" : "not run";
    test.message = error.message;
    return {name, {test}, 0.0};
  }
  TestSuite operator()(const VerifyResult& result) const {
    TestSuite suite{name, {}, 0.0};
    for (const CheckResult& check : result.checks) {
      TestCase test = case_of(check);
      if (test.state == TestCase::State::kFailure) {
        add_line(test.details, "planted fault: ", result.fault);
        add_line(test.details, "explained by: ", result.explained_by);
      }
      suite.seconds += test.seconds;
      suite.cases.push_back(std::move(test));
    }
    return suite;
  }
  TestSuite operator()(const SelfTestResult& result) const {
    TestSuite suite{name, {}, result.seconds};
    for (const FaultVerdict& fault : result.faults) suite.cases.push_back(case_of(fault));
    for (const CheckResult& alarm : result.false_alarms) {
      TestCase test = case_of(alarm);
      test.name = "honest layer " + test.name;
      suite.cases.push_back(std::move(test));
    }
    return suite;
  }
};

void append(std::string& out, const TestCase& test, const std::string& suite_name) {
  out += "    <testcase" + attribute("classname", suite_name) + attribute("name", test.name) +
         attribute("time", decimal(test.seconds));
  if (test.state == TestCase::State::kPassed) {
    out += "/>\n";
    return;
  }
  const std::string element = test.state == TestCase::State::kSkipped ? "skipped"
                              : test.state == TestCase::State::kError ? "error"
                                                                      : "failure";
  out += ">\n      <" + element + attribute("message", test.message);
  if (!test.type.empty()) out += attribute("type", test.type);
  out += test.details.empty() ? "/>" : ">" + xml_escaped(test.details) + "</" + element + ">";
  out += "\n    </testcase>\n";
}

std::string counts(std::size_t tests, std::int64_t failures, std::int64_t errors, double seconds) {
  return attribute("tests", std::to_string(tests)) + attribute("failures", std::to_string(failures)) +
         attribute("errors", std::to_string(errors)) + attribute("time", decimal(seconds));
}

void append(std::string& out, const TestSuite& suite) {
  out += "  <testsuite" + attribute("name", suite.name) +
         counts(suite.cases.size(), suite.count(TestCase::State::kFailure), suite.count(TestCase::State::kError),
                suite.seconds) +
         attribute("skipped", std::to_string(suite.count(TestCase::State::kSkipped))) + ">\n";
  for (const TestCase& test : suite.cases) append(out, test, suite.name);
  out += "  </testsuite>\n";
}

}  // namespace

std::string xml_escaped(std::string_view text) {
  std::string out;
  for (char32_t point : code_points(text)) {
    if (!is_allowed(point)) point = 0xFFFD;
    if (point == '&') {
      out += "&amp;";
    } else if (point == '<') {
      out += "&lt;";
    } else if (point == '>') {
      out += "&gt;";
    } else if (point == '"') {
      out += "&quot;";
    } else if (point == '\t' || point == '\n' || point == '\r') {
      out += "&#" + std::to_string(static_cast<std::uint32_t>(point)) + ";";  // else a reader makes a space of it
    } else {
      append_utf8(out, point);
    }
  }
  return out;
}

std::string to_junit_text(const std::vector<VerifyRun>& runs) {
  std::vector<TestSuite> suites;
  std::size_t tests = 0;
  std::int64_t failures = 0;
  std::int64_t errors = 0;
  double seconds = 0.0;
  for (const VerifyRun& run : runs) {
    suites.push_back(std::visit(SuiteOf{run_label(run)}, run.outcome));
    tests += suites.back().cases.size();
    failures += suites.back().count(TestCase::State::kFailure);
    errors += suites.back().count(TestCase::State::kError);
    seconds += suites.back().seconds;
  }
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites" + attribute("name", "attn-cli verify") +
                    counts(tests, failures, errors, seconds) + ">\n";
  for (const TestSuite& suite : suites) append(out, suite);
  return out + "</testsuites>\n";
}

}  // namespace attn
