#include "config/config_sweep.h"

#include <algorithm>

#include "core/error.h"
#include "core/text.h"

namespace attn {
namespace {

struct Sweep {
  std::string key;
  std::vector<std::string> values;
};

std::string key_of(const std::string& word) { return word.substr(0, word.find('=')); }

/// `[1,2],[3,4]` are two values. A bracket or quote that is never closed takes the rest: the config will refuse it.
std::vector<std::string> split_values(const std::string& text) {
  std::vector<std::string> values(1);
  int depth = 0;
  bool quoted = false;
  bool escaped = false;
  for (const char letter : text) {
    if (quoted) {
      quoted = escaped || letter != '"';
      escaped = !escaped && letter == '\\';
    } else if (letter == ',' && depth == 0) {
      values.emplace_back();
      continue;
    } else {
      quoted = letter == '"';
      if (letter == '[' || letter == '{') ++depth;
      if (letter == ']' || letter == '}') --depth;
    }
    values.back() += letter;
  }
  return values;
}

Sweep parse_sweep(const std::string& word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw ConfigError("--sweep: must be KEY=V1,V2,..., got " + in_quotes(word));
  }
  Sweep sweep{word.substr(0, equals), split_values(word.substr(equals + 1))};
  for (std::size_t index = 0; index < sweep.values.size(); ++index) {
    const std::string& value = sweep.values[index];
    if (value.empty()) {
      throw ConfigError("--sweep: empty value in " + in_quotes(word) + ", expected values with one comma between two");
    }
    const auto here = sweep.values.begin() + static_cast<std::ptrdiff_t>(index);
    if (std::find(sweep.values.begin(), here, value) != here) {
      throw ConfigError("--sweep: the value " + in_quotes(value) + " is given twice in " + in_quotes(word));
    }
  }
  return sweep;
}

/// One gives the other's value, or a part of it: `input` and `input.kind`.
bool overlap(const std::string& one, const std::string& other) {
  const std::string& shorter = one.size() < other.size() ? one : other;
  const std::string& longer = one.size() < other.size() ? other : one;
  return longer.starts_with(shorter) && (longer.size() == shorter.size() || longer[shorter.size()] == '.');
}

void refuse_two_sources(const std::vector<Sweep>& sweeps, const std::vector<std::string>& set_words) {
  for (std::size_t index = 0; index < sweeps.size(); ++index) {
    for (const std::string& word : set_words) {
      if (!overlap(key_of(word), sweeps[index].key)) continue;
      throw ConfigError("--sweep: the key " + in_quotes(sweeps[index].key) + " is given by --set " + shortened(word) +
                        " too");
    }
    for (std::size_t other = 0; other < index; ++other) {
      if (!overlap(sweeps[other].key, sweeps[index].key)) continue;
      throw ConfigError("--sweep: the key " + in_quotes(sweeps[index].key) + " is given by two sweeps");
    }
  }
}

}  // namespace

std::vector<std::vector<std::string>> sweep_combinations(const std::vector<std::string>& sweep_words,
                                                         const std::vector<std::string>& set_words) {
  std::vector<Sweep> sweeps;
  for (const std::string& word : sweep_words) sweeps.push_back(parse_sweep(word));
  refuse_two_sources(sweeps, set_words);

  std::vector<std::vector<std::string>> combinations(1);
  for (const Sweep& sweep : sweeps) {
    if (combinations.size() > kMaxSweepRuns / sweep.values.size()) {
      throw ConfigError("--sweep: more than " + format_count(kMaxSweepRuns) + " combinations");
    }
    std::vector<std::vector<std::string>> longer;
    for (const std::vector<std::string>& combination : combinations) {
      for (const std::string& value : sweep.values) {
        longer.push_back(combination);
        longer.back().push_back(sweep.key + "=" + value);
      }
    }
    combinations = std::move(longer);
  }
  return combinations;
}

}  // namespace attn
