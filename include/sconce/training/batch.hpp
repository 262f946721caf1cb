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
#include "sconce/data/detail/begin_at.hpp"
#include "sconce/fwd.hpp"
#include "sconce/nn/nested_tensors.hpp"

namespace sconce {

/// A batch divided into the inputs of a model and the target. `inputs` is empty if the type of the
/// batch does not tell which is which.
struct InputsAndTarget {
  std::vector<torch::Tensor> inputs = {};  ///< arguments of the model's forward
  torch::Tensor target = {};               ///< target of the loss
};

/// Divides a batch as d2l does: the last part is the target, and the parts before it are the
/// inputs. A single tensor is both, as an autoencoder needs it. The types that can be divided are a
/// tensor, a pair, tuple or vector of tensors, and types with the tensors `data` and `target`, such
/// as `data::Dataset` and `torch::data::Example`. Any other type gives no inputs.
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
/// Returns the last tensor as the target and the others as the inputs. A single tensor is both.
InputsAndTarget inputs_and_target(const std::vector<torch::Tensor>& batch);
/// Returns the last tensor as the target and the others as the inputs. A single tensor is both.
template <std::same_as<torch::Tensor>... Ts>
InputsAndTarget inputs_and_target(const std::tuple<Ts...>& batch) {
  return std::apply(
      [](const auto&... parts) { return inputs_and_target(std::vector<torch::Tensor>{parts...}); },
      batch);
}
/// Returns the first tensor as the input and the second as the target.
inline InputsAndTarget inputs_and_target(const std::pair<torch::Tensor, torch::Tensor>& batch) {
  return {{batch.first}, batch.second};
}
/// Returns no inputs, because the type does not tell which tensors they are.
template <class T>
InputsAndTarget inputs_and_target(const T&) {
  return {};
}

/// Holds a batch of any type in which `nn::NestedTensors` finds tensors, so that the Trainer need
/// not know that type. Row i of every tensor belongs to example i.
class Batch {
 public:
  /// Takes the batch. The tensors are not copied.
  template <class T>
    requires(!std::same_as<std::remove_cvref_t<T>, Batch>)
  Batch(T&& batch)
      : held_(std::make_unique<Holder<std::remove_cvref_t<T>>>(std::forward<T>(batch))) {
    static_assert(
        nn::NestedTensors<std::remove_cvref_t<T>>::any,
        "sconce::Batch: expected a type in which sconce::nn::NestedTensors finds tensors");
  }

  /// Returns the batch with its own type, or a `torch::data::Example<>` as a `data::Dataset`.
  /// @throw c10::Error naming both types if the batch has another type.
  template <class T>
  const T& as() const {
    if constexpr (std::same_as<T, data::Dataset>) {
      if (const auto* dataset = held_->as_dataset()) return *dataset;
    }
    const auto* held = dynamic_cast<const Holder<T>*>(held_.get());
    TORCH_CHECK(held != nullptr, "sconce::Batch: expected batches of type ",
                c10::demangle(typeid(T).name()), ", got ", c10::demangle(held_->type().name()));
    return held->value;
  }

  /// Moves the tensors to the device, without waiting if it is a GPU.
  void to(torch::Device device);

  /// Returns the tensors in the order of `nn::NestedTensors`.
  std::vector<torch::Tensor> tensors() const;

  /// Replaces the tensors by the same number of others, in the order of `tensors()`.
  void set_tensors(const std::vector<torch::Tensor>& tensors);

  /// Divides the batch, as the function of the same name.
  InputsAndTarget inputs_and_target() const { return held_->inputs_and_target(); }

  /// Returns the number of examples, which are the rows of the first tensor.
  /// @throw c10::Error if the batch has no tensor, or its first tensor has no dimension.
  int64_t size() const;

  /// Returns the type of the batch.
  const std::type_info& type() const { return held_->type(); }

 private:
  struct HolderBase {
    virtual ~HolderBase() = default;
    virtual const std::type_info& type() const = 0;
    virtual InputsAndTarget inputs_and_target() const = 0;
    virtual void for_each(const std::function<void(torch::Tensor&)>& f) = 0;
    virtual const data::Dataset* as_dataset() = 0;  // null unless it holds an Example
    data::Dataset dataset = {};
  };

