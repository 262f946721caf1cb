// Compares the Trainer with the example that implements the Trainer's loop by hand.
#include <torch/torch.h>

#include "apps/run_train.hpp"
#include "catch.hpp"
#include "sconce/data/batches.hpp"
#include "sconce/io/torch_file.hpp"
#include "sconce/optim/adam.hpp"
#include "sconce/optim/lr_scheduler.hpp"
#include "sconce/training/checkpoint.hpp"
#include "sconce/training/lr_scheduling.hpp"
#include "sconce/training/trainer.hpp"
#include "sconce/vision/idx.hpp"
#include "support/warnings.hpp"

namespace {

namespace fs = std::filesystem;
using sconce::amp::Precision;

// The results of a Trainer run that uses the example's settings.
struct Trained {
  std::string lines = {};
  std::vector<torch::Tensor> parameters = {};
};

Trained trained_by_trainer(const std::string& name, const sconce::TrainerOptions& options) {
  const auto X = sconce::vision::read_idx(SCONCE_DIGITS_DIR "/train-images-idx3-ubyte");
  const auto y = sconce::vision::read_idx(SCONCE_DIGITS_DIR "/train-labels-idx1-ubyte");
  const sconce::data::Batches batches({X.flatten(1) / 16.0, y},
                                      {.batch_size = 100, .shuffle = true});
  torch::manual_seed(0);
  torch::nn::Linear hidden(64, 32), output(32, 10);
  torch::nn::Sequential net(hidden, torch::nn::ReLU(), torch::nn::Dropout(0.1), output);
  sconce::optim::AdamW optimizer(net->parameters(), torch::optim::AdamWOptions(0.01));
  sconce::optim::lr_scheduler::StepLR scheduler(optimizer, 1, 0.5);
  sconce::LRScheduling scheduling(scheduler);
  const sconce::test::Warnings of_fp16;
  Trained trained;
  for (const auto& epoch : sconce::Trainer(options)
                               .fit(net, optimizer, {.train = batches, .callbacks = {&scheduling}})
                               .epochs) {
    char line[100];
    std::snprintf(line, sizeof line, "%s: loss %.17g\n", name.c_str(), epoch.loss);
    trained.lines += line;
  }
  trained.parameters = net->parameters();
  return trained;
}

}  // namespace

TEST_CASE("a custom loop that is stopped and resumed matches the Trainer bit for bit") {
  const sconce::test::TempDir folder;
  const auto ran = sconce::test::run_program("cd '" + folder.path().string() + "' && " +
                                             SCONCE_BIN_DIR "/examples/own_loop");
  REQUIRE(ran.exit_code == 0);
  const std::pair<std::string, sconce::TrainerOptions> runs[] = {
      {"fp32", {.max_epochs = 3, .num_gpus = 0}},
      {"bf16",
       {.max_epochs = 3, .num_gpus = 0, .gradient_clip_val = 0.5, .precision = Precision::bf16}},
      {"fp16",
       {.max_epochs = 3,
        .num_gpus = 0,
        .gradient_clip_val = 0.5,
        .precision = Precision::fp16,
        .accumulate_grad_batches = 3}}};
  torch::set_num_threads(1);  // as in the program
  std::string first, later;
  for (const auto& [name, options] : runs) {
    const auto expected = trained_by_trainer(name, options);
    const auto end_of_first = expected.lines.find('\n') + 1;
    first += expected.lines.substr(0, end_of_first);
    later += expected.lines.substr(end_of_first);
    const sconce::Checkpoint checkpoint(folder.path() / name, {.resume = true});
    const auto saved = sconce::io::load_torch(checkpoint.latest()).toGenericDict();
    size_t i = 0;
    for (const auto& entry : saved.at("model").toGenericDict()) {
      INFO(name << ' ' << entry.key());
      REQUIRE(i < expected.parameters.size());
      CHECK(torch::equal(entry.value().toTensor(), expected.parameters[i++]));
    }
    CHECK(i == expected.parameters.size());
  }
  CHECK(ran.out == first + later);
}
