#include "optim/algorithm.hpp"

#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <array>

namespace sconce::optim {

namespace {

template <size_t N>
bool is_one_of(c10::DeviceType type, const std::array<c10::DeviceType, N>& types) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

bool fits_fused(const at::Tensor& parameter) {
  static constexpr std::array devices = {at::kCPU, at::kCUDA, at::kMPS,        at::kXPU,
                                         at::kHPU, at::kMTIA, at::kPrivateUse1};
  static constexpr std::array types = {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16};
  return is_one_of(parameter.device().type(), devices) && parameter.layout() == at::kStrided &&
         std::find(types.begin(), types.end(), parameter.scalar_type()) != types.end() &&
         parameter.is_non_overlapping_and_dense();
}

bool fits_foreach(const at::Tensor& parameter) {
  static constexpr std::array devices = {at::kCPU, at::kCUDA, at::kXPU, at::kMTIA,
                                         at::kPrivateUse1};
  return is_one_of(parameter.device().type(), devices) && parameter.layout() == at::kStrided;
}

}  // namespace

Kernels Algorithm::chosen_kernels(const std::vector<ParamGroup>& groups) const {
  const auto all = [&](bool (*fits)(const at::Tensor&)) {
    return std::all_of(groups.begin(), groups.end(), [&](const auto& group) {
      return std::all_of(group.params().begin(), group.params().end(), fits);
    });
  };
  if (traits_.fastest == Kernels::fused && all(fits_fused)) return Kernels::fused;
  const bool has_foreach = traits_.fastest != Kernels::for_loop;
  return has_foreach && all(fits_foreach) ? Kernels::foreach : Kernels::for_loop;
}

void Algorithm::choose_kernels(ExtraOptions extra, const std::vector<ParamGroup>& groups) {
  extra_ = std::move(extra);
  kernels_ = extra_.kernels == Kernels::automatic ? chosen_kernels(groups) : extra_.kernels;
  TORCH_CHECK_VALUE(
      kernels_ >= traits_.fastest, name(), ": expected ",
      traits_.fastest == Kernels::foreach ? "Kernels::foreach or " : "",
      "Kernels::for_loop (LibTorch provides no other kernels for this optimizer), got Kernels::",
      kernels_ == Kernels::fused ? "fused" : "foreach");
}

void Algorithm::check_parameter(const at::Tensor& parameter) const {
  TORCH_CHECK(kernels_ != Kernels::fused || fits_fused(parameter), name(),
              ": Kernels::fused requires every parameter to be dense, "
              "of type float64, float32, float16, or bfloat16, and on a device that has fused ",
              "kernels, got one of ", parameter.scalar_type(), ", strides ",
              parameter.layout() == at::kStrided ? parameter.strides() : at::IntArrayRef{},
              " and layout ", parameter.layout(), " on ", parameter.device());
}

bool Algorithm::supports_lr_on_device() const {
  return kernels_ == traits_.fastest && kernels_ != Kernels::for_loop && extra_.lr &&
         extra_.lr->is_cuda();
}

bool Algorithm::state_fits(const torch::optim::Optimizer& optimizer, size_t group, size_t index,
                           const at::Tensor& state) const {
  const auto& parameter = optimizer.param_groups()[group].params()[index];
  TORCH_CHECK_VALUE(parameter.grad().sizes() == parameter.sizes(), name(),
                    "::step: expected the gradient of parameter ", index, " of group ", group,
                    " to have the parameter's shape (", parameter.sizes(), "), got ",
                    parameter.grad().sizes());
  check_parameter(parameter);
  if (!state.defined()) return true;
  TORCH_CHECK_VALUE(state.sizes() == parameter.sizes(), name(), "::step: expected parameter ",
                    index, " of group ", group, " to have the shape of the optimizer state (",
                    state.sizes(), "), got ", parameter.sizes());
  if (state.device() != parameter.device() || state.scalar_type() != parameter.scalar_type()) {
    return false;
  }
  return state.is_sparse() || kernels_ != Kernels::fused || state.strides() == parameter.strides();
}

at::Tensor Algorithm::number_for(const at::Tensor& parameter, const at::Tensor& number) const {
  const bool on_device =
      kernels_ == Kernels::fused || (supports_lr_on_device() && parameter.is_cuda());
  const auto device = on_device ? parameter.device() : c10::Device(at::kCPU);
  return number.detach().to(device, at::kFloat, /*non_blocking=*/false, /*copy=*/true).reshape({});
}

// Fused kernels assume that a state tensor has the same strides as its parameter. The other kernels
// preserve the strides of the state tensor, as Python does, because the strides affect how 16-bit
// types are rounded.
at::Tensor Algorithm::copy_for(const at::Tensor& parameter, const Tensors& tensors,
                               const char* key) const {
  const auto found = tensors.find(key);
  if (found == tensors.end()) return {};
  const auto& tensor = found->second;
  TORCH_CHECK_VALUE(tensor.sizes() == parameter.sizes(), name(), ": expected ", key, " of sizes ",
                    parameter.sizes(), ", got ", tensor.sizes());
  auto copy = tensor.detach().to(parameter.device(), parameter.scalar_type(),
                                 /*non_blocking=*/false, /*copy=*/true);
  if (copy.is_sparse() || kernels_ != Kernels::fused) return copy;
  return at::empty_like(parameter.detach()).copy_(copy);
}

}  // namespace sconce::optim
