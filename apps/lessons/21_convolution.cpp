// A convolution: which library runs it, and what cuDNN's search for the fastest kernel brings.
// Covers: T3.3 T3.benchmark
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <ATen/native/ConvUtils.h>
#include <cstdio>
#include <iostream>

using at::native::ConvBackend, sconce::repr;

// What LibTorch selects for these sizes, types and devices, as it is set at the time.
const char* backend_of(const torch::nn::Conv2d& layer, const torch::Tensor& input) {
  const std::vector<c10::SymInt> zero = {0, 0}, one = {1, 1};
  const auto backend =
      at::native::select_conv_backend(input, layer->weight, layer->bias,
                                      /*stride=*/one, /*padding=*/one,
                                      /*dilation=*/one, /*transposed=*/false,
                                      /*output_padding=*/zero, /*groups=*/1, {});
  return backend == ConvBackend::Cudnn    ? "Cudnn"
         : backend == ConvBackend::Mkldnn ? "Mkldnn"
                                          : "another";
}

int main() {
  torch::NoGradGuard no_grad;
  torch::manual_seed(0);
  // note: T3 defines `device` only where CUDA is there; without that line the compiler says "error:
  // 'device' was not declared in this scope".
  const auto device = sconce::try_gpu();
  // T3.3
  torch::nn::Conv2d conv_layer(torch::nn::Conv2dOptions(3, 64, 3).padding(1));
  conv_layer->to(device);
  auto input_data = torch::randn({1, 3, 224, 224}).to(device);
  auto output = conv_layer(input_data);

  std::cout << "Beyond the cells:\n";
  std::cout << repr(output.sizes()) << " on " << output.device() << '\n';
  std::cout << "convolution by " << backend_of(conv_layer, input_data) << '\n';
  if (!device.is_cpu()) std::cout << "cuDNN " << at::Context::versionCuDNN() << '\n';

  // T3.benchmark
  // note: with the setting, cuDNN tries its kernels at the first call of each shape and keeps the
  // fastest, which may sum in another order. On the CPU nobody reads it: not a bit changes.
  for (const bool benchmark : {false, true}) {
    at::globalContext().setBenchmarkCuDNN(benchmark);
    std::cout << "benchmark = " << repr(at::globalContext().benchmarkCuDNN()) << '\n';
    const sconce::Stopwatch first(device);
    auto again = conv_layer(input_data);
    const double seconds = first.seconds();
    std::cout << "  convolution by " << backend_of(conv_layer, input_data) << '\n';
    std::cout << "  close to the output before: "
              << repr(torch::allclose(again, output, /*rtol=*/0, /*atol=*/1e-2)) << '\n';
    if (device.is_cpu()) {
      std::cout << "  the same: " << repr(again.equal(output)) << '\n';
      continue;
    }
    std::printf("~ first call: %.3f ms\n", seconds * 1e3);
    const double median = sconce::median_seconds([&] { conv_layer(input_data); }, device);
    std::printf("~ median: %.3f ms\n", median * 1e3);
  }
  conv_layer->to(torch::kCPU), input_data = input_data.cpu();
  const double seconds = sconce::median_seconds([&] { conv_layer(input_data); });
  std::printf("~ on the CPU: %.3f ms\n", seconds * 1e3);
}
