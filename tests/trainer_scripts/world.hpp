#pragma once

#include <deque>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sconce/optim/ema.hpp"
#include "sconce/optim/lr_scheduler.hpp"
#include "sconce/training/checkpoint.hpp"
#include "sconce/training/trainer.hpp"
#include "trainer_scripts/loaders.hpp"
#include "trainer_scripts/net.hpp"
#include "trainer_scripts/trace.hpp"

namespace trainer_scripts {

/// The exception that a script throws from a hook.
struct Planned {};

struct OptimizerOf {
  json spec;
  size_t model;
  std::unique_ptr<torch::optim::Optimizer> optimizer;
};

struct SchedulerOf {
  std::unique_ptr<sconce::optim::lr_scheduler::Scheduler> scheduler;
  sconce::optim::lr_scheduler::LRScheduler* by_steps = nullptr;         // either this one
  sconce::optim::lr_scheduler::ReduceLROnPlateau* by_metric = nullptr;  // or this one
};

struct TrainerOf {
  sconce::Metrics metrics;
  std::unique_ptr<sconce::Trainer> trainer;
};

/// The state of a script: all of its objects, indexed by number. The objects are in deques, so
/// their addresses do not change when a hook adds an object.
class World {
 public:
  World(json script, Trace& trace, std::filesystem::path folder);

  /// Runs the events. After each event, traces the state and, if the event threw an exception, the
  /// exception.
  void run();

  /// Does a recorder's work in its hook: traces the call, and runs the script's events for that
  /// call.
  void in_hook(const json& recorder, size_t index, const std::string& hook, int64_t call,
               sconce::Fit& fit);

 private:
  void build(uint64_t seed, bool resume);
  void build_optimizers();
  void build_callbacks();
  void happen(const json& event, sconce::Fit* fit);
  void act(const json& event, sconce::Fit* fit);
  void fit(const json& event);
  void loop(const json& event);
  void two_loops(const json& event);
  void change_optimizer(const std::string& what, const json& event);
  void new_head(size_t model);
  void copy_model(const json& event);
  void trace_state();

  json script_;
  Trace& trace_;
  std::filesystem::path folder_;
  sconce::data::Dataset train_, test_;
  std::deque<Net> models_;
  std::deque<OptimizerOf> optimizers_;
  std::deque<SchedulerOf> schedulers_;
  std::deque<sconce::optim::ExponentialMovingAverage> averages_;
  std::deque<TrainerOf> trainers_;
  std::deque<std::shared_ptr<AnyLoader>> loaders_;
  std::deque<std::optional<sconce::Checkpoint>> checkpoints_;
  std::deque<std::unique_ptr<sconce::TrainerCallback>> callbacks_;
  std::vector<size_t> running_ = {};  // the trainers with running fits
};

}  // namespace trainer_scripts
