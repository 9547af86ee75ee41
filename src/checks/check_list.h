// The one list of checks: names, what each asks, and the way to run them. `cli`, `report`, the help, the tests and
// the README's table all read this list. No LibTorch.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "checks/check.h"

namespace attn {

/// One entry of the list, for people.
struct CheckInfo {
  std::string name;         ///< "row-sums"
  std::string question;     ///< one line: what must hold.
  std::string needs;        ///< what the subject must show: "weights"; "-" for nothing beside outputs.
  std::string explanation;  ///< a paragraph for --explain: what is done, what limit it has, what it cannot see.
};

const std::vector<CheckInfo>& check_list();
std::vector<std::string> check_names();

/// Throws ConfigError for an unknown name, with the nearest known one.
void require_check(const std::string& name);

/// Why the check has nothing to judge in this config; empty: it has, though it may still find that the layer does not
/// show what it needs. Throws as require_check().
std::string why_ruled_out(const std::string& check, const RunConfig& config);

struct VerifyOptions {
  std::vector<std::string> only;  ///< names; empty: all. Unknown names throw as require_check().
  std::vector<std::string> skip;
  bool quick = false;  ///< a twentieth of the work where a check may take a sample; each says what it left out.
  /// Told before each check, for a progress line: name, its number from 0, how many.
  std::function<void(const std::string& name, std::size_t index, std::size_t total)> progress;
};

/// Builds the config's layer and judges it. A check that throws does not stop the others.
/// Throws what make_experiment() throws.
VerifyResult verify_attention(const RunConfig& config, const VerifyOptions& options = {});

}  // namespace attn
