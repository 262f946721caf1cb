// sconce-bench FILE.NAME [SIZE] runs a workload for bench.py, taking turns with its Python
// counterpart. The program prints the workload's check values as a JSON list. Then, for each line N
// on standard input, the program prints the number of seconds that N calls took. The exit code is 3
// if the workload is not available, such as a compiled step that sconce replays.

#include <charconv>
#include <exception>
#include <iomanip>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "sconce/cuda/memory.hpp"
#include "sconce/devices.hpp"
#include "sconce/stopwatch.hpp"
#include "sconce/tuned_memory.hpp"
#include "workload.hpp"

namespace {

double seconds_of(const bench::Workload& workload, int64_t calls) {
  workload.wait();
  const sconce::Stopwatch watch;
  for (int64_t i = 0; i < calls; ++i) workload.call();
  workload.wait();
  return watch.seconds();
}

bench::Workloads all_workloads() {
  const std::map<std::string, bench::Workloads> files = {{"conv", bench::conv()},
                                                         {"data_parallel", bench::data_parallel()},
                                                         {"ddp", bench::ddp()},
                                                         {"epochs", bench::epochs()},
                                                         {"feeding", bench::feeding()},
                                                         {"files", bench::files()},
                                                         {"gpt", bench::gpt()},
                                                         {"gpu", bench::gpu()},
                                                         {"gpu_steps", bench::gpu_steps()},
                                                         {"limits", bench::limits()},
                                                         {"ops", bench::ops()},
                                                         {"optimizers", bench::optimizers()},
                                                         {"race", bench::race()},
                                                         {"recommend", bench::recommend()},
                                                         {"recurrent", bench::recurrent()},
                                                         {"serving", bench::serving()},
                                                         {"steps", bench::steps()}};
  bench::Workloads all;
  for (const auto& [file, workloads] : files) {
    for (const auto& [name, make] : workloads) all[file + "." + name] = make;
  }
  return all;
}

// Returns the size from the command line, or std::nullopt if it is not a nonnegative integer.
std::optional<int64_t> size_of(std::string_view text) {
  int64_t size = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), size);
  if (error != std::errc() || end != text.end() || size < 0) return {};
  return size;
}

int refuse(const std::string& expected, const char* got) {
  std::cerr << "sconce-bench: expected " << expected << ", got " << got << "\n";
  return 2;
}

int fail(const std::exception& error, int code) {
  std::cerr << "sconce-bench: " << error.what() << "\n";
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  sconce::tune_memory();
  if (argc < 2 || argc > 3) {
    std::cerr << "usage: sconce-bench FILE.NAME [SIZE]\n";
    return 2;
  }
  const auto workloads = all_workloads();
  const auto make = workloads.find(argv[1]);
  if (make == workloads.end()) return refuse("a workload such as ops.add", argv[1]);
  const auto size = size_of(argc == 3 ? argv[2] : "0");
  if (!size) return refuse("a non-negative size", argv[2]);
  try {
    const auto workload = make->second(*size);
    std::cout << std::setprecision(17) << "[";
    for (size_t i = 0; i < workload.check.size(); ++i) {
      std::cout << (i == 0 ? "" : ", ") << workload.check[i];
    }
    std::cout << "]" << std::endl;
    for (int64_t calls = 0; std::cin >> calls;) {
      if (calls == 0) {
        std::cout << sconce::cuda::memory_stats(sconce::try_gpu()).max_reserved << std::endl;
      } else {
        std::cout << seconds_of(workload, calls) << std::endl;
      }
    }
  } catch (const bench::NotAvailable& error) {
    return fail(error, 3);
  } catch (const std::exception& error) {
    return fail(error, 1);
  }
}
