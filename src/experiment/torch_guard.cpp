#include "experiment/torch_guard.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <string_view>

#include "core/error.h"
#include "core/text.h"

namespace attn {
namespace {

constexpr std::size_t kLongestMessage = 300;

/// LibTorch's message without its stack of frames and its own place in LibTorch's sources, as one line.
std::string one_line(const std::string& message) {
  std::string line = message.substr(0, message.find('\n'));
  const std::size_t end_of_place = line.find("] ");
  if (line.starts_with("[enforce fail at ") && end_of_place != std::string::npos) line.erase(0, end_of_place + 2);
  return shortened(line, kLongestMessage);
}

/// LibTorch has no class of its own for a CPU allocation that failed; its text is all there is to tell it by.
bool is_out_of_memory(const std::string& message) {
  return message.find("can't allocate memory") != std::string::npos ||
         message.find("out of memory") != std::string::npos;
}

/// How much was asked for: "... you tried to allocate 80000000000 bytes. ..." of a CPU, "... Tried to allocate 20.00
/// GiB. ..." of a GPU. LibTorch tells it nowhere but in its text; empty where that says nothing of the kind.
std::string amount_asked_for(const std::string& message) {
  constexpr std::string_view kBefore = "ried to allocate ";
  const std::size_t start = message.find(kBefore);
  if (start == std::string::npos) return "";
  const std::string rest = message.substr(start + kBefore.size());
  const std::string amount = rest.substr(0, rest.find(". "));
  const std::optional<std::int64_t> bytes = parse_int64(amount.substr(0, amount.find(" bytes")));
  if (bytes && *bytes >= 0) return format_bytes(static_cast<std::uint64_t>(*bytes));
  return shortened(amount);
}

std::string out_of_memory_text(const std::string& message) {
  const std::string amount = amount_asked_for(message);
  return amount.empty() ? "not enough memory" : "not enough memory: a tensor of " + amount + " could not be allocated";
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
      std::throw_with_nested(ResourceError(config.source_name + ": " + out_of_memory_text(message)));
    }
    std::throw_with_nested(Error(config.source_name + ": LibTorch: " + one_line(message)));
  } catch (const std::bad_alloc&) {
    std::throw_with_nested(ResourceError(config.source_name + ": not enough memory"));
  }
}

}  // namespace attn
