#pragma once

#include <ATen/record_function.h>

#include <atomic>
#include <cstdint>

namespace sconce::test {

/// Counts how often the host reads a single value of a tensor (`item()` and what calls it) while
/// this lives, in all threads and on every device, the CPU included.
class HostReads {
 public:
  HostReads() {
    count_ = 0;
    handle_ = at::addGlobalCallback(at::RecordFunctionCallback([](const at::RecordFunction& call) {
      if (std::string_view(call.name()) == "aten::_local_scalar_dense") ++count_;
      return std::unique_ptr<at::ObserverContext>();
    }));
  }
  ~HostReads() { at::removeCallback(handle_); }
  HostReads(const HostReads&) = delete;
  HostReads& operator=(const HostReads&) = delete;

  int64_t count() const { return count_; }

 private:
  inline static std::atomic<int64_t> count_ = 0;
  at::CallbackHandle handle_;
};

}  // namespace sconce::test
