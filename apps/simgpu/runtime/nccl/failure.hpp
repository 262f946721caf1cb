#pragma once

#include <nccl.h>

#include <stdexcept>
#include <string>

namespace simgpu::nccl {

/// What a function of NCCL fails with.
struct Failure : std::runtime_error {
  Failure(ncclResult_t code, const std::string& text) : std::runtime_error(text), result(code) {}

  ncclResult_t result;
};

/// Returns the pointer. @throw Failure if it is null.
template <class T>
T* check_pointer(T* pointer) {
  if (pointer == nullptr) throw Failure(ncclInvalidArgument, "expected a pointer, got null");
  return pointer;
}

/// Writes the text to standard error, once, since LibTorch does not always show it, and keeps it
/// for ncclGetLastError. Returns the code.
ncclResult_t fail(const Failure& failure);

/// Text of the last failure in the process. Stays valid as long as the process.
const char* last_error();

/// Calls the function and turns a Failure into its code. Other exceptions pass: a race that is to
/// be thrown reaches the caller.
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
