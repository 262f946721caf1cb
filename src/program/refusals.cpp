#include "program/refusals.hpp"

#include <c10/util/Exception.h>

#include <array>
#include <string_view>
#include <utility>

#include "capture/for_each_tensor.hpp"
#include "capture/known_operators.hpp"
#include "capture/refusal.hpp"

namespace sconce::program::detail {

namespace {

// The error message for operations that the `capture` layer rejects with a reason that starts with
// `reason`.
struct Refusal {
  std::string_view reason;
  const char* text;
};

constexpr std::array<Refusal, 5> refusals = {{
    {"a host read (aten::equal)",
     "expected operators that return tensors, got an operator that returns a value to the host; "
     "compare elements with torch::eq, and use sconce::nn attention instead of LibTorch attention"},
    {"a host read",
     "expected operators that return tensors, got an operator that returns a value to the host; "
     "keep the value in a tensor, for example with torch::where instead of a branch"},
    {"a data-dependent shape",
     "expected results whose shapes depend only on input shapes, got a result whose shape depends "
     "on values; keep all elements and use a mask, for example with torch::where"},
    {"a collective",
     "expected operators that run in a single process, got a collective; record the network "
     "without DistributedDataParallel"},
    {"a tensor whose memory is replaced",
     "expected tensors that keep their memory, got an operator that replaces a tensor's memory; "
     "create a new tensor instead of resizing an existing tensor"},
}};

// Returns whether the operator sets a tensor's memory or sizes without any checks. C++ code does
// not call such operators, but a file could contain them.
bool is_unchecked(std::string_view op) {
  return op == "aten::shallow_copy_data_" || op == "aten::_reshape_alias" ||
         (op.starts_with("aten::_sparse_") && op.ends_with("_tensor_unsafe"));
}

void check_tensors(const RecordedCall& call, c10::ArrayRef<c10::IValue> values) {
  const auto reason = sconce::detail::layout_rejection(call.op, values);
  TORCH_CHECK(reason.empty(), record_error_prefix, call.place,
              ": expected dense tensors, got a sparse or quantized tensor; call to_dense() or "
              "dequantize() first");
  sconce::detail::for_each_tensor(values, [&](const at::Tensor& tensor) {
    if (!tensor.defined()) return;
    TORCH_CHECK(tensor.is_cpu() || tensor.device() == call.device, record_error_prefix, call.place,
                ": expected tensors on the CPU or on ", call.device,
                " (the example's device), got a tensor on ", tensor.device());
  });
}

}  // namespace

std::string file_rejection(const c10::OperatorName& op) {
  using sconce::detail::Trait;
  if (!op.name.starts_with("aten::")) return "an operator from outside LibTorch";
  if (op.name == "aten::from_file") return "an operator that opens files";
  if (op.name == "aten::_print") return "an operator that prints";
  if (sconce::detail::has_trait(op.name, Trait::relocation) || is_unchecked(op.name)) {
    return "a tensor whose memory is replaced";
  }
  return {};
}

void check_call(const RecordedCall& call, c10::ArrayRef<c10::IValue> arguments) {
  const auto reason = sconce::detail::operator_rejection(call.op, arguments);
  for (const auto& refusal : refusals) {
    TORCH_CHECK(!reason.starts_with(refusal.reason), record_error_prefix, call.place, ": ",
                refusal.text);
  }
  TORCH_CHECK(reason.empty(), record_error_prefix, call.place,
              ": expected operators that map tensors to tensors, got ", reason);
  const auto not_in_files = file_rejection(call.op.operator_name());
  TORCH_CHECK(
      not_in_files.empty(), record_error_prefix, call.place,
      ": expected operators from the aten namespace (also available in Python), got ", not_in_files,
      "; implement the operation with LibTorch's operators, or pass its result as an input");
  for (const auto& argument : arguments) {
    if (argument.isGenerator()) reject_random(call.place);
  }
  check_tensors(call, arguments);
}

void check_results(const RecordedCall& call, c10::ArrayRef<c10::IValue> results) {
  check_tensors(call, results);
}

void reject_write(const std::string& place, const std::string& what) {
  TORCH_CHECK(false, record_error_prefix, place,
              ": expected a function that writes only to its own tensors, got a write to ", what,
              "; call eval() on the network, or clone the tensor before writing to it");
}

void reject_random(const std::string& place) {
  TORCH_CHECK(
      false, record_error_prefix, place,
      ": expected no random numbers, got an operator that generates random numbers; call eval() on "
      "the network, run lazy layers once before recording, or pass the random numbers as an input");
}

}  // namespace sconce::program::detail
