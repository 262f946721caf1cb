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

#include "sconce/data/begin_at.hpp"
#include "sconce/data/dataset.hpp"
#include "sconce/fwd.hpp"
#include "sconce/nn/nested_tensors.hpp"

namespace sconce {

/// A batch cut into what the model takes and what it should answer. `inputs` is empty where the
/// batch's type does not tell them apart.
struct InputsAndTarget {
  std::vector<torch::Tensor> inputs = {};
  torch::Tensor target = {};
};

/// Cuts a batch as the book does: the last part is the target, those before it are the inputs. A
/// single tensor is both, as an autoencoder wants it. A type that is neither a tensor, nor has the
/// tensors `data` and `target`, as `data::Dataset` and `torch::data::Example`, nor is a pair, tuple
/// or vector of tensors has no inputs.
inline InputsAndTarget inputs_and_target(const torch::Tensor& batch) {
  return {{batch}, batch};
}
template <class T>
requires requires(const T& batch) {
  { batch.data } -> std::same_as<const torch::Tensor&>;
  { batch.target } -> std::same_as<const torch::Tensor&>;
}
InputsAndTarget inputs_and_target(const T& batch) {
  return {{batch.data}, batch.target};
}
InputsAndTarget inputs_and_target(const std::vector<torch::Tensor>& batch);
template <std::same_as<torch::Tensor>... Ts>
InputsAndTarget inputs_and_target(const std::tuple<Ts...>& batch) {
  return std::apply(
      [](const auto&... parts) { return inputs_and_target(std::vector<torch::Tensor>{parts...}); },
      batch);
}
inline InputsAndTarget inputs_and_target(const std::pair<torch::Tensor, torch::Tensor>& batch) {
  return {{batch.first}, batch.second};
}
template <class T>
InputsAndTarget inputs_and_target(const T&) {
  return {};
}

/// A batch of any type in which `nn::NestedTensors` finds tensors, as the Trainer passes it on
/// without knowing that type. Row i of every tensor is of one example.
class Batch {
 public:
  /// Takes the batch; its tensors are shared.
  template <class T>
  requires(!std::same_as<std::remove_cvref_t<T>, Batch>) Batch(T&& batch)
      : held_(std::make_unique<Holder<std::remove_cvref_t<T>>>(std::forward<T>(batch))) {
    static_assert(
        nn::NestedTensors<std::remove_cvref_t<T>>::any,
        "sconce::Batch: expected a type in which sconce::nn::NestedTensors finds tensors");
  }

  /// The batch as it was given.
  /// @throw c10::Error naming both types if it is of another.
  template <class T>
  const T& as() const {
    const auto* held = dynamic_cast<const Holder<T>*>(held_.get());
    TORCH_CHECK(held != nullptr, "sconce::Batch: expected batches of type ",
                c10::demangle(typeid(T).name()), ", got ", c10::demangle(held_->type().name()));
    return held->value;
  }

  /// Moves its tensors to the device, those that are elsewhere: to a GPU without waiting.
  void to(torch::Device device);

  /// Its tensors, in the order of `nn::NestedTensors`.
  std::vector<torch::Tensor> tensors() const;

  /// Replaces its tensors by the same number of others, in the order of `tensors()`.
  void set_tensors(const std::vector<torch::Tensor>& tensors);

  /// See above.
  InputsAndTarget inputs_and_target() const { return held_->inputs_and_target(); }

  /// Number of examples: rows of its first tensor.
  /// @throw c10::Error if it holds no tensor, or its first has no dimension.
  int64_t size() const;

  /// The type that was given.
  const std::type_info& type() const { return held_->type(); }

 private:
  struct HolderBase {
    virtual ~HolderBase() = default;
    virtual const std::type_info& type() const = 0;
    virtual InputsAndTarget inputs_and_target() const = 0;
    virtual void for_each(const std::function<void(torch::Tensor&)>& f) = 0;
  };

  template <class T>
  struct Holder final : HolderBase {
    explicit Holder(T given) : value(std::move(given)) {}
    const std::type_info& type() const override { return typeid(T); }
    InputsAndTarget inputs_and_target() const override { return sconce::inputs_and_target(value); }
    void for_each(const std::function<void(torch::Tensor&)>& f) override {
      nn::for_each_tensor(value, f);
    }
    T value;
  };

  std::unique_ptr<HolderBase> held_;
};

/// What has a number of batches and gives them in a loop, as `data::Batches` does.
template <class T>
concept BatchSource = requires(const T& source) {
  { source.size() } -> std::convertible_to<int64_t>;
  {*source.begin()};
  ++(*std::declval<decltype(source.begin())*>());
};

/// The batches to train or test on, from a copy of any `BatchSource`; `set_epoch`, where it has
/// one, chooses its order.
class BatchLoader {
 public:
  /// Gives the batches of one epoch, one after the other.
  using Next = std::function<Batch()>;

  template <BatchSource Source>
  requires(!std::same_as<Source, BatchLoader>) BatchLoader(Source source)
      : BatchLoader(std::make_shared<Source>(std::move(source))) {}

  /// Number of batches.
  int64_t size() const { return size_(); }

  /// Chooses the order of the next `begin`.
  void set_epoch(int64_t epoch) { set_epoch_(epoch); }

  /// Begins an epoch at that batch; to be called as often as there are batches from there on.
  Next begin(int64_t batch = 0) const { return begin_(batch); }

 private:
  template <class Source>
  explicit BatchLoader(const std::shared_ptr<Source>& source)
      : size_([source] { return static_cast<int64_t>(source->size()); }),
        set_epoch_([source](int64_t epoch) {
          if constexpr (requires { source->set_epoch(epoch); }) source->set_epoch(epoch);
        }),
        begin_([source](int64_t batch) -> Next {
          auto place = data::begin_at(*source, batch);
          return [source, place, is_first = true]() mutable -> Batch {
            if (!std::exchange(is_first, false)) ++place;
            return *place;
          };
        }) {}

  std::function<int64_t()> size_;
  std::function<void(int64_t)> set_epoch_;
  std::function<Next(int64_t)> begin_;
};

}  // namespace sconce
