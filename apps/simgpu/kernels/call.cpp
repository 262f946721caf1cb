#include "simgpu/kernels/call.hpp"

#include <ATen/cuda/EmptyTensor.h>
#include <ATen/native/IndexingUtils.h>
#include <ATen/native/TensorAdvancedIndexingUtils.h>
#include <ATen/native/TensorShape.h>
#include <ATen/ops/as_strided_native.h>
#include <c10/cuda/CUDAFunctions.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <tuple>

#include "simgpu/kernels/below_autograd.hpp"
#include "simgpu/kernels/cpu_view.hpp"
#include "simgpu/kernels/layouts.hpp"
#include "simgpu/kernels/rows.hpp"
#include "simgpu/kernels/tensors_of.hpp"

namespace simgpu {

namespace {

c10::Device with_index(c10::Device device) {
  if (device.is_cuda() && device.has_index()) return device;
  return {c10::kCUDA, c10::cuda::current_device()};
}

// The position of the indices argument in operators that accept CPU indices.
constexpr size_t indices_position = 1;
// The positions of two arguments in the only one of these operators that uses the indices to write
// to a tensor.
constexpr size_t values_position = 2;
constexpr size_t accumulate_position = 3;

// The position of the sorter argument in searchsorted.
constexpr size_t sorter_position = 5;

using OptionalTensors = std::vector<std::optional<at::Tensor>>;

bool is_mask(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kBool || tensor.scalar_type() == at::kByte;
}

bool is_defined(const std::optional<at::Tensor>& tensor) {
  return tensor && tensor->defined();
}

bool is_of_cpu(const std::optional<at::Tensor>& tensor) {
  return is_defined(tensor) && tensor->is_cpu();
}

bool writes_by_indices(const OperatorPlan& plan) {
  return plan.cpu_tensors == CpuTensors::indices && plan.writes[0];
}

// Returns whether LibTorch calls masked_fill_ instead. In that case, the value may be a CPU tensor
// with one element, and the call does not block the host.
bool fills_mask(const OperatorPlan& plan, const c10::IValue* arguments) {
  if (!writes_by_indices(plan) || arguments[accumulate_position].toBool()) return false;
  return std::get<0>(at::native::canDispatchToMaskedFill(
      arguments[0].toTensor(), arguments[indices_position].toOptionalTensorList(),
      arguments[values_position].toTensor()));
}

// Converts a CPU index tensor in the same way as LibTorch. A mask is converted to one index tensor
// per mask dimension, starting at dimension `dim`. Any other index tensor is copied to the GPU.
OptionalTensors moved_index(const at::Tensor& self, const at::Tensor& index, size_t dim) {
  c10::List<std::optional<at::Tensor>> alone;
  for (size_t i = 0; i < dim; ++i) alone.push_back(std::nullopt);
  alone.push_back(index);
  const auto expanded = at::native::expandTensors(self, alone, /*ensure_same_device=*/true);
  return {expanded.begin() + static_cast<std::ptrdiff_t>(dim), expanded.end()};
}

OptionalTensors moved_indices(const at::Tensor& self, const OptionalTensors& indices) {
  OptionalTensors moved;
  size_t dim = 0;
  for (const auto& index : indices) {
    if (is_of_cpu(index)) {
      const auto parts = moved_index(self, *index, dim);
      moved.insert(moved.end(), parts.begin(), parts.end());
    } else {
      moved.push_back(index);
    }
    dim += is_defined(index) && is_mask(*index) ? static_cast<size_t>(index->dim()) : 1;
  }
  return moved;
}

// Returns whether the program passed this argument as a CPU tensor with one element.
bool can_change(const at::Tensor& number) {
  return number.is_cpu() && number.layout() == at::kStrided && number.numel() == 1 &&
         !number.unsafeGetTensorImpl()->is_wrapped_number();
}

at::Tensor copy_of_number(const at::Tensor& number) {
  const BelowAutograd below;
  auto copy = number.clone();
  if (number.unsafeGetTensorImpl()->is_wrapped_number()) {
    copy.unsafeGetTensorImpl()->set_wrapped_number(true);
  }
  return copy;
}

}  // namespace

Call::Call(const OperatorPlan& plan, const torch::jit::Stack& stack) : plan_(plan) {
  work_.label = plan.label;
  const auto count = plan.writes.size();
  const auto* arguments = stack.data() + (stack.size() - count);
  for (size_t i = 0; i < count; ++i) {
    for_tensors(arguments[i], [&](const at::Tensor& tensor) {
      if (tensor.defined() && tensor.is_cuda() && device_.is_cpu()) device_ = tensor.device();
    });
  }
  for (size_t i = 0; i < count; ++i) {
    if (device_.is_cpu() && arguments[i].isDevice()) device_ = arguments[i].toDevice();
  }
  device_ = with_index(device_);
  fills_mask_ = fills_mask(plan, arguments);
  for (size_t i = 0; i < count; ++i) {
    for_tensors(arguments[i], [&](const at::Tensor& tensor) { check_device(tensor, i); });
  }
}

void Call::check_device(const at::Tensor& tensor, size_t index) {
  if (!tensor.defined() || tensor.device() == device_) return;
  if (tensor.is_cpu() && plan_.cpu_tensors == CpuTensors::any) return;
  if (tensor.is_cpu() && !plan_.writes[index]) {
    if (plan_.cpu_tensors == CpuTensors::indices && index == indices_position) return;
    if (fills_mask_ && index == values_position) return;
    if (plan_.cpu_tensors != CpuTensors::none && tensor.dim() == 0) return;
  }
  refuse_device(tensor.device(), index);
}

// The error text matches LibTorch's error for indexing, for TensorIterator, or for other operators'
// device checks.
void Call::refuse_device(c10::Device device, size_t index) const {
  TORCH_CHECK(plan_.cpu_tensors != CpuTensors::indices || index != indices_position,
              "indices should be either on cpu or on the same device as the indexed tensor (",
              device_, ") (simulated GPUs: ", plan_.label, ")");
  TORCH_CHECK(plan_.cpu_tensors == CpuTensors::none,
              "Expected all tensors to be on the same device, but found at least two devices, ",
              device_, " and ", device, "! (simulated GPUs: argument ", plan_.argument_names[index],
              " of ", plan_.label, ")");
  TORCH_CHECK(false, "Expected all tensors to be on the same device, but got ",
              plan_.argument_names[index], " is on ", device, ", different from other tensors on ",
              device_, " (simulated GPUs: when checking argument in ", plan_.label, ")");
}

bool Call::waits_for_host(const torch::jit::Stack& stack) const {
  const auto* arguments = stack.data() + (stack.size() - plan_.writes.size());
  switch (plan_.host_wait) {
    case HostWait::never:
      return false;
    case HostWait::always:
      return true;
    case HostWait::without_output_size:
      return arguments[plan_.writes.size() - 1].isNone();
    case HostWait::with_sorter: {  // the host reads their minimum and maximum
      const auto& sorter = arguments[sorter_position];
      return sorter.isTensor() && sorter.toTensor().defined() && sorter.toTensor().numel() > 0;
    }
    case HostWait::with_mask:
      break;
  }
  if (fills_mask_) return false;
  bool has_mask = false;
  for_tensors(arguments[indices_position], [&](const at::Tensor& index) {
    has_mask = has_mask || (index.defined() && index.is_cuda() && is_mask(index));
  });
  return has_mask;
}

void Call::move_indices(torch::jit::Stack& stack) const {
  if (plan_.cpu_tensors != CpuTensors::indices) return;
  auto* arguments = stack.data() + (stack.size() - plan_.writes.size());
  if (writes_by_indices(plan_) && !fills_mask_) {
    const auto values = arguments[values_position].toTensor();
    if (values.is_cpu()) arguments[values_position] = values.to(device_);
  }
  const auto indices = arguments[indices_position].toOptionalTensorVector();
  if (std::none_of(indices.begin(), indices.end(), is_of_cpu)) return;
  c10::List<std::optional<at::Tensor>> moved;
  for (const auto& index : moved_indices(arguments[0].toTensor(), indices)) moved.push_back(index);
  arguments[indices_position] = c10::IValue(std::move(moved));
}

void Call::replace_arguments(torch::jit::Stack& stack, bool is_captured) {
  const auto count = plan_.writes.size();
  const auto first = stack.size() - count;
  for (size_t i = 0; i < count; ++i) {
    auto& value = stack[first + i];
    if (value.isDevice()) {
      value = c10::Device(c10::kCPU);
    } else if (value.isTensor() || value.isTensorList() || value.isOptionalTensorList()) {
      const bool writes = plan_.writes[i];
      value = map_tensors(value, [&](const at::Tensor& tensor) {
        if (!tensor.defined()) return at::Tensor(tensor);
        if (tensor.is_cuda()) return on_cpu(tensor, writes);
        auto cpu = is_captured ? copy_of_number(tensor) : at::Tensor(tensor);
        if (is_captured && can_change(tensor)) numbers_.emplace_back(tensor, cpu);
        // An operator that accepts arbitrary CPU tensors may return its CPU argument, which must
        // stay on the CPU.
        if (plan_.cpu_tensors == CpuTensors::any) arguments_.push_back({tensor, cpu, false});
        return cpu;
      });
    }
  }
}

at::Tensor Call::on_cpu(const at::Tensor& tensor, bool writes) {
  if (!has_parts(tensor)) return strided_on_cpu(tensor, writes);
  has_part_tensors_ = true;
  auto cpu =
      map_parts(tensor, [&](const at::Tensor& part) { return strided_on_cpu(part, writes); });
  arguments_.push_back({tensor, cpu, writes});
  return cpu;
}

at::Tensor Call::strided_on_cpu(const at::Tensor& tensor, bool writes) {
  auto cpu = view_on_cpu(tensor, writes);
  add_accesses(work_.accesses, tensor, writes);
  arguments_.push_back({tensor, cpu, writes});
  return cpu;
}

std::vector<Result> Call::replace_results(torch::jit::Stack& stack) {
  for (const auto& argument : arguments_) {
    if (argument.writes) write_back(argument);
  }
  position_ = 0;
  for (size_t i = stack.size() - plan_.returns; i < stack.size(); ++i) {
    auto& value = stack[i];
    if (!value.isTensor() && !value.isTensorList()) continue;
    value = map_tensors(value, [&](const at::Tensor& tensor) {
      auto gpu = result(tensor);
      ++position_;
      return gpu;
    });
  }
  return std::move(results_);
}

// The CPU kernel may have resized a strided `out` tensor, or replaced the indices of a sparse
// tensor.
void Call::write_back(const Argument& argument) {
  const auto& [gpu, cpu, writes] = argument;
  if (gpu.is_nested()) return;
  if (has_parts(gpu)) {
    assign_sparse(gpu, map_parts(cpu, [&](const at::Tensor& part) { return result(part); }));
    return;
  }
  if (gpu.sizes() == cpu.sizes() && gpu.strides() == cpu.strides()) return;
  const auto count = extent(cpu) / cpu.dtype().itemsize();
  gpu.resize_({static_cast<int64_t>(count)});
  gpu.unsafeGetTensorImpl()->set_sizes_and_strides(cpu.sizes(), cpu.strides());
  const auto* data = gpu.storage().data();
  const bool is_moved = data != nullptr && cpu.storage().data() != host_address(data);
  if (is_moved && cpu.numel() > 0) results_.push_back({cpu, gpu, -1});
}

// Returns an argument, a view of an argument, or a new tensor.
at::Tensor Call::result(const at::Tensor& cpu) {
  if (!cpu.defined()) return cpu;
  for (const auto& argument : arguments_) {
    if (argument.cpu.is_same(cpu)) return argument.gpu;
  }
  if (has_parts(cpu)) {
    return map_parts(cpu, [&](const at::Tensor& part) { return result(part); });
  }
  for (const auto& [gpu, view, writes] : arguments_) {
    if (has_parts(view) || cpu.numel() == 0) continue;
    if (view.storage().data() == cpu.storage().data()) {
      return at::native::as_strided_tensorimpl(gpu, cpu.sizes(), cpu.strides(),
                                               cpu.storage_offset());
    }
  }
  return new_result(cpu);
}

at::Tensor Call::new_result(const at::Tensor& cpu) {
  TORCH_CHECK_NOT_IMPLEMENTED(!cpu.is_quantized(), "simulated GPUs: ", plan_.label,
                              " with a quantized result is not supported");
  const auto dense = cpu.is_non_overlapping_and_dense() ? cpu : cpu.contiguous();
  at::Tensor gpu(
      at::detail::empty_strided_cuda(dense.sizes(), dense.strides(), dense.scalar_type(), device_));
  if (dense.is_conj()) gpu._set_conj(true);
  if (dense.is_neg()) gpu._set_neg(true);
  if (dense.numel() > 0) results_.push_back({dense, gpu, position_});
  return gpu;
}

}  // namespace simgpu
