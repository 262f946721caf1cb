#pragma once

#include <concepts>
#include <initializer_list>
#include <optional>

#include "sconce/amp/mixed_precision.hpp"
#include "sconce/training/any_batches.hpp"
#include "sconce/training/metrics.hpp"
#include "sconce/training/trainer_callback.hpp"

// Detects mistakes in the initializers of a FitData or TrainerOptions. A list of designated
// initializers that matches neither struct matches one of the structs here, which have additional
// members, so that the compiler explains the mistake instead of reporting "no matching function".
// The members are in the positions where users are likely to write them. Each new member of FitData
// or TrainerOptions must also be added here.
namespace sconce::detail {

enum class Mistake {
  none,
  epochs,
  train_loader,
  train_in_braces,
  val,
  callback,
  callbacks_without_braces,
  metrics_of_fit,
  gpus,
  clip,
  precision,
  accumulate,
  device,
  loss,
  metrics,
  callbacks_of_trainer,
  max_epochs_of_fit
};

// Stops compilation with a message that explains how to fix the mistake. This is the type of a
// default argument, because compilers need that type immediately, whereas they compile function
// bodies later and in different orders.
template <Mistake m>
struct Explained {
  static_assert(m != Mistake::epochs,
                "sconce::TrainerOptions: expected the number of epochs as .max_epochs");
  static_assert(m != Mistake::train_loader,
                "sconce::FitData: expected the batches to train on as .train");
  static_assert(m != Mistake::train_in_braces,
                "sconce::FitData: expected a source of batches as .train, such as "
                "sconce::data::Batches({x, y}, {.batch_size = 32}), got braces");
  static_assert(m != Mistake::val, "sconce::FitData: expected the validation data as .test");
  static_assert(m != Mistake::callback, "sconce::FitData: expected .callbacks = {&callback}");
  static_assert(m != Mistake::callbacks_without_braces,
                "sconce::FitData: expected pointers to callbacks in braces: write .callbacks = "
                "{&callback}");
  static_assert(m != Mistake::metrics_of_fit,
                "sconce::FitData: expected the metrics in the options of the trainer: "
                "sconce::Trainer({.metrics = metrics})");
  static_assert(m != Mistake::gpus,
                "sconce::TrainerOptions: expected .num_gpus = 1 for a GPU, .num_gpus = 0 for the "
                "CPU, or .device = sconce::gpu(1)");
  static_assert(
      m != Mistake::clip,
      "sconce::TrainerOptions: expected the maximum norm of the gradients as .gradient_clip_val");
  static_assert(m != Mistake::precision,
                "sconce::TrainerOptions: expected .precision to be a value of "
                "sconce::amp::Precision, such as .precision = sconce::amp::Precision::bf16");
  static_assert(m != Mistake::accumulate,
                "sconce::TrainerOptions: expected the number of batches per step as "
                ".accumulate_grad_batches");
  static_assert(m != Mistake::device,
                "sconce::TrainerOptions: expected .device to be a torch::Device, such as .device = "
                "torch::Device(\"cuda:1\") or sconce::gpu(1)");
  static_assert(m != Mistake::loss, "sconce::TrainerOptions: expected the loss as .loss");
  static_assert(m != Mistake::metrics,
                "sconce::TrainerOptions: expected metrics with names: write .metrics = "
                "sconce::Metrics{{\"acc\", sconce::metrics::accuracy()}}");
  static_assert(m != Mistake::callbacks_of_trainer,
                "sconce::TrainerOptions: expected callbacks in the call to fit: "
                "trainer.fit(model, optimizer, {.train = batches, .callbacks = {&callback}})");
  static_assert(m != Mistake::max_epochs_of_fit,
                "sconce::FitData: expected the number of epochs in the options of the trainer: "
                "sconce::Trainer({.max_epochs = 3})");
};

// Accepts any value, including a list in braces.
struct AnyValue {
  AnyValue() = default;
  template <class T>
  AnyValue(const T&) {}
  AnyValue(std::initializer_list<AnyValue>) {}
};

// A member that does not exist.
template <Mistake m>
struct NoMember {
  NoMember() = default;
  template <class T>
  NoMember(const T&, Explained<m> = {}) {}
  NoMember(std::initializer_list<AnyValue>, Explained<m> = {}) {}
};

// A member that must be a `T`, without braces.
template <class T, Mistake m, Mistake in_braces = m>
struct Expected {
  template <class Given>
  static constexpr Mistake mistake =
      std::convertible_to<const Given&, std::optional<T>> ? Mistake::none : m;

