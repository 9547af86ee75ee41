// Reading and writing .safetensors: named tensors as raw little-endian bytes behind a JSON header.
// Format: https://github.com/huggingface/safetensors (8 bytes of header length, header, data).
// No LibTorch here: bytes come out, `experiment` makes tensors of them. Nothing is trusted: every rule is checked.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace attn {

/// One tensor of a file. `bytes` points into the SafetensorsFile that gave it.
struct SafetensorsEntry {
  std::string name;
  std::string dtype;                ///< as in the file: "F32", "BF16", "I64" ...
  std::vector<std::int64_t> shape;  ///< empty for a scalar.
  std::string_view bytes;           ///< row-major, little-endian; not necessarily aligned.
};

inline constexpr std::uint64_t kMaxSafetensorsBytes = std::uint64_t{64} << 30;  ///< a larger file is not read.
inline constexpr std::uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;        ///< the format's own limit.

/// A whole file in memory. Move-only, so that the entries' views stay valid.
class SafetensorsFile {
 public:
  /// Throws IoError naming the file, the tensor and what is wrong: truncated, header too long, not JSON, a duplicate
  /// name, an unknown dtype or field, a negative or overflowing shape, offsets that overlap, leave a gap, run past the
  /// data, or disagree with the shape; bytes that belong to no tensor. ResourceError when memory is too small.
  static SafetensorsFile load(const std::filesystem::path& path);

  /// The same from bytes already in memory. `source_name` stands for the file in errors.
  static SafetensorsFile parse(std::string bytes, const std::string& source_name);

  const std::string& source_name() const { return source_name_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::vector<SafetensorsEntry>& entries() const { return entries_; }  ///< in the order of their data.
  const SafetensorsEntry* find(std::string_view name) const;                 ///< null when there is none.

 private:
  SafetensorsFile(std::string bytes, const std::string& source_name);

  std::string source_name_;
  std::unique_ptr<const std::string> bytes_;  // on the heap, so that a move leaves the views where they point
  std::map<std::string, std::string> metadata_;
  std::vector<SafetensorsEntry> entries_;
};

/// Bytes of one element of a dtype: 4 for "F32". 0 for a dtype that this tool does not know.
std::int64_t safetensors_element_size(std::string_view dtype);

/// The bytes of a file that holds these entries, in this order; the data starts at a multiple of 8 bytes. Throws
/// IoError naming the tensor: a duplicate or reserved name, text that is not UTF-8, an unknown dtype, a negative or
/// overflowing shape, bytes that do not fit the shape.
std::string to_safetensors(const std::vector<SafetensorsEntry>& entries,
                           const std::map<std::string, std::string>& metadata);

}  // namespace attn
