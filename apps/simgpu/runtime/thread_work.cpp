#include "simgpu/runtime/thread_work.hpp"

#include <chrono>

#include "simgpu/runtime/process.hpp"
#include "simgpu/runtime/stream.hpp"

namespace simgpu {

void finish(const WorkBefore& before, const std::function<void()>& check) {
  if (before.stream == nullptr) return;
  while (true) {
    std::shared_future<void> done;
    {
      const Lock lock;
      done = find_unready(*before.stream, before.tick);
      if (!done.valid()) return drain(*before.stream, before.tick);
    }
    check();
    done.wait_for(std::chrono::milliseconds(50));
  }
}

}  // namespace simgpu
