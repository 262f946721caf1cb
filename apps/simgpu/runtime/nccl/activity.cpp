#include "simgpu/runtime/nccl/activity.hpp"

#include <cstdio>

namespace simgpu::nccl {

namespace {

int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

std::string text_of(Ranks ranks) {
  std::string text;
  for (int rank = 0; ranks != 0; ++rank, ranks >>= 1) {
    if ((ranks & 1) == 0) continue;
    text += (text.empty() ? "rank " : ", ") + std::to_string(rank);
  }
  return text;
}

}  // namespace

void ActivityRecord::begin(Activity activity, const std::string& call) {
  version_.fetch_add(1);
  activity_.store(activity);
  restart_clock();
  waits_for_.store(0);
  std::snprintf(call_.data(), call_.size(), "%s", call.c_str());
  version_.fetch_add(1);
}

void ActivityRecord::restart_clock() {
  since_ns_.store(now_ns());
}

ActivityRecord::State ActivityRecord::read() const {
  const auto version = version_.load();
  CallText call = call_;
  call.back() = 0;
  if (version % 2 != 0 || version_.load() != version) call.front() = 0;
  const std::chrono::nanoseconds lasts(now_ns() - since_ns_.load());
  return {activity_.load(), call.data(), std::chrono::duration_cast<std::chrono::seconds>(lasts),
          waits_for_.load()};
}

std::string describe(int rank, const ActivityRecord::State& state) {
  const std::string name = "rank " + std::to_string(rank);
  const std::string time = std::to_string(state.lasts.count()) + " s";
  switch (state.activity) {
    case Activity::none:
      return name + " has not used this communicator for " + time;
    case Activity::queued:
      return name + " has waited " + time + " for earlier work on its stream to finish before " +
             state.call;
    case Activity::exchanging:
      break;
  }
  if (state.waits_for == 0) return name + " is in " + state.call;
  return name + " has waited " + time + " for " + text_of(state.waits_for) + " in " + state.call;
}

}  // namespace simgpu::nccl
