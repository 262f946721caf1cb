#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Device.h>

#include <string>

// These functions reject operations that a program cannot contain, and suggest alternatives.
namespace sconce::program::detail {

/// The prefix of error messages during a recording.
constexpr const char* record_error_prefix = "sconce::program::record: ";

/// A call that is being recorded.
struct RecordedCall {
  std::string place;  // for example, "calls[3] aten::linear"
  const c10::OperatorHandle& op;
  c10::Device device;  // device of the example
};

/// Returns the reason why programs must not contain the operator, or an empty string. A valid
/// operator exists in both Python and C++, and accesses only tensors.
std::string file_rejection(const c10::OperatorName& op);

/// @throw c10::Error if a program cannot contain the call.
void check_call(const RecordedCall& call, c10::ArrayRef<c10::IValue> arguments);

/// @throw c10::Error if a program cannot contain the results.
void check_results(const RecordedCall& call, c10::ArrayRef<c10::IValue> results);

/// @throw c10::Error that reports a call that modifies `what`.
[[noreturn]] void reject_write(const std::string& place, const std::string& what);

/// @throw c10::Error that reports a call that drew random numbers.
[[noreturn]] void reject_random(const std::string& place);

}  // namespace sconce::program::detail
