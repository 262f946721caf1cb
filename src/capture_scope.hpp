#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "step_vote.hpp"

namespace sconce::detail {

/// The non-tensor conditions on which a capture depends. The capture remains valid as long as all
/// of them hold.
class Conditions {
 public:
  using Holds = std::function<bool()>;

  /// Adds a condition on the object, unless there already is a condition on it.
  void add(const void* object, Holds holds);

  /// Returns whether all conditions hold. This function is called before each replay.
  bool hold() const;

 private:
  std::vector<std::pair<const void*, Holds>> all_ = {};
};

/// Marks a run of a captured step's function in this thread. The run may precede the capture, be
/// recorded on the CPU, or be captured on a GPU.
class CaptureScope {
 public:
  /// `conditions` collects the conditions of a capture on a GPU and is null in other runs. `ballot`
  /// contains the votes on a step with a compiler, and is null if there is no compiler.
  explicit CaptureScope(Conditions* conditions, std::shared_ptr<StepBallot> ballot = {});
  ~CaptureScope();
  CaptureScope(const CaptureScope&) = delete;
  CaptureScope& operator=(const CaptureScope&) = delete;

  /// Runs the checks at the end of the function. For example, a check may require that a scaler has
  /// been updated.
  /// @throw any error from the checks.
  void end() const;

  /// Adds a check of the object that runs at the end of the function, unless there already is a
  /// check of the object. Does nothing outside a capture.
  static void check_at_end(const void* object, std::function<void()> check);

  /// Returns whether this thread is running the function of a captured step.
  static bool is_active();

  /// Returns the conditions of this thread's capture on a GPU, or null.
  static Conditions* graph_conditions();

  /// Returns the ballot of the captured step that this thread is running, or null.
  static std::shared_ptr<StepBallot> ballot();

 private:
  CaptureScope* outer_;
  Conditions* graph_conditions_;
  std::shared_ptr<StepBallot> ballot_;
  std::vector<std::pair<const void*, std::function<void()>>> checks_ = {};
};

/// Rejects a call to the function, such as "sconce::seed_everything", during a capture on a GPU,
/// because replays do not run host code.
/// @throw c10::Error with the function's name if this thread is capturing on a GPU.
void check_not_capturing_graph(std::string_view function);

}  // namespace sconce::detail
