// sconce-bench FILE.NAME [SIZE]: a workload for bench.py, which runs it in turn with Python's.
// Prints the workload's check as a JSON list. Then, for each line N on standard input, prints the
// seconds that N calls took.

#include <exception>
#include <iomanip>
#include <iostream>
#include <string>

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

bench::Workload make_workload(const std::string& name, int64_t size) {
  const std::map<std::string, bench::Workloads> files = {{"conv", bench::conv()},
                                                         {"data_parallel", bench::data_parallel()},
                                                         {"ddp", bench::ddp()},
                                                         {"epochs", bench::epochs()},
                                                         {"feeding", bench::feeding()},
                                                         {"files", bench::files()},
                                                         {"gpt", bench::gpt()},
                                                         {"gpu", bench::gpu()},
                                                         {"limits", bench::limits()},
                                                         {"ops", bench::ops()},
                                                         {"optimizers", bench::optimizers()},
                                                         {"race", bench::race()},
                                                         {"steps", bench::steps()}};
  const auto dot = name.find('.');
  return files.at(name.substr(0, dot)).at(name.substr(dot + 1))(size);
}

}  // namespace

int main(int argc, char** argv) {
  sconce::tune_memory();
  if (argc < 2 || argc > 3) {
    std::cerr << "usage: sconce-bench FILE.NAME [SIZE]\n";
    return 2;
  }
  try {
    const auto workload = make_workload(argv[1], argc == 3 ? std::stoll(argv[2]) : 0);
    std::cout << std::setprecision(17) << "[";
    for (size_t i = 0; i < workload.check.size(); ++i) {
      std::cout << (i == 0 ? "" : ", ") << workload.check[i];
    }
    std::cout << "]" << std::endl;
    for (int64_t calls = 0; std::cin >> calls;) {
      std::cout << seconds_of(workload, calls) << std::endl;
    }
  } catch (const std::exception& error) {
    std::cerr << "sconce-bench: " << error.what() << "\n";
    return 1;
  }
}
