#include <gtest/gtest.h>

#include <limits>
#include <sstream>

#include <nlohmann/json.hpp>

#include "core/text.h"
#include "report/compare_report.h"

namespace attn {
namespace {

TensorComparison make_tensor(const std::string& name) {
  TensorComparison tensor;
  tensor.name = name;
  tensor.axes = {"batch", "head", "query", "key"};
  tensor.shape = {2, 4, 8, 8};
  tensor.dtype_a = tensor.dtype_b = "F32";
  tensor.elements = 512;
  tensor.identical = true;
  tensor.scale = 2.0;
  tensor.limit = 2e-5;
  return tensor;
}

TensorComparison parted(const std::string& name) {
  TensorComparison tensor = make_tensor(name);
  tensor.identical = false;
  tensor.different = 100;
  tensor.beyond = 99;
  tensor.largest_difference = 0.5;
  tensor.relative = 0.25;
  tensor.worst = {0, 1, 3, 2};
  tensor.worst_a = 0.75;
  tensor.worst_b = 0.25;
  return tensor;
}

TraceComparison make_comparison(std::vector<TensorComparison> tensors) {
  TraceComparison comparison;
  comparison.a = {"a.safetensors", "0.1.0", "2.13.0", 3};
  comparison.b = {"b.safetensors", "", "", 2};
  comparison.limit_reason = "a reason";
  comparison.tensors = std::move(tensors);
  return comparison;
}

std::string text_of(const TraceComparison& comparison) {
  std::ostringstream out;
  write_text(out, comparison, false);
  return out.str();
}

TEST(CompareText, ShowsTheFirstThatPartedWithItsPlaceByName) {
  EXPECT_EQ(text_of(make_comparison({make_tensor("forward.scores"), parted("forward.weights"), parted("forward.x")})),
            "compare of two saved traces\n"
            "\n"
            "  a  a.safetensors\n"
            "     3 tensors, attn-cli 0.1.0, LibTorch 2.13.0\n"
            "  b  b.safetensors\n"
            "     2 tensors\n"
            "\n"
            "  tensor                      apart  relative  limit  differing  largest at\n"
            "  forward.scores   identical\n"
            "  forward.weights  PARTS        0.5      0.25  2e-05        100  (0, 1, 3, 2)\n"
            "  forward.x        PARTS        0.5      0.25  2e-05        100  (0, 1, 3, 2)\n"
            "\n"
            "first parted: forward.weights (2, 4, 8, 8)\n"
            "  largest at  batch 0, head 1, query 3, key 2: 0.75 and 0.25\n"
            "  beyond      99 of 512 elements\n"
            "  limit       2e-05\n"
            "\n"
            "limit: a reason\n"
            "part at forward.weights: 3 compared, 1 identical bit for bit, 2 beyond the limit\n");
}

TEST(CompareText, SaysIdenticalOrAgreeing) {
  EXPECT_NE(text_of(make_comparison({make_tensor("forward.x")})).find("\nidentical: 1 compared"), std::string::npos);
  TensorComparison near = parted("forward.x");
  near.beyond = 0;
  const std::string text = text_of(make_comparison({near}));
  EXPECT_NE(text.find("  forward.x  agrees "), std::string::npos) << text;
  EXPECT_NE(text.find("\nagree within the limit: 1 compared"), std::string::npos) << text;
}

TEST(CompareText, NamesWhatOnlyOneHasAndStaysWithinHundredColumns) {
  TraceComparison comparison = make_comparison({parted("gradient.position_embedding.weight")});
  comparison.limit_reason = std::string(40, 'r') + " " + std::string(80, 's');
  for (int i = 0; i < 20; ++i) comparison.only_a.push_back("forward.some_step_" + std::to_string(i));
  comparison.only_b = {"a\nb"};
  const std::string text = text_of(comparison);
  EXPECT_NE(text.find("... (20 in all)"), std::string::npos) << text;
  EXPECT_NE(text.find("only in b, not compared: a\\nb\n"), std::string::npos) << text;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), 100U) << line;
}

TEST(CompareJson, HasNumbersOrTheirNames) {
  TensorComparison far = parted("forward.x");
  far.largest_difference = std::numeric_limits<double>::infinity();
  far.worst_b = std::numeric_limits<double>::quiet_NaN();
  const auto json = nlohmann::json::parse(to_json_text(make_comparison({make_tensor("forward.scores"), far})));
  EXPECT_EQ(json["verdict"], "part");
  EXPECT_EQ(json["first_parted"], "forward.x");
  EXPECT_EQ(json["tensors"][0]["worst"], nullptr);
  EXPECT_EQ(json["tensors"][1]["largest_difference"], "inf");
  EXPECT_EQ(json["tensors"][1]["worst"]["b"], "nan");
  EXPECT_EQ(json["tensors"][1]["worst"]["index"], nlohmann::json({0, 1, 3, 2}));
}

}  // namespace
}  // namespace attn
