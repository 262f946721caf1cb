#include "capture_scope.hpp"

#include <c10/util/Exception.h>

#include <algorithm>

namespace sconce::detail {

namespace {

thread_local CaptureScope* innermost = nullptr;

template <class F>
void add_once(std::vector<std::pair<const void*, F>>& all, const void* object, F added) {
  const bool is_known =
      std::any_of(all.begin(), all.end(), [&](const auto& known) { return known.first == object; });
  if (!is_known) all.emplace_back(object, std::move(added));
}

}  // namespace

void Conditions::add(const void* object, Holds holds) {
  add_once(all_, object, std::move(holds));
}

bool Conditions::hold() const {
  return std::all_of(all_.begin(), all_.end(), [](const auto& one) { return one.second(); });
}

CaptureScope::CaptureScope(Conditions* conditions, std::shared_ptr<StepBallot> ballot)
    : outer_(std::exchange(innermost, this)),
      graph_conditions_(conditions),
      ballot_(std::move(ballot)) {}

CaptureScope::~CaptureScope() {
  innermost = outer_;
}

void CaptureScope::end() const {
  for (const auto& check : checks_) check.second();
}

void CaptureScope::check_at_end(const void* object, std::function<void()> check) {
  if (innermost == nullptr) return;
  add_once(innermost->checks_, object, std::move(check));
}

bool CaptureScope::is_active() {
  return innermost != nullptr;
}

Conditions* CaptureScope::graph_conditions() {
  return innermost == nullptr ? nullptr : innermost->graph_conditions_;
}

std::shared_ptr<StepBallot> CaptureScope::ballot() {
  return innermost == nullptr ? nullptr : innermost->ballot_;
}

void check_not_capturing_graph(std::string_view function) {
  TORCH_CHECK(CaptureScope::graph_conditions() == nullptr, function,
              ": expected a call outside a captured step on a GPU (replays do not run host code), "
              "got a call inside a captured step");
}

}  // namespace sconce::detail
