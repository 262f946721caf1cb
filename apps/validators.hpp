#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace apps {

/// Returns whether the whole of `text` is a single number that type T can represent.
template <class T>
bool parse(const std::string& text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// CLI11's own validators accept nan, and their error messages do not describe a flag's valid
// values.

/// Rewrites the number in plain decimal form, because CLI11 would parse 010 as octal.
inline CLI::Validator whole_number(uint64_t min, uint64_t max) {
  const std::string takes =
      "must be a whole number from " + std::to_string(min) + " to " + std::to_string(max);
  return CLI::Validator(
      [=](std::string& text) {
        uint64_t value = 0;
        const bool good = parse(text, value) && value >= min && value <= max;
        if (!good) return takes + ", not '" + text + "'";
        text = std::to_string(value);
        return std::string();
      },
      "");
}

/// Accepts a finite number for which `fits` returns true. `what` describes the accepted numbers.
inline CLI::Validator number(const std::string& what, bool (*fits)(double)) {
  return CLI::Validator(
      [=](std::string& text) {
        double value = 0;
        const bool good = parse(text, value) && std::isfinite(value) && fits(value);
        return good ? std::string() : "must be " + what + ", not '" + text + "'";
      },
      "");
}

inline CLI::Validator one_of(const std::vector<std::string>& names) {
  return CLI::Validator(
      [=](std::string& text) {
        if (std::find(names.begin(), names.end(), text) != names.end()) return std::string();
        return "must be " + CLI::detail::join(names, "|") + ", not '" + text + "'";
      },
      "");
}

}  // namespace apps
