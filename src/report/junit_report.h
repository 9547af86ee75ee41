// Verifications as JUnit XML, which CI systems show as they show unit tests: a run is a test suite, a check a test
// case, n/a is skipped. A run that could not be carried out is a suite with one case, in error. Of a self-test each
// fault is a case, and each false alarm. Conforms to schemas/junit.xsd.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/verify_run.h"

namespace attn {

/// The whole document, UTF-8.
std::string to_junit_text(const std::vector<VerifyRun>& runs);

/// The text as the value of an attribute: markup and line breaks as references; what XML 1.0 forbids (control
/// characters, U+FFFE, U+FFFF, bytes that are not UTF-8) as U+FFFD.
std::string xml_escaped(std::string_view text);

}  // namespace attn
