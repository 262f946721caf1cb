#pragma once

// For the sources of this folder.

#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <vector>

namespace sconce::optim {

/// A number of each state of a bucket, such as its step count. They are views of one tensor, so
/// that one operation changes them all.
class PackedNumbers {
 public:
  /// Adds the number of a state. `seal` makes it a view.
  void add(at::Tensor& number) { of_states_.push_back(&number); }

  /// Must be called after the last number was added.
  void seal() {
    std::vector<at::Tensor> numbers;
    for (const auto* number : of_states_) numbers.push_back(*number);
    all_ = at::stack(numbers);
    one_ = at::ones({}, all_.options());
    views_ = all_.unbind();
    for (size_t i = 0; i < views_.size(); ++i) {
      record_stream(numbers[i]);
      *of_states_[i] = views_[i];
    }
    of_states_.clear();
  }

  void add_one() const { all_.add_(one_); }

  const at::Tensor& all() const { return all_; }
  const std::vector<at::Tensor>& views() const { return views_; }

  /// Returns the numbers, which must be on the CPU.
  const float* on_host() const { return all_.const_data_ptr<float>(); }

 private:
  // The state may have been made on another stream than this step's, which still reads the number.
  static void record_stream(const at::Tensor& number) {
    if (!number.is_cuda()) return;
    const c10::impl::VirtualGuardImpl guard(number.device().type());
    number.record_stream(guard.getStream(number.device()));
  }

  std::vector<at::Tensor*> of_states_ = {};  // until `seal`
  at::Tensor all_ = {};
  at::Tensor one_ = {};  // the number 1 would become a tensor and be cast in each step
  std::vector<at::Tensor> views_ = {};
};

}  // namespace sconce::optim
