#pragma once

// Plans an optimizer's step by assigning the tensors to kernel calls. A plan is reused in later
// steps as long as it remains valid. This is an internal header of src/optim.

#include <ATen/ScalarOps.h>
#include <ATen/TensorIterator.h>
#include <ATen/ThreadLocalState.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "optim/geometry.hpp"
#include "to_device.hpp"

namespace sconce::optim {

/// The tensors of one kernel call. They have the same device and type. On the CPU, small and large
/// tensors are placed in separate buckets.
struct Bucket {
  explicit Bucket(const at::Tensor& parameter)
      : device(parameter.device()),
        dtype(parameter.scalar_type()),
        small_on_cpu(is_small_on_cpu(parameter)) {}

  bool is_of_kind(const at::Tensor& parameter) const {
    return parameter.device() == device && parameter.scalar_type() == dtype;
  }

  bool holds(const at::Tensor& parameter) const {
    return is_of_kind(parameter) && is_small_on_cpu(parameter) == small_on_cpu;
  }

  /// Returns whether the parameters still have the planned memory, sizes, and strides, and whether
  /// every gradient has the same sizes as its parameter. Sets `has_sparse_grad` and
  /// `strides_match`. This loop is separate, because atomic reference counting in the same loop
  /// would make the processor wait for each tensor.
  bool matches_plan() {
    strides_match = true;
    if (!geometries.match(params, grads, strides_match)) return false;
    const auto is_sparse = [](const at::Tensor& grad) { return grad.is_sparse(); };
    has_sparse_grad = !strides_match && std::any_of(grads.begin(), grads.end(), is_sparse);
    return true;
  }

  static bool is_small_on_cpu(const at::Tensor& parameter) {
    return parameter.is_cpu() && parameter.numel() < at::internal::GRAIN_SIZE;
  }

  c10::Device device;
  c10::ScalarType dtype;
  bool small_on_cpu;
  bool overlaps = false;  // whether any two parameters share memory
  std::vector<at::Tensor> params = {};
  std::vector<at::Tensor> grads = {};  // filled in each step
  Geometries geometries = {};          // of the parameters
  bool has_sparse_grad = false;
  bool strides_match = false;  // whether each gradient has the strides of its parameter
  bool is_stale = false;       // whether a step replaced tensors in the states
};

/// Stores the parameters in one group that have a gradient, in buckets that are reused from step to
/// step. `B` derives from Bucket and provides:
/// - `B(parameter)`;
/// - `bool takes(state)`: returns whether the bucket accepts a parameter with this state;
/// - `void add(state)`: called after a parameter is added;
/// - `void seal(states)`: called after the last parameter is added.
template <class B, class State>
class StepPlan {
 public:
  using StateMap = ska::flat_hash_map<void*, std::unique_ptr<torch::optim::OptimizerParamState>>;

  /// Stores the gradients for this step in the buckets, and returns whether any of them is sparse.
  /// `make_state(index)` returns a State& for a parameter with a gradient. The function creates the
  /// state, or converts it to the parameter's device, type, and strides if needed. The function may
  /// also throw. It is called only if one of the following changed since the last step:
  /// - the parameters, or which of them have a gradient;
  /// - their devices, types, memory, sizes, or strides;
  /// - the objects in `states`;
  /// - `variant`, a number that represents the options that determine the tensors in a state;
  /// - the sizes of a gradient, which then differ from its parameter's sizes.
  template <class MakeState>
  bool update(const std::vector<at::Tensor>& params, const StateMap& states, int variant,
              const MakeState& make_state) {
    if (variant != variant_ || !gather(params, states)) {
      forget();  // because build may throw
      build(params, states, make_state);
      variant_ = variant;
    }
    return std::any_of(buckets_.begin(), buckets_.end(),
                       [](const B& bucket) { return bucket.has_sparse_grad; });
  }

  std::vector<B>& buckets() { return buckets_; }

  /// Makes the next step rebuild the plan, for example because tensors in the states changed.
  void forget() { variant_.reset(); }

 private:
  struct Entry {
    const c10::TensorImpl* param;
    const torch::optim::OptimizerParamState* state;
    size_t bucket;
  };

  // Returns false if the plan is no longer valid, in which case the buckets may be partially
  // filled. The call is inlined, because it runs for every parameter in each step.
  [[gnu::flatten]] bool gather(const std::vector<at::Tensor>& params, const StateMap& states) {
    for (auto& bucket : buckets_) bucket.grads.clear();
    size_t next = 0;
    for (const auto& param : params) {
      const at::Tensor& grad = param.grad();
      if (!grad.defined()) continue;
      if (next == entries_.size()) return false;
      const Entry& entry = entries_[next++];
      B& bucket = buckets_[entry.bucket];
      if (param.unsafeGetTensorImpl() != entry.param || !bucket.is_of_kind(param)) return false;
      const auto state = states.find(param.unsafeGetTensorImpl());
      if (state == states.end() || state->second.get() != entry.state) return false;
      bucket.grads.push_back(grad);
    }
    return next == entries_.size() && std::all_of(buckets_.begin(), buckets_.end(),
                                                  [](B& bucket) { return bucket.matches_plan(); });
  }

