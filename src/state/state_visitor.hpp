#pragma once

#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace sconce {

/// The largest number of steps in a state. A double represents it exactly, and adding a few steps
/// does not overflow.
constexpr int64_t most_steps = int64_t{1} << 53;

/// Returns an empty dict with str keys, like Python's state dicts.
inline c10::impl::GenericDict string_dict() {
  return c10::impl::GenericDict(c10::StringType::get(), c10::AnyType::get());
}

/// Writes members to a dict under their keys, or reads them from a dict. A class lists its members
/// once, and the list is used for both writing and reading. A member is a number, a bool, a string,
/// a tensor, an IValue, an enum with `names`, a pointer to an object with a state dict, a struct
/// with a `visit_state(T&, StateVisitor&)`, or a vector or optional of these. `names` and
/// `visit_state` are found by argument-dependent lookup. Lists and dicts contain elements of type
/// `Any`, so they are pickled like lists and dicts in Python.
class StateVisitor {
 public:
  /// Creates a visitor that writes.
  StateVisitor() : reads_(false) {}

  /// Creates a visitor that reads. Its error messages start with `where`.
  /// @throw c10::Error if the state is not a dict, or if a key is not a str. Every other function
  /// also throws c10::Error if it cannot read a value.
  StateVisitor(const c10::IValue& state, std::string where)
      : where_(std::move(where)), reads_(true) {
    expect(state.isGenericDict(), "a dict", state);
    dict_ = state.toGenericDict();
    for (const auto& entry : dict_) {
      expect(entry.key().isString(), "a dict with keys of type str", entry.key());
    }
  }

  const c10::impl::GenericDict& dict() const { return dict_; }

  /// Writes or reads a member. A list must have the same length as the member.
  template <class T>
  void operator()(const char* key, T& member) {
    key_ = key;
    if (reads_) {
      read(value(key), member);
    } else {
      dict_.insert(key, write(member));
    }
  }

  /// Like the function above, but for a key that older states do not contain. If the key is
  /// missing, the member is set to `default_value`.
  template <class T>
  void operator()(const char* key, T& member, const T& default_value) {
    if (reads_ && !dict_.contains(key)) {
      member = default_value;
    } else {
      (*this)(key, member);
    }
  }

  /// Like the function above, but for an optional key. A member without a value is omitted from the
  /// dict. If the dict does not contain the key, the member stays unchanged.
  template <class T>
  void optional_value(const char* key, std::optional<T>& member) {
    if (reads_ ? dict_.contains(key) : member.has_value()) {
      (*this)(key, member ? *member : member.emplace());
    }
  }

  /// Like the function above, but the length of a list may differ from the length of the member.
  template <class T>
  void any_length(const char* key, std::vector<T>& member) {
    if (reads_ && value(key).isList()) member.resize(value(key).toListRef().size());
    (*this)(key, member);
  }

  /// Like the function above, but for an integer that must be 0 or greater.
  template <class T>
  void count(const char* key, T& member) {
    (*this)(key, member);
    check(member >= 0, "at least 0");
  }

  /// When reading, throws unless `holds` is true. The error message refers to the last value that
  /// was read.
  void check(bool holds, const char* range) const {
    TORCH_CHECK_VALUE(holds || !reads_, where_, ": expected '", key_, "' to be ", range,
                      ", got another value");
  }

  /// Writes a value that does not correspond to a member. Does nothing when reading.
  void write_only(const char* key, const c10::IValue& value) {
    if (!reads_) dict_.insert_or_assign(key, value);
  }

  /// Returns the value of the key in the dict that is being read.
  c10::IValue value(const char* key) const {
    const auto found = dict_.find(key);
    TORCH_CHECK(found != dict_.end(), where_, ": expected a dict with the key '", key, "'");
    return found->value();
  }

  /// Returns an empty list of `Any`.
  static c10::impl::GenericList list() { return c10::impl::GenericList(c10::AnyType::get()); }

 private:
  template <class T>
  c10::IValue write(T& value) {
    if constexpr (std::is_enum_v<T>) {
      return std::string(names(value)[static_cast<size_t>(value)]);
    } else if constexpr (requires { value->state_dict(); }) {
      return value->state_dict();
    } else if constexpr (requires { visit_state(value, *this); }) {
      StateVisitor part;
      visit_state(value, part);
      return part.dict();
    } else {
      return value;
    }
  }

