#include "checks/reference/number_format.h"

#include <cmath>
#include <limits>

#include "core/error.h"

namespace attn {
namespace {

struct Format {
  const char* name;
  double epsilon;
  double underflow;
};

Format format_of(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return {"float64", std::numeric_limits<double>::epsilon(), std::numeric_limits<double>::min()};
    case at::kFloat:
      return {"float32", static_cast<double>(std::numeric_limits<float>::epsilon()),
              static_cast<double>(std::numeric_limits<float>::min())};
    case at::kBFloat16:
      return {"bfloat16", std::ldexp(1.0, -7), static_cast<double>(std::numeric_limits<float>::min())};
    case at::kHalf:
      return {"float16", std::ldexp(1.0, -10), std::ldexp(1.0, -24)};
    default:
      throw Error(std::string("dtype: expected a floating-point type, got ") + c10::toString(type));
  }
}

}  // namespace

std::string number_name(at::ScalarType type) {
  return at::isReducedFloatingType(type) || type == at::kFloat || type == at::kDouble ? format_of(type).name
                                                                                      : c10::toString(type);
}

double epsilon_of(at::ScalarType type) { return format_of(type).epsilon; }

double underflow_of(at::ScalarType type) { return format_of(type).underflow; }

}  // namespace attn
