#pragma once

#include <ATen/core/Dict.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

#include <string>
#include <vector>

// What writes and reads state dicts that are IValues; `where` begins the errors.
namespace sconce {

/// An empty dict of values by name, as Python's state dicts are.
inline c10::impl::GenericDict string_dict() {
  return c10::impl::GenericDict(c10::StringType::get(), c10::AnyType::get());
}

/// The value of that key.
/// @throw c10::Error if there is none.
inline c10::IValue require(const c10::IValue& state, const char* key, const std::string& where) {
  TORCH_CHECK(state.isGenericDict(), where, ": expected a dict, got ", state.tagKind());
  const auto found = state.toGenericDict().find(key);
  TORCH_CHECK(found != state.toGenericDict().end(), where, ": expected a dict with the key '", key,
              "'");
  return found->value();
}

/// A number, whole or not.
/// @throw c10::Error if it is none.
inline double require_number(const c10::IValue& state, const char* key, const std::string& where) {
  const c10::IValue value = require(state, key, where);
  TORCH_CHECK(value.isDouble() || value.isInt(), where, ": expected a number for '", key, "', got ",
              value.tagKind());
  return value.toScalar().toDouble();
}

/// An integer of 0 or more.
/// @throw c10::Error if it is none.
inline int64_t require_count(const c10::IValue& state, const char* key, const std::string& where) {
  const c10::IValue value = require(state, key, where);
  TORCH_CHECK(value.isInt() && value.toInt() >= 0, where,
              ": expected an integer of 0 or more for '", key, "'");
  return value.toInt();
}

/// The values of a list.
/// @throw c10::Error if it is none.
inline std::vector<c10::IValue> require_list(const c10::IValue& state, const char* key,
                                             const std::string& where) {
  const c10::IValue value = require(state, key, where);
  TORCH_CHECK(value.isList(), where, ": expected a list for '", key, "', got ", value.tagKind());
  return value.toListRef().vec();
}

/// A tensor.
/// @throw c10::Error if it is none.
inline at::Tensor require_tensor(const c10::IValue& state, const char* key,
                                 const std::string& where) {
  const c10::IValue value = require(state, key, where);
  TORCH_CHECK(value.isTensor(), where, ": expected a tensor for '", key, "', got ",
              value.tagKind());
  return value.toTensor();
}

}  // namespace sconce
