#include "capture/step_memory.hpp"

#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "capture/memory_plan.hpp"

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
  memory->merged_with.reset();
  const auto index = static_cast<size_t>(memory - memory_.data());
  for (auto& other : memory_) {
    if (other.merged_with == index) other.merged_with.reset();
  }
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

void StepMemory::merge(const at::Tensor& tensor, const c10::StorageImpl* other) {
  const auto found = std::find_if(memory_.begin(), memory_.end(), [&](const Memory& memory) {
    return memory.named.unsafeGetStorageImpl() == other;
  });
  find(tensor)->merged_with = static_cast<size_t>(found - memory_.begin());
}

c10::StorageImpl* StepMemory::storage_of(const at::Tensor& tensor) const {
  const auto* memory = find(tensor);
  return (memory == nullptr ? tensor.storage() : memory->named).unsafeGetStorageImpl();
}

// Returns the calls that are not needed then.
std::set<size_t> StepMemory::merge_all() {
  std::set<size_t> needless;
  for (auto& memory : memory_) {
    if (!memory.merged_with) continue;
    auto& other = memory_[*memory.merged_with];
    if (memory.original.use_count() > 0 || other.original.use_count() > 0) continue;
    for (auto& tensor : memory.names) {
      tensor.unsafeGetTensorImpl()->set_storage_keep_dtype(other.named);
    }
    other.last = std::max(other.last, memory.last);
    memory.source = Source::merged;
    needless.insert(memory.first);
  }
  return needless;
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
  std::set<size_t> needless = merge_all();
  for (auto& memory : memory_) {
    const bool is_constant = memory.source == Source::constant && memory.original.use_count() == 1;
    if (is_constant) needless.insert(memory.first);
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
  OperatorCall* previous = nullptr;
  calls.reserve(step.calls.size());
  for (size_t i = 0; i < step.calls.size(); ++i) {
    auto* call = std::get_if<OperatorCall>(&step.calls[i]);
    if (needless.contains(i)) {
      if (previous != nullptr) {
        previous->last_used.insert(previous->last_used.end(), call->last_used.begin(),
                                   call->last_used.end());
      }
      continue;
    }
    if (call != nullptr) {
      for (auto*& storage : call->results) {
        const auto found = moved.find(storage);
        if (found != moved.end()) storage = found->second;
      }
    }
    calls.push_back(std::move(step.calls[i]));
    if (call != nullptr) previous = std::get_if<OperatorCall>(&calls.back());
  }
  step.calls = std::move(calls);
}

}  // namespace sconce::detail
