#include "cli/verify_picture.h"

#include <algorithm>

#include "core/error.h"
#include "core/matrix.h"
#include "core/text.h"
#include "render/heatmap.h"
#include "render/png.h"
#include "report/run_facts.h"

namespace attn {
namespace {

constexpr const char* kMapCheck = "effective-mask";
constexpr std::int64_t kRoomForWords = 1200;  ///< pixels beside and above a large map: title, labels, legend.

/// In the order of PairState. What is as declared stays calm; what is wrong is the only strong colour in the picture,
/// and the two kinds differ for those who see no red or no green.
std::vector<HeatmapCategory> categories_of(const DependencyMap& map) {
  std::vector<HeatmapCategory> categories = {{{168, 190, 212}, "visible", false},
                                             {{240, 240, 242}, "hidden", false},
                                             {{214, 24, 40}, "leak", true},
                                             {{244, 150, 0}, "wrongly hidden", true},
                                             {{206, 206, 206}, "not tried", false}};
  for (std::size_t state = 0; state < categories.size(); ++state) {
    const auto count = std::count(map.pairs.begin(), map.pairs.end(), static_cast<PairState>(state));
    categories[state].name += " " + format_count(static_cast<std::uint64_t>(count));
  }
  return categories;
}

std::string counted_pairs(const DependencyMap& map) {
  const auto count = [&](PairState state) {
    return format_count(static_cast<std::uint64_t>(std::count(map.pairs.begin(), map.pairs.end(), state)));
  };
  return "effective-mask, " + format_count(map.pairs.size()) + " pairs of query and key: " + count(PairState::kLeak) +
         " leaked, " + count(PairState::kHiddenWrong) + " wrongly hidden, " + count(PairState::kUnjudged) +
         " not tried";
}

std::string draw(const DependencyMap& map, const VerifyResult& result) {
  Matrix states{map.queries, map.keys, {}};
  for (const PairState state : map.pairs) states.values.push_back(static_cast<double>(state));
  HeatmapOptions options;
  options.title = printable(result.config.source_name) + ": " + layer_facts(result.config.attention) + ", " +
                  shape_facts(result.config);
  if (!result.fault.empty()) options.title += ", planted fault " + printable(result.fault);
  if (result.config.B > 1) options.title += ", all " + std::to_string(result.config.B) + " batch items together";
  options.subtitle = counted_pairs(map);
  options.own_query_positions = result.config.memory_length.has_value();
  options.categories = categories_of(map);
  return encode_png(draw_heatmap({&states, ""}, options));
}

}  // namespace

void check_picture_size(std::int64_t T) {
  if (T <= kMaxImageSide - kRoomForWords) return;
  throw ConfigError("option --picture: T " + std::to_string(T) + " needs a picture of more than " +
                    std::to_string(kMaxImageSide) + " pixels a side");
}

std::optional<std::string> draw_dependency_picture(const VerifyResult& result, std::string& reason) {
  const auto check = std::find_if(result.checks.begin(), result.checks.end(),
                                  [](const CheckResult& candidate) { return candidate.name == kMapCheck; });
  if (check != result.checks.end() && check->status == CheckStatus::kFail && check->map) {
    return draw(*check->map, result);
  }
  reason = std::string(kMapCheck);
  if (check == result.checks.end()) {
    reason += " was not run";
  } else if (check->status == CheckStatus::kPass) {
    reason += " passed";
  } else if (check->status == CheckStatus::kFail) {
    reason += " failed before it had a map";
  } else {
    reason += " is " + to_string(check->status);
  }
  return std::nullopt;
}

}  // namespace attn
