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

/// How gradients are sent between the ranks. Python: the hooks of
/// `torch.distributed.algorithms.ddp_comm_hooks.default_hooks`, given to `register_comm_hook`.
enum class CommHook {
  none,           ///< in their own type
  fp16_compress,  ///< divided by the number of ranks and summed in float16
  bf16_compress   ///< divided by the number of ranks and summed in bfloat16
};

/// The arguments of `torch.nn.parallel.DistributedDataParallel`, with Python's names and defaults.
struct DistributedDataParallelOptions {
  /// Whether rank 0 sends its buffers to all ranks, in the first forward and in each forward that
  /// follows one with synchronized gradients. This includes forwards for evaluation: if only one
  /// rank evaluates, it must call `module()`.
  bool broadcast_buffers = true;
  std::optional<double> bucket_cap_mb = {};  ///< MiB per bucket; none: 25, first one 1
  /// Whether a forward may leave out parameters. Ranks may leave out different ones.
  bool find_unused_parameters = false;
  /// Whether every step uses the same parameters, each the same number of times.
  bool static_graph = false;
  CommHook comm_hook = CommHook::none;  ///< type in which gradients are sent
};

namespace detail {

/// The part of DistributedDataParallel that does not depend on the type of the module.
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
  std::shared_ptr<Engine> engine_;  // null in a group without a backend
  bool sync_ = true;
};

}  // namespace detail

template <class M>
class DistributedDataParallel;

/// Turns off averaging of gradients while it lives, then restores the previous setting. Both
/// forward and backward must run while it lives. In a loop:
/// `std::optional<NoSyncGuard> guard; if (...) guard.emplace(model);`. Python:
/// `with model.no_sync()`.
class [[nodiscard]] NoSyncGuard {
 public:
  /// Turns averaging off. The model must outlive the guard.
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

/// Trains one module in several processes, each on its own batches. After `loss.backward()` every
/// rank has the mean of all ranks' gradients, so equal parameters stay equal. LibTorch's Reducer
/// sends the gradients in buckets while backward is still running. In a group of one without a
/// backend it only calls the module. In a group of one with a backend gradients are neither sent
/// nor copied, but checked as the Reducer does, unless comm_hook, find_unused_parameters,
/// static_graph or sparse gradients need the Reducer.
///
/// Move the module to its device, the CPU or one GPU, before construction, and move the inputs to
/// the same device. Give the module's own parameters to optimizers, save and load through the
/// module, and do not add or remove parameters while this object lives. All ranks call the
/// constructor, forward and backward in the same order. Buffers are broadcast as
/// `broadcast_buffers` says. A CapturedStep on the CPU replays the same collectives, and its first
/// call refuses find_unused_parameters, static_graph and sparse gradients. An error of a peer
/// reaches the other ranks in forward or in `loss.backward()`, as described in
/// `distributed::ProcessGroup`. Python: `torch.nn.parallel.DistributedDataParallel`.
template <class M>
class DistributedDataParallel {
  static_assert(std::is_base_of_v<torch::nn::Module, M>,
                "sconce::nn::DistributedDataParallel: expected a std::shared_ptr of a "
                "torch::nn::Module, or a module holder");

 public:
  /// Compares parameters and buffers with those of the other ranks, then sets all of them to the
  /// values of rank 0. Buffers keep their values if `broadcast_buffers` is false.
  /// @throw c10::Error if:
  /// - the module is null, has uninitialized lazy layers or has no parameter that requires grad;
  /// - the parameters that require grad are on several devices, or on the CPU with backend "nccl";
  /// - `bucket_cap_mb` is not above 0;
  /// - names, shapes, types or `requires_grad` differ from those of rank 0;
  /// - a peer fails or is late.
  DistributedDataParallel(std::shared_ptr<M> module, const distributed::ProcessGroup& group,
                          DistributedDataParallelOptions options = {})
      : module_(std::move(module)), core_(module_, group, options) {}
  /// Takes the module of a holder, such as `torch::nn::Linear`.
  DistributedDataParallel(const torch::nn::ModuleHolder<M>& holder,
                          const distributed::ProcessGroup& group,
                          DistributedDataParallelOptions options = {})
      : DistributedDataParallel(holder.ptr(), group, options) {}

  /// Calls the forward of the module and, with grad mode on, prepares the backward that follows.
  /// With find_unused_parameters or static_graph, TensorTree finds the tensors of the output,
  /// and those that require grad are replaced by copies.
  /// @throw c10::Error if a peer fails or is late, or if the previous backward left gradients
  /// unsent.
  template <class... Args>
  auto forward(Args&&... args) {
    return call([&](M& module) { return module.forward(std::forward<Args>(args)...); });
  }

  /// Calls `step(module)` instead of forward. Backward must begin at the tensors that it returns.
  /// So a step that computes its own loss is averaged like any other.
  /// @throw c10::Error under the same conditions as forward.
  template <class Step>
  auto call(const Step& step) {
    core_.before_forward();
    auto output = step(*module_);
    std::vector<torch::Tensor*> tensors;
    for_each_tensor(output, [&](torch::Tensor& tensor) { tensors.push_back(&tensor); });
    core_.after_forward(tensors);
    return output;
  }

  /// Calls forward.
  template <class... Args>
  auto operator()(Args&&... args) {
    return forward(std::forward<Args>(args)...);
  }

  /// Returns the module. Python: `module`.
  const std::shared_ptr<M>& module() const { return module_; }

  /// Returns the group whose gradients are averaged. Python: `process_group`.
  const distributed::ProcessGroup& process_group() const { return core_.process_group(); }

  /// Returns the option of this name. Python: `broadcast_buffers`.
  bool broadcast_buffers() const { return core_.broadcast_buffers(); }

  /// Turns off averaging while the returned guard lives: each rank adds up its own gradients. The
  /// first forward and backward after it averages the sums. Python: `no_sync()`.
  [[nodiscard]] NoSyncGuard no_sync() { return NoSyncGuard(*this); }

  /// Returns the bytes of each bucket, in the order of sending. From the second forward on, these
  /// are the buckets rebuilt in the order in which the gradients arrived. Empty in a group of one
  /// that sends no gradients.
  /// Python: bucket_sizes and rebuilt_bucket_sizes of `_get_ddp_logging_data()`.
  std::vector<int64_t> bucket_sizes() const { return core_.bucket_sizes(); }

 private:
  friend class NoSyncGuard;

  std::shared_ptr<M> module_;
  detail::DistributedCore core_;
};

}  // namespace sconce::nn
