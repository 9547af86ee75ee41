// Parts of a report that one run and several share. Private to this room.
#pragma once

#include <iosfwd>
#include <string>

#include "report/text_report.h"
#include "report/verify_run.h"

namespace attn {

/// "explained by: ..." and what became of a planted fault, a line each, where there is something to say.
void write_explanations(std::ostream& out, const VerifyResult& result, const std::string& indent);

/// Why a run could not be carried out.
void write_error_line(std::ostream& out, const RunError& error);

/// The table of faults, then in detail what went wrong: survivors, and alarms of the honest layer.
void write_self_test(std::ostream& out, const SelfTestResult& result, const TextOptions& options);

/// Only what went wrong.
void write_self_test_problems(std::ostream& out, const SelfTestResult& result, const TextOptions& options);

/// "38 faults planted, 38 caught, 0 survived, 3 n/a; 0 false alarms".
std::string self_test_counts(const SelfTestResult& result);

}  // namespace attn
