#pragma once

#include <c10/util/Exception.h>

#include <algorithm>
#include <exception>
#include <string>

namespace sconce::detail {

/// Calls the function. If it throws an exception, returns the error message as a single line.
/// Otherwise, returns an empty string.
template <class F>
std::string failure_of(const F& function) {
  std::string text;
  try {
    function();
  } catch (const c10::Error& error) {
    text = error.what_without_backtrace();
  } catch (const std::exception& error) {
    text = error.what();
  }
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

}  // namespace sconce::detail
