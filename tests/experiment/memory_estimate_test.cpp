#include "experiment/memory_estimate.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

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
