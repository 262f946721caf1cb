#pragma once

#include <ATen/core/Generator.h>
#include <ATen/cuda/PhiloxCudaState.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <optional>

namespace simgpu {

/// Where the random numbers of one call come from: a state of a GPU's generator.
class Seed {
 public:
  /// Takes the state of the generator, or of the device's default one, and moves that on.
  Seed(const std::optional<at::Generator>& generator, c10::Device device);

  /// Returns a generator of the CPU that follows from the state. In each replay of a graph the
  /// state is read anew.
  at::Generator generator() const;

 private:
  uint64_t value() const;

  at::PhiloxCudaState state_;
};

/// While it lives, `call_generator` returns the generator.
class CallGenerator {
 public:
  explicit CallGenerator(const std::optional<Seed>& seed);
  ~CallGenerator();
  CallGenerator(const CallGenerator&) = delete;
  CallGenerator& operator=(const CallGenerator&) = delete;

 private:
  at::Generator previous_;
};

/// Returns the generator of the call that the thread is in, for operators whose schema has none.
/// @throw c10::Error outside a call of a random operator.
at::Generator call_generator();

}  // namespace simgpu
