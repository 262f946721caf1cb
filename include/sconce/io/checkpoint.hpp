#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sconce/fwd.hpp"

namespace sconce::amp {
class GradScaler;
struct GradScalerState;
}  // namespace sconce::amp

namespace sconce::distributed {
class ProcessGroup;
}  // namespace sconce::distributed

namespace sconce::optim {
class ExponentialMovingAverage;
class KernelOptimizer;
namespace lr_scheduler {
class Scheduler;
}  // namespace lr_scheduler
}  // namespace sconce::optim

namespace sconce::io {

/// The parts of a run, which the caller keeps alive; null: the run has no such part.
struct RunParts {
  torch::nn::Module* model = nullptr;
  optim::KernelOptimizer* optimizer = nullptr;  ///< one of sconce's: those of LibTorch have no
                                                ///< state that Python reads
  optim::lr_scheduler::Scheduler* scheduler = nullptr;
  amp::GradScaler* scaler = nullptr;
  optim::ExponentialMovingAverage* ema = nullptr;
};

/// How far a run is.
struct RunProgress {
  int64_t epoch = 0;       ///< epochs that are over
  int64_t batch = 0;       ///< batches done of the epoch after them
  c10::IValue extra = {};  ///< what else the run needs: anything that `save_torch` takes
};

/// What a `Checkpoint` keeps.
struct CheckpointOptions {
  bool resume = false;    ///< goes on with what the folder holds; else it must hold no checkpoint
  int keep_last = 1;      ///< so many of the latest; at least 1
  bool keep_best = true;  ///< the one saved with the highest metric too

  /// The processes that train together: every rank constructs, saves and loads, rank 0 writes,
  /// every rank reads and gets its own random state; what throws on one throws on all. Null: this
  /// one alone. The caller keeps it alive.
  const distributed::ProcessGroup* process_group = nullptr;
};

/// The checkpoints of a run, a file each, in a folder of their own: all that is needed to go on as
/// if nothing had happened, the states of the random generators (the CPU's and each GPU's)
/// included. A file is whole or not there, whatever stops the process or the machine, and its
/// checksums are checked when it is read. `torch.load(path, weights_only=True)` opens it: a dict of
/// "model", "optimizer", "scheduler", "scaler", "ema" (Python's state dicts, or None), "generators"
/// (a tensor of bytes a rank: the CPU's state, then the GPUs'), "epoch", "batch", "extra", "best".
/// Python: `ModelCheckpoint` of Lightning.
class Checkpoint {
 public:
  /// Makes the folder, on rank 0.
  /// @throw c10::Error if it cannot be made or read, if it holds checkpoints and `resume` is not
  /// set, or if keep_last is below 1.
  explicit Checkpoint(std::filesystem::path folder, const CheckpointOptions& options = {});

  /// Writes `checkpoint-<epoch>-<batch>.pt`, then removes the checkpoints that are not to be kept
  /// and what killed writers left. Where this or an earlier metric is the best, the link `best.pt`
  /// names its file; on a file system without links it is a copy. The parts stay as they are; reads
  /// them from their devices. On every rank it returns when the file is there.
  /// @throw c10::Error naming the file and the cause if it cannot be written: earlier ones stay; if
  /// the folder holds checkpoints and `load` was not called.
  void save(const RunParts& parts, const RunProgress& progress, std::optional<double> metric = {});

  /// Brings the parts, and the random generators, to where the latest checkpoint was, and returns
  /// how far that is; without one, or without `resume`, changes nothing and returns nothing.
  /// @throw c10::Error naming the file if it is damaged, has other parts than the run, or was
  /// written by another number of processes, before anything is changed; if a part does not fit
  /// its state, which leaves those before it changed: model, optimizer, scheduler, scaler, ema and
  /// the generators of GPUs.
  std::optional<RunProgress> load(const RunParts& parts);

  /// The latest checkpoint's file, and the best's; empty where there is none.
  std::filesystem::path latest() const;
  std::filesystem::path best() const;

  /// Those of the options.
  const distributed::ProcessGroup* process_group() const { return options_.process_group; }

 private:
  struct Best {
    double metric = 0;
    std::string file = {};
  };

  std::vector<std::string> files() const;
  std::string agreed_latest() const;
  static c10::impl::GenericDict dict_of(const Best& best);
  void link_best() const;
  RunProgress read(const std::string& name, const RunParts& parts);
  void prune() const;

  std::filesystem::path folder_;
  CheckpointOptions options_;
  std::optional<Best> best_ = {};
  bool is_fresh_ = true;  // neither saved nor loaded yet
};

/// The state of a scaler as a dict with Python's keys, which `save_torch` writes, and back.
/// @throw c10::Error naming a key that is missing or of another type.
c10::IValue as_ivalue(const amp::GradScalerState& state);
amp::GradScalerState as_grad_scaler_state(const c10::IValue& state);

}  // namespace sconce::io
