#include "capture/step_graph.hpp"

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>

namespace sconce {

namespace {

// LibTorch 2.15 registers generators when they are first used. LibTorch 2.11 requires explicit
// generator registration.
template <class Graph>
void register_generator(Graph& graph, const at::Generator& generator) {
  if constexpr (requires { graph.register_generator_state(generator); }) {
    graph.register_generator_state(generator);
  }
}

// In LibTorch 2.11, a generator contains a flag that is set during a capture. After an interrupted
// capture, the flag stays set, and generating random numbers would throw. The flag is not set in a
// clone of the generator's state.
template <class Impl>
void release_generator(at::Generator generator) {
  if constexpr (requires(Impl& impl, at::cuda::CUDAGraph* graph) { impl.register_graph(graph); }) {
    generator.graphsafe_set_state(generator.clone());
  }
}

// Runs one cleanup action after an error. The required cleanup actions depend on where the capture
// stopped, and LibTorch throws for any other cleanup action.
template <class F>
void attempt(const F& clean_up) noexcept {
  try {
    clean_up();
  } catch (...) {  // report only the error that ended the capture
  }
}

class CudaGraph final : public StepGraph {
 public:
  explicit CudaGraph(const std::vector<at::Generator>& generators)
      : device_(c10::cuda::current_device()),
        pool_(at::cuda::graph_pool_handle()),
        generators_(generators) {
    generators_.push_back(at::cuda::detail::getDefaultCUDAGenerator(device_));
    for (const auto& generator : generators_) register_generator(graph_, generator);
    try {
      // In the other capture modes, other threads cannot pin memory, for example to prefetch
      // batches.
      graph_.capture_begin(pool_, cudaStreamCaptureModeThreadLocal);
    } catch (...) {
      abandon();
      throw;
    }
  }

  ~CudaGraph() override {
    if (is_capturing_) abandon();
  }

  void end() override {
    graph_.capture_end();
    is_capturing_ = false;
  }

  void replay() override { graph_.replay(); }

 private:
  // After an error in the step, ending the capture also fails, and LibTorch does not notify its
  // allocators and generators that the capture has ended.
  void abandon() noexcept {
    try {
      return graph_.capture_end();
    } catch (...) {
    }
    attempt([&] { graph_.reset(); });
    attempt([&] {
      c10::cuda::CUDACachingAllocator::endAllocateToPool(device_, pool_);
      c10::cuda::CUDACachingAllocator::releasePool(device_, pool_);
    });
    attempt([&] {
      auto* pinned = at::getHostAllocator(at::kCUDA);
      pinned->end_allocate_to_pool(pool_);
      pinned->release_pool(pool_);
    });
    for (const auto& generator : generators_) {
      attempt([&] { release_generator<at::CUDAGeneratorImpl>(generator); });
    }
  }

  c10::DeviceIndex device_;
  at::cuda::MempoolId_t pool_;
  std::vector<at::Generator> generators_;
  at::cuda::CUDAGraph graph_ = {};
  bool is_capturing_ = true;
};

}  // namespace

std::unique_ptr<StepGraph> StepGraph::begin(const std::vector<at::Generator>& generators) {
  return std::make_unique<CudaGraph>(generators);
}

}  // namespace sconce
