#include "cli/config_options.h"

#include <algorithm>
#include <limits>
#include <set>

#include "config/config_file.h"
#include "core/error.h"
#include "core/text.h"

namespace attn {

void add_config_options(Command& command, ConfigOptions& options) {
  command.add_argument("CONFIG", options.path,
                       "JSON file; - reads standard input.\nNot needed when --set gives B, T, d_model and H");
  add_set_option(command, options);
}

void add_set_option(Command& command, ConfigOptions& options) {
  command.add_values("--set", "KEY=VALUE", options.set_words,
                     "override one key of the config, as T=32 or embedding.positions=none;\nany number of times");
}

void add_memory_option(Command& command, ConfigOptions& options) {
  command.add_value("--max-memory", "SIZE", options.max_memory,
                    "refuse a run that would need more, as 8GiB\n(default: 80 % of what is available)");
}

RunConfig load_config(const ConfigOptions& options, std::istream& in) {
  if (!options.path && options.set_words.empty()) {
    throw ConfigError("no config given, expected CONFIG (a JSON file, or - for standard input) or --set KEY=VALUE");
  }
  return load_config(options.path, in, options.set_words);
}

std::optional<std::uint64_t> max_memory_bytes(const ConfigOptions& options) {
  if (!options.max_memory) return std::nullopt;
  return parse_size("--max-memory", *options.max_memory);
}

std::uint64_t parse_size(std::string_view option, std::string_view word) {
  const auto refuse = [&]() -> ConfigError {
    return ConfigError("option " + std::string(option) + ": expected a size such as 512MiB or 8G, got " +
                       in_quotes(word));
  };
  constexpr std::string_view kDigits = "0123456789";
  constexpr std::string_view kUnits = "KMGT";
  const std::size_t digits = std::min(word.find_first_not_of(kDigits), word.size());
  const std::optional<std::int64_t> number = parse_int64(word.substr(0, digits));
  std::string_view suffix = word.substr(digits);
  if (!number || *number < 1) throw refuse();

  auto bytes = static_cast<std::uint64_t>(*number);
  if (suffix.empty()) return bytes;
  const std::size_t unit = kUnits.find(suffix[0]);
  suffix.remove_prefix(1);
  if (unit == std::string_view::npos || !(suffix.empty() || suffix == "iB")) throw refuse();
  for (std::size_t step = 0; step <= unit; ++step) {
    if (bytes > std::numeric_limits<std::uint64_t>::max() / 1024) throw refuse();
    bytes *= 1024;
  }
  return bytes;
}

std::vector<std::string> split_list(std::string_view option, const std::vector<std::string>& words) {
  std::vector<std::string> entries;
  for (const std::string& word : words) {
    std::size_t start = 0;
    while (start <= word.size()) {
      const std::size_t end = std::min(word.find(',', start), word.size());
      if (end == start) {
        throw ConfigError("option " + std::string(option) + ": empty entry in " + in_quotes(word) +
                          ", expected words with one comma between two");
      }
      entries.push_back(word.substr(start, end - start));
      start = end + 1;
    }
  }
  return entries;
}

std::vector<std::int64_t> parse_index_list(std::string_view option, const std::vector<std::string>& words) {
  std::set<std::int64_t> indices;
  for (const std::string& entry : split_list(option, words)) {
    const std::optional<std::int64_t> index = parse_int64(entry);
    if (!index || *index < 0) {
      throw ConfigError("option " + std::string(option) + ": expected whole numbers from 0, as 0,2, got " +
                        in_quotes(entry));
    }
    indices.insert(*index);
  }
  return {indices.begin(), indices.end()};
}

}  // namespace attn
