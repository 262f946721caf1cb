#pragma once

#include <ATen/core/ivalue.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sconce/distributed/process_group.hpp"
#include "sconce/fwd.hpp"
#include "sconce/training/stateful.hpp"

namespace sconce {

class StateVisitor;  // writes and reads states, in src/

/// How far a run is.
struct RunProgress {
  int64_t epoch = 0;       ///< epochs that are over
  int64_t batch = 0;       ///< batches done of the epoch after them
  c10::IValue extra = {};  ///< what else the run needs: anything that `io::save_torch` takes
};

/// What a `Checkpoint` keeps.
struct CheckpointOptions {
  bool resume = false;    ///< goes on with what the folder holds; else it must hold no checkpoint
  int keep_last = 1;      ///< so many of those written last; at least 1
  bool keep_best = true;  ///< the one saved with the highest metric too

  /// The processes that train together: every rank constructs, saves and loads, rank 0 writes,
  /// every rank reads and gets its own random state; what throws on one throws on all.
  distributed::ProcessGroup process_group = {};
};

/// The checkpoints of a run, a file each, in a folder of their own: all that is needed to go on as
/// if nothing had happened, the states of the random generators (the CPU's and each GPU's)
/// included. A file is whole or not there, whatever stops the process or the machine, and its
/// checksums are checked when it is read. `torch.load(path, weights_only=True)` opens it: a dict of
/// the parts' states by their names, and "classes" (the parts' by name), "generators" (a tensor of
/// bytes a rank: the CPU's state, then the GPUs'), "epoch", "batch", "extra", "best". One
/// Checkpoint at a time writes in a folder, of this process or another; any number may read.
/// Python: `ModelCheckpoint` of Lightning.
class Checkpoint {
 public:
  /// Makes the folder, on rank 0.
  /// @throw c10::Error if it cannot be made or read, if it holds checkpoints and `resume` is not
  /// set, or if keep_last is below 1.
  explicit Checkpoint(std::filesystem::path folder, const CheckpointOptions& options = {});
  Checkpoint(Checkpoint&&) = default;
  Checkpoint& operator=(Checkpoint&&) = default;

  /// Keeps the folder for what this object writes, until its end or that of rank 0's process. To be
  /// called before a run's first step, or else `save` does it. A file system that has no such locks
  /// lets all go on, and so does NFS.
  /// @throw c10::Error naming the folder if another object keeps it, or if it cannot be opened.
  void lock();

  /// Writes `checkpoint-<epoch>-<batch>.pt`, then removes the checkpoints that are not to be kept
  /// and what killed writers left. A run that does not go on from the progress saved before, such
  /// as a second fit, writes `checkpoint-<epoch>-<batch>-2.pt`, the next `-3`: what is there is
  /// never overwritten. Where this or an earlier metric is the best, the link `best.pt` names its
  /// file; on a file system without links it is a copy. The parts stay as they are; reads them from
  /// their devices. On every rank it returns when the file is there.
  /// @throw c10::Error naming the file and the cause if it cannot be written: earlier ones stay; if
  /// two parts have one name, or one of those above; if the folder holds a later checkpoint than
  /// this object wrote or loaded; and as `lock`.
  void save(const NamedStates& parts, const RunProgress& progress,
            std::optional<double> metric = {});

  /// Brings the parts, and the random generators, to where the latest checkpoint was, and returns
  /// how far that is; without one, or without `resume`, changes nothing and returns nothing. The
  /// options of optimizer and scheduler become those of the file, the learning rates too, as with
  /// Python's `load_state_dict`.
  /// @throw c10::Error naming the file if it is damaged, has other parts than the run or one of
  /// another class, or was written by another number of processes, before anything is changed; if a
  /// part does not fit its state, which leaves those before it changed; without `resume` if the
  /// folder holds checkpoints that this object did not write.
  std::optional<RunProgress> load(const NamedStates& parts);

  /// The file of the checkpoint that was written last, and the best's; empty where there is none.
  std::filesystem::path latest() const;
  std::filesystem::path best() const;

  /// Those of the options.
  const distributed::ProcessGroup& process_group() const { return options_.process_group; }

 private:
  struct Best {
    double metric = 0;
    std::string file = {};
  };
  struct RunState;

  friend void visit_state(Best& best, StateVisitor& state);
  friend void visit_state(RunState& run, StateVisitor& state);

  // Sorts files as they were written: the number of the course of the run, epoch and batch.
  using Position = std::array<int64_t, 3>;

  static std::string file_name(const Position& position);
  static std::optional<Position> position_of(const std::string& name);
  std::vector<std::string> files() const;
  void check_own(const char* expected) const;
  void take_folder();
  std::string agreed_latest() const;
  void link_best() const;
  RunProgress read(const std::string& name, const NamedStates& parts);
  void prune() const;

  std::filesystem::path folder_;
  CheckpointOptions options_;
  std::optional<Best> best_ = {};
  std::optional<Position> last_ = {};     // what was saved or loaded last
  std::shared_ptr<const int> lock_ = {};  // on the folder
};

}  // namespace sconce
