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

// What a pickle makes while it is read: LibTorch's values, and what only a pickle holds.
namespace sconce::io {

/// How deep containers may lie in each other: who walks them uses the stack.
constexpr size_t max_depth = 1000;

/// Where in a file the pickle is at; begins errors.
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

/// What stands in a pickle but is no value of a file: what it names, or a storage. As a capsule it
/// is an IValue, of a kind that no pickle can make.
struct Named : torch::CustomClassHolder {
  explicit Named(Global what, c10::ScalarType of = c10::kByte, c10::Storage bytes = {})
      : global(what), type(of), storage(std::move(bytes)) {}

  Global global;
  c10::ScalarType type;  ///< of a dtype, a class of storages, or a storage
  c10::Storage storage;  ///< others may name the same one with another type
};

/// Returns it as a value.
inline c10::IValue capsule(Global what, c10::ScalarType of = c10::kByte, c10::Storage bytes = {}) {
  return c10::IValue::make_capsule(c10::make_intrusive<Named>(what, of, std::move(bytes)));
}

/// Returns what the value names, or null.
inline const Named* named(const c10::IValue& value) {
  return value.isCapsule() ? static_cast<const Named*>(value.toCapsule().get()) : nullptr;
}

/// Python's name of a value's kind, with its article.
const char* kind_of(const c10::IValue& value);

/// Memory of as many bytes as were allowed, which is freed as a whole.
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

/// The containers of one pickle, in the order in which they were made. It frees those that hold
/// themselves, and those that lie in each other deeper than the stack, which IValues do not.
class Containers {
 public:
  explicit Containers(const std::string& who);
  ~Containers();
  Containers(const Containers&) = delete;
  Containers& operator=(const Containers&) = delete;

  /// Keeps a container that is made at that byte, and returns it.
  c10::IValue keep(c10::IValue container, size_t byte, bool is_ordered_dict = false);

  /// Whether it is of the only type of which torch.save saves attributes.
  bool is_ordered_dict(const c10::IValue& value) const;

  /// Puts keys and values, which alternate, into a dict.
  /// @throw c10::Error if a key is neither str nor int, or the keys' hashes are too much alike.
  void insert(c10::impl::GenericDict dict, const std::vector<c10::IValue>& items,
              const Place& place);

  /// Looks at everything in the pickle's result, once.
  /// @throw c10::Error naming the byte of a container that holds itself, a type or a storage, or
  /// lies too deep.
  void check(const c10::IValue& result) { height(result, 0, 0); }

 private:
  struct Record {
    size_t made_at = 0;
    bool is_ordered_dict = false;
    bool is_open = false;  // what lies in it is being looked at
    size_t height = 0;     // containers in each other, with this one; 0 until it is looked at
  };

  // A key as LibTorch's Dict tells it from others, without its memory.
  struct Key {
    size_t hash = 0;
    bool is_text = false;
    std::string_view text = {};  // the dict holds it

    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const { return key.hash; }
  };
  // LibTorch's Dict doubles its table until no key lies far from where its hash puts it. Whoever
  // writes a file can choose keys that stay together: 60 of them made it take all memory there is.
  // So the same table is tried first, in memory that has an end.
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
