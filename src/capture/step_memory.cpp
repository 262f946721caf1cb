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

void let_name(const std::vector<at::Tensor>& names, const c10::Storage& storage) {
  for (const auto& name : names) {
    name.unsafeGetTensorImpl()->set_storage_keep_dtype(storage);
  }
}

// Drops the calls with the given indices. Returns a vector that maps the old index of each call to
// its new index. A dropped call maps to the index of the last operator call before it.
std::vector<size_t> drop_calls(const std::set<size_t>& needless, RecordedStep::Calls& calls) {
  std::vector<size_t> now_at;
  RecordedStep::Calls kept;
  kept.reserve(calls.size());
  size_t last_operator = 0;
  for (auto& call : calls) {
    if (needless.contains(now_at.size())) {
      now_at.push_back(last_operator);
      continue;
    }
    if (std::holds_alternative<OperatorCall>(call)) last_operator = kept.size();
    now_at.push_back(kept.size());
    kept.push_back(std::move(call));
  }
  calls = std::move(kept);
  return now_at;
}

// Divides a step into parts. Consecutive calls that can be compiled form one part, and each other
// call is a separate part.
class PartsOfStep {
 public:
  explicit PartsOfStep(const RecordedStep::Calls& calls) : parts_(calls.size()) {
    for (size_t i = 0; i < calls.size(); ++i) {
      const bool extends_previous = i > 0 && can_compile(calls[i - 1]) && can_compile(calls[i]);
      parts_[i] = {extends_previous ? parts_[i - 1].first : i, i};
    }
    for (size_t i = calls.size(); i-- > 1;) {
      if (parts_[i - 1].first == parts_[i].first) parts_[i - 1].last = parts_[i].last;
    }
  }

  // Extends the lifetime of memory that several parts of the step share. The extended lifetime
  // covers all parts from the first use of the memory through the last use, because compiled parts
  // read and write in a different order.
  Lifetime extended(Lifetime lifetime) const {
    const auto& first = parts_[lifetime.first];
    const auto& last = parts_[lifetime.last];
    if (first.first != last.first) lifetime = {lifetime.bytes, first.first, last.last};
    return lifetime;
  }

 private:
  struct Part {
    size_t first;
    size_t last;
  };

  std::vector<Part> parts_;  // one per call
};

size_t hash_of(const c10::Storage& storage) {
  if (storage.nbytes() == 0) return 0;
  return std::hash<std::string_view>()(
      {static_cast<const char*>(storage.data()), storage.nbytes()});
}

}  // namespace

std::optional<StepMemory::Id> StepMemory::id_of(const at::Tensor& tensor) const {
  const auto found = at_.find(tensor.storage().unsafeGetStorageImpl());
  return found == at_.end() ? std::nullopt : std::optional(found->second);
}

const StepMemory::Memory* StepMemory::find(const at::Tensor& tensor) const {
  const auto id = id_of(tensor);
  return id ? &memory_[*id] : nullptr;
}

StepMemory::Memory* StepMemory::find(const at::Tensor& tensor) {
  const auto id = id_of(tensor);
  return id ? &memory_[*id] : nullptr;
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

void StepMemory::write(const at::Tensor& tensor, bool fills_tensor, size_t call) {
  auto* memory = find(tensor);
  if (memory == nullptr) return;
  memory->merged_with.reset();
  for (auto& other : memory_) {
    if (other.merged_with == id_of(tensor)) other.merged_with.reset();
  }
  if (memory->source == Source::constant) {
    memory->source = Source::result;
    memory->kept = {};
  } else if (memory->source == Source::allocation) {
    const bool fills_all = fills_tensor && tensor.nbytes() == tensor.storage().nbytes();
    memory->source = fills_all ? Source::written : Source::host;
    memory->first = call;
    if (fills_all) memory->kept = {};
  }
}

void StepMemory::merge(const at::Tensor& tensor, Id other) {
  find(tensor)->merged_with = other;
}

bool StepMemory::is_named_by(const at::Tensor& tensor, const at::Tensor& name) const {
  const auto* memory = find(tensor);
  return name.storage().is_alias_of(memory == nullptr ? tensor.storage() : memory->named);
}

// Merges memory where possible, and returns the indices of the calls that become redundant.
std::set<size_t> StepMemory::merge_all() {
  std::set<size_t> needless;
  for (auto& memory : memory_) {
    if (!memory.merged_with) continue;
    auto& other = memory_[*memory.merged_with];
    if (memory.original.use_count() > 0 || other.original.use_count() > 0) continue;
    let_name(memory.names, other.named);
    other.last = std::max(other.last, memory.last);
    memory.source = Source::merged;
    needless.insert(memory.first);
  }
  return needless;
}

// Stores the constants that nothing else references after the step. Returns the indices of the
// calls that create the stored constants.
std::set<size_t> StepMemory::keep_constants(RecordedStep& step) const {
  std::set<size_t> needless;
  for (const auto& memory : memory_) {
    const bool is_constant = memory.source == Source::constant && memory.original.use_count() == 1;
    if (!is_constant) continue;
    needless.insert(memory.first);
    step.constants.push_back(memory.names.front());
  }
  return needless;
}

// Keeps in place any memory that is still referenced after the step, so that the recorded calls can
// use that memory directly. The data for all other memory is allocated later.
void StepMemory::keep_held_memory(RecordedStep& step) {
  for (auto& memory : memory_) {
    auto original = memory.original.lock();
    memory.kept = {};
    if (!original) continue;
    memory.source = Source::held;
    step.memory.emplace_back(std::move(original));
    let_name(memory.names, step.memory.back());
  }
}

void StepMemory::place_in_pool(RecordedStep& step) const {
  const PartsOfStep parts(step.calls);
  std::vector<Lifetime> lifetimes;
  for (const auto& memory : memory_) {
    if (memory.source != Source::written) continue;
    lifetimes.push_back(parts.extended({memory.named.nbytes(), memory.first, memory.last}));
  }
  const auto plan = plan_memory(lifetimes);
  step.pool = c10::GetCPUAllocator()->allocate(plan.bytes);
  auto offset = plan.offsets.begin();
  for (const auto& memory : memory_) {
    if (memory.source != Source::written) continue;
    set_data(memory.named, static_cast<char*>(step.pool.get()) + *offset++);
  }
}

// `now_at` maps the index of each recorded call to its index in the step.
void StepMemory::free_after_last_use(const std::vector<size_t>& now_at, RecordedStep& step) const {
  for (const auto& memory : memory_) {
    if (memory.source != Source::result) continue;
    auto& last = std::get<OperatorCall>(step.calls[now_at[memory.last]]);
    last.last_used.push_back(memory.names.front());
  }
}

void StepMemory::place(RecordedStep& step) {
  std::set<size_t> needless = merge_all();
  needless.merge(keep_constants(step));
  keep_held_memory(step);
  place_in_pool(step);
  const auto now_at = drop_calls(needless, step.calls);
  free_after_last_use(now_at, step);
}

}  // namespace sconce::detail
