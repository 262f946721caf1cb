#pragma once

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "command_line.hpp"
#include "model_file.hpp"
#include "new_folders.hpp"
#include "optimization.hpp"
#include "reports.hpp"
#include "run_checkpoint.hpp"
#include "run_output.hpp"
#include "schedule_span.hpp"
#include "sconce/optim/ema.hpp"
#include "sconce/training/stop_on_signal.hpp"
#include "sconce/training/trainer.hpp"

namespace train {

/// A run of sconce-train. `run` performs its steps in order, and each step uses the results of
/// earlier steps.
class TrainingRun {
 public:
  /// The command line must outlive this object.
  explicit TrainingRun(const CommandLine& line) : line_(line) {}

  /// Returns 0, or the signal that stopped training. In a process group, the signal is SIGTERM if
  /// another process received it.
  int run();

 private:
  void choose_threads();
  void join_processes();
  void note_new_folders();
  void load_weights();
  void open_data();
  void make_network();
  void open_saved_run();
  void check_results();
  void print_header();
  void make_trainer();
  void make_optimizer();
  void print_resumption();
  void make_schedule();
  void make_average();
  void make_callbacks();
  void fit();
  void write_results();

  bool is_first() const { return group_.rank() == 0; }
  template <class Callback, class... Args>
  void add(Args&&... args);

  const CommandLine& line_;
  std::string threads_ = {};
  sconce::distributed::ProcessGroup group_ = {};
  torch::Device device_ = torch::kCPU;
  std::ostream out_{nullptr};  // only the first process prints
  std::optional<NewFolders> removed_if_empty_ = {};
  Pretrained weights_ = {};  // released once the network has the weights
  std::optional<TrainingData> data_ = {};
  Network network_ = {};
  std::optional<sconce::Checkpoint> checkpoint_ = {};
  std::optional<SavedRun> saved_ = {};
  ScheduleSpan span_ = {};
  std::optional<Reports> reports_ = {};
  std::optional<sconce::Trainer> trainer_ = {};
  std::unique_ptr<torch::optim::Optimizer> optimizer_ = {};
  Schedule schedule_ = {};
  std::optional<sconce::optim::ExponentialMovingAverage> ema_ = {};
  sconce::StopOnSignal stopping_;
  std::vector<std::unique_ptr<sconce::TrainerCallback>> owned_ = {};  // keeps the callbacks alive
  sconce::Callbacks callbacks_ = {};
  sconce::FitResult result_ = {};
};

}  // namespace train
