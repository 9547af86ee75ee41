#include <cmath>

#include <nlohmann/json.hpp>

#include "report/compare_report.h"
#include "report/json_report.h"
#include "report/tool_version.h"

namespace attn {
namespace {

using Json = nlohmann::ordered_json;

/// JSON has no NaN and no infinity, and null would lose which of them it was.
Json number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

Json to_json(const ComparedFile& file) {
  return {{"file", file.name},
          {"tool_version", file.tool_version},
          {"torch_version", file.torch_version},
          {"tensors", file.tensors}};
}

Json to_json(const TensorComparison& tensor) {
  Json worst;  // null where nothing differs
  if (tensor.different > 0) {
    worst = {{"index", tensor.worst}, {"a", number(tensor.worst_a)}, {"b", number(tensor.worst_b)}};
  }
  return {{"name", tensor.name},
          {"axes", tensor.axes},
          {"shape", tensor.shape},
          {"dtype", {{"a", tensor.dtype_a}, {"b", tensor.dtype_b}}},
          {"identical", tensor.identical},
          {"within", tensor.within()},
          {"elements", tensor.elements},
          {"different", tensor.different},
          {"beyond", tensor.beyond},
          {"largest_difference", number(tensor.largest_difference)},
          {"relative", number(tensor.relative)},
          {"scale", number(tensor.scale)},
          {"limit", number(tensor.limit)},
          {"worst", worst}};
}

const char* word_of(CompareRule rule) {
  switch (rule) {
    case CompareRule::kRounding:
      return "rounding";
    case CompareRule::kLimit:
      return "limit";
    case CompareRule::kExact:
      return "exact";
  }
  return "";
}

}  // namespace

std::string to_json_text(const TraceComparison& comparison) {
  const TensorComparison* parted = comparison.first_parted();
  const char* verdict = parted != nullptr ? "part" : comparison.all_identical() ? "identical" : "agree";
  Json json = {{"schema_version", kJsonSchemaVersion},
               {"kind", "compare"},
               {"tool", "attn-cli"},
               {"tool_version", tool_version()},
               {"a", to_json(comparison.a)},
               {"b", to_json(comparison.b)},
               {"rule", word_of(comparison.rule)},
               {"limit_reason", comparison.limit_reason},
               {"verdict", verdict},
               {"first_parted", parted != nullptr ? Json(parted->name) : Json(nullptr)},
               {"only_a", comparison.only_a},
               {"only_b", comparison.only_b}};
  Json& tensors = json["tensors"] = Json::array();
  for (const TensorComparison& tensor : comparison.tensors) tensors.push_back(to_json(tensor));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace attn
