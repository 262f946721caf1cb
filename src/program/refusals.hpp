#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Device.h>

#include <string>

// What a program cannot contain, with what to do instead.
namespace sconce::program::detail {

/// Begins the errors of a recording.
constexpr const char* of_record = "sconce::program::record: ";

/// A call that is being recorded.
struct RecordedCall {
  std::string place;  // such as "calls[3] aten::linear"
  const c10::OperatorHandle& op;
  c10::Device device;  // of the example
};

/// Returns why no program may contain the operator, or an empty text. Python and C++ must have it,
/// and it must not touch anything but tensors.
std::string refusal_of_file(const c10::OperatorName& op);

/// @throw c10::Error unless a program can contain the call.
void check_call(const RecordedCall& call, c10::ArrayRef<c10::IValue> arguments);

/// @throw c10::Error unless a program can contain the results.
void check_results(const RecordedCall& call, c10::ArrayRef<c10::IValue> results);

/// @throw c10::Error about a call that changes `what`.
[[noreturn]] void refuse_write(const std::string& place, const std::string& what);

/// @throw c10::Error about a call that drew random numbers.
[[noreturn]] void refuse_random(const std::string& place);

}  // namespace sconce::program::detail
