#include "io/pickle_calls.hpp"

#include <ATen/ops/empty.h>

#include "io/strided_view.hpp"
#include "io/torch_types.hpp"

namespace sconce::io {

namespace {

enum class Global : uint8_t {
  ordered_dict,
  counter,
  size,
  tensor_v2,
  tensor_v3,
  parameter,
  storage_class,
  dtype
};

struct Named {
  const char* module;
  const char* name;
  Global global;
};

constexpr std::array callables = {Named{"collections", "OrderedDict", Global::ordered_dict},
                                  Named{"collections", "Counter", Global::counter},
                                  Named{"torch", "Size", Global::size},
                                  Named{"torch._utils", "_rebuild_tensor_v2", Global::tensor_v2},
                                  Named{"torch._utils", "_rebuild_tensor_v3", Global::tensor_v3},
                                  Named{"torch._utils", "_rebuild_parameter", Global::parameter}};

Value global_value(Global global, c10::ScalarType type = c10::kByte) {
  return {Kind::global, static_cast<int64_t>(global) << 8 | static_cast<int64_t>(type)};
}

Global global_of(const Value& value) {
  return static_cast<Global>(value.number >> 8);
}

c10::ScalarType type_of(const Value& value) {
  return static_cast<c10::ScalarType>(value.number & 0xFF);
}

// Hands out the arguments of a call one by one.
class Arguments {
 public:
  Arguments(const Value& tuple, const Values& values, const Place& place)
      : values_(values), place_(place) {
    TORCH_CHECK(tuple.kind == Kind::tuple, place_, "expected a tuple of arguments, got ",
                tuple.kind);
    items_ = &values.containers[tuple.index()].items;
  }

  size_t left() const { return items_->size() - next_; }

  const Value& next(Kind kind, const char* what) {
    TORCH_CHECK(left() > 0, place_, "expected ", what, ", got no further argument");
    const Value& value = (*items_)[next_++];
    TORCH_CHECK(value.kind == kind, place_, "expected ", what, ", got ", value.kind);
    return value;
  }

  const std::vector<Value>& next_items(Kind kind, const char* what) {
    return values_.containers[next(kind, what).index()].items;
  }

  std::vector<int64_t> next_integers(const char* what) {
    constexpr size_t most = 64;  // as LibTorch's own loops; a pickle may name one tuple very often
    const auto& items = next_items(Kind::tuple, what);
    TORCH_CHECK(items.size() <= most, place_, "expected ", what, " of at most ", most,
                " dimensions, got ", items.size());
    std::vector<int64_t> integers;
    for (const Value& item : items) {
      TORCH_CHECK(item.kind == Kind::integer, place_, "expected ", what, ", got ", item.kind);
      integers.push_back(item.number);
    }
    return integers;
  }

  // torch.save writes an empty dict, since hooks are code.
  void skip_hooks() {
    TORCH_CHECK(next_items(Kind::dict, "a dict of hooks").empty(), place_,
                "expected a tensor without hooks");
  }

  void finish() const {
    TORCH_CHECK(left() == 0, place_, "expected no further argument, got ", left());
  }

