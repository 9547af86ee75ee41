// Faults of the rotary position embedding.
#include <ATen/ATen.h>

#include <cmath>

#include "attention/distinct.h"
#include "attention/rope.h"
#include "checks/faults/declared_pairs.h"
#include "checks/faults/fault.h"

namespace attn {
namespace {

/// Base of the faults: the tables of a head of width d_k, and what is turned by them.
template <typename Layer>
struct OtherRope : Layer {
  using Layer::Layer;

  const RopeConfig& rope() const { return this->config_.rope.value(); }
  RopeTables tables(const RopeConfig& other, const QueryKeyValue& heads, std::int64_t first) const {
    return rope_tables(other, this->config_.d_k(), first, heads.q.size(-2), heads.q.options());
  }
  static at::Tensor turned(const at::Tensor& heads, const RopeTables& by, RopeStyle style) {
    return apply_rope(heads, heads, by.cos, by.sin, style).q;
  }
};

template <typename Layer>
struct ValuesToo : OtherRope<Layer> {
  using OtherRope<Layer>::OtherRope;
  QueryKeyValue rotate_heads(const QueryKeyValue& heads, std::int64_t first) override {
    QueryKeyValue right = Layer::rotate_heads(heads, first);
    right.v = this->turned(heads.v, this->tables(this->rope(), heads, first), this->rope().style);
    return right;
  }
};

template <typename Layer>
struct QueriesAlone : Layer {
  using Layer::Layer;
  QueryKeyValue rotate_heads(const QueryKeyValue& heads, std::int64_t first) override {
    return {Layer::rotate_heads(heads, first).q, distinct(heads.k), heads.v};
  }
};

template <typename Layer>
struct Forgotten : Layer {
  using Layer::Layer;
  QueryKeyValue rotate_heads(const QueryKeyValue& heads, std::int64_t) override {
    return {distinct(heads.q), distinct(heads.k), heads.v};
  }
};

template <typename Layer>
struct OtherPairing : OtherRope<Layer> {
  using OtherRope<Layer>::OtherRope;
  QueryKeyValue rotate_heads(const QueryKeyValue& heads, std::int64_t first) override {
    const RopeTables by = this->tables(this->rope(), heads, first);
    const RopeStyle other = this->rope().style == RopeStyle::kHalf ? RopeStyle::kAdjacent : RopeStyle::kHalf;
    return {this->turned(heads.q, by, other), this->turned(heads.k, by, other), heads.v};
  }
};

/// With the tables of another config.
template <typename Layer, RopeConfig (*other)(const RopeConfig&)>
struct OtherTables : OtherRope<Layer> {
  using OtherRope<Layer>::OtherRope;
  QueryKeyValue rotate_heads(const QueryKeyValue& heads, std::int64_t first) override {
    const RopeTables by = this->tables(other(this->rope()), heads, first);
    const RopeStyle style = this->rope().style;
    return {this->turned(heads.q, by, style), this->turned(heads.k, by, style), heads.v};
  }
};

RopeConfig of_usual_theta(const RopeConfig& rope) {
  RopeConfig other = rope;
  other.theta = 10000.0;
  return other;
}

RopeConfig unscaled(const RopeConfig& rope) {
  RopeConfig other = rope;
  other.scaling = {};
  return other;
}

template <typename Layer>
using UsualTheta = OtherTables<Layer, of_usual_theta>;

template <typename Layer>
using Unscaled = OtherTables<Layer, unscaled>;

template <typename Layer>
struct CoarseTable : OtherRope<Layer> {
  using OtherRope<Layer>::OtherRope;
  QueryKeyValue rotate_heads(const QueryKeyValue& heads, std::int64_t first) override {
    const RopeTables fine = this->tables(this->rope(), heads, first);
    const auto coarse = [](const at::Tensor& table) { return table.to(at::kBFloat16).to(table.scalar_type()); };
    const RopeTables by{coarse(fine.cos), coarse(fine.sin)};
    const RopeStyle style = this->rope().style;
    return {this->turned(heads.q, by, style), this->turned(heads.k, by, style), heads.v};
  }
};

/// Every call of a run in pieces begins at position 0.
template <typename Layer>
struct OffsetForgotten : Layer {
  using Layer::Layer;
  QueryKeyValue rotate_heads(const QueryKeyValue& heads, std::int64_t) override {
    return Layer::rotate_heads(heads, 0);
  }
};

template <typename Layer>
struct KeysShifted : Layer {
  using Layer::Layer;
  QueryKeyValue rotate_heads(const QueryKeyValue& heads, std::int64_t first) override {
    const QueryKeyValue right = Layer::rotate_heads(heads, first);
    return {right.q, Layer::rotate_heads(heads, first + 1).k, heads.v};
  }
};

template <typename Layer>
struct NormAfterwards : Layer {
  using Layer::Layer;
  QueryKeyValue normalize_heads(const QueryKeyValue& heads) override {
    return {distinct(heads.q), distinct(heads.k), heads.v};
  }
  QueryKeyValue rotate_heads(const QueryKeyValue& heads, std::int64_t first) override {
    const QueryKeyValue turned = Layer::rotate_heads(heads, first);
    return this->config_.qk_norm ? Layer::normalize_heads(turned) : turned;
  }
};

std::string needs_rope(const RunConfig& run) { return run.attention.rope.has_value() ? "" : "there is no rope"; }

/// Whether yarn makes cos and sin longer or shorter: then q.k changes even where nothing is turned.
bool stretches(const RopeConfig& rope) {
  const RopeScaling& scaling = rope.scaling;
  if (scaling.kind != RopeScalingKind::kYarn) return false;
  return scaling.attention_factor.has_value() ? *scaling.attention_factor != 1.0 : scaling.factor > 1.0;
}

/// A query and a key at one place are turned alike, which their score does not show.
std::string needs_turned_scores(const RunConfig& run) {
  return stretches(*run.attention.rope) ? needs_competing_keys(run) : needs_two_places(run);
}

/// A row with keys to compare that are not all at position 0, where nothing is turned.
std::string needs_later_places(const RunConfig& run) {
  std::string missing = needs_competing_keys(run);
  if (!missing.empty() || !run.attention.sink || stretches(*run.attention.rope)) return missing;
  const bool some = some_visible_pair(run, [](std::int64_t query, std::int64_t key) { return query > 0 || key > 0; });
  return some ? "" : "position 0 is not turned";
}

std::string needs_later_keys(const RunConfig& run) {
  const bool stretched = stretches(*run.attention.rope);
  const auto is_turned = [&](std::int64_t, std::int64_t key) { return stretched || key > 0; };
  return some_visible_pair(run, is_turned) ? "" : "no query sees a key after position 0, where nothing is turned";
}

std::string needs_later_keys_to_compare(const RunConfig& run) {
  std::string missing = needs_competing_keys(run);
  return missing.empty() ? needs_later_keys(run) : missing;
}

std::string needs_two_pairs(const RunConfig& run) {
  return run.attention.d_k() == 2 ? "d_k is 2: its one pair is the same in both styles" : "";
}

bool same_tables(const RopeConfig& a, const RopeConfig& b, std::int64_t d_k) {
  return stretches(a) == stretches(b) && at::equal(rope_frequencies(a, d_k), rope_frequencies(b, d_k));
}

std::string needs_unusual_theta(const RunConfig& run) {
  const RopeConfig& rope = *run.attention.rope;
  if (rope.theta == 10000.0) return "theta is 10000";
  return same_tables(rope, of_usual_theta(rope), run.attention.d_k()) ? "every pair turns as with theta 10000" : "";
}

std::string needs_scaling(const RunConfig& run) {
  const RopeConfig& rope = *run.attention.rope;
  if (rope.scaling.kind == RopeScalingKind::kNone) return "the frequencies are not scaled";
  return same_tables(rope, unscaled(rope), run.attention.d_k()) ? "the scaling changes no frequency" : "";
}

/// The norm of a pair does not change when it is turned, so only a weight, or a stretched table, tells which came
/// first. A norm's weights are 1 unless they come from a file.
std::string needs_order_of_norm(const RunConfig& run) {
  if (!run.attention.qk_norm) return "there is no qk_norm";
  const bool tells = run.weights.has_value() || stretches(*run.attention.rope);
  return tells ? "" : "the norm's weights are 1: turning changes no norm";
}

}  // namespace

std::vector<FaultEntry> rope_faults() {
  const std::vector<std::string> seen{"reference-weights"};  // small ones vanish in a coarse format
  const std::vector<std::string> seen_at_once{"rope-relative", "reference-weights"};
  return {
      {{"rope-on-values", "values are turned too", {"rope-relative", "reference-forward"}},
       {needs_rope, needs_later_keys},
       layer_fault<ValuesToo>()},
      {{"rope-on-queries-alone", "queries are turned, keys are not", seen_at_once},
       {needs_rope, needs_later_keys_to_compare},
       layer_fault<QueriesAlone>()},
      {{"rope-forgotten", "nothing is turned", seen_at_once},
       {needs_rope, needs_turned_scores},
       layer_fault<Forgotten>()},
      {{"rope-other-pairing", "the channels of a pair are those of the other style", seen_at_once},
       {needs_rope, needs_two_pairs, needs_two_places},
       layer_fault<OtherPairing>()},
      {{"rope-theta-10000", "theta is 10000, whatever the config says", seen},
       {needs_rope, needs_unusual_theta, needs_two_places},
       layer_fault<UsualTheta>()},
      {{"rope-scaling-forgotten", "the frequencies are not scaled", seen},
       {needs_rope, needs_scaling, needs_turned_scores},
       layer_fault<Unscaled>()},
      {{"rope-table-in-bfloat16", "cos and sin are rounded to bfloat16", seen},
       {needs_rope, needs_later_places},
       layer_fault<CoarseTable>()},
      {{"rope-keys-shifted", "keys are turned as if each came one position later", seen_at_once},
       {needs_rope, needs_competing_keys},
       layer_fault<KeysShifted>()},
      {{"rope-before-norm", "queries and keys are turned first and normed afterwards", seen},
       {needs_rope, needs_order_of_norm, needs_competing_keys},
       layer_fault<NormAfterwards>()},
      {{"rope-offset-forgotten", "with a cache every call turns from position 0 on", {"kv-cache"}},
       {needs_rope, needs_pieces, needs_two_places},
       layer_fault<OffsetForgotten>()},
  };
}

}  // namespace attn
