#include "io/pickle_writer.hpp"

#include <ATen/core/Dict.h>
#include <ATen/core/Tensor.h>

#include <bit>
#include <limits>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "io/pickle_values.hpp"
#include "io/strided_view.hpp"
#include "io/torch_types.hpp"
#include "io/utf8.hpp"

namespace sconce::io {

static_assert(std::endian::native == std::endian::little, "the format's numbers are little-endian");

namespace {

class PickleWriter {
 public:
  explicit PickleWriter(const std::string& error_prefix) : where_(error_prefix) {}

  Pickled write(const c10::IValue& value) {
    put("\x80\x02");
    write_value(value);
    put(".");
    return std::move(pickled_);
  }

 private:
  template <class... Parts>
  void check(bool holds, const Parts&... parts) const {
    TORCH_CHECK(holds, where_, where_.ends_with(' ') ? "" : ": ", parts...);
  }

  void put(std::string_view bytes) { pickled_.text += bytes; }

  template <class T>
  void put_number(T number) {
    put({reinterpret_cast<const char*>(&number), sizeof(T)});
  }

  // Adds the most recently written value to the memo, so that later values can refer to it.
  uint32_t keep() {
    put("r");
    put_number(kept_);
    return kept_++;
  }

  void repeat(uint32_t kept) {
    put("j");
    put_number(kept);
  }

  void write_value(const c10::IValue& value) {
    if (value.isNone()) {
      put("N");
    } else if (value.isBool()) {
      put(value.toBool() ? "\x88" : "\x89");
    } else if (value.isInt()) {
      write_integer(value.toInt());
    } else if (value.isDouble()) {
      write_real(value.toDouble());
    } else if (value.isString()) {
      write_string(value);
    } else if (value.isTensor()) {
      write_tensor(value.toTensor());
    } else {
      check(value.isList() || value.isTuple() || value.isGenericDict(),
            "expected None, bool, int, float, str, list, tuple, dict, or tensor, got ",
            value.tagKind());
      write_container(value);
    }
  }

  void write_integer(int64_t number) {
    if (number >= 0 && number <= 0xFF) {
      put("K");
      put_number(static_cast<uint8_t>(number));
    } else if (number == static_cast<int32_t>(number)) {
      put("J");
      put_number(static_cast<int32_t>(number));
    } else {
      put("\x8a\x08");
      put_number(number);
    }
  }

  void write_real(double real) {
    const auto bits = std::bit_cast<uint64_t>(real);
    put("G");
    for (int shift = 56; shift >= 0; shift -= 8) put_number(static_cast<uint8_t>(bits >> shift));
  }

  // Writes a str. A repeated string is not compared with the other strings again.
  void write_string(const c10::IValue& value) {
    const auto [kept, is_new] = objects_.emplace(value.internalToPointer(), 0);
    if (!is_new) return repeat(kept->second);
    kept->second = write_text(value.toStringRef());
  }

  // Returns the string's index in the memo.
  uint32_t write_text(const std::string& text) {
    const auto [kept, is_new] = texts_.emplace(text, kept_);
    if (!is_new) {
      repeat(kept->second);
      return kept->second;
    }
    check(is_utf8(text), "expected a str of valid UTF-8");
    check(text.size() <= std::numeric_limits<uint32_t>::max(), "expected a str smaller than 4 GiB");
    put("X");
    put_number(static_cast<uint32_t>(text.size()));
    put(text);
    return keep();
  }

  void write_global(const std::string& module, const char* name) {
    const auto [kept, is_new] = globals_.emplace(module + "\n" + name + "\n", kept_);
    if (!is_new) return repeat(kept->second);
    put("c");
    put(kept->first);
    keep();
  }

  void write_container(const c10::IValue& value) {
    const void* address = value.internalToPointer();
    const auto kept = objects_.find(address);
    if (kept != objects_.end()) return repeat(kept->second);
    check(open_.insert(address).second,
          "expected containers without cycles, got a container that contains itself");
    check(open_.size() <= max_depth, "expected containers nested at most ", max_depth,
          " levels deep, got deeper nesting");
    if (value.isTuple()) {
      write_tuple(value.toTupleRef().elements());
    } else if (value.isList()) {
      write_list(value.toListRef());
    } else {
      write_dict(value.toGenericDict());
    }
    objects_[address] = keep();
    open_.erase(address);
  }

  // Writes a value inside a container. `place` is `[index]` or `['key']`.
  void write_inside(const c10::IValue& value, const std::string& place) {
    const size_t size = where_.size();
    where_ += place;
    write_value(value);
    where_.resize(size);
  }

  void write_items(c10::ArrayRef<c10::IValue> items) {
    for (size_t i = 0; i < items.size(); ++i) {
      write_inside(items[i], c10::str("[", i, "]"));
    }
  }

  void write_tuple(c10::ArrayRef<c10::IValue> items) {
    put("(");
    write_items(items);
    put("t");
  }

