#include "simgpu/runtime/nccl/peers.hpp"

#include <cuda_runtime_api.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>

#include "simgpu/runtime/nccl/failure.hpp"

namespace simgpu::nccl {

namespace {

using PeerClock = std::chrono::steady_clock;

constexpr int yields_before_sleep = 16;
constexpr long longest_sleep_ns = 50'000'000;
constexpr auto check_interval = std::chrono::milliseconds(200);
// The default timeout of c10d's NCCL backend. The backend does not monitor the creation of
// communicators.
constexpr auto longest_start = std::chrono::minutes(10);

// A wait is reported once it exceeds this threshold. Each report doubles the threshold, so that a
// program whose ranks often wait for each other does not produce a report for every wait.
std::atomic<int64_t> long_wait_s = 5;
// A wait that ends with an abort is reported if it lasted longer than this threshold.
constexpr auto aborted_wait = std::chrono::seconds(1);

static_assert(std::atomic<uint32_t>::is_always_lock_free);

void futex_sleep(std::atomic<uint32_t>& word, uint32_t expected) {
  const timespec timeout{0, longest_sleep_ns};
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT, expected, &timeout, nullptr,
          0);
}

void futex_wake(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

Ranks bit_of(int rank) {
  return Ranks{1} << rank;
}

int check_number(int ranks, int rank) {
  if (ranks < 1 || ranks > max_ranks) {
    throw Failure(ncclInvalidArgument, "expected 1 to 64 ranks, got " + std::to_string(ranks));
  }
  if (rank < 0 || rank >= ranks) {
    throw Failure(ncclInvalidArgument,
                  "rank " + std::to_string(rank) + " of " + std::to_string(ranks));
  }
  return ranks;
}

}  // namespace

Peers::Peers(const ncclUniqueId& id, int ranks, int rank)
    : memory_(id, check_number(ranks, rank)), id_(id), ranks_(ranks), rank_(rank) {
  auto& me = memory_.member(rank);
  if (me.has_joined.load() != 0) {
    throw Failure(ncclInvalidUsage, "two processes use rank " + std::to_string(rank));
  }
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaDeviceGetPCIBusId(me.gpu.data(), static_cast<int>(me.gpu.size()), device) !=
          cudaSuccess) {
    throw Failure(ncclUnhandledCudaError, "no GPU for rank " + std::to_string(rank));
  }
  me.process = this_process();
  me.has_joined.store(1);
  for (int other = 0; other < ranks; ++other) notify(other);
}

void Peers::connect() {
  const auto start = PeerClock::now();
  begin(Activity::exchanging, "ncclCommInitRank");
  wait([&] {
    Ranks missing = 0;
    for (int rank = 0; rank < ranks_; ++rank) {
      if (memory_.member(rank).has_joined.load() != 0) continue;
      missing |= bit_of(rank);
      if (PeerClock::now() - start > longest_start) {
        throw Failure(ncclSystemError,
                      "rank " + std::to_string(rank) + " did not join within 10 minutes");
      }
    }
    return missing;
  });
  begin(Activity::none, "");
  SharedMemory::release(id_);
  check_gpus();
}

void Peers::begin(Activity activity, const std::string& call) {
  memory_.member(rank_).activity.begin(activity, call);
  is_reported_.store(false);
}

void Peers::restart_clock() {
  memory_.member(rank_).activity.restart_clock();
}

void Peers::end_wait() {
  memory_.member(rank_).activity.set_waits_for(0);
}

void Peers::check_aborted() const {
  if (is_aborted_.load()) throw Aborted{};
}

void Peers::barrier() {
  ++barriers_;
  memory_.member(rank_).barriers_reached.store(barriers_);
  for (int other = 0; other < ranks_; ++other) {
    if (other != rank_) notify(other);
  }
  wait([&] {
    Ranks missing = 0;
    for (int other = 0; other < ranks_; ++other) {
      const auto ahead = memory_.member(other).barriers_reached.load() - barriers_;
      if (static_cast<int32_t>(ahead) < 0) missing |= bit_of(other);
    }
    return missing;
  });
}

