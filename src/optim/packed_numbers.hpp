#pragma once

// This is an internal header of src/optim.

#include <ATen/core/Tensor.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_sub.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>

#include <vector>

namespace sconce::optim {

/// One number from each state in a bucket, such as the step count. On the CPU, the numbers become
/// views of a single tensor, so that one operation updates all of them. On a GPU, each number stays
/// in its own memory, because a CUDA graph from an earlier step may use its address.
class PackedNumbers {
 public:
  /// Adds the number from a state. If the number is on the CPU, `seal` turns it into a view.
  void add(at::Tensor& number) { state_numbers_.push_back(&number); }

  /// Must be called after the last number is added.
  void seal() {
    for (const auto* number : state_numbers_) views_.push_back(*number);
    if (views_.front().is_cpu()) pack();
    state_numbers_.clear();
  }

  void add_one() const {
    if (all_.defined()) {
      all_.add_(one_);
    } else {
      at::_foreach_add_(views_, 1);
    }
  }

  /// Subtracts a 0-dim tensor, on the numbers' device, from each number.
  void subtract(const at::Tensor& number) const {
    if (all_.defined()) {
      all_.sub_(number);
    } else {
      at::_foreach_sub_(views_, std::vector<at::Tensor>(views_.size(), number));
    }
  }

  const std::vector<at::Tensor>& views() const { return views_; }

  /// Returns the tensor with all numbers, which must be on the CPU.
  const at::Tensor& all() const { return all_; }

  /// Returns the numbers, which must be on the CPU.
  const float* on_host() const { return all_.const_data_ptr<float>(); }

 private:
  void pack() {
    all_ = at::stack(views_);
    one_ = at::ones({}, all_.options());
    views_ = all_.unbind();
    for (size_t i = 0; i < views_.size(); ++i) *state_numbers_[i] = views_[i];
  }

  std::vector<at::Tensor*> state_numbers_ = {};  // used until `seal` is called
  std::vector<at::Tensor> views_ = {};           // on a GPU, the states' own tensors
  at::Tensor all_ = {};                          // used only on the CPU
  at::Tensor one_ = {};                          // the number 1, which is created only once
};

}  // namespace sconce::optim
