#include "cli/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdint>
#include <ostream>
#include <utility>

#include "core/text.h"

namespace attn {
namespace {

constexpr const char* kWipeLine = "\r\x1b[K";
constexpr std::size_t kUsualColumns = 80;

/// Columns of the terminal. A longer line would be broken by it, and only its last part wiped.
std::size_t terminal_columns() {
  struct winsize size = {};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kUsualColumns;
}

/// "attn-cli: check causality (5 of 13), 4 s", of which the middle is cut where the terminal is narrow.
std::string progress_line(const std::string& what, std::int64_t seconds) {
  const std::string name = "attn-cli: ";
  const std::string time = ", " + std::to_string(seconds) + " s";
  const std::size_t columns = terminal_columns();
  const std::size_t taken = name.size() + time.size() + 1;  // the cursor stands behind the line
  return name + shortened(what, columns > taken ? columns - taken : 0) + time;
}

}  // namespace

Progress::Progress(std::ostream& err, bool is_terminal, std::string what, std::chrono::milliseconds patience)
    : err_(err), what_(std::move(what)) {
  if (is_terminal) thread_ = std::thread([this, patience] { show_until_stopped(patience); });
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  stopped_changed_.notify_all();
  thread_.join();
}

void Progress::set(std::string what) {
  const std::lock_guard lock(mutex_);
  what_ = std::move(what);
}

void Progress::show_until_stopped(std::chrono::milliseconds patience) {
  const auto start = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  if (stopped_changed_.wait_for(lock, patience, [this] { return stopped_; })) return;
  do {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - start);
    err_ << kWipeLine << progress_line(what_, seconds.count()) << std::flush;
  } while (!stopped_changed_.wait_for(lock, std::chrono::seconds(1), [this] { return stopped_; }));
  err_ << kWipeLine << std::flush;
}

}  // namespace attn
