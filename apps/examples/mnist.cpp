// Trains a LeNet on handwritten digits. mnist_plain.cpp does the same with LibTorch alone.
#include <torch/torch.h>
#include <cstdio>
#include <sconce/sconce.hpp>

sconce::data::Dataset read(const std::string& part, torch::Device device) {
  auto [images, labels] =
      sconce::vision::read_idx(part + "-images-idx3-ubyte", part + "-labels-idx1-ubyte");
  images = images.unsqueeze(1).to(device, torch::kFloat);  // (N, 1, H, W)
  return {images / images.max(), labels.to(device)};
}

int main(int argc, char** argv) try {
  if (argc > 2 || (argc == 2 && argv[1][0] == '-')) {
    std::fputs("usage: mnist [FOLDER]\n", stderr);
    return 2;
  }
  const std::string folder = argc > 1 ? argv[1] : SCONCE_DIGITS_DIR;  // contains MNIST's four files
  const auto device = sconce::try_gpu();
  const sconce::data::Batches train(read(folder + "/train", device),
                                    {.batch_size = 32, .shuffle = true});
  const sconce::data::Batches test(read(folder + "/t10k", device), {.batch_size = 1000});

  sconce::seed_everything(0);
  using sconce::nn::LazyConv2d, sconce::nn::LazyConv2dOptions, sconce::nn::LazyLinear;
  using torch::nn::MaxPool2d, torch::nn::ReLU;
  torch::nn::Sequential net(
      LazyConv2d(LazyConv2dOptions(6, 5).padding(2)), ReLU(), MaxPool2d(2),   // (N, 6, H/2, W/2)
      LazyConv2d(LazyConv2dOptions(16, 5).padding(2)), ReLU(), MaxPool2d(2),  // (N, 16, H/4, W/4)
      torch::nn::Flatten(), LazyLinear(120), ReLU(), LazyLinear(84), ReLU(), LazyLinear(10));
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(/*lr=*/0.1).momentum(0.9));
  sconce::optim::lr_scheduler::CosineAnnealingLR cosine(sgd, /*T_max=*/10);
  sconce::LRScheduling scheduling(cosine);

  sconce::Trainer trainer(
      {.max_epochs = 10, .precision = sconce::amp::Precision::bf16, .device = device});
  const auto result = trainer.fit(net, sgd, {train, test, {&scheduling}});
  for (const auto& epoch : result.epochs) {
    std::printf("epoch %d: loss %.4f, train acc %.4f, test acc %.4f\n", epoch.epoch, epoch.loss,
                epoch.at("train_acc"), epoch.at("test_acc"));
  }
} catch (const c10::Error& error) {
  std::fprintf(stderr, "mnist: %s\n", error.what_without_backtrace());
  return 1;
}
