#include "checks/pipeline_steps.h"

#include <initializer_list>
#include <utility>

namespace attn {
namespace {

/// Letters and sizes of one kind of tensor.
struct Shape {
  std::vector<std::string> letters;
  std::vector<std::int64_t> sizes;
};

class StepList {
 public:
  void add(const Shape& shape, std::initializer_list<Step> steps) {
    for (const Step step : steps) steps_.push_back({step, shape.letters, shape.sizes});
  }
  std::vector<ExpectedStep> take() { return std::move(steps_); }

 private:
  std::vector<ExpectedStep> steps_;
};

}  // namespace

std::vector<ExpectedStep> expected_steps(const AttentionConfig& config, std::int64_t B, std::int64_t T,
                                         std::int64_t T_k, bool has_memory) {
  const std::int64_t d_k = config.d_k(), width = config.H * d_k, key_width = config.H_kv() * d_k;
  const bool grouped = config.H_kv() != config.H;
  const std::string keys = has_memory ? "T_k" : "T", key_heads = grouped ? "H_kv" : "H";
  const Shape token{{"B", "T", "d_model"}, {B, T, config.d_model}};
  const Shape query_wide{{"B", "T", "H*d_k"}, {B, T, width}};
  const Shape key_wide{{"B", keys, key_heads + "*d_k"}, {B, T_k, key_width}};
  Shape query{{"B", "H", "T", "d_k"}, {B, config.H, T, d_k}};
  Shape key{{"B", key_heads, keys, "d_k"}, {B, config.H_kv(), T_k, d_k}};
  Shape pair{{"B", "H", "T", keys}, {B, config.H, T, T_k}};
  if (config.module == ModuleKind::kSingleHead) {
    for (Shape* shape : {&query, &key, &pair}) {
      shape->letters.erase(shape->letters.begin() + 1);
      shape->sizes.erase(shape->sizes.begin() + 1);
    }
  }

  StepList steps;
  steps.add(token, {Step::kX});
  if (has_memory) steps.add({{"B", "T_k", "d_model"}, {B, T_k, config.d_model}}, {Step::kMemory});
  if (config.qkv == QkvLayout::kSeparate) {
    steps.add(query_wide, {Step::kQProj});
    steps.add(key_wide, {Step::kKProj, Step::kVProj});
  } else {
    steps.add({{"B", "T", grouped ? "(H + 2*H_kv)*d_k" : "3*H*d_k"}, {B, T, width + 2 * key_width}}, {Step::kQkv});
  }
  steps.add(query, {Step::kQ});
  steps.add(key, {Step::kK, Step::kV});
  if (config.qk_norm) {
    steps.add(query, {Step::kQNormed});
    steps.add(key, {Step::kKNormed});
  }
  if (config.rope.has_value()) {
    steps.add(query, {Step::kQRotated});
    steps.add(key, {Step::kKRotated});
  }
  if (config.engine == Engine::kExplicit) {
    steps.add(pair, {Step::kScores, Step::kScaledScores});
    if (config.softcap.has_value()) steps.add(pair, {Step::kCappedScores});
    if (config.alibi) steps.add(pair, {Step::kBiasedScores});
    steps.add(pair, {Step::kMaskedScores, Step::kWeights, Step::kDroppedWeights});
  }
  steps.add(query, {Step::kContext});
  steps.add(query_wide, {Step::kMerged});
  steps.add(token, {Step::kProjected, Step::kOutput});
  return steps.take();
}

Step query_step(const AttentionConfig& config) {
  if (config.rope.has_value()) return Step::kQRotated;
  return config.qk_norm ? Step::kQNormed : Step::kQ;
}

Step key_step(const AttentionConfig& config) {
  if (config.rope.has_value()) return Step::kKRotated;
  return config.qk_norm ? Step::kKNormed : Step::kK;
}

Step last_scores_step(const AttentionConfig& config) {
  if (config.alibi) return Step::kBiasedScores;
  return config.softcap.has_value() ? Step::kCappedScores : Step::kScaledScores;
}

}  // namespace attn
