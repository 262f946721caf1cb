#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sconce/distributed/process_group.hpp"
#include "sconce/fwd.hpp"
#include "sconce/training/monitored_value.hpp"
#include "sconce/training/run_progress.hpp"
#include "sconce/training/stateful.hpp"

namespace sconce {

class StateVisitor;  // writes and reads states, in src/

/// Options for `Checkpoint`.
struct CheckpointOptions {
  bool resume = false;    ///< continue from the folder's checkpoints; otherwise it must have none
  int keep_last = 1;      ///< number of latest checkpoints to keep, at least 1
  bool keep_best = true;  ///< also keep the checkpoint with the best value

  /// The processes that train together. Every rank constructs, saves, and loads. Rank 0 writes.
  /// Every rank reads, and gets its own random state. If one rank throws, all ranks throw.
  distributed::ProcessGroup process_group = {};
};

/// Saves and loads the checkpoints of a run, one file each, in a separate folder. A resumed run
/// equals one that was never stopped, because a file also contains the states of the random
/// generators of the CPU and each GPU.
///
///     sconce::Checkpoint checkpoint("run", {.resume = true});
///     sconce::ModelCheckpoint saving(checkpoint);
///     trainer.fit(model, optimizer, {.train = batches, .callbacks = {&saving}});
///
/// A file is either complete or does not exist, even if the process or the machine stops. Its
/// checksums are verified when it is read. `torch.load(path, weights_only=True)` opens it as a dict
/// of the states of the parts by name, with these keys in addition: "classes" (the classes of the
/// parts by name), "generators" (for each rank, a tensor of bytes with the states of the CPU and
/// the GPUs), "epoch", "batch", "extra", and "best". Only one Checkpoint in any process can write
/// to a folder at a time, but any number can read it.
/// Python: `ModelCheckpoint` of Lightning.
class Checkpoint {
 public:
  /// Creates the folder, on rank 0.
  /// @throw c10::Error if:
  /// - the folder cannot be created or read;
  /// - it contains checkpoints and `resume` is not set;
  /// - `keep_last` is below 1.
  explicit Checkpoint(std::filesystem::path folder, const CheckpointOptions& options = {});
  Checkpoint(Checkpoint&&) = default;
  Checkpoint& operator=(Checkpoint&&) = default;

  /// Locks the folder against other writers until this object is destroyed or the process of rank 0
  /// ends. Call it before the first step of a run; otherwise, `save` does it. On NFS and file
  /// systems without locks, it does not keep other writers out.
  /// @throw c10::Error if another object has locked the folder, or if it cannot be opened. The
  /// error names the folder.
  void lock();

  /// Writes `checkpoint-<epoch>-<batch>.pt`. Then removes checkpoints that no longer need to be
  /// kept, and files left behind by writers that were killed. A run that does not continue from the
  /// previously saved progress, such as a second fit, writes `checkpoint-<epoch>-<batch>-2.pt`, the
  /// next one `-3`, and so on, so no file is overwritten.
  ///
  /// If a monitored value is given, the link `best.pt` points to the file with the best one. On a
  /// file system without links it is a copy. A value with a different name or mode than the current
  /// best is not compared with it. Instead, it becomes the best, with a warning. The parts are not
  /// modified. Their values are read from their devices. Every rank returns after the file is
  /// complete.
  /// @throw c10::Error if:
  /// - the file cannot be written (the error contains its name and the cause, and earlier files are
  ///   kept);
  /// - two parts have the same name, or a part has one of the names above;
  /// - the epoch or the batch is below 0, or has more than 18 digits;
  /// - the folder contains a later checkpoint than the one this object wrote or loaded;
  /// - `lock` throws.
  void save(const NamedStates& parts, const RunProgress& progress,
            const std::optional<MonitoredValue>& monitored = {});

  /// Restores the parts and the random generators from the latest checkpoint, and returns its
  /// position. If there is no checkpoint, or without `resume`, changes nothing and returns nothing.
  /// The options of the optimizer and the scheduler, including the learning rates, become the ones
  /// in the file, as with Python's `load_state_dict`. After `lock`, files left behind by a killed
  /// writer are removed.
  /// @throw c10::Error if:
  /// - the file is damaged, has different parts than the run or a part of a different class, or was
  ///   written by a different number of processes (nothing is changed);
  /// - a part does not accept its state (the parts before it are changed);
  /// - the folder contains checkpoints that this object did not write, without `resume`.
  std::optional<RunProgress> load(const NamedStates& parts);

  /// Returns the file of the latest checkpoint, or an empty path if there is none.
  std::filesystem::path latest() const;
  /// Returns the file of the best checkpoint, or an empty path if there is none.
  std::filesystem::path best() const;

  /// Returns the process group of the options.
  const distributed::ProcessGroup& process_group() const { return options_.process_group; }

 private:
  struct Best {
    MonitoredValue of = {};  // earlier versions saved no name
    std::string file = {};
  };
  struct RunState;

  friend void visit_state(Best& best, StateVisitor& state);
  friend void visit_state(RunState& run, StateVisitor& state);

  // Sort key in the order of writing: the number of the course of the run, the epoch, and the
  // batch.
  using Position = std::array<int64_t, 3>;

  static std::string file_name(const Position& position);
  static std::optional<Position> position_of(const std::string& name);
  std::vector<std::string> files() const;
  void check_own(const char* expected) const;
  void take_folder();
  bool is_better(const MonitoredValue& given) const;
  bool has_other_monitor(
      const MonitoredValue& given) const;  // whether the best is of another value
  std::string agreed_latest() const;
  void end_save(const std::optional<Best>& best) const;
  void link_best(const std::optional<Best>& best) const;
  RunState read(const std::string& name, const NamedStates& parts);
  void prune(const std::optional<Best>& best) const;

  std::filesystem::path folder_;
  CheckpointOptions options_;
  std::optional<Best> best_ = {};
  std::optional<Position> last_ = {};     // what was saved or loaded last
  std::shared_ptr<const int> lock_ = {};  // on the folder
};

}  // namespace sconce
