#include "files/whole_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <istream>
#include <new>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "files/temporary_files.h"

namespace attn {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kChunkBytes = std::size_t{1} << 20;

std::string name_of(const fs::path& path) { return path.empty() ? "\"\"" : printable(path.native()); }

[[noreturn]] void fail(const fs::path& path, const std::string& what) { throw IoError(name_of(path) + ": " + what); }

// strerror is not safe with threads; this is the same text.
[[noreturn]] void fail(const fs::path& path, const std::string& what, int error_number) {
  fail(path, what + ": " + std::generic_category().message(error_number));
}

[[noreturn]] void fail_too_large(const std::string& name, std::uint64_t max_bytes) {
  throw IoError(name + ": is larger than " + format_bytes(max_bytes) + ", the most that is read");
}

void check_path(const fs::path& path, const std::string& expected) {
  if (path.empty()) fail(path, "the path is empty, expected " + expected);
  if (path.native().find('\0') != std::string::npos) fail(path, "has a zero byte in it, expected " + expected);
}

void refuse_folder(const fs::path& path, const struct stat& status) {
  if (S_ISDIR(status.st_mode)) fail(path, "is a folder, expected a file");
}

// An open file, closed at the end. close() tells whether the last bytes arrived.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return number_; }
  bool ok() const { return number_ >= 0; }
  bool close() { return ::close(std::exchange(number_, -1)) == 0; }

 private:
  int number_;
};

