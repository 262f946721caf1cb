#include "capture/recorded_step.hpp"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/stack.h>
#include <ATen/ops/empty.h>
#include <c10/util/ScopeExit.h>

#include <algorithm>

#include "capture/known_operators.hpp"

namespace sconce::detail {

namespace {

const at::Tensor& gradient_of(const WeakTensor& parameter) {
  return parameter._unsafe_get_target()->grad();
}

void set_gradient(const WeakTensor& parameter, const at::Tensor& gradient) {
  auto* tensor = parameter._unsafe_get_target();
  if (!tensor->grad().is_same(gradient)) tensor->mutable_grad() = gradient;
}

void free_memory(c10::StorageImpl& storage) {
  storage.set_data_ptr_noswap({nullptr, c10::kCPU});
}

// Transfers ownership of the result's memory to the storage that later calls read from.
void take_memory(c10::StorageImpl& storage, const at::Tensor& result) {
  auto& memory = result.storage().unsafeGetStorageImpl()->_mutable_data_ptr_no_checks();
  storage.set_data_ptr_noswap(std::move(memory));
}

void take_results(const OperatorCall& call, const torch::jit::Stack& stack) {
  size_t index = 0;
  const auto take = [&](const at::Tensor& result) {
    const auto& name = call.results[index++];
    if (name.defined()) take_memory(*name.storage().unsafeGetStorageImpl(), result);
  };
  for (const auto& value : stack) {
    if (value.isTensor()) take(value.toTensor());
    if (value.isTensorList()) {
      for (const at::Tensor& result : value.toTensorVector()) take(result);
    }
  }
}

void run(const OperatorCall& call, torch::jit::Stack& stack) {
  stack.assign(call.arguments.begin(), call.arguments.end());
  call.thread.apply();
  call.op.redispatchBoxed(call.keys, &stack);
  if (!call.results.empty()) take_results(call, stack);
  for (const auto& name : call.last_used) free_memory(*name.storage().unsafeGetStorageImpl());
}

// Returns `result` if it has the same layout as `name` and its storage is at least as large.
// Otherwise, returns a copy of `result` with the layout and storage size of `name`.
at::Tensor placed_as(const at::Tensor& name, const at::Tensor& result) {
  const size_t bytes = name.storage().nbytes();
  if (result.strides() == name.strides() && result.storage_offset() == name.storage_offset() &&
      result.storage().nbytes() >= bytes) {
    return result;
  }
  const auto elements = static_cast<int64_t>(bytes) / name.element_size();
  return at::empty({elements}, name.options())
      .as_strided(name.sizes(), name.strides(), name.storage_offset())
      .copy_(result);
}

void run(const CompiledCall& call) {
  const auto results = run_code(call);
  for (size_t i = 0; i < results.size(); ++i) {
    take_memory(*call.results[i].storage().unsafeGetStorageImpl(),
                placed_as(call.results[i], results[i]));
  }
  for (const auto& name : call.last_used) free_memory(*name.storage().unsafeGetStorageImpl());
}

void run(const HostCall& call) {
  for (const auto& [parameter, gradient] : call.gradients) set_gradient(parameter, gradient);
  call.call();
}

}  // namespace

bool can_compile(const RecordedStep::Calls::value_type& call) {
  const auto* const op = std::get_if<OperatorCall>(&call);
  return op != nullptr && !has_trait(op->op.schema().name(), Trait::reads_grad_mode);
}

std::vector<at::Tensor> run_code(const CompiledCall& call) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return call.code->run(call.inputs);
}

ThreadState ThreadState::now() {
  return {c10::impl::tls_local_dispatch_key_set(), at::GradMode::is_enabled()};
}

void ThreadState::apply() const {
  c10::impl::_force_tls_local_dispatch_key_set(keys);
  at::GradMode::set_enabled(grad_mode);
}

Input::Input(const at::Tensor& given)
    : tensor(given.getIntrusivePtr()),
      storage(given.storage().unsafeGetStorageImpl()),
      data(given.const_data_ptr()),
      sizes(given.sizes().vec()),
      strides(given.strides().vec()),
      dtype(given.scalar_type()),
      requires_grad(given.requires_grad()),
      is_parameter(given.is_leaf() && (requires_grad || given.grad().defined())),
      is_foreign(given.storage().allocator() == nullptr) {}

