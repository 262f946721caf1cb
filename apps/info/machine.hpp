#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sconce/report/environment.hpp"

namespace apps {

/// What sconce-info shows. A text is empty if it is not known.
struct Machine {
  sconce::Environment environment = {};  ///< LibTorch, the driver and the GPUs.
  std::string sconce = {};               ///< The version of sconce.
  std::string compiler = {};             ///< The compiler of this build and its version.
  std::string standard = {};             ///< The C++ standard of this build, such as "C++20".
  std::string cuda_runtime = {};         ///< CUDA runtime version in this process.
  std::string cudnn = {};                ///< Version of cuDNN.
  std::string nccl = {};                 ///< Version of NCCL.
  std::string cpu = {};                  ///< The processor's name.
  int cores = 0;                         ///< The logical cores that this process may use.
  int num_threads = 0;                   ///< Number of threads of an operation on the CPU.
  /// The environment variables that are set and that affect CUDA, LibTorch, NCCL or Gloo, sorted.
  std::vector<std::pair<std::string, std::string>> variables = {};
};

/// Returns the facts of this process.
Machine this_machine();

}  // namespace apps
