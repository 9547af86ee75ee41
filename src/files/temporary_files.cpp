#include "files/temporary_files.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <climits>
#include <cstring>

#include "core/error.h"
#include "core/text.h"
#include "files/whole_file.h"

namespace attn {
namespace {

enum class State { kFree, kFilling, kInUse };

struct Place {
  std::atomic<State> state{State::kFree};
  std::array<char, PATH_MAX> name{};
};

static_assert(std::atomic<State>::is_always_lock_free, "the signal handler must not wait");

// Fixed in size and place: a signal handler may neither allocate nor wait for a lock.
std::array<Place, 16> places;

// Async-signal-safe (POSIX.1-2017, XSH 2.4.3): unlink, sigaction, raise and lock-free atomics only.
extern "C" void remove_temporaries_and_die(int signal_number) {
  for (Place& place : places) {
    if (place.state.load() == State::kInUse) unlink(place.name.data());
  }
  struct sigaction by_default = {};
  by_default.sa_handler = SIG_DFL;
  sigaction(signal_number, &by_default, nullptr);
  raise(signal_number);  // blocked until this handler returns, then it ends the program
}

}  // namespace

RegisteredTemporary::RegisteredTemporary(const std::string& name) : place_(0) {
  if (name.size() >= PATH_MAX) throw IoError(printable(name) + ": the name is too long");
  for (; place_ < places.size(); ++place_) {
    State expected = State::kFree;
    if (places[place_].state.compare_exchange_strong(expected, State::kFilling)) break;
  }
  if (place_ == places.size()) {
    throw IoError(printable(name) + ": more than " + std::to_string(places.size()) +
                  " files are being written at once");
  }
  std::memcpy(places[place_].name.data(), name.c_str(), name.size() + 1);
  places[place_].state.store(State::kInUse);
}

RegisteredTemporary::~RegisteredTemporary() { places[place_].state.store(State::kFree); }

void remove_temporary_files_on_interrupt() {
  for (const int signal_number : {SIGINT, SIGTERM}) {
    struct sigaction now = {};
    sigaction(signal_number, nullptr, &now);
    if (now.sa_handler == SIG_IGN) continue;  // whoever started us wants it ignored, as nohup and `&` in sh do
    struct sigaction ours = {};
    ours.sa_handler = remove_temporaries_and_die;
    sigfillset(&ours.sa_mask);
    sigaction(signal_number, &ours, nullptr);
  }
}

}  // namespace attn
