#include "cli/output.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <ostream>
#include <system_error>

#include "core/error.h"
#include "core/text.h"
#include "files/whole_file.h"

namespace attn {

void write_standard_output(std::ostream& out, const std::string& text) {
  errno = 0;
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.flush();
  if (out) return;
  if (errno == EPIPE) throw ClosedPipe{};
  const std::string reason = errno == 0 ? "" : ": " + std::generic_category().message(errno);
  throw IoError("standard output: could not be written" + reason);
}

void check_output_file(const std::optional<std::string>& path) {
  if (!path || *path == "-") return;
  const std::filesystem::path file(*path);
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) throw IoError(printable(*path) + ": is a folder, expected a file");
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  if (!std::filesystem::is_directory(folder, error)) {
    throw IoError(printable(*path) + ": its folder " + printable(folder.string()) + " does not exist");
  }
  const bool exists = std::filesystem::exists(file, error);
  const bool regular = !exists || std::filesystem::is_regular_file(file, error);
  if (regular && ::access(folder.c_str(), W_OK) != 0) {
    throw IoError(printable(*path) + ": its folder " + printable(folder.string()) + " is not writable");
  }
}

bool write_json(const std::optional<std::string>& path, const std::function<std::string()>& make_json,
                Streams& streams) {
  if (!path) return true;
  if (*path == "-") {
    streams.out << make_json();
    return false;
  }
  write_whole_file(*path, make_json());
  return true;
}

void write_notes(std::ostream& err, const std::vector<std::string>& notes) {
  for (const std::string& note : notes) err << "attn-cli: note: " << note << '\n';
}

}  // namespace attn