 private:
  const Values& values_;
  const Place& place_;
  const std::vector<Value>* items_ = nullptr;
  size_t next_ = 0;
};

void set_requires_grad(const at::Tensor& tensor, bool requires_grad, const Place& place) {
  const auto type = tensor.scalar_type();
  TORCH_CHECK(!requires_grad || c10::isFloatingType(type) || c10::isComplexType(type), place,
              "expected a floating or complex tensor to require gradients, got ", type);
  tensor.set_requires_grad(requires_grad);
}

// Sets the bits that say that the numbers are to be read conjugated or negated.
void set_bits(const at::Tensor& tensor, const std::vector<Value>& items, const Values& values,
              const Place& place) {
  TORCH_CHECK(items.size() <= 4, place, "expected only 'conj' and 'neg' of a tensor, got ",
              items.size() / 2, " names");
  const auto type = tensor.scalar_type();
  for (size_t i = 0; i < items.size(); i += 2) {
    TORCH_CHECK(items[i].kind == Kind::text && items[i + 1].kind == Kind::boolean, place,
                "expected a tensor's bits by name, got ", items[i].kind, " and ",
                items[i + 1].kind);
    const auto& name = values.texts[items[i].index()].toStringRef();
    const bool conj = name == "conj" && c10::isComplexType(type);
    const bool neg = name == "neg" && (c10::isComplexType(type) || c10::isFloatingType(type));
    TORCH_CHECK(conj || neg, place,
                "expected 'conj' of a complex or 'neg' of a floating tensor, "
                "got '",
                name, "' of ", type);
    if (conj) tensor._set_conj(items[i + 1].number != 0);
    if (neg) tensor._set_neg(items[i + 1].number != 0);
  }
}

at::Tensor view_of(const c10::Storage& storage, c10::ScalarType type, int64_t offset,
                   c10::IntArrayRef sizes, c10::IntArrayRef strides, const Place& place) {
  const uint64_t elements = storage.nbytes() / c10::elementSize(type);
  TORCH_CHECK(lies_inside(offset, sizes, strides, elements), place, "expected a tensor inside its ",
              "storage of ", elements, " elements, got offset ", offset, ", sizes ", sizes,
              " and strides ", strides);
  const auto options = at::TensorOptions(type).device(storage.device());
  return at::empty({0}, options).set_(storage, offset, sizes, strides);
}

// _rebuild_tensor_v2, and _rebuild_tensor_v3 for types that have no class of storages.
at::Tensor rebuild_tensor(Arguments arguments, bool has_dtype, const Values& values,
                          const Place& place) {
  const auto& from = values.storages[arguments.next(Kind::storage, "a storage").index()];
  const int64_t offset = arguments.next(Kind::integer, "an offset").number;
  const auto sizes = arguments.next_integers("a tuple of sizes");
  const auto strides = arguments.next_integers("a tuple of strides");
  const bool requires_grad = arguments.next(Kind::boolean, "requires_grad").number != 0;
  arguments.skip_hooks();
  auto type = from.type;
  if (has_dtype) {
    const Value& dtype = arguments.next(Kind::global, "a dtype");
    TORCH_CHECK(global_of(dtype) == Global::dtype, place, "expected a dtype, got another type");
    type = type_of(dtype);
  }
  const auto tensor = view_of(from.storage, type, offset, sizes, strides, place);
  if (arguments.left() > 0) {
    set_bits(tensor, arguments.next_items(Kind::dict, "a dict of bits"), values, place);
  }
  arguments.finish();
  set_requires_grad(tensor, requires_grad, place);
  return tensor;
}

at::Tensor rebuild_parameter(Arguments arguments, const Values& values, const Place& place) {
  const auto& data = values.tensors[arguments.next(Kind::tensor, "a tensor").index()];
  const bool requires_grad = arguments.next(Kind::boolean, "requires_grad").number != 0;
  arguments.skip_hooks();
  arguments.finish();
  const auto tensor = data.detach();
  set_requires_grad(tensor, requires_grad, place);
  return tensor;
}

Value new_dict(Arguments arguments, Global global, Values& values, const Place& place) {
  if (global == Global::counter && arguments.left() > 0) {  // the dict is nobody else's
    const Value dict = arguments.next(Kind::dict, "a dict of counts");
    arguments.finish();
    return dict;
  }
  arguments.finish();
  values.containers.push_back({.kind = Kind::dict,
                               .is_ordered_dict = global == Global::ordered_dict,
                               .made_at = place.byte});
  return {Kind::dict, static_cast<int64_t>(values.containers.size() - 1)};
}

Value tensor_value(at::Tensor tensor, Values& values) {
  values.tensors.push_back(std::move(tensor));
  return {Kind::tensor, static_cast<int64_t>(values.tensors.size() - 1)};
}

}  // namespace

Value find_global(std::string_view module, std::string_view name, const Place& place) {
  for (const auto& callable : callables) {
    if (module == callable.module && name == callable.name) return global_value(callable.global);
  }
  if (module == "torch.storage" && name == "UntypedStorage") {
    return global_value(Global::storage_class);
  }
  const auto* storage = find_torch_type(
      [&](const TorchType& type) { return type.storage != nullptr && name == type.storage; });
  const auto* dtype = find_torch_type([&](const TorchType& type) { return name == type.name; });
  const bool is_known = module == "torch" && (storage != nullptr || dtype != nullptr);
  TORCH_CHECK(is_known, place, "expected the types of a state dict of strided tensors, got ",
              "the global ", module, ".", name, ", which is not loaded");
  return storage != nullptr ? global_value(Global::storage_class, storage->type)
                            : global_value(Global::dtype, dtype->type);
}

Value call_global(const Value& global, const Value& arguments, Values& values, const Place& place) {
  TORCH_CHECK(global.kind == Kind::global, place, "expected something to call, got ", global.kind);
  Arguments given(arguments, values, place);
  switch (global_of(global)) {
    case Global::ordered_dict:
    case Global::counter:
      return new_dict(given, global_of(global), values, place);
    case Global::size: {
      const Value sizes = given.left() > 0 ? given.next(Kind::tuple, "a tuple") : arguments;
      given.finish();
      return sizes;
    }
    case Global::tensor_v2:
      return tensor_value(rebuild_tensor(given, /*has_dtype=*/false, values, place), values);
    case Global::tensor_v3:
      return tensor_value(rebuild_tensor(given, /*has_dtype=*/true, values, place), values);
    case Global::parameter:
      return tensor_value(rebuild_parameter(given, values, place), values);
    case Global::storage_class:
    case Global::dtype:
      break;
  }
  TORCH_CHECK(false, place, "expected something to call, got a dtype or a class of storages");
}

c10::ScalarType storage_type(const Value& global, const Place& place) {
  TORCH_CHECK(global.kind == Kind::global && global_of(global) == Global::storage_class, place,
              "expected a class of storages, got ", global.kind);
  return type_of(global);
}

}  // namespace sconce::io
