#include "report/saved_trace.h"

#include <map>
#include <vector>

#include <nlohmann/json.hpp>

#include "config/config_file.h"
#include "config/saved_trace_names.h"
#include "files/safetensors.h"
#include "report/tool_version.h"

namespace attn {

std::string to_safetensors(const AttentionTrace& trace) {
  std::map<std::string, std::string> metadata = {{"format", kSavedTraceFormat},
                                                 {"format_version", std::to_string(kSavedTraceVersion)},
                                                 {"tool_version", tool_version()},
                                                 {"torch_version", trace.torch_version},
                                                 {"config", to_json(trace.config).dump()}};
  if (!trace.token_labels.empty()) metadata["tokens"] = nlohmann::json(trace.token_labels).dump();

  std::vector<SafetensorsEntry> entries;
  for (const KeptTensor& tensor : trace.kept) {
    entries.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.bytes});
  }
  return to_safetensors(entries, metadata);
}

}  // namespace attn
