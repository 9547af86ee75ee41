#include "config/config_file.h"

namespace attn {

std::string example_config() {
  return R"({
  "_": "A key that begins with _ is a comment. Try: attn-cli trace FILE, attn-cli verify FILE, attn-cli heatmap FILE.",

  "_sizes": "B sequences of T tokens, each d_model numbers wide; H heads. H must divide d_model: d_k = d_model / H.",
  "B": 2,
  "T": 8,
  "d_model": 16,
  "H": 4,

  "_qkv": "How q, k and v are stored: fused (one matrix, in thirds), fused-per-head, or separate (three matrices).",
  "qkv": "fused",
  "bias": false,

  "_causal": "true: a token looks at itself and at earlier tokens only. false: every token looks at every token.",
  "causal": true,

  "_dropout": "Of the attention weights and of the output. It acts in mode train only.",
  "dropout": 0.0,
  "mode": "eval",

  "_input": "random numbers here. A text too: give an embedding {}, leave B and T out, and try",
  "_input_text": { "kind": "text", "tokenizer": "words", "text": "the cat sat on the mat" },
  "input": { "kind": "random" },

  "_weights": "null: drawn from the seed, the same on every machine. Or a .safetensors file beside this one.",
  "weights": null,
  "seed": 0,

  "_run": "float32, float64, bfloat16 or float16, on cpu or cuda.",
  "dtype": "float32",
  "device": "cpu",

  "_more": "attn-cli config FILE prints every key there is, with its default filled in."
}
)";
}

}  // namespace attn
