#include "program/prepared_program.hpp"

#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <set>
#include <utility>

#include "sconce/repr.hpp"
#include "to_device.hpp"

namespace sconce::program::detail {

namespace {

// During a run, autograd and autocast are disabled, because the recorded calls already include the
// operations that autograd and autocast would add.
constexpr auto not_in_runs =
    c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::autocast_dispatch_keyset;

const std::string run_error_prefix = "sconce::program::Program::run: ";

TensorSpec spec_of(const Port& port) {
  TensorSpec spec{port.name, port.dtype, {}};
  for (const auto& size : port.shape) spec.shape.push_back(size.constant().value_or(-1));
  return spec;
}

std::string shape_text(const Port& port, const std::vector<DynamicSize>& sizes) {
  std::string text = "(";
  for (const auto& size : port.shape) {
    if (text.size() > 1) text += ", ";
    const auto constant = size.constant();
    text += constant ? std::to_string(*constant) : sizes[size.terms[0].sizes[0]].name;
  }
  return text + ")";
}

void set_result(const Argument& result, c10::IValue value, std::vector<at::Tensor>& values) {
  if (const auto* id = std::get_if<ValueId>(&result.value)) {
    values[id->id] = std::move(value).toTensor();
  } else if (const auto* list = std::get_if<Argument::List>(&result.value)) {
    const auto tensors = value.toTensorList();
    TORCH_CHECK(tensors.size() == list->size(), "expected ", list->size(), " tensors, got ",
                tensors.size());
    for (size_t i = 0; i < list->size(); ++i) {
      if (const auto* value_id = std::get_if<ValueId>(&(*list)[i].value)) {
        values[value_id->id] = tensors.get(i);
      }
    }
  }
}

}  // namespace

std::string place_of(size_t index, const c10::OperatorHandle& op) {
  return "calls[" + std::to_string(index) + "] " + op.schema().name();
}

PreparedProgram::PreparedProgram(Graph graph, c10::Device device, const std::string& error_prefix)
    : graph_(std::move(graph)), device_(device) {
  check_values(error_prefix);
  for (auto& weight : graph_.weights) {
    weight.tensor = to_device(
        weight.tensor, weight.device == graph_.device ? device_ : c10::Device(weight.device));
  }
  for (const auto& port : graph_.inputs) inputs_.push_back(spec_of(port));
  for (const auto& port : graph_.outputs) outputs_.push_back(spec_of(port));
  // Checks the arguments using placeholders of the correct kinds, so that invalid arguments are
  // reported before anything runs.
  const std::vector<at::Tensor> values(graph_.values);
  const std::vector<int64_t> sizes(graph_.sizes.size(), 2);
  const Environment in{values, sizes, graph_.device, device_};
  for (size_t i = 0; i < graph_.calls.size(); ++i) calls_.push_back(prepare(i, in, error_prefix));
  find_last_uses();
}

void PreparedProgram::check_values(const std::string& error_prefix) const {
  std::vector<bool> defined(graph_.values);
  for (const auto& input : graph_.inputs) defined[input.value] = true;
  std::vector<bool> is_input = defined;
  for (const auto& weight : graph_.weights) {
    TORCH_CHECK(!is_input[weight.value], error_prefix, "weights '", weight.name,
                "': expected a new value, got ", weight.value, ", which is already an input");
    defined[weight.value] = true;
  }
  for (size_t i = 0; i < graph_.calls.size(); ++i) {
    const auto& call = graph_.calls[i];
    const auto place = place_of(i, call.op);
    const auto check_used = [&](size_t id) {
      TORCH_CHECK(defined[id], error_prefix, place,
                  ": expected values that are defined before the call, got ", id);
    };
    for (const auto& argument : call.arguments) for_each_value(argument, check_used);
    for (const auto& result : call.results) {
      for_each_value(result, [&](size_t id) {
        TORCH_CHECK(!defined[id], error_prefix, place, ": expected a new value, got ", id,
                    " again");
        defined[id] = true;
      });
    }
  }
  for (const auto& output : graph_.outputs) {
    TORCH_CHECK(defined[output.value], error_prefix, "outputs '", output.name,
                "': expected a defined value, got ", output.value);
  }
}

PreparedProgram::PreparedCall PreparedProgram::prepare(size_t index, const Environment& in,
                                                       const std::string& error_prefix) const {
  const auto& call = graph_.calls[index];
  const auto& parameters = call.op.schema().arguments();
  PreparedCall prepared{&call};
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto& argument = call.arguments[i];
    c10::IValue value;
    try {
      value = value_of(argument, *parameters[i].real_type(), in);
    } catch (const c10::Error& error) {
      TORCH_CHECK(false, error_prefix, place_of(index, call.op), ": argument '",
                  parameters[i].name(), "': ", error.what_without_backtrace());
    }
    if (const auto* id = std::get_if<ValueId>(&argument.value)) {
      prepared.arguments.emplace_back(id->id);
    } else if (is_fixed(argument)) {
      prepared.arguments.emplace_back(std::move(value));
    } else {
      prepared.arguments.emplace_back(&argument);
    }
  }
  return prepared;
}

