// The Trainer's loop, written using only the public API. Each run trains for one epoch, starting
// where the previous run stopped.
#include <torch/torch.h>
#include <algorithm>
#include <cstdio>
#include <sconce/sconce.hpp>

void train(const std::string& folder, sconce::amp::Precision of, int64_t accumulate, double clip,
           int64_t epochs) {
  const auto X = sconce::vision::read_idx(SCONCE_DIGITS_DIR "/train-images-idx3-ubyte");
  const auto y = sconce::vision::read_idx(SCONCE_DIGITS_DIR "/train-labels-idx1-ubyte");
  sconce::data::Batches batches({X.flatten(1) / 16.0, y}, {.batch_size = 100, .shuffle = true});
  torch::manual_seed(0);
  torch::nn::Linear hidden(64, 32), output(32, 10);  // argument evaluation order is unspecified
  torch::nn::Sequential net(hidden, torch::nn::ReLU(), torch::nn::Dropout(0.1), output);
  sconce::optim::AdamW optimizer(net->parameters(), torch::optim::AdamWOptions(/*lr=*/0.01));
  sconce::optim::lr_scheduler::StepLR scheduler(optimizer, /*step_size=*/1, /*gamma=*/0.5);
  sconce::amp::MixedPrecision precision(of, torch::kCPU);
  const sconce::NamedStates parts = {{"model", *net},
                                     {"optimizer", optimizer},
                                     {"scheduler", scheduler},
                                     {"scaler", precision.scaler()}};
  sconce::Checkpoint checkpoint(folder, {.resume = true});
  checkpoint.lock();
  const auto start = checkpoint.load(parts).value_or(sconce::RunProgress());
  const auto settings = precision.flags();
  for (int64_t epoch = start.epoch; epoch < epochs; ++epoch) {
    auto sum = torch::zeros({}, torch::kDouble);
    auto batch = batches.begin(/*batch=*/0, epoch);
    for (int64_t done = 0, batches_in_step = 0; done < batches.size(); done += batches_in_step) {
      batches_in_step = std::min(accumulate, batches.size() - done);
      optimizer.zero_grad();
      for (int64_t i = 0; i < batches_in_step; ++i, ++batch) {
        const auto [data, target] = *batch;
        torch::Tensor loss;
        {
          const auto autocast = precision.autocast();
          loss = torch::nn::functional::cross_entropy(net->forward(data), target);
        }
        precision.scale(loss / batches_in_step).backward();
        sum.add_(loss.detach(), data.size(0));
      }
      if (clip > 0) {
        precision.unscale_(optimizer);
        sconce::nn::clip_grad_norm_(net->parameters(), clip);
      }
      precision.step(optimizer);
    }
    scheduler.step();
    std::printf("%s: loss %.17g\n", folder.c_str(), (sum / X.size(0)).item<double>());
    checkpoint.save(parts, {.epoch = epoch + 1});
  }
}

int main() {
  for (const int64_t epochs : {1, 3}) {
    train("fp32", sconce::amp::Precision::fp32, /*accumulate=*/1, /*clip=*/0, epochs);
    train("bf16", sconce::amp::Precision::bf16, /*accumulate=*/1, /*clip=*/0.5, epochs);
    train("fp16", sconce::amp::Precision::fp16, /*accumulate=*/3, /*clip=*/0.5, epochs);
  }
}
