// schemas/config.schema.json names what the reader reads, no more and no less. Whether both accept the same values is
// tried by tests/cli/check_config_schema.py, with attn-cli itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include <nlohmann/json.hpp>

#include "config/config_test_support.h"

namespace attn {
namespace {

nlohmann::json schema() {
  std::ifstream file("schemas/config.schema.json");
  return nlohmann::json::parse(file);
}

/// The keys of a schema's properties, nested ones with dots.
std::vector<std::string> keys_of(const nlohmann::json& schema_of_object, const std::string& before) {
  std::vector<std::string> keys;
  for (const auto& item : schema_of_object["properties"].items()) {
    if (item.key() == "$schema") continue;  // read past
    if (!item.value().contains("properties")) {
      keys.push_back(before + item.key());
      continue;
    }
    for (std::string& nested : keys_of(item.value(), before + item.key() + ".")) keys.push_back(std::move(nested));
  }
  return keys;
}

TEST(ConfigSchema, HasEveryKeyOfTheReaderAndNoOther) {
  std::vector<std::string> keys = keys_of(schema(), "");
  std::vector<std::string> expected = config_keys();
  std::sort(expected.begin(), expected.end());
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(keys, expected);
}

TEST(ConfigSchema, SaysTheDefaultsThatTheReaderFillsIn) {
  const nlohmann::ordered_json effective = to_json(parse(tiny()));
  std::size_t compared = 0;
  const nlohmann::json whole = schema();
  for (const auto& item : whole["properties"].items()) {
    if (!item.value().contains("default")) continue;
    EXPECT_EQ(nlohmann::json(effective[item.key()]), item.value()["default"]) << item.key();
    ++compared;
  }
  EXPECT_EQ(compared, 15U);
}

TEST(ConfigSchema, DescribesEveryKeyInWords) {
  const nlohmann::json whole = schema();
  for (const auto& item : whole["properties"].items()) {
    EXPECT_GT(item.value().value("description", "").size(), 10U) << item.key();
  }
}

TEST(SchemaKey, IsReadPastAndNotWritten) {
  EXPECT_EQ(parse(tiny(R"("$schema": "../schemas/config.schema.json")")), parse(tiny()));
  EXPECT_FALSE(to_json(parse(tiny(R"("$schema": "a")"))).contains("$schema"));
  EXPECT_EQ(error_of(tiny(R"("$schema": 7)")), "tiny.json: /$schema: must be a string, got 7");
}

TEST(ExampleConfig, IsValidAndSmall) {
  const RunConfig config = parse(example_config());
  EXPECT_LE(config.B * config.T * config.attention.d_model, 1024);
  EXPECT_EQ(example_config().back(), '\n');
}

TEST(ExampleConfig, SaysNothingButDefaultsBesideItsSizes) {
  RunConfig config = parse(R"({"B": 2, "T": 8, "d_model": 16, "H": 4})");
  EXPECT_EQ(parse(example_config()), config);
}

TEST(WeightsLayout, IsReadWithWeightsOnly) {
  EXPECT_EQ(error_of(tiny(R"("weights_layout": "in-out")")),
            "tiny.json: /weights_layout: must be left out, or auto, where there are no weights, got in-out");
  EXPECT_EQ(parse(tiny(R"("weights_layout": "auto")")).weights_layout, WeightsLayout::kAuto);
  const std::string unknown = error_of(tiny(R"("weights_layout": "in_out")"));
  EXPECT_EQ(unknown, "tiny.json: /weights_layout: unknown weights_layout \"in_out\"; did you mean \"in-out\"?");
}

}  // namespace
}  // namespace attn
