#pragma once

// The table of an optimizer. For the sources of this folder.

#include <ATen/core/Tensor.h>

#include <vector>

#include "optim/packed_numbers.hpp"

namespace sconce::optim {

/// What each optimizer `Class` defines in its source, as a specialization:
/// - `Options`, `State` and `Bucket`, the tensors that its kernels take together;
/// - `name`, and `fastest`: the kernels after it are there too;
/// - `fields`, an array of all tensors of a state by Python's keys, in Python's order;
/// - `visit_options(options, visit)`, which calls `visit(key, option)` for each option, in Python's
///   order, or `visit(key, option, otherwise)` if older states lack it;
/// - `check(options, expect)`, which refuses what Python refuses;
/// - `step(buckets, step)`, which steps all parameters of a group by Python's operations, in the
///   order in which Python calls them.
///
/// It may also define:
/// - `uses(options, field)`: whether the options need an optional field;
/// - `has_capturable`: whether Python's class has the argument;
/// - `takes_sparse`: whether kernels other than a given `Kernels::fused` take sparse gradients, and
///   `check_sparse(options, name)`, which refuses options that do not go with one;
/// - `python_has_fused_on_cpu_only`;
/// - `starts_with_states`: whether a new optimizer has states before its first step;
/// - `is_empty(state)`: whether the state is saved as if it had no tensors;
/// - `fill(state, defaults)`, which sets the values of a new state that the fields do not give.
///
/// A Bucket may also define `takes(state)`, `add(state)` and `seal(states)`, which do what the
/// fields do not say.
template <class Class>
struct Table;

/// When a state has the tensor of a field.
enum class Needed {
  always,
  by_options,      ///< from the first step in which the options use it
  from_first_step  ///< a step makes it, if the options use it
};

/// One tensor of a state. Of the last two members one is null.
template <class State, class Bucket>
struct Field {
  const char* key;
  at::Tensor State::* member;
  std::vector<at::Tensor> Bucket::* list = nullptr;  ///< of a tensor that is like the parameter
  PackedNumbers Bucket::* numbers = nullptr;         ///< of a number
  Needed needed = Needed::always;
  double first = 0;       ///< its value in a new state
  bool is_count = false;  ///< whether archives have it as an integer, as LibTorch's do
};

/// A number of steps.
template <class State, class Bucket>
constexpr Field<State, Bucket> count(const char* key, at::Tensor State::* member,
                                     PackedNumbers Bucket::* numbers) {
  return {.key = key, .member = member, .numbers = numbers, .is_count = true};
}

/// Another number, which begins at `first`.
template <class State, class Bucket>
constexpr Field<State, Bucket> number(const char* key, at::Tensor State::* member,
                                      PackedNumbers Bucket::* numbers, double first) {
  return {.key = key, .member = member, .numbers = numbers, .first = first};
}

/// A tensor that is like the parameter.
template <class State, class Bucket>
constexpr Field<State, Bucket> like_parameter(const char* key, at::Tensor State::* member,
                                              std::vector<at::Tensor> Bucket::* list,
                                              Needed needed = Needed::always) {
  return {.key = key, .member = member, .list = list, .needed = needed};
}

}  // namespace sconce::optim
