#include "files/safetensors.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/text.h"
#include "files/strict_json.h"
#include "files/whole_file.h"

namespace attn {
namespace {

using nlohmann::json;

constexpr std::size_t kLengthBytes = 8;  // before the header: its length, little-endian
constexpr std::string_view kMetadataKey = "__metadata__";

struct DtypeSize {
  std::string_view dtype;
  std::int64_t bytes;
};

constexpr std::array<DtypeSize, 15> kDtypes = {{{"F64", 8},
                                                {"F32", 4},
                                                {"F16", 2},
                                                {"BF16", 2},
                                                {"F8_E4M3", 1},
                                                {"F8_E5M2", 1},
                                                {"I64", 8},
                                                {"I32", 4},
                                                {"I16", 2},
                                                {"I8", 1},
                                                {"U64", 8},
                                                {"U32", 4},
                                                {"U16", 2},
                                                {"U8", 1},
                                                {"BOOL", 1}}};

std::vector<std::string> known_dtypes() {
  std::vector<std::string> names;
  for (const DtypeSize& size : kDtypes) names.emplace_back(size.dtype);
  return names;
}

// Bytes of a tensor; absent when they do not fit in 64 bits. Sizes must not be negative.
std::optional<std::int64_t> byte_count(const std::vector<std::int64_t>& shape, std::int64_t element_size) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  std::int64_t bytes = element_size;
  for (const std::int64_t size : shape) {
    if (bytes > std::numeric_limits<std::int64_t>::max() / size) return std::nullopt;
    bytes *= size;
  }
  return bytes;
}

// What is wrong with one tensor, as an error that says which.
class TensorErrors {
 public:
  TensorErrors(std::string source_name, std::string_view tensor)
      : where_(std::move(source_name) + ": tensor " + in_quotes(tensor) + ": ") {}

  [[noreturn]] void fail(const std::string& what) const { throw IoError(where_ + what); }

  std::int64_t element_size(std::string_view dtype) const {
    const std::int64_t bytes = safetensors_element_size(dtype);
    if (bytes == 0) fail("unknown dtype " + in_quotes(dtype) + "; known: " + join(known_dtypes()));
    return bytes;
  }

  void check_size(const SafetensorsEntry& entry, std::int64_t bytes) const {
    const auto due = byte_count(entry.shape, element_size(entry.dtype));
    const std::string kind = entry.dtype + " of shape " + format_shape(entry.shape);
    if (!due) fail(kind + " is larger than any file");
    if (*due != bytes) {
      fail(kind + " takes " + std::to_string(*due) + " bytes, got " + std::to_string(bytes));
    }
  }

