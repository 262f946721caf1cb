#include "io/pickle_calls.hpp"

#include <ATen/core/Dict.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/jit_type.h>
#include <ATen/ops/empty.h>

#include "io/strided_view.hpp"
#include "io/torch_types.hpp"

namespace sconce::io {

namespace {

struct Callable {
  const char* module;
  const char* name;
  Global global;
};

constexpr std::array callables = {
    Callable{"collections", "OrderedDict", Global::ordered_dict},
    Callable{"collections", "Counter", Global::counter},
    Callable{"torch", "Size", Global::size},
    Callable{"torch._utils", "_rebuild_tensor_v2", Global::tensor_v2},
    Callable{"torch._utils", "_rebuild_tensor_v3", Global::tensor_v3},
    Callable{"torch._utils", "_rebuild_parameter", Global::parameter},
    Callable{"torch._utils", "_rebuild_parameter_with_state", Global::parameter_with_state},
    Callable{"torch._tensor", "_rebuild_from_type_v2", Global::from_type},
    Callable{"torch", "Tensor", Global::tensor_class},
    Callable{"torch.nn.parameter", "Parameter", Global::tensor_class},
    Callable{"torch.storage", "UntypedStorage", Global::untyped_storage_class}};

// Upper bounds on the bytes per tensor, including the bookkeeping for its gradient, and per
// dimension.
constexpr size_t tensor_bytes = 1024, dimension_bytes = 32;

// Returns the arguments of a call one at a time.
class Arguments {
 public:
  Arguments(const c10::IValue& tuple, const Place& place) : place_(place) {
    TORCH_CHECK(tuple.isTuple(), place_, "expected a tuple of arguments, got ", kind_of(tuple));
    items_ = tuple.toTupleRef().elements();
  }

  size_t left() const { return items_.size() - next_; }

  const c10::IValue& next(bool (c10::IValue::*is_kind)() const, const char* what) {
    TORCH_CHECK(left() > 0, place_, "expected ", what, ", got the end of the arguments");
    const auto& value = items_[next_++];
    TORCH_CHECK((value.*is_kind)(), place_, "expected ", what, ", got ", kind_of(value));
    return value;
  }

  const Named& next_named(Global global, const char* what) {
    const auto& value = next(&c10::IValue::isCapsule, what);
    TORCH_CHECK(named(value)->global == global, place_, "expected ", what, ", got ",
                global == Global::dtype ? "another type" : kind_of(value));
    return *named(value);
  }

  std::vector<int64_t> next_integers(const char* what) {
    constexpr size_t most = 64;  // LibTorch's limit; a pickle may repeat a tuple
    const auto items = next(&c10::IValue::isTuple, what).toTupleRef().elements().asArrayRef();
    TORCH_CHECK(items.size() <= most, place_, "expected ", what, " of at most ", most,
                " dimensions, got ", items.size());
    std::vector<int64_t> integers;
    for (const auto& item : items) {
      TORCH_CHECK(item.isInt(), place_, "expected ", what, ", got ", kind_of(item));
      integers.push_back(item.toInt());
    }
    return integers;
  }

  // Skips the tensor's hooks. Hooks are code, so torch.save always writes an empty dict of hooks.
  void skip_hooks() {
    TORCH_CHECK(next(&c10::IValue::isGenericDict, "a dict of hooks").toGenericDict().empty(),
                place_, "expected a tensor without hooks");
  }

  // Skips the attributes that a user set on a tensor. The attributes are either a dict, or a pair
  // of a dict and the attributes in __slots__.
  void skip_attributes() {
    TORCH_CHECK(left() > 0, place_, "expected tensor attributes, got the end of the arguments");
    const auto& value = items_[next_++];
    const bool is_pair = value.isTuple() && value.toTupleRef().elements().size() == 2;
    TORCH_CHECK(value.isNone() || value.isGenericDict() || is_pair, place_,
                "expected a dict of tensor attributes, got ", kind_of(value));
  }

  void finish() const {
    TORCH_CHECK(left() == 0, place_, "expected the end of the arguments, got ", left(), " more");
  }

