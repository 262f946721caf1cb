#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <string>

namespace sconce::detail {

/// Returns the reason why a recorded step cannot replay this operator call, such as a host read.
/// Returns an empty string if there is no reason.
std::string call_rejection(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments);

/// Like `call_rejection`, but checks only for reasons that do not depend on the device or layout of
/// the tensors.
std::string operator_rejection(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments);

/// Returns a description of the operator's first tensor without strided memory, or an empty string.
std::string layout_rejection(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> values);

/// Returns a description of the operator's first tensor that a recorded step cannot replay, or an
/// empty string.
std::string tensor_rejection(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> values);

}  // namespace sconce::detail
