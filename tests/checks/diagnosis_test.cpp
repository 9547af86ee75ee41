// Every known mistake, planted, is named; what is none of them is not.
#include "checks/diagnosis/diagnosis.h"

#include <ATen/ATen.h>

#include <chrono>
#include <limits>

#include <gtest/gtest.h>

#include "attention/heads.h"
#include "checks/check_test_support.h"
#include "checks/faults/fault.h"

namespace attn {
namespace {

/// No two sizes agree and no two scales; the output weight is square, T is more than 8.
RunConfig telling_run(QkvLayout layout = QkvLayout::kFused) {
  RunConfig run = small_run();
  run.T = 10;
  run.attention.qkv = layout;
  run.attention.bias = true;
  return run;
}

std::string explanation(const RunConfig& run, const LayerFactory& factory) {
  LayerSubject subject(run, factory);
  CheckContext context(subject, run, {input_of(run)});
  return explain_failure(context);
}

struct Named {
  std::string fault, words;
  QkvLayout layout = QkvLayout::kFused;
};

const std::vector<Named> kNamedFaults{
    {"scale-none", "scale 1 instead of 1/sqrt(d_k) (0.5)"},
    {"scale-sqrt-d-model", "scale 1/sqrt(d_model) (0.2887) instead of 1/sqrt(d_k) (0.5)"},
    {"scale-d-k", "scale 1/d_k (0.25) instead of 1/sqrt(d_k) (0.5)"},
    {"scale-twice", "scale 1/d_k (0.25) instead of 1/sqrt(d_k) (0.5)"},
    {"scale-sqrt-heads", "scale 1/sqrt(H) (0.5774) instead of 1/sqrt(d_k) (0.5)"},
    {"softmax-over-queries", "softmax over the queries instead of the keys"},
    {"softmax-over-heads", "softmax over the heads instead of the keys"},
    {"mask-after-softmax", "the mask is applied after the softmax, and rows are not normalised again"},
    {"mask-none", "no mask is applied"},
    {"mask-leaks-one-key", "the mask is shifted by one: each query also sees the next key"},
    {"mask-hides-oneself", "the mask is shifted by one: no query sees its own key"},
    {"mask-upper-lower-swapped", "the mask is the upper triangle: each query sees its own and later keys"},
    {"heads-bare-reshape", "heads are split by a bare reshape, without swapping axes"},
    {"heads-merged-without-transpose", "heads are merged by a bare reshape, without swapping axes"},
    {"heads-reversed", "heads are merged in reverse order"},
    {"heads-averaged", "each head is replaced by the mean of all"},
    {"head-dropped", "head 2 is left out"},
    {"qk-swapped", "q and k are swapped"},
    {"kv-swapped", "k and v are swapped"},
    {"fused-thirds-per-head", "c_attn is read head by head instead of in thirds"},
    {"per-head-as-thirds", "qkv_proj is read in thirds instead of head by head", QkvLayout::kFusedPerHead},
    {"heads-bare-reshape", "heads are split by a bare reshape, without swapping axes", QkvLayout::kFusedPerHead},
    {"heads-bare-reshape", "heads are split by a bare reshape, without swapping axes", QkvLayout::kSeparate},
    {"bias-forgotten", "no bias is added"},
    {"output-projection-forgotten", "the output projection is left out"},
    {"output-weight-transposed", "c_proj.weight is used transposed"},
    {"residual-added", "the input is added to the output"},
    {"gradient-detached-q", "no gradient goes back to q"},
    {"gradient-detached-k", "no gradient goes back to k"},
    {"gradient-detached-v", "no gradient goes back to v"},
    {"gradient-doubled", "the gradient of v is doubled"},
    {"gradient-zero", "no gradient goes back to q"},
};

TEST(Diagnosis, NamesEveryKnownMistake) {
  for (const Named& known : kNamedFaults) {
    EXPECT_EQ(explanation(telling_run(known.layout), fault_named(known.fault).plant()), known.words) << known.fault;
  }
}

TEST(Diagnosis, NamesThemInEveryPrecision) {
  for (const Dtype dtype : {Dtype::kFloat64, Dtype::kBFloat16, Dtype::kFloat16}) {
    RunConfig run = telling_run();
    run.dtype = dtype;
    EXPECT_EQ(explanation(run, fault_named("scale-sqrt-d-model").plant()),
              "scale 1/sqrt(d_model) (0.2887) instead of 1/sqrt(d_k) (0.5)")
        << to_string(dtype);
  }
}

TEST(Diagnosis, NamesThemWithoutACausalMask) {
  RunConfig run = telling_run();
  run.attention.causal = false;
  EXPECT_EQ(explanation(run, fault_named("qk-swapped").plant()), "q and k are swapped");
  EXPECT_EQ(explanation(run, fault_named("softmax-over-queries").plant()),
            "softmax over the queries instead of the keys");
}

TEST(Diagnosis, SaysNothingAboutWhatItDoesNotKnow) {
  for (const char* fault :
       {"mask-block-forgotten", "values-averaged-over-4", "future-mixed-in-1e-6", "context-off", "heads-cut-off-by-one",
        "weights-announced-twice", "nan-in-one-weight", "throws", "output-flat", "gradient-nan-in-one-element"}) {
    EXPECT_EQ(explanation(telling_run(), fault_named(fault).plant()), "") << fault;
  }
}

TEST(Diagnosis, SaysNothingAboutAnHonestLayer) {
  for (const QkvLayout layout : {QkvLayout::kFused, QkvLayout::kFusedPerHead, QkvLayout::kSeparate}) {
    EXPECT_EQ(explanation(telling_run(layout), [](const RunConfig& run) { return make_layer(run); }), "");
  }
}

// ---- mistakes that no fault of the list makes ----

using Heads = QueryKeyValue;

struct InAnotherOrder : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  Heads split_qkv(const Projections& projections) override {
    const Heads right = MultiHeadAttentionImpl::split_qkv(projections);
    const std::array<at::Tensor, 3> parts{right.q, right.k, right.v};
    return {parts[order[0]], parts[order[1]], parts[order[2]]};
  }
  std::array<std::size_t, 3> order{0, 1, 2};
};

LayerFactory in_order(const std::array<std::size_t, 3>& order) {
  return [order](const RunConfig& run) {
    return make_layer(run, LayerMaker([&](const AttentionConfig& config) {
                        auto layer = std::make_shared<InAnotherOrder>(config);
                        layer->order = order;
                        return layer;
                      }));
  };
}

TEST(Diagnosis, NamesEveryOrderOfQueriesKeysAndValues) {
  EXPECT_EQ(explanation(telling_run(), in_order({1, 0, 2})), "q and k are swapped");
  EXPECT_EQ(explanation(telling_run(), in_order({0, 2, 1})), "k and v are swapped");
  EXPECT_EQ(explanation(telling_run(), in_order({2, 1, 0})), "q and v are swapped");
  EXPECT_EQ(explanation(telling_run(), in_order({1, 2, 0})), "k, v, q are taken as q, k, v");
  EXPECT_EQ(explanation(telling_run(), in_order({2, 0, 1})), "v, q, k are taken as q, k, v");
}

/// Hides what it should show and shows what it should hide; rows without a key become NaN.
struct Inverted : AttentionCore {
  at::Tensor mask_scores(const at::Tensor& scaled, const std::optional<at::Tensor>& mask) const override {
    return scaled.masked_fill(*mask, -std::numeric_limits<double>::infinity());
  }
};

TEST(Diagnosis, NamesAnInvertedMask) {
  EXPECT_EQ(explanation(telling_run(), core_fault<Inverted>()()),
            "the mask is inverted: each query sees later keys only");
}

struct AlwaysCausal : AttentionCore {
  at::Tensor mask_scores(const at::Tensor& scaled, const std::optional<at::Tensor>&) const override {
    return AttentionCore::mask_scores(scaled, at::ones({scaled.size(-2), scaled.size(-1)}, at::kBool).tril());
  }
};

TEST(Diagnosis, NamesACausalMaskThatTheConfigDoesNotHave) {
  RunConfig run = telling_run();
  run.attention.causal = false;
  EXPECT_EQ(explanation(run, core_fault<AlwaysCausal>()()), "a causal mask is applied, the config has none");
}

struct BareReshapeBothWays : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  Heads split_qkv(const Projections& projections) override {
    const auto split = [&](const at::Tensor& wide) {
      return wide.reshape({wide.size(0), config_.H, wide.size(1), config_.d_k()});
    };
    const Heads wide = split_qkv_widths(*projections.qkv, config_.heads_width());
    return {split(wide.q), split(wide.k), split(wide.v)};
  }
  at::Tensor merge_context(const at::Tensor& context) override {
    return context.reshape({context.size(0), context.size(2), -1});
  }
};

