// What the translations of the several kinds of model share: a model's keys come in, ours go out, and it is kept in
// mind which were looked at and where each value came from. Private to this room.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "config/models/model_config.h"

namespace attn {

class ModelReader {
 public:
  /// Looks at `root`, its source and `given_keys` without owning them.
  ModelReader(const nlohmann::json& root, const ConfigSource& source, std::string model_type,
              std::optional<std::int64_t> layer, const std::set<std::string>& given_keys);

  /// The value at the one of these keys, names of the same, that the file has, null included; else the model's default.
  /// Marks them as read. Files leave out what is as their model has it by default. Refused where two of them differ,
  /// unless the command line gave `our_key` instead.
  nlohmann::json value(std::initializer_list<const char*> keys, const nlohmann::json& model_default,
                       const std::string& our_key = "");

  /// The same, and it must be of this type. Throws ConfigError at the file's key. Null is absent.
  std::optional<std::int64_t> integer(std::initializer_list<const char*> keys,
                                      std::optional<std::int64_t> model_default, std::int64_t min = 0);
  std::optional<double> number(const char* key, std::optional<double> model_default);
  bool flag(const char* key, bool model_default);

  /// Our key gets what value() gives, unless that is null: then a line says what holds instead, "is H", and why.
  void take(const char* our_key, std::initializer_list<const char*> keys, const nlohmann::json& model_default,
            const std::string& where_null = "null");

  /// "from /n_embd", or "by gpt2's default, the file has no /n_embd" (the first of the names, where it has none).
  /// Two names that differ are refused as in value().
  std::string origin(std::initializer_list<const char*> keys, const std::string& our_key = "");

  /// Our key gets a value; `reason` says where it is from: "from /sliding_window", "as every bert layer has it".
  void set(const std::string& our_key, const nlohmann::json& value, const std::string& reason,
           const std::string& file_pointer = "");
  void set_as_every_layer(const std::string& our_key, const nlohmann::json& value);

  /// A line about our key where it gets no value: "H_kv is H as ...". Left out where the command line gives the key.
  void explain(const std::string& our_key, const std::string& line);

  /// A line among the origins that is about no key, so begins with none: a run prints it too, not only `config`.
  void remark(const std::string& line) { origins_.emplace_back("", line); }

  /// Refuses the file's key, unless the command line gave `our_key`, or what it is in, instead.
  void refuse(const std::string& file_pointer, const std::string& reason, const std::string& our_key = "") const;

  /// These keys are known; they are looked at elsewhere, or say nothing that counts here.
  void pass_over(std::initializer_list<const char*> keys);

  /// Whether layers differ: as `layer_types` says, where the file has them, else as given.
  bool types_differ(bool otherwise) const;

  /// The layer that is read, below the number of layers in the file. Says in the origins where layers differ.
  std::int64_t layer_of(std::initializer_list<const char*> keys, std::int64_t model_default, bool layers_differ);

  bool has(const char* key) const;                  ///< and it is not null.
  bool is_given(const std::string& our_key) const;  ///< on the command line: the key, or what it is in.
  const std::string& model_type() const { return model_type_; }
  const ObjectReader& file() const { return file_; }
  const nlohmann::json& root() const { return *root_; }

  /// "32, the default of qwen2, as the file has no /num_key_value_heads": where errors have the place in the file.
  std::string default_words(const nlohmann::json& value, const std::string& key) const;

  /// Refuses what is left and sounds of attention; names the rest. Every key of the file is then in one of the lines.
  ModelConfig finish();

 private:
  struct Origin {
    std::string our_key;  ///< empty: of no key.
    std::string line;
    Origin(std::string key, std::string text) : our_key(std::move(key)), line(std::move(text)) {}
  };

  /// The first of these keys that has a value in the file, or is there at all; null: none is.
  const char* find_key(std::initializer_list<const char*> keys, const std::string& our_key);
  /// The key stands in a line, by its place in the file: "/rope_scaling/factor" for rope_scaling.
  void mark_named(const std::string& file_pointer);
  void note_dtype();
  void note_longest();
  void refuse_what_is_not_read(const std::string& key, const nlohmann::json& value) const;
  bool is_off_anyway(const std::string& key, const nlohmann::json& value) const;

  const nlohmann::json* root_;
  ObjectReader file_;
  std::string model_type_;
  std::optional<std::int64_t> layer_;
  const std::set<std::string>* given_keys_;
  std::set<std::string> read_;
  std::set<std::string> named_;
  std::vector<Origin> origins_;
  ModelConfig result_;
};

}  // namespace attn
