#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench {

/// Thrown by a workload that cannot run in the requested form, such as a compiled step that sconce
/// replays.
class NotAvailable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The code to be timed, which is created in each process. Its Python counterpart is the function
/// of the same name in the Python file of the same name.
struct Workload {
  std::function<void()> call;          ///< one step, epoch, or operator call
  std::vector<double> check = {};      ///< values that both languages must agree on
  std::function<void()> wait = [] {};  ///< waits for the calls to finish before the clock stops
};

/// Creates a workload of a given size, such as a number of rows or parameters. A size of 0 selects
/// the default.
using MakeWorkload = std::function<Workload(int64_t size)>;

/// Workloads by name, such as "add".
using Workloads = std::map<std::string, MakeWorkload>;

Workloads conv();           ///< conv.cpp and conv.py
Workloads data_parallel();  ///< data_parallel.cpp; Python's DataParallel supports only GPUs
Workloads ddp();            ///< ddp.cpp and ddp.py
Workloads epochs();         ///< epochs.cpp and epochs.py
Workloads feeding();        ///< feeding.cpp and feeding.py
Workloads files();          ///< files.cpp and files.py
Workloads gpt();            ///< gpt.cpp and gpt.py
Workloads gpu();            ///< gpu.cpp and gpu.py
Workloads gpu_steps();      ///< gpu_steps.cpp and gpu_steps.py
Workloads limits();         ///< limits.cpp: the machine's limits for other workloads
Workloads ops();            ///< ops.cpp and ops.py
Workloads optimizers();     ///< optimizers.cpp and optimizers.py
Workloads race();           ///< race.cpp and race.py
Workloads recommend();      ///< recommend.cpp and recommend.py
Workloads recurrent();      ///< recurrent.cpp and recurrent.py
Workloads serving();        ///< serving.cpp: a recorded program and its network
Workloads steps();          ///< steps.cpp and steps.py

}  // namespace bench
