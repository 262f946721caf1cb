// Trains a model with a custom training step on noisy digits, in each of three precisions.
#include <torch/torch.h>
#include <cstdio>
#include <sconce/sconce.hpp>

struct Classifier : torch::nn::Module {
  sconce::StepOutput training_step(const sconce::data::Dataset& batch) {
    const auto logits = out(torch::relu(hidden(batch.data + 0.1 * torch::randn_like(batch.data))));
    return {torch::nn::functional::cross_entropy(logits, batch.target), logits, batch.target};
  }
  torch::nn::Linear hidden = register_module("hidden", torch::nn::Linear(64, 32));
  torch::nn::Linear out = register_module("out", torch::nn::Linear(32, 10));
};

int main() {
  const auto [images, labels] = sconce::vision::read_idx(
      SCONCE_DIGITS_DIR "/train-images-idx3-ubyte", SCONCE_DIGITS_DIR "/train-labels-idx1-ubyte");
  sconce::data::Batches batches({images.flatten(1) / 16.0, labels}, {.batch_size = 64});
  using enum sconce::amp::Precision;
  for (const auto& [name, precision] : {std::pair("fp32", fp32), {"bf16", bf16}, {"fp16", fp16}}) {
    torch::manual_seed(0);
    Classifier model;
    sconce::optim::SGD sgd(model.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
    sconce::Trainer trainer({.max_epochs = 3, .num_gpus = 0, .precision = precision});
    for (const auto& epoch : trainer.fit(model, sgd, {batches}).epochs) {
      std::printf("%s: loss %.6f, acc %.6f\n", name, epoch.loss, epoch.at("train_acc"));
    }
    std::printf("scale %.0f\n", trainer.scaler().get_scale());
  }
}
