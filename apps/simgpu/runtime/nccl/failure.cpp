#include "simgpu/runtime/nccl/failure.hpp"

#include <atomic>
#include <cstdio>
#include <mutex>
#include <set>

namespace simgpu::nccl {

namespace {

std::atomic<const char*> last_text{""};

// Returns a copy that is never freed, since callers of ncclGetLastError do not free it.
const char* keep_text(const std::string& text) {
  static auto& mutex = *new std::mutex;
  static auto& texts = *new std::set<std::string>;
  const std::lock_guard lock(mutex);
  return texts.insert(text).first->c_str();
}

}  // namespace

ncclResult_t fail(const Failure& failure) {
  last_text.store(keep_text("simulated GPUs: " + std::string(failure.what())));
  std::fprintf(stderr, "%s\n", last_text.load());
  return failure.result;
}

const char* last_error() {
  return last_text.load();
}

}  // namespace simgpu::nccl
