#pragma once

#include <nccl.h>

#include <stdexcept>
#include <string>

namespace simgpu::nccl {

/// A failure of an NCCL function.
struct Failure : std::runtime_error {
  Failure(ncclResult_t code, const std::string& text) : std::runtime_error(text), result(code) {}

  ncclResult_t result;
};

/// Returns the pointer. @throw Failure if the pointer is null.
template <class T>
T* check_pointer(T* pointer) {
  if (pointer == nullptr) throw Failure(ncclInvalidArgument, "expected a pointer, got null");
  return pointer;
}

/// Writes the text to standard error once, because LibTorch does not always display it, and stores
/// it for ncclGetLastError. Returns the code.
ncclResult_t fail(const Failure& failure);

/// Returns the text of the last failure in the process. The pointer remains valid until the process
/// ends.
const char* last_error();

/// Calls the function and converts a Failure to its code. Other exceptions propagate, so a thrown
/// race reaches the caller.
template <class Function>
ncclResult_t guarded(const Function& function) {
  try {
    function();
    return ncclSuccess;
  } catch (const Failure& failure) {
    return fail(failure);
  }
}

}  // namespace simgpu::nccl
