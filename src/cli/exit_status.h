// What the program tells the shell. Part of the interface: scripts depend on it.
#pragma once

namespace attn {

enum class ExitStatus : int {
  kOk = 0,           ///< done; for verify: no check failed or errored, at least one passed.
  kCheckFailed = 1,  ///< a check failed.
  kUsage = 2,        ///< the command line or a config is wrong.
  kFailure = 3,      ///< it could not be done: file, memory, device, internal; nothing could be checked.
};

}  // namespace attn