TEST(Diagnosis, NamesABareReshapeBothWays) {
  EXPECT_EQ(explanation(telling_run(), multi_head_fault<BareReshapeBothWays>()()),
            "heads are split and merged by a bare reshape, without swapping axes");
}

/// The weights of q_proj and o_proj, or of all four, as somebody who forgot a transpose loads them.
struct SomeTransposed : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  Projections project_qkv(const at::Tensor& x, const at::Tensor&) override {
    const auto project = [&](std::size_t index, bool transposed) {
      const at::Tensor weight = qkv_layers_[index]->weight;
      return at::linear(x, transposed ? weight.t() : weight, qkv_layers_[index]->bias);
    };
    return {std::nullopt, Heads{project(0, true), project(1, all), project(2, all)}};
  }
  at::Tensor project_output(const at::Tensor& merged) override {
    return at::linear(merged, all ? output_layer_->weight.t() : output_layer_->weight, output_layer_->bias);
  }
  bool all = false;
};

LayerFactory transposed(bool all) {
  return [all](const RunConfig& run) {
    return make_layer(run, LayerMaker([&](const AttentionConfig& config) {
                        auto layer = std::make_shared<SomeTransposed>(config);
                        layer->all = all;
                        return layer;
                      }));
  };
}

TEST(Diagnosis, NamesTheWeightThatIsTransposed) {
  EXPECT_EQ(explanation(telling_run(QkvLayout::kSeparate), transposed(false)), "q_proj.weight is used transposed");
  EXPECT_EQ(explanation(telling_run(QkvLayout::kSeparate), transposed(true)), "every square weight is used transposed");
}

