#include "cli/model_notes.h"

#include <algorithm>

#include "config/config_file.h"
#include "core/text.h"

namespace attn {
namespace {

constexpr std::size_t kMaxLength = 160;  ///< of one remark: files have many keys, and they are not what is asked for

bool is_about_a_key(const std::string& line, const std::vector<std::string>& keys) {
  // "/num_hidden_layers: looked at ..."; "rope.theta 500000.0 from ..."
  return line.starts_with('/') || std::find(keys.begin(), keys.end(), line.substr(0, line.find(' '))) != keys.end();
}

}  // namespace

std::vector<std::string> model_notes(const RunConfig& config) {
  if (config.origins.lines.empty()) return {};
  const std::vector<std::string> keys = config_keys();
  std::vector<std::string> notes;
  for (const std::string& line : config.origins.lines) {
    if (!is_about_a_key(line, keys)) notes.push_back(shortened(line, kMaxLength));
  }
  const std::string where_all_is = "attn-cli config " + printable(config.source_name) + " shows all";
  if (notes.empty()) return {"a model's own config: " + where_all_is};
  return {join(notes, "; "), where_all_is};
}

}  // namespace attn
