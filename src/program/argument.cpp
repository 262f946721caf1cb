#include "program/argument.hpp"

#include <ATen/ScalarOps.h>
#include <ATen/core/List.h>
#include <ATen/core/jit_type.h>

#include <algorithm>
#include <utility>

namespace sconce::program::detail {

namespace {

using c10::TypeKind;

// Returns the type without an Optional wrapper.
const c10::Type& plain(const c10::Type& type) {
  return type.kind() == TypeKind::OptionalType
             ? plain(*type.expectRef<c10::OptionalType>().getElementType())
             : type;
}

WrappedNumber wrapped_number(const at::Tensor& tensor) {
  const auto number = tensor.item();
  if (number.isBoolean()) return {number.toBool()};
  if (number.isIntegral(false)) return {Size(number.toLong())};
  if (number.isComplex()) return {number.toComplexDouble()};
  return {number.toDouble()};
}

Argument::Any integer_of(int64_t value, const c10::Type& type) {
  switch (type.kind()) {
    case TypeKind::ScalarTypeType:
      return static_cast<c10::ScalarType>(value);
    case TypeKind::LayoutType:
      return static_cast<c10::Layout>(value);
    case TypeKind::MemoryFormatType:
      return static_cast<c10::MemoryFormat>(value);
    default:
      return Size(value);
  }
}

const c10::Type& element_of(const c10::Type& list) {
  return *list.expectRef<c10::ListType>().getElementType();
}

template <class T>
c10::IValue list_of(const std::vector<c10::IValue>& elements) {
  c10::List<T> list;
  list.reserve(elements.size());
  for (const auto& element : elements) list.push_back(element.to<T>());
  return list;
}

c10::IValue list_of(const std::vector<c10::IValue>& elements, const c10::Type& type) {
  if (type.kind() == TypeKind::OptionalType) return list_of<std::optional<at::Tensor>>(elements);
  switch (type.kind()) {
    case TypeKind::TensorType:
      return list_of<at::Tensor>(elements);
    case TypeKind::IntType:
    case TypeKind::SymIntType:
      return list_of<int64_t>(elements);
    case TypeKind::FloatType:
      return list_of<double>(elements);
    case TypeKind::BoolType:
      return list_of<bool>(elements);
    case TypeKind::NumberType:
      return list_of<at::Scalar>(elements);
    default:
      TORCH_CHECK(false, "expected a list whose element type programs support, got ", type.str());
  }
}

}  // namespace

void for_each_value(const Argument& argument, const std::function<void(size_t)>& f) {
  if (const auto* value = std::get_if<ValueId>(&argument.value)) f(value->id);
  if (const auto* list = std::get_if<Argument::List>(&argument.value)) {
    for (const auto& element : *list) for_each_value(element, f);
  }
}

bool is_fixed(const Argument& argument) {
  const auto& value = argument.value;
  if (const auto* size = std::get_if<Size>(&value)) return size->constant().has_value();
  if (const auto* wrapped = std::get_if<WrappedNumber>(&value)) {
    const auto* size = std::get_if<Size>(&wrapped->number);
    return size == nullptr || size->constant().has_value();
  }
  if (const auto* list = std::get_if<Argument::List>(&value)) {
    return std::all_of(list->begin(), list->end(), is_fixed);
  }
  return !std::holds_alternative<ValueId>(value) && !std::holds_alternative<c10::DeviceType>(value);
}

Argument argument_of(const c10::IValue& value, const c10::Type& given,
                     const std::function<Argument(const at::Tensor&)>& name) {
  const auto& type = plain(given);
  if (value.isNone()) return {};
  if (value.isTensor()) {
    const auto& tensor = value.toTensor();
    if (!tensor.defined()) return {};
    const bool is_number = tensor.unsafeGetTensorImpl()->is_wrapped_number();
    return is_number ? Argument{wrapped_number(tensor)} : name(tensor);
  }
  if (value.isBool()) return {value.toBool()};
  if (value.isInt()) return {integer_of(value.toInt(), type)};
  if (value.isDouble()) return {value.toDouble()};
  if (value.isComplexDouble()) return {value.toComplexDouble()};
  if (value.isString()) return {value.toStringRef()};
  if (value.isDevice()) return {value.toDevice().type()};
  TORCH_CHECK(value.isList(), "expected an argument type that programs support, got ",
              value.tagKind());
  Argument::List list;
  for (const c10::IValue& element : value.toListRef()) {
    list.push_back(argument_of(element, element_of(type), name));
  }
  return {std::move(list)};
}

namespace {

// Creates the value for one kind of argument. Each overload returns std::nullopt if the parameter
// has a different type.
struct ValueMaker {
  using Result = std::optional<c10::IValue>;

