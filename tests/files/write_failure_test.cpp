// What is left when a write fails: the old file, no temporary one, and one line that says why.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <csignal>
#include <functional>

#include <gtest/gtest.h>

#include "core/error.h"
#include "files/files_test_support.h"
#include "files/whole_file.h"

namespace attn {
namespace {

namespace fs = std::filesystem;
using test::become_nobody;
using test::contents;
using test::in_another_process;
using test::put;
using test::TemporaryFolder;

std::string write_error(const fs::path& path, std::string_view bytes = "x") {
  return test::error_of<IoError>([&] { write_whole_file(path, bytes); });
}

TEST(WriteFailure, AFullDeviceIsSaid) {
  EXPECT_EQ(write_error("/dev/full"), "/dev/full: cannot be written: No space left on device");
}

TEST(WriteFailure, APathThatIsNoFileNameIsSaid) {
  const TemporaryFolder folder;
  EXPECT_EQ(write_error(""), "\"\": the path is empty, expected a file name");
  EXPECT_EQ(write_error(".."), "..: is a folder, expected a file");
  EXPECT_EQ(write_error(folder.path()), folder.path().string() + ": is a folder, expected a file");
  EXPECT_EQ(write_error(folder.path("new/")), folder.path("new/").string() + ": ends in a slash, expected a file name");
  EXPECT_EQ(write_error(std::string("a\0b", 3)), "a\\x00b: has a zero byte in it, expected a file name");
  EXPECT_EQ(folder.entries(), 0);
}

TEST(WriteFailure, AMissingFolderIsNamedAndNotMade) {
  const TemporaryFolder folder;
  EXPECT_EQ(write_error(folder.path("missing/file")), folder.path("missing/file").string() + ": the folder " +
                                                          folder.path("missing").string() + " does not exist");
  EXPECT_FALSE(fs::exists(folder.path("missing")));
}

TEST(WriteFailure, AFileWhereAFolderIsNeededIsSaid) {
  const TemporaryFolder folder;
  put(folder.path("file"), "old");
  EXPECT_EQ(write_error(folder.path("file/below")),
            folder.path("file/below").string() + ": cannot be written: Not a directory");
  EXPECT_EQ(contents(folder.path("file")), "old");
}

TEST(WriteFailure, ANameThatIsTooLongIsSaid) {
  const TemporaryFolder folder;
  const fs::path path = folder.path(std::string(300, 'n'));
  EXPECT_EQ(write_error(path), path.string() + ": cannot be written: File name too long");
}

TEST(WriteFailure, LinksInACircleAreSaid) {
  const TemporaryFolder folder;
  fs::create_symlink("b", folder.path("a"));
  fs::create_symlink("a", folder.path("b"));
  EXPECT_EQ(write_error(folder.path("a")),
            folder.path("a").string() + ": cannot be written: Too many levels of symbolic links");
}

TEST(WriteFailure, AFolderWithoutPermissionIsSaid) {
  const TemporaryFolder folder;
  fs::permissions(folder.path(), fs::perms(0555));
  const std::string expected = folder.path("file").string() + ": cannot make a file in the folder " +
                               folder.path().string() + ": Permission denied";
  EXPECT_EQ(in_another_process([&] { return become_nobody() && write_error(folder.path("file")) == expected ? 0 : 1; }),
            0);
  EXPECT_EQ(folder.entries(), 0);
}

TEST(WriteFailure, AFileThatMayNotBeWrittenIsKept) {
  const TemporaryFolder folder;
  put(folder.path("file"), "old");
  fs::permissions(folder.path("file"), fs::perms(0444));
  fs::permissions(folder.path(), fs::perms(0777));  // a rename alone would succeed
  const std::string expected = folder.path("file").string() + ": cannot be written: Permission denied";
  EXPECT_EQ(in_another_process([&] { return become_nobody() && write_error(folder.path("file")) == expected ? 0 : 1; }),
            0);
  EXPECT_EQ(contents(folder.path("file")), "old");
}

TEST(WriteFailure, AFolderThatMayNotBeWrittenIsNoWritableFolder) {
  const TemporaryFolder folder;
  fs::permissions(folder.path(), fs::perms(0555));
  const auto error = [](const fs::path& path) { return test::error_of<IoError>([&] { make_writable_folder(path); }); };
  const std::string name = folder.path().string();
  EXPECT_EQ(in_another_process([&] {
              if (!become_nobody()) return 1;
              if (error(name) != name + ": cannot make a file in the folder " + name + ": Permission denied") return 2;
              return error(name + "/new") == name + "/new: cannot be made: Permission denied" ? 0 : 3;
            }),
            0);
}

// A limit on the size of files stops a write half way, as a full disk does.
TEST(WriteFailure, AWriteThatStopsHalfWayKeepsTheOldFile) {
  const TemporaryFolder folder;
  put(folder.path("file"), "old");
  const int status = in_another_process([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {100'000, 100'000};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    const std::string message = write_error(folder.path("file"), std::string(300'000, 'x'));
    return message == folder.path("file").string() + ": cannot be written: File too large" ? 0 : 2;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(contents(folder.path("file")), "old");
  EXPECT_EQ(folder.entries(), 1);
}

TEST(WriteFailure, AWriteThatStopsHalfWayMakesNoNewFile) {
  const TemporaryFolder folder;
  const int status = in_another_process([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {100'000, 100'000};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    return write_error(folder.path("file"), std::string(300'000, 'x')) == "(nothing thrown)" ? 2 : 0;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(folder.entries(), 0);
}

TEST(WriteFailure, NoDescriptorLeftIsSaid) {
  const TemporaryFolder folder;
  const int status = in_another_process([&] {
    const rlimit limit = {3, 3};
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return 1;
    return write_error(folder.path("file")).ends_with("Too many open files") ? 0 : 2;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(folder.entries(), 0);
}

TEST(WriteFailure, AFileThatStandardOutputGoesToIsNotLost) {
  const TemporaryFolder folder;
  const int status = in_another_process([&] {
    const int out = open(folder.path("out").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (dup2(out, STDOUT_FILENO) < 0 || write(STDOUT_FILENO, "before ", 7) != 7) return 1;
    write_whole_file("/dev/stdout", "by device ");
    write_whole_file(folder.path("out"), "by name ");
    return write(STDOUT_FILENO, "after", 5) == 5 ? 0 : 2;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(contents(folder.path("out")), "before by device by name after");
}

}  // namespace
}  // namespace attn
