#include "program/tracer.hpp"

#include <c10/util/Exception.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "capture/aliases.hpp"
#include "capture/for_each_tensor.hpp"
#include "capture/known_operators.hpp"
#include "program/refusals.hpp"

namespace sconce::program::detail {

namespace {

using sconce::detail::fills;
using sconce::detail::for_each_tensor;
using sconce::detail::has_trait;
using sconce::detail::have_same_layout;
using sconce::detail::Trait;
using sconce::detail::writes;

// Converts an operator's result to an argument. The `number` function returns each tensor's number.
Argument result_of(const c10::IValue& value,
                   const std::function<size_t(const at::Tensor&)>& number) {
  if (value.isTensor() && value.toTensor().defined()) return {ValueId{number(value.toTensor())}};
  if (!value.isTensorList()) return {};
  Argument::List list;
  for (const at::Tensor& tensor : value.toTensorVector()) {
    list.push_back(tensor.defined() ? Argument{ValueId{number(tensor)}} : Argument{});
  }
  return {std::move(list)};
}

bool any_shares_memory(c10::ArrayRef<c10::IValue> values, const at::Tensor& tensor) {
  bool shares = false;
  for_each_tensor(values, [&](const at::Tensor& value) {
    shares |= value.defined() && value.storage().is_alias_of(tensor.storage());
  });
  return shares;
}

}  // namespace

Tracer::Tracer(const std::vector<Input>& inputs, const std::vector<Weight>& weights)
    : device_(inputs.front().tensor.device()) {
  for (const auto& input : inputs) add(input.tensor, values_.size(), Owner::input, input.name);
  for (const auto& weight : weights) {
    if (weight.value == values_.size()) {
      add(weight.tensor, weight.value, Owner::weight, weight.name);
    }
  }
}

void Tracer::add(const at::Tensor& tensor, size_t id, Owner owner, const std::string& name) {
  values_.push_back(tensor);
  ids_[tensor.unsafeGetTensorImpl()] = id;
  auto& memory =
      memory_.try_emplace(tensor.storage().unsafeGetStorageImpl(), Memory{owner, name, {}, {}})
          .first->second;
  memory.values.push_back(id);
}

Tracer::Memory* Tracer::memory_of(const at::Tensor& tensor) {
  const auto found = memory_.find(tensor.storage().unsafeGetStorageImpl());
  return found == memory_.end() ? nullptr : &found->second;
}

// Stores a copy in the program, because the host may modify the tensor after the run.
void Tracer::keep_constant(size_t id) {
  const auto& tensor = values_[id];
  constants_.push_back({.name = "",
                        .kind = WeightKind::constant,
                        .value = id,
                        .tensor = tensor.detach().clone(),
                        .device = tensor.device().type()});
}

size_t Tracer::add_constant(const at::Tensor& tensor) {
  const size_t id = values_.size();
  add(tensor, id, Owner::constant, "");
  keep_constant(id);
  return id;
}

// Called when an operator reads memory that was allocated but never written by an operator. Such
// memory was written by the host, for example by `torch::tensor`, so the memory becomes a constant
// and does not need an allocation.
void Tracer::keep_host_writes(Memory& memory) {
  const size_t id = memory.values.front();
  is_dropped_[*memory.allocation] = true;
  memory.allocation.reset();
  memory.owner = Owner::constant;
  keep_constant(id);
}

size_t Tracer::number_of(const at::Tensor& tensor) {
  const auto known = ids_.find(tensor.unsafeGetTensorImpl());
  if (known != ids_.end()) return known->second;
  const auto* memory = memory_of(tensor);
  if (memory == nullptr) return add_constant(tensor);
  // The tensor shares all elements with a recorded tensor but was not created by an operator. For
  // example, `data()` returns a new tensor without calling an operator.
  const auto& values = memory->values;
  const auto same = std::find_if(values.rbegin(), values.rend(),
                                 [&](size_t id) { return have_same_layout(values_[id], tensor); });
  TORCH_CHECK(same != values.rend(), "expected views created by operators, got a view of shape ",
              tensor.sizes(), " created by the host");
  values_.push_back(tensor);
  return ids_[tensor.unsafeGetTensorImpl()] = *same;
}

// Programs may write only to memory that their own calls create.
void Tracer::check_write(const Memory& memory, const c10::OperatorHandle& op) const {
  if (memory.owner == Owner::step) return;
  reject_write(here(op), memory.owner == Owner::input    ? "the input '" + memory.name + "'"
                         : memory.owner == Owner::weight ? "the weight '" + memory.name + "'"
                                                         : "a tensor created on the host");
}

Tracer::Running Tracer::begin(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) {
  check_call({here(op), op, device_}, arguments);
  const auto& schema = op.schema();
  Running running{{op}, arguments.vec()};
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto& parameter = schema.arguments()[i];
    const bool may_be_view = parameter.alias_info() != nullptr && !writes(parameter);
    for_each_tensor(arguments[i], [&](const at::Tensor& tensor) {
      if (!tensor.defined() || tensor.unsafeGetTensorImpl()->is_wrapped_number()) return;
      number_of(tensor);
      auto* const memory = memory_of(tensor);
      TORCH_CHECK(memory != nullptr, record_error_prefix, here(op),
                  ": expected tensors that keep their storage, got a tensor whose storage was "
                  "replaced; run lazy layers once before recording");
      if (memory->allocation && !has_trait(schema.name(), Trait::allocation)) {
        if (fills(schema, i)) {
          memory->allocation.reset();
        } else if (!may_be_view) {
          keep_host_writes(*memory);
        }
      }
      if (writes(parameter)) check_write(*memory, op);
    });
    running.call.arguments.push_back(argument_of(
        arguments[i], *parameter.real_type(),
        [&](const at::Tensor& tensor) { return Argument{ValueId{number_of(tensor)}}; }));
  }
  return running;
}

