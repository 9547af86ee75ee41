// A trace as a .safetensors file: what `trace --save` writes. It opens in Python with the `safetensors` package, and
// works again as a config's `weights` and `input`. Called by `cli`.
#pragma once

#include <string>

#include "trace/attention_trace.h"

namespace attn {

/// The file's bytes: every kept tensor in the order of the trace. Metadata, each a string: `format`, `format_version`,
/// `tool_version`, `torch_version`, `config` (the effective config as JSON) and, when the input has words, `tokens`
/// (B lists of T, as JSON). Throws what the writer of files/safetensors.h throws.
std::string to_safetensors(const AttentionTrace& trace);

}  // namespace attn
