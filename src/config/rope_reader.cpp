#include "config/rope_reader.h"

#include "config/config_keys.h"
#include "core/text.h"

namespace attn {
namespace {

constexpr std::int64_t kAnyInteger = INT64_MAX;

double required_number(const ObjectReader& object, std::string_view key, RopeScalingKind kind) {
  const std::optional<double> number = object.number(key);
  if (!number) object.fail(key, "missing, a number above 0 with scaling " + to_string(kind));
  return *number;
}

RopeScaling read_scaling(const ObjectReader& object) {
  const auto kind = object.word("kind", kRopeScalingWords);
  if (!kind) object.fail("kind", "missing; known: " + join(all_words(kRopeScalingWords)));
  object.refuse_unknown_keys("key of a scaling of kind " + to_string(*kind), scaling_keys(*kind));
  RopeScaling scaling;
  scaling.kind = *kind;
  if (*kind == RopeScalingKind::kNone) return scaling;
  scaling.factor = required_number(object, "factor", *kind);
  if (*kind == RopeScalingKind::kLinear) return scaling;
  const auto length = object.integer("original_max_seq_len", -kAnyInteger, kAnyInteger);
  if (!length) {
    object.fail("original_max_seq_len", "missing, an integer of at least 1 with scaling " + to_string(*kind) +
                                            ": the length that the model was trained with");
  }
  scaling.original_max_seq_len = *length;
  scaling.low_freq_factor = object.number("low_freq_factor").value_or(scaling.low_freq_factor);
  scaling.high_freq_factor = object.number("high_freq_factor").value_or(scaling.high_freq_factor);
  scaling.beta_fast = object.number("beta_fast").value_or(scaling.beta_fast);
  scaling.beta_slow = object.number("beta_slow").value_or(scaling.beta_slow);
  scaling.attention_factor = object.number("attention_factor");
  return scaling;
}

}  // namespace

std::optional<RopeConfig> read_rope(const ObjectReader& config) {
  const std::optional<ObjectReader> object = config.object("rope");
  if (!object) return std::nullopt;
  object->refuse_unknown_keys("key of rope", kRopeKeys);
  RopeConfig rope;
  rope.theta = object->number("theta").value_or(rope.theta);
  const auto style = object->word("style", kRopeStyleWords);
  // A checkpoint does not say it, both run without an error, and only one is right: so there is nothing to assume.
  if (!style) {
    object->fail("style",
                 "missing, it has no default: half pairs channel c with c + d_k/2 (Llama, Qwen, Gemma as "
                 "Hugging Face keeps them), adjacent pairs 2c with 2c + 1 (Llama as Meta keeps it, GPT-J)");
  }
  rope.style = *style;
  if (const auto scaling = object->object("scaling")) rope.scaling = read_scaling(*scaling);
  return rope;
}

}  // namespace attn
