// What a config alone rules out: the checks that have nothing to judge in it, and why, in the words of their "n/a"
// line. Whether a layer shows what a check needs is found out by the check itself. No LibTorch.
#pragma once

#include <string>

#include "config/run_config.h"

namespace attn {

/// One rule: empty when the check has something to judge.
using Ruling = std::string (*)(const RunConfig& config);

std::string never_ruled_out(const RunConfig& config);
std::string without_future(const RunConfig& config);           ///< not causal, or one token.
std::string without_first_token(const RunConfig& config);      ///< without_future(), or a sink takes its share.
std::string without_calls(const RunConfig& config);            ///< what cannot be run in several calls.
std::string without_keys_to_compare(const RunConfig& config);  ///< one key and no sink: it has all of the weight.
std::string without_order(const RunConfig& config);            ///< one key, or a bias by places.
std::string without_weights(const RunConfig& config);          ///< the engine shows none.
std::string without_scores(const RunConfig& config);           ///< without_weights() or without_keys_to_compare().
std::string without_library(const RunConfig& config);          ///< scaled_dot_product_attention cannot do this.
std::string without_other_head(const RunConfig& config);
std::string without_groups(const RunConfig& config);
std::string without_rope(const RunConfig& config);
std::string without_window(const RunConfig& config);
std::string without_padding(const RunConfig& config);
std::string without_sink(const RunConfig& config);
std::string without_dropout(const RunConfig& config);

}  // namespace attn
