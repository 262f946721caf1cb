#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "sconce/nn/tensor_tree.hpp"

namespace sconce::nn {

/// Options for `DataParallel`, with the same names and defaults as in Python.
struct DataParallelOptions {
  /// Devices of the replicas. The first device stores the module itself. A device may appear more
  /// than once, and CPUs and GPUs may be mixed. Defaults to all GPUs. If there is no GPU, the
  /// module runs on its current device.
  std::vector<torch::Device> device_ids = {};
  std::optional<torch::Device> output_device = {};  ///< device of the outputs; defaults to the
                                                    ///< first device
  int64_t dim = 0;  ///< dimension along which inputs are split and outputs concatenated
};

/// The part of `DataParallel` that does not depend on the module type. For internal use.
class DataParallelBase {
 public:
  DataParallelBase(const DataParallelBase&) = delete;
  DataParallelBase& operator=(const DataParallelBase&) = delete;

  /// Returns the devices specified in the options, or all GPUs if none were specified. The list is
  /// empty if no devices were specified and no GPUs are available.
  const std::vector<torch::Device>& device_ids() const { return device_ids_; }

  /// Returns the output device, or the CPU if the device list is empty.
  torch::Device output_device() const { return output_device_; }

 protected:
  using Tensors = std::vector<torch::Tensor>;

  DataParallelBase(std::shared_ptr<torch::nn::Module> module, const DataParallelOptions& options);
  ~DataParallelBase();

  // Returns the module passed to the constructor.
  const std::shared_ptr<torch::nn::Module>& original() const { return module_; }

  // Returns the inputs for each replica, on the replica's device.
  std::vector<Tensors> scatter(const Tensors& inputs) const;
  // Updates the first `count` replicas from the module (replica 0), and starts missing threads.
  void replicate(size_t count);
  torch::nn::Module& replica(size_t index) const;
  // Calls `forward` with each index from 0 to count - 1. Each call runs in a separate thread with
  // the caller's thread state.
  void run(size_t count, const std::function<void(size_t)>& forward) const;
  // Returns the concatenated outputs of the replicas.
  Tensors gather(const std::vector<Tensors>& outputs) const;
  [[noreturn]] static void refuse_outputs(size_t index);

 private:
  struct Replica;
  class WorkerThread;
  using Layers = std::vector<std::shared_ptr<torch::nn::Module>>;

  void make_replicas();
  Tensors current_tensors() const;
  bool is_changed() const;

  std::shared_ptr<torch::nn::Module> module_;
  std::vector<torch::Device> device_ids_;
  torch::Device output_device_;
  int64_t dim_;
  Layers layers_;                        // the copied layers; empty if they need to be copied again
  std::vector<torch::Tensor*> members_;  // of the layers
  Tensors tensors_;                      // tensors of the layers, and values of their members
  std::vector<Replica> replicas_;        // does not include the module itself
  std::vector<std::unique_ptr<WorkerThread>> threads_;  // of the replicas
};

/// Runs a module on several devices in parallel. DataParallel splits the batch into one chunk per
/// device, runs a replica on each device in a separate thread, and concatenates the outputs. The
/// gradients of all replicas are summed into the module's parameters. `DataParallel` itself is not
/// a module. Pass `module()` to optimizers, summaries, and functions that save or load files, and
/// use `module()` to change the mode, type, or device.
///
/// Tensors in the arguments, including tensors in vectors, tuples, pairs, maps, and optionals, are
/// split along `dim` with `torch::chunk` and moved to the devices. If there are fewer chunks than
/// devices, only one replica per chunk runs. Undefined tensors and non-tensor values are passed to
/// every replica unchanged. Outputs must be tensors or containers of tensors, as described above.
/// The outputs are concatenated along `dim` on `output_device`. 0-dim tensors are combined into a
/// vector, with a warning. With a single device, the module and the entire batch are moved to the
/// device, and the outputs are returned unchanged. If the device list is empty, the module runs on
/// its current device.
///
/// Replica 0 is the module itself and runs in the caller's thread. The other replicas' threads
/// start at the first forward pass and end with the `DataParallel`. Only the first chunk changes
/// the module's buffers, such as BatchNorm statistics, and its weights, as an Embedding with
/// `max_norm` does. The other replicas' changes are lost. Replicas are created at construction, and
/// again after a layer, parameter, or buffer has been replaced. Each forward pass copies only
/// parameters, buffers, and training modes to the replicas, so set a module's other members before
/// construction. Tensor members of LibTorch's common layers may be set to any tensor, for example
/// to tie the weights of two layers. Tensor members of other classes must have the values set by
/// `reset`. This is checked when replicas are created. Replicas run with the caller's grad mode,
/// autocast state, number of intra-op threads, and current streams. A backward pass through the
/// joined outputs runs in parallel on GPUs but not on CPUs. Run only one forward pass at a time.
///
/// Replicas on CPUs share a single CPU generator, as threads do in Python. Random layers such as
/// Dropout work correctly in each replica. However, replicas draw random numbers in an
/// unpredictable order, so the same seed may produce different outputs. Each GPU has its own
/// generator.
/// Python: `torch.nn.DataParallel`.
template <class M>
class DataParallel : public DataParallelBase {
  static_assert(std::is_base_of_v<torch::nn::Module, M>,
                "sconce::nn::DataParallel: expected a std::shared_ptr to a torch::nn::Module, or a "
                "module holder");

