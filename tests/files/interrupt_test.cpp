// Ctrl-C while a file is being written: the temporary file goes, then the signal ends the program.
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>

#include <csignal>
#include <thread>

#include <gtest/gtest.h>

#include "files/files_test_support.h"
#include "files/temporary_files.h"
#include "files/whole_file.h"

namespace attn {
namespace {

using test::put;
using test::TemporaryFolder;

// A child that holds a registered temporary file and waits, as one does that is stopped in the middle of a write.
class InterruptedProgram {
 public:
  explicit InterruptedProgram(const std::string& temporary, bool ignores_interrupt = false) {
    int ready[2];
    if (pipe(ready) != 0) throw std::runtime_error("no pipe");
    child_ = fork();
    if (child_ == 0) {
      std::signal(SIGINT, ignores_interrupt ? SIG_IGN : SIG_DFL);
      std::signal(SIGTERM, SIG_DFL);
      remove_temporary_files_on_interrupt();
      const RegisteredTemporary registered(temporary);
      put(temporary, "half of it");
      if (write(ready[1], "r", 1) != 1) _exit(98);
      poll(nullptr, 0, ignores_interrupt ? 300 : 20'000);
      _exit(97);
    }
    char byte = 0;
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
  }

  /// The status as waitpid() gives it.
  int status_after(int signal_number) const {
    kill(child_, signal_number);
    int status = 0;
    EXPECT_EQ(waitpid(child_, &status, 0), child_);
    return status;
  }

 private:
  pid_t child_ = -1;
};

TEST(Interrupt, RemovesTheTemporaryFileAndEndsByTheSameSignal) {
  for (const int signal_number : {SIGINT, SIGTERM}) {
    const TemporaryFolder folder;
    const InterruptedProgram program(folder.path("half").string());
    ASSERT_TRUE(std::filesystem::exists(folder.path("half")));
    const int status = program.status_after(signal_number);
    ASSERT_TRUE(WIFSIGNALED(status)) << status;
    EXPECT_EQ(WTERMSIG(status), signal_number);
    EXPECT_EQ(folder.entries(), 0);
  }
}

TEST(Interrupt, StaysIgnoredWhereItWasIgnored) {
  const TemporaryFolder folder;
  const InterruptedProgram program(folder.path("half").string(), true);
  const int status = program.status_after(SIGINT);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 97);
}

// The whole way, at whatever moment the signal comes: the target is old or new, and nothing else is there.
TEST(Interrupt, AtAnyMomentLeavesAWholeFileAndNoOther) {
  for (int round = 0; round < 30; ++round) {
    const TemporaryFolder folder;
    const std::string old_bytes(10, 'o');
    const std::string new_bytes(200'000, 'n');
    put(folder.path("file"), old_bytes);
    const pid_t child = fork();
    if (child == 0) {
      std::signal(SIGINT, SIG_DFL);
      remove_temporary_files_on_interrupt();
      while (true) write_whole_file(folder.path("file"), new_bytes);
    }
    poll(nullptr, 0, 3 + round % 10);
    kill(child, SIGINT);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) << status;
    const std::string seen = test::contents(folder.path("file"));
    EXPECT_TRUE(seen == old_bytes || seen == new_bytes) << seen.size();
    EXPECT_EQ(folder.entries(), 1);
  }
}

}  // namespace
}  // namespace attn
