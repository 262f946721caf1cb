#include "sconce/training/stop_on_signal.hpp"

#include <signal.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <string>
#include <utility>

namespace sconce {

namespace {

constexpr auto stop_on_signal = "sconce::StopOnSignal";

// The signal that was received, or 0. The handler communicates with the fits only through this
// variable.
std::atomic<int> arrived_signal = 0;
static_assert(std::atomic<int>::is_always_lock_free);

// A signal that is handled during fits. `previous` does not change while `users` is above 0,
// because the handler reads `previous`.
struct Handled {
  int users = 0;
  struct sigaction previous = {};
};
std::array<Handled, NSIG> handled_signals;
int users_of_all = 0;
std::mutex users_mutex;  // fits may run in several threads

void handle_signal(int signal) {
  const int before = errno;
  arrived_signal = signal;
  ::sigaction(signal, &handled_signals[static_cast<size_t>(signal)].previous, nullptr);
  errno = before;
}

bool is_own_handler(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == handle_signal;
}

void begin_handling(int signal) {
  Handled& handled = handled_signals[static_cast<size_t>(signal)];
  if (handled.users++ > 0) return;
  ::sigaction(signal, nullptr, &handled.previous);
  const auto& previous = handled.previous;
  if ((previous.sa_flags & SA_SIGINFO) == 0 && previous.sa_handler == SIG_IGN) return;
  struct sigaction action = {};
  action.sa_handler = handle_signal;
  action.sa_flags = SA_RESTART;  // system calls in other threads are not interrupted
  ::sigaction(signal, &action, nullptr);
}

// If the program installed a different handler during the fit, that handler is kept.
void end_handling(int signal) {
  Handled& handled = handled_signals[static_cast<size_t>(signal)];
  if (--handled.users > 0) return;
  struct sigaction now = {};
  ::sigaction(signal, nullptr, &now);
  if (is_own_handler(now)) ::sigaction(signal, &handled.previous, nullptr);
}

std::string signal_name(int signal) {
  switch (signal) {
    case SIGTERM:
      return "SIGTERM";
    case SIGINT:
      return "SIGINT";
    case SIGUSR1:
      return "SIGUSR1";
    default:
      return "signal " + std::to_string(signal);
  }
}

}  // namespace

StopOnSignal::StopOnSignal(std::vector<int> signals) : signals_(std::move(signals)) {
  TORCH_CHECK_VALUE(!signals_.empty(), stop_on_signal, ": expected signals, got none");
  for (const int signal : signals_) {
    struct sigaction now = {};
    const bool can_handle =
        ::sigaction(signal, nullptr, &now) == 0 && signal != SIGKILL && signal != SIGSTOP;
    TORCH_CHECK_VALUE(can_handle, stop_on_signal,
                      ": expected signals that a process can handle, got ", signal_name(signal));
  }
}

StopOnSignal::~StopOnSignal() {
  release();
}

void StopOnSignal::on_fit_start(Fit&) {
  TORCH_CHECK(
      !is_handling_, stop_on_signal,
      ": expected one fit at a time, got a nested fit: use a separate StopOnSignal for each fit");
  const std::scoped_lock lock(users_mutex);
  if (users_of_all++ == 0) arrived_signal = 0;
  for (const int signal : signals_) begin_handling(signal);
  is_handling_ = true;
  signal_ = 0;
}

void StopOnSignal::on_after_optimizer_step(Fit& fit) {
  check(fit);
}

void StopOnSignal::on_epoch_end(Fit& fit) {
  check(fit);
}

void StopOnSignal::on_fit_end(Fit&) {
  release();
}

void StopOnSignal::check(Fit& fit) {
  if (arrived_signal != 0) fit.stop(signal_name(arrived_signal) + " arrived");
}

void StopOnSignal::release() {
  if (!is_handling_) return;
  const std::scoped_lock lock(users_mutex);
  for (const int signal : signals_) end_handling(signal);
  signal_ = arrived_signal;
  --users_of_all;
  is_handling_ = false;
}

}  // namespace sconce
