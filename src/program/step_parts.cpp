#include "program/step_parts.hpp"

#include <c10/util/Exception.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>

#include "capture/aliases.hpp"
#include "capture/for_each_tensor.hpp"
#include "capture/known_operators.hpp"
#include "program/argument.hpp"
#include "program/view_calls.hpp"

namespace sconce::program::detail {

namespace {

using sconce::detail::fills;
using sconce::detail::for_each_tensor;
using sconce::detail::has_trait;
using sconce::detail::OperatorCall;
using sconce::detail::RecordedStep;
using sconce::detail::Trait;
using sconce::detail::writes;

using Address = const c10::StorageImpl*;

Address address_of(const at::Tensor& tensor) {
  return tensor.storage().unsafeGetStorageImpl();
}

bool is_memory(const at::Tensor& tensor) {
  return tensor.defined() && !tensor.unsafeGetTensorImpl()->is_wrapped_number();
}

int64_t elements_of(const at::Tensor& tensor) {
  return static_cast<int64_t>(tensor.storage().nbytes()) / tensor.element_size();
}

// Returns a 1-dim tensor that spans the entire memory of the given tensor.
at::Tensor flat_name(const at::Tensor& tensor) {
  at::Tensor flat(tensor.unsafeGetTensorImpl()->shallow_copy_and_detach(
      c10::VariableVersion(0), /*allow_tensor_metadata_change=*/true));
  const std::vector<int64_t> sizes = {elements_of(tensor)};
  const std::vector<int64_t> strides = {1};
  flat.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, 0);
  return flat;
}

// Returns the call's input arguments. If the call writes its results to existing memory, omits the
// output arguments, which follow the inputs.
c10::ArrayRef<c10::IValue> input_arguments(const OperatorCall& call) {
  const c10::ArrayRef<c10::IValue> all = call.arguments;
  return call.returning ? all.slice(0, call.returning->schema().arguments().size()) : all;
}

std::vector<at::Tensor> new_tensors(const OperatorCall& call) {
  if (!call.returning) return call.results;
  std::vector<at::Tensor> made;
  const c10::ArrayRef<c10::IValue> all = call.arguments;
  for_each_tensor(all.slice(input_arguments(call).size()),
                  [&](const at::Tensor& tensor) { made.push_back(tensor); });
  return made;
}

// Calls `f` with each argument tensor that the operator may write to.
template <class F>
void for_each_written(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments,
                      const F& f) {
  const bool may_write_all = has_trait(op.schema().name(), Trait::silent_write);
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!may_write_all && !writes(op.schema().arguments()[i])) continue;
    for_each_tensor(arguments[i], [&](const at::Tensor& tensor) {
      if (is_memory(tensor)) f(tensor);
    });
  }
}

// Describes how the whole step uses memory, which determines the inputs and outputs of its parts.
struct StepUse {
  explicit StepUse(const RecordedStep& step);
  bool is_needed_after(Address memory, size_t end) const {
    const auto found = last_use.find(memory);
    return held.contains(memory) || (found != last_use.end() && found->second >= end);
  }

  std::set<Address> held;  // in use after the step, or created outside the step
  std::unordered_map<Address, size_t> last_use = {};
  std::unordered_map<Address, int> writes = {};  // number of writes that modify existing contents
  std::unordered_map<Address, at::Tensor> constants = {};
};

StepUse::StepUse(const RecordedStep& step) {
  for (const auto& storage : step.memory) held.insert(storage.unsafeGetStorageImpl());
  for (const auto& input : step.trace.inputs) held.insert(input.storage);
  for (const auto& constant : step.constants) constants.emplace(address_of(constant), constant);
  for (size_t i = 0; i < step.calls.size(); ++i) {
    const auto* const call = std::get_if<OperatorCall>(&step.calls[i]);
    if (call == nullptr) continue;  // the host reads only gradients, which are in `held`
    const auto use = [&](const at::Tensor& tensor) {
      if (tensor.defined()) last_use[address_of(tensor)] = i;
    };
    for_each_tensor(c10::ArrayRef<c10::IValue>(call->arguments), use);
    for (const auto& result : call->results) use(result);
    if (call->returning) continue;
    for_each_written(call->op, call->arguments,
                     [this](const at::Tensor& tensor) { ++writes[address_of(tensor)]; });
  }
}

// Writes the program for one part of a step.
class PartWriter {
 public:
  PartWriter(const StepUse& use, std::set<Address>& made, StepPart& part)
      : use_(use), made_(made), part_(part) {
    graph().device = c10::kCPU;
  }

  void add(const OperatorCall& call);
  void finish();

 private:
  // A memory block in the program, identified by the number of the tensor that spans the block.
  struct Memory {
    size_t value;
    Placement placement;
    at::Tensor name;
    std::unordered_map<std::string, size_t> views = {};
    std::optional<size_t> input = {};
    bool is_written = false;
    bool is_result = false;  // result of a call that allocates memory in each replay
  };

