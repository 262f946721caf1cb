#pragma once

// For the sources of this folder.

#include <ATen/core/Tensor.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_sub.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>

#include <vector>

namespace sconce::optim {

/// A number of each state of a bucket, such as its step count. On the CPU the numbers become views
/// of one tensor, so that one operation changes them all. On a GPU each keeps its memory, whose
/// address a CUDA graph of an earlier step may have.
class PackedNumbers {
 public:
  /// Adds the number of a state. `seal` makes it a view if it is on the CPU.
  void add(at::Tensor& number) { of_states_.push_back(&number); }

  /// Must be called after the last number was added.
  void seal() {
    for (const auto* number : of_states_) views_.push_back(*number);
    if (views_.front().is_cpu()) pack();
    of_states_.clear();
  }

  void add_one() const {
    if (all_.defined()) {
      all_.add_(one_);
    } else {
      at::_foreach_add_(views_, 1);
    }
  }

  /// Subtracts a tensor of no dimension on the device of the numbers from each.
  void subtract(const at::Tensor& number) const {
    if (all_.defined()) {
      all_.sub_(number);
    } else {
      at::_foreach_sub_(views_, std::vector<at::Tensor>(views_.size(), number));
    }
  }

  const std::vector<at::Tensor>& views() const { return views_; }

  /// Returns the tensor of all numbers, which must be on the CPU.
  const at::Tensor& all() const { return all_; }

  /// Returns the numbers, which must be on the CPU.
  const float* on_host() const { return all_.const_data_ptr<float>(); }

 private:
  void pack() {
    all_ = at::stack(views_);
    one_ = at::ones({}, all_.options());
    views_ = all_.unbind();
    for (size_t i = 0; i < views_.size(); ++i) *of_states_[i] = views_[i];
  }

  std::vector<at::Tensor*> of_states_ = {};  // until `seal`
  std::vector<at::Tensor> views_ = {};       // on a GPU the states' own tensors
  at::Tensor all_ = {};                      // on the CPU
  at::Tensor one_ = {};  // the number 1 would become a tensor and be cast in each step
};

}  // namespace sconce::optim
