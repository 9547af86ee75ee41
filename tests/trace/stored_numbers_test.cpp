#include "trace/stored_numbers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>

#include <ATen/Functions.h>

namespace attn {
namespace {

template <typename Bits>
std::vector<double> numbers(const std::string& dtype, const std::vector<Bits>& bits) {
  std::string bytes(bits.size() * sizeof(Bits), '\0');
  if (!bits.empty()) std::memcpy(bytes.data(), bits.data(), bytes.size());
  return numbers_of({"t", dtype, {static_cast<std::int64_t>(bits.size())}, bytes});
}

TEST(StoredNumbers, ReadEveryFloat16AndBFloat16AsLibTorchDoes) {
  std::vector<std::uint16_t> all(1 << 16);
  for (std::size_t bits = 0; bits < all.size(); ++bits) all[bits] = static_cast<std::uint16_t>(bits);
  for (const auto& [dtype, type] : {std::pair{"F16", at::kHalf}, std::pair{"BF16", at::kBFloat16}}) {
    at::Tensor tensor = at::empty({1 << 16}, type);
    std::memcpy(tensor.mutable_data_ptr(), all.data(), all.size() * 2);
    const at::Tensor expected = tensor.to(at::kDouble);
    const std::vector<double> read = numbers(dtype, all);
    for (std::size_t bits = 0; bits < all.size(); ++bits) {
      const double due = expected.const_data_ptr<double>()[bits];
      ASSERT_TRUE(read[bits] == due || (std::isnan(read[bits]) && std::isnan(due))) << dtype << ' ' << bits;
    }
  }
}

TEST(StoredNumbers, ReadTheOtherDtypes) {
  EXPECT_EQ(numbers<float>("F32", {0.1F, -HUGE_VALF}), (std::vector<double>{0.1F, -HUGE_VAL}));
  EXPECT_EQ(numbers<double>("F64", {0.1}), std::vector<double>{0.1});
  EXPECT_EQ(numbers<std::int64_t>("I64", {-3, 1 << 30}), (std::vector<double>{-3, 1 << 30}));
  EXPECT_EQ(numbers<std::int32_t>("I32", {-3}), std::vector<double>{-3});
  EXPECT_EQ(numbers<std::uint8_t>("BOOL", {0, 1}), (std::vector<double>{0, 1}));
  EXPECT_TRUE(numbers<float>("F32", {}).empty());
  EXPECT_FALSE(holds_numbers("F8_E4M3"));
}

TEST(StoredNumbers, KnowTheEpsilonOfEachDtype) {
  EXPECT_EQ(epsilon_of("F64"), std::numeric_limits<double>::epsilon());
  EXPECT_EQ(epsilon_of("F32"), std::numeric_limits<float>::epsilon());
  EXPECT_EQ(epsilon_of("F16"), std::ldexp(1, -10));
  EXPECT_EQ(epsilon_of("BF16"), std::ldexp(1, -7));
  EXPECT_EQ(epsilon_of("I64"), 0.0);
}

}  // namespace
}  // namespace attn
