#include "config/models/model_reader.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/error.h"
#include "core/text.h"

namespace attn {
namespace {

/// Parts of names that say: this is about attention.
constexpr std::array<std::string_view, 15> kSoundsOfAttention{
    "attn",       "attention", "rope", "rotary", "head", "window", "alibi",
    "softcap",    "causal",    "qk_",  "kv_",    "sink", "query",  "position_embedding",
    "layer_types"};

/// Our keys that somebody may write into a model's file, where nothing would read them.
constexpr std::array<std::string_view, 5> kOurSizes{"B", "T", "H", "H_kv", "d_k"};

bool sounds_of_attention(std::string_view key) {
  return std::any_of(kSoundsOfAttention.begin(), kSoundsOfAttention.end(),
                     [key](std::string_view part) { return key.find(part) != std::string_view::npos; });
}

/// Null, false and what is empty switch nothing on.
bool says_nothing(const nlohmann::json& value) {
  return value.is_null() || (value.is_boolean() && !value.get<bool>()) || (value.is_structured() && value.empty());
}

/// A value for a line of text: strings without quotes.
std::string shown(const nlohmann::json& value) {
  return value.is_string() ? printable(value.get<std::string>()) : shortened(value.dump());
}

}  // namespace

ModelReader::ModelReader(const nlohmann::json& root, const ConfigSource& source, std::string model_type,
                         std::optional<std::int64_t> layer, const std::set<std::string>& given_keys)
    : root_(&root),
      file_(root, "", source),
      model_type_(std::move(model_type)),
      layer_(layer),
      given_keys_(&given_keys) {
  result_.config = nlohmann::json::object();
  // What every file may have, and what has no part in one layer's mathematics.
  pass_over({"model_type", "output_attentions", "attn_implementation", "add_cross_attention", "is_encoder_decoder",
             "final_logit_softcapping", "lm_head_bias"});
}

bool ModelReader::has(const char* key) const { return file_.has(key); }

const char* ModelReader::find_key(std::initializer_list<const char*> keys, const std::string& our_key) {
  const char* found = nullptr;
  for (const char* key : keys) {
    if (!root_->contains(key)) continue;
    read_.insert(key);
    if (found == nullptr || !has(found)) {
      found = has(key) || found == nullptr ? key : found;
    } else if (has(key) && (*root_)[key] != (*root_)[found]) {
      refuse(pointer_to("", key),
             "must be as /" + std::string(found) + " (" + shown((*root_)[found]) +
                 "), of which it is another name, got " + describe((*root_)[key]),
             our_key);
    }
  }
  return found;
}

nlohmann::json ModelReader::value(std::initializer_list<const char*> keys, const nlohmann::json& model_default,
                                  const std::string& our_key) {
  const char* key = find_key(keys, our_key);
  return key == nullptr ? model_default : (*root_)[key];
}

std::string ModelReader::default_words(const nlohmann::json& value, const std::string& key) const {
  return shown(value) + ", the default of " + model_type_ + ", as the file has no /" + key;
}

bool ModelReader::is_given(const std::string& our_key) const {
  return std::any_of(given_keys_->begin(), given_keys_->end(), [&our_key](const std::string& given) {
    return our_key == given || our_key.starts_with(given + ".");
  });
}

std::optional<std::int64_t> ModelReader::integer(std::initializer_list<const char*> keys,
                                                 std::optional<std::int64_t> model_default, std::int64_t min) {
  const char* key = find_key(keys, "");
  return key == nullptr ? model_default : file_.integer(key, min, kMaxSize);
}

std::optional<double> ModelReader::number(const char* key, std::optional<double> model_default) {
  read_.insert(key);
  return root_->contains(key) ? file_.number(key) : model_default;
}

bool ModelReader::flag(const char* key, bool model_default) {
  read_.insert(key);
  return file_.boolean(key).value_or(model_default);
}

void ModelReader::take(const char* our_key, std::initializer_list<const char*> keys,
                       const nlohmann::json& model_default) {
  const char* in_file = find_key(keys, our_key);
  const nlohmann::json& found = in_file == nullptr ? model_default : (*root_)[in_file];
  if (found.is_null()) return;
  if (in_file != nullptr) {
    const std::string pointer = pointer_to("", in_file);
    set(our_key, found, "from " + pointer, pointer);
  } else {
    set(our_key, found, "by " + model_type_ + "'s default, the file has no /" + *keys.begin(),
        default_words(found, *keys.begin()));
  }
}

void ModelReader::set(const std::string& our_key, const nlohmann::json& value, const std::string& reason,
                      const std::string& file_pointer) {
  nlohmann::json* object = &result_.config;
  std::string pointer;
  std::size_t start = 0;
  for (std::size_t dot = our_key.find('.'); dot != std::string::npos; dot = our_key.find('.', start)) {
    object = &(*object)[our_key.substr(start, dot - start)];
    pointer += "/" + our_key.substr(start, dot - start);
    start = dot + 1;
  }
  (*object)[our_key.substr(start)] = value;
  pointer += "/" + our_key.substr(start);
  if (!file_pointer.empty()) result_.file_pointers[pointer] = file_pointer;
  origins_.emplace_back(our_key, our_key + " " + shown(value) + " " + reason);
}

void ModelReader::set_as_every_layer(const std::string& our_key, const nlohmann::json& value) {
  set(our_key, value, "as every " + model_type_ + " layer has it");
}

void ModelReader::refuse(const std::string& file_pointer, const std::string& reason, const std::string& our_key) const {
  if (!our_key.empty() && is_given(our_key)) return;
  throw ConfigError(file_.source().where(file_pointer) + ": " + reason);
}

void ModelReader::pass_over(std::initializer_list<const char*> keys) {
  for (const char* key : keys) read_.insert(key);
}

std::int64_t ModelReader::layer_of(std::initializer_list<const char*> keys, std::int64_t model_default,
                                   bool layers_differ) {
  const std::int64_t count = integer(keys, model_default).value_or(model_default);
  const std::int64_t layer = layer_.value_or(0);
  if (layer >= count) {
    throw ConfigError("--set: /layer: must be from 0 to " + std::to_string(count - 1) + ", " + model_type_ + " has " +
                      std::to_string(count) + " layers here, got " + std::to_string(layer));
  }
  if (layers_differ) {
    note("layer " + std::to_string(layer) + " of 0 to " + std::to_string(count - 1) +
         (layer_ ? " by --set layer" : "; its layers differ, another one by --set layer=N"));
  }
  return layer;
}

void ModelReader::note_dtype() {
  const char* key = find_key({"torch_dtype", "dtype"}, "dtype");
  if (key == nullptr || !(*root_)[key].is_string()) return;
  std::string dtype = (*root_)[key].get<std::string>();
  if (const std::string_view package = "torch."; dtype.starts_with(package)) dtype.erase(0, package.size());
  const std::optional<Dtype> ours = value_of(kDtypeWords, dtype);
  if (ours == Dtype::kFloat32) return;  // as a run has it that says nothing
  origins_.emplace_back(
      "dtype", "not taken: the model's dtype is " + printable(dtype) + (ours ? ", use --set dtype=" + dtype : ""));
}

void ModelReader::note_longest() {
  const char* key = find_key({"max_position_embeddings", "n_positions"}, "max_seq_len");
  if (key == nullptr) return;
  result_.longest = as_integer((*root_)[key], 1, kMaxSize);
  result_.longest_key = key;
}

ModelConfig ModelReader::finish() {
  note_dtype();
  note_longest();
  std::vector<std::string> others;
  for (const auto& item : root_->items()) {
    const std::string& key = item.key();
    const bool is_comment = !key.empty() && key.front() == '_';
    if (is_comment || read_.count(key) > 0) continue;
    const std::string pointer = pointer_to("", key);
    if (std::find(kOurSizes.begin(), kOurSizes.end(), key) != kOurSizes.end()) {
      refuse(pointer, "is no key of a " + model_type_ + " file; give it by --set " + key + "=...", key);
    }
    if (sounds_of_attention(key) && !says_nothing(item.value())) {
      refuse(pointer, "is no key of " + model_type_ +
                          " that is known here, and by its name it may change attention, got " +
                          describe(item.value()) + "; rename it to _" + key + " to leave it out");
    }
    others.push_back(printable(pointer));
  }
  for (const Origin& origin : origins_) {
    if (origin.our_key.empty() || !is_given(origin.our_key)) result_.origins.push_back(origin.line);
  }
  if (!others.empty()) result_.origins.push_back("not read: " + join(others));
  return std::move(result_);
}

}  // namespace attn
