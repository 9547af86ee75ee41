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

/// The name of q or k ("q", "k") as it entered the scores.
std::string last_form(const std::string& letter, const Sizes& sizes) {
  for (const char* suffix : {"_rotated", "_normed"}) {
    if (sizes.contains("forward." + letter + suffix)) return letter + suffix;
  }
  return letter;
}

/// The gradient of the weights: dot products of the context's gradient and values. The engine sdpa announces none, so
/// there it is what such a product is at most (Cauchy and Schwarz).
double scale_of_weights_gradient(const Sizes& sizes) {
  if (sizes.contains("backward.weights")) return largest("backward.weights", sizes);
  return size_of("backward.context", sizes).longest_row * size_of("forward.v", sizes).longest_row;
}

/// The gradient of q is a sum of T products of the scores' gradient and k; that of k the same with q, once for each
/// query head that it serves.
double scale_of_head_gradient(const std::string& letter, const Sizes& sizes) {
  const TensorSize factor = size_of("forward." + last_form(letter == "q" ? "k" : "q", sizes), sizes);
  const TensorSize own = size_of("forward." + letter, sizes);
  const double scores = scale_of_weights_gradient(sizes) / std::sqrt(factor.last_axis);
  const double served = letter == "k" && own.heads > 0.0 ? std::max(factor.heads / own.heads, 1.0) : 1.0;
  return std::sqrt(factor.rows * served) * scores * factor.largest;
}

/// How much larger a gradient becomes on its way through the norm of q or k: the norm divides by the root mean square.
double norm_growth(const std::string& letter, const Sizes& sizes) {
  const double before = largest("forward." + letter, sizes);
  const double after = largest("forward." + letter + "_normed", sizes);
  return after > 0.0 && before > 0.0 ? after / before : 1.0;
}

/// What the gradient of this step may be a difference of.
double cancelled(const std::string& step, const Sizes& sizes) {
  if (step.ends_with("_scores") || step == "scores") return scale_of_weights_gradient(sizes);
  for (const std::string letter : {"q", "k"}) {
    if (step == letter + "_rotated" || step == letter + "_normed") return scale_of_head_gradient(letter, sizes);
    if (step == letter || step == letter + "_proj") {
      return scale_of_head_gradient(letter, sizes) * norm_growth(letter, sizes);
    }
  }
  if (step == "qkv") return std::max(cancelled("q", sizes), cancelled("k", sizes));
  // With a memory x is projected to q alone; else v's gradient comes back to it as well, which is no such difference.
  if (sizes.contains("forward.memory") && (step == "x" || step.ends_with("_embedding"))) {
    const double width = size_of("backward.q_proj", sizes).last_axis;
    return std::sqrt(width) * largest("q_proj.weight", sizes) * cancelled("q_proj", sizes);
  }
  return 0.0;
}

/// What a projection multiplies.
std::string input_of(const std::string& step, const Sizes& sizes) {
  return step == "k_proj" && sizes.contains("forward.memory") ? "forward.memory" : "forward.x";
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
  const double tokens = size_of("forward.x", sizes).tokens;
  if (step == "sinks") return std::max(own, std::sqrt(tokens) * scale_of_weights_gradient(sizes));
  if (step == "q_norm" || step == "k_norm") {
    const std::string letter = step.substr(0, 1);
    const TensorSize normed = size_of("forward." + letter + "_normed", sizes);
    return std::max(own, std::sqrt(tokens * normed.heads) * cancelled(letter + "_normed", sizes) * normed.largest);
  }
  if (step.ends_with("_embedding")) return std::max(own, std::sqrt(tokens) * cancelled(step, sizes));
  if (step == "c_attn" || step == "qkv_proj") step = "qkv";
  const TensorSize input = size_of(input_of(step, sizes), sizes);
  const double terms = std::sqrt(input.tokens) * cancelled(step, sizes);
  return std::max(own, parameter.ends_with(".bias") ? terms : terms * input.largest);
}

}  // namespace attn
