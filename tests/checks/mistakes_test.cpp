// The known mistakes of rotation, grouped heads, masks, padding and score changes, each planted and named.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <functional>
#include <limits>

#include <gtest/gtest.h>

#include "attention/rope.h"
#include "checks/check_test_support.h"
#include "checks/diagnosis/diagnosis.h"
#include "checks/faults/fault.h"

namespace attn {
namespace {

/// Two query heads for a key head, d_k even; d_k, H, H_kv, T and the scales all differ.
RunConfig grouped_run() {
  RunConfig run;
  run.B = 2;
  run.T = 10;
  run.attention.d_model = 12;
  run.attention.H = 6;
  run.attention.given_H_kv = 3;
  run.attention.given_d_k = 4;
  run.attention.max_seq_len = 16;
  run.seed = 5;
  run.threads = 1;
  return run;
}

RunConfig with(const std::function<void(RunConfig&)>& change) {
  RunConfig run = grouped_run();
  change(run);
  return run;
}

std::string explanation(const RunConfig& run, const LayerFactory& factory) {
  LayerSubject subject(run, factory);
  CheckContext context(subject, run, whole_input_of(run));
  return explain_failure(context);
}

/// Layers of another config than the one they are judged by.
LayerFactory of_another_config(const std::function<void(AttentionConfig&)>& change) {
  return [change](RunConfig run) {
    change(run.attention);
    return make_layer(run);
  };
}

/// Layers of a class whose weights of q_norm, k_norm and sinks are not those of the start.
template <typename Layer>
LayerFactory of_class() {
  return [](const RunConfig& run) {
    return make_layer(run, LayerMaker([](const AttentionConfig& config) {
                        auto layer = std::make_shared<Layer>(config);
                        const at::NoGradGuard no_gradients;
                        for (auto& parameter : layer->named_parameters()) {
                          at::Tensor value = parameter.value();
                          if (value.dim() == 1) value.add_(at::arange(value.size(0)) * 0.3);
                        }
                        return layer;
                      }));
  };
}

void set_rope(RunConfig& run) {
  run.attention.rope = RopeConfig{};
  run.attention.rope->theta = 100.0;
}

TEST(Mistakes, OfRopeThatAnotherConfigMakes) {
  const RunConfig run = with([](RunConfig& changed) {
    set_rope(changed);
    changed.attention.rope->scaling.kind = RopeScalingKind::kLinear;
    changed.attention.rope->scaling.factor = 3.0;
  });
  const auto explain = [&](const std::function<void(AttentionConfig&)>& change) {
    return explanation(run, of_another_config(change));
  };
  EXPECT_EQ(explain([](AttentionConfig& config) { config.rope->style = RopeStyle::kAdjacent; }),
            R"(rope pairs channels in the style "adjacent" instead of "half")");
  EXPECT_EQ(explain([](AttentionConfig& config) { config.rope.reset(); }), "rope is left out");
  EXPECT_EQ(explain([](AttentionConfig& config) { config.rope->theta = 10000.0; }),
            "rope's theta is 10000 instead of the config's 100");
  EXPECT_EQ(explain([](AttentionConfig& config) { config.rope->scaling = RopeScaling{}; }),
            R"(rope's scaling "linear" is ignored)");
}

at::Tensor turned(const at::Tensor& heads, const AttentionConfig& config) {
  const RopeTables tables = rope_tables(*config.rope, config.d_k(), 0, heads.size(2), heads.options());
  return apply_rope(heads, heads, tables.cos, tables.sin, config.rope->style).q;
}

struct TurnsValuesToo : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  QueryKeyValue rotate_heads(const QueryKeyValue& heads, std::int64_t first_position) override {
    QueryKeyValue right = MultiHeadAttentionImpl::rotate_heads(heads, first_position);
    right.v = turned(heads.v, config_);
    return right;
  }
};

struct TurnsQueriesOnly : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  QueryKeyValue rotate_heads(const QueryKeyValue& heads, std::int64_t first_position) override {
    QueryKeyValue right = MultiHeadAttentionImpl::rotate_heads(heads, first_position);
    right.k = heads.k * 1;
    return right;
  }
};

struct TurnsKeysOnly : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  QueryKeyValue rotate_heads(const QueryKeyValue& heads, std::int64_t first_position) override {
    QueryKeyValue right = MultiHeadAttentionImpl::rotate_heads(heads, first_position);
    right.q = heads.q * 1;
    return right;
  }
};

TEST(Mistakes, OfWhatRopeTurns) {
  const RunConfig run = with(set_rope);
  EXPECT_EQ(explanation(run, of_class<TurnsValuesToo>()), "rope turns v too");
  EXPECT_EQ(explanation(run, of_class<TurnsQueriesOnly>()), "rope turns q only");
  EXPECT_EQ(explanation(run, of_class<TurnsKeysOnly>()), "rope turns k only");
}

