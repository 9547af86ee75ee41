// Faults planted on purpose, to prove that every alarm rings. Each is a subclass of the core or of the layer that
// overrides one step, so the product's own code holds no faulty branch. Used by `verify --fault`, `--self-test` and the
// tests. No LibTorch.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "checks/check_list.h"

namespace attn {

/// One entry of the list of faults, for people.
struct FaultInfo {
  std::string name;                    ///< "scale-none"
  std::string what;                    ///< one line: what the layer does wrong.
  std::vector<std::string> caught_by;  ///< checks that must catch it wherever both apply, unless softmax is saturated.
};

const std::vector<FaultInfo>& fault_list();

/// Why the fault changes nothing in this config ("H is 1"); absent when it applies.
/// Throws ConfigError for an unknown name, with the nearest known one.
std::optional<std::string> why_not_applicable(const std::string& fault, const RunConfig& config);

/// verify_attention() of the config's layer with the fault planted. Throws ConfigError for an unknown name, or a fault
/// that does not apply.
VerifyResult verify_fault(const RunConfig& config, const std::string& fault, const VerifyOptions& options = {});

/// What became of one fault.
struct FaultVerdict {
  std::string name;
  std::string not_applicable;          ///< why the fault changes nothing here; empty: it was planted.
  std::string caught_by;               ///< the first check, in the order of the list, that failed; empty: it survived.
  std::vector<std::string> missed_by;  ///< checks named in caught_by of the list that apply here and did not fail.
  std::optional<double> measured;      ///< of the catching check, in its unit.
  std::string detail;                  ///< what the catching check said.
  bool caught() const { return !caught_by.empty() && missed_by.empty(); }
};

/// All faults of one config, and the honest layer beside them.
struct SelfTestResult {
  RunConfig config;
  std::string torch_version;
  int threads = 0;
  std::vector<FaultVerdict> faults;
  std::vector<CheckResult> false_alarms;  ///< checks that fail or error on the honest layer.
  std::vector<std::string> notes;
  double seconds = 0.0;

  bool passed() const;  ///< every planted fault was caught, at least one was planted, and there is no false alarm.
};

/// `progress` is told before each fault: its name, its number from 0, how many.
SelfTestResult self_test(
    const RunConfig& config,
    const std::function<void(const std::string& name, std::size_t index, std::size_t total)>& progress = {});

}  // namespace attn
