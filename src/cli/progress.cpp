#include "cli/progress.h"

#include <ostream>
#include <utility>

namespace attn {
namespace {

constexpr const char* kWipeLine = "\r\x1b[K";

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
    err_ << kWipeLine << "attn-cli: " << what_ << ", " << seconds.count() << " s" << std::flush;
  } while (!stopped_changed_.wait_for(lock, std::chrono::seconds(1), [this] { return stopped_; }));
  err_ << kWipeLine << std::flush;
}

}  // namespace attn
