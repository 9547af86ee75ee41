#include "cli/output.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <ostream>
#include <system_error>
#include <variant>

#include "core/error.h"
#include "core/text.h"
#include "files/whole_file.h"

namespace attn {

namespace {

/// Both names lead to one file, through links and dots too; also where it is not there yet.
bool is_one_file(const std::filesystem::path& one, const std::filesystem::path& other) {
  std::error_code error;
  if (std::filesystem::equivalent(one, other, error)) return true;
  const auto place = [&](const std::filesystem::path& path) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error);
  };
  const std::filesystem::path first = place(one);
  return !error && first == place(other) && !error;
}

/// A regular file, or none yet: what is written takes its place.
bool is_replaced(const std::filesystem::path& path) {
  std::error_code error;
  return path != "-" && (!std::filesystem::exists(path, error) || std::filesystem::is_regular_file(path, error));
}

}  // namespace

void write_standard_output(std::ostream& out, const std::string& text) {
  errno = 0;
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.flush();
  if (out) return;
  if (errno == EPIPE) throw ClosedPipe{};
  const std::string reason = errno == 0 ? "" : ": " + std::generic_category().message(errno);
  throw IoError("standard output: could not be written" + reason);
}

void check_output_file(const std::optional<std::string>& path) {
  if (!path || *path == "-") return;
  const std::filesystem::path file(*path);
  refuse_folder(file);
  std::error_code error;
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  if (!std::filesystem::is_directory(folder, error)) {
    throw IoError(printable(*path) + ": its folder " + printable(folder.string()) + " does not exist");
  }
  const bool exists = std::filesystem::exists(file, error);
  const bool regular = !exists || std::filesystem::is_regular_file(file, error);
  if (regular && ::access(folder.c_str(), W_OK) != 0) {
    throw IoError(printable(*path) + ": its folder " + printable(folder.string()) + " is not writable");
  }
}

void refuse_overwriting(const std::vector<OutputFile>& outputs, const std::vector<std::filesystem::path>& inputs) {
  for (std::size_t index = 0; index < outputs.size(); ++index) {
    const OutputFile& output = outputs[index];
    if (!is_replaced(output.path)) continue;
    for (const std::filesystem::path& input : inputs) {
      if (is_one_file(output.path, input)) {
        throw ConfigError("option " + output.option + ": " + printable(output.path.native()) +
                          " is read by this run, expected another file");
      }
    }
    for (std::size_t other = 0; other < index; ++other) {
      if (is_one_file(output.path, outputs[other].path)) {
        throw ConfigError("option " + output.option + ": " + printable(output.path.native()) + " is written by " +
                          outputs[other].option + " too, expected another file");
      }
    }
  }
}

std::vector<std::filesystem::path> files_read(const RunConfig& config) {
  std::vector<std::filesystem::path> files;
  if (config.source_name != "-" && config.source_name != "--set") files.emplace_back(config.source_name);
  if (config.weights) files.push_back(*config.weights);
  if (const auto* tensor = std::get_if<TensorInput>(&config.input)) files.push_back(tensor->file);
  if (const auto* text = std::get_if<TextInput>(&config.input); text != nullptr && text->file) {
    files.push_back(*text->file);
  }
  return files;
}

bool write_record(const std::optional<std::string>& path, const std::function<std::string()>& make_text,
                  Streams& streams) {
  if (!path) return true;
  if (*path == "-") {
    streams.out << make_text();
    return false;
  }
  write_whole_file(*path, make_text());
  return true;
}

void write_notes(std::ostream& err, const std::vector<std::string>& notes, const std::string& where) {
  for (const std::string& note : notes) {
    err << "attn-cli: note: " << (where.empty() ? "" : where + ": ") << note << '\n';
  }
}

}  // namespace attn
