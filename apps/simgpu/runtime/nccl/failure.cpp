#include "simgpu/runtime/nccl/failure.hpp"

#include <atomic>
#include <cstdio>
#include <mutex>
#include <set>

namespace simgpu::nccl {

namespace {

std::atomic<const char*> last_text{""};

// Stores a permanent copy of the text, because callers of ncclGetLastError do not free the returned
// text. Returns true if the text was not already stored.
bool keep_text(const std::string& text) {
  static auto& mutex = *new std::mutex;
  static auto& texts = *new std::set<std::string>;
  const std::lock_guard lock(mutex);
  const auto [kept, is_new] = texts.insert(text);
  last_text.store(kept->c_str());
  return is_new;
}

}  // namespace

ncclResult_t fail(const Failure& failure) {
  const auto text = "simulated GPUs: " + std::string(failure.what());
  if (keep_text(text)) std::fprintf(stderr, "%s\n", text.c_str());
  return failure.result;
}

const char* last_error() {
  return last_text.load();
}

}  // namespace simgpu::nccl
