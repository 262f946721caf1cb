#include "simgpu/runtime/user_kernels.hpp"

#include <cstddef>
#include <cstring>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "simgpu/runtime/process.hpp"
#include "simgpu/runtime/work.hpp"

// CPU functions registered by a program for its own CUDA kernels.

namespace simgpu {

namespace {

struct UserKernel {
  simgpu_kernel function = nullptr;
  std::vector<size_t> sizes = {};
};

// The map is never destroyed, because reports refer to its names until the process ends.
std::map<std::string, UserKernel>& user_kernels() {
  static auto& kernels = *new std::map<std::string, UserKernel>;
  return kernels;
}

using Entry = std::pair<const char*, UserKernel>;

std::optional<Entry> find(const std::string& name) {
  const Lock lock;
  const auto found = user_kernels().find(name);
  if (found == user_kernels().end()) return std::nullopt;
  return Entry{found->first.c_str(), found->second};
}

// A copy of a launch's arguments. A function may modify its arguments, so each replay of a graph
// needs a separate copy.
class Arguments {
 public:
  Arguments(const std::vector<size_t>& sizes, void* const* arguments) : sizes_(sizes) {
    for (size_t i = 0; i < sizes.size(); ++i) {
      values_.emplace_back(sizes[i] / sizeof(std::max_align_t) + 1);
      std::memcpy(values_.back().data(), arguments[i], sizes[i]);
      pointers_.push_back(values_.back().data());
    }
  }
  Arguments(const Arguments& other) : Arguments(other.sizes_, other.pointers_.data()) {}
  Arguments& operator=(const Arguments&) = delete;

  void** pointers() { return pointers_.data(); }

 private:
  std::vector<size_t> sizes_;
  std::vector<std::vector<std::max_align_t>> values_;
  std::vector<void*> pointers_;
};

// The launch whose CPU function is running in this thread.
struct Running {
  cudaStream_t stream;
  const char* label;
  std::vector<Access> accesses = {};
};

thread_local Running* running = nullptr;

void run(simgpu_kernel function, const simgpu_launch& launch, void** arguments, Running* now) {
  struct Scope {
    explicit Scope(Running* current) : previous(std::exchange(running, current)) {}
    ~Scope() { running = previous; }
    Running* previous;
  };
  const Scope scope(now);
  function(&launch, arguments);
}

void* declare(const void* memory, size_t bytes, bool writes) {
  if (running != nullptr && bytes > 0) {
    const Access access{memory, bytes, writes};
    begin_work(running->stream, {running->label, {access}, {}, /*is_continued=*/true});
    running->accesses.push_back(access);
  }
  return host_address(memory);
}

}  // namespace

bool has_user_kernel(const std::string& name) {
  return find(name).has_value();
}

bool launch_user_kernel(const std::string& name, const simgpu_launch& launch, void** arguments,
                        cudaStream_t stream) {
  const auto found = find(name);
  if (!found) return false;
  const auto& [label, kernel] = *found;
  std::optional<Arguments> again;
  if (is_capturing(stream)) again.emplace(kernel.sizes, arguments);
  begin_work(stream, {.label = label});
  Running now{stream, label};
  run(kernel.function, launch, arguments, &now);
  if (!again) return true;
  record(stream,
         {label, std::move(now.accesses), [function = kernel.function, launch, again = *again] {
            Arguments copies(again);
            run(function, launch, copies.pointers(), nullptr);
          }});
  return true;
}

}  // namespace simgpu

extern "C" {

int simgpu_register_kernel(const char* name, simgpu_kernel function, const size_t* sizes,
                           size_t count) {
  if (name == nullptr || function == nullptr || (sizes == nullptr && count > 0)) return 1;
  const simgpu::Lock lock;
  simgpu::user_kernels()[name] = {function, {sizes, sizes + count}};
  return 0;
}

const void* simgpu_reads(const void* memory, size_t bytes) {
  return simgpu::declare(memory, bytes, false);
}

void* simgpu_writes(void* memory, size_t bytes) {
  return simgpu::declare(memory, bytes, true);
}

}  // extern "C"
