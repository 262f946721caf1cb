// A transformer that predicts whether two words in a padded sentence appear in the expected order.
#include <torch/torch.h>
#include <cstdio>
#include <sconce/sconce.hpp>

struct Text {
  torch::Tensor tokens, padding, label;  // (N, L), (N, L) with true for padding, (N)
};
template <>
struct sconce::nn::TensorTree<Text> : TensorMembers<&Text::tokens, &Text::padding, &Text::label> {};

struct Classifier : torch::nn::Module {
  Classifier() {
    words = register_module("words", torch::nn::Embedding(20, 32));
    places = register_module("places", torch::nn::Embedding(12, 32));
    const auto layer = sconce::nn::TransformerEncoderLayer(
        sconce::nn::TransformerEncoderLayerOptions(32, 4).dim_feedforward(64).batch_first(true));
    encoder = register_module("encoder", sconce::nn::TransformerEncoder(layer, 2));
    out = register_module("out", torch::nn::Linear(32, 2));
  }
  sconce::StepOutput training_step(const Text& text) {
    const auto x = words(text.tokens) + places->weight;  // (N, L, 32)
    const auto h = encoder->forward(x, {.src_key_padding_mask = text.padding});
    const auto kept = ~text.padding.unsqueeze(2);
    const auto logits = out((h * kept).sum(1) / kept.sum(1));
    return {torch::nn::functional::cross_entropy(logits, text.label), logits, text.label};
  }
  torch::nn::Embedding words = nullptr, places = nullptr;
  sconce::nn::TransformerEncoder encoder = nullptr;
  torch::nn::Linear out = nullptr;
};

// Sentences of 4 to 12 words. Each sentence contains words 1 and 2 exactly once, in either order.
Text sentences(int64_t count) {
  const auto length = torch::randint(4, 13, {count, 1});
  auto tokens = torch::randint(3, 20, {count, 12});
  const auto at = torch::rand({count, 12})
                      .masked_fill(torch::arange(12) >= length, 2)
                      .argsort(/*stable=*/false, 1);
  tokens.scatter_(1, at.slice(1, 0, 2), torch::tensor({1, 2}).expand({count, 2}));
  return {tokens, torch::arange(12) >= length,
          (at.select(1, 0) < at.select(1, 1)).to(torch::kLong)};
}

int main() {
  sconce::tune_threads();
  using enum sconce::amp::Precision;
  for (const auto& [name, precision] : {std::pair("fp32", fp32), {"bf16", bf16}}) {
    torch::manual_seed(0);
    std::vector<Text> batches;
    for (int i = 0; i < 60; ++i) batches.push_back(sentences(32));
    Classifier model;
    sconce::optim::AdamW adamw(model.parameters(), torch::optim::AdamWOptions(/*lr=*/3e-3));
    sconce::Trainer trainer({.max_epochs = 3, .num_gpus = 0, .precision = precision});
    for (const auto& epoch : trainer.fit(model, adamw, {batches}).epochs) {
      std::printf("%s: loss %.6f, acc %.6f\n", name, epoch.loss, epoch.at("train_acc"));
    }
  }
}
