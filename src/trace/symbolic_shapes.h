// Shapes in letters: "(B, H, T, d_k)". What a step or a parameter should look like, by its name and the layer's kind.
// The numbers beside them come from the tensor itself; whether the two agree is for a reader, and for `verify`, to see.
#pragma once

#include <string>
#include <string_view>

#include "attention/steps.h"
#include "config/run_config.h"

namespace attn {

/// Which sizes of a run have a letter of their own. One letter stands for two sizes that are always equal.
struct ShapeLetters {
  bool single_head = false;    ///< no H: "(B, T, d_k)" where a multi-head layer has "(B, H, T, d_k)".
  bool grouped = false;        ///< H_kv beside H.
  bool two_lengths = false;    ///< T_q queries and T_k keys in place of T: with a memory, or with a cache.
  bool own_positions = false;  ///< each item has a position embedding of its own: padding comes before its tokens.
  bool has_cache = false;      ///< T is the whole sequence, T_q what a call adds to it, T_k what it may look at.
};

ShapeLetters letters_of(const RunConfig& config);

std::string symbolic_shape(Step step, const ShapeLetters& letters);

/// By the parameter's name: "c_attn.weight" is "(3*H*d_k, d_model)". Throws std::logic_error for a name that no layer
/// and no embedding of ours has.
std::string symbolic_parameter_shape(std::string_view name, const ShapeLetters& letters);

}  // namespace attn
