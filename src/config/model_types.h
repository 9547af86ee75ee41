// The kinds of model whose own config can be read: for each, what its keys mean for one attention layer. Facts, checked
// against the models' public definitions. Private to this room.
#pragma once

#include <string>
#include <vector>

#include "config/model_reader.h"

namespace attn {

struct ModelType {
  std::string name;  ///< the file's `model_type`.
  void (*translate)(ModelReader& model);
};

/// All of them, by name.
const std::vector<ModelType>& model_types();

}  // namespace attn
