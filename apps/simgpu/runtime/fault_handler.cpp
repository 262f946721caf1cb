#include "simgpu/runtime/fault_handler.hpp"

#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <string_view>

#include "simgpu/runtime/awaited_memory.hpp"
#include "simgpu/runtime/memory.hpp"
#include "simgpu/runtime/process.hpp"

namespace simgpu {

namespace {

// Works without the lock, because the handler may interrupt the thread that holds the lock.
struct Watched {
  std::atomic<uintptr_t> begin = 0;
  std::atomic<size_t> size = 0;
  std::atomic<int> device = 0;
};

std::array<Watched, 16384> watched_blocks;

// The signal actions that were installed before our handler. A stored action is never modified,
// because a handler may be reading it.
std::array<struct sigaction, 16> earlier_actions;
std::atomic<size_t> earlier_action = 0;

// Whether the earlier handler has already run and raised the signal again.
std::atomic<bool> is_passed_on = false;

// A line of text that is built using only functions that a signal handler may call.
class Line {
 public:
  Line& operator<<(std::string_view text) {
    for (const char c : text) {
      if (size_ < text_.size()) text_[size_++] = c;
    }
    return *this;
  }

  Line& operator<<(size_t number) {
    std::array<char, 20> digits = {};
    auto at = digits.size();
    do {
      digits[--at] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number > 0);
    return *this << std::string_view(&digits[at], digits.size() - at);
  }

  void write_to_standard_error() const {
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text_.data(), size_);
  }

 private:
  std::array<char, 256> text_ = {};
  size_t size_ = 0;
};

std::string_view verb(const void* context) {
#if defined(__x86_64__)
  constexpr greg_t is_write = 2;
  const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
  return (registers[REG_ERR] & is_write) != 0 ? "writes" : "reads";
#else
  (void)context;
  return "reads or writes";
#endif
}

void name_block(uintptr_t address, const void* context) {
  Line line;
  line << "simulated GPUs: the host " << verb(context);
  for (const auto& block : watched_blocks) {
    const auto begin = block.begin.load();
    if (begin == 0 || address - begin >= block.size) continue;
    line << " memory of cuda:" << static_cast<size_t>(block.device.load())
         << " through a device pointer into a block of " << block.size.load()
         << " bytes; the host cannot access GPU memory\n";
    return line.write_to_standard_error();
  }
  line << " GPU memory through a pointer outside all allocated blocks, such as a freed pointer\n";
  line.write_to_standard_error();
}

// After this function returns, the faulting instruction runs again and triggers the earlier action.
void on_fault(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  const bool is_fault = info->si_code > 0;
  if (is_fault && take_awaited_fault(info->si_addr, verb(context) == "writes")) {
    errno = saved_errno;
    return;
  }
  struct sigaction next = earlier_actions[earlier_action % earlier_actions.size()];
  if (is_passed_on.exchange(true)) {
    std::memset(&next, 0, sizeof next);
    next.sa_handler = SIG_DFL;
  }
  if (is_fault && is_gpu_address(info->si_addr)) {
    name_block(reinterpret_cast<uintptr_t>(info->si_addr), context);
  }
  sigaction(signal, &next, nullptr);
  if (!is_fault) raise(signal);  // no instruction would raise the signal again
  errno = saved_errno;
}

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == on_fault;
}

}  // namespace

void watch_block(uintptr_t begin, size_t size, int device) {
  for (auto& block : watched_blocks) {
    if (block.begin != 0) continue;
    block.size = size;
    block.device = device;
    block.begin = begin;
    return;
  }
}

void forget_block(uintptr_t begin) {
  for (auto& block : watched_blocks) {
    if (block.begin != begin) continue;
    block.begin = 0;
    return;
  }
}

void keep_fault_handler() {
  struct sigaction present = {};
  sigaction(SIGSEGV, nullptr, &present);
  if (is_ours(present)) return;
  const Lock lock;
  earlier_actions[(earlier_action + 1) % earlier_actions.size()] = present;
  ++earlier_action;
  is_passed_on = false;
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &action, nullptr);
}

namespace {

[[maybe_unused]] const bool is_handler_set = (keep_fault_handler(), true);

}  // namespace

}  // namespace simgpu
