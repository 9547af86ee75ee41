// The record of one traced run, as plain numbers. Filled by trace_attention(), written by `report`. No LibTorch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/run_config.h"

namespace attn {

/// Of the finite elements; absent where there are none (an all-NaN tensor). Counts are of all elements.
struct TensorStats {
  std::optional<double> min, max, mean, std;  ///< std: of the population (divided by n).
  std::int64_t nan = 0;
  std::int64_t inf = 0;  ///< of either sign: masked scores are -inf by right.
};

/// One announced tensor, or one gradient.
struct TraceStep {
  std::string pass;  ///< "forward"; "backward": the gradient of the step `name`; "gradient": of the parameter `name`.
  std::int64_t call = 0;  ///< which forward call, counted from 0; without a cache there is only one.
  std::string name;
  std::string symbolic;  ///< "(B, H, T, d_k)"
  std::vector<std::int64_t> shape;
  std::string dtype;  ///< "float32"
  std::vector<std::int64_t> strides;
  bool contiguous = true;
  std::int64_t bytes = 0;  ///< of its elements, whether or not they share memory with another step.
  TensorStats stats;
  std::vector<double> values;  ///< row-major; only when asked for and small enough.
};

/// One forward call of the layer: all there is, or with a cache what one piece of the sequence took.
struct ForwardCall {
  std::int64_t call = 0;         ///< counted from 0.
  std::int64_t first_query = 0;  ///< position of its first token in the sequence.
  std::int64_t queries = 0;      ///< T_q: its tokens.
  std::int64_t first_key = 0;    ///< position of the oldest key that it may look at.
  std::int64_t keys = 0;         ///< T_k
  std::int64_t cache_bytes = 0;  ///< of the keys and values that are kept for the next call; 0 without a cache.
  std::string backend;           ///< "flash": what LibTorch chose; empty for the engine explicit.
};

/// One tensor as its bytes: what goes into a file.
struct KeptTensor {
  std::string name;   ///< "forward.scores", of a later call "forward.3.scores"; "backward.scores";
                      ///< "gradient.c_attn.weight"; a parameter's own name; "x": all of x, with a cache.
  std::string dtype;  ///< in the words of .safetensors: "F32", "BF16", "I64".
  std::vector<std::int64_t> shape;
  std::string bytes;  ///< row-major, little-endian.
};

struct TraceSummary {
  std::int64_t parameters = 0;     ///< of the layer and its embedding.
  std::int64_t forward_flops = 0;  ///< matrix products only, a multiply-add counts as 2.
  std::int64_t backward_flops = 0;
  std::int64_t attention_bytes = 0;    ///< one (B, H, T, T) tensor; of several calls the largest.
  std::int64_t attention_tensors = 0;  ///< how many of them the trace met, forward and backward.
  std::int64_t mask_bytes = 0;         ///< the causal mask buffer.
  std::int64_t built_mask_bytes = 0;   ///< the mask that a call builds of several (window, padding, its own), the
                                       ///< largest; 0 where the buffer is all there is.
  double loss = 0.0;                   ///< sum of output * dy.
};

/// One traced run.
struct AttentionTrace {
  RunConfig config;
  std::string torch_version;
  int threads = 0;
  std::vector<ForwardCall> calls;  ///< in order.
  std::vector<TraceStep> steps;    ///< forward, then backward in the order in which the gradients arise.
  std::vector<KeptTensor> kept;    ///< steps, gradients, parameters; only when asked for.
  TraceSummary summary;
  std::vector<std::vector<std::string>> token_labels;  ///< B lists of T; empty when the input has no words.
  std::vector<std::string> notes;                      ///< for stderr.
  double seconds = 0.0;
};

}  // namespace attn
