// The whole program as one function: words and streams in, exit status out. main() and the tests call it.
#pragma once

#include <iosfwd>

namespace attn {

/// Results go to `out` only; progress, warnings and one-line errors to `err`. Returns an ExitStatus as int.
/// Throws nothing.
int run(int argc, const char* const* argv, std::istream& in, std::ostream& out, std::ostream& err);

}  // namespace attn
