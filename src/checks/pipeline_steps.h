// Which steps a layer of a config announces, in which order and of which shapes, by formulas of the judge's own; and
// which of them a check should look at where more than one would do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attention/steps.h"
#include "config/attention_config.h"

namespace attn {

/// A step that must be announced, and the shape it must have.
struct ExpectedStep {
  Step step;
  std::vector<std::string> letters;  ///< "B", "H", "T", "d_k": for messages
  std::vector<std::int64_t> shape;
};

/// In order. `T_k` is the memory's length where there is one, else T.
std::vector<ExpectedStep> expected_steps(const AttentionConfig& config, std::int64_t B, std::int64_t T,
                                         std::int64_t T_k, bool has_memory);

/// Queries and keys as they enter the scores: turned, or normed, or as they were split.
Step query_step(const AttentionConfig& config);
Step key_step(const AttentionConfig& config);

/// The scores that the mask is laid over: biased, or capped, or scaled.
Step last_scores_step(const AttentionConfig& config);

}  // namespace attn
