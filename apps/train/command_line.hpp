#pragma once

#include <torch/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "fail.hpp"
#include "sconce/distributed/process_group.hpp"
#include "sconce/training/trainer.hpp"
#include "sconce/vision/image.hpp"

namespace train {

/// Limits on what the program reads.
struct ReadingLimits {
  std::optional<int64_t> csv_bytes = {};  ///< `sconce::io::CsvOptions::max_bytes`
  sconce::vision::ImageLimits image = {};
};

/// The arguments of `sconce-train predict`.
struct PredictLine {
  std::filesystem::path weights = {};
  std::vector<std::filesystem::path> files = {};  ///< pictures or tables
  ReadingLimits limits = {};
};

/// The checked arguments of sconce-train.
struct CommandLine {
  std::string data = "digits";               ///< "digits", "fashion-mnist", a folder or a CSV file
  std::string target = {};                   ///< column of a table to predict
  std::vector<std::string> categories = {};  ///< columns of a table to read as categories
  std::vector<std::string> drop = {};        ///< columns of a table to leave out
  int64_t image_size = 32;                   ///< height and width of the resized pictures
  bool grey = false;                         ///< whether to convert pictures to grey
  double test_fraction = 0.2;                ///< fraction of the examples of each class to test on
  bool augment = false;                      ///< whether to shift and mirror training pictures
  bool skip_bad = false;                     ///< whether to leave out bad pictures or rows
  int workers = 0;                           ///< number of threads that read pictures ahead
  ReadingLimits limits = {};
  std::string model = "lenet";
  std::filesystem::path weights = {};  ///< file of the first weights; empty: they are drawn
  bool freeze = false;                 ///< whether only the last layer is trained
  int epochs = 10;
  int64_t batch_size = 64;
  std::string optimizer = "sgd";
  std::optional<double> lr = {};  ///< empty: `default_lr(optimizer)`
  std::string scheduler = "cosine";
  sconce::amp::Precision precision = sconce::amp::Precision::fp32;
  std::string precision_name = "fp32";
  double clip = 0;     ///< largest norm of all gradients together; 0: no clipping
  int accumulate = 1;  ///< number of batches for each step
  double ema = 0;      ///< decay of the averaged weights; 0: none
  uint64_t seed = 0;
  std::string device = "auto";    ///< "auto", "cpu" or "cuda:N" for an existing GPU
  std::string parallel = "none";  ///< "none", "data" or "distributed"
  double timeout = 1800;          ///< seconds that a rank waits for the others
  bool graph = false;             ///< whether steps are replays of a CUDA graph, on a GPU
  bool fast_dev_run = false;
  bool summary = false;                   ///< whether to print the layers before the training
  bool live_loss = false;                 ///< whether the bar shows the last batch's loss
  std::filesystem::path checkpoint = {};  ///< folder; empty: no checkpoints
  int64_t save_every = 0;                 ///< steps between saves within an epoch; 0: none
  bool resume = false;
  bool restart_schedule = false;            ///< whether a resumed run begins a new schedule
  int64_t profile = 0;                      ///< number of steps to record in a trace; 0: none
  bool memory = false;                      ///< whether to print the peak memory
  std::filesystem::path scalars = {};       ///< folder of the scalars; empty: no files
  int64_t scalars_every = 0;                ///< steps between logged losses; 0: epochs only
  std::filesystem::path out = {};           ///< folder of the results; empty: no files
  bool overwrite = false;                   ///< whether to replace an earlier run's results
  std::optional<PredictLine> predict = {};  ///< predict instead of training
  std::string help = {};  ///< the text of --help or --version, if it was asked for

  /// Returns the device to train on. For "auto" it is the device of the group.
  torch::Device torch_device(const sconce::distributed::ProcessGroup& group = {}) const;
};

using apps::UsageError;

/// Reads and checks the command line.
/// @throw UsageError
CommandLine parse_command_line(int argc, const char* const* argv);

/// Returns an error of the library with the flags in place of the options that set its limits.
std::string with_flags(std::string error);

}  // namespace train
