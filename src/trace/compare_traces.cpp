#include "trace/compare_traces.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "files/safetensors.h"
#include "trace/gradient_scales.h"
#include "trace/pipeline_order.h"
#include "trace/stored_numbers.h"

namespace attn {
namespace {

constexpr std::size_t kMaxNamed = 4;  ///< tensors of another shape in one message.
constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Entry = SafetensorsEntry;

/// A tensor that both files have.
struct Pair {
  const Entry* a;
  const Entry* b;
};

std::string metadata_of(const SafetensorsFile& file, const std::string& key) {
  const auto found = file.metadata().find(key);
  return found == file.metadata().end() ? "" : found->second;
}

ComparedFile describe(const SafetensorsFile& file) {
  return {file.source_name(), metadata_of(file, "tool_version"), metadata_of(file, "torch_version"),
          static_cast<std::int64_t>(file.entries().size())};
}

void require_trace(const SafetensorsFile& file) {
  const bool has_step = std::any_of(file.entries().begin(), file.entries().end(),
                                    [](const Entry& entry) { return !step_of(entry.name, "forward.").empty(); });
  if (!has_step) {
    throw ConfigError(file.source_name() +
                      ": is no saved trace: it has no step such as \"forward.x\"; attn-cli trace --save makes one");
  }
}

/// A cache's run goes in several calls, whose tensors have other lengths than those of one.
void refuse_other_calls(const SafetensorsFile& a, const SafetensorsFile& b) {
  const auto is_cached = [](const SafetensorsFile& file) { return file.find("forward.k_cached") != nullptr; };
  if (is_cached(a) == is_cached(b)) return;
  const SafetensorsFile& cached = is_cached(a) ? a : b;
  throw ShapeError(a.source_name() + " and " + b.source_name() + ": other calls: " + cached.source_name() +
                   " was run with a cache, the other one in one call; attn-cli verify --check kv-cache holds two such "
                   "runs against each other");
}

std::vector<Pair> pairs_in_order(const SafetensorsFile& a, const SafetensorsFile& b, TraceComparison& result) {
  std::vector<Pair> pairs;
  for (const Entry& entry : a.entries()) {
    if (const Entry* other = b.find(entry.name)) {
      pairs.push_back({&entry, other});
    } else {
      result.only_a.push_back(entry.name);
    }
  }
  for (const Entry& entry : b.entries()) {
    if (a.find(entry.name) == nullptr) result.only_b.push_back(entry.name);
  }
  const auto is_earlier = [](const std::string& first, const std::string& second) {
    return pipeline_place(first) < pipeline_place(second);
  };
  std::stable_sort(pairs.begin(), pairs.end(),
                   [&](const Pair& first, const Pair& second) { return is_earlier(first.a->name, second.a->name); });
  std::stable_sort(result.only_a.begin(), result.only_a.end(), is_earlier);
  std::stable_sort(result.only_b.begin(), result.only_b.end(), is_earlier);
  return pairs;
}

/// Throws for what cannot be compared at all.
void require_comparable(const std::vector<Pair>& pairs, const std::string& where) {
  std::vector<std::string> misshapen;
  bool shares_a_step = false;
  for (const auto& [a, b] : pairs) {
    shares_a_step = shares_a_step || !step_of(a->name, "forward.").empty();
    if (a->shape != b->shape) {
      misshapen.push_back(a->name + " is " + format_shape(a->shape) + " and " + format_shape(b->shape));
    }
    for (const Entry* entry : {a, b}) {
      if (!holds_numbers(entry->dtype)) {
        throw ConfigError(where + ": tensor " + in_quotes(entry->name) + " has dtype " + entry->dtype +
                          ", which cannot be compared");
      }
    }
  }
  if (!shares_a_step) throw ConfigError(where + ": have no step in common, expected traces of alike layers");
  if (const std::size_t count = misshapen.size(); count > kMaxNamed) {
    misshapen.resize(kMaxNamed);
    misshapen.push_back("... (" + std::to_string(count) + " in all)");
  }
  if (!misshapen.empty()) throw ShapeError(where + ": other shapes: " + join(misshapen, "; "));
}

/// Fewer heads of keys than of queries.
bool has_groups(const SafetensorsFile& file) {
  const Entry* q = file.find("forward.q");
  const Entry* k = file.find("forward.k");
  return q != nullptr && k != nullptr && q->shape.size() == 4 && k->shape.size() == 4 && q->shape[1] != k->shape[1];
}

double last_axes(const std::vector<std::int64_t>& shape, std::size_t from_end) {
  return shape.size() < from_end ? 1.0 : static_cast<double>(shape[shape.size() - from_end]);
}

std::map<std::string, TensorSize> sizes_of(const std::vector<Pair>& pairs) {
  std::map<std::string, TensorSize> sizes;
  for (const auto& [a, b] : pairs) {
    TensorSize& size = sizes[a->name];
    size.last_axis = last_axes(a->shape, 1);
    const auto width = static_cast<std::size_t>(size.last_axis);
    for (const Entry* entry : {a, b}) {
      double squares = 0.0;
      std::size_t place = 0;
      for (const double number : numbers_of(*entry)) {
        if (std::isfinite(number)) {
          size.largest = std::max(size.largest, std::abs(number));
          squares += number * number;
        }
        if (++place % width != 0) continue;
        size.longest_row = std::max(size.longest_row, std::sqrt(squares));
        squares = 0.0;
      }
    }
    size.rows = last_axes(a->shape, 2);
    if (a->shape.size() == 4) size.heads = last_axes(a->shape, 3);
    if (a->shape.size() == 3) size.tokens = size.rows * last_axes(a->shape, 3);
  }
  return sizes;
}

/// The most terms that any sum of the run has: over an axis of a step, or over all tokens of the batch.
std::int64_t longest_sum(const std::vector<Pair>& pairs) {
  std::int64_t longest = 1;
  for (const auto& [a, b] : pairs) {
    if (step_of(a->name, "forward.").empty()) continue;
    for (const std::int64_t size : a->shape) longest = std::max(longest, size);
    if (a->shape.size() == 3) longest = std::max(longest, a->shape[0] * a->shape[1]);
  }
  return longest;
}

/// Where sums are made: half precision is added up in float32.
double summing_epsilon(double stored) { return stored > epsilon_of("F32") ? epsilon_of("F32") : stored; }

/// How far rounding may take two runs apart at the tensor in this place (from 1): each step before it was rounded once,
/// each sum once a term. Such errors, of eps / 2 at most, add like random ones, as the root of their number; four times
/// that is beyond what chance, or a gradient that enlarges them, has shown (a quarter at most on all shipped configs).
double rounding_limit(double stored_epsilon, std::size_t place, std::int64_t terms, double scale) {
  const double roundings = std::sqrt(static_cast<double>(place)) * stored_epsilon +
                           std::sqrt(static_cast<double>(terms)) * summing_epsilon(stored_epsilon);
  return 2.0 * roundings * scale;
}

std::string reason_of(CompareRule rule, std::int64_t terms) {
  switch (rule) {
    case CompareRule::kExact:
      return "none: equal bits are demanded";
    case CompareRule::kLimit:
      return "as given, times the tensor's scale";
    case CompareRule::kRounding:
      break;
  }
  return "2 * (sqrt(place in the run) * eps of the coarser dtype + sqrt(" + std::to_string(terms) +
         ", the longest sum) * eps of the sums) * the tensor's scale: rounding errors add like random ones; a weight "
         "that is exactly 0 in one run only is beyond any limit";
}

double difference_of(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0.0;
  const double difference = std::abs(a - b);
  return std::isnan(difference) ? kInfinity : difference;
}

/// The smallest normal number: a weight below it may be 0 by right.
double smallest_of(const std::string& dtype) {
  if (dtype == "F64") return std::numeric_limits<double>::min();
  return dtype == "F16" ? std::ldexp(1.0, -14) : static_cast<double>(std::numeric_limits<float>::min());
}

/// A key that is hidden in one run and visible in the other, however small its weight: no rounding does that.
bool is_leak(double a, double b, double smallest) {
  return (a == 0.0) != (b == 0.0) && std::max(std::abs(a), std::abs(b)) > smallest;
}

std::vector<std::int64_t> index_at(std::size_t place, const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> index(shape.size());
  auto rest = static_cast<std::int64_t>(place);
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    index[axis] = rest % shape[axis];
    rest /= shape[axis];
  }
  return index;
}

/// Fills everything that follows from the numbers; `scale` and `limit` are set before.
void compare_numbers(const Pair& pair, bool exact, TensorComparison& result) {
  const std::vector<double> a = numbers_of(*pair.a);
  const std::vector<double> b = numbers_of(*pair.b);
  result.elements = static_cast<std::int64_t>(a.size());
  const bool same_dtype = pair.a->dtype == pair.b->dtype;
  const bool zero_means_hidden = step_of(result.name, "forward.") == "weights";
  const double smallest = std::max(smallest_of(pair.a->dtype), smallest_of(pair.b->dtype));
  const std::size_t width = a.empty() ? 0 : pair.a->bytes.size() / a.size();
  std::optional<std::size_t> worst;
  for (std::size_t place = 0; place < a.size(); ++place) {
    const double difference = difference_of(a[place], b[place]);
    const bool same_bits =
        same_dtype && pair.a->bytes.substr(place * width, width) == pair.b->bytes.substr(place * width, width);
    const bool equal = exact ? same_bits : difference == 0.0;
    if (!equal) ++result.different;
    const bool leaks = !exact && zero_means_hidden && is_leak(a[place], b[place], smallest);
    if (leaks || (exact ? !same_bits : !(difference <= result.limit))) ++result.beyond;
    if (!equal && (!worst || difference > result.largest_difference)) {
      worst = place;
      result.largest_difference = difference;
    }
  }
  if (!worst) return;
  result.worst = index_at(*worst, pair.a->shape);
  result.worst_a = a[*worst];
  result.worst_b = b[*worst];
  if (result.largest_difference > 0.0) result.relative = result.largest_difference / result.scale;
}

}  // namespace

