#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace bench {

/// What is timed, made anew in each process. Its peer in Python is the function of the same name
/// in the file of the same name.
struct Workload {
  std::function<void()> call;      ///< one step, epoch or operator call
  std::vector<double> check = {};  ///< numbers that both languages must come to, before any call
  std::function<void()> wait = [] {};  ///< waits until the calls are done, before the clock stops
};

/// Makes a workload of a size: rows, parameters or whatever it grows by; 0: its usual size.
using MakeWorkload = std::function<Workload(int64_t size)>;

/// Workloads by name, such as "add".
using Workloads = std::map<std::string, MakeWorkload>;

Workloads conv();           ///< conv.cpp and conv.py
Workloads data_parallel();  ///< data_parallel.cpp; Python's knows GPUs only
Workloads ddp();            ///< ddp.cpp and ddp.py
Workloads epochs();         ///< epochs.cpp and epochs.py
Workloads feeding();        ///< feeding.cpp and feeding.py
Workloads files();          ///< files.cpp and files.py
Workloads gpu();            ///< gpu.cpp and gpu.py
Workloads limits();         ///< limits.cpp: of the machine, for others' share of it
Workloads ops();            ///< ops.cpp and ops.py
Workloads optimizers();     ///< optimizers.cpp and optimizers.py
Workloads race();           ///< race.cpp and race.py
Workloads steps();          ///< steps.cpp and steps.py

}  // namespace bench