  template <class T>
  struct Holder final : HolderBase {
    explicit Holder(T given) : value(std::move(given)) {}
    const std::type_info& type() const override { return typeid(T); }
    InputsAndTarget inputs_and_target() const override { return sconce::inputs_and_target(value); }
    void for_each(const std::function<void(torch::Tensor&)>& f) override {
      nn::for_each_tensor(value, f);
    }
    const data::Dataset* as_dataset() override {
      if constexpr (data::detail::TorchExample<T>) {
        dataset = {value.data, value.target};
        return &dataset;
      } else {
        return nullptr;
      }
    }
    T value;
  };

  std::unique_ptr<HolderBase> held_;
};

/// A type with a number of batches, `size()`, and a loop over them, such as `data::Batches`. If it
/// has epochs, it also has `begin(batch, epoch)`, which starts at a batch of an epoch, or
/// `set_epoch(epoch)`. It may have `check_world_size(world_size)`, which throws if it cannot be
/// used in a process group of this size.
template <class T>
concept BatchSource = requires(const T& source) {
  { source.size() } -> std::convertible_to<int64_t>;
  { *source.begin() };
  ++(*std::declval<decltype(source.begin())*>());
};

/// Holds a copy of any `BatchSource`, so that the Trainer need not know its type. Copies share it.
class BatchLoader {
 public:
  /// Returns the next batch of an epoch.
  using Next = std::function<Batch()>;

  /// Copies the source.
  template <BatchSource Source>
    requires(!std::same_as<Source, BatchLoader>)
  BatchLoader(Source source) : BatchLoader(std::make_shared<Source>(std::move(source))) {}

  /// Does not compile: a loader of `torch::data` is given by `data::from_torch`.
  template <class TorchLoader>
  BatchLoader(const std::unique_ptr<TorchLoader>&) {
    static_assert(
        sizeof(TorchLoader*) == 0,
        "sconce::BatchLoader: expected a source of batches, got a std::unique_ptr; give a "
        "loader of torch::data::make_data_loader by "
        "sconce::data::from_torch(std::move(loader), number_of_batches)");
  }

  /// Returns the number of batches.
  int64_t size() const { return size_(); }

  /// Calls `check_world_size` of the source, if it has one.
  /// @throw c10::Error if the source cannot be used in a process group of this size.
  void check_world_size(int world_size) const { check_world_size_(world_size); }

  /// Calls `set_epoch` of the source, if it has one.
  void set_epoch(int64_t epoch) { set_epoch_(epoch); }

  /// Begins an epoch by `begin()` of the source: with `data::Batches` and `data::Loader` the next
  /// one. The function that it returns must be called once for each batch.
  Next begin() const { return begin_(); }

  /// Begins this epoch at the batch with this index, and leaves the epoch of the next `begin()`
  /// alone. A source that has `set_epoch` and no `begin(batch, epoch)` is copied for it.
  Next begin(int64_t batch, int64_t epoch) const { return begin_at_(batch, epoch); }

 private:
  template <class Source>
  explicit BatchLoader(const std::shared_ptr<Source>& source)
      : size_([source] { return static_cast<int64_t>(source->size()); }),
        check_world_size_([source](int size) {
          if constexpr (requires { source->check_world_size(size); }) {
            source->check_world_size(size);
          }
        }),
        set_epoch_([source](int64_t epoch) {
          if constexpr (requires { source->set_epoch(epoch); }) source->set_epoch(epoch);
        }),
        begin_([source] {
          const Source& read = *source;
          return next_of<Source>(source, {nullptr, read.begin()});
        }),
        begin_at_([source](int64_t batch, int64_t epoch) {
          return next_of<Source>(source, data::detail::begin_at<Source>(*source, batch, epoch));
        }) {}

  template <class Source>
  static Next next_of(const std::shared_ptr<Source>& source,
                      data::detail::SourcePlace<Source> place) {
    return [source, place = std::move(place), is_first = true]() mutable -> Batch {
      if (!std::exchange(is_first, false)) ++place.iterator;
      return *place.iterator;
    };
  }

  std::function<int64_t()> size_;
  std::function<void(int)> check_world_size_;
  std::function<void(int64_t)> set_epoch_;
  std::function<Next()> begin_;
  std::function<Next(int64_t, int64_t)> begin_at_;
};

}  // namespace sconce
