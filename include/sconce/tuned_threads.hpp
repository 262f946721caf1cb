#pragma once

#include <string>

namespace sconce {

/// The choice that `tune_threads` made.
struct TunedThreads {
  int threads = 1;          ///< number of threads that LibTorch uses for CPU computations
  std::string reason = {};  ///< why there are fewer than by default; empty otherwise
};

/// Sets the number of LibTorch's CPU threads to the number of CPUs that this process may use and
/// that no other process keeps busy, and returns the choice. By default, LibTorch uses a thread per
/// core. OpenMP's threads wait for each other in loops, so if another process occupies the CPU of
/// one of them, all of them wait: a step may take 70 times as long as with a single thread.
///
/// The function respects the CPUs that the process may use (`taskset`, Slurm) and the quota of its
/// cgroup (containers). It measures once, for 50 ms, so it does not see processes that start later.
/// It changes nothing if OMP_NUM_THREADS or MKL_NUM_THREADS is set. Call it first in `main`, before
/// LibTorch computes anything.
/// Python: `torch.set_num_threads`, with a number that you choose.
TunedThreads tune_threads();

}  // namespace sconce
