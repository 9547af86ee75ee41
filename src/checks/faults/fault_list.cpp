// The list of all planted faults, and the verdict on one.
#include <utility>

#include "checks/faults/fault.h"
#include "checks/run_checks.h"
#include "core/error.h"
#include "core/text.h"

namespace attn {

const std::vector<FaultEntry>& fault_table() {
  static const std::vector<FaultEntry> table = [] {
    std::vector<FaultEntry> all;
    for (const auto& family : {scale_faults, softmax_faults, mask_faults, leak_faults, head_faults, projection_faults,
                               mixing_faults, dropout_faults, gradient_faults, number_faults, behaviour_faults}) {
      for (FaultEntry& fault : family()) all.push_back(std::move(fault));
    }
    return all;
  }();
  return table;
}

const std::vector<FaultInfo>& fault_list() {
  static const std::vector<FaultInfo> infos = [] {
    std::vector<FaultInfo> list;
    for (const FaultEntry& fault : fault_table()) list.push_back(fault.info);
    return list;
  }();
  return infos;
}

const FaultEntry& fault_named(const std::string& name) {
  std::vector<std::string> known;
  for (const FaultEntry& fault : fault_table()) {
    if (fault.info.name == name) return fault;
    known.push_back(fault.info.name);
  }
  throw ConfigError(unknown_word("fault", name, known));
}

std::optional<std::string> why_not_applicable(const std::string& fault, const RunConfig& config) {
  for (const Need need : fault_named(fault).needs) {
    std::string missing = need(config);
    if (!missing.empty()) return missing;
  }
  return std::nullopt;
}

VerifyResult verify_fault(const RunConfig& config, const std::string& fault, const VerifyOptions& options) {
  const std::optional<std::string> missing = why_not_applicable(fault, config);
  if (missing.has_value()) {
    throw ConfigError(config.source_name + ": fault " + fault + " changes nothing here: " + *missing);
  }
  VerifyResult result = verify_layer(config, fault_named(fault).plant(), options);
  result.fault = fault;
  return result;
}

std::string needs_two_keys(const RunConfig& run) {
  return run.T == 1 ? "T is 1: one key has weight 1, whatever its score" : "";
}

std::string needs_two_tokens(const RunConfig& run) { return run.T == 1 ? "T is 1: no two tokens can be confused" : ""; }

std::string needs_a_future(const RunConfig& run) {
  if (!run.attention.causal) return "the layer is not causal";
  return run.T == 1 ? "T is 1: there is no future" : "";
}

std::string needs_two_heads(const RunConfig& run) { return run.attention.H == 1 ? "H is 1" : ""; }

std::string needs_head_axis(const RunConfig& run) {
  return run.attention.module == ModuleKind::kSingleHead ? "the layer has no head axis" : "";
}

std::string needs_dropout(const RunConfig& run) { return run.attention.dropout == 0.0 ? "dropout is 0" : ""; }

std::string needs_fine_numbers(const RunConfig& run) {
  return element_size(run.dtype) == 2 ? "a millionth vanishes beside numbers of " + to_string(run.dtype) : "";
}

}  // namespace attn
