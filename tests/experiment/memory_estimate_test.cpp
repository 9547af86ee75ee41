#include "experiment/memory_estimate.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "core/error.h"

namespace attn {
namespace {

RunConfig config_of(std::int64_t B, std::int64_t H, std::int64_t T) {
  RunConfig config;
  config.B = B;
  config.T = T;
  config.attention.H = H;
  config.attention.d_model = 64;
  config.attention.given_d_k = 16;
  config.attention.max_seq_len = std::max<std::int64_t>(T, 1024);
  config.source_name = "big.json";
  return config;
}

std::string refusal(const RunConfig& config, std::optional<std::uint64_t> limit) {
  try {
    refuse_if_too_large(config, Purpose::kTrace, limit);
  } catch (const ResourceError& error) {
    return error.what();
  }
  return "";
}

TEST(MemoryEstimate, CountsOneAttentionTensorByHand) {
  EXPECT_EQ(estimate_memory(config_of(2, 4, 8), Purpose::kTrace).attention_bytes, 2U * 4 * 8 * 8 * 4);
  EXPECT_EQ(estimate_memory(config_of(2, 4, 8), Purpose::kTrace).mask_bytes, 1024U * 1024);
}

TEST(MemoryEstimate, CountsTheKeysOfAMemoryByHand) {
  RunConfig config = config_of(2, 4, 8);
  config.memory_length = 5;
  config.attention.causal = false;
  EXPECT_EQ(estimate_memory(config, Purpose::kTrace).attention_bytes, 2U * 4 * 8 * 5 * 4);
  EXPECT_EQ(estimate_memory(config, Purpose::kTrace).mask_bytes, 0U);
}

TEST(MemoryEstimate, OfACachedRunIsThatOfItsLargestCall) {
  RunConfig config = config_of(1, 4, 64);
  const std::uint64_t whole = estimate_memory(config, Purpose::kTrace).bytes;
  config.cache = CacheConfig{8, 56, 1};
  EXPECT_EQ(estimate_memory(config, Purpose::kTrace).attention_bytes, 4U * 8 * 8 * 4);
  EXPECT_LT(estimate_memory(config, Purpose::kTrace).bytes, whole);
  config.cache = CacheConfig{4, 3, 20};
  EXPECT_EQ(estimate_memory(config, Purpose::kTrace).attention_bytes, 4U * 20 * 64 * 4);
  EXPECT_GT(estimate_memory(config, Purpose::kSavedTrace).bytes, estimate_memory(config, Purpose::kTrace).bytes);
}

TEST(MemoryEstimate, EveryFeatureCosts) {
  const RunConfig plain = config_of(2, 4, 32);
  std::vector<RunConfig> dearer(7, plain);
  dearer[0].attention.softcap = 5.0;
  dearer[1].attention.alibi = true;
  dearer[2].attention.sink = true;
  dearer[3].attention.qk_norm = true;
  dearer[4].attention.rope = RopeConfig();
  dearer[5].attention.window = 4;
  dearer[6].padding = PaddingSide::kLeft;
  for (std::size_t index = 0; index < dearer.size(); ++index) {
    for (const Purpose purpose : {Purpose::kTrace, Purpose::kSavedTrace, Purpose::kVerify, Purpose::kHeatmap}) {
      EXPECT_GT(estimate_memory(dearer[index], purpose).bytes, estimate_memory(plain, purpose).bytes) << index;
    }
  }
}

TEST(MemoryEstimate, NamesBothLengthsOfAMemory) {
  RunConfig config = config_of(1, 2, 8);
  config.memory_length = 9;
  const std::string text = refusal(config, 1);
  EXPECT_NE(text.find("big.json: B 1, H 2, T_q 8, T_k 9 need about "), std::string::npos) << text;
  EXPECT_NE(text.find("for each (B, H, T_q, T_k) tensor"), std::string::npos) << text;
}

TEST(MemoryEstimate, SaysThatTheEngineSdpaMayMakeMapsInsideOnly) {
  RunConfig config = config_of(1, 1, 100000);
  const std::string inside = "37.3 GiB for each (B, H, T, T) tensor that scaled_dot_product_attention may make inside,";
  EXPECT_EQ(refusal(config, 1).find(inside), std::string::npos);
  config.attention.engine = Engine::kSdpa;
  EXPECT_NE(refusal(config, 1).find(inside), std::string::npos) << refusal(config, 1);
}

TEST(MemoryEstimate, SaturatesInsteadOfOverflowing) {
  const std::int64_t huge = std::numeric_limits<std::int32_t>::max();
  const MemoryEstimate estimate = estimate_memory(config_of(huge, huge, huge), Purpose::kVerify);
  EXPECT_EQ(estimate.bytes, std::numeric_limits<std::uint64_t>::max());
}

TEST(MemoryEstimate, RefusesAMillionTokensWithTheFigure) {
  const std::string text = refusal(config_of(1, 64, 1000000), std::nullopt);
  EXPECT_NE(text.find("big.json: B 1, H 64, T 1000000 need about "), std::string::npos) << text;
  EXPECT_NE(text.find("233 TiB for each (B, H, T, T) tensor"), std::string::npos) << text;
  EXPECT_NE(text.find("--max-memory"), std::string::npos) << text;
}

TEST(MemoryEstimate, TheLimitDecides) {
  const RunConfig config = config_of(1, 4, 64);
  const std::uint64_t needed = estimate_memory(config, Purpose::kTrace).bytes;
  EXPECT_EQ(refusal(config, needed), "");
  EXPECT_NE(refusal(config, needed - 1), "");
}

TEST(AvailableMemory, IsToldOnLinux) {
  ASSERT_TRUE(available_memory().has_value());
  EXPECT_GT(*available_memory(), std::uint64_t{1} << 20);
}

}  // namespace
}  // namespace attn
