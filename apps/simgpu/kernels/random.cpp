#include "simgpu/kernels/random.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>

#include <mutex>
#include <utility>

#include "simgpu/runtime/work.hpp"

namespace simgpu {

namespace {

thread_local at::Generator current_generator;

// The number of random values that a CUDA kernel thread draws at a time.
constexpr uint64_t philox_increment = 4;

uint64_t read_counter(const int64_t* counter) {
  return static_cast<uint64_t>(*static_cast<const int64_t*>(host_address(counter)));
}

at::PhiloxCudaState next_state(const std::optional<at::Generator>& generator, c10::Device device) {
  auto used = generator && generator->defined()
                  ? *generator
                  : at::cuda::detail::getDefaultCUDAGenerator(device.index());
  auto* impl = at::check_generator<at::CUDAGeneratorImpl>(used);
  const std::lock_guard lock(impl->mutex_);
  return impl->philox_cuda_state(philox_increment);
}

}  // namespace

Seed::Seed(const std::optional<at::Generator>& generator, c10::Device device)
    : state_(next_state(generator, device)) {}

uint64_t Seed::value() const {
  const bool captured = state_.captured_;
  const auto seed = captured ? read_counter(state_.seed_.ptr) : state_.seed_.val;
  const auto offset =
      captured ? read_counter(state_.offset_.ptr) + state_.offset_intragraph_ : state_.offset_.val;
  // Scrambles neighboring offsets across all bits, as SplitMix64 does.
  return seed ^ (offset * 0x9E3779B97F4A7C15ULL + 0x7F4A7C15ULL);
}

at::Generator Seed::generator() const {
  return at::make_generator<at::CPUGeneratorImpl>(value());
}

CallGenerator::CallGenerator(const std::optional<Seed>& seed)
    : previous_(std::exchange(current_generator, seed ? seed->generator() : at::Generator())) {}

CallGenerator::~CallGenerator() {
  current_generator = std::move(previous_);
}

at::Generator call_generator() {
  TORCH_CHECK(current_generator.defined(), "simulated GPUs: no random operator is being called");
  return current_generator;
}

}  // namespace simgpu
