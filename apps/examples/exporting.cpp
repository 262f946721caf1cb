// Trains a network on handwritten digits and records it as a program for other programs to serve.
#include <torch/torch.h>
#include <cstdio>
#include <iostream>
#include <sconce/sconce.hpp>

sconce::data::Dataset read(const std::string& part) {
  const auto [images, labels] =
      sconce::vision::read_idx(part + "-images-idx3-ubyte", part + "-labels-idx1-ubyte");
  return {images.flatten(1) / 16.0, labels};  // (N, 64) with values from 0 to 1, and (N)
}

int main(int argc, char** argv) try {
  if (argc != 3) {
    std::fputs("usage: exporting PROGRAM.safetensors INPUTS.pt\n", stderr);
    return 2;
  }
  const auto test = read(SCONCE_DIGITS_DIR "/t10k");
  torch::manual_seed(0);
  torch::nn::Linear hidden(64, 32), output(32, 10);
  torch::nn::Sequential net(hidden, torch::nn::ReLU(), output);
  sconce::optim::AdamW adamw(net->parameters(), torch::optim::AdamWOptions(/*lr=*/0.01));
  sconce::Trainer trainer({.max_epochs = 5, .num_gpus = 0});
  const sconce::data::Batches batches(read(SCONCE_DIGITS_DIR "/train"),
                                      {.batch_size = 32, .shuffle = true});
  const auto result = trainer.fit(net, adamw, {.train = batches});
  std::printf("loss %.3f\n", result.epochs.back().loss);

  net->eval();
  const auto x = test.data.slice(0, 0, 8);  // any eight rows can serve as the example
  sconce::program::record(
      argv[1], net, {{"x", x}},
      {.dynamic_shapes = {{"x", 0}}, .output_names = {"logits"}, .save_example = true});
  sconce::io::save_torch(argv[2], sconce::StateDict{{"x", test.data}});
} catch (const c10::Error& error) {
  std::cerr << "exporting: " << error.what_without_backtrace() << '\n';
  return 1;
}
