#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sconce/report/environment.hpp"

namespace apps {

/// The information that sconce-info shows. Unknown strings are empty.
struct Machine {
  sconce::Environment environment = {};  ///< Information about LibTorch, the driver, and the GPUs.
  std::string sconce = {};               ///< The version of sconce.
  std::string compiler = {};             ///< The compiler and its version.
  std::string standard = {};             ///< The C++ standard, such as "C++20".
  std::string cuda_runtime = {};         ///< The CUDA runtime version in this process.
  std::string cudnn = {};                ///< The version of cuDNN.
  std::string nccl = {};                 ///< The version of NCCL.
  std::string cpu = {};                  ///< The name of the processor.
  int cores = 0;                         ///< The number of logical cores available to this process.
  int num_threads = 0;                   ///< The number of threads used by CPU operations.
  /// The environment variables that are set and that affect CUDA, LibTorch, NCCL, or Gloo, sorted
  /// by name.
  std::vector<std::pair<std::string, std::string>> variables = {};
};

/// Returns information about this process.
Machine this_machine();

}  // namespace apps
