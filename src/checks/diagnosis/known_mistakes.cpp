#include "checks/diagnosis/known_mistakes.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "checks/diagnosis/mistake_collector.h"
#include "core/text.h"

namespace attn {
namespace {

/// "1/sqrt(d_model) (0.125)"; a name that is the number itself stands alone.
std::string named(const std::vector<std::string>& names, double value) {
  const std::string number = format_number(value);
  const std::string name = join(names, " or ");
  return name == number ? name : name + " (" + number + ")";
}

void add_scales(MistakeCollector& mistakes) {
  const double right = mistakes.rules().scores.scale;
  const double d_k = static_cast<double>(mistakes.config().d_k());
  const double d_model = static_cast<double>(mistakes.config().d_model);
  const double H = static_cast<double>(mistakes.config().H);
  std::vector<std::pair<std::string, double>> known{
      {"1", 1.0},
      {"1/sqrt(d_k)", 1.0 / std::sqrt(d_k)},
      {"1/d_k", 1.0 / d_k},  // also what 1/sqrt(d_k) applied twice gives
      {"1/sqrt(d_model)", 1.0 / std::sqrt(d_model)},
      {"1/sqrt(H)", 1.0 / std::sqrt(H)},
      {"sqrt(d_k)", std::sqrt(d_k)},
      {"1/d_model", 1.0 / d_model},
  };
  const bool given = mistakes.config().given_scale.has_value();
  if (given) known.emplace_back("the config's squared", right * right);
  const std::string of_right = given ? "the config's " + format_number(right) : named({"1/sqrt(d_k)"}, right);
  const auto same = [](double a, double b) { return std::abs(a / b - 1.0) <= 1e-12; };
  for (std::size_t first = 0; first < known.size(); ++first) {
    const double value = known[first].second;
    std::vector<std::string> names;
    bool named_before = same(value, right);
    for (std::size_t other = 0; other < known.size(); ++other) {
      if (!same(known[other].second, value)) continue;
      named_before = named_before || other < first;
      names.push_back(known[other].first);
    }
    if (named_before) continue;
    mistakes.add("scale " + named(names, value) + " instead of " + of_right,
                 [&](KnownMistake& mistake) { mistake.rules.scores.scale = value; });
  }
}

void add_softmax(MistakeCollector& mistakes) {
  mistakes.add("softmax over the queries instead of the keys",
               [](KnownMistake& mistake) { mistake.rules.softmax_axis = 2; });
  mistakes.add("softmax over the heads instead of the keys",
               [](KnownMistake& mistake) { mistake.rules.softmax_axis = 1; });
  mistakes.add("the weights are rounded to bfloat16",
               [](KnownMistake& mistake) { mistake.rules.weights_rounded = at::kBFloat16; });
  mistakes.add("the weights are rounded to float16",
               [](KnownMistake& mistake) { mistake.rules.weights_rounded = at::kHalf; });
}

/// Keys and values on their way to the query heads: taken from another head, item or token, both or one of the two.
void add_keys_of_others(MistakeCollector& mistakes) {
  const AttentionConfig& config = mistakes.config();
  const std::int64_t H = config.H, H_kv = config.H_kv(), groups = config.heads_a_group();
  struct Others {
    std::string who, whose;
    bool possible;  ///< else they are one's own, or those of an earlier line.
    std::function<at::Tensor(const at::Tensor&)> taken;
  };
  const auto rolled = [](std::int64_t axis, std::int64_t by) {
    return [=](const at::Tensor& heads) { return heads.roll({by}, {axis}); };
  };
  const std::vector<Others> others{
      {"query head h", "key head h mod H_kv: tiled, neighbours do not share one", 1 < H_kv && H_kv < H,
       [=](const at::Tensor& heads) {
         return heads.repeat({1, groups, 1, 1});
       }},
      {"each query head", H_kv == 2 ? "the other key head" : "the key head before its own", 1 < H_kv, rolled(1, 1)},
      {"each query head", "the key head after its own", 2 < H_kv, rolled(1, -1)},
      {"each query head", "the query head before it", 1 < H_kv && H_kv < H,
       [=](const at::Tensor& heads) { return for_query_heads(heads, H).roll({1}, {1}); }},
      {"each batch item", "the item before", 1 < mistakes.input().x.size(0), rolled(0, 1)},
      {"each token", "the token before", 1 < mistakes.input().key_len(), rolled(2, 1)},
  };
  const std::vector<std::pair<std::string, std::array<bool, 2>>> parts{
      {"keys and values", {true, true}}, {"keys", {true, false}}, {"values", {false, true}}};
  for (const Others& other : others) {
    if (!other.possible) continue;
    for (const auto& [what, taken] : parts) {
      mistakes.add(other.who + " gets the " + what + " of " + other.whose, [&](KnownMistake& mistake) {
        for (std::size_t part = 0; part < taken.size(); ++part) {
          if (taken[part]) mistake.rules.key_change[part] = other.taken;
        }
      });
    }
  }
}

void add_heads(MistakeCollector& mistakes) {
  mistakes.add("heads are split by a bare reshape, without swapping axes",
               [](KnownMistake& mistake) { mistake.rules.split_by_reshape = true; });
  mistakes.add("heads are merged by a bare reshape, without swapping axes",
               [](KnownMistake& mistake) { mistake.rules.merge_by_reshape = true; });
  mistakes.add("heads are split and merged by a bare reshape, without swapping axes", [](KnownMistake& mistake) {
    mistake.rules.split_by_reshape = true;
    mistake.rules.merge_by_reshape = true;
  });
  mistakes.add("heads are merged in reverse order", [](KnownMistake& mistake) { mistake.rules.heads_reversed = true; });
  mistakes.add("each head is replaced by the mean of all",
               [](KnownMistake& mistake) { mistake.rules.heads_averaged = true; });
  constexpr std::int64_t kMostHeads = 16;  // each is a run of its own
  for (std::int64_t head = 0; head < std::min(mistakes.config().H, kMostHeads); ++head) {
    mistakes.add("head " + std::to_string(head) + " is left out",
                 [&](KnownMistake& mistake) { mistake.rules.head_left_out = head; });
  }
}

void add_projections(MistakeCollector& mistakes) {
  if (mistakes.config().qkv == QkvLayout::kFused) {
    mistakes.add("c_attn is read head by head instead of in thirds",
                 [](KnownMistake& mistake) { mistake.rules.qkv = QkvLayout::kFusedPerHead; });
  }
  if (mistakes.config().qkv == QkvLayout::kFusedPerHead) {
    mistakes.add("qkv_proj is read in thirds instead of head by head",
                 [](KnownMistake& mistake) { mistake.rules.qkv = QkvLayout::kFused; });
  }
  std::vector<std::pair<std::string, std::array<std::size_t, 3>>> orders{{"k and v are swapped", {0, 2, 1}}};
  const bool alike = mistakes.config().H_kv() == mistakes.config().H && !mistakes.input().memory.defined();
  if (alike) {  // else the shapes of q and k tell them apart
    orders.insert(orders.end(), {{"q and k are swapped", {1, 0, 2}},
                                 {"q and v are swapped", {2, 1, 0}},
                                 {"k, v, q are taken as q, k, v", {1, 2, 0}},
                                 {"v, q, k are taken as q, k, v", {2, 0, 1}}});
  }
  for (const auto& [words, parts] : orders) {
    mistakes.add(words, [&order = parts](KnownMistake& mistake) { mistake.rules.parts = order; });
  }
  if (mistakes.config().heads_width() == mistakes.config().d_model) {
    mistakes.add("the output projection is left out",
                 [](KnownMistake& mistake) { mistake.rules.output_projected = false; });
  }
  mistakes.add("the input is added to the output", [](KnownMistake& mistake) { mistake.rules.input_added = true; });
}

bool is_square(const std::string&, const at::Tensor& weight) {
  return weight.dim() == 2 && weight.size(0) == weight.size(1);
}

bool is_bias(const std::string& name, const at::Tensor&) { return name.ends_with(".bias"); }

/// One parameter after the other, and all of that kind.
void add_parameters(MistakeCollector& mistakes, bool (*chosen)(const std::string&, const at::Tensor&),
                    at::Tensor (*changed)(const at::Tensor&), const std::string& one, const std::string& all) {
  std::size_t count = 0;
  for (const auto& [name, value] : mistakes.input().parameters) {
    if (!chosen(name, value)) continue;
    ++count;
    mistakes.add(name + one, [&which = name, &tensor = value, changed](KnownMistake& mistake) {
      mistake.input.parameters[which] = changed(tensor);
    });
  }
  if (count < 2) return;
  mistakes.add(all, [&](KnownMistake& mistake) {
    for (auto& [name, value] : mistake.input.parameters) {
      if (chosen(name, value)) value = changed(value);
    }
  });
}

}  // namespace

std::vector<KnownMistake> known_mistakes(const LayerInput& input) {
  MistakeCollector mistakes(input);
  add_scales(mistakes);
  add_softmax(mistakes);
  add_mask_mistakes(mistakes);
  add_score_mistakes(mistakes);
  add_rotation_mistakes(mistakes);
  add_heads(mistakes);
  add_keys_of_others(mistakes);
  add_projections(mistakes);
  add_parameters(
      mistakes, is_square, [](const at::Tensor& weight) { return weight.t(); }, " is used transposed",
      "every square weight is used transposed");
  add_parameters(
      mistakes, is_bias, [](const at::Tensor& bias) { return at::zeros_like(bias); }, " is not added",
      "no bias is added");
  return mistakes.take();
}

std::vector<KnownMistake> known_gradient_mistakes(const LayerInput& input) {
  MistakeCollector mistakes(input);
  add_unweighted_norm(mistakes);
  const std::array<const char*, 3> names{"q", "k", "v"};
  for (std::size_t part = 0; part < names.size(); ++part) {
    const std::string name = names[part];
    mistakes.add("no gradient goes back to " + name,
                 [&](KnownMistake& mistake) { mistake.rules.gradient_factor[part] = 0.0; });
    mistakes.add("the gradient of " + name + " is doubled",
                 [&](KnownMistake& mistake) { mistake.rules.gradient_factor[part] = 2.0; });
  }
  return mistakes.take();
}

}  // namespace attn
