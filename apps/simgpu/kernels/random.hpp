#pragma once

#include <ATen/core/Generator.h>
#include <ATen/cuda/PhiloxCudaState.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <optional>

namespace simgpu {

/// The random number source for one call, consisting of the state of a GPU generator.
class Seed {
 public:
  /// Copies the state of the given generator, or of the device's default generator, and advances
  /// that generator.
  Seed(const std::optional<at::Generator>& generator, c10::Device device);

  /// Returns a CPU generator seeded with the state. Each replay of a graph reads the state again.
  at::Generator generator() const;

 private:
  uint64_t value() const;

  at::PhiloxCudaState state_;
};

/// While an object of this class exists, `call_generator` returns the object's generator.
class CallGenerator {
 public:
  explicit CallGenerator(const std::optional<Seed>& seed);
  ~CallGenerator();
  CallGenerator(const CallGenerator&) = delete;
  CallGenerator& operator=(const CallGenerator&) = delete;

 private:
  at::Generator previous_;
};

/// Returns the generator for the call that this thread is executing, for use by operators whose
/// schema has none.
/// @throw c10::Error outside a call of a random operator.
at::Generator call_generator();

}  // namespace simgpu
