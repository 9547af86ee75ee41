// Comparing two tensors so that nothing slips through: non-finite values first, then `error <= limit`, with the places
// of the first and the worst element that are wrong.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "checks/reference/error_budget.h"

namespace attn {

/// What the axes of a tensor are called in messages.
using AxisNames = std::vector<std::string>;

inline const AxisNames kTokenAxes{"batch", "token", "channel"};          ///< x, output
inline const AxisNames kQueryAxes{"batch", "head", "query", "channel"};  ///< q, context
inline const AxisNames kKeyAxes{"batch", "head", "key", "channel"};      ///< k, v
inline const AxisNames kPairAxes{"batch", "head", "query", "key"};       ///< scores, weights
inline const AxisNames kRowAxes{"batch", "head", "query"};               ///< one number a row of weights

/// `(batch 0, head 2, query 5, key 9)` of the element at `flat` in a dense tensor of these sizes. Axes without a name
/// are called "axis 4"; `first_entry` is added to the first index.
std::string place_of(std::int64_t flat, at::IntArrayRef sizes, const AxisNames& axes, std::int64_t first_entry = 0);

struct Comparison {
  double measured = 0.0;  ///< largest error; NaN when something is not finite.
  ErrorBudget limit;
  std::int64_t compared = 0;
  std::int64_t wrong = 0;                ///< outside the limit, the non-finite ones included.
  std::int64_t non_finite = 0;           ///< elements that are NaN or infinite on either side.
  std::string where_first, where_worst;  ///< empty when nothing is wrong.

  bool passed() const { return compared > 0 && wrong == 0; }
};

/// |actual - expected| <= limit, element by element. The tensors have one shape; any dtype and device.
Comparison compare(const at::Tensor& actual, const at::Tensor& expected, const ErrorBudget& limit,
                   const AxisNames& axes);

/// Every bit equal, and finite. `measured` is the largest difference.
Comparison compare_bits(const at::Tensor& actual, const at::Tensor& expected, const std::string& why,
                        const AxisNames& axes);

/// errors <= limit, for errors worked out elsewhere; NaN is wrong. `first_entry`: the number of the first entry along
/// the first axis, where the tensor is a part of a larger one.
Comparison judge_errors(const at::Tensor& errors, const ErrorBudget& limit, const AxisNames& axes,
                        std::int64_t first_entry = 0);

/// bool: other bits, and not 0 on both sides: a hidden value's sign may decide between 0 and -0 of a sum of nothing.
at::Tensor other_bits(const at::Tensor& a, const at::Tensor& b);

/// The tensor's bits as integers: equal only where the numbers are the same bit for bit (0 and -0 differ).
at::Tensor bits_of(const at::Tensor& tensor);

}  // namespace attn
