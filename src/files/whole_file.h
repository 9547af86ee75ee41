// Files are read whole and written whole. A reader never sees half a file: bytes go to a temporary name in the same
// folder, are checked, and are then renamed. Used by every command that reads or writes anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <string>
#include <string_view>

namespace attn {

/// All bytes of a file. `max_bytes` guards against the wrong file being named.
/// Throws IoError: missing, a folder, not readable, larger than `max_bytes`.
std::string read_whole_file(const std::filesystem::path& path, std::uint64_t max_bytes);

/// All bytes of a stream (standard input, named `source_name` in errors). Throws IoError as above.
std::string read_whole_stream(std::istream& in, const std::string& source_name, std::uint64_t max_bytes);

/// Replaces `path` by these bytes, or throws IoError and leaves what was there. Missing folders above it are not made.
/// A target that exists and is no regular file (a pipe, /dev/null) is written directly, and checked.
void write_whole_file(const std::filesystem::path& path, std::string_view bytes);

/// Throws IoError "PATH: is a folder, expected a file" when it is one; a path that is not there is fine.
void refuse_folder(const std::filesystem::path& path);

/// Makes the folder, and those above it, if missing, and proves that a file can be made in it.
/// Throws IoError: a file is in the way, no permission. Leaves no trace but the folder.
void make_writable_folder(const std::filesystem::path& folder);

/// From here on SIGINT and SIGTERM first remove the temporary files of write_whole_file, then end the program as
/// the signal would have (a shell sees 130 and 143). Call once, from main's thread.
void remove_temporary_files_on_interrupt();

}  // namespace attn
