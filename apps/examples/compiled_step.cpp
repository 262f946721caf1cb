// Trains a network on handwritten digits with a step compiled by PyTorch's compiler.
#include <torch/torch.h>
#include <cstdio>
#include <iostream>
#include <sconce/sconce.hpp>

using Tensors = std::vector<torch::Tensor>;

int main(int argc, char** argv) try {
  if (argc > 2 || (argc == 2 && argv[1][0] == '-')) {
    std::fputs("usage: compiled_step [CACHE_FOLDER]\n", stderr);
    return 2;
  }
  const auto [images, labels] = sconce::vision::read_idx(
      SCONCE_DIGITS_DIR "/train-images-idx3-ubyte", SCONCE_DIGITS_DIR "/train-labels-idx1-ubyte");
  const sconce::data::Batches batches({images.flatten(1) / 16.0, labels},
                                      {.batch_size = 32, .shuffle = true, .drop_last = true});
  torch::manual_seed(0);
  torch::nn::Sequential net(torch::nn::Linear(64, 128), torch::nn::GELU(),
                            torch::nn::Linear(128, 10));
  sconce::optim::AdamW adamw(net->parameters(), torch::optim::AdamWOptions(/*lr=*/0.005));

  const auto train = [&](const Tensors& batch) {
    adamw.zero_grad();
    const auto loss = torch::cross_entropy_loss(net->forward(batch[0]), batch[1]);
    loss.backward();
    adamw.step();
    return Tensors{loss};
  };
  const auto compiler =
      sconce::program::inductor({.wait = true, .cache_dir = argc == 2 ? argv[1] : ""});
  sconce::CapturedStep step(torch::kCPU, train, {.compiler = compiler});

  for (int epoch = 1; epoch <= 5; ++epoch) {
    auto sum = torch::zeros({});
    for (const auto& [inputs, targets] : batches) sum += step({inputs, targets})[0];
    std::printf("epoch %d: loss %.3f\n", epoch,
                sum.item<double>() / static_cast<double>(batches.size()));
  }
  const bool is_compiled = step.mode() == sconce::StepMode::compiled;
  std::cout << (is_compiled ? "compiled: " : "replayed: ") << step.mode_reason() << '\n';
} catch (const c10::Error& error) {
  std::cerr << "compiled_step: " << error.what_without_backtrace() << '\n';
  return 1;
}
