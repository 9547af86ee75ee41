// None is missed: single pairs of query and key that leak, by any way and down to a millionth.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "checks/check_context.h"
#include "checks/check_table.h"
#include "checks/check_test_support.h"
#include "checks/planted_faults.h"
#include "checks/slow/random_config.h"

namespace attn {
namespace {

constexpr int kBlock = 50;  // pairs of one test, so that the tests can be shared out

struct Leak {
  RandomConfig config;
  LayerFactory factory;
  std::string description;
};

Leak random_leak(std::uint64_t seed) {
  Draws draws(seed);
  const std::int64_t H = draws.whole(1, 4), T = draws.whole(2, 64), B = draws.whole(1, 3), d_k = draws.whole(2, 8);
  std::vector<std::string> words{set_word("B", B),
                                 set_word("T", T),
                                 set_word("H", H),
                                 set_word("d_k", d_k),
                                 set_word("d_model", H * d_k),
                                 set_word("max_seq_len", T),
                                 "dtype=" + draws.word({"float32", "float32", "float64"}),
                                 set_word("seed", draws.whole(0, 1000000)),
                                 "threads=1"};
  if (draws.one_in(2)) words.push_back(set_word("H_kv", H % 2 == 0 ? draws.whole(1, 2) : 1));
  if (d_k % 2 == 0 && draws.one_in(2)) words.emplace_back(R"(rope={"style":"half"})");
  if (draws.one_in(4)) words.emplace_back("sink=true");
  if (draws.one_in(4)) words.emplace_back("softcap=5");
  const std::int64_t window = draws.whole(1, T);
  const bool has_window = draws.one_in(3);
  if (has_window) words.push_back(set_word("window", window));
  Leak leak;
  leak.config = config_of(words);
  LeakedPair pair{draws.whole(0, B - 1), draws.whole(0, H - 1), 0, 0};
  const bool of_the_past = has_window && window < T && draws.one_in(2);
  pair.query = of_the_past ? draws.whole(window, T - 1) : draws.whole(0, T - 2);
  pair.key = of_the_past ? draws.whole(0, pair.query - window) : draws.whole(pair.query + 1, T - 1);
  const double size = std::pow(10.0, -6.0 * draws.unit());  // from a millionth up
  const std::int64_t way = draws.whole(0, 2);
  if (way == 0) leak.factory = core_fault<OpenPair>(pair)();
  if (way == 1) leak.factory = core_fault<WeightedPair>(pair, size)();
  if (way == 2) leak.factory = core_fault<MixedInPair>(pair, size)();
  leak.description = std::string(way == 0   ? "pair not hidden"
                                 : way == 1 ? "weight of the pair"
                                            : "value mixed in") +
                     " (batch " + std::to_string(pair.batch) + ", head " + std::to_string(pair.head) + ", query " +
                     std::to_string(pair.query) + ", key " + std::to_string(pair.key) + "), size " +
                     std::to_string(size);
  return leak;
}

/// The first check, in the order of the list, that fails; empty: none.
std::string first_catch(const Leak& leak) {
  LayerSubject subject(leak.config.run, leak.factory);
  CheckContext context(subject, leak.config.run, whole_input_of(leak.config.run));
  for (const CheckEntry& check : check_table()) {
    if (run_check(check, context).status == CheckStatus::kFail) return check.info.name;
  }
  return "";
}

class LeakedPairs : public ::testing::TestWithParam<int> {};

TEST_P(LeakedPairs, AreAllSeen) {
  std::map<std::string, int> catches;
  for (int number = GetParam() * kBlock; number < (GetParam() + 1) * kBlock; ++number) {
    const Leak leak = random_leak(static_cast<std::uint64_t>(2000000 + number));
    const std::string caught_by = first_catch(leak);
    EXPECT_NE(caught_by, "") << leak.description << "\n" << leak.config.command();
    ++catches[caught_by];
  }
  for (const auto& [check, count] : catches) RecordProperty("caught_by_" + check, count);
}

INSTANTIATE_TEST_SUITE_P(Blocks, LeakedPairs, ::testing::Range(0, 1000 / kBlock));

}  // namespace
}  // namespace attn
