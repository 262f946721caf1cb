#pragma once

#include <ATen/core/ivalue.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "sconce/data/detail/begin_at.hpp"
#include "sconce/training/any_batch.hpp"

namespace sconce {

/// An iterable type whose `size()` returns the number of batches, such as `data::Batches`. If a
/// source's batches depend on the epoch, the source also defines `set_epoch(epoch)` or
/// `begin(batch, epoch)`, which starts at the given batch of the epoch. A source may also define
/// `check_world_size(world_size)`, which throws if the source does not support a process group of
/// that size. A source whose position must be restored when a loop resumes also defines
/// `state_dict()` and `load_state_dict(state)`, like `data::StreamLoader`.
template <class T>
concept BatchSource = requires(const T& source) {
  { source.size() } -> std::convertible_to<int64_t>;
  { *source.begin() };
  ++(*std::declval<decltype(source.begin())*>());
};

/// Wraps a copy of any `BatchSource`, so that the Trainer does not depend on the source type.
/// Copies of this object share the source.
class AnyBatches {
 public:
  /// A function that returns an epoch's next batch.
  using Next = std::function<AnyBatch()>;

  /// Copies the source.
  template <BatchSource Source>
    requires(!std::same_as<Source, AnyBatches>)
  AnyBatches(Source source) : AnyBatches(std::make_shared<Source>(std::move(source))) {}

  /// Fails to compile, because the type is not a `BatchSource`.
  template <class T>
    requires(!BatchSource<T> && !std::same_as<T, AnyBatches>)
  AnyBatches(const T&) {
    static_assert(sizeof(T) == 0,
                  "sconce::AnyBatches: expected a source of batches, which has size() and begin(), "
                  "such as sconce::data::Batches(dataset, {.batch_size = 32}), or "
                  "sconce::data::TensorBatches(x, {.batch_size = 32}) without targets");
  }
  /// Fails to compile. Wrap a `torch::data` loader in `data::from_torch`.
  template <class TorchLoader>
  AnyBatches(const std::unique_ptr<TorchLoader>&) {
    static_assert(sizeof(TorchLoader*) == 0,
                  "sconce::AnyBatches: expected a source of batches, got a std::unique_ptr; pass a "
                  "loader from torch::data::make_data_loader through "
                  "sconce::data::from_torch(std::move(loader), number_of_batches)");
  }

  /// Returns the number of batches.
  int64_t size() const { return size_(); }

  /// Calls the source's `check_world_size` function if the source defines one.
  /// @throw c10::Error if the source cannot be used in a process group of this size.
  void check_world_size(int world_size) const { check_world_size_(world_size); }

  /// Calls the source's `set_epoch` function if the source defines one.
  void set_epoch(int64_t epoch) { set_epoch_(epoch); }

  /// Returns the result of the source's `state_dict`, or `std::nullopt` if the source does not
  /// define one.
  std::optional<c10::IValue> state_dict() const { return state_dict_(); }

  /// Calls the source's `load_state_dict` function if the source defines one.
  /// @throw any exception thrown by the source.
  void load_state_dict(const c10::IValue& state) const { load_state_dict_(state); }

  /// Starts an epoch with the source's `begin()`. For `data::Batches` and `data::DataLoader`,
  /// `begin()` starts the next epoch. Call the returned function once per batch. If the source
  /// defines `end()`, calling the function after the last batch throws an error.
  Next begin() const { return begin_(); }

  /// Starts the given epoch at the given batch index, without changing which epoch the next
  /// `begin()` starts. If the source defines `set_epoch` but not `begin(batch, epoch)`, the epoch
  /// is set on a copy of the source.
  Next begin(int64_t batch, int64_t epoch) const { return begin_at_(batch, epoch); }

 private:
  template <class Source>
  explicit AnyBatches(const std::shared_ptr<Source>& source)
      : size_([source] { return static_cast<int64_t>(source->size()); }),
        check_world_size_([source](int size) {
          if constexpr (requires { source->check_world_size(size); }) {
            source->check_world_size(size);
          }
        }),
        set_epoch_([source](int64_t epoch) {
          if constexpr (requires { source->set_epoch(epoch); }) source->set_epoch(epoch);
        }),
        state_dict_([source]() -> std::optional<c10::IValue> {
          if constexpr (requires { source->state_dict(); }) return source->state_dict();
          return {};
        }),
        load_state_dict_([source](const c10::IValue& state) {
          if constexpr (requires { source->load_state_dict(state); }) {
            source->load_state_dict(state);
          }
        }),
        begin_([source] {
          const Source& read = *source;
          return next_of<Source>(source, {nullptr, read.begin()}, 0);
        }),
        begin_at_([source](int64_t batch, int64_t epoch) {
          return next_of<Source>(source, data::detail::begin_at<Source>(*source, batch, epoch),
                                 batch);
        }) {}

  template <class Source>
  static Next next_of(const std::shared_ptr<Source>& source,
                      data::detail::SourcePlace<Source> place, int64_t first) {
    return [source, place = std::move(place), first, index = first]() mutable -> AnyBatch {
      if (index > first) ++place.iterator;
      place.check(*source, index++);
      return *place.iterator;
    };
  }

  std::function<int64_t()> size_;
  std::function<void(int)> check_world_size_;
  std::function<void(int64_t)> set_epoch_;
  std::function<std::optional<c10::IValue>()> state_dict_;
  std::function<void(const c10::IValue&)> load_state_dict_;
  std::function<Next()> begin_;
  std::function<Next(int64_t, int64_t)> begin_at_;
};

}  // namespace sconce
