// Reads the config's `input` and the files it names, and tells what follows from them. Private to this room.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/config_reader.h"
#include "config/run_config.h"
#include "files/safetensors.h"

namespace attn {

/// An input and what it says about the rest of the config.
struct InputFacts {
  InputConfig input = RandomInput{};
  std::string name = "random input";               ///< for messages: `text input`.
  std::optional<std::int64_t> B, T;                ///< absent for a random input; T: of the longest item.
  std::vector<std::int64_t> lengths;               ///< of texts and tokens: how many tokens each item has.
  std::optional<std::int64_t> d_model;             ///< a tensor's width.
  std::optional<std::int64_t> default_vocab_size;  ///< a text's: 256 for bytes, the number of words.
  std::optional<std::int64_t> largest_id;          ///< of texts and tokens.
  std::string largest_id_pointer;  ///< where the config says that id: `/input/ids/0/3`; empty for texts.
};

/// The input of a config whose outermost object is `config`; random when it has none.
/// Throws ConfigError, or IoError "source: /input/file: ..." for a file.
InputFacts read_input(const ObjectReader& config);

/// A .safetensors file named by a key. Throws IoError that begins with the key's place.
SafetensorsFile load_tensors(const ObjectReader& object, std::string_view key, const std::filesystem::path& path);

}  // namespace attn
