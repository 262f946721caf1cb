#pragma once

#include <string>

namespace sconce {

/// What `tune_threads` has chosen.
struct TunedThreads {
  int threads = 1;          ///< number of threads in which LibTorch computes on the CPU
  std::string reason = {};  ///< why there are fewer than by default; empty if there are as many
};

/// Lets LibTorch compute in as many threads as the process has CPUs that no other process keeps
/// busy, and returns their number. By default LibTorch has a thread for each core. OpenMP's threads
/// wait for each other in loops, so if another process uses the CPU of one of them, all wait for
/// it: a step may take 70 times as long as in one thread.
///
/// Respects the CPUs that the process may use (`taskset`, Slurm) and the quota of its cgroup
/// (containers). Measures for 50 ms, once: it does not see processes that start later. Changes
/// nothing if OMP_NUM_THREADS or MKL_NUM_THREADS is set. Call it first in `main`, before LibTorch
/// computes. Python: `torch.set_num_threads`, with a number of one's own.
TunedThreads tune_threads();

}  // namespace sconce
