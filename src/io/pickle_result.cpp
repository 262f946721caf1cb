#include "io/pickle_result.hpp"

#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <ATen/core/jit_type.h>

#include <algorithm>
#include <bit>

#include "io/dict_table.hpp"

namespace sconce::io {

namespace {

class Converter {
 public:
  Converter(const Values& values, const std::string& who)
      : values_(values), who_(who), done_(values.containers.size()) {}

  c10::IValue convert(const Value& value, size_t depth, size_t inside) {
    switch (value.kind) {
      case Kind::none:
        return {};
      case Kind::boolean:
        return value.number != 0;
      case Kind::integer:
        return value.number;
      case Kind::real:
        return std::bit_cast<double>(value.number);
      case Kind::text:
        return values_.texts[value.index()];
      case Kind::tensor:
        return values_.tensors[value.index()];
      case Kind::list:
      case Kind::tuple:
      case Kind::dict:
        return container(value.index(), depth + 1);
      case Kind::global:
      case Kind::storage:
        break;
    }
    TORCH_CHECK(false, Place{who_, inside}, "expected values and tensors, got ", value.kind);
  }

 private:
  enum class State : uint8_t { untouched, begun, finished };
  struct Done {
    c10::IValue value = {};
    size_t height = 0;  // containers in each other, with this one
    State state = State::untouched;
  };

  c10::IValue container(size_t index, size_t depth) {
    const auto& from = values_.containers[index];
    auto& done = done_[index];
    TORCH_CHECK(done.state != State::begun, Place{who_, from.made_at},
                "expected no container that holds itself, got ", from.kind, " that does");
    TORCH_CHECK(depth + std::max<size_t>(done.height, 1) - 1 <= max_depth,
                Place{who_, from.made_at}, "expected containers at most ", max_depth,
                " deep in each other, got more");
    if (done.state == State::finished) return done.value;
    done.state = State::begun;
    done.value = from.kind == Kind::list    ? list(from, depth)
                 : from.kind == Kind::tuple ? tuple(from, depth)
                                            : dict(from, depth);
    for (const Value& item : from.items) {
      const bool is_container =
          item.kind == Kind::list || item.kind == Kind::tuple || item.kind == Kind::dict;
      if (is_container) done.height = std::max(done.height, done_[item.index()].height);
    }
    ++done.height;
    done.state = State::finished;
    return done.value;
  }

  c10::IValue list(const Container& from, size_t depth) {
    c10::impl::GenericList list(c10::AnyType::get());
    list.reserve(from.items.size());
    for (const Value& item : from.items) list.push_back(convert(item, depth, from.made_at));
    return list;
  }

  c10::IValue tuple(const Container& from, size_t depth) {
    std::vector<c10::IValue> items;
    items.reserve(from.items.size());
    for (const Value& item : from.items) items.push_back(convert(item, depth, from.made_at));
    return c10::ivalue::Tuple::create(std::move(items));
  }

  c10::IValue dict(const Container& from, size_t depth) {
    std::vector<HashedKey> keys;
    keys.reserve(from.items.size() / 2);
    for (size_t i = 0; i < from.items.size(); i += 2) {
      const Value& key = from.items[i];
      TORCH_CHECK(key.kind == Kind::text || key.kind == Kind::integer, Place{who_, from.made_at},
                  "expected a dict with keys of str or int, got ", key.kind);
      keys.push_back(hashed(convert(key, depth, from.made_at)));
    }
    take_slots(std::move(keys), from.made_at);
    c10::impl::GenericDict dict(c10::AnyType::get(), c10::AnyType::get());
    dict.reserve(from.items.size() / 2);
    for (size_t i = 0; i < from.items.size(); i += 2) {
      dict.insert_or_assign(convert(from.items[i], depth, from.made_at),
                            convert(from.items[i + 1], depth, from.made_at));
    }
    return dict;
  }

  // Keys that happen to lie close together may cost some memory, but all dicts together not much.
  void take_slots(std::vector<HashedKey> keys, size_t made_at) {
    const uint64_t usual = 16 * keys.size();
    const uint64_t slots = dict_slots(std::move(keys), usual + spare_slots_);
    TORCH_CHECK(slots <= usual + spare_slots_, Place{who_, made_at},
                "expected a dict with keys that differ in their hashes");
    if (slots > usual) spare_slots_ -= slots - usual;
  }

  const Values& values_;
  const std::string& who_;
  std::vector<Done> done_;                    // by container
  uint64_t spare_slots_ = uint64_t{1} << 18;  // of some 60 bytes
};

}  // namespace

c10::IValue to_ivalue(const Value& value, const Values& values, const std::string& who) {
  return Converter(values, who).convert(value, 0, 0);
}

}  // namespace sconce::io
