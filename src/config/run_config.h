// What a run is made of: a layer, an input, a device. Plain data, the image of one config file with every default
// filled in. Filled by config/config_file.h; `experiment` makes it real.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "config/attention_config.h"

namespace attn {

enum class Dtype { kFloat32, kFloat64, kBFloat16, kFloat16 };
enum class Mode { kEval, kTrain };
enum class Tokenizer { kBytes, kWords };

/// Which axis of a weight in a file is which. Ours are [out, in], as PyTorch's nn.Linear keeps them.
enum class WeightsLayout {
  kAuto,   ///< "auto": as the shapes of those that are not square say.
  kOutIn,  ///< "out-in"
  kInOut,  ///< "in-out": as GPT-2 keeps them; each is read transposed.
};

/// On which side of its tokens an item that is shorter than T is filled up.
enum class PaddingSide { kLeft, kRight };

/// The same tokens once more, in pieces: P at first, then N times `chunk`, with keys and values kept between them.
/// prefill + steps * chunk = T.
struct CacheConfig {
  std::int64_t prefill = 1;
  std::int64_t steps = 1;
  std::int64_t chunk = 1;

  friend bool operator==(const CacheConfig&, const CacheConfig&) = default;
};

/// Tokens become x by an InputEmbedding.
struct EmbeddingConfig {
  std::int64_t vocab_size = 256;
  Positions positions = Positions::kLearned;

  friend bool operator==(const EmbeddingConfig&, const EmbeddingConfig&) = default;
};

/// x is drawn from N(0, 1); with an embedding the token ids are drawn instead.
struct RandomInput {
  friend bool operator==(const RandomInput&, const RandomInput&) = default;
};

/// x comes from a .safetensors file.
struct TensorInput {
  std::filesystem::path file;
  std::string name = "x";

  friend bool operator==(const TensorInput&, const TensorInput&) = default;
};

/// Token ids, one list per batch item, all of one length.
struct TokensInput {
  std::vector<std::vector<std::int64_t>> ids;

  friend bool operator==(const TokensInput&, const TokensInput&) = default;
};

/// Text, one string per batch item.
struct TextInput {
  std::vector<std::string> texts;             ///< as given, or the lines of `file`.
  std::optional<std::filesystem::path> file;  ///< where the texts were read from.
  Tokenizer tokenizer = Tokenizer::kBytes;

  friend bool operator==(const TextInput&, const TextInput&) = default;
};

using InputConfig = std::variant<RandomInput, TensorInput, TokensInput, TextInput>;

/// Where the keys of a run came from when its config was a model's own, one line a key: "H_kv 8 from
/// /num_key_value_heads". For people only: it says nothing about what the run is, so two origins are always equal and
/// RunConfig keeps the comparison that the compiler writes.
struct ConfigOrigins {
  std::vector<std::string> lines;

  friend bool operator==(const ConfigOrigins&, const ConfigOrigins&) { return true; }
};

/// One run. Plain data; parse_config() and load_config() return only valid ones.
struct RunConfig {
  AttentionConfig attention;
  std::int64_t B = 1;                         ///< batch.
  std::int64_t T = 8;                         ///< sequence length; with a memory that of the queries, T_q.
  std::optional<PaddingSide> padding;         ///< absent: every item has T tokens.
  std::vector<std::int64_t> lengths;          ///< with padding: how many keys of each of the B items are tokens, 1 ...
                                              ///< T; with a memory those of the memory, 1 ... T_k.
  std::optional<std::int64_t> memory_length;  ///< T_k: keys and values come from another sequence (cross-attention).
  std::optional<CacheConfig> cache;           ///< for trace and heatmap: absent: one forward pass.
  std::optional<EmbeddingConfig> embedding;   ///< absent: x is given directly.
  std::optional<std::filesystem::path> weights;  ///< absent: initialised from the seed.
  WeightsLayout weights_layout = WeightsLayout::kAuto;
  InputConfig input = RandomInput{};
  Mode mode = Mode::kEval;  ///< for trace and heatmap; verify sets what each check needs.
  Dtype dtype = Dtype::kFloat32;
  std::string device = "cpu";         ///< "cpu", "cuda" or "cuda:N".
  std::uint64_t seed = 0;             ///< at most 2^63 - 1.
  std::optional<int> threads;         ///< 1 ... 1024; absent: what LibTorch chooses.
  std::string source_name = "--set";  ///< where it came from, for messages: a path, "-" or "--set".
  ConfigOrigins origins;              ///< empty for a config in this tool's own keys.

  friend bool operator==(const RunConfig&, const RunConfig&) = default;
};

/// The words of the config file.
std::string to_string(Dtype dtype);
std::string to_string(Mode mode);
std::string to_string(Tokenizer tokenizer);
std::string to_string(WeightsLayout layout);
std::string to_string(PaddingSide side);

/// How many keys there are: T, or the memory's T_k.
inline std::int64_t key_length(const RunConfig& config) { return config.memory_length.value_or(config.T); }

/// Whether key j of item b is a token, not padding.
bool is_real_key(const RunConfig& config, std::int64_t b, std::int64_t j);

/// Bytes of one number: 8, 4 or 2.
std::int64_t element_size(Dtype dtype);

}  // namespace attn