TraceComparison compare_traces(const std::filesystem::path& a, const std::filesystem::path& b,
                               const CompareOptions& options) {
  const SafetensorsFile file_a = SafetensorsFile::load(a);
  const SafetensorsFile file_b = SafetensorsFile::load(b);
  require_trace(file_a);
  require_trace(file_b);
  refuse_other_calls(file_a, file_b);

  TraceComparison result;
  result.a = describe(file_a);
  result.b = describe(file_b);
  result.rule = options.exact ? CompareRule::kExact : options.limit ? CompareRule::kLimit : CompareRule::kRounding;
  const std::vector<Pair> pairs = pairs_in_order(file_a, file_b, result);
  require_comparable(pairs, file_a.source_name() + " and " + file_b.source_name());

  const std::int64_t terms = longest_sum(pairs);
  result.limit_reason = reason_of(result.rule, terms);
  const std::map<std::string, TensorSize> sizes = sizes_of(pairs);
  const bool grouped = has_groups(file_a);
  std::size_t place = 1;
  for (const Pair& pair : pairs) {
    TensorComparison tensor;
    tensor.name = pair.a->name;
    tensor.axes = axis_names(tensor.name, pair.a->shape.size(), grouped);
    tensor.shape = pair.a->shape;
    tensor.dtype_a = pair.a->dtype;
    tensor.dtype_b = pair.b->dtype;
    tensor.identical = pair.a->dtype == pair.b->dtype && pair.a->bytes == pair.b->bytes;
    tensor.scale = scale_of(tensor.name, sizes);
    if (result.rule == CompareRule::kLimit) tensor.limit = *options.limit * tensor.scale;
    if (result.rule == CompareRule::kRounding) {
      const double epsilon = std::max(epsilon_of(tensor.dtype_a), epsilon_of(tensor.dtype_b));
      tensor.limit = rounding_limit(epsilon, place, terms, tensor.scale);
    }
    if (pipeline_place(tensor.name) > 0) ++place;
    compare_numbers(pair, options.exact, tensor);
    result.tensors.push_back(std::move(tensor));
  }
  return result;
}

}  // namespace attn
