#pragma once

#include <torch/torch.h>

#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "sconce/activation_checkpoint.hpp"
#include "sconce/amp/autocast.hpp"
#include "sconce/amp/grad_scaler.hpp"
#include "sconce/data/dataset.hpp"
#include "sconce/distributed/distributed_data_parallel.hpp"
#include "sconce/optim/adam.hpp"

// Contains the same training runs as tests/reference/distributed.py, matching it statement by
// statement.
namespace sconce::test {

struct BranchesImpl : torch::nn::Module {
  torch::nn::Linear first = register_module("first", torch::nn::Linear(20, 30));
  torch::nn::Linear left = register_module("left", torch::nn::Linear(30, 30));
  torch::nn::Linear right = register_module("right", torch::nn::Linear(30, 30));
  torch::nn::Linear last = register_module("last", torch::nn::Linear(30, 10));
  torch::nn::Linear never = register_module("never", torch::nn::Linear(30, 10));

  torch::Tensor forward(torch::Tensor x, int64_t branch) {
    x = torch::relu(first(x));
    if (branch == 1) x = x + left(x);
    if (branch == 2) x = x + right(x);
    return last(x);
  }
};
TORCH_MODULE(Branches);

struct TwoHeadsImpl : torch::nn::Module {
  torch::nn::Linear first = register_module("first", torch::nn::Linear(20, 30));
  torch::nn::Linear used = register_module("used", torch::nn::Linear(30, 10));
  torch::nn::Linear unused = register_module("unused", torch::nn::Linear(30, 10));

  std::tuple<torch::Tensor, torch::Tensor> forward(torch::Tensor x) {
    x = torch::relu(first(x));
    return {used(x), unused(x)};
  }
};
TORCH_MODULE(TwoHeads);

struct WordsImpl : torch::nn::Module {
  torch::nn::Embedding embedding = register_module(
      "embedding", torch::nn::Embedding(torch::nn::EmbeddingOptions(50, 20).sparse(true)));
  torch::nn::Linear last = register_module("last", torch::nn::Linear(20, 10));

  torch::Tensor forward(const torch::Tensor& x) {
    return last(embedding((x.abs() * 10).to(torch::kLong).clamp_max(49)).mean(1));
  }
};
TORCH_MODULE(Words);

struct CheckpointedImpl : torch::nn::Module {
  torch::nn::Linear first = register_module("first", torch::nn::Linear(20, 30));
  torch::nn::Linear middle = register_module("middle", torch::nn::Linear(30, 30));
  torch::nn::Linear last = register_module("last", torch::nn::Linear(30, 10));

  torch::Tensor hidden(const torch::Tensor& x) {
    return torch::dropout(torch::relu(first(x)), 0.3, is_training());
  }

  torch::Tensor forward(torch::Tensor x) {
    x = checkpoint([this](const torch::Tensor& input) { return hidden(input); }, x);
    return last(torch::relu(checkpoint(middle, x)));
  }
};
TORCH_MODULE(Checkpointed);

// Each layer is created in a separate statement, because the layers must draw their initial values
// in order.
inline torch::nn::Sequential mlp(int64_t width) {
  torch::nn::Sequential model;
  model->push_back(torch::nn::Linear(20, width));
  model->push_back(torch::nn::ReLU());
  model->push_back(torch::nn::Linear(width, width));
  model->push_back(torch::nn::ReLU());
  model->push_back(torch::nn::Linear(width, 10));
  return model;
}

inline torch::nn::Sequential cnn() {
  torch::nn::Sequential model;
  for (const auto& [in, out] : {std::pair(1, 4), std::pair(4, 8)}) {
    model->push_back(torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, 3)));
    model->push_back(torch::nn::BatchNorm2d(out));
    model->push_back(torch::nn::ReLU());
  }
  model->push_back(torch::nn::AdaptiveAvgPool2d(1));
  model->push_back(torch::nn::Flatten());
  model->push_back(torch::nn::Linear(8, 10));
  return model;
}

/// Returns the batch for one rank, or the combined batches for `joined` consecutive ranks.
inline data::Dataset batch(const std::string& name, int step, int part, int rank, int joined) {
  std::vector<torch::Tensor> data, target;
  for (int other = rank; other < rank + joined; ++other) {
    torch::manual_seed(1000 * step + 100 * part + other);
    data.push_back(name == "cnn" ? torch::randn({8, 1, 10, 10}) : torch::randn({8, 20}));
    target.push_back(torch::randint(0, 10, {8}));
  }
  return {torch::cat(data), torch::cat(target)};
}

