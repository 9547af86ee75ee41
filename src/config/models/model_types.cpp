#include "config/models/model_types.h"

namespace attn {

const std::vector<ModelType>& model_types() {
  static const std::vector<ModelType> kTypes{{"bert", translate_bert},     {"falcon", translate_falcon},
                                             {"gemma2", translate_gemma2}, {"gpt2", translate_gpt2},
                                             {"llama", translate_llama},   {"mistral", translate_mistral},
                                             {"qwen2", translate_qwen2},   {"qwen3", translate_qwen3}};
  return kTypes;
}

}  // namespace attn
