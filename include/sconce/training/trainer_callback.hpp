#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <vector>

#include "sconce/training/fit.hpp"
#include "sconce/training/stateful.hpp"

namespace sconce {

/// Base class for callbacks. Each function is called for all callbacks, in the given order, on
/// every rank of a process group. `on_fit_end` and `on_test_end` are called in reverse order, even
/// after an exception, but only for callbacks whose `on_fit_start` or `on_test_start` returned
/// normally.
///
///     struct PrintLoss : sconce::TrainerCallback {
///       void on_epoch_end(sconce::Fit& fit) override { std::cout << fit.epochs.back().loss; }
///     };
///
/// Python: Lightning's `Callback`.
class TrainerCallback {
 public:
  virtual ~TrainerCallback() = default;

  /// Checks the callback's requirements and resets state left over from earlier fits. Called before
  /// all other callback functions and before the fit changes anything. At this point, the model may
  /// not be on the Trainer's device yet.
  virtual void setup(Fit&) {}
  /// If the callback saved an earlier fit, restores `fit.states` and then that fit's position
  /// (`fit.resume`). Called before all functions declared below.
  virtual void load(Fit&) {}
  /// Called before the first step. `fit.epochs` and `fit.batch` contain a resumed fit's position.
  virtual void on_fit_start(Fit&) {}
  /// Called at the end of the fit, even if the fit throws an exception.
  virtual void on_fit_end(Fit&) {}
  /// Called after the backward pass, before gradients are unscaled and clipped.
  virtual void on_before_optimizer_step(Fit&) {}
  /// Called after each optimizer step, including steps skipped by the scaler.
  virtual void on_after_optimizer_step(Fit&) {}
  /// Called after an epoch and its test. `fit.epochs` contains their results.
  virtual void on_epoch_end(Fit&) {}
  /// Called before a test.
  virtual void on_test_start(Fit&) {}
  /// Called after a test, even if the test throws an exception.
  virtual void on_test_end(Fit&) {}
  /// Returns whether to call `save` mid-epoch, after the current step. Must return the same value
  /// on all ranks. Returns false by default.
  virtual bool should_save(const Fit&) const { return false; }
  /// Called for all callbacks before `save` is called for any of them. Use this function to write
  /// data that must be on disk before the checkpoint is saved, such as a buffered log.
  virtual void on_before_save(Fit&) {}
  /// Called after each epoch, before a fit stops, and after each step for which `should_save`
  /// returns true, once all callbacks' other functions have returned. If `fit.batch` is 0,
  /// `fit.epochs.back()` contains the last epoch's metrics.
  virtual void save(Fit&) {}

  /// Returns the name under which a checkpoint stores the callback's state. Returns an empty name
  /// by default.
  virtual std::string name() const { return {}; }
  /// Returns the names under which earlier versions stored the callback's state. These names are
  /// looked up if a checkpoint does not contain `name()`. Returns an empty vector by default.
  virtual std::vector<std::string> former_names() const { return {}; }
  /// Returns the callback's state for a checkpoint. Returns `std::nullopt` by default, which means
  /// that the callback has no state.
  virtual std::optional<Stateful> state() { return {}; }
};

/// A pointer to a callback, which the caller must keep alive.
class CallbackPointer {
 public:
  /// Stores the pointer.
  CallbackPointer(TrainerCallback* callback) : callback_(callback) {}
  /// Fails to compile, because the fit would use a copy instead of the caller's callback.
  template <std::derived_from<TrainerCallback> T>
  CallbackPointer(const T&) {
    static_assert(
        sizeof(T) == 0,
        "sconce::FitData: expected pointers to callbacks, got a callback: write &callback");
  }

  /// Fails to compile, because the object is not a callback.
  template <class T>
    requires(!std::convertible_to<const T&, TrainerCallback*> &&
             !std::derived_from<T, TrainerCallback>)
  CallbackPointer(const T&) {
    constexpr bool is_smart_pointer = requires(const T& pointer) {
      { *pointer } -> std::convertible_to<const TrainerCallback&>;
    };
    static_assert(
        !is_smart_pointer,
        "sconce::FitData: expected plain pointers to callbacks, got a smart pointer: write "
        "callback.get()");
    static_assert(is_smart_pointer,
                  "sconce::FitData: expected pointers to callbacks, got another type; for a "
                  "scheduler, write sconce::LRScheduling scheduling(scheduler), or "
                  "PlateauScheduling for a ReduceLROnPlateau, and &scheduling among the callbacks");
  }

  /// Returns the pointer.
  operator TrainerCallback*() const { return callback_; }
  /// Accesses a member of the callback.
  TrainerCallback* operator->() const { return callback_; }

 private:
  TrainerCallback* callback_;
};

/// A fit's callbacks, in the order in which they are called.
using Callbacks = std::vector<CallbackPointer>;

}  // namespace sconce
