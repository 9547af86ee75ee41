#include "report/tool_version.h"

namespace attn {

std::string tool_version() { return ATTN_TOOL_VERSION; }

}  // namespace attn
