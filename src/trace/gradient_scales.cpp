#include "trace/gradient_scales.h"

#include <algorithm>
#include <cmath>

namespace attn {
namespace {

using Sizes = std::map<std::string, TensorSize>;

TensorSize size_of(const std::string& name, const Sizes& sizes) {
  const auto found = sizes.find(name);
  return found == sizes.end() ? TensorSize{} : found->second;  // not shared: adds nothing
}

double largest(const std::string& name, const Sizes& sizes) { return size_of(name, sizes).largest; }

/// The gradient of q is a sum of T products of the scores' gradient and k; that of k the same with q.
double scale_of_head_gradient(const std::string& other, const Sizes& sizes) {
  const TensorSize factor = size_of("forward." + other, sizes);
  const double scores = largest("backward.weights", sizes) / std::sqrt(factor.last_axis);
  return std::sqrt(factor.rows) * scores * factor.largest;
}

/// What the gradient of this step may be a difference of.
double cancelled(const std::string& step, const Sizes& sizes) {
  if (step == "masked_scores" || step == "scaled_scores" || step == "scores") return largest("backward.weights", sizes);
  if (step == "q" || step == "q_proj") return scale_of_head_gradient("k", sizes);
  if (step == "k" || step == "k_proj") return scale_of_head_gradient("q", sizes);
  if (step == "qkv") return std::max(scale_of_head_gradient("k", sizes), scale_of_head_gradient("q", sizes));
  return 0.0;
}

}  // namespace

double scale_of(const std::string& name, const Sizes& sizes) {
  const double own = largest(name, sizes);
  const std::size_t dot = name.find('.');
  if (dot == std::string::npos) return own;
  const std::string pass = name.substr(0, dot);
  if (pass == "backward") return std::max(own, cancelled(name.substr(dot + 1), sizes));
  if (pass != "gradient") return own;

  // A parameter's gradient is a sum over all B * T tokens.
  const std::string parameter = name.substr(dot + 1);
  std::string step = parameter.substr(0, parameter.find('.'));
  if (step == "c_attn" || step == "qkv_proj") step = "qkv";
  const TensorSize x = size_of("forward.x", sizes);
  const double terms = std::sqrt(x.rows) * cancelled(step, sizes);
  return std::max(own, parameter.ends_with(".bias") ? terms : terms * x.largest);
}

}  // namespace attn
