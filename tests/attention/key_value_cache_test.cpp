#include "attention/key_value_cache.h"

#include <gtest/gtest.h>

#include <functional>

#include "attention/multi_head_attention.h"
#include "attention/single_head_attention.h"
#include "core/error.h"
#include "support/tensor_helpers.h"

namespace attn {
namespace {

using test::identical;
using test::max_difference;
using test::random_tensor;
using test::tensor_of;

TEST(KeyValueCache, CountsTokensKeysAndBytes) {
  KeyValueCache cache;
  EXPECT_EQ(cache.bytes(), 0);
  cache.append(at::zeros({2, 3, 4, 5}), at::zeros({2, 3, 4, 5}));
  cache.append(at::zeros({2, 3, 1, 5}), at::zeros({2, 3, 1, 5}));
  EXPECT_EQ(cache.tokens_seen(), 5);
  EXPECT_EQ(cache.first_key(), 0);
  EXPECT_EQ(cache.bytes(), 2 * 2 * 3 * 5 * 5 * 4);
  cache.keep_last(2);
  EXPECT_EQ(cache.tokens_seen(), 5);
  EXPECT_EQ(cache.first_key(), 3);
  EXPECT_EQ(cache.bytes(), 2 * 2 * 3 * 2 * 5 * 4);
  cache.keep_last(0);
  EXPECT_EQ(cache.first_key(), 5);
  cache.reset();
  EXPECT_EQ(cache.tokens_seen(), 0);
  EXPECT_EQ(cache.bytes(), 0);
}

TEST(KeyValueCache, HoldsKeysInTheirOrder) {
  KeyValueCache cache;
  cache.append(tensor_of({1, 1, 2, 1}, {1, 2}), tensor_of({1, 1, 2, 1}, {-1, -2}));
  cache.append(tensor_of({1, 1, 1, 1}, {3}), tensor_of({1, 1, 1, 1}, {-3}), at::zeros({1, 1}, at::kBool));
  EXPECT_TRUE(identical(cache.k(), tensor_of({1, 1, 3, 1}, {1, 2, 3})));
  EXPECT_TRUE(identical(cache.v(), tensor_of({1, 1, 3, 1}, {-1, -2, -3})));
  EXPECT_TRUE(identical(cache.real_keys(), tensor_of({1, 3}, {1, 1, 0}).to(at::kBool)));
}

TEST(KeyValueCache, RefusesAnotherBatch) {
  KeyValueCache cache;
  cache.append(at::zeros({2, 3, 4, 5}), at::zeros({2, 3, 4, 5}));
  EXPECT_THROW(cache.append(at::zeros({1, 3, 1, 5}), at::zeros({1, 3, 1, 5})), ShapeError);
  EXPECT_THROW(cache.append(at::zeros({2, 3, 1, 5}), at::zeros({2, 3, 2, 5})), ShapeError);
  EXPECT_THROW(cache.append(at::zeros({2, 3, 1, 5}, at::kDouble), at::zeros({2, 3, 1, 5}, at::kDouble)), ShapeError);
}

// --- in a layer ---

AttentionConfig config_with(const std::function<void(AttentionConfig&)>& change) {
  AttentionConfig config;
  config.d_model = 16;
  config.H = 4;
  config.max_seq_len = 16;
  change(config);
  return config;
}

struct Decoded {
  std::string name;
  AttentionConfig config;
};

const std::vector<Decoded> kDecoded = {
    {"Plain", config_with([](AttentionConfig&) {})},
    {"Grouped", config_with([](AttentionConfig& config) { config.given_H_kv = 2; })},
    {"Rope", config_with([](AttentionConfig& config) { config.rope = RopeConfig{}; })},
    {"Window", config_with([](AttentionConfig& config) { config.window = 3; })},
    {"WindowOfOne", config_with([](AttentionConfig& config) { config.window = 1; })},
    {"Alibi", config_with([](AttentionConfig& config) { config.alibi = true; })},
    {"AlibiAndWindow", config_with([](AttentionConfig& config) {
       config.alibi = true;
       config.window = 4;
     })},
    {"Documents", config_with([](AttentionConfig& config) {
       config.mask = DocumentMask{{4, 5}};
     })},
    {"DilatedWindow", config_with([](AttentionConfig& config) {
       config.mask = DilatedMask{2};
       config.window = 5;
     })},
    {"Everything", config_with([](AttentionConfig& config) {
       config.given_H_kv = 2;
       config.rope = RopeConfig{};
       config.window = 5;
       config.softcap = 2.0;
       config.sink = true;
       config.qk_norm = true;
     })},
    {"Sdpa", config_with([](AttentionConfig& config) {
       config.engine = Engine::kSdpa;
       config.given_H_kv = 2;
       config.rope = RopeConfig{};
       config.window = 4;
     })},
    {"SingleHead", config_with([](AttentionConfig& config) {
       config.module = ModuleKind::kSingleHead;
       config.H = 1;
       config.rope = RopeConfig{};
     })},
};

class CachedLayer : public ::testing::TestWithParam<Decoded> {
 protected:
  CachedLayer() {
    at::manual_seed(1);
    const AttentionConfig& config = GetParam().config;
    if (config.module == ModuleKind::kSingleHead) {
      layer_ = std::make_shared<SingleHeadAttentionImpl>(config);
    } else {
      layer_ = std::make_shared<MultiHeadAttentionImpl>(config);
    }
    layer_->to(at::kDouble);
  }

