#include "detail/step_memory.hpp"

#include <c10/core/CPUAllocator.h>

#include <string_view>
#include <utility>

#include "detail/memory_plan.hpp"

namespace sconce::detail {

namespace {

c10::Storage without_data(size_t bytes) {
  return c10::Storage(c10::Storage::use_byte_size_t(), bytes, c10::DataPtr(nullptr, c10::kCPU),
                      /*allocator=*/nullptr, /*resizable=*/false);
}

void set_data(const c10::Storage& storage, void* data) {
  storage.unsafeGetStorageImpl()->set_data_ptr_noswap({data, c10::kCPU});
}

size_t hash_of(const c10::Storage& storage) {
  if (storage.nbytes() == 0) return 0;
  return std::hash<std::string_view>()(
      {static_cast<const char*>(storage.data()), storage.nbytes()});
}

}  // namespace

const StepMemory::Memory* StepMemory::find(const at::Tensor& tensor) const {
  const auto found = at_.find(tensor.storage().unsafeGetStorageImpl());
  return found == at_.end() ? nullptr : &memory_[found->second];
}

StepMemory::Memory* StepMemory::find(const at::Tensor& tensor) {
  return const_cast<Memory*>(std::as_const(*this).find(tensor));
}

bool StepMemory::is_untouched(const at::Tensor& tensor) const {
  const auto* memory = find(tensor);
  return memory != nullptr && memory->source == Source::allocation;
}

bool StepMemory::is_result(const at::Tensor& tensor) const {
  const auto* memory = find(tensor);
  return memory != nullptr && memory->source == Source::result;
}

void StepMemory::add(const at::Tensor& tensor, Source source, size_t call) {
  const c10::Storage& storage = tensor.storage();
  at_[storage.unsafeGetStorageImpl()] = memory_.size();
  memory_.push_back({.original = storage.getWeakStorageImpl(),
                     .source = source,
                     .first = call,
                     .last = call,
                     .named = without_data(storage.nbytes())});
  if (source == Source::allocation || source == Source::constant) memory_.back().kept = storage;
}

at::Tensor StepMemory::name(const at::Tensor& tensor, size_t call) {
  if (!tensor.defined()) return tensor;
  at::Tensor named(tensor.unsafeGetTensorImpl()->shallow_copy_and_detach(
      c10::VariableVersion(0), /*allow_tensor_metadata_change=*/true));
  auto* memory = find(tensor);
  if (memory == nullptr) return named;
  if (memory->source == Source::allocation && memory->names.empty()) {
    memory->source = Source::host;
    host_values_.push_back(hash_of(tensor.storage()));
  }
  memory->last = call;
  memory->named.set_nbytes(tensor.storage().nbytes());  // an operator may have resized it
  named.unsafeGetTensorImpl()->set_storage_keep_dtype(memory->named);
  memory->names.push_back(named);
  return named;
}

c10::IValue StepMemory::name(const c10::IValue& value, size_t call) {
  if (value.isTensor()) return name(value.toTensor(), call);
  if (value.isTensorList()) {
    c10::List<at::Tensor> named;
    for (const at::Tensor& tensor : value.toTensorVector()) named.push_back(name(tensor, call));
    return named;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> named;
    for (const auto& tensor : value.toOptionalTensorVector()) {
      named.push_back(tensor ? std::optional(name(*tensor, call)) : tensor);
    }
    return named;
  }
  return value;
}

void StepMemory::write(const at::Tensor& tensor, bool fills_it, size_t call) {
  auto* memory = find(tensor);
  if (memory == nullptr) return;
  if (memory->source == Source::constant) {
    memory->source = Source::result;
    memory->kept = {};
  } else if (memory->source == Source::allocation) {
    const bool fills_all = fills_it && tensor.nbytes() == tensor.storage().nbytes();
    memory->source = fills_all ? Source::written : Source::host;
    memory->first = call;
    if (fills_all) memory->kept = {};
  }
}

c10::StorageImpl* StepMemory::storage_of(const at::Tensor& result) const {
  return find(result)->named.unsafeGetStorageImpl();
}

// Lets the calls name the memory where the step has put it.
void StepMemory::stay(Memory& memory, c10::Storage original, RecordedStep& step) {
  for (auto& tensor : memory.names) {
    tensor.unsafeGetTensorImpl()->set_storage_keep_dtype(original);
  }
  step.memory.push_back(std::move(original));
}

void StepMemory::place_in_pool(const std::vector<Memory*>& planned, RecordedStep& step) {
  std::vector<Lifetime> lifetimes;
  for (const auto* memory : planned) {
    lifetimes.push_back({memory->named.nbytes(), memory->first, memory->last});
  }
  const auto plan = plan_memory(lifetimes);
  step.pool = c10::GetCPUAllocator()->allocate(plan.bytes);
  for (size_t i = 0; i < planned.size(); ++i) {
    set_data(planned[i]->named, static_cast<char*>(step.pool.get()) + plan.offsets[i]);
  }
}

void StepMemory::place(RecordedStep& step) {
  std::vector<Memory*> planned;
  std::unordered_map<const c10::StorageImpl*, c10::StorageImpl*> moved;
  std::set<size_t> of_constants;
  for (auto& memory : memory_) {
    const bool is_constant = memory.source == Source::constant && memory.original.use_count() == 1;
    if (is_constant) of_constants.insert(memory.first);
    if (auto original = memory.original.lock()) {
      moved[memory.named.unsafeGetStorageImpl()] = original.get();
      memory.kept = {};
      stay(memory, c10::Storage(std::move(original)), step);
    } else if (memory.source == Source::result) {
      auto& last = std::get<OperatorCall>(step.calls[memory.last]);
      last.last_used.push_back(memory.named.unsafeGetStorageImpl());
      step.memory.push_back(memory.named);
    } else if (memory.source == Source::written) {
      planned.push_back(&memory);
    }
  }
  place_in_pool(planned, step);
  std::vector<std::variant<OperatorCall, HostCall>> calls;
  for (size_t i = 0; i < step.calls.size(); ++i) {
    if (of_constants.contains(i)) continue;
    if (auto* call = std::get_if<OperatorCall>(&step.calls[i])) {
      for (auto*& storage : call->results) {
        const auto found = moved.find(storage);
        if (found != moved.end()) storage = found->second;
      }
    }
    calls.push_back(std::move(step.calls[i]));
  }
  step.calls = std::move(calls);
}

}  // namespace sconce::detail
