// Trains an autoencoder on digits. Each batch is a single tensor that serves as both the input and
// the target of the loss.
#include <torch/torch.h>
#include <cstdio>
#include <sconce/sconce.hpp>

struct Autoencoder : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& x) { return decode(torch::relu(encode(x))); }
  torch::nn::Linear encode = register_module("encode", torch::nn::Linear(64, 16));
  torch::nn::Linear decode = register_module("decode", torch::nn::Linear(16, 64));
};

int main() {
  sconce::tune_threads();
  const auto images = sconce::vision::read_idx(SCONCE_DIGITS_DIR "/train-images-idx3-ubyte");
  const auto batches = (images.flatten(1) / 16.0).split(64);
  torch::manual_seed(0);
  Autoencoder model;
  sconce::optim::Adam adam(model.parameters(), torch::optim::AdamOptions(/*lr=*/0.01));
  const auto mae = std::make_shared<sconce::metrics::MeanAbsoluteError>();
  sconce::Trainer trainer({.max_epochs = 5,
                           .num_gpus = 0,
                           .loss = torch::nn::MSELoss(),
                           .metrics = sconce::Metrics{{"mae", mae}}});
  for (const auto& epoch : trainer.fit(model, adam, {batches}).epochs) {
    std::printf("epoch %d: loss %.6f, mae %.6f\n", epoch.epoch, epoch.loss, epoch.at("train_mae"));
  }
}
