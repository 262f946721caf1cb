// A convolution: which library runs it, and what cuDNN's search for the fastest kernel brings.
// Covers: T3.3 T3.benchmark
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <ATen/native/ConvUtils.h>
#include <iostream>

using at::native::ConvBackend, sconce::median_seconds, sconce::repr;

void beyond(torch::nn::Conv2d layer, torch::Tensor input, const torch::Tensor& output);

int main() {
  torch::manual_seed(0);

  // T3.3
  // note: T3 defines `device` only where CUDA is there. The compiler would say "error: 'device' was
  // not declared in this scope", so it is always defined here.
  auto device = sconce::try_gpu();
  torch::nn::Conv2d conv_layer(torch::nn::Conv2dOptions(3, 64, 3).padding(1));
  conv_layer->to(device);
  auto input_data = torch::randn({1, 3, 224, 224}).to(device);
  auto output = conv_layer(input_data);

  // T3.benchmark
  sconce::backends::set_flags({.cudnn_benchmark = true});

  beyond(conv_layer, input_data, output);
}

// Beyond the cells: the library that LibTorch selects, and the times without and with the search.
// note: with the flag, cuDNN tries its kernels at the first call of each shape and keeps the
// fastest. A shape called before keeps the kernel it has, so each time is that of a new shape. On
// the CPU nobody reads the flag.
void beyond(torch::nn::Conv2d layer, torch::Tensor input, const torch::Tensor& output) {
  const auto backend = at::native::select_conv_backend(
      input, layer->weight, layer->bias, {1, 1}, {1, 1}, {1, 1}, false, {0, 0}, 1, {});
  const auto device = input.device();
  std::cout << repr(output.sizes()) << " on " << device << '\n';
  std::cout << "by cuDNN: " << repr(backend == ConvBackend::Cudnn) << '\n';
  std::cout << "by oneDNN: " << repr(backend == ConvBackend::Mkldnn) << '\n';
  if (device.is_cuda()) std::cout << "cuDNN " << at::Context::versionCuDNN() << '\n';
  for (const bool benchmark : {false, true}) {
    sconce::backends::set_flags({.cudnn_benchmark = benchmark});
    std::cout << "benchmark = " << repr(at::globalContext().benchmarkCuDNN()) << '\n';
    if (device.is_cpu()) continue;
    const auto fresh = torch::randn({1, 3, 224, benchmark ? 226 : 225}, device);
    const auto work = [&] { layer(fresh); };
    const sconce::Stopwatch stopwatch(device);
    work();
    std::cout << "~ first call: " << stopwatch.seconds() * 1e3 << " ms\n";
    std::cout << "~ median: " << median_seconds(work, device) * 1e3 << " ms\n";
  }
  layer->to(torch::kCPU);
  input = input.cpu();
  std::cout << "~ on the CPU: " << median_seconds([&] { layer(input); }) * 1e3 << " ms\n";
}
