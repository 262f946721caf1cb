#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sconce/report/environment.hpp"

namespace apps {

/// The facts that sconce-info shows. A text is empty if it is unknown.
struct Machine {
  sconce::Environment environment = {};  ///< LibTorch, the driver, and the GPUs.
  std::string sconce = {};               ///< The version of sconce.
  std::string compiler = {};             ///< The compiler and its version.
  std::string standard = {};             ///< The C++ standard, such as "C++20".
  std::string cuda_runtime = {};         ///< CUDA runtime version in this process.
  std::string cudnn = {};                ///< Version of cuDNN.
  std::string nccl = {};                 ///< Version of NCCL.
  std::string cpu = {};                  ///< The processor's name.
  int cores = 0;                         ///< Number of logical cores available to this process.
  int num_threads = 0;                   ///< Number of threads that CPU operations use.
  /// Environment variables that are set and affect CUDA, LibTorch, NCCL, or Gloo, sorted by name.
  std::vector<std::pair<std::string, std::string>> variables = {};
};

/// Returns the facts of this process.
Machine this_machine();

}  // namespace apps
