#include "simgpu/kernels/operator_plan.hpp"

#include <ATen/core/enum_tag.h>
#include <ATen/core/jit_type.h>

#include <array>
#include <set>
#include <string>
#include <string_view>

namespace simgpu {

namespace {

// Operators that do not read tensor values on the host, even though their tags suggest that they
// do.
constexpr std::array never_waits{std::string_view{"aten::_ctc_loss"}};

// Operators that draw no random numbers, even though their tags suggest that they do.
constexpr std::array never_draws{
    std::string_view{"aten::_scaled_dot_product_cudnn_attention_backward"},
    std::string_view{"aten::_scaled_dot_product_efficient_attention_backward"}};

constexpr std::array accepts_cpu_indices{std::string_view{"aten::index.Tensor"},
                                         std::string_view{"aten::index.Tensor_out"},
                                         std::string_view{"aten::_index_put_impl_"}};

// Operators that accept a CPU scalar tensor but are not tagged as pointwise.
const std::set<std::string_view>& takes_numbers() {
  static const std::set<std::string_view> names{"aten::__ilshift__.Tensor",
                                                "aten::__irshift__.Tensor",
                                                "aten::_fused_adagrad_.tensor_lr",
                                                "aten::_fused_adam_.tensor_lr",
                                                "aten::_fused_adamw_.tensor_lr",
                                                "aten::_fused_sgd_.tensor_lr",
                                                "aten::binary_cross_entropy",
                                                "aten::copysign_.Tensor",
                                                "aten::eq_.Tensor",
                                                "aten::fill_.Tensor",
                                                "aten::floor_divide",
                                                "aten::floor_divide.out",
                                                "aten::floor_divide_.Tensor",
                                                "aten::ge_.Tensor",
                                                "aten::gt_.Tensor",
                                                "aten::heaviside_",
                                                "aten::index_fill_.int_Tensor",
                                                "aten::le_.Tensor",
                                                "aten::lt_.Tensor",
                                                "aten::masked_fill_.Tensor",
                                                "aten::mse_loss",
                                                "aten::mse_loss.out",
                                                "aten::ne_.Tensor",
                                                "aten::rsub.Tensor",
                                                "aten::smooth_l1_loss",
                                                "aten::smooth_l1_loss.out",
                                                "aten::where.self",
                                                "aten::where.self_out"};
  return names;
}

template <class Names>
bool holds(const Names& names, std::string_view name) {
  for (const auto& each : names) {
    if (each == name) return true;
  }
  return false;
}

CpuTensors cpu_tensors_of(const c10::OperatorHandle& op, std::string_view name) {
  if (holds(accepts_cpu_indices, name)) return CpuTensors::indices;
  if (op.hasTag(at::Tag::pointwise) || name.starts_with("aten::_foreach_") ||
      takes_numbers().contains(name)) {
    return CpuTensors::numbers;
  }
  return CpuTensors::none;
}

bool returns_host_value(const c10::FunctionSchema& schema) {
  if (schema.returns().size() != 1) return false;
  const auto kind = schema.returns()[0].type()->kind();
  return kind != c10::TypeKind::TensorType && kind != c10::TypeKind::ListType;
}

HostWait host_wait_of(const c10::OperatorHandle& op, std::string_view name) {
  if (holds(never_waits, name)) return HostWait::never;
  if (holds(accepts_cpu_indices, name)) return HostWait::with_mask;
  if (name.starts_with("aten::searchsorted.")) return HostWait::with_sorter;
  if (name == "aten::repeat_interleave.Tensor") return HostWait::without_output_size;
  const bool waits = op.hasTag(at::Tag::dynamic_output_shape) ||
                     op.hasTag(at::Tag::data_dependent_output) || returns_host_value(op.schema());
  return waits ? HostWait::always : HostWait::never;
}

// Reports and graphs refer to the names until the process ends.
const char* lasting_name(const c10::OperatorHandle& op) {
  static auto& names = *new std::set<std::string>;
  return names.insert(c10::toString(op.operator_name())).first->c_str();
}

bool is_generator(const c10::Argument& argument) {
  const auto kind = argument.type()->kind();
  if (kind == c10::TypeKind::GeneratorType) return true;
  const auto optional = argument.type()->cast<c10::OptionalType>();
  return optional && optional->getElementType()->kind() == c10::TypeKind::GeneratorType;
}

}  // namespace

OperatorPlan make_plan(const c10::OperatorHandle& op, c10::DispatchKey cpu_key) {
  const auto& schema = op.schema();
  OperatorPlan plan{
      .label = lasting_name(op), .cpu_key = cpu_key, .returns = schema.returns().size()};
  plan.generator = plan.dropout = schema.arguments().size();
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const auto* alias = schema.arguments()[i].alias_info();
    plan.argument_names.push_back(schema.arguments()[i].name());
    plan.writes.push_back(alias != nullptr && alias->isWrite());
    if (is_generator(schema.arguments()[i])) plan.generator = i;
    if (schema.arguments()[i].name() == "dropout_p") plan.dropout = i;
  }
  plan.is_random = plan.generator < schema.arguments().size() ||
                   (op.hasTag(at::Tag::nondeterministic_seeded) && !holds(never_draws, plan.label));
  plan.cpu_tensors = cpu_tensors_of(op, plan.label);
  plan.refusals = refusals_of(plan.label);
  plan.host_wait = host_wait_of(op, plan.label);
  return plan;
}

bool returns_view(const c10::FunctionSchema& schema) {
  for (const auto& result : schema.returns()) {
    if (result.alias_info() != nullptr && !result.alias_info()->isWrite()) return true;
  }
  return false;
}

}  // namespace simgpu
