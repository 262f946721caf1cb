#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <string>

namespace sconce::detail {

/// Returns what in a call of an operator a recorded step cannot replay, such as a host read, or an
/// empty text.
std::string refusal_of_call(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments);

/// Returns the part of the above that does not depend on the device or the layout of tensors.
std::string refusal_of_operator(const c10::OperatorHandle& op,
                                c10::ArrayRef<c10::IValue> arguments);

/// Returns which of an operator's tensors has no strided memory, or an empty text.
std::string refusal_of_layout(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> values);

/// Returns which of an operator's tensors a recorded step cannot replay, or an empty text.
std::string refusal_of_tensors(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> values);

}  // namespace sconce::detail
