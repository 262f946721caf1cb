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

/// The memory that a step makes while it is recorded. It does not keep it. Instead, the recorded
/// calls have tensors that only name the memory: their storage has no data until the recording is
/// over and all lifetimes are known. Then `place` gives these storages their data, or the names
/// another storage.
class StepMemory {
 public:
  /// Identifies memory that the step has made.
  using Id = size_t;

  /// Whose values memory has in a replay.
  enum class Source {
    allocation,  ///< nobody's yet
    host,        ///< those that the host has written, or part of them
    constant,    ///< those of the recording, as long as no call writes it
    merged,      ///< none: other memory with the same values is read instead
    held,        ///< those that are there, because somebody holds it after the step
    result,      ///< those of new memory, which the call gives in each replay
    written      ///< those that a call writes into it
  };

  /// Returns whether the step has made the tensor's memory.
  bool has(const at::Tensor& tensor) const { return id_of(tensor).has_value(); }

  /// Returns the tensor's memory, or nothing if the step has not made it.
  std::optional<Id> id_of(const at::Tensor& tensor) const;

  /// Returns whether the tensor's memory has been allocated, and no call has read or written it.
  bool is_untouched(const at::Tensor& tensor) const;

  /// Returns whether a call gives the tensor new memory in each replay.
  bool is_result(const at::Tensor& tensor) const;

  /// Takes note of new memory, made by the call with index `call`.
  void add(const at::Tensor& tensor, Source source, size_t call);

  /// Returns a tensor for the arguments of the call with index `call`, which reads it. Memory that
  /// the step has not made is shared, other memory has no data yet.
  at::Tensor name(const at::Tensor& tensor, size_t call);

  /// Returns the value with its tensors named.
  c10::IValue name(const c10::IValue& value, size_t call);

  /// Takes note that a call writes the tensor, and whether it writes each element and reads none.
  void write(const at::Tensor& tensor, bool fills_it, size_t call);

  /// Lets the calls read `other` instead of the tensor's memory, which has the same values, unless
  /// the step writes one of both later or somebody still holds one after it.
  void merge(const at::Tensor& tensor, Id other);

  /// Returns hashes of the memory that calls have read and none had written, in the order of the
  /// reads. The host has written it, as in `torch::tensor`.
  const std::vector<size_t>& host_values() const { return host_values_; }

  /// Returns whether both share memory, where `name` is a tensor of a recorded call.
  bool is_named_by(const at::Tensor& tensor, const at::Tensor& name) const;

  /// Gives all memory its place and drops the calls whose results are known or not needed. What
  /// somebody still holds after the step stays where it is.
  void place(RecordedStep& step);

 private:
  struct Memory {
    c10::weak_intrusive_ptr<c10::StorageImpl> original;  // its address is not used again
    Source source;
    size_t first;  // the call that makes the memory or first writes it
    size_t last;   // the last call that uses it
    c10::Storage named;
    c10::Storage kept = {};  // the original, as long as the replays may need its values
    std::vector<at::Tensor> names = {};
    std::optional<Id> merged_with = {};
  };

  const Memory* find(const at::Tensor& tensor) const;
  Memory* find(const at::Tensor& tensor);
  std::set<size_t> merge_all();
  std::set<size_t> keep_constants(RecordedStep& step) const;
  void stay_where_held(RecordedStep& step);
  void place_in_pool(RecordedStep& step) const;
  void free_after_last_use(const std::vector<size_t>& now_at, RecordedStep& step) const;

  std::vector<Memory> memory_ = {};
  std::unordered_map<const c10::StorageImpl*, Id> at_ = {};  // by the address of the original
  std::vector<size_t> host_values_ = {};
};

}  // namespace sconce::detail