  template <class T>
  c10::IValue write(std::vector<T>& values) {
    auto all = list();
    for (T& value : values) all.push_back(write(value));
    return all;
  }

  template <class T>
  c10::IValue write(std::optional<T>& value) {
    return value ? write(*value) : c10::IValue();
  }

  template <class T>
  void read(const c10::IValue& from, T& value) {
    if constexpr (std::is_enum_v<T>) {
      const auto words = names(value);
      const auto found = from.isString()
                             ? std::find(words.begin(), words.end(), from.toStringView())
                             : words.end();
      std::string choices = c10::str("'", words.back(), "'");
      for (size_t i = words.size() - 1; i-- > 0;) {
        choices = c10::str("'", words[i], i + 2 == words.size() ? "' or " : "', ", choices);
      }
      expect(found != words.end(), choices, from);
      value = static_cast<T>(found - words.begin());
    } else if constexpr (requires { value->state_dict(); }) {
      value->load_state_dict(from);
    } else {
      StateVisitor part(from, where_ + ": '" + key_ + "'");
      visit_state(value, part);
    }
  }

  // Python keeps the type that was passed, which may be int, bool, or, for a learning rate, a
  // tensor.
  void read(const c10::IValue& from, double& value) {
    const bool one = from.isTensor() && from.toTensor().defined() && from.toTensor().numel() == 1 &&
                     !from.toTensor().is_complex();
    expect(one || from.isDouble() || from.isInt() || from.isBool(), "a number", from);
    value = one ? from.toTensor().item<double>() : from.toScalar().toDouble();
  }
  void read(const c10::IValue& from, int64_t& value) {
    expect(from.isInt(), "an int", from);
    value = from.toInt();
  }
  void read(const c10::IValue& from, int& value) {
    expect(from.isInt() && std::in_range<int>(from.toInt()), "a 32-bit int", from);
    value = static_cast<int>(from.toInt());
  }
  void read(const c10::IValue& from, bool& value) {
    expect(from.isBool(), "a bool", from);
    value = from.toBool();
  }
  void read(const c10::IValue& from, std::string& value) {
    expect(from.isString(), "a string", from);
    value = from.toStringRef();
  }
  void read(const c10::IValue& from, at::Tensor& value) {
    expect(from.isTensor(), "a tensor", from);
    value = from.toTensor();
  }
  void read(const c10::IValue& from, c10::IValue& value) { value = from; }
  void read(const c10::IValue& from, c10::impl::GenericDict& value) {
    expect(from.isGenericDict(), "a dict", from);
    value = from.toGenericDict();
  }
  void read(const c10::IValue& from, std::tuple<double, double>& value) {
    const bool is_tuple = from.isTuple() && from.toTupleRef().elements().size() == 2;
    expect(is_tuple || (from.isList() && from.toListRef().size() == 2), "2 numbers", from);
    read(is_tuple ? from.toTupleRef().elements()[0] : from.toListRef()[0], std::get<0>(value));
    read(is_tuple ? from.toTupleRef().elements()[1] : from.toListRef()[1], std::get<1>(value));
  }
  template <class T>
  void read(const c10::IValue& from, std::optional<T>& value) {
    if (from.isNone()) {
      value.reset();
    } else {
      read(from, value.emplace(T{}));  // emplace() would require T to be complete
    }
  }
  template <class T>
  void read(const c10::IValue& from, std::vector<T>& values) {
    expect(from.isList() && from.toListRef().size() == values.size(),
           c10::str("a list of length ", values.size()), from);
    for (size_t i = 0; i < values.size(); ++i) read(from.toListRef()[i], values[i]);
  }

  void expect(bool fits, const std::string& what, const c10::IValue& got) const {
    TORCH_CHECK(fits, where_, ": expected ", what, key_.empty() ? "" : " for '" + key_ + "'",
                ", got ", got.tagKind());
  }

  std::string where_ = {};
  std::string key_ = {};
  bool reads_;
  c10::impl::GenericDict dict_ = string_dict();
};

/// Returns the state of a value with a `visit_state` function, as a dict.
template <class T>
c10::IValue as_state(T value) {
  StateVisitor state;
  visit_state(value, state);
  return state.dict();
}
/// Reads the state of `value` from a dict and returns `value`.
template <class T>
T from_state(const c10::IValue& state, std::string where, T value = {}) {
  StateVisitor reader(state, std::move(where));
  visit_state(value, reader);
  return value;
}

}  // namespace sconce
