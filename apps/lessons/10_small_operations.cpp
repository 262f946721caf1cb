// Many small operations against one large: every call has a price, on the GPU most of all.
// Covers: T0.batch T1.small
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <ATen/record_function.h>
#include <atomic>
#include <cstdio>
#include <iostream>
#include <vector>

using sconce::median_seconds, sconce::repr;

std::string_view counted;
std::atomic<int> calls;

std::unique_ptr<at::ObserverContext> count_call(const at::RecordFunction& call) {
  if (call.name() == counted) ++calls;
  return nullptr;
}

// Counts how often the work makes such a call: an operator's, or a wait for the device.
int calls_of(std::string_view name, const std::function<void()>& work) {
  counted = name;
  calls = 0;
  const bool is_operator = name.starts_with("aten::");
  const auto scope =
      is_operator ? at::RecordScope::FUNCTION : at::RecordScope::USER_SCOPE;
  const auto handle =
      at::addGlobalCallback(at::RecordFunctionCallback(count_call).scopes({scope}));
  work();
  at::removeCallback(handle);
  return calls;
}

int main() {
  const auto device = sconce::try_gpu();
  torch::manual_seed(0);
  // Whole numbers, whose sum is exact in any order.
  auto a = torch::randint(10, {1000, 1000}, torch::kFloat).to(device);
  auto b = torch::randint(10, {1000, 1000}, torch::kFloat).to(device);

  // T0.batch, T1.small
  // A thousand additions of a thousand numbers, or one of a million.
  const auto add = [&] { return a + b; };
  const auto add_rows = [&] {
    std::vector<torch::Tensor> rows(1000);
    for (int i = 0; i < 1000; ++i) rows[i] = a[i] + b[i];
    return rows;
  };
  std::cout << "equal sums: " << repr(torch::stack(add_rows()).equal(add()))
            << ", in all " << repr(add().sum(torch::kDouble).item<double>()) << " on "
            << add().device() << '\n';
  std::printf("additions: %d small, %d large\n", calls_of("aten::add", add_rows),
              calls_of("aten::add", add));

  // The same for copies to the CPU.
  const auto copy = [](const torch::Tensor& x) {
    return x.to(x.options().device(torch::kCPU), /*non_blocking=*/false, /*copy=*/true);
  };
  const auto copy_all = [&] { return copy(a); };
  const auto copy_rows = [&] {
    std::vector<torch::Tensor> rows(1000);
    for (int i = 0; i < 1000; ++i) rows[i] = copy(a[i]);
    return rows;
  };
  std::cout << "equal copies: " << repr(torch::stack(copy_rows()).equal(copy_all()))
            << ", in all " << repr(copy_all().sum(torch::kDouble).item<double>()) << '\n';
  std::printf("copies: %d small, %d large\n", calls_of("aten::_to_copy", copy_rows),
              calls_of("aten::_to_copy", copy_all));

  const auto time = [&] {
    std::printf("~ additions: 1000 small %.3f ms, one large %.3f ms; ",
                median_seconds(add_rows, device) * 1e3,
                median_seconds(add, device) * 1e3);
    std::printf("copies: 1000 small %.3f ms, one large %.3f ms\n",
                median_seconds(copy_rows, device) * 1e3,
                median_seconds(copy_all, device) * 1e3);
  };
  std::printf("waits of the clock: %d\n", calls_of("sconce::synchronize", time));
}
