#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstddef>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "capture/recorded_step.hpp"

namespace sconce::detail {

/// The memory that a step allocates while it is recorded. This object does not keep the memory
/// alive. The tensors in recorded calls use separate storages, which have no data until the
/// recording is over and all lifetimes are known. Then, `place` assigns data to each storage, or
/// makes the tensors use a different storage.
class StepMemory {
 public:
  /// Identifies memory that the step allocated.
  using Id = size_t;

  /// The source of the values in memory during a replay.
  enum class Source {
    allocation,  ///< not written yet
    host,        ///< written by the host, at least in part
    constant,    ///< values from the recording, unless a call writes to the memory
    merged,      ///< unused, because other memory with the same values is read instead
    held,        ///< current contents; the memory is still referenced after the step
    result,      ///< new memory that a call returns in each replay
    written      ///< written by a call
  };

  /// Returns whether the step allocated the tensor's memory.
  bool has(const at::Tensor& tensor) const { return id_of(tensor).has_value(); }

  /// Returns the ID of the tensor's memory, or std::nullopt if the step did not allocate it.
  std::optional<Id> id_of(const at::Tensor& tensor) const;

  /// Returns whether the tensor's memory has been allocated but not yet read or written by a call.
  bool is_untouched(const at::Tensor& tensor) const;

  /// Returns whether a call allocates the tensor's memory in each replay.
  bool is_result(const at::Tensor& tensor) const;

  /// Registers new memory allocated by the call with index `call`.
  void add(const at::Tensor& tensor, Source source, size_t call);

  /// Returns a tensor to pass to the call with index `call`, which reads it. Memory that was
  /// created outside the step is shared with the returned tensor. Any other memory has no data yet.
  at::Tensor name(const at::Tensor& tensor, size_t call);

  /// Returns the value with each tensor replaced as described above.
  c10::IValue name(const c10::IValue& value, size_t call);

  /// Records that the call with index `call` writes to the tensor. `fills_tensor` indicates whether
  /// it overwrites every element without reading any.
  void write(const at::Tensor& tensor, bool fills_tensor, size_t call);

  /// Makes the calls read `other`, which has the same values, instead of the tensor's memory. Has
  /// no effect if the step later writes to either memory, or if either is still referenced after
  /// the step.
  void merge(const at::Tensor& tensor, Id other);

  /// Returns hashes of all memory that a call read before any call wrote to it, in the order of the
  /// reads. The host filled this memory, as `torch::tensor` does.
  const std::vector<size_t>& host_values() const { return host_values_; }

  /// Returns whether `tensor` shares memory with `name`, a tensor of a recorded call.
  bool is_named_by(const at::Tensor& tensor, const at::Tensor& name) const;

  /// Assigns a location to each piece of memory, and drops calls with results that are known or not
  /// needed. Memory that is still referenced after the step stays in place.
  void place(RecordedStep& step);

 private:
  struct Memory {
    c10::weak_intrusive_ptr<c10::StorageImpl> original;  // prevents reuse of the address
    Source source;
    size_t first;  // the call that allocates the memory or first writes to it
    size_t last;   // the last call that uses the memory
    c10::Storage named;
    c10::Storage kept = {};  // the original, while replays may need its values
    std::vector<at::Tensor> names = {};
    std::optional<Id> merged_with = {};
  };

  const Memory* find(const at::Tensor& tensor) const;
  Memory* find(const at::Tensor& tensor);
  std::set<size_t> merge_all();
  std::set<size_t> keep_constants(RecordedStep& step) const;
  void keep_held_memory(RecordedStep& step);
  void place_in_pool(RecordedStep& step) const;
  void free_after_last_use(const std::vector<size_t>& now_at, RecordedStep& step) const;

  std::vector<Memory> memory_ = {};
  std::unordered_map<const c10::StorageImpl*, Id> at_ = {};  // keyed by the address of the original
  std::vector<size_t> host_values_ = {};
};

}  // namespace sconce::detail
