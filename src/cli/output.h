// Where results leave the program: checked, whole or not at all.
#pragma once

#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "cli/command_line.h"

namespace attn {

/// Writes and flushes. Throws IoError "standard output: ..." when the bytes did not all arrive, and ClosedPipe when
/// the reader has gone, which is no news to anyone.
void write_standard_output(std::ostream& out, const std::string& text);

/// The reader of standard output has gone (`attn-cli trace ... | head -1`). Ends the program quietly, status 3.
struct ClosedPipe {};

/// Throws IoError when a file surely could not be written there, before any work is done for it. "-" is fine.
void check_output_file(const std::optional<std::string>& path);

/// `--json`: nothing, into a file, or ("-") to standard output in place of the text. The document is made only when it
/// is asked for. Returns true when the text is still wanted.
bool write_json(const std::optional<std::string>& path, const std::function<std::string()>& make_json,
                Streams& streams);

/// `attn-cli: note: ...`, a line each.
void write_notes(std::ostream& err, const std::vector<std::string>& notes);

}  // namespace attn
