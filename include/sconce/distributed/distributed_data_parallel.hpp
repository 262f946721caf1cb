#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "sconce/distributed/process_group.hpp"
#include "sconce/fwd.hpp"
#include "sconce/nn/tensor_tree.hpp"

namespace sconce::nn {

/// How gradients are communicated between ranks. Python: the hooks in
/// `torch.distributed.algorithms.ddp_comm_hooks.default_hooks`, passed to `register_comm_hook`.
enum class CommHook {
  none,           ///< in the gradient type
  fp16_compress,  ///< divided by the number of ranks and summed in float16
  bf16_compress   ///< divided by the number of ranks and summed in bfloat16
};

/// Options for `DistributedDataParallel`, with the same names and defaults as in Python.
struct DistributedDataParallelOptions {
  /// Whether rank 0 broadcasts its buffers to all ranks. The broadcast runs in the first forward
  /// pass and in every forward pass that directly follows a forward pass with gradient
  /// synchronization. The broadcast may also run in an evaluation pass, so if only one rank runs
  /// the evaluation, that rank must call `module()` directly.
  bool broadcast_buffers = true;
  /// Target size of each bucket in MiB. Defaults to 25, or to 1 for the first bucket.
  std::optional<double> bucket_cap_mb = {};
  /// Whether a forward pass may skip parameters. Different ranks may skip different parameters.
  bool find_unused_parameters = false;
  /// Whether every step uses the same parameters the same number of times.
  bool static_graph = false;
  CommHook comm_hook = CommHook::none;  ///< type used to communicate gradients
};

namespace detail {

/// The part of DistributedDataParallel that does not depend on the module type.
class DistributedCore {
 public:
  DistributedCore(std::shared_ptr<torch::nn::Module> module, const distributed::ProcessGroup& group,
                  const DistributedDataParallelOptions& options);
  ~DistributedCore();
  DistributedCore(const DistributedCore&) = delete;
  DistributedCore& operator=(const DistributedCore&) = delete;

  void before_forward();
  void after_forward(const std::vector<torch::Tensor*>& outputs);
  std::vector<int64_t> bucket_sizes() const;
  bool broadcast_buffers() const { return broadcast_buffers_; }
  const distributed::ProcessGroup& process_group() const { return group_; }
  bool exchange_sync(bool sync);

 private:
  struct Engine;
  distributed::ProcessGroup group_;
  bool broadcast_buffers_;
  std::shared_ptr<Engine> engine_;  // null if the group does not have a backend
  bool sync_ = true;
};

}  // namespace detail

template <class M>
class DistributedDataParallel;

/// Disables gradient averaging for the lifetime of the guard, then restores the previous setting.
/// Run both the forward and the backward pass while the guard is alive. In a loop, use
/// `std::optional<NoSyncGuard> guard; if (...) guard.emplace(model);`.
/// Python: `with model.no_sync()`.
class [[nodiscard]] NoSyncGuard {
 public:
  /// Disables gradient averaging for `model`, which must outlive the guard.
  template <class M>
  explicit NoSyncGuard(DistributedDataParallel<M>& model)
      : core_(model.core_), before_(core_.exchange_sync(false)) {}
  ~NoSyncGuard() { core_.exchange_sync(before_); }
  NoSyncGuard(const NoSyncGuard&) = delete;
  NoSyncGuard& operator=(const NoSyncGuard&) = delete;

 private:
  detail::DistributedCore& core_;
  bool before_;
};

/// Trains a module in several processes, with different batches in each process. After
/// `loss.backward()`, the gradients on every rank are the mean over all ranks, so parameters that
/// start out equal stay equal. LibTorch's Reducer communicates the gradients in buckets while the
/// backward pass is still running. In a single-process group without a backend, this class only
/// calls the module. In a single-process group with a backend, gradients undergo the Reducer's
/// checks but are neither sent nor copied, unless `comm_hook`, `find_unused_parameters`,
/// `static_graph`, or sparse gradients require the Reducer.
///
/// Before construction, move the module to the CPU or to a single GPU. Move inputs to the module's
/// device. Pass the module's own parameters to optimizers, save and load the module itself, and do
/// not add or remove parameters during the lifetime of this object. All ranks must call the
/// constructor, `forward`, and `backward` in the same order. Buffers are broadcast as described for
/// `broadcast_buffers`. A CapturedStep on the CPU replays the same collectives. The first call to
/// such a CapturedStep throws if the model uses `find_unused_parameters`, `static_graph`, or sparse
/// gradients. If a peer fails, `forward` or `loss.backward()` throws an error on the other ranks,
/// as described in `distributed::ProcessGroup`. Python:
/// `torch.nn.parallel.DistributedDataParallel`.
template <class M>
class DistributedDataParallel {
  static_assert(std::is_base_of_v<torch::nn::Module, M>,
                "sconce::nn::DistributedDataParallel: expected a std::shared_ptr to a "
                "torch::nn::Module, or a module holder");

