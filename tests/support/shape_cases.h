// The awkward shapes, named, in one place: what every parametrised test runs over. No LibTorch.
// Use: INSTANTIATE_TEST_SUITE_P(Shapes, MyTest, ::testing::ValuesIn(kLayerShapes), case_name);
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

namespace attn::test {

/// A whole layer and its input.
struct LayerShape {
  const char* name;
  std::int64_t B;
  std::int64_t T;
  std::int64_t d_model;
  std::int64_t H;
  std::int64_t max_seq_len;
};

inline constexpr std::array kLayerShapes = {
    LayerShape{"OneTokenOneHead", 1, 1, 4, 1, 1},        //
    LayerShape{"OneToken", 2, 1, 12, 3, 8},              //
    LayerShape{"SeventeenTokens", 1, 17, 8, 2, 32},      //
    LayerShape{"ExactlyMaxSeqLen", 2, 32, 8, 4, 32},     //
    LayerShape{"AsManyTokensAsHeads", 2, 4, 16, 4, 16},  // a head split without swapping axes looks right here
    LayerShape{"MoreHeadsThanTokens", 1, 3, 16, 8, 16},  //
    LayerShape{"OneHead", 3, 6, 10, 1, 16},              //
    LayerShape{"HeadsOfWidthOne", 2, 5, 7, 7, 16},       //
    LayerShape{"OddPrimes", 3, 7, 55, 5, 13},            //
};

/// The core alone, where queries and keys may differ in number.
struct CoreShape {
  const char* name;
  std::int64_t B;
  std::int64_t H;
  std::int64_t T_q;
  std::int64_t T_k;
  std::int64_t d_k;
};

inline constexpr std::array kCoreShapes = {
    CoreShape{"OneQueryOneKey", 1, 1, 1, 1, 1},       //
    CoreShape{"OneQueryManyKeys", 2, 3, 1, 9, 4},     // a decoding step: the query is the last token
    CoreShape{"FewQueriesManyKeys", 1, 2, 4, 6, 3},   //
    CoreShape{"MoreQueriesThanKeys", 2, 2, 6, 4, 5},  // causal: the first two queries see no key
    CoreShape{"Square", 2, 3, 5, 5, 4},               //
    CoreShape{"AsManyTokensAsHeads", 1, 4, 4, 4, 2},  //
    CoreShape{"OddPrimes", 3, 5, 13, 13, 7},          //
    CoreShape{"SeventeenTokens", 1, 2, 17, 17, 8},    //
};

/// The case's own name, so that a failure reads Shapes/Layer.KeepsTheShape/OddPrimes.
template <typename Case>
std::string case_name(const ::testing::TestParamInfo<Case>& test) {
  return test.param.name;
}

}  // namespace attn::test
