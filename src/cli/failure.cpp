#include "cli/failure.h"

#include <new>
#include <string_view>

#include "core/error.h"

namespace attn {
namespace {

std::string first_line(std::string_view text) { return std::string(text.substr(0, text.find('\n'))); }

}  // namespace

Failure describe(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const ConfigError& error) {
    return {error.what(), ExitStatus::kUsage};
  } catch (const ShapeError& error) {
    return {error.what(), ExitStatus::kUsage};
  } catch (const Error& error) {
    return {error.what(), ExitStatus::kFailure};
  } catch (const std::bad_alloc&) {
    return {"out of memory", ExitStatus::kFailure};
  } catch (const std::exception& error) {
    return {"internal error: " + first_line(error.what()), ExitStatus::kFailure};
  } catch (...) {
    return {"internal error", ExitStatus::kFailure};
  }
}

}  // namespace attn
