#include "files/whole_file.h"

#include <sys/stat.h>

#include <sstream>
#include <thread>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/error.h"
#include "files/files_test_support.h"

namespace attn {
namespace {

namespace fs = std::filesystem;
using test::contents;
using test::put;
using test::TemporaryFolder;

std::string read_error(const fs::path& path, std::uint64_t max_bytes = 1000) {
  return test::error_of<IoError>([&] { read_whole_file(path, max_bytes); });
}

mode_t mode_of(const fs::path& path) {
  struct stat status = {};
  EXPECT_EQ(stat(path.c_str(), &status), 0);
  return status.st_mode & 0777;
}

RC_GTEST_PROP(WholeFile, IsReadAsItWasWritten, (const std::string& bytes)) {
  static const TemporaryFolder folder;
  write_whole_file(folder.path("file"), bytes);
  RC_ASSERT(contents(folder.path("file")) == bytes);
  RC_ASSERT(read_whole_file(folder.path("file"), bytes.size()) == bytes);
  RC_ASSERT(folder.entries() == 1);  // no temporary file is left
}

TEST(WholeFile, MayBeLargerThanAnyBuffer) {
  const TemporaryFolder folder;
  std::string bytes((std::size_t{5} << 20) + 17, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7 + i / 251);
  write_whole_file(folder.path("file"), bytes);
  EXPECT_TRUE(read_whole_file(folder.path("file"), bytes.size()) == bytes);
}

TEST(ReadWholeFile, NamesWhatIsMissing) {
  EXPECT_EQ(read_error("no/such/file"), "no/such/file: cannot be read: No such file or directory");
}

TEST(ReadWholeFile, RefusesAFolder) {
  const TemporaryFolder folder;
  EXPECT_EQ(read_error(folder.path()), folder.path().string() + ": is a folder, expected a file");
  EXPECT_EQ(read_error(".."), "..: is a folder, expected a file");
}

TEST(ReadWholeFile, RefusesAPathThatCannotBe) {
  EXPECT_EQ(read_error(""), "\"\": the path is empty, expected a file name");
  EXPECT_EQ(read_error(std::string("a\0b", 3)), "a\\x00b: has a zero byte in it, expected a file name");
}

TEST(ReadWholeFile, EscapesTheNameInItsErrors) {
  EXPECT_EQ(read_error("a\nb"), "a\\nb: cannot be read: No such file or directory");
}

TEST(ReadWholeFile, RefusesWhatMayNotBeRead) {
  const TemporaryFolder folder;
  put(folder.path("secret"), "x");
  fs::permissions(folder.path("secret"), fs::perms::none);
  fs::permissions(folder.path(), fs::perms(0755));
  const std::string expected = folder.path("secret").string() + ": cannot be read: Permission denied";
  EXPECT_EQ(test::in_another_process(
                [&] { return test::become_nobody() && read_error(folder.path("secret")) == expected ? 0 : 1; }),
            0);
}

TEST(ReadWholeFile, TakesAsManyBytesAsAllowedAndNoMore) {
  const TemporaryFolder folder;
  put(folder.path("file"), "12345");
  EXPECT_EQ(read_whole_file(folder.path("file"), 5), "12345");
  EXPECT_EQ(read_error(folder.path("file"), 4),
            folder.path("file").string() + ": is larger than 4 B, the most that is read");
}

TEST(ReadWholeFile, StopsAtTheLimitWhereTheSizeIsNotKnownBefore) {
  const TemporaryFolder folder;
  ASSERT_EQ(mkfifo(folder.path("pipe").c_str(), 0600), 0);
  std::thread writer([&] { put(folder.path("pipe"), "12345"); });
  EXPECT_EQ(read_error(folder.path("pipe"), 4),
            folder.path("pipe").string() + ": is larger than 4 B, the most that is read");
  writer.join();
}

TEST(ReadWholeFile, ReadsAPipeToItsEnd) {
  const TemporaryFolder folder;
  ASSERT_EQ(mkfifo(folder.path("pipe").c_str(), 0600), 0);
  std::thread writer([&] { put(folder.path("pipe"), "through the pipe"); });
  EXPECT_EQ(read_whole_file(folder.path("pipe"), 100), "through the pipe");
  writer.join();
}

TEST(ReadWholeStream, ReadsToTheEnd) {
  std::istringstream in(std::string(3'000'000, 'x') + "end");
  EXPECT_EQ(read_whole_stream(in, "standard input", 4'000'000), std::string(3'000'000, 'x') + "end");
  std::istringstream empty;
  EXPECT_EQ(read_whole_stream(empty, "standard input", 10), "");
}

TEST(ReadWholeStream, RefusesTooMuch) {
  std::istringstream in("12345");
  EXPECT_EQ(test::error_of<IoError>([&] { read_whole_stream(in, "standard input", 4); }),
            "standard input: is larger than 4 B, the most that is read");
}

TEST(ReadWholeStream, SaysThatItCannotBeRead) {
  std::istringstream in("12345");
  in.setstate(std::ios::badbit);
  EXPECT_EQ(test::error_of<IoError>([&] { read_whole_stream(in, "standard input", 10); }),
            "standard input: cannot be read");
  std::ifstream missing("no/such/file");
  EXPECT_EQ(test::error_of<IoError>([&] { read_whole_stream(missing, "standard input", 10); }),
            "standard input: cannot be read");
}

TEST(WriteWholeFile, ReplacesWhatWasThere) {
  const TemporaryFolder folder;
  put(folder.path("file"), "something old and longer");
  write_whole_file(folder.path("file"), "new");
  EXPECT_EQ(contents(folder.path("file")), "new");
}

TEST(WriteWholeFile, WritesInTheWorkingFolder) {
  const TemporaryFolder folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  write_whole_file("file", "here");
  fs::current_path(before);
  EXPECT_EQ(contents(folder.path("file")), "here");
  EXPECT_EQ(folder.entries(), 1);
}

TEST(WriteWholeFile, NeverChangesAFileThatSomebodyHasOpen) {
  const TemporaryFolder folder;
  put(folder.path("file"), "old");
  std::ifstream reader(folder.path("file"));
  write_whole_file(folder.path("file"), "new");
  std::string seen;
  reader >> seen;
  EXPECT_EQ(seen, "old");
}

TEST(WriteWholeFile, ANewFileFollowsTheUmask) {
  const TemporaryFolder folder;
  const mode_t before = umask(027);
  write_whole_file(folder.path("file"), "x");
  umask(before);
  EXPECT_EQ(mode_of(folder.path("file")), 0640u);
}

TEST(WriteWholeFile, AReplacedFileKeepsItsPermissions) {
  const TemporaryFolder folder;
  put(folder.path("file"), "old");
  fs::permissions(folder.path("file"), fs::perms(0604));
  write_whole_file(folder.path("file"), "new");
  EXPECT_EQ(mode_of(folder.path("file")), 0604u);
}

TEST(WriteWholeFile, FollowsALinkInsteadOfReplacingIt) {
  const TemporaryFolder folder;
  fs::create_directory(folder.path("elsewhere"));
  put(folder.path("elsewhere/file"), "old");
  fs::create_symlink("elsewhere/file", folder.path("link"));
  fs::create_symlink(folder.path("link"), folder.path("link-to-link"));
  write_whole_file(folder.path("link-to-link"), "new");
  EXPECT_TRUE(fs::is_symlink(folder.path("link")));
  EXPECT_TRUE(fs::is_symlink(folder.path("link-to-link")));
  EXPECT_EQ(contents(folder.path("elsewhere/file")), "new");
}

TEST(WriteWholeFile, MakesTheFileThatALinkPromises) {
  const TemporaryFolder folder;
  fs::create_symlink("not-yet", folder.path("link"));
  write_whole_file(folder.path("link"), "new");
  EXPECT_TRUE(fs::is_symlink(folder.path("link")));
  EXPECT_EQ(contents(folder.path("not-yet")), "new");
}

TEST(WriteWholeFile, WritesIntoAPipe) {
  const TemporaryFolder folder;
  ASSERT_EQ(mkfifo(folder.path("pipe").c_str(), 0600), 0);
  std::string seen;
  std::thread reader([&] { seen = contents(folder.path("pipe")); });
  write_whole_file(folder.path("pipe"), "through the pipe");
  reader.join();
  EXPECT_EQ(seen, "through the pipe");
  EXPECT_TRUE(fs::is_fifo(folder.path("pipe")));
}

TEST(WriteWholeFile, WritesToADevice) {
  write_whole_file("/dev/null", "gone");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST(WriteWholeFile, SeveralThreadsMayWriteAtOnce) {
  const TemporaryFolder folder;
  std::vector<std::thread> writers;
  for (int i = 0; i < 8; ++i) {
    writers.emplace_back([&folder, i] {
      for (int k = 0; k < 20; ++k) write_whole_file(folder.path("file" + std::to_string(i)), std::to_string(k));
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(folder.entries(), 8);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(contents(folder.path("file" + std::to_string(i))), "19");
}

TEST(MakeWritableFolder, MakesThoseAboveAsWell) {
  const TemporaryFolder folder;
  make_writable_folder(folder.path("a/b/c"));
  make_writable_folder(folder.path("a/b/c/"));
  EXPECT_TRUE(fs::is_directory(folder.path("a/b/c")));
  EXPECT_TRUE(fs::is_empty(folder.path("a/b/c")));  // the proof that a file can be made is gone
}

TEST(MakeWritableFolder, LeavesWhatIsInIt) {
  const TemporaryFolder folder;
  put(folder.path("mine"), "kept");
  make_writable_folder(folder.path());
  EXPECT_EQ(contents(folder.path("mine")), "kept");
  EXPECT_EQ(folder.entries(), 1);
}

TEST(MakeWritableFolder, NamesTheFileInTheWay) {
  const TemporaryFolder folder;
  const std::string file = folder.path("file").string();
  put(file, "x");
  const auto error = [](const fs::path& path) { return test::error_of<IoError>([&] { make_writable_folder(path); }); };
  EXPECT_EQ(error(file), file + ": " + file + " is a file, expected a folder");
  EXPECT_EQ(error(file + "/below/it"), file + "/below/it: " + file + " is a file, expected a folder");
  EXPECT_EQ(error(""), "\"\": the path is empty, expected a folder");
}

TEST(MakeWritableFolder, RefusesWhereNoFileCanBeMade) {
  // /proc lets nobody make a file, root included.
  if (!fs::is_directory("/proc/self")) GTEST_SKIP() << "no /proc here";
  const std::string message = test::error_of<IoError>([] { make_writable_folder("/proc/self"); });
  EXPECT_TRUE(message.starts_with("/proc/self: ")) << message;
  EXPECT_NE(test::error_of<IoError>([] { make_writable_folder("/proc/self/below"); }), "(nothing thrown)");
}

}  // namespace
}  // namespace attn