  Result operator()(std::monostate) const {
    return when(declared.kind() == TypeKind::OptionalType, c10::IValue());
  }
  Result operator()(bool value) const { return when(is(TypeKind::BoolType) || is_number(), value); }
  Result operator()(const Size& size) const {
    return when(is(TypeKind::IntType) || is(TypeKind::SymIntType) || is_number(),
                size.at(in.sizes));
  }
  Result operator()(double value) const {
    return when(is(TypeKind::FloatType) || is_number(), value);
  }
  Result operator()(c10::complex<double> value) const { return when(is_number(), value); }
  Result operator()(const std::string& text) const { return when(is(TypeKind::StringType), text); }
  Result operator()(ValueId value) const {
    return when(is(TypeKind::TensorType), in.values[value.id]);
  }
  Result operator()(const WrappedNumber& wrapped) const {
    if (!is(TypeKind::TensorType)) return {};
    const auto scalar = std::visit([this](const auto& n) { return scalar_of(n); }, wrapped.number);
    return at::native::wrapped_scalar_tensor(scalar);
  }
  Result operator()(c10::ScalarType value) const {
    return when(is(TypeKind::ScalarTypeType), static_cast<int64_t>(value));
  }
  Result operator()(c10::Layout value) const {
    return when(is(TypeKind::LayoutType), static_cast<int64_t>(value));
  }
  Result operator()(c10::MemoryFormat value) const {
    return when(is(TypeKind::MemoryFormatType), static_cast<int64_t>(value));
  }
  Result operator()(c10::DeviceType value) const {
    return when(is(TypeKind::DeviceObjType),
                value == in.recorded_on ? in.device : c10::Device(value));
  }
  Result operator()(const Argument::List& list) const {
    if (!is(TypeKind::ListType)) return {};
    std::vector<c10::IValue> elements;
    for (const auto& element : list) elements.push_back(value_of(element, element_of(type), in));
    return list_of(elements, element_of(type));
  }

  at::Scalar scalar_of(const auto& number) const { return number; }
  at::Scalar scalar_of(const Size& size) const { return size.at(in.sizes); }
  bool is(TypeKind kind) const { return type.kind() == kind; }
  bool is_number() const { return is(TypeKind::NumberType); }
  static Result when(bool fits, c10::IValue value) {
    return fits ? Result(std::move(value)) : Result();
  }

  const c10::Type& declared;
  const c10::Type& type;
  const Environment& in;
};

const char* kind_of(const Argument& argument) {
  static constexpr const char* names[] = {
      "None",     "a boolean", "an integer", "a float",  "a complex number", "a string",
      "a tensor", "a number",  "a dtype",    "a layout", "a memory format",  "a device",
      "a list"};
  static_assert(std::size(names) == std::variant_size_v<Argument::Any>);
  return names[argument.value.index()];
}

}  // namespace

c10::IValue value_of(const Argument& argument, const c10::Type& type, const Environment& in) {
  auto value = std::visit(ValueMaker{type, plain(type), in}, argument.value);
  TORCH_CHECK(value.has_value(), "expected ", type.str(), ", got ", kind_of(argument));
  return *std::move(value);
}

}  // namespace sconce::program::detail