// A rank does not overwrite its call text until two barriers later, when every rank has read the
// text.
void Peers::barrier_of(const std::string& call) {
  const size_t turn = barriers_ % 2;
  const auto text_of = [&](int rank) { return memory_.member(rank).calls[turn].data(); };
  std::snprintf(text_of(rank_), sizeof(CallText), "%s", call.c_str());
  barrier();
  for (int rank = 1; rank < ranks_; ++rank) {
    if (std::strcmp(text_of(rank), text_of(0)) == 0) continue;
    throw Failure(ncclInvalidUsage, "rank " + std::to_string(rank) + " calls " + text_of(rank) +
                                        ", but rank 0 calls " + text_of(0));
  }
}

void Peers::wait(const std::function<Ranks()>& missing) {
  auto& bell = memory_.member(rank_).bell;
  auto& activity = memory_.member(rank_).activity;
  activity.restart_clock();
  auto next_check = PeerClock::now() + check_interval;
  for (int turn = 0;; ++turn) {
    const auto seen = bell.load();
    check_aborted();
    const Ranks awaited = missing();
    activity.set_waits_for(awaited);
    if (awaited == 0) return;
    if (turn < yields_before_sleep) {
      sched_yield();
    } else {
      futex_sleep(bell, seen);
    }
    if (PeerClock::now() < next_check) continue;
    check_running(missing);
    if (report_wait(std::chrono::seconds(long_wait_s.load()))) long_wait_s.store(2 * long_wait_s);
    next_check = PeerClock::now() + check_interval;
  }
}

void Peers::notify(int rank) {
  auto& bell = memory_.member(rank).bell;
  bell.fetch_add(1);
  futex_wake(bell);
}

void Peers::abort() {
  is_aborted_.store(true);
  report_wait(aborted_wait);
  notify(rank_);
}

// Reports the current wait once. The report describes what this rank and the awaited ranks are
// doing.
bool Peers::report_wait(std::chrono::seconds shortest) {
  const auto mine = memory_.member(rank_).activity.read();
  if (mine.waits_for == 0 || mine.lasts < shortest || is_reported_.exchange(true)) return false;
  std::string text = "simulated GPUs: " + describe(rank_, mine);
  for (int rank = 0; rank < ranks_; ++rank) {
    if ((mine.waits_for & bit_of(rank)) == 0) continue;
    const auto& member = memory_.member(rank);
    text += "; " + (member.has_joined.load() != 0
                        ? describe(rank, member.activity.read())
                        : "rank " + std::to_string(rank) + " has not joined the communicator");
  }
  std::fprintf(stderr, "%s\n", text.c_str());
  return true;
}

// A rank may finish its part of an operation and terminate immediately afterward, so `missing` is
// called again for each rank that has terminated.
void Peers::check_running(const std::function<Ranks()>& missing) const {
  for (int rank = 0; rank < ranks_; ++rank) {
    const auto& member = memory_.member(rank);
    if (member.has_joined.load() == 0 || is_running(member.process)) continue;
    if ((missing() & bit_of(rank)) == 0) continue;
    throw Failure(ncclRemoteError, "rank " + std::to_string(rank) + " (process " +
                                       std::to_string(member.process.id) +
                                       ") has ended, but rank " + std::to_string(rank_) +
                                       " is still waiting for that rank");
  }
}

void Peers::check_gpus() const {
  for (int a = 0; a < ranks_; ++a) {
    for (int b = a + 1; b < ranks_; ++b) {
      const auto& gpu = memory_.member(a).gpu;
      if (std::strncmp(gpu.data(), memory_.member(b).gpu.data(), gpu.size()) != 0) continue;
      throw Failure(ncclInvalidUsage, "Duplicate GPU detected: rank " + std::to_string(a) +
                                          " and rank " + std::to_string(b) +
                                          " both on CUDA device " + gpu.data());
    }
  }
}

}  // namespace simgpu::nccl
