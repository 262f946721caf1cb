#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Storage.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

// What a pickle makes while it is read. Containers refer to each other by number, so one that holds
// itself frees its memory, and none is as deep as the stack while it is not known how deep it is.
namespace sconce::io {

enum class Kind : uint8_t {
  none,
  boolean,
  integer,
  real,
  text,
  list,
  tuple,
  dict,
  global,
  storage,
  tensor
};

/// A value, or where it is found.
struct Value {
  Kind kind = Kind::none;
  int64_t number = 0;  ///< the value, a real's bits, a global's code, or an index into Values

  size_t index() const { return static_cast<size_t>(number); }
};

/// A list, a tuple or a dict, in which keys and values alternate.
struct Container {
  Kind kind = Kind::list;
  bool is_ordered_dict = false;  ///< the only type of which torch.save saves attributes
  size_t made_at = 0;            ///< byte of the pickle
  std::vector<Value> items = {};
};

/// A storage as the pickle names it. Others may name the same one with another type.
struct TypedStorage {
  c10::Storage storage = {};
  c10::ScalarType type = c10::kByte;
};

struct Values {
  std::vector<Container> containers = {};
  std::vector<c10::IValue> texts = {};  ///< made once, though a pickle may name one often
  std::vector<TypedStorage> storages = {};
  std::vector<at::Tensor> tensors = {};
};

/// Where in a file the pickle is at; begins errors.
struct Place {
  const std::string& who;
  size_t byte;
};

inline std::ostream& operator<<(std::ostream& out, const Place& place) {
  return out << place.who << "byte " << place.byte << ": ";
}

/// Python's name of a kind, with its article.
inline std::ostream& operator<<(std::ostream& out, Kind kind) {
  constexpr const char* names[] = {"None",    "a bool", "an int", "a float",   "a str",   "a list",
                                   "a tuple", "a dict", "a type", "a storage", "a tensor"};
  return out << names[static_cast<size_t>(kind)];
}

}  // namespace sconce::io