 public:
  /// Checks that parameters and buffers match on all ranks, then sets all parameters and buffers to
  /// the values on rank 0. If `broadcast_buffers` is false, buffers keep their values.
  /// @throw c10::Error if:
  /// - the module is null, contains uninitialized lazy layers, or has no parameters that require
  ///   grad;
  /// - the parameters that require grad are on several devices, or on the CPU with backend "nccl";
  /// - `bucket_cap_mb` is not above 0;
  /// - names, shapes, types, or `requires_grad` settings differ from rank 0;
  /// - a peer fails or times out.
  DistributedDataParallel(std::shared_ptr<M> module, const distributed::ProcessGroup& group,
                          DistributedDataParallelOptions options = {})
      : module_(std::move(module)), core_(module_, group, options) {}
  /// Uses the module in a module holder, such as `torch::nn::Linear`.
  DistributedDataParallel(const torch::nn::ModuleHolder<M>& holder,
                          const distributed::ProcessGroup& group,
                          DistributedDataParallelOptions options = {})
      : DistributedDataParallel(holder.ptr(), group, options) {}

  /// Calls the module's `forward` and, if grad mode is enabled, prepares for the backward pass that
  /// follows. If `find_unused_parameters` or `static_graph` is set, TensorTree finds the tensors in
  /// the output, and tensors that require grad are replaced with copies.
  /// @throw c10::Error if a peer fails or times out, or if the previous backward pass did not send
  /// all gradients.
  template <class... Args>
  auto forward(Args&&... args) {
    return call([&](M& module) { return module.forward(std::forward<Args>(args)...); });
  }

  /// Calls `step(module)` instead of `forward`, so that the step can also compute the loss. The
  /// backward pass must start from the tensors returned by `step`. Gradients are averaged as with
  /// `forward`.
  /// @throw c10::Error in the same cases as `forward`.
  template <class Step>
  auto call(const Step& step) {
    core_.before_forward();
    auto output = step(*module_);
    std::vector<torch::Tensor*> tensors;
    for_each_tensor(output, [&](torch::Tensor& tensor) { tensors.push_back(&tensor); });
    core_.after_forward(tensors);
    return output;
  }

  /// Calls `forward`.
  template <class... Args>
  auto operator()(Args&&... args) {
    return forward(std::forward<Args>(args)...);
  }

  /// Returns the module. Python: `module`.
  const std::shared_ptr<M>& module() const { return module_; }

  /// Returns the group over which gradients are averaged. Python: `process_group`.
  const distributed::ProcessGroup& process_group() const { return core_.process_group(); }

  /// Returns the `broadcast_buffers` option. Python: `broadcast_buffers`.
  bool broadcast_buffers() const { return core_.broadcast_buffers(); }

  /// Disables gradient averaging for the lifetime of the returned guard. While the guard is alive,
  /// each rank accumulates gradients locally. After the guard is destroyed, the next forward and
  /// backward passes average the accumulated gradients. Python: `no_sync()`.
  [[nodiscard]] NoSyncGuard no_sync() { return NoSyncGuard(*this); }

  /// Returns the size of each bucket in bytes, in the order in which buckets are sent. The second
  /// forward pass rebuilds the buckets in the order in which the gradients became ready, unless
  /// `find_unused_parameters` is set without `static_graph`. Returns an empty vector in a
  /// single-process group that does not send gradients. Python: the `bucket_sizes` and
  /// `rebuilt_bucket_sizes` entries of `_get_ddp_logging_data()`.
  std::vector<int64_t> bucket_sizes() const { return core_.bucket_sizes(); }

 private:
  friend class NoSyncGuard;

  std::shared_ptr<M> module_;
  detail::DistributedCore core_;
};

}  // namespace sconce::nn
