// sconce-tour shows this machine's devices, demonstrates the device helpers, and times a matrix
// product.

#include <ATen/ops/mm.h>
#include <ATen/ops/rand.h>

#include <cmath>
#include <cstdio>
#include <iostream>

#include "arguments.hpp"
#include "cpu_threads.hpp"
#include "sconce/devices.hpp"
#include "sconce/report/environment.hpp"
#include "sconce/stopwatch.hpp"
#include "standard_output.hpp"

namespace {

void show_machine() {
  const std::string threads = apps::describe(sconce::tune_threads());
  const auto facts = sconce::environment();
  std::cout << "This machine (sconce-info shows more)\n"
            << "  LibTorch " << facts.torch.version << ", " << threads << ", "
            << facts.torch.num_gpus << " GPUs\n"
            << "  " << sconce::gpu_status_text(facts) << '\n';
}

void show_devices() {
  std::cout << "\nThe device helpers and their results on this machine\n"
            << "  cpu()           " << sconce::cpu() << '\n'
            << "  gpu(1)          " << sconce::gpu(1)
            << "   (only a name: it does not check that the GPU exists)\n"
            << "  num_gpus()      " << sconce::num_gpus() << '\n'
            << "  try_gpu()       " << sconce::try_gpu() << '\n'
            << "  try_gpu(10)     " << sconce::try_gpu(10) << '\n'
            << "  try_all_gpus()  {";
  const auto devices = sconce::try_all_gpus();
  for (size_t i = 0; i < devices.size(); ++i) std::cout << (i > 0 ? ", " : "") << devices[i];
  std::cout << "}\n";
}

// Prints the median time of nine products after a warm-up. Each measurement waits for the device
// before and after the product. Without these waits, the measurement on a GPU would cover only the
// kernel launch.
void time_product(torch::Device device, int64_t n) {
  const auto a = at::rand({n, n}, device);
  const auto b = at::rand({n, n}, device);
  const double seconds = sconce::median_seconds([&] { at::mm(a, b); }, device);
  const double flops = 2 * std::pow(static_cast<double>(n), 3);
  std::printf("  %-8s %9.3f ms   %10.1f GFLOP/s\n", device.str().c_str(), seconds * 1e3,
              flops / seconds / 1e9);
}

void show_products() {
  std::cout << "\nThe product of two 1000x1000 matrices: median of nine runs after a warm-up\n";
  time_product(sconce::cpu(), 1000);
  if (sconce::num_gpus() > 0) time_product(sconce::gpu(), 1000);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    CLI::App app(
        "Shows this machine's devices, demonstrates the device helpers, and times a matrix "
        "product.",
        "sconce-tour");
    const std::string text = apps::parse_arguments(app, argc, argv);
    if (!text.empty()) {
      std::cout << text;
    } else {
      show_machine();
      show_devices();
      show_products();
    }
    apps::check_standard_output();
  } catch (const apps::UsageError& error) {
    return apps::fail("sconce-tour", error.what(), 2);
  } catch (const std::exception& error) {
    return apps::fail("sconce-tour", error.what());
  }
}