 private:
  std::string where_;
};

// One tensor's entry in the header, and where its bytes lie.
struct HeaderEntry {
  SafetensorsEntry tensor;
  std::int64_t begin = 0;  // offsets into the data, end not included
  std::int64_t end = 0;
};

std::int64_t size_of(const json& value, const std::string& what, const TensorErrors& errors) {
  const bool fits = value.is_number_unsigned()
                        ? std::cmp_less_equal(value.get<std::uint64_t>(), std::numeric_limits<std::int64_t>::max())
                        : value.is_number_integer() && value.get<std::int64_t>() >= 0;
  if (!fits) errors.fail(what + " has " + in_quotes(value.dump()) + ", expected a whole number of at least 0");
  return value.get<std::int64_t>();
}

HeaderEntry read_entry(const std::string& name, const json& entry, const TensorErrors& errors) {
  if (!entry.is_object()) errors.fail("is no JSON object, expected dtype, shape and data_offsets");
  const std::vector<std::string> fields = {"dtype", "shape", "data_offsets"};
  for (const auto& [field, value] : entry.items()) {
    if (std::find(fields.begin(), fields.end(), field) == fields.end())
      errors.fail(unknown_word("field", field, fields));
  }
  for (const std::string& field : fields) {
    if (!entry.contains(field)) errors.fail(field + " is missing");
  }

  HeaderEntry read;
  read.tensor.name = name;
  if (!entry["dtype"].is_string()) errors.fail("dtype is no string");
  read.tensor.dtype = entry["dtype"].get<std::string>();
  errors.element_size(read.tensor.dtype);

  if (!entry["shape"].is_array()) errors.fail("shape is no array");
  for (const json& size : entry["shape"]) read.tensor.shape.push_back(size_of(size, "shape", errors));

  const json& offsets = entry["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2) errors.fail("data_offsets is no array of two numbers");
  read.begin = size_of(offsets[0], "data_offsets", errors);
  read.end = size_of(offsets[1], "data_offsets", errors);
  if (read.begin > read.end) {
    errors.fail("data_offsets begin at " + std::to_string(read.begin) + ", after their end " +
                std::to_string(read.end));
  }
  errors.check_size(read.tensor, read.end - read.begin);
  return read;
}

std::map<std::string, std::string> read_metadata(const json& metadata, const std::string& source_name) {
  const std::string where = source_name + ": " + std::string(kMetadataKey);
  if (!metadata.is_object()) throw IoError(where + " is no JSON object");
  std::map<std::string, std::string> read;
  for (const auto& [key, value] : metadata.items()) {
    if (!value.is_string()) throw IoError(where + ": " + in_quotes(key) + " is no string");
    read.emplace(key, value.get<std::string>());
  }
  return read;
}

// The JSON between the length and the data.
std::string_view header_text(std::string_view bytes, const std::string& source_name) {
  if (bytes.size() < kLengthBytes) {
    throw IoError(source_name + ": is " + std::to_string(bytes.size()) +
                  " bytes long, too short for a .safetensors file");
  }
  std::uint64_t length = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;) length = (length << 8) | static_cast<unsigned char>(bytes[i]);
  if (length > kMaxSafetensorsHeaderBytes) {
    throw IoError(source_name + ": header of " + std::to_string(length) + " bytes, expected at most " +
                  std::to_string(kMaxSafetensorsHeaderBytes) + "; is it a .safetensors file?");
  }
  if (length > bytes.size() - kLengthBytes) {
    throw IoError(source_name + ": is cut off: its header is " + std::to_string(length) + " bytes long, and " +
                  std::to_string(bytes.size() - kLengthBytes) + " are there");
  }
  const std::string_view header = bytes.substr(kLengthBytes, length);
  if (!header.starts_with('{')) throw IoError(source_name + ": header does not begin with '{'");
  return header;
}

json parse_header(std::string_view header, const std::string& source_name) {
  try {
    return parse_strict_json(header, source_name + ": header", kMaxSafetensorsHeaderBytes);
  } catch (const ConfigError& error) {
    throw IoError(error.what());
  }
}

// Every byte of the data belongs to exactly one tensor. `entries` are in the order of their offsets.
void check_layout(const std::vector<HeaderEntry>& entries, std::size_t data_bytes, const std::string& source_name) {
  std::int64_t covered = 0;
  for (const HeaderEntry& entry : entries) {
    const TensorErrors errors(source_name, entry.tensor.name);
    if (std::cmp_greater(entry.end, data_bytes)) {
      errors.fail("ends at byte " + std::to_string(entry.end) + " of " + std::to_string(data_bytes) +
                  " bytes of data; is the file cut off?");
    }
    if (entry.begin < covered) {
      errors.fail("begins at byte " + std::to_string(entry.begin) + ", inside the tensor before it, which ends at " +
                  std::to_string(covered));
    }
    if (entry.begin > covered) {
      errors.fail("begins at byte " + std::to_string(entry.begin) + ", and the bytes from " + std::to_string(covered) +
                  " belong to no tensor");
    }
    covered = entry.end;
  }
  if (std::cmp_not_equal(covered, data_bytes)) {
    throw IoError(source_name + ": " + std::to_string(data_bytes - static_cast<std::size_t>(covered)) +
                  " bytes at its end belong to no tensor");
  }
}

void check_utf8(std::string_view text, const std::string& what) {
  if (find_invalid_utf8(text)) throw IoError(what + " " + in_quotes(text) + " is not UTF-8");
}

}  // namespace

