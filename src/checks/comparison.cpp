#include "checks/comparison.h"

#include <ATen/ATen.h>

#include <limits>

#include "core/error.h"
#include "core/text.h"

namespace attn {
namespace {

void fill_places(Comparison& comparison, const at::Tensor& wrong, const at::Tensor& errors, const AxisNames& axes,
                 std::int64_t first_entry) {
  comparison.wrong = wrong.sum().item<std::int64_t>();
  if (comparison.wrong == 0) return;
  comparison.where_first =
      place_of(wrong.to(at::kByte).argmax().item<std::int64_t>(), wrong.sizes(), axes, first_entry);
  const at::Tensor wrong_errors = at::where(wrong, errors, -1.0);  // argmax takes the first NaN, if there is one
  comparison.where_worst = place_of(wrong_errors.argmax().item<std::int64_t>(), wrong.sizes(), axes, first_entry);
}

at::Tensor on_cpu(const at::Tensor& tensor) { return tensor.detach().to(at::kCPU).contiguous(); }

void require_same_shape(const at::Tensor& actual, const at::Tensor& expected) {
  if (actual.sizes() == expected.sizes()) return;
  throw Error("comparison: expected shape " + format_shape(expected.sizes().vec()) + ", got " +
              format_shape(actual.sizes().vec()));
}

/// |actual - expected| in float64, NaN where either side is not finite.
at::Tensor errors_between(const at::Tensor& actual, const at::Tensor& expected) {
  const at::Tensor a = actual.to(at::kDouble), b = expected.to(at::kDouble);
  const at::Tensor finite = at::isfinite(a).logical_and_(at::isfinite(b));
  return at::where(finite, (a - b).abs_(), std::numeric_limits<double>::quiet_NaN());
}

}  // namespace

std::string place_of(std::int64_t flat, at::IntArrayRef sizes, const AxisNames& axes, std::int64_t first_entry) {
  std::vector<std::string> parts(sizes.size());
  for (std::size_t axis = sizes.size(); axis-- > 0;) {
    const std::string name = axis < axes.size() ? axes[axis] : "axis " + std::to_string(axis);
    parts[axis] = name + " " + std::to_string(flat % sizes[axis] + (axis == 0 ? first_entry : 0));
    flat /= sizes[axis];
  }
  return "(" + join(parts) + ")";
}

Comparison judge_errors(const at::Tensor& errors, const ErrorBudget& limit, const AxisNames& axes,
                        std::int64_t first_entry) {
  Comparison comparison;
  comparison.limit = limit;
  comparison.compared = errors.numel();
  if (comparison.compared == 0) return comparison;
  const at::Tensor numbers = on_cpu(errors).to(at::kDouble);
  comparison.measured = numbers.max().item<double>();  // NaN if there is one
  comparison.non_finite = at::isfinite(numbers).logical_not().sum().item<std::int64_t>();
  fill_places(comparison, numbers.le(limit.max_abs).logical_not(), numbers, axes, first_entry);
  return comparison;
}

Comparison compare(const at::Tensor& actual, const at::Tensor& expected, const ErrorBudget& limit,
                   const AxisNames& axes) {
  require_same_shape(actual, expected);
  return judge_errors(errors_between(on_cpu(actual), on_cpu(expected)), limit, axes);
}

Comparison compare_bits(const at::Tensor& actual, const at::Tensor& expected, const std::string& why,
                        const AxisNames& axes) {
  require_same_shape(actual, expected);
  const at::Tensor a = on_cpu(actual), b = on_cpu(expected);
  const at::Tensor errors = errors_between(a, b);
  Comparison comparison;
  comparison.limit = {0.0, why};
  comparison.compared = a.numel();
  if (comparison.compared == 0) return comparison;
  comparison.measured = errors.max().item<double>();
  comparison.non_finite = at::isnan(errors).sum().item<std::int64_t>();
  fill_places(comparison, bits_of(a).ne(bits_of(b)).logical_or_(at::isnan(errors)), errors, axes, 0);
  return comparison;
}

at::Tensor other_bits(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor both_zero = a.eq(0).logical_and(b.eq(0));
  return bits_of(a.contiguous()).ne(bits_of(b.contiguous())).logical_and(both_zero.logical_not());
}

at::Tensor bits_of(const at::Tensor& tensor) {
  switch (tensor.element_size()) {
    case 8:
      return tensor.view(at::kLong);
    case 4:
      return tensor.view(at::kInt);
    case 2:
      return tensor.view(at::kShort);
    default:
      throw Error("bits: expected numbers of 2, 4 or 8 bytes");
  }
}

}  // namespace attn
