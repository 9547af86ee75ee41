// The mistakes that people make when they write attention, each as a change to the plain layer's rules or parameters.
// diagnosis.cpp tries them one after the other.
#pragma once

#include <string>
#include <vector>

#include "checks/reference/plain_layer.h"

namespace attn {

struct KnownMistake {
  std::string words;  ///< "q and k are swapped"
  LayerInput input;
  LayerRules rules;
};

/// Of the forward pass: those that can be made with these parameters, each different from the right formula. Of several
/// that are one and the same at these sizes (1/sqrt(d_model) = 1/d_k) there is one, which names them all.
std::vector<KnownMistake> known_mistakes(const LayerInput& input);

/// Of the backward pass alone.
std::vector<KnownMistake> known_gradient_mistakes(const LayerInput& input);

}  // namespace attn
