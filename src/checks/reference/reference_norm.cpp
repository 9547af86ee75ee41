#include "checks/reference/reference_norm.h"

#include <cmath>
#include <cstddef>

namespace attn {
namespace {

/// sqrt(mean(x^2) + eps) of the `width` numbers from `first` on.
double root_of_mean_square(const std::vector<double>& heads, std::size_t first, std::size_t width, double eps) {
  double sum = 0.0;
  for (std::size_t c = 0; c < width; ++c) sum += heads[first + c] * heads[first + c];
  return std::sqrt(sum / static_cast<double>(width) + eps);
}

}  // namespace

std::vector<double> reference_norm(const std::vector<double>& heads, const std::vector<double>& weight, double eps) {
  const std::size_t width = weight.size();
  std::vector<double> normed(heads.size());
  for (std::size_t first = 0; first < heads.size(); first += width) {
    const double root = root_of_mean_square(heads, first, width, eps);
    for (std::size_t c = 0; c < width; ++c) normed[first + c] = heads[first + c] / root * weight[c];
  }
  return normed;
}

std::vector<double> reference_norm_backward(const std::vector<double>& heads, const std::vector<double>& weight,
                                            double eps, const std::vector<double>& d_normed,
                                            std::vector<double>& d_weight) {
  const std::size_t width = weight.size();
  std::vector<double> d_heads(heads.size());
  for (std::size_t first = 0; first < heads.size(); first += width) {
    const double root = root_of_mean_square(heads, first, width, eps);
    // With y_c = x_c w_c / r: dy_c/dx_c has w_c / r, and through r, whose slope along x_c is x_c / (width r), every y.
    double through_root = 0.0;
    for (std::size_t c = 0; c < width; ++c) through_root += d_normed[first + c] * weight[c] * heads[first + c];
    through_root /= root * root * root * static_cast<double>(width);
    for (std::size_t c = 0; c < width; ++c) {
      const std::size_t at = first + c;
      d_weight[c] += d_normed[at] * heads[at] / root;
      d_heads[at] = d_normed[at] * weight[c] / root - heads[at] * through_root;
    }
  }
  return d_heads;
}

}  // namespace attn
