// The judge's own reading of the mask, in plain ifs: which key a query may look at. It shares nothing with
// attention/mask.h, so that a fault there is seen. The tensor of it is declared_mask() in plain_attention.h. No
// LibTorch.
#pragma once

#include <cstdint>

#include "config/attention_config.h"

namespace attn {

/// Where query i of T_q stands among T_k keys. A causal layer may be given its last tokens alone, the earlier ones
/// being kept in a cache: the last query stands at the last key. Without causal the queries are either all tokens, or
/// (cross-attention) another sequence with positions of its own.
std::int64_t query_position(const AttentionConfig& config, std::int64_t i, std::int64_t T_q, std::int64_t T_k);

/// Whether the query at `position` may look at the key at `key`, both counted from the start of the sequence: causal,
/// window and the mask of one's own, all by AND. Padding is not known here. Throws ShapeError when a mask given by rows
/// is too small for them.
bool may_look_at(const AttentionConfig& config, std::int64_t position, std::int64_t key);

/// The mask of one's own alone.
bool own_mask_allows(const MaskConfig& mask, std::int64_t position, std::int64_t key);

/// The same as may_look_at() for query i of T_q and key j of T_k.
bool may_look(const AttentionConfig& config, std::int64_t i, std::int64_t j, std::int64_t T_q, std::int64_t T_k);

}  // namespace attn
