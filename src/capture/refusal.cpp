#include "capture/refusal.hpp"

#include <ATen/core/enum_tag.h>

#include "capture/for_each_tensor.hpp"
#include "capture/known_operators.hpp"

namespace sconce::detail {

namespace {

std::string named(const char* reason, const c10::OperatorHandle& op) {
  return std::string(reason) + " (" + op.schema().name() + ")";
}

bool has_mask(c10::ArrayRef<c10::IValue> values) {
  bool found = false;
  for_each_tensor(values.back(), [&](const at::Tensor& index) {
    found |=
        index.defined() && (index.scalar_type() == at::kBool || index.scalar_type() == at::kByte);
  });
  return found;
}

// For one_hot, a count of -1 means that the count depends on the tensor's values. repeat_interleave
// accepts a tensor of counts.
bool has_count(c10::ArrayRef<c10::IValue> arguments) {
  return arguments.size() > 1 && arguments[1].isInt() && arguments[1].toInt() >= 0;
}

}  // namespace

std::string layout_rejection(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> values) {
  std::string reason;
  for_each_tensor(values, [&](const at::Tensor& tensor) {
    if (!tensor.defined()) return;
    if (tensor.layout() != at::kStrided || !tensor.has_storage() || tensor.is_quantized()) {
      reason = named("a sparse tensor", op);
    }
  });
  return reason;
}

std::string tensor_rejection(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> values) {
  std::string reason = layout_rejection(op, values);
  if (!reason.empty()) return reason;
  for_each_tensor(values, [&](const at::Tensor& tensor) {
    if (tensor.defined() && !tensor.is_cpu()) reason = named("a tensor on another device", op);
  });
  return reason;
}

std::string operator_rejection(const c10::OperatorHandle& op,
                               c10::ArrayRef<c10::IValue> arguments) {
  const std::string& name = op.schema().name();
  if (name.find("c10d") != std::string::npos) return named("a collective", op);
  if (has_trait(name, Trait::relocation)) return named("a tensor whose memory is replaced", op);
  if (op.hasTag(at::Tag::data_dependent_output) || has_trait(name, Trait::host_read)) {
    return named("a host read", op);
  }
  const bool depends_on_values =
      op.hasTag(at::Tag::dynamic_output_shape) || has_trait(name, Trait::reads_lengths);
  const bool is_known = (has_trait(name, Trait::takes_indices) && !has_mask(arguments)) ||
                        (has_trait(name, Trait::takes_count) && has_count(arguments));
  if (depends_on_values && !is_known) return named("a data-dependent shape", op);
  return {};
}

std::string call_rejection(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) {
  const bool is_replayed = has_trait(op.schema().name(), Trait::collective);
  const std::string reason = is_replayed ? std::string() : operator_rejection(op, arguments);
  return reason.empty() ? tensor_rejection(op, arguments) : reason;
}

}  // namespace sconce::detail
