// The words of the config file: one table a family, used for reading, writing and "did you mean" alike.
// Private to this room.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/run_config.h"

namespace attn {

template <typename Value, std::size_t kCount>
using Words = std::array<std::pair<std::string_view, Value>, kCount>;

enum class InputKind { kRandom, kTensor, kText, kTokens };

/// The kinds of mask that have a name; rows have none.
enum class MaskKind { kBidirectional, kPrefix, kDocument, kDilated };

inline constexpr Words<ModuleKind, 2> kModuleWords{
    {{"multi-head", ModuleKind::kMultiHead}, {"single-head", ModuleKind::kSingleHead}}};
inline constexpr Words<QkvLayout, 3> kQkvWords{
    {{"fused", QkvLayout::kFused}, {"fused-per-head", QkvLayout::kFusedPerHead}, {"separate", QkvLayout::kSeparate}}};
inline constexpr Words<Positions, 3> kPositionsWords{
    {{"learned", Positions::kLearned}, {"sinusoidal", Positions::kSinusoidal}, {"none", Positions::kNone}}};
inline constexpr Words<Engine, 2> kEngineWords{{{"explicit", Engine::kExplicit}, {"sdpa", Engine::kSdpa}}};
inline constexpr Words<RopeStyle, 2> kRopeStyleWords{{{"half", RopeStyle::kHalf}, {"adjacent", RopeStyle::kAdjacent}}};
inline constexpr Words<RopeScalingKind, 4> kRopeScalingWords{{{"none", RopeScalingKind::kNone},
                                                              {"linear", RopeScalingKind::kLinear},
                                                              {"llama3", RopeScalingKind::kLlama3},
                                                              {"yarn", RopeScalingKind::kYarn}}};
inline constexpr Words<MaskKind, 4> kMaskKindWords{{{"bidirectional", MaskKind::kBidirectional},
                                                    {"prefix", MaskKind::kPrefix},
                                                    {"document", MaskKind::kDocument},
                                                    {"dilated", MaskKind::kDilated}}};
inline constexpr Words<PaddingSide, 2> kPaddingWords{{{"left", PaddingSide::kLeft}, {"right", PaddingSide::kRight}}};
inline constexpr Words<Dtype, 4> kDtypeWords{{{"float32", Dtype::kFloat32},
                                              {"float64", Dtype::kFloat64},
                                              {"bfloat16", Dtype::kBFloat16},
                                              {"float16", Dtype::kFloat16}}};
inline constexpr Words<Mode, 2> kModeWords{{{"eval", Mode::kEval}, {"train", Mode::kTrain}}};
inline constexpr Words<Tokenizer, 2> kTokenizerWords{{{"bytes", Tokenizer::kBytes}, {"words", Tokenizer::kWords}}};
inline constexpr Words<WeightsLayout, 3> kWeightsLayoutWords{
    {{"auto", WeightsLayout::kAuto}, {"out-in", WeightsLayout::kOutIn}, {"in-out", WeightsLayout::kInOut}}};
inline constexpr Words<InputKind, 4> kInputKindWords{{{"random", InputKind::kRandom},
                                                      {"tensor", InputKind::kTensor},
                                                      {"text", InputKind::kText},
                                                      {"tokens", InputKind::kTokens}}};

/// What other programs call some of the words above, and "cuda". For "did you mean" only: there is one way to say it.
inline constexpr std::array<std::pair<std::string_view, std::string_view>, 15> kSynonyms{{{"fp16", "float16"},
                                                                                          {"half", "float16"},
                                                                                          {"bf16", "bfloat16"},
                                                                                          {"fp32", "float32"},
                                                                                          {"float", "float32"},
                                                                                          {"fp64", "float64"},
                                                                                          {"double", "float64"},
                                                                                          {"gpu", "cuda"},
                                                                                          {"single", "single-head"},
                                                                                          {"multi", "multi-head"},
                                                                                          {"training", "train"},
                                                                                          {"inference", "eval"},
                                                                                          {"evaluation", "eval"},
                                                                                          {"interleaved", "adjacent"},
                                                                                          {"eager", "explicit"}}};

/// The word of a value. Throws std::logic_error for a value that is not in the table: our own fault.
template <typename Value, std::size_t kCount>
std::string word_of(const Words<Value, kCount>& words, Value value) {
  for (const auto& [word, meaning] : words) {
    if (meaning == value) return std::string(word);
  }
  throw std::logic_error("a config value without a word");
}

/// The value of a word; absent for an unknown one.
template <typename Value, std::size_t kCount>
std::optional<Value> value_of(const Words<Value, kCount>& words, std::string_view wanted) {
  for (const auto& [word, meaning] : words) {
    if (word == wanted) return meaning;
  }
  return std::nullopt;
}

/// All words of a family, in the order of the table.
template <typename Value, std::size_t kCount>
std::vector<std::string> all_words(const Words<Value, kCount>& words) {
  std::vector<std::string> result;
  for (const auto& entry : words) result.emplace_back(entry.first);
  return result;
}

}  // namespace attn
