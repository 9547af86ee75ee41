// What the tests of this room share: a short config, the text of an error, a folder for files.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "config/config_file.h"
#include "core/error.h"

namespace attn {

/// A valid config with more keys: tiny(R"("dropout": 0.5)").
inline std::string tiny(const std::string& more = "") {
  return R"({"B": 2, "T": 8, "d_model": 16, "H": 4)" + (more.empty() ? "" : ", " + more) + "}";
}

inline RunConfig parse(const std::string& text, const std::vector<std::string>& set_words = {},
                       const std::filesystem::path& base_folder = "") {
  return parse_config(text, "tiny.json", base_folder, set_words);
}

/// The text of the attn::Error of class `Expected` that the config is refused with; "accepted" when it is not.
template <typename Expected = ConfigError>
std::string error_of(const std::string& text, const std::vector<std::string>& set_words = {},
                     const std::filesystem::path& base_folder = "") {
  try {
    parse(text, set_words, base_folder);
  } catch (const Expected& error) {
    return error.what();
  }
  return "accepted";
}

/// A folder that goes away at the end of the test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "attn_config_test_XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  /// Writes a file and returns its path.
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return (path_ / name).string();
  }

 private:
  std::filesystem::path path_;
};

}  // namespace attn
