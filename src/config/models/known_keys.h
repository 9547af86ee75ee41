// What is known of the keys in a model's file that no translation reads: which have no part in attention, and which
// sound as if they had one. Private to this room; model_reader.cpp is the caller.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace attn {

/// A key of these models that has no part in one layer's attention: sizes of other parts, tokens, generation, training.
bool has_no_part_in_attention(std::string_view key);

/// By its words the key may change attention: `clip_qkv`, `posEmb`, `n_kv`. It is better to ask about one too many.
bool sounds_of_attention(std::string_view key);

struct SoundingKey {
  std::string pointer;
  nlohmann::json value;
};

/// The first place at or below `pointer` whose key sounds of attention and whose value says something. Null says
/// nothing; false, 0 and what is empty do, for they may switch something off: only a dropout of 0 and no heads to be
/// pruned are as every model has it.
std::optional<SoundingKey> find_sounding_key(const std::string& key, const nlohmann::json& value,
                                             const std::string& pointer);

}  // namespace attn
