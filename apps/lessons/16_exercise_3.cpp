// Exercise 3: a thousand norms, read one by one or kept in a log on the device.
// Covers: T0.E3 T1.E3
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <cstdio>
#include <iostream>

using sconce::repr;

void beyond(const torch::Tensor& A, const torch::Tensor& B, const torch::Tensor& norms);

int main() {
  const auto device = sconce::try_gpu();
  torch::manual_seed(0);
  auto A = torch::rand({1000, 100, 100}, device);
  auto B = torch::rand({1000, 100, 100}, device);
  torch::matmul(A[0], B[0]).norm();  // a warm-up

  // T0.E3, T1.E3
  auto read = torch::zeros({1000}), log = torch::zeros({1000}, device);
  sconce::Stopwatch stopwatch(device);
  for (int i = 0; i < 1000; ++i) read[i] = torch::matmul(A[i], B[i]).norm().item<float>();
  const double one_by_one = stopwatch.seconds();

  stopwatch.restart();
  for (int i = 0; i < 1000; ++i) log[i] = torch::matmul(A[i], B[i]).norm();
  auto copied = log.cpu();
  const double kept = stopwatch.seconds();

  std::cout << "equal norms: " << repr(read.equal(copied)) << '\n';
  std::printf("~ one by one: %.2f ms, kept on %s: %.2f ms, ratio %.2f\n",
              one_by_one * 1e3, device.str().c_str(), kept * 1e3, one_by_one / kept);

  beyond(A, B, copied);
}

// Beyond the exercise: one batched product has one log.
void beyond(const torch::Tensor& A, const torch::Tensor& B, const torch::Tensor& norms) {
  torch::bmm(A, B).norm(2, {1, 2});  // a warm-up
  const sconce::Stopwatch stopwatch(A.device());
  auto batched = torch::bmm(A, B).norm(2, {1, 2}).cpu();
  std::printf("~ batched: %.2f ms\n", stopwatch.seconds() * 1e3);
  std::cout << "last norm: " << repr(norms[999].item<double>()) << '\n';
  std::cout << "close norms: " << repr(batched.allclose(norms)) << '\n';
  // note: the exercise expects the kept log to be faster. On the CPU it is not, for there nothing
  // is transferred and nobody waits.
  if (A.is_cpu())
    std::cout << "Without a GPU nothing is transferred: a kept log saves nothing.\n";
}