struct OneBiasForgotten : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  at::Tensor project_output(const at::Tensor& merged) override { return at::linear(merged, output_layer_->weight); }
};

TEST(Diagnosis, NamesTheBiasThatIsForgotten) {
  EXPECT_EQ(explanation(telling_run(), multi_head_fault<OneBiasForgotten>()()), "c_proj.bias is not added");
}

// ---- dropout ----

TEST(Diagnosis, NamesDropoutThatIsActiveInEval) {
  RunConfig run = telling_run();
  const std::string words = explanation(run, fault_named("dropout-in-eval").plant());
  EXPECT_TRUE(words.starts_with("dropout is active in eval: ")) << words;
  EXPECT_TRUE(words.ends_with(" % of the weights are 0, the others are multiplied by 1.25")) << words;
}

struct OutputDropped : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  at::Tensor project_output(const at::Tensor& merged) override {
    return at::dropout(MultiHeadAttentionImpl::project_output(merged), 0.5, true);
  }
};

TEST(Diagnosis, NamesDropoutOfTheOutputToo) {
  const std::string words = explanation(telling_run(), multi_head_fault<OutputDropped>()());
  EXPECT_TRUE(words.starts_with("dropout is active in eval: ")) << words;
  EXPECT_TRUE(words.ends_with(" % of the outputs are 0, the others are multiplied by 2")) << words;
}

// ---- what coincides, what is hidden ----

TEST(Diagnosis, NamesAllScalesThatAreTheSameNumber) {
  RunConfig run = telling_run();
  run.attention.d_model = 16;
  run.attention.H = 4;  // d_k = 4, and 1/sqrt(H) is the right scale
  EXPECT_EQ(explanation(run, fault_named("scale-sqrt-d-model").plant()),
            "scale 1/d_k or 1/sqrt(d_model) (0.25) instead of 1/sqrt(d_k) (0.5)");
}

TEST(Diagnosis, SaysOrWhenTwoMistakesAreTheSame) {
  // With one token every weight is 1: which of the two read v from where k stands cannot be told apart.
  RunConfig run = telling_run();
  run.T = 1;
  EXPECT_EQ(explanation(run, in_order({0, 2, 1})), "k and v are swapped, or v, q, k are taken as q, k, v");
}

class ShowsNothing : public LayerSubject {
 public:
  using LayerSubject::LayerSubject;
  std::optional<CapturedSteps> forward_with_steps(const AttentionInput&) override { return std::nullopt; }
  std::unique_ptr<Subject> rebuild(Dtype) override { return nullptr; }
  std::vector<std::pair<std::string, at::Tensor>> named_parameters() override {
    if (shows_parameters) return LayerSubject::named_parameters();
    return {};
  }
  bool shows_parameters = false;
};

TEST(Diagnosis, SaysNothingAboutALayerThatShowsNothing) {
  const RunConfig run = telling_run();
  ShowsNothing subject(run, fault_named("scale-none").plant());
  CheckContext context(subject, run, {input_of(run)});
  EXPECT_EQ(explain_failure(context), "");
}

TEST(Diagnosis, NeedsNoStepsAndNoRebuiltLayer) {
  for (const Dtype dtype : {Dtype::kFloat32, Dtype::kBFloat16}) {
    RunConfig run = telling_run();
    run.dtype = dtype;
    for (const char* fault : {"kv-swapped", "heads-reversed", "output-weight-transposed"}) {
      ShowsNothing subject(run, fault_named(fault).plant());
      subject.shows_parameters = true;
      CheckContext context(subject, run, {input_of(run)});
      EXPECT_NE(explain_failure(context), "") << fault;
    }
  }
}

TEST(Diagnosis, TakesWellBelowASecond) {
  RunConfig run = telling_run();
  run.T = 16;
  run.attention.d_model = 64;
  run.attention.H = 4;
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(explanation(run, fault_named("values-averaged-over-4").plant()), "");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(500));
}

}  // namespace
}  // namespace attn