// A tensor is released after the last call that uses it, unless it is a weight or an output.
void PreparedProgram::find_last_uses() {
  std::set<size_t> used;
  for (const auto& weight : graph_.weights) used.insert(weight.value);
  for (const auto& output : graph_.outputs) used.insert(output.value);
  for (auto call = calls_.rbegin(); call != calls_.rend(); ++call) {
    const auto release = [&](size_t id) {
      if (used.insert(id).second) call->last_used.push_back(id);
    };
    for (const auto& argument : call->call->arguments) for_each_value(argument, release);
    for (const auto& result : call->call->results) for_each_value(result, release);
  }
}

// Returns the values of the dynamic sizes. Each dynamic size is read from a dimension of an input.
std::vector<int64_t> PreparedProgram::sizes_of(const Tensors& inputs) const {
  const auto& error_prefix = run_error_prefix;
  TORCH_CHECK(inputs.size() == inputs_.size(), error_prefix, "expected ", inputs_.size(),
              " inputs, got ", inputs.size());
  std::vector<int64_t> sizes(graph_.sizes.size(), -1);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto& port = graph_.inputs[i];
    const auto& input = inputs[i];
    TORCH_CHECK(input.defined(), error_prefix, "input '", port.name,
                "': expected a tensor, got an undefined one");
    TORCH_CHECK(input.scalar_type() == port.dtype, error_prefix, "input '", port.name,
                "': expected ", repr(port.dtype), ", got ", repr(input.scalar_type()));
    TORCH_CHECK(input.device() == device_, error_prefix, "input '", port.name,
                "': expected a tensor on ", device_, ", got one on ", input.device());
    TORCH_CHECK(input.layout() == c10::kStrided && !input.is_nested(), error_prefix, "input '",
                port.name, "': expected a dense tensor, got a ",
                input.is_nested() ? "nested" : "sparse", " tensor");
    bool fits = input.dim() == static_cast<int64_t>(port.shape.size());
    for (size_t dim = 0; fits && dim < port.shape.size(); ++dim) {
      const int64_t size = input.sizes()[dim];
      const auto constant = port.shape[dim].constant();
      if (constant) {
        fits = size == *constant;
        continue;
      }
      const size_t index = port.shape[dim].terms[0].sizes[0];
      if (sizes[index] == -1) sizes[index] = size;
      TORCH_CHECK(size >= graph_.sizes[index].min, error_prefix, "input '", port.name,
                  "': expected ", graph_.sizes[index].name, " to be at least ",
                  graph_.sizes[index].min, ", got ", size);
      TORCH_CHECK(size == sizes[index], error_prefix, "input '", port.name, "': expected ",
                  graph_.sizes[index].name, " = ", sizes[index], " as before, got ", size);
    }
    TORCH_CHECK(fits, error_prefix, "input '", port.name, "': expected the shape ",
                shape_text(port, graph_.sizes), ", got ", repr(input.sizes()));
  }
  return sizes;
}

void PreparedProgram::run(const PreparedCall& prepared, std::vector<at::Tensor>& values,
                          const Environment& in, torch::jit::Stack& stack) const {
  const auto& call = *prepared.call;
  const auto& parameters = call.op.schema().arguments();
  stack.clear();
  for (size_t i = 0; i < prepared.arguments.size(); ++i) {
    const auto& argument = prepared.arguments[i];
    if (const auto* id = std::get_if<size_t>(&argument)) {
      stack.emplace_back(values[*id]);
    } else if (const auto* value = std::get_if<c10::IValue>(&argument)) {
      stack.push_back(*value);
    } else {
      stack.push_back(
          value_of(*std::get<const Argument*>(argument), *parameters[i].real_type(), in));
    }
  }
  call.op.callBoxed(&stack);
  for (size_t i = 0; i < call.results.size(); ++i) {
    set_result(call.results[i], std::move(stack[i]), values);
  }
  for (const size_t id : prepared.last_used) values[id].reset();
}

Tensors PreparedProgram::run(const Tensors& inputs) const {
  const auto sizes = sizes_of(inputs);
  const at::NoGradGuard no_grad;
  const c10::impl::ExcludeDispatchKeyGuard guard(not_in_runs);
  std::vector<at::Tensor> values(graph_.values);
  for (size_t i = 0; i < inputs.size(); ++i) values[graph_.inputs[i].value] = inputs[i];
  for (const auto& weight : graph_.weights) values[weight.value] = weight.tensor;
  const Environment in{values, sizes, graph_.device, device_};
  torch::jit::Stack stack;
  for (size_t i = 0; i < calls_.size(); ++i) {
    try {
      run(calls_[i], values, in, stack);
    } catch (c10::Error& error) {
      error.add_context(run_error_prefix + place_of(i, calls_[i].call->op));
      throw;
    }
  }
  Tensors outputs;
  outputs.reserve(graph_.outputs.size());
  for (const auto& output : graph_.outputs) outputs.push_back(values[output.value]);
  return outputs;
}

}  // namespace sconce::program::detail