  template <class MakeState>
  void build(const std::vector<at::Tensor>& params, const StateMap& states,
             const MakeState& make_state) {
    buckets_.clear();
    entries_.clear();
    for (size_t i = 0; i < params.size(); ++i) {
      const auto& param = params[i];
      if (!param.grad().defined()) continue;
      State& state = make_state(i);
      size_t index = 0;
      while (index < buckets_.size() &&
             !(buckets_[index].holds(param) && buckets_[index].takes(state))) {
        ++index;
      }
      if (index == buckets_.size()) buckets_.emplace_back(param);
      buckets_[index].params.push_back(param);
      buckets_[index].grads.push_back(param.grad());
      buckets_[index].geometries.add(param);
      buckets_[index].add(state);
      entries_.push_back({param.unsafeGetTensorImpl(), &state, index});
    }
    for (auto& bucket : buckets_) {
      bucket.overlaps = bucket.small_on_cpu && share_memory(bucket.params);
      bucket.seal(states);
      bucket.matches_plan();
    }
  }

  std::vector<B> buckets_ = {};
  std::vector<Entry> entries_ = {};
  std::optional<int> variant_ = {};
};

/// Copies gradients so that each has the same strides as its parameter. The fused kernels on the
/// CPU assume matching strides and would otherwise combine the wrong elements.
inline void match_strides(Bucket& bucket) {
  if (bucket.strides_match) return;
  for (size_t i = 0; i < bucket.params.size(); ++i) {
    auto& grad = bucket.grads[i];
    if (grad.strides() == bucket.params[i].strides()) continue;
    grad = at::empty_like(bucket.params[i]).copy_(grad);
  }
}

/// Divides [0, count) among LibTorch threads, which call `part(begin, end)`, by iterating over a
/// tensor with `count` elements. `at::parallel_for` would not use threads here, because it is a
/// template with an OpenMP pragma, and only LibTorch itself is compiled with OpenMP.
template <class Part>
void share_among_threads(int64_t count, const Part& part) {
  const at::Tensor places = at::empty({count}, at::kByte);
  const auto* first = static_cast<const char*>(places.const_data_ptr());
  const at::ThreadLocalState state;
  auto iteration = at::TensorIterator::borrowing_nullary_op(places);
  const auto loop = [&](char** data, const int64_t*, int64_t size, int64_t) {
    const at::ThreadLocalStateGuard guard(state);
    const int64_t begin = *data - first;
    part(begin, begin + size);
  };
  iteration.for_each(loop, /*grain_size=*/1);
}

/// Calls `kernel(slice)`, where `slice(tensors)` returns the part of a list for this call. The
/// fused kernels on the CPU divide each tensor among the threads. For a small tensor, this takes
/// longer than the actual work. Therefore, lists of small tensors are divided among the threads
/// instead, unless two of the tensors share memory.
template <class Kernel>
void call_fused_kernel(const Bucket& bucket, const Kernel& kernel) {
  const auto part = [&](int64_t begin, int64_t end) {
    kernel([=](at::TensorList tensors) {
      if (tensors.empty()) return tensors;
      return tensors.slice(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
    });
  };
  const auto count = static_cast<int64_t>(bucket.params.size());
  if (bucket.small_on_cpu && !bucket.overlaps) return share_among_threads(count, part);
  part(0, count);
}

/// Calls `step(lr)` with the learning rate for a fused kernel on the device. The rate is a number.
/// If it is on a GPU, it is a tensor instead, because the host must not read it.
template <class Step>
void with_lr(double number, const std::optional<at::Tensor>& tensor, c10::Device device,
             const Step& step) {
  if (!tensor) return step(number);
  if (tensor->is_cpu() || device.is_cpu()) return step(tensor->item<double>());
  step(tensor->to(device, /*non_blocking=*/true));
}

/// Multiplies in place with the same rounding as Python. As the second operand, the number keeps
/// its full precision. `mul_(Scalar)` would make the number the first operand and round it to the
/// tensor's type.
inline const at::Tensor& scale(const at::Tensor& tensor, double factor) {
  return tensor.mul_(at::native::wrapped_scalar_tensor(factor));
}

/// Like sconce::to_device, but returns std::nullopt for an undefined tensor.
inline std::optional<at::Tensor> to_device(const at::Tensor& tensor, c10::Device device) {
  if (!tensor.defined()) return {};
  return sconce::to_device(tensor, device);
}

}  // namespace sconce::optim