SafetensorsFile SafetensorsFile::load(const std::filesystem::path& path) {
  return parse(read_whole_file(path, kMaxSafetensorsBytes), path.string());
}

SafetensorsFile SafetensorsFile::parse(std::string bytes, const std::string& source_name) {
  return SafetensorsFile(std::move(bytes), source_name);
}

SafetensorsFile::SafetensorsFile(std::string bytes, const std::string& source_name)
    : source_name_(printable(source_name)), bytes_(std::make_unique<const std::string>(std::move(bytes))) {
  const std::string_view header = header_text(*bytes_, source_name_);
  const std::string_view data = std::string_view(*bytes_).substr(kLengthBytes + header.size());
  const json tensors = parse_header(header, source_name_);

  std::vector<HeaderEntry> read;
  for (const auto& [name, value] : tensors.items()) {
    if (name == kMetadataKey) {
      metadata_ = read_metadata(value, source_name_);
    } else {
      read.push_back(read_entry(name, value, TensorErrors(source_name_, name)));
    }
  }
  // Tensors without bytes may share an offset with the one that follows: they come first.
  std::stable_sort(read.begin(), read.end(), [](const HeaderEntry& a, const HeaderEntry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  check_layout(read, data.size(), source_name_);

  for (HeaderEntry& entry : read) {
    const auto begin = static_cast<std::size_t>(entry.begin);
    entry.tensor.bytes = data.substr(begin, static_cast<std::size_t>(entry.end) - begin);
    entries_.push_back(std::move(entry.tensor));
  }
}

const SafetensorsEntry* SafetensorsFile::find(std::string_view name) const {
  const auto found =
      std::find_if(entries_.begin(), entries_.end(), [&](const SafetensorsEntry& entry) { return entry.name == name; });
  return found == entries_.end() ? nullptr : &*found;
}

std::int64_t safetensors_element_size(std::string_view dtype) {
  const auto found =
      std::find_if(kDtypes.begin(), kDtypes.end(), [&](const DtypeSize& size) { return size.dtype == dtype; });
  return found == kDtypes.end() ? 0 : found->bytes;
}

std::string to_safetensors(const std::vector<SafetensorsEntry>& entries,
                           const std::map<std::string, std::string>& metadata) {
  const std::string where = ".safetensors to be written";
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  for (const auto& [key, value] : metadata) {
    check_utf8(key, where + ": metadata");
    check_utf8(value, where + ": metadata");
    header[std::string(kMetadataKey)][key] = value;
  }
  std::size_t offset = 0;
  for (const SafetensorsEntry& entry : entries) {
    check_utf8(entry.name, where + ": tensor name");
    const TensorErrors errors(where, entry.name);
    if (entry.name == kMetadataKey) errors.fail("the name is reserved for the metadata");
    if (header.contains(entry.name)) errors.fail("the name is given twice");
    if (std::any_of(entry.shape.begin(), entry.shape.end(), [](std::int64_t size) { return size < 0; })) {
      errors.fail("negative size in shape " + format_shape(entry.shape));
    }
    errors.check_size(entry, static_cast<std::int64_t>(entry.bytes.size()));
    header[entry.name] = {
        {"dtype", entry.dtype}, {"shape", entry.shape}, {"data_offsets", {offset, offset + entry.bytes.size()}}};
    offset += entry.bytes.size();
  }

  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the format allows spaces here, so that the data is aligned
  if (text.size() > kMaxSafetensorsHeaderBytes) throw IoError(where + ": its header would be larger than readers take");

  std::string bytes;
  bytes.reserve(kLengthBytes + text.size() + offset);
  for (std::size_t i = 0; i < kLengthBytes; ++i) bytes += static_cast<char>((text.size() >> (8 * i)) & 0xFF);
  bytes += text;
  for (const SafetensorsEntry& entry : entries) bytes += entry.bytes;
  return bytes;
}

}  // namespace attn
