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

/// Options of `Checkpoint`.
struct CheckpointOptions {
  bool resume = false;    ///< continues from the folder's checkpoints; otherwise it must have none
  int keep_last = 1;      ///< number of latest checkpoints to keep, at least 1
  bool keep_best = true;  ///< keeps the checkpoint with the best value too

  /// The processes that train together. Every rank constructs, saves and loads. Rank 0 writes;
  /// every rank reads, and gets its own random state. If one rank throws, all ranks throw.
  distributed::ProcessGroup process_group = {};
};

/// The checkpoints of a run, one file each, in a folder of their own. A resumed run equals one that
/// was never stopped: a file holds the states of the random generators of the CPU and each GPU too.
/// A file is complete or does not exist, even if the process or the machine stops, and its
/// checksums are verified when it is read. `torch.load(path, weights_only=True)` opens it: it is a
/// dict of the parts' states by name, with "classes" (the parts' classes by name), "generators"
/// (for each rank a tensor of bytes with the states of the CPU and the GPUs), "epoch", "batch",
/// "extra" and "best". Only one Checkpoint of any process writes in a folder at a time; any number
/// may read.
/// Python: `ModelCheckpoint` of Lightning.
class Checkpoint {
 public:
  /// Creates the folder, on rank 0.
  /// @throw c10::Error if:
  /// - the folder cannot be created or read;
  /// - it holds checkpoints and `resume` is not set;
  /// - keep_last is below 1.
  explicit Checkpoint(std::filesystem::path folder, const CheckpointOptions& options = {});
  Checkpoint(Checkpoint&&) = default;
  Checkpoint& operator=(Checkpoint&&) = default;

  /// Locks the folder against other writers until this object or the process of rank 0 ends. Call
  /// it before the first step of a run; otherwise `save` does it. NFS and file systems without
  /// locks keep no writer out.
  /// @throw c10::Error naming the folder if another object has locked it, or if it cannot be
  /// opened.
  void lock();

  /// Writes `checkpoint-<epoch>-<batch>.pt`. Then removes the checkpoints that need not be kept,
  /// and files that killed writers left behind. A run that does not continue from the progress that
  /// was saved before, such as a second fit, writes `checkpoint-<epoch>-<batch>-2.pt`, the next one
  /// `-3`, so that no file is overwritten. If there was a monitored value, the link `best.pt` leads
  /// to the file with the best one; on a file system without links it is a copy. A value of another
  /// name or mode than the best's is not compared with it, and becomes the best, with a warning.
  /// The parts do not change. Their values are read from their devices. Every rank returns after
  /// the file is complete.
  /// @throw c10::Error if:
  /// - the file cannot be written, with its name and the cause; earlier files stay;
  /// - two parts have the same name, or a part has one of the names above;
  /// - the epoch or the batch is below 0, or has more than 18 digits;
  /// - the folder holds a later checkpoint than this object wrote or loaded;
  /// - `lock` throws.
  void save(const NamedStates& parts, const RunProgress& progress,
            const std::optional<MonitoredValue>& monitored = {});

  /// Restores the parts and the random generators from the latest checkpoint, and returns its
  /// position. Changes nothing and returns nothing if there is no checkpoint, or without `resume`.
  /// The options of optimizer and scheduler become those of the file, including the learning rates,
  /// as with Python's `load_state_dict`. After `lock`, files that a killed writer left are removed.
  /// @throw c10::Error if:
  /// - the file is damaged, has other parts than the run or a part of another class, or was written
  ///   by another number of processes; nothing is changed then;
  /// - a part does not accept its state; the parts before it are changed then;
  /// - the folder holds checkpoints that this object did not write, without `resume`.
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

  // Sorts files as they were written: the number of the course of the run, epoch and batch.
  using Position = std::array<int64_t, 3>;

  static std::string file_name(const Position& position);
  static std::optional<Position> position_of(const std::string& name);
  std::vector<std::string> files() const;
  void check_own(const char* expected) const;
  void take_folder();
  bool is_better(const MonitoredValue& given) const;
  bool is_of_other(const MonitoredValue& given) const;  // whether the best is of another value
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
