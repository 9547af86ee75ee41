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

/// Of the forward pass: those that can be made with these parameters. Of several that are one and the same at these
/// sizes (1/sqrt(d_model) = 1/d_k) there is one, which names them all. On an input that gives it no occasion (a padding
/// mask that hides nothing) a mistake may give the right numbers; then it explains nothing.
std::vector<KnownMistake> known_mistakes(const LayerInput& input);

/// Of the backward pass alone, beside a gradient that is lost or doubled on its way to one parameter.
std::vector<KnownMistake> known_gradient_mistakes(const LayerInput& input);

}  // namespace attn