struct NotNormed : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  QueryKeyValue normalize_heads(const QueryKeyValue& heads) override { return {heads.q * 1, heads.k * 1, heads.v}; }
};

struct NormedAfterRope : NotNormed {
  using NotNormed::NotNormed;
  QueryKeyValue rotate_heads(const QueryKeyValue& heads, std::int64_t first_position) override {
    return MultiHeadAttentionImpl::normalize_heads(MultiHeadAttentionImpl::rotate_heads(heads, first_position));
  }
};

TEST(Mistakes, OfTheNormOfQueriesAndKeys) {
  RunConfig run = with(set_rope);
  run.attention.qk_norm = true;
  EXPECT_EQ(explanation(run, of_class<MultiHeadAttentionImpl>()), "");
  EXPECT_EQ(explanation(run, of_class<NotNormed>()), "q and k are not normalised");
  EXPECT_EQ(explanation(run, of_class<NormedAfterRope>()), "q and k are normalised after they are turned");
}

struct KeyHeadsTiled : AttentionCore {
  AttentionCoreOutput attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                             const AttentionCoreOptions& options, AttentionObserver* observer) const override {
    const auto tiled = [&](const at::Tensor& heads) { return heads.repeat({1, q.size(1) / heads.size(1), 1, 1}); };
    return AttentionCore::attend(q, tiled(k), tiled(v), options, observer);
  }
};

TEST(Mistakes, OfGroupedHeads) {
  EXPECT_EQ(explanation(grouped_run(), core_fault<KeyHeadsTiled>()()),
            "query head h gets the keys and values of key head h mod H_kv: tiled, neighbours do not share one");
}

TEST(Mistakes, OfTheWindow) {
  const RunConfig run = with([](RunConfig& changed) { changed.attention.window = 4; });
  const auto explain = [&](const std::function<void(AttentionConfig&)>& change) {
    return explanation(run, of_another_config(change));
  };
  EXPECT_EQ(explain([](AttentionConfig& config) { config.window = 5; }),
            "the window of 4 has one key more: the token itself is not counted");
  EXPECT_EQ(explain([](AttentionConfig& config) { config.window = 3; }), "the window of 4 has one key less");
  EXPECT_EQ(explain([](AttentionConfig& config) { config.window.reset(); }), "the window of 4 is not applied");
  EXPECT_EQ(explain([](AttentionConfig& config) { config.causal = false; }),
            "the window, to both sides, is applied in place of the causal one");
}

RowsMask some_rows(std::int64_t T, bool inverted) {
  RowsMask rows{T, T, {}, std::nullopt, ""};
  for (std::int64_t cell = 0; cell < T * T; ++cell) rows.visible.push_back((cell % 3 != 1) != inverted);
  return rows;
}

TEST(Mistakes, OfAMaskOfOnesOwn) {
  const RunConfig run = with([](RunConfig& changed) { changed.attention.mask = some_rows(10, false); });
  const auto explain = [&](const std::function<void(AttentionConfig&)>& change) {
    return explanation(run, of_another_config(change));
  };
  EXPECT_EQ(explain([](AttentionConfig& config) { config.mask = some_rows(10, true); }),
            "the config's own mask is inverted");
  EXPECT_EQ(explain([](AttentionConfig& config) { config.mask.reset(); }), "the config's own mask is not applied");
  EXPECT_EQ(explain([](AttentionConfig& config) { config.causal = false; }),
            "the config's own mask is applied in place of the causal one");
}

void set_padding(RunConfig& run) {
  run.padding = PaddingSide::kRight;
  run.lengths = {10, 6};
}

struct PaddingIgnored : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  std::optional<at::Tensor> mask(const MaskPlace& place, const at::Tensor&) const override {
    return MultiHeadAttentionImpl::mask(place, {});
  }
};

struct PaddingHidesQueries : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  std::optional<at::Tensor> mask(const MaskPlace& place, const at::Tensor& real_keys) const override {
    const at::Tensor causal = *MultiHeadAttentionImpl::mask(place, {});
    return causal.logical_and(real_keys.view({-1, 1, place.query_len, 1}));
  }
};

struct PaddingAlone : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  std::optional<at::Tensor> mask(const MaskPlace& place, const at::Tensor& real_keys) const override {
    return real_keys.view({-1, 1, 1, place.key_len}).expand({-1, 1, place.query_len, place.key_len});
  }
};

