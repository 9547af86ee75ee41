// Files made by hand, byte by byte, so that the reader is not judged by our own writer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "files/safetensors.h"

namespace attn::test {

/// Length, header as given, data.
inline std::string file_with_header(std::string_view header, std::string_view data) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>((std::uint64_t{header.size()} >> (8 * i)) & 0xFF);
  bytes += header;
  bytes += data;
  return bytes;
}

inline SafetensorsFile parse_with_header(std::string_view header, std::string_view data) {
  return SafetensorsFile::parse(file_with_header(header, data), "w.safetensors");
}

/// A small valid file: two tensors, one without bytes, metadata, padding.
inline std::string small_valid_file() {
  return file_with_header(
      R"({"__metadata__":{"by":"hand"},"x":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
      R"("none":{"dtype":"I8","shape":[0,3],"data_offsets":[8,8]},"y":{"dtype":"U8","shape":[],"data_offsets":[8,9]}}   )",
      "abcdefghi");
}

}  // namespace attn::test
