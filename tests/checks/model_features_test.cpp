// Layers with what today's models have: no false alarm, and the new checks on subjects that are wrong in the ways that
// users meet.
#include <ATen/ATen.h>

#include <gtest/gtest.h>

#include <ostream>
#include <sstream>

#include "attention/key_value_cache.h"
#include "attention/rope.h"
#include "checks/check_test_support.h"
#include "checks/input_parts.h"
#include "checks/pipeline_steps.h"
#include "config/config_file.h"

namespace attn {
namespace {

using Names = std::set<std::string>;

RunConfig run_of(std::vector<std::string> words) {
  std::istringstream no_input;
  words.emplace_back("threads=1");
  return load_config(std::nullopt, no_input, words);
}

/// B = 3, T = 9, H = 4 query heads over H_kv = 2 key heads of width 6.
RunConfig model_run(const std::vector<std::string>& more) {
  std::vector<std::string> words{"B=3",    "T=9",          "d_model=20", "H=4",           "d_k=6",
                                 "H_kv=2", "qkv=separate", "seed=5",     "max_seq_len=16"};
  words.insert(words.end(), more.begin(), more.end());
  return run_of(words);
}

std::string says(const CheckResult& result) { return describe({result}); }

struct ModelCase {
  std::string name;
  std::vector<std::string> words;
  Names must_pass;  ///< else a check that never applies would look like one that raises no alarm.
};

void PrintTo(const ModelCase& model, std::ostream* out) { *out << model.name; }

const Names kOfEveryLayer{
    "shapes",          "finite",      "effective-mask", "batch-independence", "head-independence", "gqa-map",
    "nan-propagation", "determinism", "gradient"};

std::vector<ModelCase> model_cases() {
  const std::string half = R"(rope={"style":"half"})";
  const Names rope{"rope-relative", "kv-cache", "scale", "causality", "mask-control", "truncation"};
  std::vector<ModelCase> cases{
      {"Llama", {half}, rope},
      {"LlamaAdjacentScaled",
       {R"(rope={"style":"adjacent","scaling":{"kind":"llama3","factor":8,"original_max_seq_len":16}})"},
       rope},
      {"Yarn", {R"(rope={"style":"half","scaling":{"kind":"yarn","factor":4,"original_max_seq_len":16}})"}, rope},
      {"BeyondBfloat16", {half, "max_seq_len=300", "B=1"}, rope},
      {"Mistral", {half, "window=3"}, {"window", "kv-cache", "rope-relative", "permutation"}},
      {"WindowOfOne", {"window=1"}, {"window", "kv-cache"}},
      {"WindowBothSides", {"window=3", "causal=false"}, {"window", "permutation"}},
      {"Gemma", {half, "softcap=5", "scale=0.3", "window=4"}, {"window", "scale", "kv-cache"}},
      {"Qwen", {half, "qk_norm=true", "bias=true", "output_bias=false"}, rope},
      {"Bloom", {"H_kv=1", "qkv=fused-per-head", "alibi=true"}, {"kv-cache", "causality-gradient"}},
      {"Falcon", {half, "qkv=fused-per-head"}, rope},
      {"GptOss", {half, "sink=true", "window=4"}, {"sink", "row-sums", "window", "kv-cache"}},
      {"Bert", {"causal=false", "padding=right", "lengths=[9,4,1]"}, {"padding", "permutation", "row-sums"}},
      {"LeftPadded", {half, "padding=left", "lengths=[9,4,1]"}, {"padding", "kv-cache", "causality", "mask-control"}},
      {"RightPadded", {half, "padding=right", "lengths=[9,4,1]"}, {"padding", "kv-cache", "causality"}},
      {"Prefix", {R"(mask={"kind":"prefix","length":4})"}, {"reference-forward"}},
      {"Documents", {R"(mask={"kind":"document","lengths":[4,5]})"}, {"kv-cache", "causality", "mask-control"}},
      {"Dilated", {R"(mask={"kind":"dilated","stride":2})", half}, {"kv-cache", "causality"}},
      {"CrossAttention",
       {R"(memory={"T_k":5})", "padding=right", "lengths=[5,2,1]"},
       {"padding", "permutation", "scale", "row-sums"}},
      {"Sdpa", {half, "engine=sdpa", "window=4"}, {"rope-relative", "window", "kv-cache", "reference-forward"}},
      {"SdpaPadded", {"engine=sdpa", "padding=left", "lengths=[9,4,1]", "alibi=true"}, {"padding", "kv-cache"}},
      {"Cached", {half, R"(cache={"prefill":3,"steps":3,"chunk":2})"}, {"kv-cache"}},
  };
  for (const char* dtype : {"float64", "bfloat16", "float16"}) {
    cases.push_back({std::string("LeftPaddedLlama_") + dtype,
                     {half, "padding=left", "lengths=[9,4,1]", "dtype=" + std::string(dtype)},
                     {"rope-relative", "padding", "kv-cache"}});
    cases.push_back({std::string("GptOss_") + dtype,
                     {half, "sink=true", "window=4", "dtype=" + std::string(dtype)},
                     {"sink", "row-sums", "window", "kv-cache"}});
  }
  return cases;
}

class ModelFeatures : public ::testing::TestWithParam<ModelCase> {};

TEST_P(ModelFeatures, RaiseNoAlarm) {
  const VerifyResult result = verify_attention(model_run(GetParam().words));
  EXPECT_EQ(with_status(result.checks, CheckStatus::kFail), Names{}) << describe(result.checks);
  EXPECT_EQ(with_status(result.checks, CheckStatus::kError), Names{}) << describe(result.checks);
  const Names passed = with_status(result.checks, CheckStatus::kPass);
  for (const Names& due : {kOfEveryLayer, GetParam().must_pass}) {
    for (const std::string& name : due) EXPECT_TRUE(passed.contains(name)) << says(find(result.checks, name));
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, ModelFeatures, ::testing::ValuesIn(model_cases()),
                         [](const auto& test) { return test.param.name; });

// ---- subjects that are wrong ----

/// A layer of a subclass of ours.
template <typename Layer>
LayerFactory layers_of() {
  return [](const RunConfig& run) {
    return make_layer(run, LayerMaker([](const AttentionConfig& sizes) { return std::make_shared<Layer>(sizes); }));
  };
}

template <typename Layer>
CheckResult verdict(const RunConfig& run, const std::string& check) {
  return judge(run, layers_of<Layer>(), {check}).front();
}

struct TurnsValuesToo : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  QueryKeyValue rotate_heads(const QueryKeyValue& heads, std::int64_t first) override {
    const QueryKeyValue turned = MultiHeadAttentionImpl::rotate_heads(heads, first);
    return {turned.q, turned.k, MultiHeadAttentionImpl::rotate_heads({heads.q, heads.v, heads.v}, first).k};
  }
};

struct TurnsInTheOtherStyle : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  QueryKeyValue rotate_heads(const QueryKeyValue& heads, std::int64_t first) override {
    const RopeTables tables = rope_tables(*config_.rope, config_.d_k(), first, heads.q.size(2), heads.q.options());
    const RotatedQueryKey turned = apply_rope(heads.q, heads.k, tables.cos, tables.sin, RopeStyle::kAdjacent);
    return {turned.q, turned.k, heads.v};
  }
};

/// R31: positions kept in bfloat16.
struct ForgetsEveryOtherPosition : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  QueryKeyValue rotate_heads(const QueryKeyValue& heads, std::int64_t first) override {
    const RopeTables whole = rope_tables(*config_.rope, config_.d_k(), 0, config_.max_seq_len, heads.q.options());
    const at::Tensor positions = at::arange(first, first + heads.q.size(2), at::kFloat).to(at::kBFloat16).to(at::kLong);
    const at::Tensor cos = whole.cos.index_select(0, positions), sin = whole.sin.index_select(0, positions);
    const RotatedQueryKey turned = apply_rope(heads.q, heads.k, cos, sin, config_.rope->style);
    return {turned.q, turned.k, heads.v};
  }
};

