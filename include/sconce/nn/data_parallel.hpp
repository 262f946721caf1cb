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

#include "sconce/nn/nested_tensors.hpp"

namespace sconce::nn {

/// The arguments of `torch.nn.DataParallel` besides the module, with Python's names and defaults.
struct DataParallelOptions {
  /// Where the replicas are, the module itself first; a device may be there more than once, and
  /// CPUs and GPUs together. Empty: all GPUs; without a GPU the module runs as it is.
  std::vector<torch::Device> device_ids = {};
  std::optional<torch::Device> output_device = {};  ///< of the joined outputs; empty: the first
  int64_t dim = 0;  ///< along which inputs are cut and outputs joined
};

/// What `DataParallel` does whatever the type of the module; not for use by itself.
class DataParallelBase : public torch::nn::Module {
 public:
  ~DataParallelBase() override;
  DataParallelBase(const DataParallelBase&) = delete;
  DataParallelBase& operator=(const DataParallelBase&) = delete;

  /// The devices of the options, or all GPUs; empty without a GPU.
  const std::vector<torch::Device>& device_ids() const { return device_ids_; }

  /// Where joined outputs are; without a device, the CPU.
  torch::Device output_device() const { return output_device_; }

 protected:
  using Tensors = std::vector<torch::Tensor>;

  DataParallelBase(std::shared_ptr<torch::nn::Module> module, const DataParallelOptions& options);

  const std::shared_ptr<torch::nn::Module>& original() const { return module_; }

  // The inputs of each replica, on its device.
  std::vector<Tensors> scatter(const Tensors& inputs) const;
  // Brings the first `count` replicas up to date with the module, which is replica 0.
  void replicate(size_t count);
  torch::nn::Module& replica(size_t index) const;
  // Calls `forward` with 0 to count - 1, each in a thread with the caller's state.
  void run(size_t count, const std::function<void(size_t)>& forward) const;
  // The replicas' outputs, joined.
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
  Layers layers_;  // those that the replicas copied; empty where they have to be copied again
  std::vector<torch::Tensor*> members_;  // of the layers
  Tensors tensors_;                      // of the layers, and their members' values
  std::vector<Replica> replicas_;        // all but the module itself
};

/// Runs a module on several devices at once: cuts the batch into a chunk a device, runs a replica
/// on each, every one in a thread of its own, and joins the outputs. Gradients of all replicas add
/// up in the module's parameters. A module as any other, with the parameters of its one child
/// "module".
///
/// Tensors in the arguments, also those in vectors, tuples, pairs, maps and optionals, are cut by
/// `torch::chunk` along `dim` and moved; with fewer chunks than devices fewer replicas run. All
/// else, and undefined tensors, goes to every replica as it is. Outputs are tensors, or those
/// holding nothing but tensors, and are joined along `dim` on `output_device`; numbers of
/// dimension 0 make a vector, with a warning. With one device the module is moved there, gets the
/// whole batch there and returns what it returns; with none it runs as it is.
///
/// Replica 0 is the module itself, in the caller's thread, so its buffers (BatchNorm's statistics)
/// change as by the first chunk alone; changes in other replicas are lost. The replicas are made at
/// construction, and again when a layer, a parameter or a buffer was exchanged; each forward copies
/// the parameters, the buffers and the training modes to them, and nothing else: set other members
/// of a module before. Members of LibTorch's usual layers may be set to any tensor, such as another
/// layer's weight, which ties the two; those of other classes have to be as `reset` sets them,
/// which is checked when replicas are made.
/// Replicas run with the caller's grad mode, autocast, number of intra-op threads and current
/// streams. Their backward on GPUs is parallel, that on CPUs is not. One forward at a time.
///
/// Replicas on CPUs share the one CPU generator, as threads in Python do. What a random layer such
/// as Dropout draws is right in each replica, but which replica draws first is chance, so the same
/// seed need not give the same outputs twice. GPUs have a generator each.
/// Python: `torch.nn.DataParallel`.
template <class M>
class DataParallel : public DataParallelBase {
 public:
  /// Clones the module once for each further device; no generator's state changes, of the CPU or of
  /// any GPU. A module that holds an uninitialized lazy layer may be given, but not run before it
  /// is initialized.
  /// @throw c10::Error if the module is null or, with several devices, cannot be cloned: all in it
  /// must derive from `torch::nn::Cloneable`, with members as said above; also if a device is not
  /// there.
  explicit DataParallel(std::shared_ptr<M> module, DataParallelOptions options = {})
      : DataParallelBase(std::move(module), options) {}

  /// The same with the module of a holder, such as `torch::nn::Linear`.
  explicit DataParallel(const torch::nn::ModuleHolder<M>& module, DataParallelOptions options = {})
      : DataParallel(module.ptr(), std::move(options)) {}

  /// Returns the joined outputs of the replicas' forward. What they throw is thrown again after all
  /// have ended, of several errors the one of the first replica: its text names replica and device,
  /// and it holds the original (`std::rethrow_if_nested`). What was a c10::Error is one, all else a
  /// std::runtime_error.
  /// @throw c10::Error if a parameter or buffer is not on the first device, a layer is
  /// uninitialized, the tensors of the arguments give different numbers of chunks, or the outputs
  /// have different lengths or keys.
  template <class... A>
  auto forward(A&&... inputs) {
    const auto forward = [](M& module, auto&&... parts) {
      return module.forward(std::forward<decltype(parts)>(parts)...);
    };
    return call(forward, std::forward<A>(inputs)...);
  }

  /// The same for another method than forward: `step(module, inputs...)` runs in each replica.
  /// @throw c10::Error as forward.
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

  /// The module that was given, which is replica 0.
  std::shared_ptr<M> module() const { return std::static_pointer_cast<M>(original()); }

 private:
  // What a replica gets of an argument: tensors of its own, or the very object that all get.
  template <class A>
  using Part = std::conditional_t<NestedTensors<std::remove_cvref_t<A>>::any,
                                  std::remove_cvref_t<A>, std::remove_reference_t<A>&>;

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
    if constexpr (NestedTensors<std::remove_const_t<P>>::any) for_each_tensor(part, take);
  }

  // Passes temporaries on as such, if they are the replica's own.
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
    using Nested = NestedTensors<Output>;
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
