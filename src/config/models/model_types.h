// The kinds of model whose own config can be read: for each, what its keys mean for one attention layer. Facts, checked
// against the models' public definitions. Private to this room.
#pragma once

#include <string>
#include <vector>

#include "config/models/model_reader.h"

namespace attn {

// model_decoders.cpp
void translate_llama(ModelReader& model);
void translate_mistral(ModelReader& model);
void translate_qwen2(ModelReader& model);
void translate_qwen3(ModelReader& model);
void translate_gemma2(ModelReader& model);
// model_others.cpp
void translate_gpt2(ModelReader& model);
void translate_falcon(ModelReader& model);
void translate_bert(ModelReader& model);

struct ModelType {
  std::string name;  ///< the file's `model_type`.
  void (*translate)(ModelReader& model);
};

/// All of them, by name.
const std::vector<ModelType>& model_types();

}  // namespace attn
