#pragma once

#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "state_values.hpp"

namespace sconce::optim::lr_scheduler {

/// The most steps that a state may count: a double tells them apart, and a few more do not
/// overflow.
constexpr int64_t most_steps = int64_t{1} << 53;

/// Writes members to a dict under their keys, or reads them from one: a scheduler lists them once,
/// and what is written is what is read. Lists and dicts are those of `Any`, which pickle as
/// Python's own.
class StateVisitor {
 public:
  explicit StateVisitor(std::string who) : who_(std::move(who)), reads_(false) {}
  StateVisitor(std::string who, const c10::IValue& state) : who_(std::move(who)), reads_(true) {
    expect(state.isGenericDict(), "a dict", state);
    dict_ = state.toGenericDict();
  }

  const c10::impl::GenericDict& dict() const { return dict_; }

  template <class T>
  void operator()(const char* key, T& member) {
    key_ = key;
    if (!reads_) {
      dict_.insert(key, write(member));
      return;
    }
    const auto found = dict_.find(key);
    TORCH_CHECK(found != dict_.end(), who_, "::load_state_dict: expected a state with the key '",
                key, "'");
    read(found->value(), member);
  }

  /// When reading, refuses the value that was read last unless it holds.
  void check(bool holds, const char* range) const {
    TORCH_CHECK_VALUE(holds || !reads_, who_, "::load_state_dict: expected a value ", range,
                      " for '", key_, "', got another");
  }

  /// Writes what has no member here; when reading, does nothing.
  void write_only(const char* key, const c10::IValue& value) {
    if (!reads_) dict_.insert(key, value);
  }

  /// An empty list of `Any`.
  static c10::impl::GenericList list() { return c10::impl::GenericList(c10::AnyType::get()); }

 private:
  template <class T>
  c10::IValue write(const T& value) {
    if constexpr (std::is_enum_v<T>) {
      return std::string(names(value)[static_cast<size_t>(value)]);
    } else if constexpr (requires { value->state_dict(); }) {
      return value->state_dict();
    } else if constexpr (requires(T & part, StateVisitor & state) { visit_part(part, state); }) {
      StateVisitor part(who_);
      T copy = value;
      visit_part(copy, part);
      return part.dict();
    } else {
      return value;
    }
  }

  template <class T>
  c10::IValue write(const std::vector<T>& values) {
    auto all = list();
    for (const T& value : values) all.push_back(write(value));
    return all;
  }

  template <class T>
  void read(const c10::IValue& from, T& value) {
    if constexpr (std::is_enum_v<T>) {
      const auto words = names(value);
      const auto found = from.isString()
                             ? std::find(words.begin(), words.end(), from.toStringView())
                             : words.end();
      expect(found != words.end(), c10::str("'", words[0], "' or '", words[1], "'"), from);
      value = static_cast<T>(found - words.begin());
    } else if constexpr (requires { value->state_dict(); }) {
      value->load_state_dict(from);
    } else {
      StateVisitor part(who_, from);
      visit_part(value, part);
    }
  }

  void read(const c10::IValue& from, double& value) {
    expect(from.isDouble() || from.isInt(), "a number", from);  // Python keeps an int that is given
    value = from.isInt() ? static_cast<double>(from.toInt()) : from.toDouble();
  }
  void read(const c10::IValue& from, int64_t& value) {
    expect(from.isInt(), "an int", from);
    value = from.toInt();
  }
  void read(const c10::IValue& from, bool& value) {
    expect(from.isBool(), "a bool", from);
    value = from.toBool();
  }
  void read(const c10::IValue& from, std::string& value) {
    expect(from.isString(), "a string", from);
    value = from.toStringRef();
  }
  void read(const c10::IValue& from, std::optional<double>& value) {
    if (from.isNone()) {
      value.reset();
    } else {
      read(from, value.emplace());
    }
  }
  template <class T>
  void read(const c10::IValue& from, std::vector<T>& values) {
    expect(from.isList() && from.toListRef().size() == values.size(),
           c10::str("a list of length ", values.size()), from);
    for (size_t i = 0; i < values.size(); ++i) read(from.toListRef()[i], values[i]);
  }

  void expect(bool fits, const std::string& what, const c10::IValue& got) const {
    TORCH_CHECK(fits, who_, "::load_state_dict: expected ", what,
                key_.empty() ? "" : " for '" + key_ + "'", ", got ", got.tagKind());
  }

  std::string who_;
  std::string key_ = {};
  bool reads_;
  c10::impl::GenericDict dict_ = string_dict();
};

}  // namespace sconce::optim::lr_scheduler