struct ForgetsTheOffset : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  QueryKeyValue rotate_heads(const QueryKeyValue& heads, std::int64_t) override {
    return MultiHeadAttentionImpl::rotate_heads(heads, 0);
  }
};

const std::string kHalf = R"(rope={"style":"half"})";

TEST(RopeRelative, SeesValuesThatAreTurned) {
  const CheckResult result = verdict<TurnsValuesToo>(model_run({kHalf}), "rope-relative");
  EXPECT_EQ(result.status, CheckStatus::kFail) << says(result);
  EXPECT_NE(result.detail.find("v is not to be turned"), std::string::npos) << says(result);
}

TEST(RopeRelative, NamesTheOtherStyle) {
  const CheckResult result = verdict<TurnsInTheOtherStyle>(model_run({kHalf}), "rope-relative");
  EXPECT_EQ(result.status, CheckStatus::kFail) << says(result);
  EXPECT_NE(result.detail.find("they match style adjacent"), std::string::npos) << says(result);
}

TEST(RopeRelative, SeesPositionsInBfloat16WhereTheLayerTakesThatMany) {
  const RunConfig run = model_run({kHalf, "max_seq_len=300"});  // T is 9
  const CheckResult result = verdict<ForgetsEveryOtherPosition>(run, "rope-relative");
  EXPECT_EQ(result.status, CheckStatus::kFail) << says(result);
  EXPECT_NE(result.where_first.find("query 257"), std::string::npos) << says(result);
}

