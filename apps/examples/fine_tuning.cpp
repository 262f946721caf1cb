// Trains the last layer of torchvision's ResNet-18 on folders with a subfolder for each class.
#include <torch/torch.h>
#include <cstdio>
#include <iostream>
#include <sconce/sconce.hpp>

int main(int argc, char** argv) try {
  if (argc != 5) {
    std::fputs("usage: fine_tuning TRAIN TEST WEIGHTS.pt OUT.pt\n", stderr);
    return 2;
  }
  sconce::tune_threads();
  namespace transforms = sconce::vision::transforms;
  const transforms::Compose to_input(
      transforms::Resize({256, 256}), transforms::CenterCrop({224, 224}),
      [](const torch::Tensor& x) { return x.to(torch::kFloat) / 255; },
      transforms::Normalize({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}));
  const sconce::vision::ImageFolder train(argv[1], {.transform = to_input});
  const sconce::vision::ImageFolder test(argv[2], {.transform = to_input});
  TORCH_CHECK(train.classes() == test.classes(), argv[2], ": expected the classes in ", argv[1]);
  const auto device = sconce::try_gpu();
  sconce::data::DataLoaderOptions options{.batch_size = 8, .num_workers = 2, .device = device};
  const sconce::data::DataLoader test_batches(test, options);
  options.shuffle = true;
  const sconce::data::DataLoader train_batches(train, options);

  sconce::seed_everything(0);
  auto net = sconce::vision::models::resnet18();
  sconce::nn::load_state_dict(*net, sconce::io::load_torch_state_dict(argv[3]));
  sconce::nn::requires_grad_(*net, false);
  const auto classes = static_cast<int64_t>(train.classes().size());
  net->fc = net->replace_module("fc", torch::nn::Linear(512, classes));
  sconce::optim::SGD sgd(net->fc->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
  sconce::EpochLogger lines(std::cout);
  sconce::Trainer trainer({.max_epochs = 3, .device = device});
  trainer.fit(net, sgd, {train_batches, test_batches, {&lines}});
  sconce::io::save_torch(argv[4], sconce::nn::state_dict(*net));
} catch (const c10::Error& error) {
  std::cerr << "fine_tuning: " << error.what_without_backtrace() << '\n';
  return 1;
}
