// The rows of the list of checks: what people read about each, and the function that carries it out.
// A new check is one row in check_table.cpp and one function. Private to this room.
#pragma once

#include <vector>

#include "checks/check_context.h"
#include "checks/check_list.h"
#include "checks/ruled_out.h"

namespace attn {

struct CheckEntry {
  CheckInfo info;
  CheckResult (*run)(CheckContext& context);  ///< called only where the config does not rule the check out.
  Ruling ruled_out = never_ruled_out;
};

/// In the order in which they run: cheap and telling ones first.
const std::vector<CheckEntry>& check_table();

/// The check's verdict with its name and seconds. Whatever it throws becomes a failure, when the subject threw it, or
/// an error. The subject is in eval mode before and after.
CheckResult run_check(const CheckEntry& check, CheckContext& context);

}  // namespace attn