TEST(Mistakes, OfPadding) {
  for (const PaddingSide side : {PaddingSide::kRight, PaddingSide::kLeft}) {
    SCOPED_TRACE(to_string(side));
    RunConfig run = with(set_padding);
    run.padding = side;
    EXPECT_EQ(explanation(run, of_class<PaddingIgnored>()), "padding is ignored");
    EXPECT_EQ(explanation(run, of_class<PaddingHidesQueries>()), "padding hides queries instead of keys");
    EXPECT_EQ(explanation(run, of_class<PaddingAlone>()), "the padding mask is applied in place of the causal one");
  }
}

struct CappedAfterMask : AttentionCore {
  AttentionCoreOutput attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                             const AttentionCoreOptions& options, AttentionObserver* observer) const override {
    softcap = options.softcap.value();
    return AttentionCore::attend(q, k, v, options, observer);
  }
  at::Tensor cap_scores(const at::Tensor& scaled, double) const override { return scaled * 1; }
  at::Tensor mask_scores(const at::Tensor& scores, const std::optional<at::Tensor>& mask) const override {
    return AttentionCore::cap_scores(AttentionCore::mask_scores(scores, mask), softcap);
  }
  mutable double softcap = 1.0;
};

TEST(Mistakes, OfTheSoftcap) {
  const RunConfig run = with([](RunConfig& changed) { changed.attention.softcap = 0.5; });
  EXPECT_EQ(explanation(run, of_another_config([](AttentionConfig& config) { config.softcap.reset(); })),
            "the softcap is left out");
  EXPECT_EQ(explanation(run, core_fault<CappedAfterMask>()()),
            "the softcap is applied after the mask: hidden keys get the score -0.5");
}

struct SlopesReversed : AttentionCore {
  at::Tensor bias_scores(const at::Tensor& scores, const at::Tensor& bias) const override {
    return AttentionCore::bias_scores(scores, bias.flip({0}));
  }
};

TEST(Mistakes, OfAlibi) {
  const RunConfig run = with([](RunConfig& changed) { changed.attention.alibi = true; });
  EXPECT_EQ(explanation(run, of_another_config([](AttentionConfig& config) { config.alibi = false; })),
            "the ALiBi bias is left out");
  EXPECT_EQ(explanation(run, core_fault<SlopesReversed>()()), "the ALiBi slopes of the heads stand in reverse order");
}

struct SinkDropped : AttentionCore {
  at::Tensor normalize_scores(const at::Tensor& masked, const std::optional<at::Tensor>& mask,
                              const std::optional<at::Tensor>&) const override {
    return AttentionCore::normalize_scores(masked, mask, std::nullopt);
  }
};

TEST(Mistakes, OfTheSink) {
  const RunConfig run = with([](RunConfig& changed) { changed.attention.sink = true; });
  EXPECT_EQ(explanation(run, core_fault<SinkDropped>()()), "the sink is left out of the softmax");
}

TEST(Mistakes, OfAGivenScale) {
  const RunConfig run = with([](RunConfig& changed) { changed.attention.given_scale = 0.1; });
  EXPECT_EQ(explanation(run, of_another_config([](AttentionConfig& config) { config.given_scale.reset(); })),
            "scale 1/sqrt(d_k) (0.5) instead of the config's 0.1");
}

TEST(Mistakes, AreNoneOfAnHonestLayerWithEverything) {
  const RunConfig run = with([](RunConfig& changed) {
    set_rope(changed);
    set_padding(changed);
    AttentionConfig& config = changed.attention;
    config.window = 4;
    config.mask = DilatedMask{2};
    config.qk_norm = config.sink = config.alibi = true;
    config.softcap = 2.0;
    config.given_scale = 0.3;
  });
  EXPECT_EQ(explanation(run, of_class<MultiHeadAttentionImpl>()), "");
}

struct CrossSwapped : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  Projections project_qkv(const at::Tensor& x, const at::Tensor& memory) override {
    Projections projections = MultiHeadAttentionImpl::project_qkv(x, memory);
    std::swap(projections.separate->k, projections.separate->v);
    return projections;
  }
};

TEST(Mistakes, OfCrossAttention) {
  const RunConfig run = with([](RunConfig& changed) {
    changed.attention.causal = false;
    changed.attention.qkv = QkvLayout::kSeparate;
    changed.memory_length = 7;
    changed.padding = PaddingSide::kRight;
    changed.lengths = {7, 4};
  });
  EXPECT_EQ(explanation(run, of_class<MultiHeadAttentionImpl>()), "");
  EXPECT_EQ(explanation(run, of_class<CrossSwapped>()), "k and v are swapped");
  EXPECT_EQ(explanation(run, of_class<PaddingIgnored>()), "no mask is applied, or padding is ignored");
}

}  // namespace
}  // namespace attn
