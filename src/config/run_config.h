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

/// One run. Plain data; parse_config() and load_config() return only valid ones.
struct RunConfig {
  AttentionConfig attention;
  std::int64_t B = 1;                            ///< batch.
  std::int64_t T = 8;                            ///< sequence length.
  std::optional<EmbeddingConfig> embedding;      ///< absent: x is given directly.
  std::optional<std::filesystem::path> weights;  ///< absent: initialised from the seed.
  WeightsLayout weights_layout = WeightsLayout::kAuto;
  InputConfig input = RandomInput{};
  Mode mode = Mode::kEval;  ///< for trace and heatmap; verify sets what each check needs.
  Dtype dtype = Dtype::kFloat32;
  std::string device = "cpu";         ///< "cpu", "cuda" or "cuda:N".
  std::uint64_t seed = 0;             ///< at most 2^63 - 1.
  std::optional<int> threads;         ///< 1 ... 1024; absent: what LibTorch chooses.
  std::string source_name = "--set";  ///< where it came from, for messages: a path, "-" or "--set".

  friend bool operator==(const RunConfig&, const RunConfig&) = default;
};

/// The words of the config file.
std::string to_string(Dtype dtype);
std::string to_string(Mode mode);
std::string to_string(Tokenizer tokenizer);
std::string to_string(WeightsLayout layout);

/// Bytes of one number: 8, 4 or 2.
std::int64_t element_size(Dtype dtype);

}  // namespace attn
