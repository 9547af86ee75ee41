// Faults of what models do to scores beside the scale: norm of q and k, cap, ALiBi, sink.
#include <ATen/ATen.h>

#include <cmath>
#include <cstdlib>

#include "attention/distinct.h"
#include "checks/faults/declared_pairs.h"
#include "checks/faults/fault.h"
#include "core/text.h"

namespace attn {
namespace {

template <typename Layer>
struct NormForgotten : Layer {
  using Layer::Layer;
  QueryKeyValue normalize_heads(const QueryKeyValue& heads) override {
    return {distinct(heads.q), distinct(heads.k), heads.v};
  }
};

/// The norm alone, as RmsNorm works it out.
at::Tensor weightless(const at::Tensor& heads, double eps) {
  const at::Tensor wide = heads.to(at::promote_types(heads.scalar_type(), at::kFloat));
  return (wide * (wide.square().mean(-1, /*keepdim=*/true) + eps).rsqrt()).to(heads.scalar_type());
}

template <typename Layer>
struct NormWithoutWeight : Layer {
  using Layer::Layer;
  QueryKeyValue normalize_heads(const QueryKeyValue& heads) override {
    const double eps = this->config_.qk_norm_eps;
    return {weightless(heads.q, eps), weightless(heads.k, eps), heads.v};
  }
};

struct NormOverAllHeads : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  QueryKeyValue normalize_heads(const QueryKeyValue& heads) override {
    // The norm of each head's own numbers, taken back, and that of all heads in its place.
    const QueryKeyValue right = MultiHeadAttentionImpl::normalize_heads(heads);
    return {over_all(right.q, heads.q), over_all(right.k, heads.k), heads.v};
  }
  at::Tensor over_all(const at::Tensor& normed, const at::Tensor& heads) const {
    if (heads.size(1) == 1) return normed;
    const at::Tensor squares = heads.square().mean(-1, /*keepdim=*/true) + config_.qk_norm_eps;  // (B, H, T, 1)
    return normed * (squares / squares.mean(1, /*keepdim=*/true)).sqrt();
  }
};

struct CapForgotten : AttentionCore {
  at::Tensor cap_scores(const at::Tensor& scaled, double) const override { return scaled * 1; }
};

/// Hidden scores become -softcap.
struct CapAfterMask : AttentionCore {
  explicit CapAfterMask(std::optional<double> softcap) : cap(softcap) {}
  at::Tensor cap_scores(const at::Tensor& scaled, double) const override { return scaled * 1; }
  at::Tensor mask_scores(const at::Tensor& scores, const std::optional<at::Tensor>& mask) const override {
    const at::Tensor masked = AttentionCore::mask_scores(scores, mask);
    return cap.has_value() ? AttentionCore::cap_scores(masked, *cap) : masked;
  }
  std::optional<double> cap;
};

/// softcap * tanh(scores / softcap), and then the scale.
struct CapBeforeScale : AttentionCore {
  explicit CapBeforeScale(double right_scale) : scale(right_scale) {}
  at::Tensor cap_scores(const at::Tensor& scaled, double softcap) const override {
    return AttentionCore::cap_scores(scaled / scale, softcap) * scale;
  }
  double scale;
};

using BiasChange = at::Tensor (*)(const at::Tensor& bias);

struct OtherBias : AttentionCore {
  explicit OtherBias(BiasChange changed) : change(changed) {}
  at::Tensor bias_scores(const at::Tensor& scores, const at::Tensor& bias) const override {
    return AttentionCore::bias_scores(scores, change(bias));
  }
  BiasChange change;
};

using SinkChange = at::Tensor (*)(const at::Tensor& sink, double scale);

struct OtherSink : AttentionCore {
  OtherSink(SinkChange changed, double right_scale) : change(changed), scale(right_scale) {}
  at::Tensor normalize_scores(const at::Tensor& masked, const std::optional<at::Tensor>& mask,
                              const std::optional<at::Tensor>& sink) const override {
    if (!sink.has_value()) return AttentionCore::normalize_scores(masked, mask, sink);
    const at::Tensor changed = change(*sink, scale);
    return AttentionCore::normalize_scores(masked, mask, changed.defined() ? std::optional(changed) : std::nullopt);
  }
  SinkChange change;
  double scale;
};

Planting other_sink(SinkChange change) {
  return sized_core_fault(
      [=](const RunConfig& run) { return std::make_shared<const OtherSink>(change, run.attention.scale()); });
}

std::string needs_qk_norm(const RunConfig& run) { return run.attention.qk_norm ? "" : "there is no qk_norm"; }

std::string needs_softcap(const RunConfig& run) {
  return run.attention.softcap.has_value() ? "" : "there is no softcap";
}

std::string needs_alibi(const RunConfig& run) { return run.attention.alibi ? "" : "there is no alibi"; }

std::string needs_sink(const RunConfig& run) { return run.attention.sink ? "" : "there is no sink"; }

std::string needs_scale_beside_1(const RunConfig& run) {
  return std::abs(run.attention.scale() - 1.0) <= 1e-12 ? "the scale is 1" : "";
}

/// Whether exp(-softcap) beside a score of some size is a number above 0.
std::string needs_low_cap(const RunConfig& run) {
  const double lowest = run.dtype == Dtype::kFloat16 ? 10.0 : run.dtype == Dtype::kFloat64 ? 600.0 : 60.0;
  const double cap = run.attention.softcap.value_or(0.0);
  return cap <= lowest ? "" : "exp(-" + format_number(cap) + ") vanishes in " + to_string(run.dtype);
}

/// A bias that all keys of a query share changes nothing.
std::string needs_two_distances(const RunConfig& run) {
  const bool sink = run.attention.sink;
  const bool some = some_row(run, [&](const DeclaredRow& row) {
    for (const std::int64_t key : row.keys) {
      const std::int64_t distance = std::abs(row.query - key);
      if (distance != (sink ? 0 : std::abs(row.query - row.keys.front()))) return true;
    }
    return false;
  });
  return some ? "" : "every query has its keys at one distance";
}

}  // namespace

