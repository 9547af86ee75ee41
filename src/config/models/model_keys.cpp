#include "config/models/model_keys.h"

#include "core/text.h"

namespace attn {

void take_sizes(ModelReader& model, const SizeDefaults& defaults) {
  model.take("d_model", {"hidden_size"}, defaults.d_model);
  model.take("H", {"num_attention_heads"}, defaults.H);
  model.take("H_kv", {"num_key_value_heads"}, defaults.H_kv, "is H");
  model.take("d_k", {"head_dim"}, defaults.d_k, "is d_model / H");
}

namespace {

double probability(ModelReader& model, const char* key, double model_default) {
  const double value = model.number(key, model_default).value_or(0.0);
  if (!(value >= 0.0 && value < 1.0)) {
    model.refuse(pointer_to("", key), "must be a number of at least 0 and below 1, got " + nlohmann::json(value).dump(),
                 "dropout");
  }
  return value;
}

}  // namespace

void take_dropout(ModelReader& model, const char* of_weights, const char* of_output, double model_default) {
  const double weights = probability(model, of_weights, model_default);
  const bool has_two = *of_output != '\0';
  const double output = has_two ? probability(model, of_output, model_default) : 0.0;
  const std::string pointer = pointer_to("", of_weights);
  const nlohmann::json weights_shown = weights;
  if (weights != output) {
    model.refuse(pointer,
                 "acts on the weights, and " + (has_two ? pointer_to("", of_output) : std::string("nothing")) +
                     " on the output (" + weights_shown.dump() + " and " + nlohmann::json(output).dump() +
                     "); here one dropout acts on both: choose one, as by --set dropout=" + weights_shown.dump(),
                 "dropout");
  }
  const std::string as_well = has_two ? "; on the output " + model.origin({of_output}) : "";
  model.set("dropout", weights, model.origin({of_weights}) + as_well, model.has(of_weights) ? pointer : "");
}

bool take_causal(ModelReader& model) {
  const bool causal = model.flag("is_causal", true);
  if (model.has("is_causal")) {
    model.set("causal", causal, "from /is_causal", "/is_causal");
  } else {
    model.set_as_every_layer("causal", true);
  }
  return causal;
}

void take_window(ModelReader& model, std::int64_t window, const std::string& why, bool causal) {
  if (!causal) {
    model.refuse("/is_causal",
                 "must be true with a sliding window: what the window hides of later keys is not said, got false",
                 "window");
  }
  if (window < 1) {
    model.refuse("/sliding_window",
                 "must be an integer from 1 to " + std::to_string(kMaxSize) + ", got " + std::to_string(window),
                 "window");
  }
  model.set("window", window, model.origin({"sliding_window"}) + (why.empty() ? "" : ", " + why) + " (itself included)",
            model.has("sliding_window") ? "/sliding_window" : model.default_words(window, "sliding_window"));
}

std::optional<std::string> layer_type(ModelReader& model, std::int64_t layer) {
  const nlohmann::json types = model.value({"layer_types"}, nullptr);
  if (types.is_null()) return std::nullopt;
  const auto index = static_cast<std::size_t>(layer);
  if (!types.is_array() || index >= types.size() || !types[index].is_string()) {
    model.refuse("/layer_types", "must be an array with a word for each layer, got " + describe(types));
  }
  const std::string type = types[index].get<std::string>();
  if (type != "full_attention" && type != "sliding_attention") {
    model.refuse("/layer_types/" + std::to_string(layer),
                 "must be full_attention or sliding_attention, got " + in_quotes(type), "window");
  }
  return type;
}

}  // namespace attn
