#pragma once

#include <ATen/Parallel.h>
#include <ATen/record_function.h>
#include <c10/core/CPUAllocator.h>

#include <atomic>
#include <cstdint>
#include <ostream>
#include <string_view>

namespace sconce::test {

/// Counts of the work that LibTorch does. They do not depend on how busy the machine is.
struct Counts {
  int64_t operators = 0;    ///< operator calls, including calls made by other operators
  int64_t host_reads = 0;   ///< reads of a single value: `item()` and its callers
  int64_t allocations = 0;  ///< CPU memory allocations for tensors
  int64_t copies = 0;       ///< copies of tensors, including casts

  Counts operator-(const Counts& other) const {
    return {operators - other.operators, host_reads - other.host_reads,
            allocations - other.allocations, copies - other.copies};
  }
  bool operator<=(const Counts& other) const {
    return operators <= other.operators && host_reads <= other.host_reads &&
           allocations <= other.allocations && copies <= other.copies;
  }
  friend std::ostream& operator<<(std::ostream& out, const Counts& counts) {
    return out << "{operators " << counts.operators << ", host reads " << counts.host_reads
               << ", allocations " << counts.allocations << ", copies " << counts.copies << "}";
  }
};

/// Counts the work in all threads for the lifetime of the object. LibTorch runs with one thread,
/// because the optimizers call their kernels once per thread.
class Counting {
 public:
  Counting() : threads_(at::get_num_threads()) {
    at::set_num_threads(1);
    operators_ = host_reads_ = allocations_ = copies_ = 0;
    inner_ = c10::GetCPUAllocator();
    c10::SetCPUAllocator(&allocator_, /*priority=*/1);
    const auto callback = [](const at::RecordFunction& call) {
      const std::string_view name = call.name();
      ++operators_;
      if (name == "aten::_local_scalar_dense") ++host_reads_;
      if (name == "aten::copy_") ++copies_;
      return std::unique_ptr<at::ObserverContext>();
    };
    handle_ = at::addGlobalCallback(
        at::RecordFunctionCallback(callback).scopes({at::RecordScope::FUNCTION}));
  }
  ~Counting() {
    at::removeCallback(handle_);
    c10::SetCPUAllocator(inner_, /*priority=*/1);
    at::set_num_threads(threads_);
  }
  Counting(const Counting&) = delete;
  Counting& operator=(const Counting&) = delete;

  Counts counts() const { return {operators_, host_reads_, allocations_, copies_}; }

 private:
  // The allocator below owns the memory, so the memory can be freed after this object is destroyed.
  struct CountingAllocator : c10::Allocator {
    c10::DataPtr allocate(size_t bytes) override {
      ++allocations_;
      return inner_->allocate(bytes);
    }
    c10::DeleterFnPtr raw_deleter() const override { return inner_->raw_deleter(); }
    void copy_data(void* to, const void* from, size_t bytes) const override {
      inner_->copy_data(to, from, bytes);
    }
  };

  inline static std::atomic<int64_t> operators_, host_reads_, allocations_, copies_;
  inline static c10::Allocator* inner_ = nullptr;
  inline static CountingAllocator allocator_;
  int threads_;
  at::CallbackHandle handle_;
};

/// Makes a warmup call, and returns the counts for the next call.
template <class Call>
Counts counts_of(Call&& call) {
  for (int i = 0; i < 3; ++i) call();
  const Counting counting;
  call();
  return counting.counts();
}

}  // namespace sconce::test
