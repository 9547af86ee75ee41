// RoPE's cos and sin against the `transformers` package (scripts/model_layers.py), each kind of scaling with the
// numbers of a model in use, at positions where a slightly wrong frequency shows.
#include <gtest/gtest.h>

#include <limits>

#include "attention/rope.h"
#include "config/config_file.h"
#include "files/safetensors.h"
#include "support/tensor_helpers.h"

namespace attn {
namespace {

at::Tensor tensor_of(const SafetensorsFile& file, const std::string& name) {
  for (const SafetensorsEntry& entry : file.entries()) {
    if (entry.name != name) continue;
    at::Tensor tensor = at::empty(entry.shape, entry.dtype == "I64" ? at::kLong : at::kDouble);
    std::copy(entry.bytes.begin(), entry.bytes.end(), static_cast<char*>(tensor.data_ptr()));
    return tensor;
  }
  throw std::runtime_error("no tensor " + name);
}

TEST(ModelRopeTables, CosAndSinAgreeInFloat64) {
  const SafetensorsFile file = SafetensorsFile::load("tests/data/rope_tables.safetensors");
  const at::Tensor positions = tensor_of(file, "positions");
  for (const std::string name : {"plain", "linear", "llama3", "yarn", "yarn_by_hand"}) {
    SCOPED_TRACE(name);
    const AttentionConfig config = parse_config(file.metadata().at(name + ".config"), name, ".").attention;
    const at::Tensor cos = tensor_of(file, name + ".cos"), sin = tensor_of(file, name + ".sin");
    for (std::int64_t row = 0; row < positions.size(0); ++row) {
      const auto position = positions[row].item<std::int64_t>();
      SCOPED_TRACE(position);
      const RopeTables tables =
          rope_tables(config.rope.value(), config.d_k(), position, 1, at::TensorOptions().dtype(at::kDouble));
      // Frequencies are at most 1; one that is off by a rounding turns position p by p roundings.
      const double limit = 2.0 * static_cast<double>(position + 4) * std::numeric_limits<double>::epsilon();
      EXPECT_LE(test::max_difference(tables.cos[0], cos[row]), limit);
      EXPECT_LE(test::max_difference(tables.sin[0], sin[row]), limit);
    }
  }
}

}  // namespace
}  // namespace attn
