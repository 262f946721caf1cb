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
  bool resume = false;    ///< whether to continue from existing checkpoints; if false, there must
                          ///< be none
  int keep_last = 1;      ///< number of most recent checkpoints to keep, at least 1
  bool keep_best = true;  ///< whether to also keep the checkpoint with the best value

  /// The process group used for training. Every rank must construct a Checkpoint, save, and load.
  /// Only rank 0 writes. Every rank reads the file and restores that rank's random number
  /// generators. If one rank throws, all ranks throw.
  distributed::ProcessGroup process_group = {};
};

/// Saves and loads a run's checkpoints. Each run uses a separate folder, and each checkpoint is a
/// separate file. A resumed run produces the same result as an uninterrupted run, because each file
/// also contains the states of the CPU and GPU random number generators.
///
///     sconce::Checkpoint checkpoint("run", {.resume = true});
///     sconce::ModelCheckpoint saving(checkpoint);
///     trainer.fit(model, optimizer, {.train = batches, .callbacks = {&saving}});
///
/// A file becomes visible only once it is complete, even if the process or the machine crashes.
/// When a file is read, its checksums are verified. `torch.load(path, weights_only=True)` returns a
/// dict that maps the names of the parts to their states and contains these additional keys:
/// "classes" (the classes of the parts by name), "generators" (for each rank, a tensor of bytes
/// with the CPU and GPU generator states), "epoch", "batch", "extra", and "best". At any time, only
/// one Checkpoint across all processes can write to a folder, but any number of Checkpoints can
/// read from it.
/// Python: Lightning's `ModelCheckpoint`.
class Checkpoint {
 public:
  /// Creates the folder on rank 0.
  /// @throw c10::Error if:
  /// - the folder cannot be created or read;
  /// - the folder contains checkpoints and `resume` is not set;
  /// - `keep_last` is below 1.
  explicit Checkpoint(std::filesystem::path folder, const CheckpointOptions& options = {});
  Checkpoint(Checkpoint&&) = default;
  Checkpoint& operator=(Checkpoint&&) = default;

  /// Locks the folder against other writers until this object is destroyed or rank 0's process
  /// exits. Call this function before the first step of a run. Otherwise, `save` locks the folder.
  /// On NFS and on file systems that do not support locks, the lock does not stop other writers.
  /// @throw c10::Error if another object has locked the folder, or if the folder cannot be opened.
  /// The message contains the folder name.
  void lock();

  /// Writes `checkpoint-<epoch>-<batch>.pt`. Then removes checkpoints that no longer need to be
  /// kept, as well as files left by killed writers. A run that does not continue from the
  /// previously saved progress, such as a second fit, writes `checkpoint-<epoch>-<batch>-2.pt`.
  /// Further runs of this kind use the suffixes `-3`, `-4`, and so on. No file is overwritten.
  ///
  /// If a monitored value is given, the `best.pt` link points to the checkpoint with the best
  /// value. On a file system that does not support links, `best.pt` is a copy. If the monitored
  /// value and the current best value differ in name or mode, a warning is issued, and the
  /// monitored value becomes the best value without a comparison. The parts are not modified.
  /// Values on a GPU are copied to the host. On every rank, the call returns only after the file is
  /// complete.
  /// @throw c10::Error if:
  /// - the file cannot be written (the message contains its name and the cause, and earlier files
  ///   are kept);
  /// - two parts have the same name, or the name of a part is one of the additional keys above;
  /// - the epoch or the batch is negative or has more than 18 digits;
  /// - the folder contains a later checkpoint than the last one that this object wrote or loaded;
  /// - `lock` throws.
  void save(const NamedStates& parts, const RunProgress& progress,
            const std::optional<MonitoredValue>& monitored = {});

  /// Restores the parts and the random number generators from the latest checkpoint, and returns
  /// the checkpoint's position. If there is no checkpoint or if `resume` is not set, changes
  /// nothing and returns `std::nullopt`. As in Python's `load_state_dict`, the optimizer and
  /// scheduler options, including learning rates, are replaced with the options in the file. If
  /// this object has locked the folder, also removes files left behind by killed writers.
  /// @throw c10::Error if:
  /// - the file is damaged, its parts differ from the run's parts in name or class, or it was
  ///   written by a different number of processes (in these cases, the parts are unchanged);
  /// - a part rejects its state (in which case the preceding parts have been changed);
  /// - the folder contains checkpoints that this object did not write, and `resume` is not set.
  std::optional<RunProgress> load(const NamedStates& parts);

  /// Returns the latest checkpoint's file, or an empty path if there is none.
  std::filesystem::path latest() const;
  /// Returns the best checkpoint's file, or an empty path if there is none.
  std::filesystem::path best() const;

  /// Returns the process group from the options.
  const distributed::ProcessGroup& process_group() const { return options_.process_group; }

 private:
  struct Best {
    MonitoredValue of = {};  // earlier versions saved no name
    std::string file = {};
  };
  struct RunState;

  friend void visit_state(Best& best, StateVisitor& state);
  friend void visit_state(RunState& run, StateVisitor& state);

  // Sort key for the order in which files were written. Contains the number in the file name's
  // suffix, the epoch, and the batch.
  using Position = std::array<int64_t, 3>;

  static std::string file_name(const Position& position);
  static std::optional<Position> position_of(const std::string& name);
  std::vector<std::string> files() const;
  void check_own(const char* expected) const;
  void take_folder();
  bool is_better(const MonitoredValue& given) const;
  bool has_other_monitor(
      const MonitoredValue& given) const;  // whether the best checkpoint monitors another value
  std::string agreed_latest() const;
  void end_save(const std::optional<Best>& best) const;
  void link_best(const std::optional<Best>& best) const;
  RunState read(const std::string& name, const NamedStates& parts);
  void prune(const std::optional<Best>& best) const;

  std::filesystem::path folder_;
  CheckpointOptions options_;
  std::optional<Best> best_ = {};
  std::optional<Position> last_ = {};     // the position that was most recently saved or loaded
  std::shared_ptr<const int> lock_ = {};  // lock on the folder
};

}  // namespace sconce
