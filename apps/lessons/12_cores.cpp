// The CPU's cores: how many threads a product uses, and what one of them takes.
// Covers: T1.cores T2.cores
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <ATen/record_function.h>
#include <cstdio>
#include <iostream>

using sconce::repr;

int waits = 0;

// The clock waits for the CPU too, which takes no time; a profile shows it by this name.
std::unique_ptr<at::ObserverContext> count_wait(const at::RecordFunction& call) {
  if (std::string_view(call.name()) == "sconce::synchronize") ++waits;
  return nullptr;
}

int main() {
  // T1.cores, T2.cores
  // note: the device cpu stands for all cores, but a process may be given fewer: torchrun sets
  // OMP_NUM_THREADS to 1 for each of its processes.
  const int threads = torch::get_num_threads();
  std::printf("threads: %d\n", threads);

  // The number is set for the operators of this thread. A second thread can cost more
  // than it brings: where products are small, or another program runs beside. The numbers
  // are whole, so that each product is exact, however its sums are shared out.
  torch::manual_seed(0);
  auto x = torch::randint(2, {1000, 800}, torch::kFloat);
  auto y = torch::randint(2, {800, 1000}, torch::kFloat);
  const auto multiply = [&] { return torch::matmul(x, y); };
  at::addGlobalCallback(
      at::RecordFunctionCallback(count_wait).scopes({at::RecordScope::USER_SCOPE}));

  torch::set_num_threads(1);
  auto with_one = multiply();
  const double seconds_of_one = sconce::median_seconds(multiply);
  torch::set_num_threads(threads);
  auto with_all = multiply();
  const double seconds_of_all = sconce::median_seconds(multiply);

  const int64_t operations = 2 * x.size(0) * x.size(1) * y.size(1);
  const double rate = static_cast<double>(operations) / 1e9;  // GFLOP, of each product
  std::printf(
      "~ with one thread: %.3f ms, %.1f GFLOP/s; with all: %.3f ms, %.1f GFLOP/s\n",
      seconds_of_one * 1e3, rate / seconds_of_one, seconds_of_all * 1e3,
      rate / seconds_of_all);
  if (threads == 1)
    std::cout << "All are one here: both products were made by the same thread.\n";
  std::cout << "equal products: " << repr(with_one.equal(with_all)) << ", in all "
            << repr(with_all.sum(torch::kDouble).item<double>()) << '\n';
  std::cout << "floating-point operations of each: " << operations << '\n';
  std::cout << "waits of the clock: " << waits << '\n';
}
