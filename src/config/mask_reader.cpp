#include "config/mask_reader.h"

#include <algorithm>
#include <numeric>

#include <nlohmann/json.hpp>

#include "config/config_keys.h"
#include "config/input_reader.h"
#include "core/error.h"
#include "core/text.h"
#include "files/safetensors.h"

namespace attn {
namespace {

constexpr std::int64_t kAnyInteger = INT64_MAX;  // find_fault() knows the range

std::string as_rows(std::int64_t T_q, std::int64_t T_k) {
  return std::to_string(T_q) + (T_q == 1 ? " row of " : " rows of ") + std::to_string(T_k);
}

/// The cell as it is in JSON: 0, 1, false or true.
std::optional<bool> as_cell(const nlohmann::json& value) {
  if (value.is_boolean()) return value.get<bool>();
  const auto number = as_integer(value, 0, 1);
  return number ? std::optional(*number == 1) : std::nullopt;
}

RowsMask read_rows(const ObjectReader& config, const nlohmann::json& rows, std::int64_t T_q, std::int64_t T_k) {
  const std::string pointer = config.pointer("mask");
  const auto refuse = [&config](const std::string& where, const std::string& text) {
    throw ConfigError(config.source().where(where) + ": " + text);
  };
  if (static_cast<std::int64_t>(rows.size()) != T_q) {
    refuse(pointer, "must have a row for each query, " + as_rows(T_q, T_k) + ", got " + std::to_string(rows.size()));
  }
  RowsMask mask{T_q, T_k, {}, std::nullopt, ""};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string row_pointer = pointer + "/" + std::to_string(i);
    const nlohmann::json& row = rows[i];
    if (!row.is_array()) refuse(row_pointer, "must be an array of 0 and 1, got " + describe(row));
    if (static_cast<std::int64_t>(row.size()) != T_k) {
      refuse(row_pointer,
             "must have a cell for each of the " + std::to_string(T_k) + " keys, got " + std::to_string(row.size()));
    }
    for (std::size_t j = 0; j < row.size(); ++j) {
      const auto cell = as_cell(row[j]);
      if (!cell) {
        refuse(row_pointer + "/" + std::to_string(j),
               "must be 0 or 1, false or true, got " + describe(row[j]) + "; a mask is boolean, 1 = may look");
      }
      mask.visible.push_back(*cell);
    }
  }
  return mask;
}

RowsMask read_mask_file(const ObjectReader& object, std::int64_t T_q, std::int64_t T_k) {
  object.refuse_unknown_keys("key of a mask file", kMaskFileKeys);
  RowsMask mask{T_q, T_k, {}, *object.path("file"), object.string("name").value_or("mask")};
  const SafetensorsFile file = load_tensors(object, "file", *mask.file);
  const SafetensorsEntry* entry = file.find(mask.name);
  if (entry == nullptr) {
    std::vector<std::string> names;
    for (const SafetensorsEntry& known : file.entries()) names.push_back(printable(known.name));
    object.fail("name", "no tensor " + in_quotes(mask.name) + " in " + printable(mask.file->string()) + "; it has " +
                            (names.empty() ? std::string("none") : join_first(names)));
  }
  const std::string tensor = "tensor " + in_quotes(mask.name);
  if (entry->dtype != "BOOL" && entry->dtype != "U8") {
    object.fail("name", tensor + " must be BOOL, or U8 of 0 and 1: a mask is boolean, true = may look, got " +
                            printable(entry->dtype));
  }
  if (entry->shape != std::vector<std::int64_t>{T_q, T_k}) {
    object.fail("name", tensor + " must have the shape (T_q, T_k) = " + format_shape({T_q, T_k}) + ", got " +
                            format_shape(entry->shape));
  }
  for (const char byte : entry->bytes) {
    if (byte != 0 && byte != 1) {
      object.fail("name", tensor + " must hold 0 and 1 only, got " +
                              std::to_string(static_cast<int>(static_cast<unsigned char>(byte))));
    }
    mask.visible.push_back(byte == 1);
  }
  return mask;
}

std::int64_t required_integer(const ObjectReader& mask, std::string_view key, const char* meaning) {
  const auto number = mask.integer(key, -kAnyInteger, kAnyInteger);
  if (!number) mask.fail(key, "missing, an integer of at least 1: " + std::string(meaning));
  return *number;
}

DocumentMask read_documents(const ObjectReader& object, std::int64_t T_k) {
  const nlohmann::json* lengths = object.find("lengths");
  if (lengths == nullptr || !lengths->is_array()) {
    object.fail("lengths", (lengths == nullptr ? "missing, " : "must be ") +
                               std::string("an array of integers: how many tokens each document has") +
                               (lengths == nullptr ? "" : ", got " + describe(*lengths)));
  }
  DocumentMask mask;
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < lengths->size(); ++i) {
    const auto length = as_integer((*lengths)[i], 1, kMaxSize);
    if (!length) {
      throw ConfigError(object.source().where(object.pointer("lengths") + "/" + std::to_string(i)) + ": " +
                        not_an_integer((*lengths)[i], 1, kMaxSize));
    }
    mask.lengths.push_back(*length);
    sum += *length;
  }
  if (sum > T_k) {
    object.fail("lengths", "must add up to at most T (" + std::to_string(T_k) + "), got " + std::to_string(sum));
  }
  return mask;
}

