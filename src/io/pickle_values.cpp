#include "io/pickle_values.hpp"

#include <ATen/core/List.h>

#include <algorithm>
#include <new>

namespace sconce::io {

namespace {

bool is_container(const c10::IValue& value) {
  return value.isList() || value.isTuple() || value.isGenericDict();
}

c10::ArrayRef<c10::IValue> items_of(const c10::IValue& value) {
  return value.isList() ? value.toListRef() : value.toTupleRef().elements().asArrayRef();
}

}  // namespace

const char* kind_of(const c10::IValue& value) {
  const auto* name = named(value);
  return name                    ? name->global == Global::storage ? "a storage" : "a type"
         : value.isNone()        ? "None"
         : value.isBool()        ? "a bool"
         : value.isInt()         ? "an int"
         : value.isDouble()      ? "a float"
         : value.isString()      ? "a str"
         : value.isList()        ? "a list"
         : value.isTuple()       ? "a tuple"
         : value.isGenericDict() ? "a dict"
                                 : "a tensor";
}

void* BoundedMemory::do_allocate(size_t size, size_t alignment) {
  if (size > left_) throw std::bad_alloc();
  left_ -= size;
  return arena_.allocate(size, alignment);
}

// Keys that collide by chance may use some memory, but not much in all dicts together.
Containers::Containers(const std::string& who) : who_(who) {
  memory_.allow(size_t{1} << 24);
}

Containers::~Containers() {
  for (const auto& container : made_) {
    if (records_[container.internalToPointer()].height > 0)
      continue;  // checked: no cycle, not too deep
    if (container.isList()) container.toList().clear();
    if (container.isGenericDict()) container.toGenericDict().clear();
  }
  while (!made_.empty()) made_.pop_back();  // a tuple before its items, which were made earlier
}

c10::IValue Containers::keep(c10::IValue container, size_t byte, bool is_ordered_dict) {
  made_.push_back(std::move(container));
  records_[made_.back().internalToPointer()] = {byte, is_ordered_dict};
  return made_.back();
}

bool Containers::is_ordered_dict(const c10::IValue& value) const {
  return is_container(value) && records_.at(value.internalToPointer()).is_ordered_dict;
}

void Containers::try_key(Keys& keys, const c10::IValue& key, const Place& place) {
  const Key own = {c10::detail::DictKeyHash()(key), key.isString(),
                   key.isString() ? key.toStringView() : std::string_view()};
  try {
    if (keys.emplace(own, '\0').second) memory_.allow(768);  // memory of its table while it grows
  } catch (const std::bad_alloc&) {
    TORCH_CHECK(false, place, "expected a dict with keys that differ in their hashes, got too ",
                "many similar ones");
  }
}

void Containers::insert(const c10::impl::GenericDict& dict, const std::vector<c10::IValue>& items,
                        const Place& place) {
  constexpr size_t harmless = 8;  // so few keys need at most a few hundred places
  for (size_t i = 0; i < items.size(); i += 2) {
    const auto& key = items[i];
    TORCH_CHECK(key.isString() || key.isInt(), place,
                "expected a dict with keys of str or int, got ", kind_of(key));
    if (dict.size() >= harmless) {
      const auto [keys, is_new] =
          keys_.try_emplace(c10::IValue(dict).internalToPointer(), &memory_);
      if (is_new) {
        for (const auto& item : dict) try_key(keys->second, item.key(), place);
      }
      try_key(keys->second, key, place);
    }
    dict.insert_or_assign(key, items[i + 1]);
  }
}

size_t Containers::height(const c10::IValue& value, size_t depth, size_t inside) {
  if (!is_container(value)) {
    TORCH_CHECK(named(value) == nullptr, Place{who_, inside}, "expected values and tensors, got ",
                kind_of(value));
    return 0;
  }
  auto& record = records_.at(value.internalToPointer());
  const Place place = {who_, record.made_at};
  TORCH_CHECK(!record.is_open, place, "expected no container that holds itself, got ",
              kind_of(value), " that does");
  TORCH_CHECK(depth + std::max<size_t>(record.height, 1) <= max_depth, place,
              "expected containers at most ", max_depth, " deep, got deeper ones");
  if (record.height > 0) return record.height;
  record.is_open = true;
  size_t most = 0;
  const auto look_at = [&](const c10::IValue& item) {
    most = std::max(most, height(item, depth + 1, record.made_at));
  };
  if (value.isGenericDict()) {
    for (const auto& item : value.toGenericDict()) look_at(item.value());
  } else {
    for (const auto& item : items_of(value)) look_at(item);
  }
  record.is_open = false;
  return record.height = most + 1;
}

}  // namespace sconce::io