  /// The outputs of x, these many tokens a call.
  at::Tensor in_pieces(const at::Tensor& x, const std::vector<std::int64_t>& pieces, const at::Tensor& real = {}) {
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> outputs;
    std::int64_t first = 0;
    for (const std::int64_t length : pieces) {
      const at::Tensor real_piece = real.defined() ? real.narrow(1, first, length) : real;
      outputs.push_back(
          layer_->forward({.x = x.narrow(1, first, length), .real_keys = real_piece, .cache = &cache_}).output);
      first += length;
    }
    return at::cat(outputs, 1);
  }

  std::shared_ptr<MultiHeadAttentionImpl> layer_;
  KeyValueCache cache_;
};

const std::vector<std::vector<std::int64_t>> kPieces = {
    std::vector<std::int64_t>(11, 1), {11}, {5, 1, 1, 1, 1, 1, 1}, {4, 4, 3}, {1, 3, 7}};

TEST_P(CachedLayer, GivesWhatOneForwardPassGives) {
  const at::Tensor x = random_tensor({2, 11, 16}, 3);
  const at::Tensor whole = layer_->forward(x).output;
  for (const auto& pieces : kPieces) {
    cache_.reset();
    EXPECT_LE(max_difference(in_pieces(x, pieces), whole), 1e-13) << pieces.size() << " pieces";
    EXPECT_EQ(cache_.tokens_seen(), 11);
  }
}

TEST_P(CachedLayer, TakesPaddedItems) {
  const at::Tensor x = random_tensor({2, 11, 16}, 3);
  for (const bool left : {true, false}) {
    at::Tensor real = at::ones({2, 11}, at::kBool);
    real[0].slice(0, left ? 0 : 8, left ? 3 : 11).fill_(false);
    const at::Tensor whole = layer_->forward({.x = x, .real_keys = real}).output;
    for (const auto& pieces : kPieces) {
      cache_.reset();
      EXPECT_LE(max_difference(in_pieces(x, pieces, real), whole), 1e-13) << left << ' ' << pieces.size();
    }
  }
}

TEST_P(CachedLayer, KeepsNoMoreKeysThanALaterQueryCanSee) {
  in_pieces(random_tensor({2, 11, 16}, 3), {4, 1, 6});
  const std::optional<std::int64_t> window = GetParam().config.window;
  EXPECT_EQ(cache_.tokens_seen() - cache_.first_key(), window.has_value() ? *window - 1 : 11);
}

TEST_P(CachedLayer, AnnouncesAllKeysThatTheQueriesMaySee) {
  const bool single_head = GetParam().config.module == ModuleKind::kSingleHead;
  const at::Tensor x = random_tensor({1, 3, 16}, 3);
  in_pieces(x.narrow(1, 0, 2), {2});
  test::CapturingObserver observer;
  layer_->forward({.x = x.narrow(1, 2, 1), .cache = &cache_}, &observer);
  const std::int64_t keys = GetParam().config.window.value_or(3) >= 3 ? 3 : 1;
  EXPECT_EQ(observer.at(Step::kQ).size(-2), 1);
  EXPECT_EQ(observer.at(Step::kK).size(-2), 1);
  EXPECT_EQ(observer.at(Step::kKCached).size(-2), keys);
  EXPECT_EQ(observer.at(Step::kVCached).size(-2), keys);
  EXPECT_EQ(observer.at(Step::kKCached).dim(), single_head ? 3 : 4);
}

INSTANTIATE_TEST_SUITE_P(Layers, CachedLayer, ::testing::ValuesIn(kDecoded),
                         [](const auto& test) { return test.param.name; });

// pytorch/executorch #22426: one new query against four keys sees all of them, not the first alone.
TEST(CausalCore, OneNewQuerySeesEveryKey) {
  const at::Tensor q = at::zeros({1, 1, 1, 4}, at::kDouble), k = at::zeros({1, 1, 4, 4}, at::kDouble);
  const at::Tensor v = tensor_of({1, 1, 4, 1}, {1, 2, 3, 6}).expand({1, 1, 4, 4});
  AttentionCoreOptions options;
  options.mask = causal_mask(1, 4);
  EXPECT_TRUE(
      identical(scaled_dot_product_attention(q, k, v, options).context, at::full({1, 1, 1, 4}, 3.0, at::kDouble)));
}

TEST(LayerWithCache, RefusesMoreTokensThanTheLayerTakes) {
  MultiHeadAttention layer(config_with([](AttentionConfig&) {}));
  KeyValueCache cache;
  layer->forward({.x = at::zeros({1, 10, 16}), .cache = &cache});
  try {
    layer->forward({.x = at::zeros({1, 7, 16}), .cache = &cache});
    FAIL() << "accepted";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "x: T with the tokens in the cache is 17, more than max_seq_len (16)");
  }
  EXPECT_EQ(cache.tokens_seen(), 10);
}

TEST(LayerWithCache, RefusesALayerThatIsNotCausal) {
  MultiHeadAttention layer(config_with([](AttentionConfig& config) { config.causal = false; }));
  KeyValueCache cache;
  EXPECT_THROW(layer->forward({.x = at::zeros({1, 10, 16}), .cache = &cache}), ShapeError);
}

}  // namespace
}  // namespace attn
