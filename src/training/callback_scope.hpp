#pragma once

#include "sconce/training/trainer_callback.hpp"

namespace sconce {

using CallbackVerb = void (TrainerCallback::*)(Fit&);

inline void call_all(const Callbacks& callbacks, Fit& fit, CallbackVerb verb) {
  for (TrainerCallback* callback : callbacks) (callback->*verb)(fit);
}

/// Calls the opening function of each callback in the given order. At the end of the scope, calls
/// the closing functions of the opened callbacks in reverse order. If an exception ends the scope,
/// exceptions from closing functions are ignored.
class CallbackScope {
 public:
  CallbackScope(const Callbacks& callbacks, Fit& fit, CallbackVerb opening, CallbackVerb closing)
      : fit_(fit), closing_(closing) {
    for (TrainerCallback* callback : callbacks) {
      try {
        (callback->*opening)(fit);
      } catch (...) {
        close_quietly();
        throw;
      }
      opened_.push_back(callback);
    }
  }
  ~CallbackScope() { close_quietly(); }
  CallbackScope(const CallbackScope&) = delete;
  CallbackScope& operator=(const CallbackScope&) = delete;

  void close() {
    while (!opened_.empty()) {
      TrainerCallback* callback = opened_.back();
      opened_.pop_back();
      (callback->*closing_)(fit_);
    }
  }

 private:
  void close_quietly() {
    while (!opened_.empty()) {
      try {
        close();
      } catch (...) {  // report only the first error
      }
    }
  }

  Fit& fit_;
  CallbackVerb closing_;
  Callbacks opened_ = {};
};

}  // namespace sconce
