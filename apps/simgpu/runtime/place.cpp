#include "simgpu/runtime/place.hpp"

#include <map>
#include <utility>

#include "simgpu/runtime/call_stack.hpp"
#include "simgpu/runtime/process.hpp"
#include "simgpu/runtime/python_place.hpp"
#include "simgpu/runtime/settings.hpp"

namespace simgpu {

// One of the two: addresses are looked up only for a report.
struct Place {
  std::string line = {};
  CallStack stack = {};
};

namespace {

thread_local const Place* noted = nullptr;

const Place* lasting(std::pair<std::string, CallStack> place) {
  static auto& all = *new std::map<std::pair<std::string, CallStack>, Place>;
  const Lock lock;
  const auto [found, is_new] = all.try_emplace(std::move(place));
  if (is_new) found->second = {found->first.first, found->first.second};
  return &found->second;
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