void Tracer::end(Running running, c10::ArrayRef<c10::IValue> results) {
  const auto& op = running.call.op;
  check_results({here(op), op, device_}, results);
  // If an argument's memory was allocated by an earlier call and no result shares that memory, the
  // operator must have read from that memory.
  for_each_tensor(c10::ArrayRef<c10::IValue>(running.given), [&](const at::Tensor& tensor) {
    if (!tensor.defined() || tensor.unsafeGetTensorImpl()->is_wrapped_number()) return;
    auto* const memory = memory_of(tensor);
    const bool is_read = memory->allocation && !any_shares_memory(results, tensor) &&
                         !has_trait(op.schema().name(), Trait::allocation);
    if (is_read) keep_host_writes(*memory);
  });
  const auto number = [&](const at::Tensor& tensor) {
    const size_t id = values_.size();
    const bool is_new = memory_of(tensor) == nullptr;
    add(tensor, id, Owner::step, "");
    if (is_new && has_trait(op.schema().name(), Trait::allocation)) {
      memory_of(tensor)->allocation = calls_.size();
    }
    return id;
  };
  for (const auto& result : results) running.call.results.push_back(result_of(result, number));
  calls_.push_back(std::move(running.call));
  is_dropped_.push_back(false);
}

bool Tracer::knows(c10::ArrayRef<c10::IValue> results) const {
  bool knows = true;
  for_each_tensor(results, [&](const at::Tensor& tensor) {
    knows &= !tensor.defined() || ids_.contains(tensor.unsafeGetTensorImpl());
  });
  return knows;
}

Trace Tracer::finish(const std::vector<at::Tensor>& outputs) {
  Trace trace;
  for (const auto& output : outputs) {
    trace.outputs.push_back({number_of(output), output.scalar_type(), output.sizes().vec()});
    auto* const memory = memory_of(output);
    if (memory->allocation) keep_host_writes(*memory);
  }
  for (size_t i = 0; i < calls_.size(); ++i) {
    if (!is_dropped_[i]) trace.calls.push_back(std::move(calls_[i]));
  }
  trace.constants = std::move(constants_);
  trace.values = values_.size();
  return trace;
}

}  // namespace sconce::program::detail