  Expected() = default;
  template <class Given>
  Expected(const Given&, Explained<mistake<Given>> = {}) {}
  Expected(std::initializer_list<AnyValue>, Explained<in_braces> = {}) {}
};

// The callbacks of a fit, which must be in braces.
struct ExpectedCallbacks {
  template <class Given>
  static constexpr Mistake mistake =
      std::convertible_to<const Given&, Callbacks> ? Mistake::none
                                                   : Mistake::callbacks_without_braces;

  ExpectedCallbacks() = default;
  template <class Given>
  ExpectedCallbacks(const Given&, Explained<mistake<Given>> = {}) {}
  ExpectedCallbacks(std::initializer_list<CallbackPointer>) {}
};

struct MistakenFitData {
  NoMember<Mistake::max_epochs_of_fit> epochs = {};
  NoMember<Mistake::max_epochs_of_fit> max_epochs = {};
  Expected<AnyBatches, Mistake::train_loader, Mistake::train_in_braces> train = {};
  NoMember<Mistake::train_loader> train_data = {};
  NoMember<Mistake::train_loader> train_loader = {};
  NoMember<Mistake::train_loader> train_dataloader = {};
  NoMember<Mistake::train_loader> train_dataloaders = {};
  NoMember<Mistake::val> val = {};
  NoMember<Mistake::val> valid = {};
  NoMember<Mistake::val> validation = {};
  NoMember<Mistake::val> val_data = {};
  NoMember<Mistake::val> val_loader = {};
  NoMember<Mistake::val> val_dataloaders = {};
  NoMember<Mistake::val> eval = {};
  AnyValue test = {};
  NoMember<Mistake::metrics_of_fit> metrics = {};
  NoMember<Mistake::callback> callback = {};
  ExpectedCallbacks callbacks = {};
};

struct MistakenTrainerOptions {
  NoMember<Mistake::epochs> epochs = {};
  NoMember<Mistake::epochs> num_epochs = {};
  AnyValue max_epochs = {};
  NoMember<Mistake::gpus> gpus = {};
  NoMember<Mistake::gpus> accelerator = {};
  NoMember<Mistake::gpus> devices = {};
  AnyValue num_gpus = {};
  NoMember<Mistake::clip> clip = {};
  NoMember<Mistake::clip> clip_grad = {};
  NoMember<Mistake::clip> grad_clip = {};
  NoMember<Mistake::clip> max_grad_norm = {};
  AnyValue gradient_clip_val = {};
  Expected<amp::Precision, Mistake::precision> precision = {};
  NoMember<Mistake::accumulate> accumulate = {};
  NoMember<Mistake::accumulate> accumulation_steps = {};
  NoMember<Mistake::accumulate> gradient_accumulation_steps = {};
  AnyValue accumulate_grad_batches = {};
  AnyValue max_time = {};
  Expected<torch::Device, Mistake::device> device = {};
  AnyValue graph = {};
  AnyValue compiler = {};
  AnyValue fast_dev_run = {};
  AnyValue loss = {};
  NoMember<Mistake::loss> loss_fn = {};
  NoMember<Mistake::loss> criterion = {};
  Expected<Metrics, Mistake::metrics> metrics = {};
  NoMember<Mistake::callbacks_of_trainer> callbacks = {};
  AnyValue process_group = {};
};

}  // namespace sconce::detail
