// Tests the values that sconce-train reads from a checkpoint before resuming a run.
#include "train/saved_run.hpp"

#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/loss.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <functional>
#include <random>
#include <tuple>

#include "apps/run_train.hpp"
#include "catch.hpp"
#include "sconce/data/batches.hpp"
#include "sconce/io/torch_file.hpp"
#include "sconce/optim/lr_scheduler.hpp"
#include "sconce/optim/sgd.hpp"
#include "sconce/training/checkpoint.hpp"
#include "sconce/training/lr_scheduling.hpp"
#include "sconce/training/model_checkpoint.hpp"
#include "sconce/training/trainer.hpp"
#include "support/error_of.hpp"
#include "support/stop_when.hpp"
#include "support/temp_dir.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using sconce::test::contents;
using sconce::test::error_of;
using sconce::test::names_in;
using sconce::test::TempDir;

namespace {

namespace fs = std::filesystem;

c10::impl::GenericDict dict_of(const std::string& key, const c10::IValue& value) {
  c10::impl::GenericDict dict(c10::StringType::get(), c10::AnyType::get());
  dict.insert(key, value);
  return dict;
}

// Saves the same state as the sconce-train callback: the number of epochs in the schedule.
struct ScheduleLike : sconce::TrainerCallback {
  std::string name() const override { return "schedule"; }
  std::optional<sconce::Stateful> state() override {
    return sconce::Stateful([] { return c10::IValue(dict_of("epochs", int64_t{4})); },
                            [](const c10::IValue&) {});
  }
};

// Trains up to the given step in the same way as sconce-train. If the folder contains a run,
// resumes that run.
void fit(const fs::path& folder, int64_t last_step) {
  torch::manual_seed(1);
  torch::nn::Linear net(3, 2);
  sconce::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  sconce::optim::lr_scheduler::StepLR scheduler(optimizer, /*step_size=*/2);
  sconce::Checkpoint checkpoint(folder, {.resume = true});
  ScheduleLike schedule;
  sconce::LRScheduling scheduling(scheduler);
  sconce::ModelCheckpoint saving(checkpoint);
  int64_t step = 0;
  sconce::test::StopWhen stop([&] { return ++step == last_step; });
  const sconce::data::Dataset rows{torch::randn({6, 3}), torch::arange(6).remainder(2)};
  sconce::Trainer trainer({.max_epochs = 4, .num_gpus = 0});
  trainer.fit(net, optimizer,
              {.train = sconce::data::Batches(rows, {.batch_size = 2}),
               .test = sconce::data::Batches(rows, {.batch_size = 2}),
               .callbacks = {&schedule, &scheduling, &stop, &saving}});
}

// A value in a checkpoint, located by a sequence of keys, and a function that returns a replacement
// for the value. An empty function removes the value from the checkpoint.
struct Place {
  std::vector<std::string> keys;
  std::function<void(const c10::IValue&)> replace;
  std::function<void()> remove;
};

void add_places(const c10::IValue& value, const std::vector<std::string>& keys,
                std::vector<Place>& places) {
  if (value.isGenericDict()) {
    auto dict = value.toGenericDict();
    for (const auto& entry : dict) {
      const c10::IValue key = entry.key();
      auto inner = keys;
      inner.push_back(key.isString() ? key.toStringRef() : std::to_string(key.toInt()));
      add_places(entry.value(), inner, places);
      places.push_back({inner, [=](const c10::IValue& to) { dict.insert_or_assign(key, to); },
                        [=] { std::ignore = dict.erase(key); }});
    }
  } else if (value.isList()) {
    auto list = value.toList();
    for (size_t i = 0; i < list.size(); ++i) {
      add_places(list.get(i), keys, places);
      places.push_back({keys, [=](const c10::IValue& to) { list.set(i, to); },
                        [=] { list.erase(list.begin() + static_cast<int64_t>(i)); }});
    }
  }
}

c10::IValue any_value(std::mt19937& random) {
  c10::impl::GenericDict numbers(c10::IntType::get(), c10::AnyType::get());
  numbers.insert(1, 2);
  const std::vector<c10::IValue> all = {c10::IValue(),
                                        true,
                                        int64_t{-1},
                                        int64_t{7},
                                        int64_t{1} << 62,
                                        0.5,
                                        std::string("text"),
                                        torch::ones({2, 1}),
                                        torch::zeros({3}, torch::kByte),
                                        c10::impl::GenericList(c10::AnyType::get()),
                                        dict_of("text", 1),
                                        numbers};
  return all[random() % all.size()];
}

}  // namespace

TEST_CASE(
    "each of 500 altered checkpoints is either loaded or rejected with an error that names the "
    "file and the key") {
  const TempDir folder;
  const fs::path whole = folder.path() / "whole", run = folder.path() / "run";
  fit(whole, GENERATE(5, 6));
  const fs::path file = run / sconce::Checkpoint(whole, {.resume = true}).latest().filename();
  std::mt19937 random(1);
  int refused = 0;
  for (int i = 0; i < 250; ++i) {
    fs::remove_all(run);
    fs::copy(whole, run, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    const c10::IValue state = sconce::io::load_torch(file);
    std::vector<Place> places;
    add_places(state, {}, places);
    const Place& place = places[random() % places.size()];
    random() % 4 == 0 ? place.remove() : place.replace(any_value(random));
    sconce::io::save_torch(file, state);
    const auto names = names_in(run);
    const std::string altered = contents(file);
    const std::string error = error_of([&] {
      train::read_saved_run(file);
      fit(run, 1);
    });
    if (error == "nothing was thrown") continue;
    ++refused;
    INFO(c10::str(place.keys) << ": " << error);
    CHECK_THAT(error, ContainsSubstring(file.string()));
    CHECK_THAT(error, !ContainsSubstring("INTERNAL ASSERT") && !ContainsSubstring("report a bug"));
    CHECK(std::any_of(place.keys.begin(), place.keys.end(), [&](const std::string& key) {
      return error.find('\'' + key + '\'') != error.npos;
    }));
    CHECK(names_in(run) == names);
    CHECK(contents(file) == altered);
  }
  CHECK(refused > 125);
}

TEST_CASE("a checkpoint that fit did not save is rejected, and the error names the missing key") {
  const TempDir folder;
  torch::nn::Linear net(3, 2);
  sconce::Checkpoint checkpoint(folder.path());
  const auto check = [&](const std::string& error) {
    CHECK(error_of([&] { train::read_saved_run(checkpoint.latest()); }) ==
          checkpoint.latest().string() + ": " + error);
    const auto ran = sconce::test::run_train("--model linear --resume --device cpu --checkpoint " +
                                             folder.path().string());
    CHECK(ran.exit_code == 1);
    CHECK(ran.err == "sconce-train: " + checkpoint.latest().string() + ": " + error + "\n");
    CHECK(names_in(folder.path()) ==
          std::vector<std::string>{checkpoint.latest().filename().string()});
  };
  checkpoint.save({{"model", *net}}, {.epoch = 1});
  check("['extra']: expected a dict, got None");
  const auto none = c10::impl::GenericList(c10::AnyType::get());
  auto progress = dict_of("epochs", none);
  progress.insert("batches", 5);
  checkpoint.save({{"model", *net}}, {.epoch = 2, .extra = progress});
  check("['epoch']: expected 0, the length of ['extra']['epochs'], got 2");
}