  Graph& graph() { return part_.program; }
  Memory& memory_of(const at::Tensor& tensor);
  Memory& add_input(const at::Tensor& tensor);
  Memory& add_constant(const at::Tensor& tensor);
  size_t number_of(const at::Tensor& tensor);
  at::Tensor allocate_filled(const OperatorCall& call);
  std::vector<Argument> results_of(const OperatorCall& call, const std::vector<at::Tensor>& made);
  void add_outputs();
  Memory& take(const at::Tensor& tensor, size_t value, bool is_result);
  void make_vector(Memory& memory);

  const StepUse& use_;
  std::set<Address>& made_;  // created by the step so far
  StepPart& part_;
  std::unordered_map<Address, Memory> memory_ = {};
  std::vector<Address> order_ = {};  // the order in which calls created memory
};

PartWriter::Memory& PartWriter::add_input(const at::Tensor& tensor) {
  const size_t value = graph().values++;
  const int64_t elements = elements_of(tensor);
  graph().inputs.push_back({.name = "memory_" + std::to_string(part_.call.inputs.size()),
                            .value = value,
                            .dtype = tensor.scalar_type(),
                            .shape = {Size(elements)}});
  part_.call.inputs.push_back(flat_name(tensor));
  return memory_
      .insert_or_assign(address_of(tensor), Memory{.value = value,
                                                   .placement = Placement::flat(elements),
                                                   .name = tensor,
                                                   .input = part_.call.inputs.size() - 1})
      .first->second;
}

PartWriter::Memory& PartWriter::memory_of(const at::Tensor& tensor) {
  const auto known = memory_.find(address_of(tensor));
  if (known != memory_.end()) return known->second;
  const auto constant = use_.constants.find(address_of(tensor));
  return constant == use_.constants.end() ? add_input(tensor) : add_constant(tensor);
}

// A compiler can optimize operations on a constant with equal elements, whereas the elements of an
// input must be read at run time.
PartWriter::Memory& PartWriter::add_constant(const at::Tensor& tensor) {
  const auto number = flat_name(tensor).narrow(0, 0, 1).item();
  const Argument::Any value = number.isBoolean()         ? Argument::Any(number.toBool())
                              : number.isIntegral(false) ? Argument::Any(Size(number.toLong()))
                                                         : Argument::Any(number.toDouble());
  const int64_t elements = elements_of(tensor);
  const size_t vector = add_call(graph(), "aten::full", "",
                                 {{Argument::List{{Size(elements)}}},
                                  {value},
                                  {tensor.scalar_type()},
                                  {c10::Layout::Strided},
                                  {c10::DeviceType::CPU}});
  return memory_
      .insert_or_assign(
          address_of(tensor),
          Memory{.value = vector, .placement = Placement::flat(elements), .name = tensor})
      .first->second;
}

size_t PartWriter::number_of(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.layout() == c10::kStrided && !tensor.is_conj() && !tensor.is_neg(),
              "expected a dense tensor, got a different kind of tensor");
  auto& memory = memory_of(tensor);
  TORCH_CHECK(memory.name.scalar_type() == tensor.scalar_type(),
              "expected memory with a single dtype, got memory used as ", memory.name.scalar_type(),
              " and as ", tensor.scalar_type());
  const auto placement = Placement::of(tensor);
  const auto key = c10::str(placement.sizes, placement.strides, placement.offset);
  const auto view = memory.views.find(key);
  if (view != memory.views.end()) return view->second;
  const size_t value = add_view(graph(), memory.value, memory.placement, placement);
  memory.views.emplace(key, value);
  return value;
}

// Registers the memory of a tensor created by a call.
PartWriter::Memory& PartWriter::take(const at::Tensor& tensor, size_t value, bool is_result) {
  if (tensor.is_floating_point()) {
    part_.call.bits = std::min(part_.call.bits, static_cast<int>(8 * tensor.element_size()));
  }
  order_.push_back(address_of(tensor));
  made_.insert(address_of(tensor));
  return memory_
      .insert_or_assign(address_of(tensor), Memory{.value = value,
                                                   .placement = Placement::of(tensor),
                                                   .name = tensor,
                                                   .is_result = is_result})
      .first->second;
}

// Copies the memory to a vector. Later calls that modify the memory write to the vector instead.
// Python and C++ store the elements of a vector in the same order.
void PartWriter::make_vector(Memory& memory) {
  memory.value = add_call(graph(), "aten::clone", "",
                          {{ValueId{add_flat(graph(), memory.value, memory.placement)}},
                           {c10::MemoryFormat::Contiguous}});
  memory.placement = Placement::flat(memory.placement.numel());
  memory.views.clear();
}

