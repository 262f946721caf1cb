#pragma once

#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "program/json_names.hpp"

namespace sconce::program::detail {

// Used to look up keys in JSON objects. For objects with a large number of keys, which a file may
// contain, this class is faster than nlohmann::ordered_json.
using ReadJson = nlohmann::json;

class Elements;

/// A value in the JSON together with its location, such as "calls[3] args 'weight'".
class Node {
 public:
  Node(const ReadJson& json, std::string place) : json_(json), place_(std::move(place)) {}

  template <class... Got>
  [[noreturn]] void refuse(const std::string& expected, const Got&... got) const {
    TORCH_CHECK(false, place_, is_root() ? "" : ": ", "expected ", expected, ", got ", got...);
  }
  [[noreturn]] void refuse(const std::string& expected) const {
    std::string text = json_.dump(-1, ' ', false, ReadJson::error_handler_t::replace);
    if (text.size() > 60) text = text.substr(0, 60) + "...";
    refuse(expected, text);
  }

  const ReadJson& json() const { return json_; }
  const std::string& place() const { return place_; }

  Node operator[](const char* key) const {
    if (!json_.is_object()) refuse("an object");
    const auto found = json_.find(key);
    if (found == json_.end()) refuse(std::string("the key '") + key + "'", "none");
    return {*found, place_ + (is_root() ? "" : " ") + key};
  }

  std::string text() const {
    if (!json_.is_string()) refuse("a string");
    return json_.get<std::string>();
  }

  int64_t integer() const {
    const bool fits =
        json_.is_number_integer() && (!json_.is_number_unsigned() ||
                                      json_.get<uint64_t>() <= std::numeric_limits<int64_t>::max());
    if (!fits) refuse("a 64-bit integer");
    return json_.get<int64_t>();
  }

  size_t index(size_t end) const {
    const int64_t value = integer();
    if (value < 0 || static_cast<size_t>(value) >= end) {
      refuse("a non-negative number below " + std::to_string(end));
    }
    return static_cast<size_t>(value);
  }

  bool boolean() const {
    if (!json_.is_boolean()) refuse("true or false");
    return json_.get<bool>();
  }

  Elements elements() const;

  template <class Names>
  auto one_of(const Names& names) const {
    const std::string given = text();
    std::string all;
    for (const auto& [name, value] : names) {
      if (name == given) return value;
      all += (all.empty() ? "" : ", ") + std::string(name);
    }
    refuse("one of " + all);
  }

  c10::ScalarType dtype() const {
    const std::string name = text();
    for (int i = 0; i < static_cast<int>(c10::ScalarType::NumOptions); ++i) {
      const auto type = static_cast<c10::ScalarType>(i);
      if (type != c10::ScalarType::Undefined && dtype_name(type) == name) return type;
    }
    refuse("a dtype that LibTorch supports");
  }

 private:
  bool is_root() const { return place_.ends_with(": "); }

  const ReadJson& json_;
  std::string place_;
};

/// The elements of a list. The elements are created on demand, because a list can be as long as the
/// file.
class Elements {
 public:
  class Iterator {
   public:
    Iterator(const Elements& list, size_t index) : list_(list), index_(index) {}

    Node operator*() const { return list_[index_]; }
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return index_ != other.index_; }

   private:
    const Elements& list_;
    size_t index_;
  };

  Elements(const ReadJson& json, std::string place) : json_(json), place_(std::move(place)) {}

  size_t size() const { return json_.size(); }
  Node operator[](size_t i) const { return {json_[i], place_ + "[" + std::to_string(i) + "]"}; }
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size()}; }

 private:
  const ReadJson& json_;
  std::string place_;
};

inline Elements Node::elements() const {
  if (!json_.is_array()) refuse("a list");
  return {json_, place_};
}

}  // namespace sconce::program::detail
