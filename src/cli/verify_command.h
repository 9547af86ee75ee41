// attn-cli verify: is it causal, does it equal the reference, are its gradients right?
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checks/check.h"
#include "cli/config_options.h"

namespace attn {

struct VerifyCommandOptions {
  ConfigOptions config;
  std::optional<std::string> json;   ///< a file, or "-".
  std::vector<std::string> check;    ///< comma lists, as given.
  std::vector<std::string> skip;     ///< comma lists, as given.
  std::vector<std::string> require;  ///< comma lists, as given.
  bool strict = false;
  bool verbose = false;
  bool list_checks = false;
};

void add_verify_command(CommandLine& line);

/// Throws what load_config(), refuse_if_too_large() and verify_attention() throw; ConfigError for an unknown check.
ExitStatus run_verify(const VerifyCommandOptions& options, Streams& streams);

/// Turns every "n/a" of a required check (with `strict`: of any check) into a failure that says so.
void require_checks(VerifyResult& result, const std::vector<std::string>& required, bool strict);

}  // namespace attn
