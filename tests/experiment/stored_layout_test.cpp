#include "experiment/stored_layout.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace attn {
namespace {

// R66's layer: d_model 12, so c_attn is [36, 12] by right and c_proj is square.
const StoredWeight kUpright{"c_attn.weight", {36, 12}, {36, 12}};
const StoredWeight kLying{"c_attn.weight", {36, 12}, {12, 36}};
const StoredWeight kSquare{"c_proj.weight", {12, 12}, {12, 12}};

TEST(StoredLayout, IsShownByAWeightThatIsNotSquare) {
  const StoredLayout upright = find_stored_layout({kUpright, kSquare}, WeightsLayout::kAuto, false, "f");
  EXPECT_FALSE(upright.transposed);
  EXPECT_EQ(upright.note, "");
  const StoredLayout lying = find_stored_layout({kLying, kSquare}, WeightsLayout::kAuto, false, "f");
  EXPECT_TRUE(lying.transposed);
  EXPECT_EQ(lying.note,
            "f: c_attn.weight (12, 36) is [in, out], as GPT-2 keeps it: all 2-D weights of the layer are read "
            "transposed, square ones too (c_proj.weight)");
}

TEST(StoredLayout, IsNotGuessedSilentlyWhereAllAreSquare) {
  const StoredLayout layout = find_stored_layout({kSquare}, WeightsLayout::kAuto, false, "f");
  EXPECT_FALSE(layout.transposed);
  EXPECT_EQ(
      layout.note,
      "f: every weight of the layer is square, so no shape tells [out, in] from [in, out]: taken as [out, in], as "
      "PyTorch keeps them; the config's weights_layout says it for sure");
  EXPECT_EQ(find_stored_layout({kSquare}, WeightsLayout::kAuto, true, "f").note, "") << "a file of ours";
  EXPECT_EQ(find_stored_layout({kSquare}, WeightsLayout::kOutIn, false, "f").note, "") << "the config says it";
}

TEST(StoredLayout, MixedInOneFileIsAnErrorThatNamesBoth) {
  const StoredWeight narrow{"c_proj.weight", {12, 15}, {12, 15}};
  try {
    find_stored_layout({kLying, narrow}, WeightsLayout::kAuto, false, "f");
    FAIL() << "expected an error";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "f: c_proj.weight (12, 15) is [out, in], but c_attn.weight (12, 36) is [in, out]; expected one layout "
                 "for all weights of the layer");
  }
}

TEST(StoredLayout, IsWhatTheConfigSaysWhateverTheShapes) {
  EXPECT_TRUE(find_stored_layout({kUpright}, WeightsLayout::kInOut, false, "f").transposed);
  EXPECT_FALSE(find_stored_layout({kLying}, WeightsLayout::kOutIn, false, "f").transposed);
}

TEST(StoredLayout, AShapeThatIsNeitherSaysNothing) {
  const StoredLayout layout =
      find_stored_layout({{"c_attn.weight", {36, 12}, {36}}, kSquare}, WeightsLayout::kAuto, false, "f");
  EXPECT_FALSE(layout.transposed);
  EXPECT_EQ(layout.note, "");
}

}  // namespace
}  // namespace attn
