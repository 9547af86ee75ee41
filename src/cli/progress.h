// A line on the terminal that says what is being done, for work that takes longer than anyone likes to wait in the
// dark.
#pragma once

#include <chrono>
#include <condition_variable>
#include <iosfwd>
#include <mutex>
#include <string>
#include <thread>

namespace attn {

/// Shows nothing for the first two seconds, then one line, rewritten each second, wiped away at the end.
/// On anything that is no terminal it shows nothing at all.
class Progress {
 public:
  /// `err` is used from a thread of its own until the end of this object's life.
  Progress(std::ostream& err, bool is_terminal, std::string what,
           std::chrono::milliseconds patience = std::chrono::seconds(2));
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// What is being done now: "causality (5 of 13)".
  void set(std::string what);

 private:
  void show_until_stopped(std::chrono::milliseconds patience);

  std::ostream& err_;
  std::mutex mutex_;
  std::condition_variable stopped_changed_;
  std::string what_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace attn