  void write_list(c10::ArrayRef<c10::IValue> items) {
    put("](");
    write_items(items);
    put("e");
  }

  void write_dict(const c10::impl::GenericDict& dict) {
    put("}(");
    for (const auto& item : dict) {
      const c10::IValue& key = item.key();
      check(key.isString() || key.isInt(), "expected a dict with str or int keys, got ",
            key.tagKind());
      const std::string place = key.isString() ? c10::str("['", key.toStringRef(), "']")
                                               : c10::str("[", key.toInt(), "]");
      write_inside(key, place);
      write_inside(item.value(), place);
    }
    put("u");
  }

  void write_tensor(const at::Tensor& tensor) {
    check(tensor.defined(), "expected a tensor, got an undefined one");
    const auto kept = objects_.find(tensor.unsafeGetTensorImpl());
    if (kept != objects_.end()) return repeat(kept->second);
    const auto* type =
        find_torch_type([&](const TorchType& t) { return t.type == tensor.scalar_type(); });
    check_tensor(tensor, type);
    write_global("torch._utils", type->storage ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3");
    put("(");
    write_storage(tensor.storage(), *type);
    write_integer(tensor.storage_offset());
    write_integers(tensor.sizes());
    write_integers(tensor.strides());
    put(tensor.requires_grad() ? "\x88" : "\x89");
    write_global("collections", "OrderedDict");  // no hooks, because hooks are code
    put(")R");
    if (!type->storage) write_global("torch", type->name);
    if (tensor.is_conj() || tensor.is_neg()) write_bits(tensor);
    put("tR");
    objects_[tensor.unsafeGetTensorImpl()] = keep();
  }

  void check_tensor(const at::Tensor& tensor, const TorchType* type) const {
    check(type != nullptr, "expected a tensor type that save_torch supports, got ",
          tensor.scalar_type());
    check(tensor.layout() == c10::kStrided && !tensor.is_nested() && tensor.has_storage() &&
              !tensor.is_meta() && !tensor._is_zerotensor(),
          "expected a strided tensor with data");
    check(tensor.dim() <= 64, "expected a tensor of at most 64 dimensions, got ", tensor.dim());
    const uint64_t elements = tensor.storage().nbytes() / c10::elementSize(tensor.scalar_type());
    check(fits_in_storage(tensor.storage_offset(), tensor.sizes(), tensor.strides(), elements),
          "expected a tensor that fits in its storage of ", elements, " elements, got offset ",
          tensor.storage_offset(), ", sizes ", tensor.sizes(), " and strides ", tensor.strides());
  }

  void write_storage(const c10::Storage& storage, const TorchType& type) {
    const size_t record = record_of(storage, type.storage ? type.type : c10::kByte);
    put("(");
    write_text("storage");
    type.storage ? write_global("torch", type.storage)
                 : write_global("torch.storage", "UntypedStorage");
    write_text(std::to_string(record));
    write_text("cpu");
    const size_t element = type.storage ? c10::elementSize(type.type) : 1;
    write_integer(static_cast<int64_t>(storage.nbytes() / element));
    put("tQ");
  }

  // Returns the index of the storage's record. As in torch.save, the elements of untyped storages
  // are bytes. An empty storage has a separate record for each tensor type.
  size_t record_of(const c10::Storage& storage, c10::ScalarType type) {
    auto& records = storages_[storage.unsafeGetStorageImpl()];
    const auto [record, is_new] = records.emplace(type, pickled_.storages.size());
    if (is_new) pickled_.storages.push_back(storage);
    // If two tensors share memory but differ in type, some versions of torch.load use the first
    // tensor's type for both of them.
    check(records.size() == 1 || storage.data() == nullptr,
          "expected tensors that share memory to have the same type, got ", records.begin()->first,
          " and ", records.rbegin()->first);
    return record->second;
  }

  void write_integers(c10::IntArrayRef integers) {
    put("(");
    for (const int64_t integer : integers) write_integer(integer);
    put("t");
  }

  void write_bits(const at::Tensor& tensor) {
    put("}(");
    if (tensor.is_conj()) write_text("conj"), put("\x88");
    if (tensor.is_neg()) write_text("neg"), put("\x88");
    put("u");
  }

  std::string where_;  // error prefix, and path of the current value
  Pickled pickled_ = {};
  uint32_t kept_ = 0;
  std::map<std::string, uint32_t> texts_ = {};  // not hashed, because the keys may come from files
  std::map<std::string, uint32_t> globals_ = {};
  std::unordered_map<const void*, uint32_t> objects_ = {};  // written objects, keyed by address
  std::unordered_set<const void*> open_ = {};               // containers that are being written
  std::unordered_map<const void*, std::map<c10::ScalarType, size_t>> storages_ = {};
};

}  // namespace

Pickled write_pickle(const c10::IValue& value, const std::string& error_prefix) {
  return PickleWriter(error_prefix).write(value);
}

}  // namespace sconce::io
