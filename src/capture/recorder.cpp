#include "capture/recorder.hpp"

#include <ATen/core/enum_tag.h>
#include <c10/util/hash.h>

#include <algorithm>
#include <utility>

#include "capture/aliases.hpp"
#include "capture/collective.hpp"
#include "capture/for_each_tensor.hpp"
#include "capture/known_operators.hpp"
#include "capture/out_variant.hpp"
#include "capture/refusal.hpp"

namespace sconce::detail {

namespace {

using Source = StepMemory::Source;

constexpr size_t max_constant_bytes = 1 << 16;

// Above this size, memory is allocated and freed in each replay, as in a training loop without
// replays. Keeping such memory in the pool would increase peak memory, and allocation time is
// negligible at this size.
constexpr size_t max_pooled_bytes = 1 << 20;

template <class T>
void combine(size_t& hash, const T& value) {
  hash = c10::hash_combine(hash, std::hash<T>()(value));
}

void combine_numbers(size_t& hash, const c10::IValue& value) {
  if (value.isDouble()) combine(hash, value.toDouble());
  if (value.isInt()) combine(hash, value.toInt());
  if (value.isBool()) combine(hash, value.toBool());
  if (value.isComplexDouble()) {
    combine(hash, value.toComplexDouble().real());
    combine(hash, value.toComplexDouble().imag());
  }
  if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) combine_numbers(hash, element);
  }
  if (!value.isTensor()) return;
  const auto& tensor = value.toTensor();
  if (tensor.defined() && tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
    combine_numbers(hash, c10::IValue(tensor.item()));
  }
}

size_t hash_of_numbers(c10::ArrayRef<c10::IValue> arguments) {
  size_t hash = 0;
  for (const auto& value : arguments) combine_numbers(hash, value);
  return hash;
}

// Returns whether both calls copy the same values to the same type. The tensor arguments of both
// calls must refer to the memory used by replays.
bool are_equal_casts(const OperatorCall& a, const OperatorCall& b) {
  const auto& x = a.arguments[0].toTensor();
  const auto& y = b.arguments[0].toTensor();
  return a.op == b.op && a.keys == b.keys && x.storage().is_alias_of(y.storage()) &&
         have_same_layout(x, y) &&
         std::equal(a.arguments.begin() + 1, a.arguments.end(), b.arguments.begin() + 1,
                    b.arguments.end());
}

WeakTensor weak(const at::Tensor& tensor) {
  return WeakTensor(tensor.getIntrusivePtr());
}

}  // namespace

Recorder::Recorder(const StepTrace* earlier) {
  if (earlier == nullptr) return;
  for (const auto& input : earlier->inputs) {
    if (!input.is_parameter || input.tensor.expired()) continue;
    const auto* parameter = input.tensor._unsafe_get_target();
    gradients_before_.emplace(parameter, weak(parameter->grad()));
  }
}

void Recorder::refuse(std::string reason) {
  if (reject_reason_.empty()) reject_reason_ = std::move(reason);
}

// Registers a tensor created outside the step.
void Recorder::note_external(const at::Tensor& tensor) {
  if (!tensor.defined() || memory_.has(tensor)) return;
  const auto* impl = tensor.unsafeGetTensorImpl();
  if (!seen_.emplace(impl, weak(tensor)).second || impl->is_wrapped_number()) return;
  const Input& input = step_->trace.inputs.emplace_back(tensor);
  if (input.is_parameter) gradients_before_.emplace(impl, weak(tensor.grad()));
}

void Recorder::call(OperatorCall call, torch::jit::Stack* stack) {
  const auto last = [&](size_t count) {
    return c10::ArrayRef<c10::IValue>(*stack).slice(stack->size() - count);
  };
  const auto& schema = call.op.schema();
  const auto arguments = last(schema.arguments().size());
  if (reject_reason_.empty()) reject_reason_ = call_rejection(call.op, arguments);
  if (!reject_reason_.empty()) return call.op.redispatchBoxed(call.keys, stack);
  for_each_tensor(arguments, [&](const at::Tensor& tensor) { note_external(tensor); });
  call.arguments = arguments.vec();
  call.op.redispatchBoxed(call.keys, stack);
  if (has_trait(schema.name(), Trait::collective)) return add_collective(call);
  const auto results = last(schema.returns().size());
  reject_reason_ = tensor_rejection(call.op, results);
  if (reject_reason_.empty() && !call.op.hasTag(at::Tag::inplace_view))
    add(std::move(call), results);
}

