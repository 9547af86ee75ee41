// The record of two saved traces held against each other, as plain numbers. Filled by compare_traces(), written by
// `report`. No LibTorch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace attn {

/// What one of the two files says about itself; empty where it does not.
struct ComparedFile {
  std::string name;          ///< its path.
  std::string tool_version;  ///< of the attn-cli that wrote it.
  std::string torch_version;
  std::int64_t tensors = 0;
};

/// How far two tensors may be apart.
enum class CompareRule {
  kRounding,  ///< as far as rounding explains, see rounding_limit().
  kLimit,     ///< as far as the user says, relative to the scale.
  kExact,     ///< not at all: the same dtype, the same bits.
};

/// One tensor that both files have.
struct TensorComparison {
  std::string name;               ///< "forward.scores"
  std::vector<std::string> axes;  ///< "batch", "head", "query", "key"
  std::vector<std::int64_t> shape;
  std::string dtype_a, dtype_b;  ///< as in the file: "F32".
  bool identical = false;        ///< same dtype, same bits.
  std::int64_t elements = 0;
  std::int64_t different = 0;       ///< elements whose values differ; with kExact, whose bits do.
  std::int64_t beyond = 0;          ///< elements further apart than the limit.
  double largest_difference = 0.0;  ///< infinite where one side is NaN or infinite and the other is not that.
  double scale = 0.0;               ///< what `relative` and the limit are measured by: the largest finite value.
  double relative = 0.0;            ///< largest_difference / scale; 0 where nothing differs.
  double limit = 0.0;               ///< what largest_difference may be.
  std::vector<std::int64_t> worst;  ///< index of the largest difference, an entry an axis; empty where nothing differs.
  double worst_a = 0.0, worst_b = 0.0;

  bool within() const { return beyond == 0; }
};

/// Two saved traces.
struct TraceComparison {
  ComparedFile a, b;
  CompareRule rule = CompareRule::kRounding;
  std::string limit_reason;
  std::vector<TensorComparison> tensors;    ///< in the order in which a run computes them.
  std::vector<std::string> only_a, only_b;  ///< names; not compared.

  /// The first tensor beyond its limit, if any: where the two part.
  const TensorComparison* first_parted() const {
    for (const TensorComparison& tensor : tensors) {
      if (!tensor.within()) return &tensor;
    }
    return nullptr;
  }

  bool all_identical() const {
    for (const TensorComparison& tensor : tensors) {
      if (!tensor.identical) return false;
    }
    return true;
  }
};

}  // namespace attn
