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

/// The memory that a step makes while it is recorded. It does not keep it: the recorded calls name
/// memory that is given its place only when the recording is over and the lifetimes are known.
class StepMemory {
 public:
  /// Whose values memory has in a replay.
  enum class Source {
    allocation,  ///< nobody's yet
    host,        ///< those that the host has written, or part of them
    constant,    ///< those of the recording, as long as no call writes it
    merged,      ///< none: other memory with the same values is read instead
    result,      ///< those of new memory, which the call gives in each replay
    written      ///< those that a call writes into it
  };

  /// Returns whether the step has made the tensor's memory.
  bool has(const at::Tensor& tensor) const { return find(tensor) != nullptr; }

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

  /// Lets the calls read other memory of the replays instead of the tensor's, which has the same
  /// values, unless the step writes one of both later or somebody still holds one after it.
  void merge(const at::Tensor& tensor, const c10::StorageImpl* other);

  /// Returns hashes of the memory that calls have read and none had written, in the order of the
  /// reads. The host has written it, as in `torch::tensor`.
  const std::vector<size_t>& host_values() const { return host_values_; }

  /// Returns the storage that has the tensor's memory in the replays. For memory that the step has
  /// not made this is the tensor's own.
  c10::StorageImpl* storage_of(const at::Tensor& tensor) const;

  /// Gives all memory its place and drops the calls that only make constants. What somebody still
  /// holds after the step stays where it is.
  void place(RecordedStep& step);

 private:
  struct Memory {
    c10::weak_intrusive_ptr<c10::StorageImpl> original;  // its address is not used again
    Source source;
    size_t first;
    size_t last;
    c10::Storage named;
    c10::Storage kept = {};  // the original, as long as the replays may need its values
    std::vector<at::Tensor> names = {};
    std::optional<size_t> merged_with = {};
  };

  const Memory* find(const at::Tensor& tensor) const;
  Memory* find(const at::Tensor& tensor);
  std::set<size_t> merge_all();
  static void stay(Memory& memory, c10::Storage original, RecordedStep& step);
  void place_in_pool(const std::vector<Memory*>& planned, RecordedStep& step);

  std::vector<Memory> memory_ = {};
  std::unordered_map<const c10::StorageImpl*, size_t> at_ = {};
  std::vector<size_t> host_values_ = {};
};

}  // namespace sconce::detail
