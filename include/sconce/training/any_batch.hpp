#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>
#include <c10/util/Type.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <tuple>
#include <typeinfo>
#include <utility>
#include <vector>

#include "sconce/data/dataset.hpp"
#include "sconce/fwd.hpp"
#include "sconce/nn/tensor_tree.hpp"

namespace sconce {

/// Stores a batch as the model's inputs and the target. `inputs` is empty if the batch type does
/// not distinguish inputs from the target.
struct InputsAndTarget {
  std::vector<torch::Tensor> inputs = {};  ///< arguments of the model's forward
  torch::Tensor target = {};               ///< target of the loss
};

/// Splits a batch into inputs and target, as in d2l: the last element is the target, and the
/// preceding elements are the inputs. A single tensor serves as both input and target, which is
/// useful for autoencoders. Supported types are a single tensor, a pair, tuple, or vector of
/// tensors, and any type with tensor members `data` and `target`, such as `data::Dataset` and
/// `torch::data::Example`. For any other type, `inputs` is empty.
inline InputsAndTarget inputs_and_target(const torch::Tensor& batch) {
  return {{batch}, batch};
}
/// Returns `data` as the input and `target` as the target.
template <class T>
  requires requires(const T& batch) {
    { batch.data } -> std::same_as<const torch::Tensor&>;
    { batch.target } -> std::same_as<const torch::Tensor&>;
  }
InputsAndTarget inputs_and_target(const T& batch) {
  return {{batch.data}, batch.target};
}
/// Returns the last tensor as the target and the other tensors as the inputs. A single tensor
/// serves as both input and target.
InputsAndTarget inputs_and_target(const std::vector<torch::Tensor>& batch);
/// Returns the last tensor as the target and the other tensors as the inputs. A single tensor
/// serves as both input and target.
template <std::same_as<torch::Tensor>... Ts>
InputsAndTarget inputs_and_target(const std::tuple<Ts...>& batch) {
  return std::apply(
      [](const auto&... parts) { return inputs_and_target(std::vector<torch::Tensor>{parts...}); },
      batch);
}
/// Returns the first tensor as the input and the second tensor as the target.
inline InputsAndTarget inputs_and_target(const std::pair<torch::Tensor, torch::Tensor>& batch) {
  return {{batch.first}, batch.second};
}
/// Returns no inputs, because the type does not distinguish inputs from the target.
template <class T>
InputsAndTarget inputs_and_target(const T&) {
  return {};
}

/// Wraps a batch of any type in which `nn::TensorTree` finds tensors, so that the Trainer does not
/// depend on the batch type. Row i of each tensor belongs to example i.
class AnyBatch {
 public:
  /// Wraps the batch. The tensors are not copied.
  template <class T>
    requires(!std::same_as<std::remove_cvref_t<T>, AnyBatch>)
  AnyBatch(T&& batch)
      : holder_(std::make_unique<Holder<std::remove_cvref_t<T>>>(std::forward<T>(batch))) {
    static_assert(
        nn::TensorTree<std::remove_cvref_t<T>>::any,
        "sconce::AnyBatch: expected a type in which sconce::nn::TensorTree finds tensors");
  }

  /// Returns the batch in its original type. A `torch::data::Example<>` is returned as a
  /// `data::Dataset`.
  /// @throw c10::Error if the batch has a different type. The message contains both types.
  template <class T>
  const T& as() const {
    if constexpr (std::same_as<T, data::Dataset>) {
      if (const auto* dataset = holder_->as_dataset()) return *dataset;
    }
    const auto* holder = dynamic_cast<const Holder<T>*>(holder_.get());
    TORCH_CHECK(holder != nullptr, "sconce::AnyBatch: expected batches of type ",
                c10::demangle(typeid(T).name()), ", got ", c10::demangle(holder_->type().name()));
    return holder->value;
  }

  /// Moves the tensors to the device, asynchronously if the device is a GPU.
  void to(torch::Device device);

  /// Returns the tensors in the order in which `nn::TensorTree` visits them.
  std::vector<torch::Tensor> tensors() const;

  /// Replaces the tensors with an equal number of new tensors, in the order of `tensors()`.
  void set_tensors(const std::vector<torch::Tensor>& tensors);

  /// Splits the batch with the `inputs_and_target` free function.
  InputsAndTarget inputs_and_target() const { return holder_->inputs_and_target(); }

  /// Returns the number of examples, which is the number of rows in the first tensor.
  /// @throw c10::Error if the batch contains no tensors, or if its first tensor is 0-dim.
  int64_t size() const;

  /// Returns the batch's type.
  const std::type_info& type() const { return holder_->type(); }

  /// Returns the batch's index within its epoch, starting at 0, as set by the Trainer.
  /// Python: Lightning's `batch_idx`.
  int64_t index() const { return index_; }
  /// Sets the batch's index within its epoch.
  void set_index(int64_t index) { index_ = index; }

 private:
  struct HolderBase {
    virtual ~HolderBase() = default;
    virtual const std::type_info& type() const = 0;
    virtual InputsAndTarget inputs_and_target() const = 0;
    virtual void for_each(const std::function<void(torch::Tensor&)>& f) = 0;
    virtual const data::Dataset* as_dataset() const = 0;  // null unless the batch is an Example
    virtual void update_dataset() = 0;                    // called after the tensors change
    data::Dataset dataset = {};
  };

  template <class T>
  struct Holder final : HolderBase {
    explicit Holder(T given) : value(std::move(given)) { update_dataset(); }
    const std::type_info& type() const override { return typeid(T); }
    InputsAndTarget inputs_and_target() const override { return sconce::inputs_and_target(value); }
    void for_each(const std::function<void(torch::Tensor&)>& f) override {
      nn::for_each_tensor(value, f);
    }
    const data::Dataset* as_dataset() const override {
      return data::detail::TorchExample<T> ? &dataset : nullptr;
    }
    void update_dataset() override {
      if constexpr (data::detail::TorchExample<T>) dataset = {value.data, value.target};
    }
    T value;
  };

  std::unique_ptr<HolderBase> holder_;
  int64_t index_ = 0;
};

}  // namespace sconce
