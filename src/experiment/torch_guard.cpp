#include "experiment/torch_guard.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include <exception>
#include <new>

#include "core/error.h"
#include "core/text.h"

namespace attn {
namespace {

constexpr std::size_t kLongestMessage = 300;

/// LibTorch's message without its stack of frames, as one line.
std::string one_line(const std::string& message) {
  return printable(message.substr(0, message.find('\n')).substr(0, kLongestMessage));
}

/// LibTorch has no class of its own for a CPU allocation that failed; its text is all there is to tell it by.
bool is_out_of_memory(const std::string& message) {
  return message.find("can't allocate memory") != std::string::npos ||
         message.find("out of memory") != std::string::npos;
}

}  // namespace

void with_torch_guarded(const RunConfig& config, const std::function<void()>& work) {
  try {
    if (config.threads.has_value()) at::set_num_threads(*config.threads);
    work();
  } catch (const Error&) {
    throw;
  } catch (const c10::Error& error) {
    const std::string message = error.what_without_backtrace();
    if (is_out_of_memory(message)) {
      std::throw_with_nested(ResourceError(config.source_name + ": not enough memory: " + one_line(message)));
    }
    std::throw_with_nested(Error(config.source_name + ": LibTorch: " + one_line(message)));
  } catch (const std::bad_alloc&) {
    std::throw_with_nested(ResourceError(config.source_name + ": not enough memory"));
  }
}

}  // namespace attn
