// The errors that a user can act on. Each is printed as one line, "where: what is wrong, what was expected".
// Thrown everywhere, caught once, in cli/run.cpp, where the class decides the exit status.
// Anything that is not an attn::Error is our own fault and is printed as an internal error.
#pragma once

#include <stdexcept>

namespace attn {

/// Base of every error whose text is meant for the user. One line, no full stop at its end.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The command line or a config says something that cannot be. Exit status 2.
class ConfigError : public Error {
 public:
  using Error::Error;
};

/// A tensor does not have the shape, dtype or device that was asked for. Exit status 2.
class ShapeError : public Error {
 public:
  using Error::Error;
};

/// A file or stream could not be read or written, or its bytes are damaged. Exit status 3.
class IoError : public Error {
 public:
  using Error::Error;
};

/// This machine lacks what the run needs: memory or a device. Exit status 3.
class ResourceError : public Error {
 public:
  using Error::Error;
};

}  // namespace attn
