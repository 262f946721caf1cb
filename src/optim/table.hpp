#pragma once

// The table that describes an optimizer. This is an internal header of src/optim.

#include <ATen/core/Tensor.h>

#include <vector>

#include "optim/packed_numbers.hpp"

namespace sconce::optim {

/// The members that each optimizer `Class` defines in a specialization in its source file:
/// - `Options`, `State`, and `Bucket`, the tensors that share a kernel call;
/// - `name`, and `fastest`, the fastest kernels. All slower kernels must also be available;
/// - `fields`, an array of all tensors in a state with Python's keys, in Python's order;
/// - `visit_options(options, visit)`, which calls `visit(key, option)` for each option, in Python's
///   order, or `visit(key, option, otherwise)` if older states do not contain the option;
/// - `check(options, expect)`, which rejects the options that Python rejects;
/// - `step(buckets, step)`, which updates all parameters in a group with the same operations as
///   Python, in the same order.
///
/// Optional members:
/// - `uses(options, field)`: whether the options need an optional field;
/// - `has_capturable`: whether Python's class accepts this argument;
/// - `supports_sparse`: whether kernels other than an explicit `Kernels::fused` support sparse
///   gradients, and `check_sparse(options, name)`, which rejects options that are incompatible with
///   them;
/// - `python_has_fused_on_cpu_only`;
/// - `starts_with_states`: whether a new optimizer has states before its first step;
/// - `is_empty(state)`: whether the state is saved as though it contained no tensors;
/// - `fill(state, defaults)`, which sets values in a new state that the fields do not define.
///
/// A Bucket may also define `takes(state)`, `add(state)`, and `seal(states)` for anything that the
/// fields do not cover.
template <class Class>
struct Table;

/// Determines when a state contains the tensor of a field.
enum class Needed {
  always,
  by_options,      ///< from the first step whose options use it
  from_first_step  ///< from the first step, if the options use it
};

/// One tensor in a state. Exactly one of `list` and `numbers` is null.
template <class State, class Bucket>
struct Field {
  const char* key;
  at::Tensor State::* member;
  std::vector<at::Tensor> Bucket::* list = nullptr;  ///< for a tensor with the parameter's shape
  PackedNumbers Bucket::* numbers = nullptr;         ///< for a number
  Needed needed = Needed::always;
  double first = 0;       ///< initial value in a new state
  bool is_count = false;  ///< whether archives store it as an integer, as in LibTorch
};

/// A step count.
template <class State, class Bucket>
constexpr Field<State, Bucket> count(const char* key, at::Tensor State::* member,
                                     PackedNumbers Bucket::* numbers) {
  return {.key = key, .member = member, .numbers = numbers, .is_count = true};
}

/// Any other number. Its initial value is `first`.
template <class State, class Bucket>
constexpr Field<State, Bucket> number(const char* key, at::Tensor State::* member,
                                      PackedNumbers Bucket::* numbers, double first) {
  return {.key = key, .member = member, .numbers = numbers, .first = first};
}

/// A tensor with the same shape as the parameter.
template <class State, class Bucket>
constexpr Field<State, Bucket> like_parameter(const char* key, at::Tensor State::* member,
                                              std::vector<at::Tensor> Bucket::* list,
                                              Needed needed = Needed::always) {
  return {.key = key, .member = member, .list = list, .needed = needed};
}

}  // namespace sconce::optim