TEST(KvCache, SeesPositionsThatStartAgainWithEveryCall) {
  const CheckResult result = verdict<ForgetsTheOffset>(model_run({kHalf}), "kv-cache");
  EXPECT_EQ(result.status, CheckStatus::kFail) << says(result);
  EXPECT_NE(result.detail.find("one token at a time, output (batch 0, token 1, channel 0) is not that of one run"),
            std::string::npos)
      << says(result);
}

/// A cache that is not really emptied.
struct StaleCache : KeyValueCache {
  void reset() override {
    if (tokens_seen_ > 1) keep_last(1);
    tokens_seen_ = k_.defined() ? 1 : 0;
  }
};

struct KeepsAStaleCache : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  std::unique_ptr<KeyValueCache> make_cache() const override { return std::make_unique<StaleCache>(); }
};

struct DropsNothing : KeyValueCache {
  void keep_last(std::int64_t) override {}
};

struct KeepsEveryKey : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  std::unique_ptr<KeyValueCache> make_cache() const override { return std::make_unique<DropsNothing>(); }
};

/// R08: the mask anchored at the top left, as if the new queries were the first tokens.
struct TopLeft : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  std::optional<at::Tensor> mask(const MaskPlace& place, const at::Tensor& real_keys) const override {
    return MultiHeadAttentionImpl::mask({place.query_len, place.key_len, 0, 0}, real_keys);
  }
};

TEST(KvCache, SeesACacheThatIsNotEmptied) {
  const CheckResult result = verdict<KeepsAStaleCache>(model_run({}), "kv-cache");
  EXPECT_EQ(result.status, CheckStatus::kFail) << says(result);
}

TEST(KvCache, SeesKeysThatAWindowHidesForGood) {
  const CheckResult result = verdict<KeepsEveryKey>(model_run({"window=3"}), "kv-cache");
  EXPECT_EQ(result.status, CheckStatus::kFail) << says(result);
  EXPECT_NE(result.detail.find("the cache holds 3 keys, of which a later query can see 2"), std::string::npos)
      << says(result);
}

TEST(KvCache, SeesAMaskAtTheTopLeft) {
  const CheckResult result = verdict<TopLeft>(model_run({}), "kv-cache");
  EXPECT_EQ(result.status, CheckStatus::kFail) << says(result);
  EXPECT_EQ(verdict<TopLeft>(model_run({}), "causality").status, CheckStatus::kPass);  // unseen with equal lengths
}

TEST(KvCache, TellsHowManyBytesATokenTakes) {
  const CheckResult result = verdict<MultiHeadAttentionImpl>(model_run({}), "kv-cache");
  EXPECT_NE(result.detail.find("96 bytes a token"), std::string::npos) << says(result);  // 2 * 2 * 6 * 4
}

/// A window of another size.
template <int kMore>
struct OtherWindow : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  std::optional<at::Tensor> mask(const MaskPlace& place, const at::Tensor& real_keys) const override {
    MultiHeadAttentionImpl other(changed());
    return other.mask(place, real_keys);
  }
  AttentionConfig changed() const {
    AttentionConfig other = config_;
    other.window = *config_.window + kMore;
    return other;
  }
};

TEST(Window, PrintsHowManyKeysEachQuerySeesAndSaysWhenItIsOffByOne) {
  const RunConfig run = model_run({"window=3"});
  const CheckResult honest = verdict<MultiHeadAttentionImpl>(run, "window");
  EXPECT_EQ(honest.status, CheckStatus::kPass);
  EXPECT_NE(honest.detail.find("1,2,3,3,3,3,3,3,3"), std::string::npos) << says(honest);
  const CheckResult more = verdict<OtherWindow<1>>(run, "window");
  EXPECT_EQ(more.status, CheckStatus::kFail);
  EXPECT_NE(more.detail.find("see 1,2,3,4,4,4,4,4,4 keys, expected 1,2,3,3,3,3,3,3,3: a window of W + 1"),
            std::string::npos)
      << says(more);
  const CheckResult fewer = verdict<OtherWindow<-1>>(run, "window");
  EXPECT_NE(fewer.detail.find(": a window of W - 1"), std::string::npos) << says(fewer);
  const CheckResult none = verdict<OtherWindow<100>>(run, "window");
  EXPECT_NE(none.detail.find(": the window is not applied"), std::string::npos) << says(none);
}

