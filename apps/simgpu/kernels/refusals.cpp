#include "simgpu/kernels/refusals.hpp"

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <string>

#include "simgpu/kernels/tensors_of.hpp"

namespace simgpu {

namespace {

constexpr std::string_view integers = "Byte Char Short Int Long";
constexpr std::string_view addmm = "\"addmm_cuda\" not implemented for '{}'";
constexpr std::string_view addmv = "\"addmv_impl_cuda\" not implemented for '{}'";
constexpr std::string_view baddbmm = "\"baddbmm_cuda\" not implemented for '{}'";
constexpr std::string_view dot = "\"dot\" not implemented for '{}'";
constexpr std::string_view max_pool2d =
    "\"max_pool2d_with_indices_out_cuda_frame\" not implemented for '{}'";
constexpr std::string_view max_pool3d =
    "\"max_pool3d_with_indices_out_frame\" not implemented for '{}'";
constexpr std::string_view upsample_bilinear =
    "\"upsample_bilinear2d_out_frame\" not implemented for '{}'";
constexpr std::string_view upsample_bicubic =
    "\"upsample_bicubic2d_out_frame\" not implemented for '{}'";

constexpr std::array table{
    Refusal{"aten::mm", 0, integers, addmm},
    Refusal{"aten::addmm", 1, integers, addmm},
    Refusal{"aten::addmv", 1, integers, addmv},
    Refusal{"aten::bmm", 0, integers, baddbmm},
    Refusal{"aten::baddbmm", 1, integers, baddbmm},
    Refusal{"aten::dot", 0, integers, dot},
    Refusal{"aten::vdot", 0, integers, dot},
    Refusal{"aten::avg_pool2d", 0, "Long",
            "\"avg_pool2d_out_cuda_frame\" not implemented for '{}'"},
    Refusal{"aten::avg_pool3d", 0, "Long", "\"avg_pool3d_out_cuda\" not implemented for '{}'"},
    Refusal{"aten::max_pool2d_with_indices", 0, integers, max_pool2d},
    Refusal{"aten::max_pool3d_with_indices", 0, integers, max_pool3d},
    Refusal{"aten::upsample_bilinear2d", 0, "Byte", upsample_bilinear},
    Refusal{"aten::_upsample_bilinear2d_aa", 0, "Byte", upsample_bilinear},
    Refusal{"aten::upsample_bicubic2d", 0, "Byte", upsample_bicubic},
    Refusal{"aten::igamma", 0, "Half BFloat16", "\"igamma_cuda\" not implemented for '{}'"},
    Refusal{"aten::igammac", 0, "Half BFloat16", "\"igammac_cuda\" not implemented for '{}'"},
    Refusal{"aten::native_dropout_backward", 0, "Bool Byte Char Short Int Long",
            "\"masked_scale\" not implemented for '{}'"},
    Refusal{"aten::histc", 0, "BFloat16", "\"histc\" not implemented for '{}'"},
    Refusal{"aten::histc", 0, "Half", "HalfTensor is not supported"},
    Refusal{"aten::_amp_foreach_non_finite_check_and_unscale", 0, "BFloat16",
            "\"_amp_foreach_non_finite_check_and_unscale_cuda\" not implemented for '{}'"},
};

// Returns "aten::addmm" for "aten::addmm.out" and "aten::addmm_".
std::string_view base_name(std::string_view name) {
  name = name.substr(0, name.find('.'));
  if (name.ends_with('_')) name.remove_suffix(1);
  return name;
}

bool names(std::string_view types, std::string_view type) {
  while (!types.empty()) {
    const auto end = std::min(types.find(' '), types.size());
    if (types.substr(0, end) == type) return true;
    types.remove_prefix(std::min(end + 1, types.size()));
  }
  return false;
}

std::string fill_in(std::string_view error, std::string_view type) {
  std::string text(error);
  const auto place = text.find("{}");
  if (place != std::string::npos) text.replace(place, 2, type);
  return text;
}

bool has_empty_tensor(const c10::IValue* arguments, size_t count) {
  bool is_empty = false;
  for (size_t i = 0; i < count; ++i) {
    for_tensors(arguments[i], [&](const at::Tensor& tensor) {
      is_empty = is_empty || (tensor.defined() && tensor.numel() == 0);
    });
  }
  return is_empty;
}

void check_type(const Refusal& refusal, c10::ScalarType type) {
  if (!names(refusal.types, c10::toString(type))) return;
  const auto text = fill_in(refusal.error, c10::toString(type));
  TORCH_CHECK_NOT_IMPLEMENTED(text == refusal.error, text);
  TORCH_CHECK(false, text);
}

}  // namespace

Refusals refusals_of(std::string_view operator_name) {
  Refusals found;
  for (const auto& refusal : table) {
    if (refusal.name == base_name(operator_name)) found.push_back(refusal);
  }
  return found;
}

void check_refusals(const Refusals& refusals, const torch::jit::Stack& stack, size_t count) {
  const auto* arguments = stack.data() + (stack.size() - count);
  if (refusals.empty() || has_empty_tensor(arguments, count)) return;
  for (const auto& refusal : refusals) {
    for_tensors(arguments[refusal.argument],
                [&](const at::Tensor& tensor) { check_type(refusal, tensor.scalar_type()); });
  }
}

}  // namespace simgpu
