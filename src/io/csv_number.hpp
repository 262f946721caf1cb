#pragma once

#include <algorithm>
#include <charconv>
#include <compare>
#include <cstdint>
#include <limits>
#include <locale>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>

namespace sconce::io {

/// Strips surrounding blanks and a leading plus sign, because `std::from_chars` accepts neither.
/// Returns an empty string if another sign follows the plus sign.
inline std::string_view without_plus(std::string_view text) {
  constexpr auto blanks = " \t";
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  text = text.substr(0, text.find_last_not_of(blanks) + 1);
  if (!text.starts_with('+')) return text;
  text.remove_prefix(1);
  return text.starts_with('-') ? std::string_view() : text;
}

/// Returns whether a field is an infinite number, such as "-inf" or "Infinity".
inline bool is_infinite(std::string_view text) {
  text = without_plus(text);
  if (text.starts_with('-')) text.remove_prefix(1);
  const auto is = [&](std::string_view name) {
    const auto same = [](char a, char b) { return a == b || a == b - 'a' + 'A'; };
    return std::equal(text.begin(), text.end(), name.begin(), name.end(), same);
  };
  return is("inf") || is("infinity");
}

// Converts a number that overflows or underflows a double. std::from_chars does not distinguish
// between overflow and underflow.
inline double infinity_or_zero(std::string_view text) {
  std::istringstream in{std::string(text)};
  in.imbue(std::locale::classic());
  double value = 0;
  in >> value;
  return value;
}

/// Returns the nearest double for a finite number, or std::nullopt for any other string.
inline std::optional<double> number_of(std::string_view text) {
  text = without_plus(text);
  const size_t first = text.starts_with('-') ? 1 : 0;
  if (first == text.size() || (text[first] != '.' && (text[first] < '0' || text[first] > '9'))) {
    return {};
  }
  double value = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (end != last || error == std::errc::invalid_argument) return {};
  return error == std::errc::result_out_of_range ? infinity_or_zero(text) : value;
}

/// The exact value of a number. Doubles cannot distinguish some integers above 2^53.
struct Decimal {
  bool is_negative = false;
  int64_t exponent = zero_exponent;  // the value is 0.DIGITS times 10 to this power
  std::string digits = {};           // without leading or trailing zeros

  static constexpr int64_t zero_exponent = std::numeric_limits<int64_t>::min();
  static constexpr int64_t infinite_exponent = std::numeric_limits<int64_t>::max();

  bool operator==(const Decimal&) const = default;
  std::strong_ordering operator<=>(const Decimal& other) const {
    if (is_negative != other.is_negative) return other.is_negative <=> is_negative;
    const auto larger = std::tie(exponent, digits) <=> std::tie(other.exponent, other.digits);
    return is_negative ? 0 <=> larger : larger;
  }
};

/// Returns the value of a finite or infinite number. Returns std::nullopt for other strings, and
/// for exponents beyond +-10^18.
inline std::optional<Decimal> decimal_of(std::string_view text) {
  text = without_plus(text);
  const bool is_negative = text.starts_with('-');
  if (is_infinite(text)) return Decimal{is_negative, Decimal::infinite_exponent};
  if (is_negative) text.remove_prefix(1);
  const std::string_view mantissa = text.substr(0, text.find_first_of("eE"));
  const std::string_view whole = mantissa.substr(0, mantissa.find('.'));
  std::string digits(whole);
  if (whole.size() < mantissa.size()) digits += mantissa.substr(whole.size() + 1);
  if (digits.empty() || digits.find_first_not_of("0123456789") != digits.npos) return {};
  int64_t exponent = 0;
  if (mantissa.size() < text.size()) {
    std::string_view part = text.substr(mantissa.size() + 1);
    if (part.starts_with("+") && !part.starts_with("+-")) part.remove_prefix(1);
    const char* last = part.data() + part.size();
    const auto [end, error] = std::from_chars(part.data(), last, exponent);
    constexpr int64_t most = 1'000'000'000'000'000'000;
    if (end != last || error != std::errc() || exponent < -most || exponent > most) return {};
  }
  const size_t first = digits.find_first_not_of('0');
  if (first == digits.npos) return Decimal{};
  exponent += static_cast<int64_t>(whole.size()) - static_cast<int64_t>(first);
  digits.erase(digits.find_last_not_of('0') + 1);
  return Decimal{is_negative, exponent, digits.substr(first)};
}

}  // namespace sconce::io
