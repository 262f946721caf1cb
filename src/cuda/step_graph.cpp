#include "cuda/step_graph.hpp"

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>

namespace sconce::cuda {

namespace {

// LibTorch 2.15 registers a generator where it is first drawn from; 2.11 has to be told.
template <class Graph>
void register_generator(Graph& graph, const at::Generator& generator) {
  if constexpr (requires { graph.register_generator_state(generator); }) {
    graph.register_generator_state(generator);
  }
}

// Where a generator notes that it is captured, as in LibTorch 2.11, an interrupted capture leaves
// it so, and it would refuse to draw: its state goes on in a copy, which is not captured.
template <class Impl>
void release_generator(at::Generator generator) {
  if constexpr (requires(Impl & impl, at::cuda::CUDAGraph * graph) {
                  impl.register_graph(graph);
                }) {
    generator.graphsafe_set_state(generator.clone());
  }
}

// Of the clean-up after an error each part is tried: which ones are still to do depends on where
// the capture stopped, and LibTorch throws for those that are not.
template <class F>
void attempt(const F& clean_up) noexcept {
  try {
    clean_up();
  } catch (...) {  // the error that ended the capture is the one to tell
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
      // The other modes forbid other threads, such as those that read batches ahead, to pin memory.
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
  // An error on the way makes the end of the capture fail too, before LibTorch has told its
  // allocators and generators that it is over.
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

}  // namespace sconce::cuda