TEST(Window, TakesMoreTokensWhereTheRunIsNoLongerThanIt) {
  const CheckResult result = verdict<OtherWindow<1>>(model_run({"window=12"}), "window");  // T is 9
  EXPECT_EQ(result.status, CheckStatus::kFail) << says(result);
}

/// R20: every item takes the padding of the one before it.
struct SwapsPadding : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  std::optional<at::Tensor> mask(const MaskPlace& place, const at::Tensor& real_keys) const override {
    return MultiHeadAttentionImpl::mask(place, real_keys.defined() ? real_keys.roll(1, 0) : real_keys);
  }
};

struct IgnoresPadding : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  std::optional<at::Tensor> mask(const MaskPlace& place, const at::Tensor&) const override {
    return MultiHeadAttentionImpl::mask(place);
  }
};

/// R07: with padding the causal mask is dropped.
struct DropsCausalWithPadding : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  std::optional<at::Tensor> mask(const MaskPlace& place, const at::Tensor& real_keys) const override {
    if (!real_keys.defined()) return MultiHeadAttentionImpl::mask(place);
    return real_keys.unsqueeze(1).unsqueeze(1).expand({-1, 1, place.query_len, place.key_len});
  }
};

TEST(Padding, SeesItemsThatTakeEachOthersOrNone) {
  const RunConfig left = model_run({"padding=left", "lengths=[9,4,2]"});
  const RunConfig right = model_run({"padding=right", "lengths=[9,4,2]", "causal=false"});
  for (const RunConfig& run : {left, right}) {
    for (const CheckResult& result : {verdict<SwapsPadding>(run, "padding"), verdict<IgnoresPadding>(run, "padding")}) {
      EXPECT_EQ(result.status, CheckStatus::kFail) << says(result);
      EXPECT_NE(result.detail.find("other numbers in the padding move output"), std::string::npos) << says(result);
    }
  }
}

TEST(Padding, ThatACausalMaskHidesAnywayIsSeenByItsWeights) {
  // No real token sees what comes after it, so only rows that are padding themselves show that it was forgotten.
  const RunConfig run = model_run({"padding=right", "lengths=[9,4,2]"});
  EXPECT_EQ(verdict<IgnoresPadding>(run, "padding").status, CheckStatus::kPass);
  EXPECT_EQ(verdict<IgnoresPadding>(run, "masked-weights").status, CheckStatus::kFail);
  EXPECT_EQ(verdict<IgnoresPadding>(run, "effective-mask").status, CheckStatus::kFail);
}

TEST(Causality, IsJudgedWithThePaddingInPlace) {
  const RunConfig run = model_run({"padding=right", "lengths=[9,4,2]"});
  for (const char* check : {"causality", "causality-gradient", "effective-mask", "masked-weights"}) {
    EXPECT_EQ(verdict<DropsCausalWithPadding>(run, check).status, CheckStatus::kFail) << check;
  }
}

/// R27: h mod H_kv.
struct TiledHeads : AttentionCore {
  at::Tensor compute_scores(const at::Tensor& q, const at::Tensor& k) const override {
    return at::matmul(q, k.repeat({1, q.size(1) / k.size(1), 1, 1}).transpose(-2, -1));
  }
  at::Tensor mix_values(const at::Tensor& weights, const at::Tensor& v) const override {
    return at::matmul(weights, v.repeat({1, weights.size(1) / v.size(1), 1, 1}));
  }
};

TEST(GqaMap, PrintsTheMapAndNamesHeadsThatAreTiled) {
  const RunConfig run = model_run({});
  const CheckResult honest = verdict<MultiHeadAttentionImpl>(run, "gqa-map");
  EXPECT_NE(honest.detail.find("query heads 0 to 3 use key heads 0,0,1,1"), std::string::npos) << says(honest);
  const LayerFactory tiled = [](const RunConfig& config) {
    return make_layer(config, std::make_shared<const TiledHeads>());
  };
  const CheckResult result = judge(run, tiled, {"gqa-map"}).front();
  EXPECT_EQ(result.status, CheckStatus::kFail);
  EXPECT_NE(result.detail.find("the query heads use the key heads 0,1,0,1, expected 0,0,1,1: they are tiled"),
            std::string::npos)
      << says(result);
  EXPECT_EQ(judge(run, tiled, {"head-independence"}).front().status, CheckStatus::kFail);
}

/// R51: a sink that is there and does nothing.
struct DropsTheSink : AttentionCore {
  at::Tensor normalize_scores(const at::Tensor& masked, const std::optional<at::Tensor>& mask,
                              const std::optional<at::Tensor>&) const override {
    return AttentionCore::normalize_scores(masked, mask, std::nullopt);
  }
};

