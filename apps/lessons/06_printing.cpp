// Reading values: printing, item(), a list and a copy all make the host wait for the device.
// Covers: T0.sync T1.print T3.auto
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <ATen/record_function.h>
#include <atomic>
#include <cstdio>
#include <iostream>
#include <vector>

using sconce::median_seconds, sconce::repr, sconce::try_gpu;

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

std::vector<float> tolist(const torch::Tensor& X) {
  const auto on_cpu = X.cpu().contiguous();
  return {on_cpu.data_ptr<float>(), on_cpu.data_ptr<float>() + on_cpu.numel()};
}

int main() {
  const auto device = try_gpu();
  auto X = torch::ones({2, 3}, device);

  // T0.sync, T1.print, T3.auto
  // note: "printing copies to main memory first" is not so in Python: it reads a GPU's tensor piece
  // by piece, 22 scalars for these six numbers; print X.cpu() there. sconce::repr differs: it
  // copies once, then reads the copy. And .numpy() on a GPU tensor raises: nothing is copied for
  // you. What stalls is the wait, not the interpreter's lock.
  std::cout << repr(X) << '\n';
  std::cout << repr(X.cpu()) << '\n';
  std::cout << repr(X.sum().item<double>()) << '\n';
  for (const float value : tolist(X)) std::cout << repr(double{value}) << ' ';
  std::cout << '\n' << repr(X.cpu().equal(torch::ones({2, 3}))) << '\n';

  std::cout << "Beyond the cells:\n";
  const auto tell = [](const char* what, const std::function<void()>& work) {
    std::printf("%s: host reads %d, copies %d\n", what,
                calls_of("aten::_local_scalar_dense", work),
                calls_of("aten::_to_copy", work));
  };
  tell("item() of each", [&] {
    for (int i = 0; i < 6; ++i) X[i / 3][i % 3].item<double>();
  });
  tell("tolist()", [&] { tolist(X); });
  tell("cpu()", [&] { X.cpu(); });
  const auto time = [&] {
    std::printf(
        "~ print(X) %.1f us, print(X.cpu()) %.1f us, item() %.1f us, cpu() %.1f us\n",
        median_seconds([&] { repr(X); }, device) * 1e6,
        median_seconds([&] { repr(X.cpu()); }, device) * 1e6,
        median_seconds([&] { X[0][0].item<double>(); }, device) * 1e6,
        median_seconds([&] { X.cpu(); }, device) * 1e6);
  };
  std::printf("waits of the clock: %d\n", calls_of("sconce::synchronize", time));
}
