#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sconce/distributed/process_group.hpp"
#include "sconce/fwd.hpp"
#include "sconce/nn/nested_tensors.hpp"

namespace sconce::nn {

/// How gradients travel between the ranks. Python: the hooks of
/// `torch.distributed.algorithms.ddp_comm_hooks.default_hooks`, given to `register_comm_hook`.
enum class CommHook {
  none,           ///< in their own type
  fp16_compress,  ///< divided by the number of ranks and summed in float16
  bf16_compress   ///< divided by the number of ranks and summed in bfloat16
};

/// The arguments of `torch.nn.parallel.DistributedDataParallel`, with Python's names and defaults.
struct DistributedDataParallelOptions {
  /// Rank 0's buffers go to all in the first forward and in each that follows one with gradients,
  /// evaluating ones too: what one rank evaluates alone goes through `module()`.
  bool broadcast_buffers = true;
  std::optional<double> bucket_cap_mb = {};  ///< MiB of gradients sent at once; none: 25, first 1
  bool find_unused_parameters = false;  ///< a forward may leave parameters out, each rank others
  bool static_graph = false;            ///< every step uses the same parameters, equally often
  CommHook comm_hook = CommHook::none;
};

namespace detail {

/// What of DistributedDataParallel does not depend on the module's type.
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
  bool exchange_sync(bool sync) { return std::exchange(sync_, sync); }

 private:
  struct Engine;
  std::unique_ptr<Engine> engine_;  // null in a group of one
  bool sync_ = true;
};

}  // namespace detail

template <class M>
class DistributedDataParallel;

/// Keeps gradients from being averaged while it lives, of forwards and backwards both under it;
/// then restores what was. In a loop: `std::optional<NoSyncGuard> guard; if (...)
/// guard.emplace(model);`. Python: `with model.no_sync()`.
class [[nodiscard]] NoSyncGuard {
 public:
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

/// Trains one module in several processes, each on its own batches: `loss.backward()` leaves in
/// every rank the mean of all ranks' gradients, so equal parameters stay equal. LibTorch's Reducer
/// sends the gradients in buckets, while the rest of backward runs. In a group of one it is the
/// module, and nothing else.
///
/// The module is on its device, CPU or one GPU, before; inputs are put there by the caller. Give
/// its own parameters to optimizers, save and load by it, and add or take away none of its
/// parameters while this lives. All ranks call constructor, forward and backward alike. Of the
/// buffers, rank 0's are everybody's before the next forward. An error of a peer reaches the others
/// in forward or in `loss.backward()`, as `distributed::ProcessGroup` says.
/// Python: `torch.nn.parallel.DistributedDataParallel`.
template <class M>
class DistributedDataParallel {
 public:
  /// Compares the parameters and buffers with the other ranks', then sets all to rank 0's values.
  /// @throw c10::Error if a module has uninitialized lazy layers, or no parameter that requires
  /// grad, or parameters on several devices; if names, shapes or types are not those of rank 0; if
  /// a peer fails or is late.
  DistributedDataParallel(std::shared_ptr<M> module, const distributed::ProcessGroup& group,
                          DistributedDataParallelOptions options = {})
      : module_(std::move(module)), core_(module_, group, options) {}
  DistributedDataParallel(const torch::nn::ModuleHolder<M>& holder,
                          const distributed::ProcessGroup& group,
                          DistributedDataParallelOptions options = {})
      : DistributedDataParallel(holder.ptr(), group, options) {}

  /// Calls the module's forward and, with grad mode on, prepares the backward that follows. With
  /// find_unused_parameters or static_graph the output's tensors are those that NestedTensors
  /// finds, and those that require grad are copies.
  /// @throw c10::Error if a peer fails or is late, or the backward before left gradients unsent.
  template <class... Args>
  auto forward(Args&&... args) {
    return call([&](M& module) { return module.forward(std::forward<Args>(args)...); });
  }

  /// The same for another method than forward: returns `step(module)`, whose tensors are those that
  /// backward begins with. So a step that computes its own loss is averaged like any other.
  /// @throw c10::Error as forward.
  template <class Step>
  auto call(const Step& step) {
    core_.before_forward();
    auto output = step(*module_);
    std::vector<torch::Tensor*> tensors;
    for_each_tensor(output, [&](torch::Tensor& tensor) { tensors.push_back(&tensor); });
    core_.after_forward(tensors);
    return output;
  }

  /// The same as forward.
  template <class... Args>
  auto operator()(Args&&... args) {
    return forward(std::forward<Args>(args)...);
  }

  /// The module itself. Python: `module`.
  const std::shared_ptr<M>& module() const { return module_; }

  /// Steps under the guard add up gradients on each rank; the first forward and backward after it
  /// averages the sums. Python: `no_sync()`.
  [[nodiscard]] NoSyncGuard no_sync() { return NoSyncGuard(*this); }

  /// Bytes of each bucket, in the order of sending: as made, and from the second forward on as made
  /// again in the order in which gradients came. Empty in a group of one. Python: bucket_sizes and
  /// rebuilt_bucket_sizes of `_get_ddp_logging_data()`.
  std::vector<int64_t> bucket_sizes() const { return core_.bucket_sizes(); }

 private:
  friend class NoSyncGuard;

  std::shared_ptr<M> module_;
  detail::DistributedCore core_;
};

}  // namespace sconce::nn