struct AddsASink : AttentionCore {
  at::Tensor normalize_scores(const at::Tensor& masked, const std::optional<at::Tensor>& mask,
                              const std::optional<at::Tensor>&) const override {
    return AttentionCore::normalize_scores(masked, mask, at::zeros({masked.size(1)}, masked.options()));
  }
};

template <typename Core>
LayerFactory cores_of() {
  return [](const RunConfig& config) { return make_layer(config, std::make_shared<const Core>()); };
}

TEST(Sink, ThatTakesNoShareIsSeenAndNamed) {
  const RunConfig run = model_run({"sink=true"});
  const CheckResult sink = judge(run, cores_of<DropsTheSink>(), {"sink"}).front();
  EXPECT_EQ(sink.status, CheckStatus::kFail);
  EXPECT_NE(sink.detail.find("every row gives 1 to its keys: the sink takes no share"), std::string::npos)
      << says(sink);
  const CheckResult sums = judge(run, cores_of<DropsTheSink>(), {"row-sums"}).front();
  EXPECT_EQ(sums.status, CheckStatus::kFail);
  EXPECT_NE(sums.detail.find("every row sums to 1: the sink takes no share"), std::string::npos) << says(sums);
}

TEST(RowSums, NameASinkThatTheConfigDoesNotHave) {
  const CheckResult sums = judge(model_run({}), cores_of<AddsASink>(), {"row-sums"}).front();
  EXPECT_EQ(sums.status, CheckStatus::kFail);
  EXPECT_NE(sums.detail.find("a sink that the config does not have?"), std::string::npos) << says(sums);
}

TEST(Scale, NamesTheDefaultWhereTheConfigGivesAnother) {
  struct Default : AttentionCore {
    at::Tensor scale_scores(const at::Tensor& scores, double) const override { return scores / std::sqrt(6.0); }
  };
  const CheckResult result = judge(model_run({"scale=0.1"}), cores_of<Default>(), {"scale"}).front();
  EXPECT_EQ(result.status, CheckStatus::kFail);
  EXPECT_NE(result.detail.find("1/sqrt(d_k), though the config gives a scale, expected 0.1 = the config's scale"),
            std::string::npos)
      << says(result);
}

// ---- parts ----

TEST(InputParts, TakeMemoryAndPaddingAlong) {
  const AttentionInput self{
      at::arange(12).view({2, 3, 2}), {}, at::tensor({1, 0, 1, 1, 1, 0}).view({2, 3}).to(at::kBool)};
  EXPECT_TRUE(items_of(self, 1, 1).real_keys.equal(self.real_keys.narrow(0, 1, 1)));
  EXPECT_TRUE(tokens_of(self, 0, 2).real_keys.equal(self.real_keys.narrow(1, 0, 2)));
  EXPECT_TRUE(chosen_items(self, {1, 0, 1}).real_keys[2].equal(self.real_keys[1]));
  AttentionInput cross = self;
  cross.memory = at::arange(12).view({2, 3, 2}) + 100;
  EXPECT_TRUE(tokens_of(cross, 0, 2).real_keys.equal(self.real_keys));  // they are the memory's
  EXPECT_TRUE(tokens_of(cross, 0, 2).memory.equal(cross.memory));
  EXPECT_TRUE(key_source(cross).equal(cross.memory));
  EXPECT_TRUE(with_key_source(cross, self.x).x.equal(self.x));
  EXPECT_TRUE(in_type(cross, at::kDouble).memory.scalar_type() == at::kDouble);
  EXPECT_TRUE(in_type(cross, at::kDouble).real_keys.scalar_type() == at::kBool);
}

TEST(PipelineSteps, AreThoseOfTheFeaturesThatTheLayerHas) {
  const auto names = [](const RunConfig& run) {
    std::string text;
    for (const ExpectedStep& step : expected_steps(run.attention, 1, 2, 2, run.memory_length.has_value())) {
      text += std::string(step_name(step.step)) + " ";
    }
    return text;
  };
  EXPECT_EQ(names(model_run({kHalf, "qk_norm=true", "softcap=5", "alibi=true", "qkv=fused"})),
            "x qkv q k v q_normed k_normed q_rotated k_rotated scores scaled_scores capped_scores biased_scores "
            "masked_scores weights dropped_weights context merged projected output ");
  EXPECT_EQ(names(model_run({R"(memory={"T_k":5})", "engine=sdpa"})),
            "x memory q_proj k_proj v_proj q k v context merged projected output ");
}

}  // namespace
}  // namespace attn
