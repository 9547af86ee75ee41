// The options that every command shares: which config, what overrides it, how much memory it may take.
// Also the one way to read a number, a size or a comma list from the command line.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line.h"
#include "config/run_config.h"

namespace attn {

/// CONFIG, --set, --max-memory, as given.
struct ConfigOptions {
  std::optional<std::string> path;        ///< "-" is standard input.
  std::vector<std::string> set_words;     ///< "KEY=VALUE".
  std::optional<std::string> max_memory;  ///< a size; commands that run nothing do not offer it.
};

/// Binds --set.
void add_set_option(Command& command, ConfigOptions& options);

/// Binds CONFIG and --set.
void add_config_options(Command& command, ConfigOptions& options);

/// Binds --max-memory.
void add_memory_option(Command& command, ConfigOptions& options);

/// Throws ConfigError: neither CONFIG nor --set; else what load_config() throws.
RunConfig load_config(const ConfigOptions& options, std::istream& in);

/// The limit in bytes, if one was given. Throws ConfigError.
std::optional<std::uint64_t> max_memory_bytes(const ConfigOptions& options);

/// "512", "16K", "4GiB": K, M, G, T with or without "iB", in steps of 1024. Throws ConfigError naming the option.
std::uint64_t parse_size(std::string_view option, std::string_view word);

/// "a,b,c"; given several times, the lists are joined. Throws ConfigError for an empty entry.
std::vector<std::string> split_list(std::string_view option, const std::vector<std::string>& words);

/// "3,0,3" as {0, 3}: whole numbers of at least 0, in order, each once. Throws ConfigError.
std::vector<std::int64_t> parse_index_list(std::string_view option, const std::vector<std::string>& words);

}  // namespace attn
