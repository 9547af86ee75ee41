#include "config/input_reader.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "config/config_keys.h"
#include "config/saved_trace_names.h"
#include "config/tokenizer.h"
#include "core/error.h"
#include "core/text.h"
#include "files/strict_json.h"
#include "files/whole_file.h"

namespace attn {
namespace {

/// Sets B, T and the lengths. Whether items of different lengths are welcome is for the padding to say.
template <typename Item>
void set_sizes(InputFacts& facts, const std::vector<std::vector<Item>>& items) {
  facts.B = static_cast<std::int64_t>(items.size());
  for (const auto& item : items) facts.lengths.push_back(static_cast<std::int64_t>(item.size()));
  facts.T = *std::max_element(facts.lengths.begin(), facts.lengths.end());
}

/// The lines of a text file: one item a line, the last line end optional, a carriage return before it dropped.
std::vector<std::string> read_lines(const ObjectReader& input, const std::filesystem::path& path) {
  std::string bytes;
  try {
    bytes = read_whole_file(path, kMaxJsonBytes);
  } catch (const IoError& error) {
    throw IoError(input.where("file") + ": " + error.what());
  }
  std::vector<std::string> lines;
  for (std::size_t start = 0; start < bytes.size();) {
    const std::size_t end = std::min(bytes.find('\n', start), bytes.size());
    std::string line = bytes.substr(start, end - start);
    if (!line.empty() && line.back() == '\r') line.pop_back();
    lines.push_back(std::move(line));
    start = end + 1;
  }
  return lines;
}

void check_file_texts(const ObjectReader& input, const TextInput& text) {
  const std::string file = printable(text.file->string());
  if (text.texts.empty()) input.fail("file", file + ": must have at least one line, got an empty file");
  for (std::size_t i = 0; i < text.texts.size(); ++i) {
    if (const auto fault = text_fault(text.texts[i], text.tokenizer)) {
      input.fail("file", file + ": line " + std::to_string(i + 1) + ": " + *fault);
    }
  }
}

/// `text`: one string, or an array of strings.
std::vector<std::string> read_texts(const ObjectReader& input, Tokenizer tokenizer) {
  const nlohmann::json& value = *input.find("text");
  if (!value.is_string() && !value.is_array()) {
    std::string advice;
    if (input.source().is_set(input.pointer("text")))
      advice = "; a text that looks like JSON needs double quotes of its own";
    input.fail("text", "must be a string or an array of strings, got " + describe(value) + advice);
  }
  if (value.is_array() && value.empty()) input.fail("text", "must have at least one string, got an empty array");
  std::vector<std::string> texts;
  const std::size_t count = value.is_array() ? value.size() : 1;
  for (std::size_t i = 0; i < count; ++i) {
    const nlohmann::json& item = value.is_array() ? value[i] : value;
    const std::string pointer = input.pointer("text") + (value.is_array() ? "/" + std::to_string(i) : "");
    if (!item.is_string())
      throw ConfigError(input.source().where(pointer) + ": must be a string, got " + describe(item));
    texts.push_back(item.get<std::string>());
    if (const auto fault = text_fault(texts.back(), tokenizer)) {
      throw ConfigError(input.source().where(pointer) + ": " + *fault);
    }
  }
  return texts;
}

InputFacts read_text(const ObjectReader& input) {
  TextInput text;
  text.tokenizer = input.word("tokenizer", kTokenizerWords).value_or(Tokenizer::kBytes);
  text.file = input.path("file");
  if (text.file.has_value() == input.has("text")) {
    input.fail(input.has("text") ? "file" : "text",
               input.has("text") ? "must be left out when text is given" : "missing; a text input needs text or file");
  }
  if (text.file) {
    text.texts = read_lines(input, *text.file);
    check_file_texts(input, text);
  } else {
    text.texts = read_texts(input, text.tokenizer);
  }

  const Tokens tokens = tokenize(text);
  InputFacts facts;
  facts.name = "text input";
  set_sizes(facts, tokens.ids);
  facts.default_vocab_size = tokens.vocab_size;
  facts.largest_id = 0;
  for (const auto& ids : tokens.ids)
    facts.largest_id = std::max(*facts.largest_id, *std::max_element(ids.begin(), ids.end()));
  facts.input = std::move(text);
  return facts;
}

/// `ids`: an array of arrays of integers, none empty.
InputFacts read_tokens(const ObjectReader& input) {
  const nlohmann::json* value = input.find("ids");
  if (value == nullptr) input.fail("ids", "missing; a tokens input needs an array of arrays of token ids");
  if (!value->is_array() || value->empty()) {
    input.fail("ids", "must be an array of arrays of token ids, got " +
                          (value->is_array() ? std::string("an empty array") : describe(*value)));
  }
  InputFacts facts;
  facts.name = "tokens input";
  TokensInput tokens;
  for (std::size_t b = 0; b < value->size(); ++b) {
    const nlohmann::json& item = (*value)[b];
    const std::string item_pointer = input.pointer("ids") + "/" + std::to_string(b);
    if (!item.is_array() || item.empty()) {
      throw ConfigError(input.source().where(item_pointer) + ": must be an array of token ids, got " +
                        (item.is_array() ? std::string("an empty array") : describe(item)));
    }
    std::vector<std::int64_t>& ids = tokens.ids.emplace_back();
    for (std::size_t t = 0; t < item.size(); ++t) {
      const std::string pointer = item_pointer + "/" + std::to_string(t);
      const auto id = as_integer(item[t], 0, kMaxSize - 1);
      if (!id) throw ConfigError(input.source().where(pointer) + ": " + not_an_integer(item[t], 0, kMaxSize - 1));
      ids.push_back(*id);
      if (!facts.largest_id || *id > *facts.largest_id) {
        facts.largest_id = *id;
        facts.largest_id_pointer = pointer;
      }
    }
  }
  set_sizes(facts, tokens.ids);
  facts.input = std::move(tokens);
  return facts;
}

InputFacts read_tensor(const ObjectReader& input) {
  TensorInput tensor;
  const auto path = input.path("file");
  if (!path) input.fail("file", "missing; a tensor input needs a .safetensors file");
  tensor.file = *path;
  const auto given_name = input.string("name");
  const SafetensorsFile file = load_tensors(input, "file", tensor.file);
  if (given_name) {
    tensor.name = *given_name;
  } else if (file.find(tensor.name) == nullptr && file.find(kSavedX) != nullptr) {
    tensor.name = kSavedX;  // a saved trace: experiment notes it
  }
  const SafetensorsEntry* entry = file.find(tensor.name);
  if (entry == nullptr) {
    std::vector<std::string> names;
    for (const SafetensorsEntry& known : file.entries()) names.push_back(printable(known.name));
    input.fail("name", "no tensor " + in_quotes(tensor.name) + " in " + printable(tensor.file.string()) + "; it has " +
                           (names.empty() ? std::string("none") : join_first(names)));
  }
  const std::vector<std::string> float_types{"F16", "BF16", "F32", "F64"};
  if (std::find(float_types.begin(), float_types.end(), entry->dtype) == float_types.end()) {
    input.fail("name", "tensor " + in_quotes(tensor.name) + " must have a dtype of " + join(float_types) + ", got " +
                           printable(entry->dtype));
  }
  const bool sizes_fit = std::all_of(entry->shape.begin(), entry->shape.end(),
                                     [](std::int64_t size) { return size >= 1 && size <= kMaxSize; });
  if (entry->shape.size() != 3 || !sizes_fit) {
    input.fail("name", "tensor " + in_quotes(tensor.name) +
                           " must have the shape (B, T, d_model), each size from 1 to " + std::to_string(kMaxSize) +
                           ", got " + format_shape(entry->shape));
  }
  InputFacts facts;
  facts.name = "tensor input";
  facts.B = entry->shape[0];
  facts.T = entry->shape[1];
  facts.d_model = entry->shape[2];
  facts.input = std::move(tensor);
  return facts;
}

}  // namespace

SafetensorsFile load_tensors(const ObjectReader& object, std::string_view key, const std::filesystem::path& path) {
  try {
    return SafetensorsFile::load(path);
  } catch (const IoError& error) {
    throw IoError(object.where(key) + ": " + error.what());
  }
}

InputFacts read_input(const ObjectReader& config) {
  const std::optional<ObjectReader> input = config.object("input");
  if (!input) return {};
  const auto kind = input->word("kind", kInputKindWords);
  if (!kind) input->fail("kind", "missing; known: " + join(all_words(kInputKindWords)));
  input->refuse_unknown_keys("key of a " + word_of(kInputKindWords, *kind) + " input", input_keys(*kind));
  switch (*kind) {
    case InputKind::kRandom:
      break;
    case InputKind::kTensor:
      return read_tensor(*input);
    case InputKind::kText:
      return read_text(*input);
    case InputKind::kTokens:
      return read_tokens(*input);
  }
  return {};
}

}  // namespace attn
