#pragma once

#include <ATen/core/Dict.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Storage.h>

#include <cstdint>
#include <memory_resource>
#include <ostream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

// The values that exist while a pickle is read: those of LibTorch, and those that only pickles
// have.
namespace sconce::io {

/// Limit of the nesting of containers, because walking them recurses on the stack.
constexpr size_t max_depth = 1000;

/// Position in the pickle; begins errors.
struct Place {
  const std::string& who;
  size_t byte;
};

inline std::ostream& operator<<(std::ostream& out, const Place& place) {
  return out << place.who << "byte " << place.byte << ": ";
}

enum class Global : uint8_t {
  ordered_dict,
  counter,
  size,
  tensor_v2,
  tensor_v3,
  parameter,
  storage_class,
  dtype,
  storage
};

/// A value that occurs only inside a pickle: a named object or a storage. It is held as a capsule,
/// a kind of IValue that no pickle can make.
struct Named : torch::CustomClassHolder {
  explicit Named(Global what, c10::ScalarType of = c10::kByte, c10::Storage bytes = {})
      : global(what), type(of), storage(std::move(bytes)) {}

  Global global;
  c10::ScalarType type;  ///< type of a dtype, a storage class or a storage
  c10::Storage storage;  ///< may be shared by others with a different type
};

/// Wraps such a value as an IValue.
inline c10::IValue capsule(Global what, c10::ScalarType of = c10::kByte, c10::Storage bytes = {}) {
  return c10::IValue::make_capsule(c10::make_intrusive<Named>(what, of, std::move(bytes)));
}

/// Returns the named object of a capsule, or null.
inline const Named* named(const c10::IValue& value) {
  return value.isCapsule() ? static_cast<const Named*>(value.toCapsule().get()) : nullptr;
}

/// Returns Python's name of the kind of a value, with its article.
const char* kind_of(const c10::IValue& value);

/// Memory limited to the bytes that were allowed. It is freed as a whole.
class BoundedMemory final : public std::pmr::memory_resource {
 public:
  void allow(size_t size) { left_ += size; }

 private:
  void* do_allocate(size_t size, size_t alignment) override;
  void do_deallocate(void*, size_t, size_t) override {}
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  size_t left_ = 0;
  std::pmr::monotonic_buffer_resource arena_ = {};
};

/// The containers of one pickle, in the order in which they were made. Frees containers that
/// contain themselves, or are nested too deeply for the stack, which IValue cannot do.
class Containers {
 public:
  explicit Containers(const std::string& who);
  ~Containers();
  Containers(const Containers&) = delete;
  Containers& operator=(const Containers&) = delete;

  /// Keeps a container that is made at this byte, and returns it.
  c10::IValue keep(c10::IValue container, size_t byte, bool is_ordered_dict = false);

  /// Returns whether it is an OrderedDict, the only type whose attributes torch.save saves.
  bool is_ordered_dict(const c10::IValue& value) const;

  /// Inserts alternating keys and values into a dict.
  /// @throw c10::Error if a key is neither a str nor an int, or if the hashes of the keys collide
  /// too much.
  void insert(const c10::impl::GenericDict& dict, const std::vector<c10::IValue>& items,
              const Place& place);

  /// Checks the whole result of the pickle once.
  /// @throw c10::Error, naming the byte, if a container contains itself, a type or a storage, or is
  /// nested too deeply.
  void check(const c10::IValue& result) { height(result, 0, 0); }

 private:
  struct Record {
    size_t made_at = 0;
    bool is_ordered_dict = false;
    bool is_open = false;  // its content is being checked
    size_t height = 0;     // nesting depth, itself included; 0: not checked yet
  };

  // A key with the parts by which LibTorch's Dict compares keys, without a copy of its text.
  struct Key {
    size_t hash = 0;
    bool is_text = false;
    std::string_view text = {};  // owned by the dict

    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const { return key.hash; }
  };
  // LibTorch's Dict doubles its table until every key lies close to the place of its hash. An
  // attacker can choose keys that stay together: 60 of them made it use all memory. So the same
  // table is first filled in limited memory.
  using Keys = ska_ordered::order_preserving_flat_hash_map<Key, char, KeyHash, std::equal_to<>,
                                                           std::pmr::polymorphic_allocator<char>>;

  void try_key(Keys& keys, const c10::IValue& key, const Place& place);
  size_t height(const c10::IValue& value, size_t depth, size_t inside);

  const std::string& who_;
  std::vector<c10::IValue> made_ = {};
  std::unordered_map<const void*, Record> records_ = {};
  BoundedMemory memory_ = {};
  std::unordered_map<const void*, Keys> keys_ = {};
};

}  // namespace sconce::io
