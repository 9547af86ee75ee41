// What the tests of the self-test print and look up.
#pragma once

#include <stdexcept>
#include <string>

#include "checks/faults/faults.h"
#include "core/text.h"

namespace attn {

inline const FaultVerdict& fault_of(const SelfTestResult& result, const std::string& name) {
  for (const FaultVerdict& fault : result.faults) {
    if (fault.name == name) return fault;
  }
  throw std::logic_error("no verdict on the fault " + name);
}

/// Survivors, missed catches and false alarms: what a failing assertion should print.
inline std::string describe(const SelfTestResult& result) {
  std::string text;
  for (const FaultVerdict& fault : result.faults) {
    if (!fault.not_applicable.empty() || fault.caught()) continue;
    text += fault.name + ": " + (fault.caught_by.empty() ? "SURVIVED" : "caught by " + fault.caught_by) +
            (fault.missed_by.empty() ? "" : ", missed by " + join(fault.missed_by)) + "\n";
  }
  for (const CheckResult& alarm : result.false_alarms) {
    text += "false alarm: " + alarm.name + " " + to_string(alarm.status) + ": " + alarm.detail + ", " +
            format_number(alarm.measured.value_or(-1)) + " of " + format_number(alarm.limit.value_or(-1)) + " " +
            alarm.where_first + "\n";
  }
  return text;
}

}  // namespace attn
