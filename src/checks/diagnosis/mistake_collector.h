// Collects the known mistakes of one layer. Private to known_mistakes.cpp and the files that it is made of.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "checks/diagnosis/known_mistakes.h"

namespace attn {

class MistakeCollector {
 public:
  explicit MistakeCollector(const LayerInput& input) : input_(input), rules_(rules_of(input.config)) {}

  /// The right formula with one thing changed.
  template <typename Change>
  void add(std::string words, const Change& change) {
    KnownMistake mistake{std::move(words), input_, rules_};
    change(mistake);
    list_.push_back(std::move(mistake));
  }

  std::vector<KnownMistake> take() { return std::move(list_); }

  const AttentionConfig& config() const { return input_.config; }
  const LayerInput& input() const { return input_; }
  const LayerRules& rules() const { return rules_; }

  /// Whether there is a mask beside the causal one.
  bool hides_more() const {
    return config().window.has_value() || config().mask.has_value() || input_.real_keys.defined();
  }

 private:
  const LayerInput& input_;
  LayerRules rules_;
  std::vector<KnownMistake> list_;
};

// Each adds those that the config can have.
void add_mask_mistakes(MistakeCollector& mistakes);
void add_score_mistakes(MistakeCollector& mistakes);     ///< softcap, ALiBi, sink.
void add_rotation_mistakes(MistakeCollector& mistakes);  ///< qk_norm, rope.

/// Of the norm of q and k. Where all its weights are 1 only the gradient shows it.
void add_unweighted_norm(MistakeCollector& mistakes);

}  // namespace attn
