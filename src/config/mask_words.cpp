#include "config/mask_words.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "config/mask_rows.h"
#include "core/text.h"

namespace attn {
namespace {

constexpr std::int64_t kMostCells = std::int64_t{1} << 24;
constexpr std::size_t kMostGroups = 8;  ///< kinds of batch items in the lines.

/// "0-2, 5".
std::string as_ranges(const std::vector<std::int64_t>& numbers) {
  std::vector<std::string> ranges;
  for (std::size_t first = 0; first < numbers.size();) {
    std::size_t last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    ranges.push_back(std::to_string(numbers[first]) + (last > first ? "-" + std::to_string(numbers[last]) : ""));
    first = last + 1;
  }
  return join_first(ranges);
}

std::string counted(std::size_t count, const std::string& noun) {
  return format_count(count) + " " + noun + (count == 1 ? "" : "s");
}

/// "row 2", "rows 2-4, 7".
std::string named(const std::vector<std::int64_t>& numbers, const std::string& noun) {
  return noun + (numbers.size() == 1 ? " " : "s ") + as_ranges(numbers);
}

std::string own_mask_words(const RowsMask& mask, std::int64_t /*T*/) {
  return mask.file ? "own mask " + in_quotes(mask.name) + " of " + printable(mask.file->filename().string())
                   : "own mask in rows";
}
std::string own_mask_words(const PrefixMask& mask, std::int64_t /*T*/) {
  return "prefix " + std::to_string(mask.length) + " (they see each other, later ones see what is before them)";
}
std::string own_mask_words(const DocumentMask& mask, std::int64_t T) {
  std::int64_t after = T;  // tokens that no document of the list has
  for (const std::int64_t length : mask.lengths) after -= length;
  std::string rest;
  if (after > 0) rest = ", and the " + counted(static_cast<std::size_t>(after), "token") + " after them as one more";
  return "documents of " + join_first(mask.lengths) + rest + " (each sees itself only)";
}
std::string own_mask_words(const DilatedMask& mask, std::int64_t /*T*/) {
  const std::string stride = std::to_string(mask.stride);
  return "dilated (keys at distance 0, " + stride + ", " + std::to_string(2 * mask.stride) + ", ...)";
}
std::string own_mask_words(const BidirectionalMask&, std::int64_t /*T*/) { return "bidirectional"; }

std::string combination(const RunConfig& config) {
  const AttentionConfig& layer = config.attention;
  std::vector<std::string> parts;
  if (layer.causal) parts.emplace_back("causal");
  if (config.padding) parts.push_back("padding " + to_string(*config.padding));
  if (layer.window) {
    parts.push_back("window " + std::to_string(*layer.window) +
                    (layer.causal ? " (counts itself)" : " (to each side, counts itself)"));
  }
  if (layer.mask) {
    parts.push_back(std::visit([&config](const auto& mask) { return own_mask_words(mask, config.T); }, *layer.mask));
  }
  if (parts.empty()) return "mask: none, every query sees every key";
  return "mask: true keeps (the query may look); " + join(parts, " AND ");
}

void tell_places(const RunConfig& config, std::vector<std::string>& lines) {
  if (config.memory_length) {
    lines.push_back("queries and keys are of two sequences, T_q " + std::to_string(config.T) + ", T_k " +
                    std::to_string(*config.memory_length) + ": there is nothing to align");
  }
  if (!config.cache) return;
  const CacheConfig& cache = *config.cache;
  // With a window the cache forgets keys, and the first one that it has is no longer that of position 0.
  const std::int64_t old_keys = std::min(cache.prefill, config.attention.window.value_or(cache.prefill + 1) - 1);
  const std::int64_t first_key = cache.prefill - old_keys;
  lines.push_back("with the cache, call 1 has " + std::to_string(cache.chunk) +
                  (cache.chunk == 1 ? " query and " : " queries and ") +
                  counted(static_cast<std::size_t>(old_keys + cache.chunk), "key") +
                  ", bottom-right aligned: query 0 sits at position " + std::to_string(cache.prefill) +
                  (first_key > 0 ? ", key 0 at " + std::to_string(first_key) : "") +
                  (cache.steps > 1 ? "; each further call starts " + std::to_string(cache.chunk) + " later" : ""));
}

std::string visible_words(const std::vector<std::int64_t>& visible) {
  const bool all_alike = std::all_of(visible.begin(), visible.end(), [&](std::int64_t n) { return n == visible[0]; });
  if (all_alike) {
    return "visible keys a row: " + std::to_string(visible[0]) + " in each of " + counted(visible.size(), "row");
  }
  const std::string counts = join_first(visible);
  const bool has_more = counts.ends_with("...");
  return "visible keys a row: " + counts + (has_more ? " (" + counted(visible.size(), "row") + ")" : "");
}

void tell_rows(const ItemRows& rows, const std::string& item, std::vector<std::string>& lines) {
  const std::string before = item.empty() ? "" : item + ", ";
  lines.push_back((item.empty() ? "" : item + ": ") + visible_words(rows.visible));
  if (!rows.hidden.empty()) {
    lines.push_back(counted(rows.hidden.size(), "row") + " fully hidden (weights and context are 0): " + before +
                    named(rows.hidden, "row"));
  }
  if (!rows.without_itself.empty()) {
    lines.push_back("warning: " + before + named(rows.without_itself, "row") +
                    (rows.without_itself.size() == 1 ? " does not see itself" : " do not see themselves"));
  }
  if (!rows.unseen.empty()) lines.push_back("warning: " + before + "no row sees " + named(rows.unseen, "key"));
}

/// As the upper triangle of a mask whose true hides.
bool shows_no_earlier_key(const RowsMask& mask) {
  for (std::int64_t i = 0; i < mask.queries; ++i) {
    for (std::int64_t j = 0; j <= i && j < mask.keys; ++j) {
      if (mask.visible[static_cast<std::size_t>(i * mask.keys + j)]) return false;
    }
  }
  return true;
}

/// Batch items whose rows are alike.
struct ItemGroup {
  std::vector<std::int64_t> items;
  ItemRows rows;
};

void tell_items(const RunConfig& config, std::vector<std::string>& lines) {
  std::vector<ItemGroup> groups;
  for (std::int64_t b = 0; b < config.B; ++b) {
    ItemRows rows = count_rows(config, b);
    const auto is_alike = [&rows](const ItemGroup& group) {
      const ItemRows& other = group.rows;
      return std::tie(rows.visible, rows.hidden, rows.without_itself, rows.unseen) ==
             std::tie(other.visible, other.hidden, other.without_itself, other.unseen);
    };
    const auto found = std::find_if(groups.begin(), groups.end(), is_alike);
    if (found == groups.end()) {
      groups.push_back({{b}, std::move(rows)});
    } else {
      found->items.push_back(b);
    }
  }
  std::size_t left_out = 0;
  for (std::size_t index = 0; index < groups.size(); ++index) {
    if (index < kMostGroups) {
      tell_rows(groups[index].rows, named(groups[index].items, "item"), lines);
    } else {
      left_out += groups[index].items.size();
    }
  }
  if (left_out > 0) lines.push_back("... and " + counted(left_out, "more item") + " with other rows");
}

/// Masks that hide nothing at this length, and an own mask of which causal hides a part.
void warn_of_parts(const RunConfig& config, std::vector<std::string>& lines) {
  const AttentionConfig& layer = config.attention;
  const std::string T = std::to_string(config.T);
  if (layer.window && *layer.window >= config.T) {
    lines.push_back("warning: window " + std::to_string(*layer.window) + " hides nothing at T " + T);
  }
  if (!layer.mask) return;
  if (const auto* prefix = std::get_if<PrefixMask>(&*layer.mask); prefix != nullptr && prefix->length >= config.T) {
    lines.push_back("warning: prefix " + std::to_string(prefix->length) +
                    (prefix->length > config.T ? " is more than T " : " is all of T ") + T +
                    ": every token sees every other");
  }
  if (const auto* documents = std::get_if<DocumentMask>(&*layer.mask);
      documents != nullptr && documents->lengths.front() == config.T) {
    lines.push_back("warning: one document of all of T " + T + " hides nothing");
  }
  if (const auto* dilated = std::get_if<DilatedMask>(&*layer.mask)) {
    if (dilated->stride == 1) {
      lines.emplace_back("warning: stride 1 hides nothing");
    } else if (dilated->stride >= config.T) {
      lines.push_back("warning: stride " + std::to_string(dilated->stride) + " is at least T " + T +
                      ": every token sees itself only");
    }
  }
  const auto* rows = std::get_if<RowsMask>(&*layer.mask);
  if (rows == nullptr) return;
  if (!config.memory_length && shows_no_earlier_key(*rows)) {
    lines.emplace_back("warning: the own mask shows no token itself, nor any before it: is it inverted? true keeps");
  }
  if (!layer.causal) return;
  if (const std::size_t later = count_later_keys(*rows); later > 0) {
    lines.push_back("warning: the own mask opens " + counted(later, "later key") +
                    " that causal hides: both hold; causal false would show them");
  }
}

}  // namespace

std::string alignment_words(std::int64_t T_q, std::int64_t T_k) {
  if (T_q == T_k) return "";
  return "bottom-right aligned: query 0 sits at position " + std::to_string(T_k - T_q);
}

std::vector<std::string> mask_words(const RunConfig& config) {
  std::vector<std::string> lines{combination(config)};
  tell_places(config, lines);
  // Items differ by their padding only.
  const std::int64_t items = config.padding ? config.B : 1;
  const double cells =
      static_cast<double>(items) * static_cast<double>(config.T) * static_cast<double>(key_length(config));
  if (cells > static_cast<double>(kMostCells)) {
    lines.push_back("visible keys a row: not counted above " + format_count(kMostCells) + " cells");
    return lines;
  }
  if (config.padding) {
    tell_items(config, lines);
  } else {
    tell_rows(count_rows(config, 0), "", lines);
  }
  warn_of_parts(config, lines);
  return lines;
}

}  // namespace attn
