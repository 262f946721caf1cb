// Transfers: bytes per second to the device and back, beside the time of a product.
// Covers: T0.copy T1.slow T3.to
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <ATen/record_function.h>
#include <cstdio>
#include <iostream>

using sconce::median_seconds, sconce::repr;

int waits = 0;

// A profile shows each wait by this name; the CPU's take no time.
std::unique_ptr<at::ObserverContext> count_wait(const at::RecordFunction& call) {
  if (std::string_view(call.name()) == "sconce::synchronize") ++waits;
  return nullptr;
}

int main() {
  const auto device = sconce::try_gpu();
  torch::manual_seed(0);

  // T0.copy, T1.slow, T3.to
  // note: T3 has tensors start on the CPU; one made with a device starts on that device.
  auto x = torch::randint(2, {2048, 1024}, torch::kFloat);
  auto on_device = x.to(device);
  auto made_there = torch::ones({2048, 1024}, device);
  std::cout << "from " << x.device() << " to " << on_device.device() << ", " << x.nbytes()
            << " bytes; made there: " << made_there.device() << '\n';
  std::cout << "values kept: " << repr(on_device.cpu().equal(x)) << '\n';
  std::cout << "the same tensor: " << repr(on_device.is_same(x)) << '\n';

  // Whole numbers, so that the product's sum is exact in any order.
  const auto multiply = [&] { return torch::matmul(on_device, on_device.t()); };
  auto product = multiply();
  std::cout << "product: " << repr(product.sizes()) << " on " << product.device()
            << ", in all " << repr(product.sum(torch::kDouble).item<double>()) << '\n';

  at::addGlobalCallback(
      at::RecordFunctionCallback(count_wait).scopes({at::RecordScope::USER_SCOPE}));
  const auto gigabytes = [&](const std::function<void()>& work) {
    return static_cast<double>(x.nbytes()) / median_seconds(work, device) / 1e9;
  };
  const auto copy = [](const torch::Tensor& from, torch::Device to) {
    return from.to(from.options().device(to), /*non_blocking=*/true, /*copy=*/true);
  };
  const double there = gigabytes([&] { copy(x, device); });
  // Without the wait, a copy that does not block may not have arrived when it is read.
  const double back = gigabytes([&] {
    copy(on_device, torch::kCPU);
    sconce::synchronize(device);
  });
  std::printf(
      "~ to the device %.2f GB/s, back to the CPU %.2f GB/s, the product %.3f ms\n",
      there, back, median_seconds(multiply, device) * 1e3);
  if (device.is_cpu()) {
    std::cout
        << "Without a GPU nothing is transferred: these are copies within the memory.\n";
  } else {
    auto pinned = x.pin_memory();
    const double from_pinned = gigabytes([&] { copy(pinned, device); });
    std::printf("~ to the device from pinned memory %.2f GB/s\n", from_pinned);
    std::cout << "values kept: " << repr(copy(pinned, device).cpu().equal(x)) << '\n';
  }
  std::cout << "waits of the clock and for copies: " << waits << '\n';
}