 public:
  /// Clones the module once for each additional device. Cloning does not change the state of any
  /// CPU or GPU generator. The module may contain uninitialized lazy layers, but it must be
  /// initialized before the first forward pass. For a module to be cloned, each of its submodules
  /// must derive from `torch::nn::Cloneable` and satisfy the member conditions described above.
  /// @throw c10::Error if:
  /// - the module is null or a device is not available;
  /// - there are several devices and the module cannot be cloned.
  explicit DataParallel(std::shared_ptr<M> module, const DataParallelOptions& options = {})
      : DataParallelBase(std::move(module), options) {}

  /// Uses the module in a module holder, such as `torch::nn::Linear`.
  explicit DataParallel(const torch::nn::ModuleHolder<M>& module,
                        const DataParallelOptions& options = {})
      : DataParallel(module.ptr(), options) {}

  /// Runs `forward` on the replicas and returns the concatenated outputs. If a replica throws, its
  /// exception is rethrown after all replicas have finished. If several replicas throw, the
  /// exception from the replica with the lowest index is rethrown. The message contains the
  /// replica's index and device, and the original exception is nested (`std::rethrow_if_nested`). A
  /// c10::Error remains a c10::Error, and any other exception becomes a std::runtime_error.
  /// @throw c10::Error if:
  /// - a parameter or buffer is not on the first device, or a layer is uninitialized;
  /// - splitting the tensors in the arguments yields different chunk counts;
  /// - the outputs of the replicas have different lengths or keys.
  template <class... A>
  auto forward(A&&... inputs) {
    const auto forward = [](M& module, auto&&... parts) {
      return module.forward(std::forward<decltype(parts)>(parts)...);
    };
    return call(forward, std::forward<A>(inputs)...);
  }

  /// Calls `forward`.
  template <class... A>
  auto operator()(A&&... inputs) {
    return forward(std::forward<A>(inputs)...);
  }

  /// Runs `step(module, inputs...)` on each replica, to call methods other than `forward` or to run
  /// each replica's backward pass. That pass adds its gradients to the module's parameters.
  /// @throw c10::Error in the same cases as `forward`.
  template <class Step, class... A>
  auto call(const Step& step, A&&... inputs) {
    if (device_ids().empty()) return step(*module(), std::forward<A>(inputs)...);
    auto chunks = scattered<A...>(inputs...);
    if (device_ids().size() == 1) return call_with<A...>(step, *module(), chunks[0]);

    replicate(chunks.size());
    using Output = decltype(call_with<A...>(step, *module(), chunks[0]));
    if constexpr (std::is_void_v<Output>) {
      run(chunks.size(),
          [&](size_t i) { call_with<A...>(step, static_cast<M&>(replica(i)), chunks[i]); });
    } else {
      std::vector<std::optional<Output>> outputs(chunks.size());
      run(chunks.size(), [&](size_t i) {
        outputs[i].emplace(call_with<A...>(step, static_cast<M&>(replica(i)), chunks[i]));
      });
      return gathered(outputs);
    }
  }

  /// Returns the module passed to the constructor (replica 0). Python: `module`.
  std::shared_ptr<M> module() const { return std::static_pointer_cast<M>(original()); }

 private:
  // The type of an argument passed to a replica: either a copy with separate tensors, or a
  // reference to the object shared by all replicas.
  template <class A>
  using Part = std::conditional_t<TensorTree<std::remove_cvref_t<A>>::any, std::remove_cvref_t<A>,
                                  std::remove_reference_t<A>&>;

  template <class... A>
  std::vector<std::tuple<Part<A>...>> scattered(std::remove_reference_t<A>&... inputs) const {
    Tensors whole;
    (for_each_tensor(inputs, [&](const torch::Tensor& tensor) { whole.push_back(tensor); }), ...);
    auto tensors = scatter(whole);
    if (sizeof...(A) == 0) tensors.resize(1);
    std::vector<std::tuple<Part<A>...>> chunks;
    chunks.reserve(tensors.size());
    for (const auto& own : tensors) {
      std::tuple<Part<A>...> chunk(inputs...);
      auto next = own.begin();
      const auto take = [&](torch::Tensor& tensor) { tensor = *next++; };
      std::apply([&](auto&... parts) { (take_all(parts, take), ...); }, chunk);
      chunks.push_back(std::move(chunk));
    }
    return chunks;
  }

  template <class P, class F>
  static void take_all(P& part, const F& take) {
    if constexpr (TensorTree<std::remove_const_t<P>>::any) for_each_tensor(part, take);
  }

  // Moves an argument that was passed as a temporary if the replica has its own copy.
  template <class A, class P>
  static decltype(auto) pass(P& part) {
    if constexpr (std::is_lvalue_reference_v<A> || std::is_lvalue_reference_v<Part<A>>) {
      return (part);
    } else {
      return std::move(part);
    }
  }

  template <class... A, class Step>
  static auto call_with(const Step& step, M& module, std::tuple<Part<A>...>& chunk) {
    return std::apply([&](auto&... parts) { return step(module, pass<A>(parts)...); }, chunk);
  }

  template <class Output>
  Output gathered(std::vector<std::optional<Output>>& outputs) const {
    using Nested = TensorTree<Output>;
    static_assert(Nested::only,
                  "sconce::nn::DataParallel joins tensors, and vectors, tuples, pairs, maps, and "
                  "optionals of tensors, but the module's forward returns another type");
    std::vector<Tensors> tensors(outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!Nested::alike(*outputs[0], *outputs[i])) refuse_outputs(i);
      for_each_tensor(*outputs[i],
                      [&](const torch::Tensor& tensor) { tensors[i].push_back(tensor); });
    }
    const auto joined = gather(tensors);
    auto next = joined.begin();
    for_each_tensor(*outputs[0], [&](torch::Tensor& tensor) { tensor = *next++; });
    return std::move(*outputs[0]);
  }
};

}  // namespace sconce::nn
