#include "config/run_config.h"

#include "config/words.h"

namespace attn {

std::string to_string(Dtype dtype) { return word_of(kDtypeWords, dtype); }
std::string to_string(Mode mode) { return word_of(kModeWords, mode); }
std::string to_string(Tokenizer tokenizer) { return word_of(kTokenizerWords, tokenizer); }
std::string to_string(WeightsLayout layout) { return word_of(kWeightsLayoutWords, layout); }
std::string to_string(PaddingSide side) { return word_of(kPaddingWords, side); }

bool is_real_key(const RunConfig& config, std::int64_t b, std::int64_t j) {
  if (!config.padding.has_value()) return true;
  const std::int64_t length = config.lengths.at(static_cast<std::size_t>(b));
  return *config.padding == PaddingSide::kRight ? j < length : j >= key_length(config) - length;
}

std::int64_t element_size(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat64:
      return 8;
    case Dtype::kFloat32:
      return 4;
    case Dtype::kBFloat16:
    case Dtype::kFloat16:
      return 2;
  }
  throw std::logic_error("a dtype without a size");
}

}  // namespace attn
