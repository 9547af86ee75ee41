#include "config/models/model_reader.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "config/config_keys.h"
#include "config/models/known_keys.h"
#include "core/error.h"
#include "core/text.h"

namespace attn {
namespace {

/// A switch of some models that the others lack. Off, it says what is so anyway in a layer without our key.
struct Switch {
  const char* key;
  const char* our_key;
};
constexpr std::array<Switch, 6> kSwitches{{{"attention_bias", "bias"},
                                           {"qkv_bias", "bias"},
                                           {"use_alibi", "alibi"},
                                           {"use_mrope", "rope.sections"},
                                           {"use_qk_norm", "qk_norm"},
                                           {"use_sliding_window", "window"}}};

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
  mark_named("/model_type");
  read_.insert("model_type");
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
                       const nlohmann::json& model_default, const std::string& where_null) {
  const char* in_file = find_key(keys, our_key);
  const nlohmann::json& found = in_file == nullptr ? model_default : (*root_)[in_file];
  if (found.is_null()) return explain(our_key, where_null + " " + origin(keys, our_key));
  set(our_key, found, origin(keys, our_key),
      in_file != nullptr ? pointer_to("", in_file) : default_words(found, *keys.begin()));
}

std::string ModelReader::origin(std::initializer_list<const char*> keys, const std::string& our_key) {
  const char* key = find_key(keys, our_key);
  if (key == nullptr) return "by " + model_type_ + "'s default, the file has no /" + *keys.begin();
  const std::string pointer = pointer_to("", key);
  mark_named(pointer);
  return (has(key) ? "from " : "by null at ") + pointer;
}

void ModelReader::explain(const std::string& our_key, const std::string& line) {
  origins_.emplace_back(our_key, our_key + " " + line);
}

void ModelReader::mark_named(const std::string& file_pointer) {
  if (file_pointer.starts_with('/')) named_.insert(file_pointer.substr(1, file_pointer.find('/', 1) - 1));
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
  mark_named(file_pointer);
  explain(our_key, shown(value) + " " + reason);
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

bool ModelReader::types_differ(bool otherwise) const {
  const auto types = root_->find("layer_types");
  if (types == root_->end() || !types->is_array()) return otherwise;
  return std::any_of(types->begin(), types->end(), [&](const nlohmann::json& type) { return type != types->front(); });
}

std::int64_t ModelReader::layer_of(std::initializer_list<const char*> keys, std::int64_t model_default,
                                   bool layers_differ) {
  const std::int64_t count = integer(keys, model_default, 1).value_or(model_default);
  const std::int64_t layer = layer_.value_or(0);
  if (layer >= count) {
    throw ConfigError("--set: /layer: must be from 0 to " + std::to_string(count - 1) + ", " + model_type_ + " has " +
                      std::to_string(count) + " layers here, got " + std::to_string(layer));
  }
  if (layers_differ && count > 1) {
    remark("layer " + std::to_string(layer) + " of 0 to " + std::to_string(count - 1) +
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
  mark_named(pointer_to("", key));
  if (ours == Dtype::kFloat32) return explain("dtype", "float32 as " + pointer_to("", key) + " has it");
  if (is_given("dtype")) return;
  remark("not taken: the model's dtype is " + printable(dtype) + ", the run's float32" +
         (ours ? "; --set dtype=" + dtype + " takes it" : ""));
}

void ModelReader::note_longest() {
  const char* key = find_key({"max_position_embeddings", "n_positions"}, "max_seq_len");
  if (key == nullptr) return;
  result_.longest = as_integer((*root_)[key], 1, kMaxSize);
  result_.longest_key = key;
  if (named_.count(key) > 0) return;
  mark_named(pointer_to("", key));
  explain("max_seq_len", "is not taken from " + pointer_to("", key) + ", " + shown((*root_)[key]) +
                             ": a longer T is noted, not refused");
}

bool ModelReader::is_off_anyway(const std::string& key, const nlohmann::json& value) const {
  if (value != false) return false;
  const auto found =
      std::find_if(kSwitches.begin(), kSwitches.end(), [&](const Switch& one) { return key == one.key; });
  if (found == kSwitches.end()) return false;
  const auto ours = result_.config.find(found->our_key);
  return ours == result_.config.end() || *ours == false || is_given(found->our_key);
}

void ModelReader::refuse_what_is_not_read(const std::string& key, const nlohmann::json& value) const {
  const std::string pointer = pointer_to("", key);
  if (key == "add_cross_attention" && (value == false || value.is_null())) return;
  if (key == "add_cross_attention") {
    refuse(pointer,
           "must be false: with true each layer has a second attention, to another sequence, which is not read "
           "here; rename it to _" +
               key + " for the first one alone, got " + describe(value));
  }
  const bool is_ours = key == "layer" || std::find(kTopKeys.begin(), kTopKeys.end(), key) != kTopKeys.end();
  if (is_ours && !value.is_null()) {
    return refuse(pointer, "is no key of a " + model_type_ + " file; give it by --set " + key + "=...", key);
  }
  if (is_off_anyway(key, value)) return;
  if (const auto found = find_sounding_key(key, value, pointer)) {
    refuse(found->pointer, "is no key of " + model_type_ +
                               " that is known here, and by its name it may change attention, got " +
                               describe(found->value) + "; rename " + (found->pointer == pointer ? "it" : key) +
                               " to _" + key + " to leave it out");
  }
}

ModelConfig ModelReader::finish() {
  note_dtype();
  note_longest();
  std::vector<std::string> looked_at;
  std::vector<std::string> without_a_part;
  std::vector<std::string> unknown;
  for (const auto& item : root_->items()) {
    const std::string& key = item.key();
    const bool is_comment = !key.empty() && key.front() == '_';
    if (is_comment || named_.count(key) > 0) continue;
    const std::string shown_key = printable(pointer_to("", key));
    if (read_.count(key) > 0) {
      looked_at.push_back(shown_key);
      continue;
    }
    refuse_what_is_not_read(key, item.value());
    (has_no_part_in_attention(key) ? without_a_part : unknown).push_back(shown_key);
  }
  for (const Origin& origin : origins_) {
    if (origin.our_key.empty() || !is_given(origin.our_key)) result_.origins.push_back(origin.line);
  }
  if (!looked_at.empty()) result_.origins.push_back(join(looked_at) + ": looked at, no value here is taken from it");
  std::vector<std::string> not_read;  // what is not known first: a run cuts the line where it is long
  if (!unknown.empty()) not_read.push_back(join(unknown) + " (not known here)");
  if (!without_a_part.empty()) not_read.push_back(join(without_a_part) + " (no part in attention)");
  if (!not_read.empty()) result_.origins.push_back("not read: " + join(not_read, "; "));
  return std::move(result_);
}

}  // namespace attn
