#include "cli/output.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <streambuf>

#include "core/error.h"

namespace attn {
namespace {

/// A stream that takes a few bytes and then fails as a system call would.
class FailingBuffer : public std::streambuf {
 public:
  FailingBuffer(int room, int error) : room_(room), error_(error) {}

 protected:
  int_type overflow(int_type letter) override {
    if (room_-- > 0) return letter;
    errno = error_;
    return traits_type::eof();
  }

 private:
  int room_;
  int error_;
};

std::filesystem::path fresh_folder() {
  std::string name = (std::filesystem::temp_directory_path() / "attn_output_XXXXXX").string();
  EXPECT_NE(::mkdtemp(name.data()), nullptr);
  return name;
}

std::string refusal(const std::string& path) {
  try {
    check_output_file(path);
  } catch (const IoError& error) {
    return error.what();
  }
  return "(accepted)";
}

TEST(Outputs, TakeNoPlaceOfWhatIsReadOrOfEachOther) {
  const std::filesystem::path folder = fresh_folder();
  const std::filesystem::path config = folder / "a.json";
  std::ofstream(config) << "{}";
  std::filesystem::create_symlink("a.json", folder / "link.json");
  const auto refused = [](const std::vector<OutputFile>& outputs, const std::vector<std::filesystem::path>& inputs) {
    try {
      refuse_overwriting(outputs, inputs);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("(accepted)");
  };
  for (const std::filesystem::path& name : {config, folder / "." / "a.json", folder / "link.json"}) {
    EXPECT_EQ(refused({{"--json", name}}, {config}),
              "option --json: " + name.string() + " is read by this run, expected another file");
  }
  EXPECT_EQ(refused({{"--json", folder / "new"}, {"--junit", folder / "." / "new"}}, {config}),
            "option --junit: " + (folder / "." / "new").string() + " is written by --json too, expected another file");
  EXPECT_EQ(refused({{"--json", folder / "new"}, {"--junit", folder / "other"}}, {config, "-"}), "(accepted)");
  EXPECT_EQ(refused({{"--json", "/dev/null"}, {"--junit", "/dev/null"}, {"--json", "-"}}, {"-"}), "(accepted)");
  std::filesystem::remove_all(folder);
}

TEST(StandardOutput, ThatIsFullIsAnError) {
  FailingBuffer buffer(3, ENOSPC);
  std::ostream out(&buffer);
  try {
    write_standard_output(out, "longer than three");
    FAIL() << "no error";
  } catch (const IoError& error) {
    EXPECT_STREQ(error.what(), "standard output: could not be written: No space left on device");
  }
}

TEST(StandardOutput, ThatIsClosedIsNoNews) {
  FailingBuffer buffer(0, EPIPE);
  std::ostream out(&buffer);
  EXPECT_THROW(write_standard_output(out, "text"), ClosedPipe);
}

TEST(StandardOutput, GetsEveryByte) {
  std::ostringstream out;
  write_standard_output(out, std::string("a\0b", 3));
  EXPECT_EQ(out.str(), std::string("a\0b", 3));
}

TEST(OutputFile, IsRefusedBeforeTheWorkWhereItCannotBe) {
  const std::filesystem::path folder = fresh_folder();
  EXPECT_EQ(refusal(folder.string()), folder.string() + ": is a folder, expected a file");
  EXPECT_EQ(refusal((folder / "no" / "x.json").string()),
            (folder / "no" / "x.json").string() + ": its folder " + (folder / "no").string() + " does not exist");
  EXPECT_EQ(refusal((folder / "x.json").string()), "(accepted)");
  EXPECT_EQ(refusal("x.json"), "(accepted)");
  EXPECT_EQ(refusal("-"), "(accepted)");
  EXPECT_EQ(refusal("/dev/null"), "(accepted)");
  std::filesystem::remove_all(folder);
}

TEST(Json, GoesToAFileBesideTheTextOrToStandardOutputInItsPlace) {
  const std::filesystem::path folder = fresh_folder();
  const std::string file = (folder / "x.json").string();
  std::istringstream in;
  std::ostringstream out, err;
  Streams streams{in, out, err};
  const auto make_json = [] { return std::string("{}\n"); };

  EXPECT_TRUE(write_record(std::nullopt, make_json, streams));
  EXPECT_TRUE(write_record(file, make_json, streams));
  EXPECT_EQ(out.str(), "");
  std::ostringstream written;
  written << std::ifstream(file).rdbuf();
  EXPECT_EQ(written.str(), "{}\n");

  EXPECT_FALSE(write_record("-", make_json, streams));
  EXPECT_EQ(out.str(), "{}\n");
  std::filesystem::remove_all(folder);
}

TEST(Notes, AreOneLineEach) {
  std::ostringstream err;
  write_notes(err, {"first", "second"});
  EXPECT_EQ(err.str(), "attn-cli: note: first\nattn-cli: note: second\n");
}

}  // namespace
}  // namespace attn
