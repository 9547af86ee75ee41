#include "attention/shapes.h"

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "core/error.h"
#include "core/text.h"

namespace attn {

void check_shape(const at::Tensor& tensor, std::string_view name, const std::vector<std::int64_t>& expected) {
  const std::string label(name);
  if (!tensor.defined()) {
    throw ShapeError(label + ": expected shape " + format_shape(expected) + ", got no tensor");
  }
  const auto fits = [](std::int64_t size, std::int64_t wanted) { return wanted == kAnySize || size == wanted; };
  const std::vector<std::int64_t> shape = tensor.sizes().vec();
  if (!std::equal(shape.begin(), shape.end(), expected.begin(), expected.end(), fits)) {
    const bool has_any = std::find(expected.begin(), expected.end(), kAnySize) != expected.end();
    throw ShapeError(label + ": expected shape " + format_shape(expected) + (has_any ? " (-1 is any)" : "") + ", got " +
                     format_shape(shape));
  }
}

void check_same_kind(const at::Tensor& tensor, std::string_view name, const at::Tensor& other,
                     std::string_view other_name) {
  if (tensor.scalar_type() == other.scalar_type() && tensor.device() == other.device()) return;
  std::ostringstream message;
  message << name << " is " << c10::toString(tensor.scalar_type()) << " on " << tensor.device() << ", but "
          << other_name << " is " << c10::toString(other.scalar_type()) << " on " << other.device();
  throw ShapeError(message.str());
}

}  // namespace attn