MaskConfig read_mask_object(const ObjectReader& object, std::int64_t T_q, std::int64_t T_k) {
  const auto kind = object.word("kind", kMaskKindWords);
  if (!kind && object.has("file")) return read_mask_file(object, T_q, T_k);
  if (!kind) object.fail("kind", "missing; known: " + join(all_words(kMaskKindWords)) + "; or a file");
  object.refuse_unknown_keys("key of a " + word_of(kMaskKindWords, *kind) + " mask", mask_keys(*kind));
  switch (*kind) {
    case MaskKind::kBidirectional:
      break;
    case MaskKind::kPrefix:
      return PrefixMask{required_integer(object, "length", "how many tokens at the start see each other")};
    case MaskKind::kDocument:
      return read_documents(object, T_k);
    case MaskKind::kDilated:
      return DilatedMask{
          required_integer(object, "stride", "how far apart the keys are that a query sees, counted from itself")};
  }
  return BidirectionalMask{};
}

/// A mask that is only a word: the one kind that needs nothing more.
MaskConfig read_mask_word(const ObjectReader& config, const std::string& word) {
  if (value_of(kMaskKindWords, word) == MaskKind::kBidirectional) return BidirectionalMask{};
  // "prefix:3" is meant as a prefix mask: what follows the letters is no part of the name.
  const std::string name = word.substr(0, word.find_first_not_of("abcdefghijklmnopqrstuvwxyz"));
  const auto kind = value_of(kMaskKindWords, name);
  if (kind && *kind != MaskKind::kBidirectional) {
    const std::string number = *kind == MaskKind::kDocument ? "[3, 2]" : "3";
    config.fail("mask", "a " + name + " mask needs more than its name, an object such as {\"kind\": \"" + name +
                            "\", \"" + mask_keys(*kind).back() + "\": " + number + "}, got " + in_quotes(word));
  }
  config.fail("mask", unknown_config_word("mask", word, all_words(kMaskKindWords)) +
                          "; all but bidirectional are objects such as {\"kind\": \"prefix\", \"length\": 3}");
}

}  // namespace

std::optional<MaskConfig> read_mask(const ObjectReader& config, std::int64_t T_q, std::int64_t T_k) {
  const nlohmann::json* value = config.find("mask");
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return read_mask_word(config, value->get<std::string>());
  if (value->is_array()) return read_rows(config, *value, T_q, T_k);
  if (!value->is_object()) {
    config.fail("mask", "must be the word bidirectional, an object with a kind or a file, or rows of 0 and 1, got " +
                            describe(*value));
  }
  return read_mask_object(*config.object("mask"), T_q, T_k);
}

}  // namespace attn
