#include "config/models/model_rope.h"

#include <algorithm>
#include <array>
#include <utility>

#include "config/config_keys.h"
#include "core/error.h"
#include "core/text.h"

namespace attn {
namespace {

/// theta where no key says it, in all models read here.
constexpr double kDefaultTheta = 10000.0;

/// Their words for our kinds.
constexpr std::array<std::pair<const char*, RopeScalingKind>, 4> kRopeTypes{{{"default", RopeScalingKind::kNone},
                                                                             {"linear", RopeScalingKind::kLinear},
                                                                             {"llama3", RopeScalingKind::kLlama3},
                                                                             {"yarn", RopeScalingKind::kYarn}}};

/// The object that holds the scaling, and where it stands; none: plain RoPE.
std::optional<ObjectReader> find_parameters(ModelReader& model, const std::string& layer_type) {
  model.pass_over({"rope_scaling", "rope_parameters", "rope_theta", "partial_rotary_factor", "rope_interleaved",
                   "original_max_position_embeddings"});
  auto scaling = model.file().object("rope_scaling");
  auto parameters = model.file().object("rope_parameters");
  if (scaling && parameters) {
    model.refuse("/rope_scaling", "must be left out with rope_parameters, which says the same in newer words", "rope");
  }
  if (!parameters) return scaling;
  auto of_this_kind = parameters->object(layer_type);
  return of_this_kind ? of_this_kind : parameters;
}

void refuse_parts(ModelReader& model, const ObjectReader& object) {
  if (const auto part = object.number("partial_rotary_factor"); part && *part != 1.0) {
    model.refuse(object.pointer("partial_rotary_factor"),
                 "must be 1: RoPE on a part of the channels only is not supported, got " + nlohmann::json(*part).dump(),
                 "rope");
  }
}

RopeScalingKind scaling_kind(ModelReader& model, const ObjectReader& object, std::string& word) {
  const char* key = object.has("rope_type") ? "rope_type" : "type";
  if (object.has("type") && *object.find("type") != *object.find(key)) {
    model.refuse(object.pointer("type"),
                 "must be as rope_type (" + describe(*object.find(key)) + "), of which it is another name, got " +
                     describe(*object.find("type")),
                 "rope.scaling");
  }
  word = object.string(key).value_or("default");
  for (const auto& [theirs, ours] : kRopeTypes) {
    if (word == theirs) return ours;
  }
  model.refuse(object.pointer(key), "is not supported, known: default, linear, llama3, yarn, got " + in_quotes(word),
               "rope.scaling");
  return RopeScalingKind::kNone;
}

/// Their names for the keys of our scaling.
std::string their_key(const std::string& ours) {
  return ours == "original_max_seq_len" ? "original_max_position_embeddings" : ours;
}

void refuse_other_keys(ModelReader& model, const ObjectReader& object, RopeScalingKind kind, const std::string& word) {
  std::vector<std::string> known{"type", "rope_type", "rope_theta", "partial_rotary_factor"};
  for (const std::string& key : scaling_keys(kind)) known.push_back(their_key(key));
  for (const auto& item : object.json().items()) {
    if (std::find(known.begin(), known.end(), item.key()) != known.end() || item.value().is_null()) continue;
    if (item.key() == "truncate" && item.value() == true) continue;  // so it is here
    // Known to all kinds of scaling, and without an effect on those that need no length.
    if (item.key() == "original_max_position_embeddings") continue;
    model.refuse(object.pointer(item.key()),
                 "is not supported with rope type " + word + ", got " + describe(item.value()), "rope.scaling");
  }
}

/// The length in training: of the whole file, of the scaling, or else the longest text that the model takes.
void set_original_length(ModelReader& model, const ObjectReader& object) {
  const char* key = "original_max_position_embeddings";
  const std::string ours = "rope.scaling.original_max_seq_len";
  if (model.has(key) && object.has(key) && *model.file().find(key) != *object.find(key)) {
    model.refuse(std::string("/") + key,
                 "must be as " + object.pointer(key) + " (" + describe(*object.find(key)) +
                     "), which says the same, or left out, got " + describe(*model.file().find(key)),
                 ours);
  }
  if (model.has(key))
    return model.set(ours, *model.file().find(key), std::string("from /") + key, std::string("/") + key);
  if (object.has(key)) {
    return model.set(ours, *object.find(key), "from " + object.pointer(key), object.pointer(key));
  }
  key = "max_position_embeddings";
  if (model.has(key)) model.set(ours, *model.file().find(key), std::string("from /") + key, std::string("/") + key);
}

}  // namespace

void read_model_rope(ModelReader& model, const std::string& layer_type) {
  const std::optional<ObjectReader> object = find_parameters(model, layer_type);
  refuse_parts(model, model.file());
  if (model.file().boolean("rope_interleaved").value_or(false)) {
    model.refuse("/rope_interleaved",
                 "must be false: with true it says that neighbours are paired, which no " + model.model_type() +
                     " layer does, got true",
                 "rope.style");
  }
  if (object && object->has("rope_theta")) {
    const std::string pointer = object->pointer("rope_theta");
    const nlohmann::json* at_top = model.file().find("rope_theta");
    if (at_top != nullptr && *at_top != *object->find("rope_theta")) {
      model.refuse("/rope_theta",
                   "must be as " + pointer + " (" + describe(*object->find("rope_theta")) +
                       "), which says the same, or left out, got " + describe(*at_top),
                   "rope.theta");
    }
    model.set("rope.theta", *object->find("rope_theta"), "from " + pointer, pointer);
  } else {
    model.take("rope.theta", {"rope_theta"}, kDefaultTheta);
  }
  model.set_as_every_layer("rope.style", "half");
  if (!object) return;
  refuse_parts(model, *object);
  std::string word;
  const RopeScalingKind kind = scaling_kind(model, *object, word);
  refuse_other_keys(model, *object, kind, word);
  if (kind == RopeScalingKind::kNone) return;
  model.set("rope.scaling.kind", to_string(kind),
            "from " + object->pointer(object->has("rope_type") ? "rope_type" : "type"));
  for (const std::string& ours : scaling_keys(kind)) {
    if (ours == "kind" || ours == "original_max_seq_len") continue;
    if (object->has(ours)) {
      model.set("rope.scaling." + ours, *object->find(ours), "from " + object->pointer(ours), object->pointer(ours));
    }
  }
  if (kind != RopeScalingKind::kLinear) set_original_length(model, *object);
}

}  // namespace attn
