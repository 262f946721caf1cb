#include <ATen/CPUGeneratorImpl.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include <filesystem>

#include "fuzz/archive.hpp"
#include "fuzz/target.hpp"
#include "sconce/amp/grad_scaler.hpp"
#include "sconce/optim/ema.hpp"
#include "sconce/optim/lr_scheduler.hpp"
#include "sconce/optim/sgd.hpp"
#include "sconce/training/checkpoint.hpp"

using sconce::Checkpoint;
using sconce::test::expect;
using sconce::test::folder;

namespace {

struct Run {
  sconce::NamedStates parts() {
    return {{"model", *model},
            {"optimizer", optimizer},
            {"scheduler", scheduler},
            {"scaler", scaler},
            {"ema", ema}};
  }

  void step() {
    optimizer.zero_grad();
    scaler.scale(model->forward(torch::randn({3, 2})).square().mean()).backward();
    scaler.step(optimizer);
    scaler.update();
    ema.update();
    scheduler.step();
  }

  torch::nn::Linear model{2, 1};
  sconce::optim::SGD optimizer{model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9)};
  sconce::optim::lr_scheduler::StepLR scheduler{optimizer, /*step_size=*/2};
  sconce::amp::GradScaler scaler{{.device = torch::kCPU, .growth_interval = 2}};
  sconce::optim::ExponentialMovingAverage ema{*model, {.decay = 0.9}};
};

// Returns the storages in the order in which `save` numbers them: the model weight and bias, the
// optimizer tensors, the averages' update count, the averages, and the generator state.
std::vector<std::string> storages() {
  std::vector<std::string> all;
  for (const size_t size : {8, 4, 8, 4, 8, 8, 4}) all.emplace_back(size, '\0');
  const auto state = at::detail::getDefaultCPUGenerator().get_state();
  all.emplace_back(static_cast<const char*>(state.const_data_ptr()), state.nbytes());
  return all;
}

}  // namespace

// The input contains a list of changes to storages, followed by a pickle. The list starts with the
// number of changes. For each change, the list contains the storage index, the byte position, and
// the new value.
SCONCE_FUZZ_TARGET(checkpoint)(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t changes = std::min<size_t>(data[0], (size - 1) / 3);
  torch::manual_seed(1);
  auto all = storages();
  for (size_t i = 0; i < changes; ++i) {
    const uint8_t* change = data + 1 + 3 * i;
    auto& storage = all[change[0] % all.size()];
    storage[change[1] % storage.size()] = static_cast<char>(change[2]);
  }
  const size_t begin = 1 + 3 * changes;
  const auto path = folder().path() / "run", again = folder().path() / "again";
  std::filesystem::create_directory(path);
  folder().write("run/checkpoint-000000-00000000.pt",
                 sconce::test::archive_of(sconce::test::text(data + begin, size - begin), all));
  Run run, other;
  sconce::RunProgress progress;
  try {
    progress = *Checkpoint(path, {.resume = true}).load(run.parts());
  } catch (const c10::Error& error) {
    sconce::test::expect_own(error, sconce::test::text(data, size));
    return 0;
  }
  std::filesystem::remove_all(again);
  Checkpoint(again).save(run.parts(), progress);
  expect(Checkpoint(again, {.resume = true}).load(other.parts()).has_value(),
         "the checkpoint was not loaded");
  auto numbers = at::check_generator<at::CPUGeneratorImpl>(at::detail::getDefaultCPUGenerator());
  auto engine = numbers->engine();
  for (int i = 0; i < 1000; ++i) engine();  // detects out-of-bounds reads of its state
  run.step();
  return 0;
}
