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
    for (const auto& family :
         {scale_faults, score_faults, softmax_faults, mask_faults, window_faults, own_mask_faults, padding_faults,
          leak_faults, head_faults, group_faults, rope_faults, cache_faults, projection_faults, mixing_faults,
          dropout_faults, gradient_faults, number_faults, behaviour_faults}) {
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
  const FaultEntry& entry = fault_named(fault);
  if (entry.plant.in_core && config.attention.engine == Engine::kSdpa) {
    return "engine is sdpa: the fault is one of the explicit engine";
  }
  for (const Need& need : entry.needs) {
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

}  // namespace attn
