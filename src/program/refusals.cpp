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

// What to do instead, by the beginning of a reason of the layer `capture`.
std::string advice_for(std::string_view reason) {
  static constexpr std::array<std::pair<std::string_view, const char*>, 5> advice = {{
      {"a host read", "compute with the tensor instead, such as by torch::where"},
      {"a shape that depends on values", "use a mask of a fixed shape, such as torch::where"},
      {"a sparse tensor", "call to_dense() or dequantize() before"},
      {"a collective", "record the network without DistributedDataParallel"},
      {"a tensor that gets other memory", "make a new tensor instead of resizing one"},
  }};
  for (const auto& [reason_of, instead] : advice) {
    if (reason.starts_with(reason_of)) return instead;
  }
  return "leave it out of the function";
}

void check_tensors(const RecordedCall& call, c10::ArrayRef<c10::IValue> values) {
  const auto reason = sconce::detail::refusal_of_layout(call.op, values);
  TORCH_CHECK(reason.empty(), of_record, call.place, ": expected dense tensors, got ", reason, "; ",
              advice_for(reason));
  sconce::detail::for_each_tensor(values, [&](const at::Tensor& tensor) {
    if (!tensor.defined()) return;
    TORCH_CHECK(tensor.is_cpu() || tensor.device() == call.device, of_record, call.place,
                ": expected tensors on the CPU or on ", call.device,
                ", where the example is, got one on ", tensor.device());
  });
}

}  // namespace

std::string refusal_of_file(const c10::OperatorName& op) {
  using sconce::detail::Trait;
  if (!op.name.starts_with("aten::")) return "an operator that is not LibTorch's own";
  if (op.name == "aten::from_file") return "an operator that opens files";
  if (sconce::detail::has_trait(op.name, Trait::relocation))
    return "a tensor that gets other memory";
  return {};
}

void check_call(const RecordedCall& call, c10::ArrayRef<c10::IValue> arguments) {
  const auto reason = sconce::detail::refusal_of_operator(call.op, arguments);
  TORCH_CHECK(reason.empty(), of_record, call.place,
              ": expected operators from tensors to tensors, got ", reason, "; ",
              advice_for(reason));
  const auto not_in_files = refusal_of_file(call.op.operator_name());
  TORCH_CHECK(not_in_files.empty(), of_record, call.place,
              ": expected operators of the namespace aten, ", "which Python has too, got ",
              not_in_files, "; write it with LibTorch's operators, or pass its result as an input");
  for (const auto& argument : arguments) {
    if (argument.isGenerator()) refuse_random(call.place);
  }
  check_tensors(call, arguments);
}

void check_results(const RecordedCall& call, c10::ArrayRef<c10::IValue> results) {
  check_tensors(call, results);
}

void refuse_write(const std::string& place, const std::string& what) {
  TORCH_CHECK(false, of_record, place,
              ": expected a function that changes only its own tensors, got a ", "change of ", what,
              "; call eval() on the network, or clone() before the change");
}

void refuse_random(const std::string& place) {
  TORCH_CHECK(false, of_record, place,
              ": expected no random numbers, got some; call eval() on the ",
              "network, run lazy layers once before, or pass the numbers as an input");
}

}  // namespace sconce::program::detail
