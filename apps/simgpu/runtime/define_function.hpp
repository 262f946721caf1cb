#pragma once

/// Defines the function `symbol` of CUDA, CUPTI or NCCL. It returns `result` whatever its arguments
/// are, so it is defined without them: the caller's registers are not read. In C++ it is `name`,
/// because headers may declare the symbol, in each version with other arguments. The errors of all
/// these libraries have the size of an int.
#define SIMGPU_DEFINE(name, symbol, result)                                     \
  extern "C" __attribute__((visibility("default"))) int name() __asm__(symbol); \
  extern "C" int name() {                                                       \
    return result;                                                              \
  }