/// The training loop shared by all models. `forward` is called with (x, step).
template <class M, class Forward>
void train_steps(const std::string& name, nn::DistributedDataParallel<M>& model, int rank,
                 int joined, Forward&& forward) {
  const bool amp = name == "amp";
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  const auto parameters = model.module()->parameters();
  if (amp) {
    optimizer =
        std::make_unique<optim::AdamW>(parameters, torch::optim::AdamWOptions(0.01),
                                       optim::ExtraOptions{.kernels = optim::Kernels::fused});
  } else {
    optimizer = std::make_unique<torch::optim::SGD>(
        parameters, torch::optim::SGDOptions(0.05).momentum(name == "sparse" ? 0 : 0.9));
  }
  amp::GradScaler scaler(
      {.device = torch::kCPU, .init_scale = 1 << 20, .growth_interval = 5, .enabled = amp});
  const int parts = name == "no_sync" ? 3 : 1;
  for (int step = 0; step < (name == "wide" ? 3 : 20); ++step) {
    for (int part = 0; part < parts; ++part) {
      auto [x, y] = batch(name, step, part, rank, joined);
      if (amp && step == 7 && rank == 1) x = x * std::numeric_limits<float>::infinity();
      std::optional<nn::NoSyncGuard> no_sync;
      if (part < parts - 1) no_sync.emplace(model);
      torch::Tensor loss;
      {
        const amp::AutocastGuard autocast(torch::kCPU, {.enabled = amp});
        loss = torch::nn::functional::cross_entropy(forward(x, step), y);
      }
      scaler.scale(loss).backward();
    }
    scaler.step(*optimizer);
    scaler.update();
    optimizer->zero_grad();
  }
}

inline std::string text(const std::vector<int64_t>& numbers) {
  std::ostringstream out;
  for (size_t i = 0; i < numbers.size(); ++i) out << (i > 0 ? " " : "") << numbers[i];
  return out.str();
}

inline nn::DistributedDataParallelOptions options_of(const std::string& name) {
  nn::DistributedDataParallelOptions options;
  if (name == "outputs" || name == "unused") options.find_unused_parameters = true;
  if (name == "small" || name == "unused") options.bucket_cap_mb = 0.002;
  if (name == "static") options.static_graph = true;
  if (name == "fp16") options.comm_hook = nn::CommHook::fp16_compress;
  if (name == "bf16") options.comm_hook = nn::CommHook::bf16_compress;
  return options;
}

/// Trains a model, and writes the same output as the Python script. Only rank 0 writes the buffers.
template <class Holder, class Forward>
void train_model(const std::string& name, const Holder& holder,
                 const distributed::ProcessGroup& group, int joined, const std::string& file,
                 Forward&& forward) {
  nn::DistributedDataParallel model(holder, group, options_of(name));
  const auto buckets = text(model.bucket_sizes());
  train_steps(name, model, group.rank(), joined,
              [&](const auto& x, int step) { return forward(model, x, step); });
  std::ofstream out(file, std::ios::binary);
  out << buckets << '\n' << text(model.bucket_sizes()) << '\n';
  const auto write = [&](const std::vector<torch::Tensor>& tensors) {
    for (const auto& tensor : tensors) {
      const auto bytes = static_cast<std::streamsize>(tensor.nbytes());
      out.write(static_cast<const char*>(tensor.contiguous().const_data_ptr()), bytes);
    }
  };
  write(holder->parameters());
  if (group.rank() == 0) write(holder->buffers());  // the next forward would broadcast them
}

inline void train(const std::string& name, const distributed::ProcessGroup& group, int joined,
                  const std::string& file) {
  torch::manual_seed(group.rank());
  const auto plain = [](auto& model, const auto& x, int) { return model.forward(x); };
  if (name == "unused") {
    train_model(name, Branches(), group, joined, file, [&](auto& model, const auto& x, int step) {
      return model.forward(x, (step + group.rank()) % 4);
    });
  } else if (name == "static") {
    train_model(name, Branches(), group, joined, file,
                [](auto& model, const auto& x, int) { return model.forward(x, 1); });
  } else if (name == "outputs") {
    train_model(name, TwoHeads(), group, joined, file,
                [](auto& model, const auto& x, int) { return std::get<0>(model.forward(x)); });
  } else if (name == "sparse") {
    train_model(name, Words(), group, joined, file, plain);
  } else if (name == "checkpointed") {
    train_model(name, Checkpointed(), group, joined, file, plain);
  } else {
    const auto model = name == "cnn" ? cnn() : mlp(name == "wide" ? 700 : 30);
    train_model(name, model, group, joined, file, plain);
  }
}

}  // namespace sconce::test
