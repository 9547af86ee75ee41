// Planted faults and what explains them: each that has a name gets it, and those that have none are listed with the
// reason.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "checks/check_test_support.h"
#include "checks/diagnosis/diagnosis.h"
#include "checks/planted_faults.h"
#include "config/config_file.h"

namespace attn {
namespace {

using Words = std::vector<std::string>;

RunConfig run_of(const Words& set_words) {
  std::istringstream no_input;
  Words words{"B=2", "T=10", "d_model=12", "H=3", "max_seq_len=16", "threads=1", "seed=5"};
  words.insert(words.end(), set_words.begin(), set_words.end());
  return load_config(std::nullopt, no_input, words);
}

std::string explanation(const RunConfig& run, const LayerFactory& factory) {
  LayerSubject subject(run, factory);
  CheckContext context(subject, run, whole_input_of(run));
  return explain_failure(context);
}

const std::string kRope = R"(rope={"style":"half","theta":100})", kPrefix = R"(mask={"kind":"prefix","length":4})";
const Words kGrouped{"H=6", "H_kv=3", "d_k=4"}, kPadded{"padding=right", "lengths=[10,6]"},
    kPaddedLeft{"padding=left", "lengths=[10,6]"};

struct Named {
  std::string fault;
  Words config;
  std::string words;
};

const std::vector<Named> kNamed{
    {"scale-twice", {"scale=0.3"}, "scale the config's squared (0.09) instead of the config's 0.3"},
    {"weights-rounded-to-bfloat16", {}, "the weights are rounded to bfloat16"},
    {"mask-leaks-one-key", kPaddedLeft, "the mask is shifted by one: each query also sees the next key"},
    {"mask-hides-oneself", {"window=4"}, "the mask is shifted by one: no query sees its own key"},
    {"mask-upper-lower-swapped", kPaddedLeft, "the mask is the upper triangle: each query sees its own and later keys"},
    {"window-not-causal",
     {"window=4", "padding=right", "lengths=[10,6]"},
     "the window, to both sides, and the padding mask are applied in place of the causal one"},
    {"softcap-before-scale", {"softcap=0.5"}, "the softcap is applied before the scale"},
    {"alibi-forgotten", {"alibi=true"}, "the ALiBi bias is left out"},
    {"alibi-wrong-sign", {"alibi=true"}, "the ALiBi bias has the wrong sign: keys further away are preferred"},
    {"alibi-twice", {"alibi=true"}, "the ALiBi bias is added twice"},
    {"sink-of-first-head", {"sink=true"}, "every head has the sink of head 0"},
    {"sink-scaled", {"sink=true"}, "the sink is scaled, as if it were a dot product"},
    {"qk-norm-over-all-heads", {"qk_norm=true"}, "q and k are normalised over all heads together"},
    {"qk-norm-over-all-heads", {"qk_norm=true", "H=4", "H_kv=2"}, "q and k are normalised over all heads together"},
    {"qk-norm-without-weight", {"qk_norm=true"}, "q and k are normalised without the norm's weight"},
    {"rope-table-in-bfloat16", {kRope}, "rope's cos and sin are rounded to bfloat16"},
    {"rope-keys-shifted", {kRope}, "rope turns k one position too far"},
    {"groups-tiled", kGrouped,
     "query head h gets the keys and values of key head h mod H_kv: tiled, neighbours do not share one"},
    {"groups-keys-tiled", kGrouped,
     "query head h gets the keys of key head h mod H_kv: tiled, neighbours do not share one"},
    {"groups-values-tiled", kGrouped,
     "query head h gets the values of key head h mod H_kv: tiled, neighbours do not share one"},
    {"groups-of-neighbour", kGrouped, "each query head gets the keys and values of the key head before its own"},
    {"groups-of-neighbour", {"H=4", "H_kv=2"}, "each query head gets the keys and values of the other key head"},
    {"head-values-of-another", kGrouped, "each query head gets the values of the query head before it"},
    {"head-values-of-another", {}, "each query head gets the values of the key head before its own"},
    {"keys-of-neighbour-item", {}, "each batch item gets the keys of the item before"},
    {"values-of-neighbour-item", {}, "each batch item gets the values of the item before"},
    {"scores-of-other-keys", {}, "each token gets the keys of the token before"},
    {"own-mask-transposed",
     {"causal=false", kPrefix},
     "the config's own mask is transposed: its rows are taken for keys"},
    {"padding-of-neighbour", kPadded, "each batch item has the padding of the one before"},
    {"padding-other-side", kPadded, "padding is taken to be on the other side"},
    {"empty-rows-uniform", kPaddedLeft, "a query that may look at no key looks at all keys alike"},
    {"empty-rows-nan", kPaddedLeft, "a query that may look at no key gets NaN, the softmax of nothing but -inf"},
    {"softmax-over-queries", kPadded, "softmax over the queries instead of the keys"},
    {"rope-offset-forgotten", {kRope}, "with a cache, rope counts positions from 0 in every call"},
    {"cache-top-left", {}, "with a cache, the mask is aligned to the first key instead of the last"},
    {"cache-top-left", {"window=4"}, "with a cache, the mask is aligned to the first key instead of the last"},
    {"cache-appended-twice",
     {},
     "with a cache, the keys and values of a call are appended twice and push the oldest out"},
    {"cache-last-key-lost", {}, "with a cache, the last key and value of the call before are 0"},
    {"cache-stale-after-reset",
     {},
     "a reset does not empty the cache: the first run in pieces is right, the same run once more is not"},
    {"cache-drops-one-too-many",
     {"window=4"},
     "with a cache, one key too few is kept for the window of 4: 2 instead of 3"},
    {"cache-forgets-window", {"window=4"}, "with a cache, the window of 4 is not applied from the second call on"},
    {"gradient-zero-of-output-weight", {}, "no gradient goes back to c_proj.weight"},
    {"gradient-frozen-output-weight", {}, "no gradient goes back to c_proj.weight"},
    {"gradient-doubled-of-output-weight", {}, "the gradient of c_proj.weight is doubled"},
};

TEST(NamedFaults, AreNamedInEveryPrecision) {
  for (const std::string dtype : {"float32", "float64", "bfloat16", "float16"}) {
    for (const Named& named : kNamed) {
      Words words = named.config;
      words.push_back("dtype=" + dtype);
      const RunConfig run = run_of(words);
      const bool applies = !why_not_applicable(named.fault, run).has_value();
      EXPECT_TRUE(applies || dtype == "bfloat16") << named.fault;
      if (applies) {
        EXPECT_EQ(explanation(run, planted(named.fault)), named.words) << named.fault << " " << dtype;
      }
    }
  }
}

// ---- all faults ----

/// Those that nothing explains, and why.
const std::map<std::string, std::string> kNameless{
    {"scale-announced-twice", "the output is right, a step is announced wrongly"},
    {"weights-announced-twice", "the output is right, a step is announced wrongly"},
    {"nan-in-one-weight", "one number of one place"},
    {"first-token-rounded", "one number of one place"},
    {"gradient-one-element-off", "one number of one place"},
    {"gradient-nan-in-one-element", "one number of one place"},
    {"mask-hides-visible-key", "one pair of query and key, which the check of the mask names"},
    {"leak-corner-first", "one pair of query and key, which the check of the mask names"},
    {"leak-corner-far", "one pair of query and key, which the check of the mask names"},
    {"leak-corner-last", "one pair of query and key, which the check of the mask names"},
    {"leak-random", "one pair of query and key, which the check of the mask names"},
    {"mask-block-forgotten", "a block of pairs of a size of its own"},
    {"mask-right-up-to-8", "a block of pairs of a size of its own"},
    {"mask-fill-minus-50", "a number that nothing in the config tells"},
    {"future-mixed-in-1e-6", "a number that nothing in the config tells"},
    {"context-off", "a number that nothing in the config tells"},
    {"leak-in-gradient-alone", "an addend of 0 that has a gradient: no step of the formula"},
    {"heads-cut-off-by-one", "made to be seen by one check, nobody writes it"},
    {"values-averaged-over-4", "made to be seen by one check, nobody writes it"},
    {"values-weighted-by-place", "made to be seen by one check, nobody writes it"},
    {"outputs-averaged-over-4", "made to be seen by one check, nobody writes it"},
    {"outputs-scaled-by-length", "made to be seen by one check, nobody writes it"},
    {"nan-turned-into-0", "every finite input gives the right output"},
    {"output-all-zero", "the check says all there is to say"},
    {"head-axis-left", "no number is wrong, a shape is"},
    {"output-flat", "no number is wrong, a shape is"},
    {"throws", "there is no output"},
    {"noise-1e-6", "two runs differ"},
    {"state-kept", "two runs differ"},
    {"watched-differs", "two runs differ"},
    {"rebuilt-differently", "two layers differ, each is right"},
    {"dropout-not-scaled", "the output is right in eval, and random in training"},
    {"dropout-half", "the output is right in eval, and random in training"},
};

/// A causal layer has the right mask then: only taking the masks off shows it.
bool is_right_here(const std::string& fault, const RunConfig& run) {
  return fault == "mask-always-on" && run.attention.causal;
}

const std::vector<Words> kConfigs{
    {"H=6", "H_kv=3", "d_k=4", R"(rope={"style":"half","theta":100,"scaling":{"kind":"linear","factor":3}})",
     "qk_norm=true", "window=4", "padding=left", "lengths=[10,6]", "bias=true", "dropout=0.1", "softcap=0.5",
     "sink=true", "scale=0.3", "alibi=true"},
    {R"(rope={"style":"adjacent","scaling":{"kind":"yarn","factor":4,"original_max_seq_len":16}})", "qk_norm=true",
     R"(mask={"kind":"document","lengths":[3,4]})", "qkv=fused-per-head", "bias=true"},
    {"causal=false", kPrefix, "qkv=separate", "bias=true"},
    {},
};

TEST(NamedFaults, AreAllButThoseWithAReason) {
  std::set<std::string> tried;
  for (const Words& words : kConfigs) {
    const RunConfig run = run_of(words);
    EXPECT_EQ(explanation(run, [](const RunConfig& of) { return make_layer(of); }), "");
    for (const FaultInfo& fault : fault_list()) {
      if (why_not_applicable(fault.name, run).has_value()) continue;
      tried.insert(fault.name);
      const std::string words_of_fault = explanation(run, planted(fault.name));
      const bool nameless = kNameless.contains(fault.name) || is_right_here(fault.name, run);
      EXPECT_EQ(words_of_fault.empty(), nameless) << fault.name << ": " << words_of_fault;
    }
  }
  for (const FaultInfo& fault : fault_list()) EXPECT_TRUE(tried.contains(fault.name)) << fault.name;
}

/// Where many mistakes come to the same as the right formula, none of them explains what is not known.
TEST(NamedFaults, AreNotOfferedWhereTheyChangeNothing) {
  const std::vector<Words> small{{"T=1"},
                                 {"T=2", "H=1", kRope, "qk_norm=true"},
                                 {"B=1", "H_kv=1", "window=1", "alibi=true", "sink=true"},
                                 {"window=16", "padding=right", "lengths=[10,10]", "softcap=1000"}};
  for (const Words& words : small) {
    for (const char* fault : {"noise-1e-6", "context-off", "outputs-scaled-by-length", "first-token-rounded"}) {
      const RunConfig run = run_of(words);
      if (why_not_applicable(fault, run).has_value()) continue;
      EXPECT_EQ(explanation(run, planted(fault)), "") << fault << " " << ::testing::PrintToString(words);
    }
  }
}

TEST(NamedFaults, OfPaddingAreSeenFarFromBothEnds) {
  for (const char* side : {"padding=left", "padding=right"}) {
    const Words words{"B=3", "T=200", "max_seq_len=200", side, "lengths=[100,100,90]"};
    EXPECT_EQ(explanation(run_of(words), planted("padding-of-neighbour")),
              "each batch item has the padding of the one before");
    EXPECT_EQ(explanation(run_of(words), planted("padding-other-side")), "padding is taken to be on the other side");
    EXPECT_EQ(explanation(run_of(words), planted("padding-forgotten")), "padding is ignored");
  }
}

// ---- mistakes with a cache that no fault of the list makes ----

struct EarlierNotUsed : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  QueryKeyValue remember(KeyValueCache& cache, const QueryKeyValue& heads, const at::Tensor& real_keys) override {
    MultiHeadAttentionImpl::remember(cache, heads, real_keys);
    return heads;
  }
};

struct NoMaskLater : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  std::optional<at::Tensor> mask(const MaskPlace& place, const at::Tensor& real_keys) const override {
    if (place.first_query > 0) return std::nullopt;
    return MultiHeadAttentionImpl::mask(place, real_keys);
  }
};

struct EarlierPaddingForgotten : MultiHeadAttentionImpl {
  using MultiHeadAttentionImpl::MultiHeadAttentionImpl;
  std::optional<at::Tensor> mask(const MaskPlace& place, const at::Tensor& real_keys) const override {
    const at::Tensor known = real_keys.clone();
    known.narrow(1, 0, place.key_len - place.query_len).fill_(true);
    return MultiHeadAttentionImpl::mask(place, known);
  }
};

TEST(NamedFaults, OfACacheAreNamedThatNoFaultOfTheListHas) {
  EXPECT_EQ(explanation(run_of({}), multi_head_fault<EarlierNotUsed>()()),
            "with a cache, earlier keys and values are not used: each call sees its own tokens only");
  EXPECT_EQ(explanation(run_of({}), multi_head_fault<NoMaskLater>()()),
            "with a cache, no mask is applied from the second call on");
  EXPECT_EQ(explanation(run_of({"padding=left", "lengths=[10,7]"}), multi_head_fault<EarlierPaddingForgotten>()()),
            "with a cache, the padding of earlier calls is forgotten");
}

}  // namespace
}  // namespace attn