int open_retrying(const fs::path& path, int flags, mode_t mode = 0) {
  int number = -1;
  do {
    number = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (number < 0 && errno == EINTR);
  return number;
}

// Reads until the end, or until there is more than allowed.
template <typename ReadSome>
std::string read_all(const std::string& name, std::uint64_t max_bytes, std::uint64_t expected_bytes,
                     const ReadSome& read_some) {
  try {
    std::string bytes;
    bytes.reserve(expected_bytes);
    std::string chunk(kChunkBytes, '\0');
    while (const std::size_t count = read_some(chunk)) {
      if (count > max_bytes - bytes.size()) fail_too_large(name, max_bytes);
      bytes.append(chunk, 0, count);
    }
    return bytes;
  } catch (const std::bad_alloc&) {
    throw ResourceError(name + ": does not fit in memory");
  } catch (const std::length_error&) {
    throw ResourceError(name + ": does not fit in memory");
  }
}

void write_all(const Descriptor& file, std::string_view bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail(path, "cannot be written", written < 0 ? errno : EIO);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void close_checked(Descriptor& file, const fs::path& path) {
  if (!file.close()) fail(path, "cannot be written", errno);
}

bool is_same_file(const struct stat& target, int descriptor) {
  struct stat other = {};
  return fstat(descriptor, &other) == 0 && other.st_dev == target.st_dev && other.st_ino == target.st_ino;
}

// A pipe, a device, or what standard output or error already goes to: opened again, a file would be cut off or
// written over at its start, and renamed over it would be lost to whoever holds it open.
void write_directly(const fs::path& path, const struct stat& target, std::string_view bytes) {
  int number = -1;
  if (is_same_file(target, STDOUT_FILENO)) {
    number = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
  } else if (is_same_file(target, STDERR_FILENO)) {
    number = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
  } else {
    number = open_retrying(path, O_WRONLY | O_NOCTTY);
  }
  Descriptor file(number);
  if (!file.ok()) fail(path, "cannot be written", errno);
  write_all(file, bytes, path);
  close_checked(file, path);
}

// Where the bytes go in the end: a link is followed, so that it stays a link.
fs::path follow_links(const fs::path& path) {
  constexpr int kMostLinks = 40;  // as in Linux
  fs::path target = path;
  std::error_code error;
  for (int links = 0; fs::is_symlink(fs::symlink_status(target, error)); ++links) {
    if (links == kMostLinks) fail(path, "cannot be written", ELOOP);
    const fs::path next = fs::read_symlink(target, error);
    if (error) fail(path, "cannot be written", error.value());
    target = next.is_absolute() ? next : target.parent_path() / next;
  }
  return target;
}

// A name that nothing has: the process, the time and a counter; O_EXCL has the last word.
fs::path temporary_name(const fs::path& folder) {
  static std::atomic<unsigned> counter{0};
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  return folder /
         (".attn-" + std::to_string(getpid()) + "-" + std::to_string(now) + "-" + std::to_string(++counter) + ".tmp");
}

// Made new in `folder`, removed at the end unless it was moved to its place.
class TemporaryFile {
 public:
  TemporaryFile(const fs::path& folder, const fs::path& target)
      : name_(temporary_name(folder)),
        registered_(name_.native()),
        file_(open_retrying(name_, O_WRONLY | O_CREAT | O_EXCL, 0666)),
        exists_(file_.ok()) {
    if (exists_) return;
    if (errno == ENOENT) fail(target, "the folder " + name_of(folder) + " does not exist");
    fail(target, "cannot make a file in the folder " + name_of(folder), errno);
  }
  ~TemporaryFile() {
    if (exists_) ::unlink(name_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  Descriptor& file() { return file_; }

  void move_to(const fs::path& target, const fs::path& path) {
    if (::rename(name_.c_str(), target.c_str()) != 0) fail(path, "cannot be replaced", errno);
    exists_ = false;
  }

 private:
  fs::path name_;
  RegisteredTemporary registered_;  // before the file is made: an interrupt in between must not miss it
  Descriptor file_;
  bool exists_;
};

fs::path folder_of(const fs::path& file) { return file.has_parent_path() ? file.parent_path() : fs::path("."); }

void replace(const fs::path& path, std::string_view bytes, const struct stat* replaced) {
  const fs::path target = follow_links(path);
  if (!target.has_filename()) fail(path, "ends in a slash, expected a file name");
  if (replaced != nullptr && ::access(target.c_str(), W_OK) != 0) fail(path, "cannot be written", errno);

  TemporaryFile temporary(folder_of(target), path);
  if (replaced != nullptr && fchmod(temporary.file().get(), replaced->st_mode & 0777) != 0) {
    fail(path, "cannot keep its permissions", errno);
  }
  write_all(temporary.file(), bytes, path);
  struct stat written = {};
  if (fstat(temporary.file().get(), &written) != 0) fail(path, "cannot be written", errno);
  if (std::cmp_not_equal(written.st_size, bytes.size())) {
    fail(path, format_bytes(static_cast<std::uint64_t>(written.st_size)) + " arrived, expected " +
                   format_bytes(bytes.size()));
  }
  close_checked(temporary.file(), path);
  temporary.move_to(target, path);
}

}  // namespace

std::string read_whole_file(const fs::path& path, std::uint64_t max_bytes) {
  check_path(path, "a file name");
  const Descriptor file(open_retrying(path, O_RDONLY | O_NOCTTY));
  if (!file.ok()) fail(path, "cannot be read", errno);
  struct stat status = {};
  if (fstat(file.get(), &status) != 0) fail(path, "cannot be read", errno);
  refuse_folder(path, status);
  if (S_ISREG(status.st_mode) && std::cmp_greater(status.st_size, max_bytes)) fail_too_large(name_of(path), max_bytes);

  const std::uint64_t expected = S_ISREG(status.st_mode) ? static_cast<std::uint64_t>(status.st_size) : 0;
  return read_all(name_of(path), max_bytes, expected, [&](std::string& chunk) {
    ssize_t count = -1;
    do {
      count = ::read(file.get(), chunk.data(), chunk.size());
    } while (count < 0 && errno == EINTR);
    if (count < 0) fail(path, "cannot be read", errno);
    return static_cast<std::size_t>(count);
  });
}

std::string read_whole_stream(std::istream& in, const std::string& source_name, std::uint64_t max_bytes) {
  const std::string name = printable(source_name);
  return read_all(name, max_bytes, 0, [&](std::string& chunk) {
    if (in.eof()) return std::size_t{0};
    in.read(chunk.data(), static_cast<std::streamsize>(chunk.size()));
    if (in.bad() || (in.fail() && !in.eof())) throw IoError(name + ": cannot be read");
    return static_cast<std::size_t>(in.gcount());
  });
}

void write_whole_file(const fs::path& path, std::string_view bytes) {
  check_path(path, "a file name");
  struct stat target = {};
  const bool exists = ::stat(path.c_str(), &target) == 0;
  if (!exists && errno != ENOENT) fail(path, "cannot be written", errno);
  if (exists) refuse_folder(path, target);

  const bool is_ours = exists && (is_same_file(target, STDOUT_FILENO) || is_same_file(target, STDERR_FILENO));
  if (exists && (!S_ISREG(target.st_mode) || is_ours)) {
    write_directly(path, target, bytes);
  } else {
    replace(path, bytes, exists ? &target : nullptr);
  }
}

void refuse_folder(const fs::path& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) == 0) refuse_folder(path, status);
}

void make_writable_folder(const fs::path& folder) {
  check_path(folder, "a folder");
  for (fs::path above = folder; !above.empty(); above = above.parent_path()) {
    struct stat status = {};
    if (::stat(above.c_str(), &status) == 0) {
      if (!S_ISDIR(status.st_mode)) fail(folder, name_of(above) + " is a file, expected a folder");
      break;
    }
  }
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail(folder, "cannot be made", error.value());
  TemporaryFile(folder, folder);
}

}  // namespace attn