void Recorder::composite_call(OperatorCall call, const at::Tensor& result) {
  if (!reject_reason_.empty() || !memory_.is_untouched(result)) return;
  const c10::ArrayRef<c10::IValue> given = call.arguments;
  for_each_tensor(given, [&](const at::Tensor& tensor) { note_external(tensor); });
  for (auto& argument : call.arguments) argument = memory_.name(argument, here());
  memory_.add(result, Source::result, here());
  call.results = {memory_.name(result, here())};
  step_->calls.push_back(std::move(call));
}

// Adds a collective as a host call. The host call keeps references to the tensors, so the memory of
// these tensors stays allocated.
void Recorder::add_collective(const OperatorCall& call) {
  const std::string& name = call.op.schema().name();
  const c10::ArrayRef<c10::IValue> arguments = call.arguments;
  for_each_tensor(arguments, [&](const at::Tensor& tensor) {
    if (!tensor.defined()) return;
    if (memory_.is_untouched(tensor)) refuse("a collective on host values (" + name + ")");
    memory_.write(tensor, /*fills_tensor=*/false, here());
  });
  step_->trace.host_values.push_back({name, hash_of_numbers(arguments)});
  host_call([op = call.op, given = call.arguments] { run_collective(op, given); });
}

// Registers the writes that the call performs. Returns false if the call does not write to any
// memory.
bool Recorder::write(const OperatorCall& call) {
  const auto& schema = call.op.schema();
  const bool may_write_all = has_trait(schema.name(), Trait::silent_write);
  bool writes_any = may_write_all;
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    const auto& argument = schema.arguments()[i];
    const bool is_named = writes(argument);
    if (!is_named && !may_write_all) continue;
    writes_any = true;
    const bool fills_tensor = fills(schema, i);
    for_each_tensor(call.arguments[i], [&](const at::Tensor& tensor) {
      if (!tensor.defined()) return;
      memory_.write(tensor, fills_tensor, here());
      forget_casts(tensor);
      if (is_named && !memory_.has(tensor) && !tensor.is_inference()) {
        step_->written.push_back(tensor.unsafeGetTensorImpl()->version_counter());
      }
    });
  }
  return writes_any;
}

// Removes casts that a write invalidates. Writing to a tensor makes earlier casts of that tensor
// stale. Writing to the result of a cast makes the result differ from the original.
void Recorder::forget_casts(const at::Tensor& written) {
  std::erase_if(casts_, [&](const Cast& cast) {
    return cast.result == memory_.id_of(written) ||
           memory_.is_named_by(written, cast.call.arguments[0].toTensor());
  });
}

// Makes replays compute repeated casts only once. In an eager step, autocast's cache prevents
// repeated casts. The cache is disabled during recording, because it would keep casts between
// calls.
void Recorder::merge_cast(const OperatorCall& call, const at::Tensor& result) {
  const auto equal = std::find_if(casts_.begin(), casts_.end(), [&](const Cast& earlier) {
    return are_equal_casts(earlier.call, call);
  });
  if (equal == casts_.end()) {
    casts_.push_back({call, *memory_.id_of(result)});
  } else {
    memory_.merge(result, equal->result);
  }
}

// Returns the call's results, and records which of them use memory that the call allocated.
Recorder::Results Recorder::results_of(const OperatorCall& call,
                                       c10::ArrayRef<c10::IValue> values) const {
  const c10::ArrayRef<c10::IValue> arguments = call.arguments;
  Results results;
  for_each_tensor(values, [&](const at::Tensor& result) {
    bool is_new = result.defined() && !memory_.has(result);
    for_each_tensor(arguments, [&](const at::Tensor& argument) {
      is_new = is_new && !(argument.defined() && argument.storage().is_alias_of(result.storage()));
    });
    results.tensors.push_back(result);
    results.are_new.push_back(is_new);
    results.any_new |= is_new;
  });
  return results;
}

