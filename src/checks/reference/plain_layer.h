// A whole layer in the plainest LibTorch calls: matmul, masked fill, softmax, matmul, with its own reading of the qkv
// layouts, never attention/'s. The limits of reference_checks.cpp are built on its rounding. Its rules can be changed
// one at a time, which is how diagnosis.cpp tries the known mistakes. Parts: plain_heads.h, plain_scores.h.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include <ATen/core/Tensor.h>

#include "checks/reference/plain_scores.h"
#include "config/attention_config.h"

namespace attn {

/// What a layer is made of. Parameters by name, as stored; all tensors but real_keys of one dtype and device.
struct LayerInput {
  AttentionConfig config;
  at::Tensor x;  ///< (B, T, d_model)
  std::map<std::string, at::Tensor> parameters;
  at::Tensor memory = {};     ///< (B, T_k, d_model): keys and values come from it; undefined: from x.
  at::Tensor real_keys = {};  ///< (B, T_k) bool, false = padding; undefined: none.

  std::int64_t key_len() const { return memory.defined() ? memory.size(1) : x.size(1); }
};

/// The same numbers in float64.
LayerInput in_double(const LayerInput& input);

/// How the declared mask is used. `visible` is what LayerRules::masked_by and the padding leave.
enum class MaskRule {
  kDeclared,      ///< visible
  kNone,          ///< any key
  kInverted,      ///< not visible
  kAfterSoftmax,  ///< visible, but multiplied into the weights of all keys; rows are not normalised again.
};

/// Which keys the causal mask shows to query i; the other masks stay what they are.
enum class CausalRule {
  kUpToItself,  ///< j <= i: right.
  kNextToo,     ///< j <= i + 1
  kNotItself,   ///< j < i
  kFromItself,  ///< j >= i: the upper triangle.
};

enum class OwnMaskRule { kDeclared, kInverted, kTransposed };

enum class PaddingRule {
  kKeys,     ///< hides keys: right.
  kQueries,  ///< hides all keys from the queries that are padding, whose weights are then 0.
  kIgnored,
  kOfItemBefore,  ///< every item has the padding of the one before; the first that of the last.
  kOtherSide,     ///< the keys' padding from right to left.
};

/// The weights of a query that may look at no key.
enum class EmptyRowRule { kZero, kAllAlike, kNan };

enum class NormRule { kNone, kBeforeRope, kAfterRope };

/// How the layer is computed: set by rules_of() as the config says, then changed one at a time.
struct LayerRules {
  ScoreRules scores;
  bool softcap_after_mask = false;  ///< hidden scores become -softcap.
  bool sink = false;
  AttentionConfig masked_by;  ///< causal, window and mask of it count, nothing else.
  CausalRule causal = CausalRule::kUpToItself;
  OwnMaskRule own_mask = OwnMaskRule::kDeclared;
  PaddingRule padding = PaddingRule::kKeys;
  MaskRule mask = MaskRule::kDeclared;
  EmptyRowRule empty_rows = EmptyRowRule::kZero;
  std::int64_t softmax_axis = 3;                  ///< of (B, H, T_q, T_k)
  std::optional<at::ScalarType> weights_rounded;  ///< to this type and back.
  QkvLayout qkv = QkvLayout::kFused;              ///< how a fused projection is read.
  std::array<std::size_t, 3> parts{0, 1, 2};      ///< which projection is taken as q, k and v.
  NormRule norm = NormRule::kNone;
  bool norm_weighted = true;
  bool norm_over_heads = false;  ///< one norm over all heads of a token, not one a head.
  bool norm_root_fixed = false;  ///< no gradient goes back through its root.
  std::optional<RopeConfig> rope;
  std::array<bool, 3> turned{true, true, false};  ///< which of q, k and v rope turns.
  std::array<at::Tensor, 3> positions;            ///< (T) each, by which it turns them; undefined: 0 ... T-1.
  std::optional<at::ScalarType> rope_table;       ///< cos and sin are rounded to it.
  /// What happens to k and v (B, H_kv, T_k, d_k) on their way to the query heads, which may share them then, or have
  /// one each (B, H, T_k, d_k); empty: nothing.
  std::array<std::function<at::Tensor(const at::Tensor&)>, 2> key_change;
  bool split_by_reshape = false;    ///< (B, T, H*d_k) taken as (B, H, T, d_k) as it lies in memory.
  bool merge_by_reshape = false;    ///< the same back.
  bool heads_reversed = false;      ///< merged in the order H-1 ... 0.
  bool heads_averaged = false;      ///< each replaced by the mean of all.
  std::int64_t head_left_out = -1;  ///< its context is 0; -1: none.
  bool output_projected = true;
  bool input_added = false;                           ///< output + x.
  bool by_library = false;                            ///< LibTorch's own function between q, k, v and context.
  std::array<double, 3> gradient_factor{1., 1., 1.};  ///< of what comes back to q, k and v; 0: cut off.
};

/// What the config says.
LayerRules rules_of(const AttentionConfig& config);

struct PlainLayerOutput {
  at::Tensor q;        ///< (B, H, T, d_k), as it enters the scores: normed and turned.
  at::Tensor k, v;     ///< (B, H_kv, T_k, d_k)
  at::Tensor weights;  ///< (B, H, T, T_k); a row that sees no key is 0.
  at::Tensor context;  ///< (B, H, T, d_k)
  at::Tensor output;   ///< (B, T, d_model)
  /// (B or 1, T) bool: under a wrong mask these queries see no key, though they should. What a layer makes of that is
  /// open, so their numbers say nothing. Undefined: none.
  at::Tensor open_rows;
};

/// In the dtype of the input, part of the autograd graph of its tensors. Throws std::out_of_range when a parameter is
/// missing.
PlainLayerOutput plain_layer(const LayerInput& input, const LayerRules& rules);

/// PlainLayerOutput's, of the queries that see some key, (B or 1, 1, T) bool.
at::Tensor open_rows(const LayerInput& input, const at::Tensor& sees_some_key);

/// Gradients of sum(output * d_output) at x, at the memory where there is one, and at every parameter: "x", "memory"
/// and the parameters' names.
std::map<std::string, at::Tensor> plain_layer_backward(const LayerInput& input, const LayerRules& rules,
                                                       const at::Tensor& d_output);

}  // namespace attn
