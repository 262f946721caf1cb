#pragma once

#include <ATen/core/Dict.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Storage.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "io/memory_budget.hpp"

// The values that occur during unpickling: LibTorch values, and values that exist only in pickles.
namespace sconce::io {

/// The maximum nesting depth of containers. Containers are traversed recursively, which uses stack
/// space.
constexpr size_t max_depth = 1000;

/// A position in the pickle, which becomes the prefix of error messages.
struct Place {
  const std::string& error_prefix;
  size_t byte;
};

inline std::ostream& operator<<(std::ostream& out, const Place& place) {
  return out << place.error_prefix << "byte " << place.byte << ": ";
}

enum class Global : uint8_t {
  ordered_dict,
  counter,
  size,
  tensor_v2,
  tensor_v3,
  parameter,
  parameter_with_state,
  from_type,
  tensor_class,
  storage_class,
  untyped_storage_class,
  dtype,
  storage
};

/// A value that occurs only inside a pickle: a named object or a storage. It is stored in a
/// capsule, a kind of IValue that a pickle cannot create.
struct Named : torch::CustomClassHolder {
  explicit Named(Global what, c10::ScalarType of = c10::kByte, c10::Storage bytes = {})
      : global(what), type(of), storage(std::move(bytes)) {}

  Global global;
  c10::ScalarType type;  ///< of a dtype, a storage class, or a storage
  c10::Storage storage;  ///< may be shared by values with different types
};

/// An upper bound on the bytes per value.
constexpr size_t named_bytes = 128;

/// Wraps such a value in an IValue.
inline c10::IValue capsule(Global what, c10::ScalarType of = c10::kByte, c10::Storage bytes = {}) {
  return c10::IValue::make_capsule(c10::make_intrusive<Named>(what, of, std::move(bytes)));
}

/// Returns the named object in a capsule, or null.
inline const Named* named(const c10::IValue& value) {
  return value.isCapsule() ? static_cast<const Named*>(value.toCapsule().get()) : nullptr;
}

/// Returns Python's name for the type of a value, including its article.
const char* kind_of(const c10::IValue& value);

/// The slots of a dict's keys. LibTorch's Dict doubles the size of its table until every key is
/// close to the slot of its hash. An attacker can choose keys that always stay close together, and
/// 60 such keys were enough to make the Dict use all available memory. Therefore, keys are first
/// placed in this table, which stores neither keys nor values.
class KeyPlaces {
 public:
  /// Places a new key, given the hash that LibTorch computes for it.
  /// @throw c10::Error if the keys need a table that is too large, or more memory than the budget
  /// allows.
  void insert(size_t hash, MemoryBudget& budget, const Place& place);

 private:
  bool find_place(uint64_t& spread);
  void grow(uint64_t added, MemoryBudget& budget, const Place& place);

  std::vector<uint64_t> spreads_ = {};  // per slot: the hash, multiplied as in LibTorch
  std::vector<int8_t> distances_ = {};  // per slot: distance from the hash's slot; -1 if free
  size_t size_ = 0;                     // a power of two
  size_t count_ = 0;
};

/// The containers in a pickle, in order of creation. Frees containers that contain themselves or
/// are nested too deeply for the stack, because IValue cannot free them.
class Containers {
 public:
  Containers(MemoryBudget& budget, const std::string& error_prefix)
      : budget_(budget), error_prefix_(error_prefix) {}
  ~Containers();
  Containers(const Containers&) = delete;
  Containers& operator=(const Containers&) = delete;

  /// Creates a container for the operation at this byte.
  /// @throw c10::Error if it needs more memory than the budget allows. This applies to all
  /// functions that create values.
  c10::IValue make_list(size_t byte);
  c10::IValue make_dict(size_t byte, bool is_ordered_dict = false);
  c10::IValue make_tuple(std::vector<c10::IValue> items, size_t byte);

  /// Reserves memory for other values in the budget.
  void take(size_t size) { budget_.take(size, error_prefix_); }

  /// Reserves capacity for more elements in a vector, within the budget. The vector grows as with
  /// push_back.
  template <class T>
  void make_room(std::vector<T>& elements) {
    if (elements.size() < elements.capacity()) return;
    const size_t before = elements.capacity(), after = std::max<size_t>(2 * before, 16);
    take(after * sizeof(T));
    elements.reserve(after);
    budget_.release(before * sizeof(T));
  }

  /// Returns whether the value is an OrderedDict. torch.save writes attributes only for this type.
  bool is_ordered_dict(const c10::IValue& value) const;

  /// Appends items to a list.
  void append(const c10::IValue& list, c10::ArrayRef<c10::IValue> items);

  /// Inserts alternating keys and values into a dict.
  /// @throw c10::Error if a key is neither a str nor an int, or if too many hashes of the keys
  /// collide.
  void insert(const c10::IValue& dict, c10::ArrayRef<c10::IValue> items, const Place& place);

  /// Checks the whole result of the pickle.
  /// @throw c10::Error with the byte offset if a container contains itself, a type, or a storage,
  /// or if it is nested too deeply.
  void check(const c10::IValue& result) { height(result, 0, 0); }

 private:
  struct Record {
    size_t made_at = 0;
    bool is_ordered_dict = false;
    bool is_open = false;                    // the contents are being checked
    size_t height = 0;                       // nesting depth, including itself; 0: not checked yet
    size_t room = 0;                         // capacity of a list, in items
    std::unique_ptr<KeyPlaces> places = {};  // key slots of a non-empty dict
  };

  c10::IValue keep(c10::IValue container, size_t byte, bool is_ordered_dict = false);
  size_t height(const c10::IValue& value, size_t depth, size_t inside);

  MemoryBudget& budget_;
  const std::string& error_prefix_;
  std::vector<c10::IValue> made_ = {};
  std::unordered_map<const void*, Record> records_ = {};
  c10::IValue empty_tuple_ = {};  // as in Python, there is only one empty tuple
};

}  // namespace sconce::io
