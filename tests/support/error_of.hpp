#pragma once

#include <c10/util/Exception.h>

#include <exception>
#include <string>

namespace sconce::test {

/// Calls the function and returns the message of the LibTorch error that it throws.
template <class F>
std::string error_of(const F& function) {
  try {
    function();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "nothing was thrown";
}

/// Calls the function and returns the message of the exception that it throws, regardless of its
/// class.
template <class F>
std::string what_of(const F& function) {
  try {
    function();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace sconce::test
