// A worker program that the file tests stop, kill, and resume.
//
// test-io-worker fit FOLDER OUT [STEPS]: fits two epochs of five steps each and saves a checkpoint
// in FOLDER after each step. With STEPS, the program stops after that many steps. Otherwise, the
// program writes the final state to OUT. If FOLDER is "-", no checkpoints are saved.
//
// test-io-worker save FOLDER: saves one version after another until it is killed.
//
// If a launcher's environment variables are set, several processes run one fit together. If an
// error occurs, the exit code is 1.
#include <torch/torch.h>

#include <iostream>
#include <string>

#include "sconce/sconce.hpp"
#include "support/stop_when.hpp"
#include "support/warnings.hpp"

namespace {

namespace io = sconce::io;
using sconce::optim::lr_scheduler::OneCycleLR;

void fit(const std::string& folder, const std::string& out, int steps) {
  const auto group = sconce::distributed::ProcessGroup::init();
  const bool alone = group.world_size() == 1;
  const bool saves = folder != "-";
  torch::manual_seed(1);
  const sconce::data::Dataset rows = {torch::randn({40, 6}), torch::randint(3, {40})};
  const sconce::data::DistributedSampler sampler(40, group, {.seed = 3});
  const sconce::data::Batches batches(rows,
                                      {.batch_size = 4 / group.world_size(), .sampler = sampler});
  namespace nn = torch::nn;
  nn::Sequential net(nn::Linear(6, 16), nn::BatchNorm1d(16), nn::ReLU(), nn::Dropout(0.3),
                     nn::Linear(16, 3));
  torch::manual_seed(10 + group.rank());  // dropout masks differ across ranks
  sconce::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  OneCycleLR scheduler(optimizer, 0.2, {.total_steps = 10});
  sconce::optim::ExponentialMovingAverage ema(*net, {.decay = 0.9});
  auto trainer = [&] {
    const sconce::test::Warnings of_slowness;  // fp16 is slow on a CPU
    return sconce::Trainer({.max_epochs = 2,
                            .num_gpus = 0,
                            .gradient_clip_val = 1,
                            .precision = sconce::amp::Precision::fp16,
                            .accumulate_grad_batches = 2,
                            .process_group = group});
  }();
  std::optional<sconce::Checkpoint> checkpoint;
  if (saves) {
    checkpoint.emplace(folder, sconce::CheckpointOptions{.resume = true, .process_group = group});
  }
  sconce::LRScheduling scheduling(scheduler, sconce::SchedulerInterval::step);
  sconce::WeightAveraging averaging(ema);
  sconce::test::StopWhen stopping([&steps] { return --steps == 0; });
  sconce::FitData data = {.train = batches,
                          .test = sconce::data::Batches(rows, {.batch_size = 40}),
                          .callbacks = {&scheduling, &averaging, &stopping}};
  std::optional<sconce::ModelCheckpoint> saving;
  if (saves)
    data.callbacks.push_back(
        &saving.emplace(*checkpoint, sconce::ModelCheckpointOptions{.every_n_train_steps = 1}));
  sconce::FitResult result;
  if (alone) {
    result = trainer.fit(net, optimizer, data);
  } else {
    sconce::nn::DistributedDataParallel model(net, group);
    result = trainer.fit(model, optimizer, data);
  }
  if (result.stopped || group.rank() > 0) return;
  auto all = c10::impl::GenericDict(c10::AnyType::get(), c10::AnyType::get());
  all.insert("model", io::as_ivalue(sconce::nn::state_dict(*net)));
  all.insert("optimizer", optimizer.state_dict());
  all.insert("scheduler", scheduler.state_dict());
  all.insert("scaler", trainer.scaler().state_dict());
  all.insert("ema", io::as_ivalue(ema.state_dict()));
  all.insert("random", torch::rand({3}));
  c10::impl::GenericList losses(c10::AnyType::get());
  for (const auto& epoch : result.epochs) {
    losses.push_back(epoch.loss);
    losses.push_back(epoch.at("train_acc"));
    losses.push_back(epoch.at("test_acc"));
  }
  all.insert("losses", losses);
  io::save_torch(out, all);
}

// Saves files in which all tensor elements equal the version number. Prints each version number
// once the save is complete.
[[noreturn]] void save(const std::string& folder) {
  for (int64_t version = 1;; ++version) {
    sconce::StateDict state;
    state.insert("x", torch::full({50'000}, version));
    io::save_safetensors(folder + "/file.safetensors", state);
    io::save_torch(folder + "/file.pt", io::as_ivalue(state));
    sconce::Checkpoint checkpoint(folder + "/checkpoints", {.resume = true, .keep_last = 2});
    checkpoint.load({});
    checkpoint.save({}, {.epoch = version, .extra = io::as_ivalue(state)});
    std::cout << version << std::endl;
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string mode = argv[1];
    if (mode == "save") save(argv[2]);
    fit(argv[2], argv[3], argc > 4 ? std::stoi(argv[4]) : 0);
    return 0;
  } catch (const c10::Error& error) {
    std::cerr << error.what_without_backtrace() << '\n';
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
  }
  return 1;
}
