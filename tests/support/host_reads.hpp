#pragma once

#include <ATen/record_function.h>

#include <atomic>
#include <cstdint>
#include <string_view>

namespace sconce::test {

/// Counts the host reads of tensors in all threads for the lifetime of the object: reads of a
/// single value (`item()` and its callers) on every device, including the CPU, and copies from a
/// GPU to the CPU.
class HostReads {
 public:
  HostReads() {
    count_ = 0;
    const auto callback = [](const at::RecordFunction& call) {
      const std::string_view name = call.name();
      if (name == "aten::_local_scalar_dense" || (name == "aten::copy_" && is_read(call))) ++count_;
      return std::unique_ptr<at::ObserverContext>();
    };
    handle_ = at::addGlobalCallback(at::RecordFunctionCallback(callback).needsInputs(true));
  }
  ~HostReads() { at::removeCallback(handle_); }
  HostReads(const HostReads&) = delete;
  HostReads& operator=(const HostReads&) = delete;

  int64_t count() const { return count_; }

 private:
  static bool is_read(const at::RecordFunction& copy) {
    const auto inputs = copy.inputs();
    return inputs.size() >= 2 && inputs[0].isTensor() && inputs[1].isTensor() &&
           inputs[0].toTensor().is_cpu() && inputs[1].toTensor().is_cuda();
  }

  inline static std::atomic<int64_t> count_ = 0;
  at::CallbackHandle handle_;
};

}  // namespace sconce::test
