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

/// The arguments of `torch.nn.DataParallel` besides the module, with Python's names and defaults.
struct DataParallelOptions {
  /// Devices of the replicas; the module itself is on the first. A device may be listed more than
  /// once, and CPUs and GPUs may be mixed. Empty: all GPUs; without a GPU the module runs where it
  /// is.
  std::vector<torch::Device> device_ids = {};
  std::optional<torch::Device> output_device = {};  ///< of the joined outputs; none: the first
  int64_t dim = 0;  ///< dimension along which inputs are split and outputs joined
};

/// The part of `DataParallel` that does not depend on the type of the module. Not for direct use.
class DataParallelBase {
 public:
  DataParallelBase(const DataParallelBase&) = delete;
  DataParallelBase& operator=(const DataParallelBase&) = delete;

  /// Returns the devices of the options or, if there are none, all GPUs. Empty if there is neither.
  const std::vector<torch::Device>& device_ids() const { return device_ids_; }

  /// Returns the device of the joined outputs. It is the CPU if there is no device.
  torch::Device output_device() const { return output_device_; }

 protected:
  using Tensors = std::vector<torch::Tensor>;

  DataParallelBase(std::shared_ptr<torch::nn::Module> module, const DataParallelOptions& options);
  ~DataParallelBase();

  // Returns the module of the constructor.
  const std::shared_ptr<torch::nn::Module>& original() const { return module_; }

  // Returns the inputs of each replica, on its device.
  std::vector<Tensors> scatter(const Tensors& inputs) const;
  // Updates the first `count` replicas from the module, which is replica 0.
  void replicate(size_t count);
  torch::nn::Module& replica(size_t index) const;
  // Calls `forward` with 0 to count - 1, each in its own thread with the state of the caller.
  void run(size_t count, const std::function<void(size_t)>& forward) const;
  // Returns the joined outputs of the replicas.
  Tensors gather(const std::vector<Tensors>& outputs) const;
  [[noreturn]] static void refuse_outputs(size_t index);

 private:
  struct Replica;
  using Layers = std::vector<std::shared_ptr<torch::nn::Module>>;

  void make_replicas();
  Tensors current_tensors() const;
  bool is_changed() const;

  std::shared_ptr<torch::nn::Module> module_;
  std::vector<torch::Device> device_ids_;
  torch::Device output_device_;
  int64_t dim_;
  Layers layers_;                        // the copied layers; empty if they must be copied again
  std::vector<torch::Tensor*> members_;  // of the layers
  Tensors tensors_;                      // tensors of the layers and values of their members
  std::vector<Replica> replicas_;        // without the module itself
};

/// Runs a module on several devices at once. It splits the batch into one chunk per device, runs a
/// replica on each device in its own thread, and joins the outputs. The gradients of all replicas
/// add up in the parameters of the module. It is no module: give `module()` to optimizers,
/// summaries and files, and set modes, types and devices there.
///
/// Tensors in the arguments are split by `torch::chunk` along `dim` and moved to the devices, also
/// those inside vectors, tuples, pairs, maps and optionals. If there are fewer chunks than devices,
/// fewer replicas run. All other values, and undefined tensors, go to every replica unchanged.
/// Outputs must be tensors or such containers of tensors. They are joined along `dim` on
/// `output_device`; 0-dim tensors are joined to a vector, with a warning. With one device the
/// module is moved there, gets the whole batch there, and its outputs are returned unchanged.
/// Without a device it runs where it is.
///
/// Replica 0 is the module itself and runs in the caller's thread. So its buffers, such as the
/// statistics of BatchNorm, change only by the first chunk, and changes in the other replicas are
/// lost. The replicas are made at construction, and again after a layer, a parameter or a buffer
/// was replaced. Each forward copies only parameters, buffers and training modes to them: set any
/// other member of a module before construction. Tensor members of LibTorch's usual layers may be
/// set to any tensor, such as the weight of another layer to tie the two. Members of other classes
/// must be as `reset` sets them; this is checked when replicas are made.
/// Replicas run with the caller's grad mode, autocast state, number of intra-op threads and current
/// streams. Their backward runs in parallel on GPUs but not on CPUs. Run one forward at a time.
///
/// Replicas on CPUs share the one CPU generator, as threads in Python do. Random layers such as
/// Dropout draw correct numbers in each replica, but the order of the replicas is not fixed, so the
/// same seed may give different outputs. Each GPU has its own generator.
/// Python: `torch.nn.DataParallel`.
template <class M>
class DataParallel : public DataParallelBase {
  static_assert(std::is_base_of_v<torch::nn::Module, M>,
                "sconce::nn::DataParallel: expected a std::shared_ptr of a torch::nn::Module, or a "
                "module holder");

 public:
  /// Clones the module once for each further device. The state of all generators, on the CPU and on
  /// GPUs, stays the same. The module may contain uninitialized lazy layers, but must be
  /// initialized before forward.
  /// @throw c10::Error if the module is null, if a device is not available, or if with several
  /// devices the module cannot be cloned: each of its modules must derive from
  /// `torch::nn::Cloneable`, with members as described above.
  explicit DataParallel(std::shared_ptr<M> module, const DataParallelOptions& options = {})
      : DataParallelBase(std::move(module), options) {}

  /// Takes the module of a holder, such as `torch::nn::Linear`.
  explicit DataParallel(const torch::nn::ModuleHolder<M>& module,
                        const DataParallelOptions& options = {})
      : DataParallel(module.ptr(), options) {}

  /// Runs forward in the replicas and returns the joined outputs. An exception of a replica is
  /// thrown again after all replicas have ended; of several, that of the first replica. Its text
  /// names the replica and the device, and it nests the original (`std::rethrow_if_nested`). A
  /// c10::Error stays a c10::Error, everything else becomes a std::runtime_error.
  /// @throw c10::Error if:
  /// - a parameter or buffer is not on the first device, or a layer is uninitialized;
  /// - the tensors in the arguments give different numbers of chunks;
  /// - the outputs of the replicas have different lengths or keys.
  template <class... A>
  auto forward(A&&... inputs) {
    const auto forward = [](M& module, auto&&... parts) {
      return module.forward(std::forward<decltype(parts)>(parts)...);
    };
    return call(forward, std::forward<A>(inputs)...);
  }

  /// Calls forward.
  template <class... A>
  auto operator()(A&&... inputs) {
    return forward(std::forward<A>(inputs)...);
  }

  /// Runs `step(module, inputs...)` in each replica, for methods other than forward.
  /// @throw c10::Error under the same conditions as forward.
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

  /// Returns the module that was given, which is replica 0. Python: `module`.
  std::shared_ptr<M> module() const { return std::static_pointer_cast<M>(original()); }

 private:
  // The type of an argument in a replica: a copy with its own tensors, or a reference to the object
  // that all replicas share.
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

  // Moves an argument that was a temporary, if the replica has its own copy.
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
                  "sconce::nn::DataParallel joins tensors, and vectors, tuples, pairs, maps and "
                  "optionals of them: the module's forward returns something else");
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