void Recorder::add(OperatorCall call, c10::ArrayRef<c10::IValue> values) {
  const bool writes_any = write(call);
  const Results results = results_of(call, values);
  if (writes_any || results.any_new || values.empty()) {
    step_->trace.host_values.push_back({call.op.schema().name(), hash_of_numbers(call.arguments)});
    if (has_trait(call.op.schema().name(), Trait::allocation)) {  // does not read values
      memory_.add(results.tensors[0], Source::allocation, here());
      return;
    }
    for (auto& argument : call.arguments) argument = memory_.name(argument, here());
    add_named(std::move(call), results, !writes_any);
  }
  for (const auto& result : results.tensors) {  // views of memory already known to the step
    if (result.defined() && !memory_.has(result)) {
      seen_.emplace(result.unsafeGetTensorImpl(), weak(result));
    }
  }
}

// Adds a call with arguments that already refer to the memory used by replays.
void Recorder::add_named(OperatorCall call, const Results& results, bool is_functional) {
  const auto& name = call.op.schema().name();
  if (is_functional && add_with_out(call, results)) return;
  const bool is_constant = has_trait(name, Trait::constant) &&
                           results.tensors[0].storage().nbytes() <= max_constant_bytes;
  for (size_t i = 0; results.any_new && i < results.tensors.size(); ++i) {
    const auto& result = results.tensors[i];
    const bool takes = results.are_new[i] && !memory_.has(result);  // two results may share memory
    if (takes) memory_.add(result, is_constant ? Source::constant : Source::result, here());
    call.results.push_back(takes ? memory_.name(result, here()) : at::Tensor());
  }
  if (is_functional && has_trait(name, Trait::cast)) merge_cast(call, results.tensors[0]);
  step_->calls.push_back(std::move(call));
}

// Adds the call through the operator's out variant, if there is one.
bool Recorder::add_with_out(OperatorCall& call, const Results& results) {
  const auto& tensors = results.tensors;
  if (tensors.size() != call.op.schema().returns().size()) return false;  // the result is a list
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!results.are_new[i] || tensors[i].nbytes() != tensors[i].storage().nbytes() ||
        tensors[i].nbytes() > max_pooled_bytes) {
      return false;
    }
  }
  const auto out = out_variant(call.op);
  if (!out) return false;
  call.returning = call.op;
  call.op = *out;
  for (const auto& result : tensors) {
    memory_.add(result, Source::written, here());
    call.arguments.emplace_back(memory_.name(result, here()));
  }
  step_->calls.push_back(std::move(call));
  return true;
}

Gradients Recorder::gradients_now() const {
  Gradients gradients;
  for (const auto& input : step_->trace.inputs) {
    if (!input.is_parameter || input.tensor.expired()) continue;
    gradients.emplace_back(input.tensor, input.tensor._unsafe_get_target()->grad());
  }
  return gradients;
}

void Recorder::host_call(std::function<void()> call) {
  if (!reject_reason_.empty()) return;
  step_->trace.host_values.push_back({"a call to host code", 0});
  casts_.clear();  // the call may have written to any of their tensors
  step_->calls.push_back(HostCall{std::move(call), gradients_now()});
}

void Recorder::end_gradients() {
  for (auto& [parameter, after] : gradients_now()) {
    auto before = gradients_before_.at(parameter._unsafe_get_target());
    const bool was_there = before._unsafe_get_target() != c10::UndefinedTensorImpl::singleton();
    const bool is_result = after.defined() && memory_.is_result(after);
    const bool stays = before._unsafe_get_target() == after.unsafeGetTensorImpl();
    step_->gradients.push_back({.parameter = std::move(parameter),
                                .before = std::move(before),
                                .after = std::move(after),
                                .is_dropped = was_there && !stays,
                                .is_new_memory = was_there && !stays && is_result});
  }
}

RecordingOutcome Recorder::finish() {
  for (const size_t hash : memory_.host_values()) {
    step_->trace.host_values.push_back({"memory written by the host", hash});
  }
  if (!reject_reason_.empty()) return {nullptr, std::move(reject_reason_)};
  end_gradients();
  // Autograd and the host also create tensors that do not outlive the step. If one of these tensors
  // wraps host memory, that memory may have been freed together with the tensor.
  for (const auto& input : step_->trace.inputs) {
    if (!input.tensor.expired() || !input.is_foreign) continue;
    return {nullptr, "host memory wrapped by a tensor within the step (from_blob)"};
  }
  std::erase_if(step_->trace.inputs, [](const Input& input) { return input.tensor.expired(); });
  memory_.place(*step_);
  return {std::move(step_), {}};
}

}  // namespace sconce::detail
