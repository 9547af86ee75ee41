#include "config/models/known_keys.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <vector>

#include "config/config_reader.h"

namespace attn {
namespace {

/// Those of the models that are read here, and those that every model's file may have. Only the ones that sound of
/// attention need to be here; the others make the notes say what is known.
const std::set<std::string_view>& known_keys() {
  static const std::set<std::string_view> kKeys{
      // What every file may have.
      "$schema", "architectures", "auto_map", "bos_token_id", "cls_token_id", "custom_pipelines", "eos_token_id",
      "finetuning_task", "gradient_checkpointing", "id2label", "is_decoder", "is_encoder_decoder", "label2id",
      "mask_token_id", "num_labels", "pad_token_id", "problem_type", "quantization_config", "sep_token_id",
      "task_specific_params", "tie_encoder_decoder", "tie_word_embeddings", "tokenizer_class", "torchscript",
      "transformers.js_config", "transformers_version", "unk_token_id", "use_bfloat16", "vocab_size",
      // How it is computed, not what.
      "attn_implementation", "cache_implementation", "chunk_size_feed_forward", "output_attentions",
      "output_hidden_states", "output_past", "pretraining_tp", "reorder_and_upcast_attn", "return_dict",
      "slow_but_exact", "tf_legacy_loss", "use_cache",
      // How text is generated.
      "bad_words_ids", "begin_suppress_tokens", "decoder_start_token_id", "diversity_penalty", "do_sample",
      "early_stopping", "encoder_no_repeat_ngram_size", "exponential_decay_length_penalty", "forced_bos_token_id",
      "forced_eos_token_id", "length_penalty", "max_length", "min_length", "no_repeat_ngram_size", "num_beam_groups",
      "num_beams", "num_return_sequences", "output_scores", "prefix", "remove_invalid_values", "repetition_penalty",
      "return_dict_in_generate", "suppress_tokens", "temperature", "top_k", "top_p", "typical_p",
      // Other parts of the models.
      "activation", "activation_function", "apply_residual_connection_post_layernorm", "classifier_dropout",
      "directionality", "embd_pdrop", "ffn_hidden_size", "final_logit_softcapping", "hidden_act", "hidden_activation",
      "initializer_range", "intermediate_size", "is_llama_config", "layer_norm_eps", "layer_norm_epsilon",
      "lm_head_bias", "mlp_bias", "n_ctx", "n_inner", "num_ln_in_parallel_attn", "parallel_attn", "pooler_fc_size",
      "pooler_num_attention_heads", "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type", "rms_norm_eps",
      "summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type", "summary_use_proj",
      "type_vocab_size"};
  return kKeys;
}

/// Stems that tell of attention wherever they stand.
constexpr std::array<std::string_view, 35> kStems{
    "attn",           "attention", "rope",       "rotary",     "rotat", "theta",  "yarn",   "head",   "window",
    "sliding",        "alibi",     "softcap",    "softmax",    "logit", "causal", "mask",   "query",  "position",
    "relative",       "direction", "sink",       "bias",       "scal",  "clip",   "prefix", "sparse", "dilat",
    "autoregressive", "interleav", "layer_type", "block_type", "kv",    "qk",     "drop",   "cross"};

/// Words that tell of it when they stand alone.
constexpr std::array<std::string_view, 25> kWords{
    "q",   "k",   "v",   "key", "keys",  "value",  "values", "pos",  "xpos",  "pe",     "nope",   "ntk",   "mha",
    "mqa", "gqa", "mla", "swa", "local", "global", "cap",    "embd", "embed", "layers", "stride", "groups"};

/// "useBias", "mask-type": use, bias; mask, type.
std::vector<std::string> words_of(std::string_view key) {
  std::vector<std::string> words(1);
  bool after_small = false;
  for (const char letter : key) {
    const auto byte = static_cast<unsigned char>(letter);
    const bool is_capital = std::isupper(byte) != 0;
    if (std::isalnum(byte) == 0 || (is_capital && after_small)) words.emplace_back();
    if (std::isalnum(byte) != 0) words.back().push_back(static_cast<char>(std::tolower(byte)));
    after_small = std::islower(byte) != 0;
  }
  return words;
}

std::string lower(std::string_view key) {
  std::string text(key);
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return text;
}

bool says_nothing(const std::string& key, const nlohmann::json& value) {
  if (value.is_null()) return true;
  if (key == "pruned_heads") return value.empty();
  return lower(key).find("drop") != std::string::npos && value.is_number() && value == 0.0;
}

}  // namespace

bool has_no_part_in_attention(std::string_view key) { return known_keys().count(key) > 0; }

bool sounds_of_attention(std::string_view key) {
  const std::string text = lower(key);
  const std::vector<std::string> words = words_of(key);
  return std::any_of(kStems.begin(), kStems.end(),
                     [&](std::string_view stem) { return text.find(stem) != std::string::npos; }) ||
         std::any_of(words.begin(), words.end(), [](const std::string& word) {
           return std::find(kWords.begin(), kWords.end(), word) != kWords.end();
         });
}

std::optional<SoundingKey> find_sounding_key(const std::string& key, const nlohmann::json& value,
                                             const std::string& pointer) {
  if (has_no_part_in_attention(key) || says_nothing(key, value)) return std::nullopt;
  if (sounds_of_attention(key)) return SoundingKey{pointer, value};
  if (!value.is_structured()) return std::nullopt;
  for (const auto& item : value.items()) {  // of an array the keys are numbers
    if (auto found = find_sounding_key(item.key(), item.value(), pointer_to(pointer, item.key()))) return found;
  }
  return std::nullopt;
}

}  // namespace attn
