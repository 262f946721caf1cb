#include "io/pickle_values.hpp"

#include <ATen/core/List.h>
#include <ATen/core/jit_type.h>

#include <algorithm>
#include <bit>
#include <new>

namespace sconce::io {

namespace {

bool is_container(const c10::IValue& value) {
  return value.isList() || value.isTuple() || value.isGenericDict();
}

c10::ArrayRef<c10::IValue> items_of(const c10::IValue& value) {
  return value.isList() ? value.toListRef() : value.toTupleRef().elements().asArrayRef();
}

// Upper bounds on the bytes per container, including this reader's bookkeeping.
// memory_budget_test.cpp checks these bounds.
constexpr size_t list_bytes = 288, tuple_bytes = 288, dict_bytes = 800;
constexpr size_t place_bytes = 65;  // per slot in a dict's table and in KeyPlaces

c10::TypePtr any() {
  return c10::AnyType::get();
}

// Creates a LibTorch Dict, and throws an exception if there is not enough memory. Dict's
// constructor is noexcept, so running out of memory in the constructor would terminate the process.
c10::impl::GenericDict empty_dict() {
  ::operator delete(::operator new(4096));
  return c10::impl::GenericDict(any(), any());
}

// Returns the maximum distance between a key and its hash slot, which is also the number of extra
// slots at the end of the table.
size_t spare_places(size_t size) {
  return std::max<size_t>(4, static_cast<size_t>(std::countr_zero(size)));
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

// Inserts a key into the table. If the table is too full, returns false and sets the argument to
// the key that did not get a slot. After such a failure, the caller must grow the table.
bool KeyPlaces::find_place(uint64_t& spread) {
  if (2 * (count_ + 1) > size_) return false;
  const auto most = static_cast<int>(spare_places(size_));
  size_t at = spread >> (64 - std::countr_zero(size_));
  for (int distance = 0; distance < most; ++distance, ++at) {
    if (distances_[at] < 0) {
      spreads_[at] = spread;
      distances_[at] = static_cast<int8_t>(distance);
      ++count_;
      return true;
    }
    if (distances_[at] < distance) {  // take the slot and move the other key
      std::swap(spreads_[at], spread);
      const int other = distances_[at];
      distances_[at] = static_cast<int8_t>(distance);
      distance = other;
    }
  }
  return false;
}

void KeyPlaces::grow(uint64_t added, MemoryBudget& budget, const Place& place) {
  std::vector<uint64_t> keys = {added};
  for (size_t at = 0; at < distances_.size(); ++at) {
    if (distances_[at] >= 0) keys.push_back(spreads_[at]);
  }
  for (bool fit = false; !fit;) {
    const size_t before = distances_.size();
    size_ = std::max<size_t>(4, 2 * size_);
    TORCH_CHECK(size_ <= std::max<size_t>(1 << 16, 64 * keys.size()), place,
                "expected dict keys with different hashes, got too many collisions");
    const size_t places = size_ + spare_places(size_);
    budget.take(places * place_bytes, place.error_prefix);
    spreads_.assign(places, 0);
    distances_.assign(places, -1);
    budget.release(before * place_bytes);
    count_ = 0;
    fit = std::all_of(keys.begin(), keys.end(), [&](uint64_t key) { return find_place(key); });
  }
}

void KeyPlaces::insert(size_t hash, MemoryBudget& budget, const Place& place) {
  uint64_t spread = 11400714819323198485U * hash;
  if (!find_place(spread)) grow(spread, budget, place);
}

Containers::~Containers() {
  for (const auto& container : made_) {
    const auto record = records_.find(container.internalToPointer());
    const bool is_checked = record != records_.end() && record->second.height > 0;
    if (is_checked) continue;  // no cycle, and not nested too deeply
    if (container.isList()) container.toList().clear();
    if (container.isGenericDict()) container.toGenericDict().clear();
  }
  while (!made_.empty()) made_.pop_back();  // free a tuple before its items, which are older
}

c10::IValue Containers::keep(c10::IValue container, size_t byte, bool is_ordered_dict) {
  make_room(made_);
  made_.push_back(std::move(container));
  records_[made_.back().internalToPointer()] = {.made_at = byte,
                                                .is_ordered_dict = is_ordered_dict};
  return made_.back();
}

c10::IValue Containers::make_list(size_t byte) {
  take(list_bytes);
  return keep(c10::impl::GenericList(any()), byte);
}

c10::IValue Containers::make_dict(size_t byte, bool is_ordered_dict) {
  take(dict_bytes);
  return keep(empty_dict(), byte, is_ordered_dict);
}

c10::IValue Containers::make_tuple(std::vector<c10::IValue> items, size_t byte) {
  if (items.empty() && !empty_tuple_.isNone()) return empty_tuple_;
  const bool is_empty = items.empty();
  take(tuple_bytes + items.size() * sizeof(c10::IValue));
  auto tuple = keep(c10::ivalue::Tuple::create(std::move(items)), byte);
  if (is_empty) empty_tuple_ = tuple;
  return tuple;
}

bool Containers::is_ordered_dict(const c10::IValue& value) const {
  return is_container(value) && records_.at(value.internalToPointer()).is_ordered_dict;
}

void Containers::append(const c10::IValue& list, c10::ArrayRef<c10::IValue> items) {
  auto& record = records_.at(list.internalToPointer());
  auto elements = list.toList();
  if (const size_t size = elements.size() + items.size(); size > record.room) {
    const size_t room = std::max(2 * record.room, size);
    take(room * sizeof(c10::IValue));
    elements.reserve(room);
    budget_.release(record.room * sizeof(c10::IValue));
    record.room = room;
  }
  for (const auto& item : items) elements.push_back(item);
}

void Containers::insert(const c10::IValue& dict, c10::ArrayRef<c10::IValue> items,
                        const Place& place) {
  auto elements = dict.toGenericDict();
  auto& places = records_.at(dict.internalToPointer()).places;
  if (places == nullptr) places = std::make_unique<KeyPlaces>();
  for (size_t i = 0; i < items.size(); i += 2) {
    const auto& key = items[i];
    TORCH_CHECK(key.isString() || key.isInt(), place, "expected a dict with str or int keys, got ",
                kind_of(key));
    // Repeating a key through the memo requires no additional memory, but takes time proportional
    // to the key's length.
    if (key.isString()) take(key.toStringView().size());
    if (!elements.contains(key)) places->insert(c10::detail::DictKeyHash()(key), budget_, place);
    elements.insert_or_assign(key, items[i + 1]);
  }
}

size_t Containers::height(const c10::IValue& value, size_t depth, size_t inside) {
  if (!is_container(value)) {
    TORCH_CHECK(named(value) == nullptr, Place{error_prefix_, inside},
                "expected only values and tensors, got ", kind_of(value));
    return 0;
  }
  auto& record = records_.at(value.internalToPointer());
  const Place place = {error_prefix_, record.made_at};
  TORCH_CHECK(!record.is_open, place, "expected containers without cycles, got ", kind_of(value),
              " that contains itself");
  TORCH_CHECK(depth + std::max<size_t>(record.height, 1) <= max_depth, place,
              "expected containers nested at most ", max_depth, " levels deep, got deeper nesting");
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
