#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sconce/amp/grad_scaler.hpp"
#include "sconce/distributed/process_group.hpp"
#include "sconce/fwd.hpp"
#include "sconce/training/fit_result.hpp"
#include "sconce/training/stateful.hpp"

namespace sconce {

/// A fit under way, as its callbacks see it.
struct Fit {
  torch::nn::Module& model;  ///< without a wrapper around it, on `device`
  torch::optim::Optimizer& optimizer;
  amp::GradScaler& scaler;
  torch::Device device;
  const distributed::ProcessGroup& process_group;
  int max_epochs;
  int64_t batches;     ///< of an epoch, on each rank
  int64_t accumulate;  ///< batches of a step

  std::vector<EpochMetrics> epochs = {};  ///< those that are over
  int64_t batch = 0;                      ///< batches done of the one after them
  torch::Tensor loss = {};  ///< 0-dim, of the last batch, on the device, where to read it waits;
                            ///< undefined before the first

  /// A callback sets it to end the fit. It ends after this step; in a process group at the next
  /// step, or end of an epoch, at which it can be saved, where all ranks stop if one is to.
  bool should_stop = false;

  /// What a checkpoint keeps beside the random generators: the model, the optimizer, the scaler and
  /// the callbacks' states. To read or load the optimizer's throws where it is none of sconce's.
  NamedStates states = {};
  /// How far the fit is, with the metrics of the epoch under way; to read it is a collective. It is
  /// to be loaded with the `batch` that it was saved with.
  Stateful progress;
};

/// What goes along with a fit. Each verb is called for all callbacks in the order given, those that
/// close a scope, `on_fit_end` and `on_test_end`, in reverse and also where something throws, for
/// those whose `on_fit_begin` or `on_test_begin` was called. In a process group on every rank.
/// Python: `Callback` of Lightning.
class TrainerCallback {
 public:
  virtual ~TrainerCallback() = default;

  /// Brings the fit to where an earlier one was, if it knows. Before everything else.
  virtual void load(Fit&) {}
  /// Before the first step; `fit.epochs` and `fit.batch` say how far an earlier fit came.
  virtual void on_fit_begin(Fit&) {}
  virtual void on_fit_end(Fit&) {}
  /// When the gradients are there, before they are unscaled and clipped.
  virtual void on_before_step(Fit&) {}
  /// After the optimizer's step, also after one that the scaler skips.
  virtual void on_after_step(Fit&) {}
  /// After an epoch and its test; `fit.epochs` has what they came to.
  virtual void on_epoch_end(Fit&) {}
  /// Around a test.
  virtual void on_test_begin(Fit&) {}
  virtual void on_test_end(Fit&) {}
  /// After all callbacks had their turn: after each epoch, after each `save_every` steps, and
  /// before a fit stops. A metric of the last epoch is `fit.epochs.back()`'s where `fit.batch` is
  /// 0.
  virtual void save(Fit&) {}

  /// The callback's name among a checkpoint's parts, and its state; none by default.
  virtual std::string name() const { return {}; }
  virtual std::optional<Stateful> state() { return {}; }
};

}  // namespace sconce
