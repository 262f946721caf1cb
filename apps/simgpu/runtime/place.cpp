#include "simgpu/runtime/place.hpp"

#include <compare>
#include <set>
#include <utility>

#include "simgpu/runtime/call_stack.hpp"
#include "simgpu/runtime/process.hpp"
#include "simgpu/runtime/python_place.hpp"
#include "simgpu/runtime/settings.hpp"

namespace simgpu {

// Only one of the members is set. The addresses in a stack are resolved only when a report is
// written.
struct Place {
  std::string line = {};
  CallStack stack = {};

  auto operator<=>(const Place&) const = default;
};

namespace {

thread_local const Place* noted = nullptr;

const Place* lasting(Place place) {
  static auto& all = *new std::set<Place>;
  const Lock lock;
  return &*all.insert(std::move(place)).first;
}

}  // namespace

void note_place() {
  if (!settings().places) return;
  auto line = python_place();
  auto stack = line.empty() ? call_stack() : CallStack();
  noted = lasting({std::move(line), std::move(stack)});
}

const Place* requested_at() {
  return noted;
}

std::string at(const Place* place) {
  if (place == nullptr) return "";
  const auto text = place->line.empty() ? place_of(place->stack) : place->line;
  return text.empty() ? "" : " at " + text;
}

}  // namespace simgpu
