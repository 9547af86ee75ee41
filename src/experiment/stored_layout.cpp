#include "experiment/stored_layout.h"

#include "core/error.h"
#include "core/text.h"

namespace attn {
namespace {

bool is_square(const StoredWeight& weight) { return weight.due[0] == weight.due[1]; }

std::vector<std::int64_t> swapped(const std::vector<std::int64_t>& shape) { return {shape[1], shape[0]}; }

std::string with_shape(const StoredWeight& weight) { return weight.name + " " + format_shape(weight.stored); }

/// The first weight whose shape shows this layout; null when none does.
const StoredWeight* first_showing(const std::vector<StoredWeight>& weights, bool transposed) {
  for (const StoredWeight& weight : weights) {
    if (!is_square(weight) && weight.stored == (transposed ? swapped(weight.due) : weight.due)) return &weight;
  }
  return nullptr;
}

std::vector<std::string> square_names(const std::vector<StoredWeight>& weights) {
  std::vector<std::string> names;
  for (const StoredWeight& weight : weights) {
    if (is_square(weight)) names.push_back(weight.name);
  }
  return names;
}

}  // namespace

StoredLayout find_stored_layout(const std::vector<StoredWeight>& weights, WeightsLayout wanted, bool is_ours,
                                const std::string& source_name) {
  if (wanted != WeightsLayout::kAuto) return {wanted == WeightsLayout::kInOut, ""};
  const StoredWeight* upright = first_showing(weights, false);
  const StoredWeight* lying = first_showing(weights, true);
  if (upright != nullptr && lying != nullptr) {
    throw ConfigError(source_name + ": " + with_shape(*upright) + " is [out, in], but " + with_shape(*lying) +
                      " is [in, out]; expected one layout for all weights of the layer");
  }
  const std::vector<std::string> squares = square_names(weights);
  if (lying != nullptr) {
    std::string note = source_name + ": " + with_shape(*lying) +
                       " is [in, out], as GPT-2 keeps it: all 2-D weights of the layer are read transposed";
    if (!squares.empty()) note += ", square ones too (" + join(squares) + ")";
    return {true, note};
  }
  if (upright == nullptr && squares.size() == weights.size() && !is_ours) {
    return {false, source_name +
                       ": every weight of the layer is square, so no shape tells [out, in] from [in, out]: taken as "
                       "[out, in], as PyTorch keeps them; the config's weights_layout says it for sure"};
  }
  return {};
}

}  // namespace attn
