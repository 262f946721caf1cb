#pragma once

#include <torch/enum.h>
#include <torch/expanding_array.h>

#include <algorithm>
#include <cctype>
#include <concepts>
#include <initializer_list>
#include <optional>
#include <string>
#include <variant>

#include "sconce/repr.hpp"

// These functions format values like Python's `extra_repr`.
namespace sconce::extra_repr {

inline std::string text(bool value) {
  return repr(value);
}
inline std::string text(double value) {
  return repr(value);
}
inline std::string text(int64_t value) {
  return std::to_string(value);
}
inline std::string text(const std::string& value) {
  return value;
}

template <typename T>
std::string text(const std::optional<T>& value) {
  return value ? text(*value) : "None";
}

// Formats a Python tuple: (1, 2), or (1,) for a single element.
template <typename T>
std::string text(c10::ArrayRef<T> values) {
  std::string list;
  for (const auto& value : values) list += (list.empty() ? "" : ", ") + text(value);
  return "(" + list + (values.size() == 1 ? ",)" : ")");
}

template <size_t D, typename T>
std::string text(const torch::ExpandingArray<D, T>& values) {
  return text(c10::ArrayRef<T>(*values));
}

// If the user passed a single number, Python prints that number instead of a tuple. C++ cannot
// determine whether the user passed a single number, so equal values are always printed as a single
// number.
template <typename T>
std::string number(c10::ArrayRef<T> values) {
  const bool equal = std::equal(values.begin() + 1, values.end(), values.begin());
  return equal ? text(values.front()) : text(values);
}

template <size_t D, typename T>
std::string number(const torch::ExpandingArray<D, T>& values) {
  return number(c10::ArrayRef<T>(*values));
}

// LibTorch enumerators correspond to Python's strings: torch::kReflect is 'reflect'.
template <typename... Enums>
std::string word(const std::variant<Enums...>& value) {
  std::string name = torch::enumtype::get_enum_name(value).substr(1);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return name == "nearestexact" ? "nearest-exact" : name;
}

template <typename T>
std::string named(const char* name, const T& value) {
  return std::string(name) + "=" + text(value);
}

template <typename T>
std::string unless_default(const T& default_value, const char* name, const T& value) {
  return value == default_value ? "" : named(name, value);
}

// Joins the parts, skipping empty ones.
inline std::string list(std::initializer_list<std::string> parts) {
  std::string all;
  for (const auto& part : parts) {
    if (!part.empty()) all += (all.empty() ? "" : ", ") + part;
  }
  return all;
}

inline std::string inplace(bool value) {
  return unless_default(false, "inplace", value);
}

template <typename M, typename... Modules>
concept OneOf = (std::same_as<M, Modules> || ...);

}  // namespace sconce::extra_repr
