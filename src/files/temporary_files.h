// The names of the temporary files that exist now, kept where a signal handler may read them. Used by whole_file.cpp
// only.
#pragma once

#include <cstddef>
#include <string>

namespace attn {

/// Holds a temporary name while it exists. The file itself is made, renamed or removed by the owner.
class RegisteredTemporary {
 public:
  /// Throws IoError when more files are being written at once than there are places, or the name is too long.
  explicit RegisteredTemporary(const std::string& name);
  ~RegisteredTemporary();
  RegisteredTemporary(const RegisteredTemporary&) = delete;
  RegisteredTemporary& operator=(const RegisteredTemporary&) = delete;

 private:
  std::size_t place_;
};

}  // namespace attn
