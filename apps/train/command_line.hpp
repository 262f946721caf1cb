#pragma once

#include <torch/types.h>

#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "sconce/distributed/process_group.hpp"
#include "sconce/trainer.hpp"

namespace train {

/// What `sconce-train predict` asks for.
struct PredictLine {
  std::filesystem::path weights = {};
  std::vector<std::filesystem::path> pictures = {};
};

/// What the command line of sconce-train asks for, checked.
struct CommandLine {
  std::string data = "digits";  ///< "digits", "fashion-mnist" or a folder
  int64_t image_size = 32;      ///< height and width that pictures are resized to
  bool grey = false;            ///< pictures become grey
  double test_fraction = 0.2;   ///< of the pictures of each class
  bool augment = false;         ///< shifts and mirrors the pictures to train on
  bool skip_bad = false;        ///< leaves out what is no picture, or damaged
  int workers = 0;              ///< threads that read pictures ahead
  std::string model = "lenet";
  int epochs = 10;
  int64_t batch_size = 64;
  std::string optimizer = "sgd";
  std::optional<double> lr = {};  ///< empty: `default_lr(optimizer)`
  std::string scheduler = "cosine";
  sconce::Precision precision = sconce::Precision::fp32;
  std::string precision_name = "fp32";
  double clip = 0;     ///< largest norm of all gradients together; 0: no clipping
  int accumulate = 1;  ///< batches a step
  double ema = 0;      ///< decay of the averaged weights; 0: none
  uint64_t seed = 0;
  std::string device = "auto";    ///< "auto", "cpu" or "cuda:N", N a GPU that is there
  std::string parallel = "none";  ///< "none", "data" or "distributed"
  double timeout = 1800;          ///< seconds that a rank waits for the others
  bool graph = false;             ///< steps are replays of a CUDA graph, on a GPU
  bool fast_dev_run = false;
  bool summary = false;                   ///< prints the model's layers before the training
  bool live_loss = false;                 ///< the bar shows the last batch's loss too
  std::filesystem::path checkpoint = {};  ///< folder; empty: no checkpoints
  int64_t save_every = 0;                 ///< steps between saves within an epoch; 0: none
  bool resume = false;
  int64_t profile = 0;                      ///< steps to record in a trace; 0: none
  bool memory = false;                      ///< prints the peaks of memory
  std::filesystem::path scalars = {};       ///< folder of the scalars; empty: no files
  int64_t scalars_every = 0;                ///< steps between logged losses; 0: epochs alone
  std::filesystem::path out = {};           ///< folder of the results; empty: no files
  std::optional<PredictLine> predict = {};  ///< if there, nothing is trained
  std::string help = {};                    ///< not empty: print it and leave

  /// The device to train on: for "auto" the group's.
  torch::Device torch_device(const sconce::distributed::ProcessGroup& group = {}) const;
};

/// A command line that asks for something that cannot be. `what()` is one line that names the flag
/// and what it takes.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Reads and checks the command line.
/// @throw UsageError
CommandLine parse_command_line(int argc, const char* const* argv);

}  // namespace train
