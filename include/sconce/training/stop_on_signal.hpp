#pragma once

#include <csignal>
#include <vector>

#include "sconce/training/trainer_callback.hpp"

namespace sconce {

/// Stops a fit when the process receives a signal. Job queues and launchers send a signal before
/// killing a process, and Ctrl-C sends a signal as well. The fit finishes its current step, saves,
/// and returns. `FitResult::stop_reason` contains the signal's name. In a process group, the fit
/// ends on all ranks at the next save or at the end of the epoch.
///
///     StopOnSignal stopping;
///     ModelCheckpoint saving(checkpoint);
///     trainer.fit(model, optimizer, {.train = batches, .callbacks = {&stopping, &saving}});
///     if (stopping.signal() != 0) return 128 + stopping.signal();
///
/// Signals are handled only during the fit. When a signal arrives, that signal's previous action is
/// restored. A second signal of the same type terminates the process unless the program itself
/// handles that signal. If a file is being saved at that time, the file's earlier version stays in
/// place. Signals that the process ignores remain ignored. The handler applies to the entire
/// process, so a signal ends all running fits that use this callback.
class StopOnSignal : public TrainerCallback {
 public:
  /// Constructs a callback that handles the given signals.
  /// @throw c10::Error if `signals` is empty or contains a signal that a process cannot handle.
  explicit StopOnSignal(std::vector<int> signals = {SIGTERM, SIGINT, SIGUSR1});
  /// Stops handling the signals.
  ~StopOnSignal() override;
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

  /// Starts handling the signals.
  void on_fit_start(Fit& fit) override;
  /// Stops the fit if a signal has arrived.
  void on_after_optimizer_step(Fit& fit) override;
  /// Stops the fit if a signal has arrived during the test.
  void on_epoch_end(Fit& fit) override;
  /// Restores the signal actions that were in effect before the fit.
  void on_fit_end(Fit& fit) override;

  /// Returns the signal that arrived during the last fit in this process, or 0.
  int signal() const { return signal_; }

 private:
  void check(Fit& fit);
  void release();

  std::vector<int> signals_;
  bool is_handling_ = false;
  int signal_ = 0;
};

}  // namespace sconce
