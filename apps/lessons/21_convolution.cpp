// A convolution: which library runs it, and what cuDNN's search for the fastest kernel brings.
// Covers: T3.3 T3.benchmark
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <ATen/native/ConvUtils.h>
#include <cstdio>
#include <iostream>

using at::native::ConvBackend, sconce::repr;

int main() {
  // note: T3 defines `device` only where CUDA is there.
  const auto device = sconce::try_gpu();
  torch::manual_seed(0);
  torch::nn::Conv2d conv(torch::nn::Conv2dOptions(3, 64, 3).padding(1));
  conv->to(device);
  auto x = torch::rand({1, 3, 224, 224}, device);
  torch::NoGradGuard no_grad;
  std::cout << repr(conv->forward(x).sizes()) << '\n';

  // What LibTorch selects for these sizes, types and devices.
  const std::vector<c10::SymInt> zero = {0, 0}, one = {1, 1};
  const auto backend = at::native::select_conv_backend(x, conv->weight, conv->bias, /*stride=*/one,
                                                       /*padding=*/one, /*dilation=*/one,
                                                       /*transposed=*/false,
                                                       /*output_padding=*/zero, /*groups=*/1, {});
  std::cout << (backend == ConvBackend::Cudnn    ? "Cudnn"
                : backend == ConvBackend::Mkldnn ? "Mkldnn"
                                                 : "another")
            << '\n';
  if (!device.is_cpu()) std::cout << "cuDNN " << at::Context::versionCuDNN() << '\n';

  const auto show = [](const char* what, double seconds) {
    std::printf("~ %s: %.3f ms\n", what, seconds * 1e3);
  };
  auto on_cpu = x.cpu();
  torch::nn::Conv2d cpu_conv(torch::nn::Conv2dOptions(3, 64, 3).padding(1));
  show("on the CPU", sconce::median_seconds([&] { cpu_conv->forward(on_cpu); }));

  // With the flag, cuDNN tries its kernels at the first call of each shape and keeps the fastest.
  for (const bool benchmark : {false, true}) {
    at::globalContext().setBenchmarkCuDNN(benchmark);
    std::cout << "benchmark = " << repr(at::globalContext().benchmarkCuDNN()) << '\n';
    if (device.is_cpu()) continue;
    const sconce::Stopwatch first(device);
    conv->forward(x);
    show("first call", first.seconds());
    show("median", sconce::median_seconds([&] { conv->forward(x); }, device));
  }
}
