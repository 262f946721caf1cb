#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sconce {

/// A GPU as the NVIDIA driver describes it. A member is empty where the driver does not tell.
struct GpuFacts {
  std::optional<int> index = {};             ///< CUDA's number of it; empty if hidden or not known.
  std::string name = {};                     ///< Such as "NVIDIA H100".
  std::string uuid = {};                     ///< Such as "GPU-6f2d...".
  std::string bus_id = {};                   ///< Such as "00000000:65:00.0".
  std::optional<int64_t> memory_total = {};  ///< In bytes.
  std::optional<int64_t> memory_used = {};   ///< In bytes, by all processes.
  std::optional<int> utilization = {};       ///< In percent of the driver's last interval.
};

/// What the NVIDIA driver says by its library NVML.
struct DriverFacts {
  std::string error = {};           ///< Why NVML says nothing; empty if it does.
  std::string version = {};         ///< Such as "580.65.06".
  std::string cuda = {};            ///< The newest CUDA that the driver serves, such as "13.0".
  std::vector<GpuFacts> gpus = {};  ///< In the order of their bus ids, hidden ones too.
};

/// What LibTorch says. A version is empty where it is not known.
struct TorchFacts {
  std::string version = {};                 ///< LibTorch's.
  bool built_with_cuda = false;             ///< Whether sconce was built with a CUDA LibTorch.
  bool cuda_loaded = false;                 ///< Whether libtorch_cuda is in this process.
  std::string cuda = {};                    ///< The CUDA that LibTorch was built with.
  std::string cuda_runtime = {};            ///< The CUDA runtime in this process.
  std::string cudnn = {};                   ///< cuDNN's.
  std::string nccl = {};                    ///< NCCL's.
  int num_gpus = 0;                         ///< The GPUs that LibTorch can use.
  std::vector<std::string> gpu_buses = {};  ///< Their bus ids in CUDA's order; none if not known.
  int num_threads = 0;                      ///< The threads that an operation on the CPU uses.
};

/// What a program runs on. Python: `torch.utils.collect_env`.
struct Environment {
  std::string sconce = {};    ///< The version of sconce.
  std::string compiler = {};  ///< The compiler of sconce and its version.
  std::string standard = {};  ///< The C++ standard of sconce, such as "C++20".
  std::string cpu = {};       ///< The processor's name; empty if not known.
  int cores = 0;              ///< The logical cores that this process may use.
  TorchFacts torch = {};      ///< What LibTorch says.
  DriverFacts driver = {};    ///< What the driver says.
  /// The variables that change what CUDA, LibTorch or NCCL do, sorted; only those that are set.
  std::vector<std::pair<std::string, std::string>> variables = {};
};

/// Whether a GPU can be used, or else why not.
enum class GpuVerdict {
  usable,           ///< All is well.
  no_driver,        ///< There is no NVIDIA driver, or it does not answer.
  cpu_build,        ///< There is a driver, but LibTorch is a CPU build.
  cuda_not_loaded,  ///< LibTorch is a CUDA build, but libtorch_cuda is not in this process.
  hidden,           ///< CUDA_VISIBLE_DEVICES hides all GPUs.
  driver_too_old,   ///< The driver does not serve the CUDA that LibTorch was built with.
  unusable,         ///< None of these, and LibTorch finds no GPU all the same.
};

/// Returns the facts about this process and its machine. It asks CUDA how many GPUs there are, and
/// starts a context on none of them. The numbers of memory and utilization are of this moment.
Environment environment();

/// Returns the verdict on these facts, and on nothing else.
GpuVerdict gpu_verdict(const Environment& facts);

/// Returns the verdict as one sentence without a full stop, and with the remedy if there is a
/// fault.
std::string gpu_verdict_text(const Environment& facts);

/// Returns the number and names of the GPUs that LibTorch can use, such as "1 GPU (NVIDIA H100)".
std::string gpu_names(const Environment& facts);

/// Prints the facts as a table, whose last line is the verdict.
std::ostream& operator<<(std::ostream& out, const Environment& facts);

/// Returns the facts and the verdict as JSON. Bytes that are not UTF-8 become U+FFFD, and what is
/// not known is null.
std::string to_json(const Environment& facts);

}  // namespace sconce