std::vector<FaultEntry> score_faults() {
  const std::vector<std::string> seen{"reference-weights", "sdpa-forward"};
  return {
      {{"qk-norm-forgotten", "queries and keys are not normed", {"finite", "reference-weights"}},
       {needs_qk_norm, needs_competing_keys},
       layer_fault<NormForgotten>()},
      {{"qk-norm-over-all-heads", "queries and keys are normed over all heads together", {"reference-weights"}},
       {needs_two_heads, needs_qk_norm, needs_competing_keys},
       multi_head_fault<NormOverAllHeads>()},
      {{"qk-norm-without-weight", "queries and keys are normed without the norm's weight", {"finite"}},
       {needs_qk_norm, needs_competing_keys},
       layer_fault<NormWithoutWeight>()},
      {{"softcap-forgotten", "scores are not capped", seen},
       {needs_softcap, needs_competing_keys},
       core_fault<CapForgotten>()},
      {{"softcap-after-mask", "scores are capped when they are masked already", {"masked-weights"}},
       {needs_softcap, needs_half_hidden_row, needs_low_cap},
       sized_core_fault(
           [](const RunConfig& run) { return std::make_shared<const CapAfterMask>(run.attention.softcap); })},
      {{"softcap-before-scale", "scores are capped before they are scaled", seen},
       {needs_softcap, needs_scale_beside_1, needs_competing_keys},
       sized_core_fault(
           [](const RunConfig& run) { return std::make_shared<const CapBeforeScale>(run.attention.scale()); })},
      {{"alibi-forgotten", "the bias of the distance is not added", seen},
       {needs_alibi, needs_two_distances},
       core_fault<OtherBias>([](const at::Tensor& bias) { return bias * 0; })},
      {{"alibi-slopes-reversed", "the last head has the slope of the first", seen},
       {needs_alibi, needs_two_heads, needs_two_distances},
       core_fault<OtherBias>([](const at::Tensor& bias) { return bias.flip({0}); })},
      {{"alibi-wrong-sign", "keys further away are preferred", seen},
       {needs_alibi, needs_two_distances},
       core_fault<OtherBias>([](const at::Tensor& bias) { return -bias; })},
      {{"alibi-twice", "the bias of the distance is added twice", seen},
       {needs_alibi, needs_two_distances},
       core_fault<OtherBias>([](const at::Tensor& bias) { return bias * 2; })},
      {{"sink-dropped", "the sink takes no share", {"sink", "reference-weights"}},
       {needs_sink, needs_visible_key},
       other_sink([](const at::Tensor&, double) { return at::Tensor(); })},
      {{"sink-of-first-head", "all heads have the sink of the first", {"reference-weights"}},
       {needs_sink, needs_two_heads, needs_visible_key},
       other_sink([](const at::Tensor& sink, double) { return sink.narrow(0, 0, 1).expand_as(sink); })},
      {{"sink-scaled", "the sink is scaled as if it were a dot product", {"reference-weights"}},
       {needs_sink, needs_scale_beside_1, needs_visible_key},
       other_sink([](const at::Tensor& sink, double scale) { return sink * scale; })},
  };
}

}  // namespace attn
