// What a run was, in words: the same lines head a trace and a verification, and title a picture.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "config/run_config.h"

namespace attn {

/// "multi-head, qkv fused, no bias, causal, window 4, rope half, softcap 50": one line, the title of a picture too.
std::string layer_facts(const AttentionConfig& config);

/// "B 2, T 8, d_model 64, H 4, d_k 16"; "T_q 4, T_k 6" with a memory, "H 8, H_kv 2" of grouped heads.
std::string shape_facts(const RunConfig& config);

/// "text, tokenized by words", "random".
std::string input_facts(const RunConfig& config);

/// One more line of facts: "sweep", "dtype=float64".
struct RunFact {
  std::string name;  ///< of at most 7 letters.
  std::string words;
};

/// The title line and a line each for layer, shape, what feature_facts() says, input and run, and `more`, then an empty
/// one. Long ones are wrapped, and a fact without a name goes on with the one before it. `what`: "trace".
void write_run_facts(std::ostream& out, std::string_view what, const RunConfig& config, int threads,
                     const std::string& torch_version, bool color, const std::vector<RunFact>& more = {});

/// Bold on a terminal.
std::string heading(const std::string& text, bool color);

}  // namespace attn
