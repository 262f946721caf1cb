// Classifies the images in a folder with a fine-tuned ResNet-18 and reports the number of images
// per second.
#include <torch/torch.h>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <sconce/sconce.hpp>

namespace fs = std::filesystem;

// A dataset for a DataLoader. The DataLoader reads each item in one of its worker threads.
struct Pictures {
  std::vector<fs::path> files = {};

  int64_t size() const { return static_cast<int64_t>(files.size()); }
  torch::Tensor get(int64_t index) const {
    namespace transforms = sconce::vision::transforms;
    const transforms::Compose to_input(
        transforms::Resize({256, 256}), transforms::CenterCrop({224, 224}),
        [](const torch::Tensor& x) { return x.to(torch::kFloat) / 255; },
        transforms::Normalize({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}));
    return to_input(sconce::vision::read_image(files[index], sconce::vision::ImageReadMode::rgb));
  }
};

int main(int argc, char** argv) try {
  if (argc < 5) {
    std::fputs("usage: serving WEIGHTS.pt PICTURES CLASS CLASS...\n", stderr);
    return 2;
  }
  Pictures pictures;
  for (const auto& entry : fs::directory_iterator(argv[2])) pictures.files.push_back(entry.path());
  std::sort(pictures.files.begin(), pictures.files.end());
  const auto device = sconce::try_gpu();
  const sconce::data::DataLoader loader(pictures,
                                        {.batch_size = 8, .num_workers = 2, .device = device});

  auto net = sconce::vision::models::resnet18({.num_classes = argc - 3});
  sconce::nn::load_state_dict(*net, sconce::io::load_torch_state_dict(argv[1]));
  net->to(device);
  net->eval();
  const torch::NoGradGuard no_grad;
  const sconce::Stopwatch stopwatch(device);
  auto file = pictures.files.begin();
  for (const torch::Tensor& batch : loader) {
    const auto [probabilities, classes] = net->forward(batch).softmax(1).max(1);
    const auto on_cpu = std::pair(probabilities.cpu(), classes.cpu());
    for (int64_t i = 0; i < batch.size(0); ++i, ++file) {
      std::printf("%s: %s, %.3f\n", file->filename().c_str(),
                  argv[3 + on_cpu.second[i].item<int64_t>()], on_cpu.first[i].item<double>());
    }
  }
  std::printf("~ %.1f images per second\n",
              static_cast<double>(pictures.size()) / stopwatch.seconds());
} catch (const c10::Error& error) {
  std::cerr << "serving: " << error.what_without_backtrace() << '\n';
  return 1;
} catch (const std::exception& error) {
  std::cerr << "serving: " << error.what() << '\n';
  return 1;
}
