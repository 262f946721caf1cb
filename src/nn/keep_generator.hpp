#pragma once

#include <ATen/CPUGeneratorImpl.h>

#include <mutex>
#include <utility>

namespace sconce::nn {

// Saves a generator's state on construction and restores the state on destruction. This is
// necessary because the constructors of LibTorch layers draw random numbers in places where Python
// does not.
class KeepGenerator {
 public:
  KeepGenerator() : KeepGenerator(at::detail::getDefaultCPUGenerator()) {}
  explicit KeepGenerator(at::Generator generator) : generator_(std::move(generator)) {
    const std::scoped_lock lock(generator_.mutex());
    state_ = generator_.get_state();
  }
  KeepGenerator(const KeepGenerator&) = delete;
  KeepGenerator& operator=(const KeepGenerator&) = delete;
  ~KeepGenerator() {
    const std::scoped_lock lock(generator_.mutex());
    generator_.set_state(state_);
  }

 private:
  at::Generator generator_;
  at::Tensor state_;
};

}  // namespace sconce::nn
