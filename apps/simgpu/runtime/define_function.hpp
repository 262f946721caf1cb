#pragma once

/// Defines the function `symbol` of CUDA, CUPTI, or NCCL. The function returns `result` for any
/// arguments, so it is defined without parameters and ignores the caller's registers. Its C++ name
/// is `name`, because headers may declare the symbol with different parameters in each version. The
/// error types of all these libraries have the size of an int.
#define SIMGPU_DEFINE(name, symbol, result)                                     \
  extern "C" __attribute__((visibility("default"))) int name() __asm__(symbol); \
  extern "C" int name() {                                                       \
    return result;                                                              \
  }
