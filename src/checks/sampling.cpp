#include "checks/sampling.h"

#include <algorithm>
#include <set>

namespace attn {

double forward_cost(const AttentionConfig& config, std::int64_t B, std::int64_t T) {
  const double tokens = static_cast<double>(B) * static_cast<double>(T);
  return 4.0 * tokens * static_cast<double>(config.d_model) * static_cast<double>(config.heads_width()) +
         core_cost(config, B, T);
}

double core_cost(const AttentionConfig& config, std::int64_t B, std::int64_t T) {
  const double pairs = static_cast<double>(B) * static_cast<double>(T) * static_cast<double>(T);
  constexpr double kPasses = 6.0, kCostOfPass = 16.0;
  return pairs *
         (2.0 * static_cast<double>(config.heads_width()) + kPasses * kCostOfPass * static_cast<double>(config.H));
}

double forward_bytes(const AttentionConfig& config, std::int64_t T, std::int64_t element_size) {
  const double length = static_cast<double>(T);
  const double per_token = static_cast<double>(4 * config.d_model + 8 * config.heads_width());
  const double numbers = length * per_token + 6.0 * static_cast<double>(config.H) * length * length;
  return numbers * static_cast<double>(element_size);
}

std::int64_t affordable_length(const AttentionConfig& config, std::int64_t at_least, std::int64_t wanted,
                               double multiply_adds, std::int64_t element_size) {
  std::int64_t length = std::max(at_least, wanted);
  const auto is_too_long = [&] {
    return forward_bytes(config, length, element_size) > kSmallBatchBytes ||
           forward_cost(config, 1, length) > multiply_adds;
  };
  while (length > at_least && is_too_long()) length = std::max(at_least, length - length / 16 - 1);
  return length;
}

std::vector<std::int64_t> telling_places(std::int64_t first, std::int64_t last, double affordable) {
  const std::int64_t all = std::max<std::int64_t>(0, last - first + 1);
  std::set<std::int64_t> places;
  const auto add = [&](std::int64_t place) {
    if (first <= place && place <= last) places.insert(place);
  };
  if (static_cast<double>(all) <= affordable) {
    for (std::int64_t place = first; place <= last; ++place) places.insert(place);
    return {places.begin(), places.end()};
  }
  for (const std::int64_t place : {first, first + 1, first + 2, last, last / 2, last / 3 | 1, last / 5 | 1}) add(place);
  for (std::int64_t power = 2; power <= last; power *= 2) {
    for (const std::int64_t place : {power - 1, power, power + 1}) add(place);
  }
  const std::int64_t more = static_cast<std::int64_t>(affordable) - static_cast<std::int64_t>(places.size());
  for (std::int64_t n = 0; n < more; ++n) add(first + (n * (last - first)) / more);
  return {places.begin(), places.end()};
}

std::string describe_sample(std::size_t tried, std::int64_t all, const std::string& things) {
  if (static_cast<std::int64_t>(tried) == all) return "all " + std::to_string(all) + " " + things;
  return std::to_string(tried) + " of " + std::to_string(all) + " " + things;
}

}  // namespace attn
