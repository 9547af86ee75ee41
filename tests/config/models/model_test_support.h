// Models' own configs, from files and from a few keys, for the tests of what they are read as.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "config/config_test_support.h"

namespace attn {

using Words = std::vector<std::string>;

inline const Words kSizes{"B=1", "T=8"};

inline RunConfig load(const std::string& name, Words more = {}) {
  std::istringstream no_input;
  more.insert(more.begin(), kSizes.begin(), kSizes.end());
  return load_config("tests/data/models/" + name + ".json", no_input, more);
}

inline AttentionConfig layer(const std::string& name, const Words& more = {}) { return load(name, more).attention; }

/// A config of this type with more keys.
inline RunConfig model(const std::string& type, const std::string& more = "", Words words = {}) {
  words.insert(words.begin(), kSizes.begin(), kSizes.end());
  return parse(R"({"model_type": ")" + type + "\"" + (more.empty() ? "" : ", " + more) + "}", words);
}

inline std::string model_error(const std::string& type, const std::string& more, const Words& words = {}) {
  try {
    model(type, more, words);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

inline RopeConfig rope(double theta) { return {theta, RopeStyle::kHalf, {}}; }

}  // namespace attn
