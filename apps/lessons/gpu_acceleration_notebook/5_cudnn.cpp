// Shows which layers use cuDNN, and runs a convolution with its fastest kernel.
#include <torch/torch.h>
#include <sconce/sconce.hpp>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/ConvUtils.h>
#include <ATen/native/Normalization.h>
#include <cstdio>
#include <iostream>
#include <string>

namespace nn = torch::nn;

int main() {
  torch::manual_seed(0);
  auto device = torch::Device(torch::cuda::is_available() ? "cuda" : "cpu");

  // T3.rnn
  auto images = torch::ones({2, 3, 8, 8}, device);
  auto kernels = torch::ones({4, 3, 3, 3}, device);
  auto ones = torch::ones({3}, device);
  auto convolution = at::native::select_conv_backend(
      images, kernels, /*bias=*/{}, /*stride=*/{1, 1}, /*padding=*/{0, 0},
      /*dilation=*/{1, 1}, /*transposed=*/false, /*output_padding=*/{0, 0}, /*groups=*/1,
      {});
  auto normalization = at::native::_select_batch_norm_backend(
      images, ones, ones, ones, ones, /*training=*/true, /*eps=*/1e-5);
  auto by_cudnn = [](const char* layer, bool answer) {
    std::cout << layer << " by cuDNN: " << sconce::repr(answer) << '\n';
  };
  by_cudnn("convolution", convolution == at::native::ConvBackend::Cudnn);
  by_cudnn("normalization", normalization == at::native::BatchNormBackend::Cudnn);
  by_cudnn("recurrent layer", torch::cudnn_is_acceptable(torch::ones({5, 2, 3}, device)));

  // T3.benchmark
  at::globalContext().setBenchmarkCuDNN(true);

  // T3.3
  auto conv_layer = nn::Conv2d(
      nn::Conv2dOptions(/*in_channels=*/3, /*out_channels=*/64, /*kernel_size=*/3)
          .padding(1));
  if (torch::cuda::is_available()) {
    device = torch::Device("cuda");
    conv_layer->to(device);
  }
  auto input_data = torch::randn({1, 3, 224, 224}).to(device);
  auto output = conv_layer(input_data);

  // Beyond the tutorial
  std::cout << "Beyond the tutorial:\n";
  std::cout << sconce::repr(output.sizes()) << " on " << output.device() << '\n';
  auto count = [](const std::string& word) {  // the operators that call cuDNN
    int found = 0;
    for (const auto& op : c10::Dispatcher::singleton().getAllOpNames())
      found += op.name.find("cudnn_") != std::string::npos &&
               op.name.find(word) != std::string::npos;
    return found;
  };
  for (const char* word : {"convolution", "relu", "norm", "rnn", "attention", "pool"})
    std::cout << "cuDNN operators for " << word << ": " << count(word) << '\n';
  for (const bool benchmark : {false, true}) {
    at::globalContext().setBenchmarkCuDNN(benchmark);
    auto fresh = torch::randn({1, 3, 224, benchmark ? 226 : 225}, device);
    const sconce::Stopwatch stopwatch(device);
    conv_layer(fresh);
    const double first = stopwatch.seconds();
    const double later = sconce::median_seconds([&] { conv_layer(fresh); }, device);
    std::printf("~ benchmark = %d: first call %.3f ms, median of later calls %.3f ms\n",
                int{benchmark}, first * 1e3, later * 1e3);
  }
  if (device.is_cpu()) std::cout << "Without a GPU, the flag has no effect.\n";
}
