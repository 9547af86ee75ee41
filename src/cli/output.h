// Where results leave the program: checked, whole or not at all.
#pragma once

#include <filesystem>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "config/run_config.h"

namespace attn {

/// Writes and flushes. Throws IoError "standard output: ..." when the bytes did not all arrive, and ClosedPipe when
/// the reader has gone, which is no news to anyone.
void write_standard_output(std::ostream& out, const std::string& text);

/// The reader of standard output has gone (`attn-cli trace ... | head -1`). Ends the program quietly, status 3.
struct ClosedPipe {};

/// Throws IoError when a file surely could not be written there, before any work is done for it. "-" is fine.
void check_output_file(const std::optional<std::string>& path);

/// A file that a command is to write.
struct OutputFile {
  std::string option;  ///< "--json"
  std::filesystem::path path;
};

/// Throws ConfigError when a file to be written is one of those that are read, or another one to be written, whatever
/// the names that lead to it. "-", pipes and devices are fine.
void refuse_overwriting(const std::vector<OutputFile>& outputs, const std::vector<std::filesystem::path>& inputs);

/// The files that a run reads: the config itself, its weights, its input.
std::vector<std::filesystem::path> files_read(const RunConfig& config);

/// `--json`, `--junit`: nothing, into a file, or ("-") to standard output in place of the text. The document is made
/// only when it is asked for. Returns true when the text is still wanted.
bool write_record(const std::optional<std::string>& path, const std::function<std::string()>& make_text,
                  Streams& streams);

/// `attn-cli: note: ...`, a line each; behind "note: " stands `where`, when it is not empty.
void write_notes(std::ostream& err, const std::vector<std::string>& notes, const std::string& where = "");

}  // namespace attn