// If the operator is the first to write to memory that the step allocated, adds the allocation to
// the program and returns the tensor that the operator fills. The new memory has the tensor's
// layout, because Inductor must not write to a view with a different layout.
at::Tensor PartWriter::allocate_filled(const OperatorCall& call) {
  if (call.returning || call.arguments.empty() || !call.arguments[0].isTensor()) return {};
  const auto& tensor = call.arguments[0].toTensor();
  if (!is_memory(tensor) || !fills(call.op.schema(), 0)) return {};
  if (tensor.numel() != elements_of(tensor)) return {};
  const auto memory = address_of(tensor);
  if (made_.contains(memory) || memory_.contains(memory) || use_.held.contains(memory)) return {};
  take(tensor, add_empty(graph(), Placement::of(tensor), tensor.scalar_type()),
       /*is_result=*/false);
  return tensor;
}

// Returns the results of the call, numbered consecutively from the next free number.
std::vector<Argument> PartWriter::results_of(const OperatorCall& call,
                                             const std::vector<at::Tensor>& made) {
  const c10::OperatorHandle op = call.returning.value_or(call.op);
  const auto& returns = op.schema().returns();
  std::vector<Argument> results(returns.size());
  if (made.empty()) return results;
  const auto result = [&](const at::Tensor& tensor) -> Argument {
    if (!tensor.defined()) return {};
    return {ValueId{graph().values++}};
  };
  if (returns.size() == 1 && returns[0].type()->kind() == c10::TypeKind::ListType) {
    Argument::List list;
    for (const auto& tensor : made) list.push_back(result(tensor));
    return {{std::move(list)}};
  }
  TORCH_CHECK(made.size() == returns.size(),
              "expected an operator that returns tensors or one tensor list, got ",
              call.op.schema().name());
  for (size_t i = 0; i < made.size(); ++i) results[i] = result(made[i]);
  return results;
}

void PartWriter::add(const OperatorCall& call) {
  const auto filled = allocate_filled(call);
  const auto& op = call.returning.value_or(call.op);
  const auto given = input_arguments(call);
  Call added{op};
  for (size_t i = 0; i < given.size(); ++i) {
    added.arguments.push_back(argument_of(
        given[i], *op.schema().arguments()[i].real_type(),
        [this](const at::Tensor& tensor) { return Argument{ValueId{number_of(tensor)}}; }));
  }
  for_each_written(op, given, [this](const at::Tensor& tensor) {
    memory_.at(address_of(tensor)).is_written = true;
  });
  size_t next = graph().values;
  const auto made = new_tensors(call);
  added.results = results_of(call, made);
  graph().calls.push_back(std::move(added));
  for (const auto& tensor : made) {
    if (!tensor.defined()) continue;
    auto& memory = take(tensor, next++, !call.returning);
    if (use_.writes.contains(address_of(tensor))) make_vector(memory);
  }
  if (filled.defined() && use_.writes.at(address_of(filled)) > 1) {
    make_vector(memory_.at(address_of(filled)));
  }
  for (const auto& name : call.last_used) {
    const auto memory = memory_.find(address_of(name));
    const bool is_input = memory != memory_.end() && memory->second.input;
    if (is_input) part_.call.last_used.push_back(name);
  }
}

// Adds outputs for the memory that is still needed after this part.
void PartWriter::add_outputs() {
  for (const auto address : order_) {
    const auto memory = memory_.at(address);
    if (!use_.is_needed_after(address, part_.call.end)) continue;
    if (memory.is_result) {
      const auto placement = Placement::of(memory.name);
      graph().outputs.push_back(
          {.name = "result_" + std::to_string(part_.call.results.size()),
           .value = add_view(graph(), memory.value, memory.placement, placement),
           .dtype = memory.name.scalar_type()});
      for (const int64_t size : placement.sizes) graph().outputs.back().shape.push_back(Size(size));
      part_.call.results.push_back(memory.name);
      continue;
    }
    auto& into = add_input(memory.name);
    into.is_written = true;
    const size_t view = add_view(graph(), into.value, into.placement, memory.placement);
    add_call(graph(), "aten::copy_", "", {{ValueId{view}}, {ValueId{memory.value}}, {false}});
  }
}

void PartWriter::finish() {
  add_outputs();
  std::set<size_t> written;
  for (const auto& [address, memory] : memory_) {
    if (memory.input && memory.is_written) written.insert(*memory.input);
  }
  for (const size_t index : written) part_.call.written.push_back(part_.call.inputs[index]);
}

}  // namespace

std::vector<StepPart> parts_of(const RecordedStep& step) {
  const StepUse use(step);
  std::set<Address> made;
  std::vector<StepPart> parts;
  for (size_t begin = 0; begin < step.calls.size(); ++begin) {
    size_t end = begin;
    while (end < step.calls.size() && sconce::detail::can_compile(step.calls[end])) ++end;
    if (end == begin) continue;
    auto& part = parts.emplace_back(StepPart{.call = {.begin = begin, .end = end}});
    PartWriter writer(use, made, part);
    for (size_t i = begin; i < end; ++i) writer.add(std::get<OperatorCall>(step.calls[i]));
    writer.finish();
    begin = end;
  }
  return parts;
}

}  // namespace sconce::program::detail