bool Input::is_unchanged() const {
  const auto* now = tensor._unsafe_get_target();
  return now->has_storage() && now->storage().unsafeGetStorageImpl() == storage &&
         now->data() == data && now->sizes() == sizes && now->strides() == strides &&
         now->dtype() == c10::scalarTypeToTypeMeta(dtype) && now->requires_grad() == requires_grad;
}

bool Input::is_like(const Input& other) const {
  return sizes == other.sizes && strides == other.strides && dtype == other.dtype &&
         requires_grad == other.requires_grad;
}

bool StepTrace::is_like(const StepTrace& other) const {
  return std::equal(inputs.begin(), inputs.end(), other.inputs.begin(), other.inputs.end(),
                    [](const auto& a, const auto& b) { return a.is_like(b); }) &&
         std::equal(host_values.begin(), host_values.end(), other.host_values.begin(),
                    other.host_values.end(),
                    [](const auto& a, const auto& b) { return a.op == b.op; });
}

const std::string* StepTrace::find_changed_value(const StepTrace& other) const {
  const auto [value, same] =
      std::mismatch(host_values.begin(), host_values.end(), other.host_values.begin());
  return value == host_values.end() ? nullptr : &value->op;
}

Fit RecordedStep::fit() const {
  Fit fit = Fit::fits;
  for (const auto& input : trace.inputs) {
    if (input.tensor.expired()) {
      if (input.is_parameter) return Fit::gone;
      fit = Fit::changed;
    } else if (!input.is_unchanged()) {
      fit = Fit::changed;
    }
  }
  if (fit != Fit::fits) return fit;
  if (!trace.conditions.hold()) return Fit::changed;
  const bool same_gradients = std::all_of(gradients.begin(), gradients.end(), [](const auto& g) {
    return g.is_dropped ||
           gradient_of(g.parameter).unsafeGetTensorImpl() == g.before._unsafe_get_target();
  });
  return same_gradients ? Fit::fits : Fit::changed;
}

// Frees the gradients that the step discards, so that they do not increase the step's peak memory.
void RecordedStep::drop_gradients() const {
  for (const auto& gradient : gradients) {
    if (gradient.is_new_memory) free_memory(*gradient.after.storage().unsafeGetStorageImpl());
  }
}

// After an error, clears the parameter gradients whose memory has been freed.
void RecordedStep::forget_dropped_gradients() const {
  for (const auto& gradient : gradients) {
    if (gradient.is_new_memory && gradient.after.storage().data() == nullptr) {
      set_gradient(gradient.parameter, {});
    }
  }
}

void RecordedStep::replay_part(size_t begin, size_t end) const {
  const auto before = ThreadState::now();
  const auto restore = c10::make_scope_exit([&] { before.apply(); });
  torch::jit::Stack stack;
  for (size_t i = begin; i < end; ++i) run(std::get<OperatorCall>(calls[i]), stack);
}

void RecordedStep::replay(const Calls& by) {
  const auto before = ThreadState::now();
  const auto restore = c10::make_scope_exit([&] { before.apply(); });
  drop_gradients();
  auto undo = c10::make_scope_exit([this] { forget_dropped_gradients(); });
  torch::jit::Stack stack;
  for (const auto& call : by) {
    if (const auto* op = std::get_if<OperatorCall>(&call)) {
      run(*op, stack);
      continue;
    }
    before.apply();
    if (const auto* compiled = std::get_if<CompiledCall>(&call)) {
      run(*compiled);
    } else {
      run(std::get<HostCall>(call));
    }
  }
  undo.release();
  for (auto& version : written) version.bump();
  for (const auto& gradient : gradients) {
    set_gradient(gradient.parameter, gradient.after);
    if (gradient.after.defined()) gradient.after.unsafeGetTensorImpl()->bump_version();
  }
}

}  // namespace sconce::detail
