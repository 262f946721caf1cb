#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "step_vote.hpp"

namespace sconce::detail {

/// What a capture depends on besides tensors. It is used as long as all its conditions hold.
class Conditions {
 public:
  using Holds = std::function<bool()>;

  /// Adds a condition about the object, unless there is one already.
  void add(const void* object, Holds holds);

  /// Returns whether all conditions hold. Each replay asks.
  bool hold() const;

 private:
  std::vector<std::pair<const void*, Holds>> all_ = {};
};

/// Marks a run of a captured step's function in this thread: before the capture, while the CPU
/// records it, or while a GPU captures it.
class CaptureScope {
 public:
  /// `of_graph` gets the conditions of a capture on a GPU; null in other runs. `ballot` carries the
  /// votes about a step with a compiler; null without one.
  explicit CaptureScope(Conditions* of_graph, std::shared_ptr<StepBallot> ballot = {});
  ~CaptureScope();
  CaptureScope(const CaptureScope&) = delete;
  CaptureScope& operator=(const CaptureScope&) = delete;

  /// Checks the end of the function, such as that a scaler has been updated.
  /// @throw what the checks throw.
  void end() const;

  /// Adds a check of the object at the end of the function, unless there is one already. Does
  /// nothing outside of a capture.
  static void check_at_end(const void* object, std::function<void()> check);

  /// Returns whether this thread runs the function of a captured step.
  static bool is_active();

  /// Returns the conditions of the capture on a GPU that this thread makes, or null.
  static Conditions* graph_conditions();

  /// Returns the ballot of the captured step whose function this thread runs, or null.
  static std::shared_ptr<StepBallot> ballot();

 private:
  CaptureScope* outer_;
  Conditions* of_graph_;
  std::shared_ptr<StepBallot> ballot_;
  std::vector<std::pair<const void*, std::function<void()>>> checks_ = {};
};

/// Refuses a call of the function, such as "sconce::seed_everything", on a GPU, whose replays do
/// not call the host.
/// @throw c10::Error with the function if a capture on a GPU is being made.
void refuse_in_graph(std::string_view function);

}  // namespace sconce::detail