 private:
  const Place& place_;
  c10::ArrayRef<c10::IValue> items_ = {};
  size_t next_ = 0;
};

void set_requires_grad(const at::Tensor& tensor, bool requires_grad, const Place& place) {
  const auto type = tensor.scalar_type();
  TORCH_CHECK(!requires_grad || c10::isFloatingType(type) || c10::isComplexType(type), place,
              "expected a floating-point or complex tensor to require gradients, got ", type);
  tensor.set_requires_grad(requires_grad);
}

// Sets the bits that mark a tensor as conjugate or negative.
void set_bits(const at::Tensor& tensor, const c10::impl::GenericDict& bits, const Place& place) {
  TORCH_CHECK(bits.size() <= 2, place, "expected only the tensor bits 'conj' and 'neg', got ",
              bits.size(), " names");
  const auto type = tensor.scalar_type();
  for (const auto& bit : bits) {
    const c10::IValue &key = bit.key(), &value = bit.value();
    TORCH_CHECK(key.isString() && value.isBool(), place,
                "expected a str and a bool for each tensor bit, got ", kind_of(key), " and ",
                kind_of(value));
    const auto& name = key.toStringRef();
    const bool conj = name == "conj" && c10::isComplexType(type);
    const bool neg = name == "neg" && (c10::isComplexType(type) || c10::isFloatingType(type));
    TORCH_CHECK(conj || neg, place,
                "expected 'conj' for a complex tensor or 'neg' for a floating-point tensor, got '",
                name, "' of ", type);
    if (conj) tensor._set_conj(value.toBool());
    if (neg) tensor._set_neg(value.toBool());
  }
}

at::Tensor view_of(const c10::Storage& storage, c10::ScalarType type, int64_t offset,
                   c10::IntArrayRef sizes, c10::IntArrayRef strides, const Place& place) {
  const uint64_t elements = storage.nbytes() / c10::elementSize(type);
  TORCH_CHECK(fits_in_storage(offset, sizes, strides, elements), place,
              "expected a tensor that fits in its storage of ", elements, " elements, got offset ",
              offset, ", sizes ", sizes, " and strides ", strides);
  const auto options = at::TensorOptions(type).device(storage.device());
  return at::empty({0}, options).set_(storage, offset, sizes, strides);
}

// Handles _rebuild_tensor_v2 and, for types without a storage class, _rebuild_tensor_v3.
at::Tensor rebuild_tensor(Arguments arguments, bool has_dtype, Containers& containers,
                          const Place& place) {
  const auto& from = arguments.next_named(Global::storage, "a storage");
  const int64_t offset = arguments.next(&c10::IValue::isInt, "an offset").toInt();
  const auto sizes = arguments.next_integers("a tuple of sizes");
  const auto strides = arguments.next_integers("a tuple of strides");
  const bool requires_grad = arguments.next(&c10::IValue::isBool, "requires_grad").toBool();
  arguments.skip_hooks();
  const auto type = has_dtype ? arguments.next_named(Global::dtype, "a dtype").type : from.type;
  containers.take(tensor_bytes + dimension_bytes * sizes.size());
  const auto tensor = view_of(from.storage, type, offset, sizes, strides, place);
  if (arguments.left() > 0) {
    set_bits(tensor, arguments.next(&c10::IValue::isGenericDict, "a dict of bits").toGenericDict(),
             place);
  }
  arguments.finish();
  set_requires_grad(tensor, requires_grad, place);
  return tensor;
}

at::Tensor rebuild_parameter(Arguments arguments, bool has_attributes, Containers& containers,
                             const Place& place) {
  const auto& data = arguments.next(&c10::IValue::isTensor, "a tensor").toTensor();
  const bool requires_grad = arguments.next(&c10::IValue::isBool, "requires_grad").toBool();
  arguments.skip_hooks();
  if (has_attributes) arguments.skip_attributes();
  arguments.finish();
  containers.take(tensor_bytes + dimension_bytes * static_cast<size_t>(data.dim()));
  const auto tensor = data.detach();
  set_requires_grad(tensor, requires_grad, place);
  return tensor;
}

// Handles _rebuild_from_type_v2 for a tensor with attributes. The arguments are, in order, the
// function that creates the tensor, the tensor's class, the function's arguments, and the tensor's
// attributes.
c10::IValue rebuild_with_attributes(Arguments arguments, Containers& containers,
                                    const Place& place) {
  const auto& function = arguments.next(&c10::IValue::isCapsule, "a function");
  const auto global = named(function)->global;
  TORCH_CHECK(
      global == Global::tensor_v2 || global == Global::tensor_v3 || global == Global::parameter,
      place, "expected a function that creates a tensor, got a different kind of function");
  arguments.next_named(Global::tensor_class, "a tensor class");
  const auto& function_arguments = arguments.next(&c10::IValue::isTuple, "a tuple of arguments");
  arguments.skip_attributes();
  arguments.finish();
  return call_global(function, function_arguments, containers, place);
}

c10::IValue new_dict(Arguments arguments, Global global, Containers& containers,
                     const Place& place) {
  if (global == Global::counter && arguments.left() > 0) {  // the dict is not referenced elsewhere
    const auto& dict = arguments.next(&c10::IValue::isGenericDict, "a dict of counts");
    arguments.finish();
    return dict;
  }
  arguments.finish();
  return containers.make_dict(place.byte, global == Global::ordered_dict);
}

}  // namespace

c10::IValue find_global(std::string_view module, std::string_view name, Containers& containers,
                        const Place& place) {
  containers.take(named_bytes);
  for (const auto& callable : callables) {
    if (module == callable.module && name == callable.name) return capsule(callable.global);
  }
  const auto* storage = find_torch_type(
      [&](const TorchType& type) { return type.storage != nullptr && name == type.storage; });
  const auto* dtype = find_torch_type([&](const TorchType& type) { return name == type.name; });
  const bool is_known = module == "torch" && (storage != nullptr || dtype != nullptr);
  TORCH_CHECK(is_known, place,
              "expected a type that is allowed in a state dict of strided tensors, got the global ",
              module, ".", name);
  return storage != nullptr ? capsule(Global::storage_class, storage->type)
                            : capsule(Global::dtype, dtype->type);
}

c10::IValue call_global(const c10::IValue& global, const c10::IValue& arguments,
                        Containers& containers, const Place& place) {
  const auto* what = named(global);
  TORCH_CHECK(what != nullptr && what->global != Global::storage, place,
              "expected a callable, got ", kind_of(global));
  Arguments given(arguments, place);
  switch (what->global) {
    case Global::ordered_dict:
    case Global::counter:
      return new_dict(given, what->global, containers, place);
    case Global::size: {
      const auto sizes =
          given.left() > 0 ? given.next(&c10::IValue::isTuple, "a tuple") : arguments;
      given.finish();
      return sizes;
    }
    case Global::tensor_v2:
      return rebuild_tensor(given, /*has_dtype=*/false, containers, place);
    case Global::tensor_v3:
      return rebuild_tensor(given, /*has_dtype=*/true, containers, place);
    case Global::parameter:
      return rebuild_parameter(given, /*has_attributes=*/false, containers, place);
    case Global::parameter_with_state:
      return rebuild_parameter(given, /*has_attributes=*/true, containers, place);
    case Global::from_type:
      return rebuild_with_attributes(given, containers, place);
    case Global::tensor_class:
    case Global::storage_class:
    case Global::untyped_storage_class:
    case Global::dtype:
    case Global::storage:
      break;
  }
  TORCH_CHECK(false, place, "expected a callable, got a dtype or a class");
}

std::optional<c10::ScalarType> storage_type(const c10::IValue& global, const Place& place) {
  const auto* what = named(global);
  if (what != nullptr && what->global == Global::untyped_storage_class) return std::nullopt;
  TORCH_CHECK(what != nullptr && what->global == Global::storage_class, place,
              "expected a storage class, got ", kind_of(global));
  return what->type;
}

}  // namespace sconce::io
