#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type_base.h>
#include <c10/core/Device.h>
#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/ScalarType.h>
#include <c10/util/complex.h>

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "program/size.hpp"

namespace sconce::program::detail {

/// A tensor in a program, identified by its number.
struct ValueId {
  bool operator==(const ValueId&) const = default;

  size_t id;
};

/// A number that autograd and LibTorch scalar operators pass instead of a tensor.
struct WrappedNumber {
  bool operator==(const WrappedNumber&) const = default;

  std::variant<Size, bool, double, c10::complex<double>> number;
};

/// An argument or a result of a call. A result contains the numbers of the tensors, with the same
/// nesting as the operator's return value. An empty value is None, or a result that is not kept.
struct Argument {
  using List = std::vector<Argument>;
  using Any = std::variant<std::monostate, bool, Size, double, c10::complex<double>, std::string,
                           ValueId, WrappedNumber, c10::ScalarType, c10::Layout, c10::MemoryFormat,
                           c10::DeviceType, List>;

  bool operator==(const Argument&) const = default;

  Any value = {};
};

/// Calls `f` with the number of each tensor in the argument.
void for_each_value(const Argument& argument, const std::function<void(size_t)>& f);

/// Returns whether the argument is independent of the tensors, the sizes, and the device.
bool is_fixed(const Argument& argument);

/// Returns the argument for a parameter of the given type. `name` assigns numbers to tensors, and
/// returns null for an undefined tensor.
/// @throw c10::Error for a value that programs do not support, such as a generator.
Argument argument_of(const c10::IValue& value, const c10::Type& type,
                     const std::function<Argument(const at::Tensor&)>& name);

/// The parts of a run on which arguments depend.
struct Environment {
  const std::vector<at::Tensor>& values;
  c10::IntArrayRef sizes;
  c10::DeviceType recorded_on;  // `device` replaces it
  c10::Device device;
};

/// Returns the argument for a parameter of the given type.
/// @throw c10::Error with the expected and the actual type if they differ.
c10::IValue value_of(const Argument& argument, const c10::Type& type, const Environment& in);

}  // namespace sconce::program::detail
