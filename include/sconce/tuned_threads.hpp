#pragma once

#include <string>

namespace sconce {

/// The result of `tune_threads`.
struct TunedThreads {
  int threads = 1;          ///< number of threads that LibTorch uses for CPU computations
  std::string reason = {};  ///< why the number is lower than the default; otherwise empty
};

/// Sets LibTorch's CPU thread count to the number of CPUs available to the current process,
/// excluding CPUs that other processes keep busy. Returns the result. By default, LibTorch uses one
/// thread per core. OpenMP threads wait for each other at the end of each loop, so if another
/// process occupies a thread's CPU, all threads wait. In that case, a step can take 70 times as
/// long as with a single thread.
///
/// The function respects the process's CPU affinity (`taskset`, Slurm) and cgroup quota
/// (containers). The function measures CPU usage only once, for 50 ms, so it does not detect
/// processes that start later. The function has no effect if OMP_NUM_THREADS or MKL_NUM_THREADS is
/// set. Call this function first in `main`, before LibTorch runs any computation.
/// Python: `torch.set_num_threads`, with a thread count that you choose.
TunedThreads tune_threads();

}  // namespace sconce
