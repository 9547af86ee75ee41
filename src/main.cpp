#include <unistd.h>

#include <csignal>
#include <iostream>

#include "cli/run.h"
#include "files/whole_file.h"

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader that has gone is then a write that fails: seen, and status 3.
  std::signal(SIGXFSZ, SIG_IGN);  // so is a file beyond the shell's size limit.
  attn::remove_temporary_files_on_interrupt();
  const int status = attn::run(argc, argv, std::cin, std::cout, std::cerr);
  std::cout.flush();
  std::cerr.flush();
  ::_exit(status);  // every file is written and closed; taking LibTorch down properly costs a seventh of a short run.
}
