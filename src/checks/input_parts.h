// Parts of a layer's input and changes of it, so that whoever runs the layer on a part takes the memory and the padding
// along.
#pragma once

#include <cstdint>
#include <vector>

#include "attention/attention_input.h"

namespace attn {

/// `count` batch items from `first` on. Views.
AttentionInput items_of(const AttentionInput& input, std::int64_t first, std::int64_t count);

/// These batch items, each as often as it is named.
AttentionInput chosen_items(const AttentionInput& input, const std::vector<std::int64_t>& items);

/// Another x of as many items and tokens.
AttentionInput with_x(const AttentionInput& input, const at::Tensor& x);

/// What keys and values are made of: the memory, or x.
const at::Tensor& key_source(const AttentionInput& input);

/// Another memory, or where there is none another x.
AttentionInput with_key_source(const AttentionInput& input, const at::Tensor& source);

/// x and memory in another dtype.
AttentionInput in_type(const AttentionInput& input, at::ScalarType type);

}  // namespace attn
