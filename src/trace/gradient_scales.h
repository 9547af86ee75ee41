// By what a rounding error in a saved tensor is to be measured. No LibTorch.
#pragma once

#include <map>
#include <string>

namespace attn {

/// What is known of one pair of tensors.
struct TensorSize {
  double largest = 0.0;  ///< largest finite absolute value of both.
  double rows = 1.0;     ///< how many terms a sum over its tokens has: T for q and k.
  double tokens = 1.0;   ///< B * T of a tensor of three axes, (B, T, ...).
  double last_axis = 1.0;
  double longest_row = 0.0;  ///< largest Euclidean norm of a row of the last axis, finite values only.
  double heads = 1.0;        ///< of a tensor of four axes.
};

/// The scale of the tensor `name`: its largest value; but where its numbers are a difference of much larger ones, as
/// the size of those. That is so behind the softmax, whose gradient w * (dw - sum(w * dw)) cancels (to exactly 0 where
/// a row has one key), in the gradients of q and k that follow from it, and in those of their weights and biases (a
/// bias of k moves every score of a row alike: its gradient is 0 but for rounding). `sizes` holds every shared tensor.
double scale_of(const std::string& name, const std::map<std::string, TensorSize>& sizes);

}  // namespace attn
