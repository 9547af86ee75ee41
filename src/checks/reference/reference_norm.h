// The independent judge's RMS norm of heads (qk_norm), forward and backward, in plain loops over double. No LibTorch.
#pragma once

#include <vector>

namespace attn {

/// Each run of weight.size() numbers x of `heads` becomes x / sqrt(mean(x^2) + eps) * weight (Zhang and Sennrich 2019,
/// equation 4).
std::vector<double> reference_norm(const std::vector<double>& heads, const std::vector<double>& weight, double eps);

/// Takes the gradient of what reference_norm() gave for `heads` back to `heads`, and adds that of the weight to
/// d_weight.
std::vector<double> reference_norm_backward(const std::vector<double>& heads, const std::vector<double>& weight,
                                            double eps, const std::vector<double>& d_normed,
                                            std::vector<double>& d_weight);

}  // namespace attn
