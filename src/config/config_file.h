// Reading a config: strict JSON to a valid RunConfig, and back. Every key stands in config_keys.h; its type,
// range and default in the reader of its part (run_shape.h, layer_reader.h, mask_reader.h, rope_reader.h,
// input_reader.h, config_file.cpp). A model's own config.json is read as well (model_config.h). Called by `cli`; the
// tests call it with text.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "config/run_config.h"

namespace attn {

/// Reads `path` ("-": `in`), or starts from {} when there is none; applies `--set` words in order ("KEY=VALUE", dots
/// for nested keys, VALUE as JSON, else a string) and after them those of a sweep (config_sweep.h); fills defaults;
/// checks everything that can be checked without LibTorch, files named by the config included. Throws ConfigError
/// "path: /json/pointer: what was found, what is allowed", or IoError for a file.
RunConfig load_config(const std::optional<std::string>& path, std::istream& in,
                      const std::vector<std::string>& set_words, const std::vector<std::string>& sweep_words = {});

/// The same from text. Relative paths in the text are taken from `base_folder`.
RunConfig parse_config(std::string_view text, const std::string& source_name, const std::filesystem::path& base_folder,
                       const std::vector<std::string>& set_words = {},
                       const std::vector<std::string>& sweep_words = {});

/// The effective config: every default filled in, paths absolute, keys in the order of the README's table.
/// Reading it back gives the same RunConfig.
nlohmann::ordered_json to_json(const RunConfig& config);

/// A first config, with comments that teach: what `attn-cli config --example` prints. Valid as it is.
std::string example_config();

/// Every key a config may have, nested ones with dots: for --help and the README's test.
std::vector<std::string> config_keys();

}  // namespace attn
