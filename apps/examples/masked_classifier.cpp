// Classifies padded sentences by their words, with batches of a user-defined type.
#include <torch/torch.h>
#include <cstdio>
#include <sconce/sconce.hpp>

struct Text {
  torch::Tensor tokens, mask, label;
};
template <>
struct sconce::nn::TensorTree<Text> : TensorMembers<&Text::tokens, &Text::mask, &Text::label> {};

struct Classifier : torch::nn::Module {
  sconce::StepOutput training_step(const Text& text) {
    const auto logits = words(text.tokens).masked_fill(~text.mask.unsqueeze(2), -INFINITY).amax(1);
    return {torch::nn::functional::cross_entropy(logits, text.label), logits, text.label};
  }
  torch::nn::Embedding words = register_module("words", torch::nn::Embedding(30, 2));
};

int main() {
  torch::manual_seed(0);
  std::vector<Text> batches;
  for (const auto& tokens : torch::randint(1, 30, {20, 12, 12}).tril().unbind()) {
    batches.push_back({tokens, tokens > 0, (tokens > 24).any(1).to(torch::kLong)});
  }
  Classifier model;
  sconce::optim::AdamW adamw(model.parameters(), torch::optim::AdamWOptions(/*lr=*/0.1));
  const auto fit = sconce::Trainer({.max_epochs = 5, .num_gpus = 0}).fit(model, adamw, {batches});
  for (const auto& e : fit.epochs) std::printf("loss %.6f, acc %.6f\n", e.loss, e.at("train_acc"));
}
