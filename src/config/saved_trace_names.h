// Names in a saved trace (`attn-cli trace --save`) that several rooms must agree on: the writer, the readers of
// `weights` and `input`, and compare. Constants only.
#pragma once

namespace attn {

inline constexpr const char* kSavedTraceFormat = "attn-cli trace";  ///< the value of the metadata key `format`.
inline constexpr int kSavedTraceVersion = 1;                        ///< of the metadata key `format_version`.
inline constexpr const char* kSavedX = "forward.x";                 ///< the layer's input.

}  // namespace attn
