#include "config/models/model_keys.h"

#include "core/text.h"

namespace attn {

void take_sizes(ModelReader& model, const SizeDefaults& defaults) {
  model.take("d_model", {"hidden_size"}, defaults.d_model);
  model.take("H", {"num_attention_heads"}, defaults.H);
  model.take("H_kv", {"num_key_value_heads"}, defaults.H_kv);
  model.take("d_k", {"head_dim"}, defaults.d_k);
}

void take_dropout(ModelReader& model, const char* of_weights, const char* of_output, double model_default) {
  const double weights = model.number(of_weights, model_default).value_or(0.0);
  const bool has_two = *of_output != '\0';
  const double output = has_two ? model.number(of_output, model_default).value_or(0.0) : 0.0;
  const std::string pointer = pointer_to("", of_weights);
  if (weights != output) {
    model.refuse(pointer,
                 "acts on the weights, and " + (has_two ? pointer_to("", of_output) : std::string("nothing")) +
                     " on the output (" + format_number(weights, 17) + " and " + format_number(output, 17) +
                     "); here one dropout acts on both: choose one, as by --set dropout=" + format_number(weights, 17),
                 "dropout");
  }
  model.set("dropout", weights, model.has(of_weights) ? "from " + pointer : "by " + model.model_type() + "'s default",
            model.has(of_weights) ? pointer : "");
}

bool take_causal(ModelReader& model) {
  if (model.flag("is_causal", true)) {
    model.set_as_every_layer("causal", true);
    return true;
  }
  model.set("causal", false, "from /is_causal", "/is_causal");
  return false;
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
  model.set("window", window, "from /sliding_window" + why + " (itself included)",
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
