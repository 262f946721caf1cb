#include "training/fit_checks.hpp"

#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <torch/optim/lbfgs.h>

#include <functional>
#include <set>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "distributed/together.hpp"

namespace sconce {

namespace {

void check_optimizer(const torch::optim::Optimizer& optimizer, const char* caller) {
  TORCH_CHECK(
      typeid(optimizer) != typeid(torch::optim::LBFGS), caller,
      ": expected an optimizer whose step requires no closure, such as sconce::optim::AdamW, got "
      "torch::optim::LBFGS, which computes the loss several times per step");
}

void check_gradients_enabled(const torch::nn::Module& model, const char* caller) {
  TORCH_CHECK(!c10::InferenceMode::is_enabled(), caller,
              ": expected gradients to be enabled, got a call in c10::InferenceMode, which "
              "disables gradients");
  TORCH_CHECK(c10::GradMode::is_enabled(), caller,
              ": expected gradients to be enabled, got a call with gradients disabled, for example "
              "by torch::NoGradGuard");
  for (const auto& parameter : model.named_parameters()) {
    TORCH_CHECK(!parameter.value().is_inference(), caller,
                ": expected parameters that can have a gradient, got ", parameter.key(),
                ", an inference tensor created in c10::InferenceMode");
  }
}

// Returns the names and values of the settings that must match on all ranks of a fit. A rank with
// more batches than the others would wait forever.
std::vector<std::pair<const char*, int64_t>> rank_invariants(const TrainerOptions& options,
                                                             const FitData& data) {
  return {{"training batches", data.train.size()},
          {"epochs", options.max_epochs},
          {"batches a step", options.accumulate_grad_batches},
          {"compilers", options.compiler ? 1 : 0},
          {"sets of test data", static_cast<int64_t>(data.test.size())}};
}

void check_test_sets(const TestSets& test, int world_size, const char* caller) {
  TORCH_CHECK(test.size() <= 63, caller, ": expected at most 63 test sets, got ", test.size());
  std::set<std::string> names;
  for (const auto& [name, batches] : test) {
    TORCH_CHECK(!name.empty() && name != "train", caller,
                ": expected test sets with names such as 'val', got '", name, "'");
    TORCH_CHECK(names.insert(name).second, caller,
                ": expected test sets with different names, got two called '", name, "'");
    batches.check_world_size(world_size);
  }
}

// Returns one bit for each test set that has batches on this rank.
int64_t sets_with_batches(const TestSets& test) {
  int64_t bits = 0;
  int64_t number = 0;
  for (const auto& set : test) bits |= int64_t{set.batches.size() > 0} << number++;
  return bits;
}

int64_t hash_of_names(const TestSets& test) {
  std::string names;
  for (const auto& set : test) names += set.name + '\0';
  return static_cast<int64_t>(std::hash<std::string>()(names));
}

}  // namespace

void check_wrapper(const TrainerOptions& options, const detail::ModelSteps& model,
                   const char* caller) {
  if (!model.group) return;
  const auto& group = options.process_group;
  const bool are_alone = group.world_size() == 1 && model.group->world_size() == 1;
  TORCH_CHECK(
      are_alone || *model.group == group, caller,
      ": expected TrainerOptions::process_group to be the DistributedDataParallel process group (",
      model.group->world_size(), " ranks), got a different process group of size ",
      group.world_size());
  const auto device = model.module.parameters().front().device();
  TORCH_CHECK(device == *options.device, caller,
              ": expected a DistributedDataParallel whose module was already on ", *options.device,
              " at construction, got a module on ", device);
}

void check_batches(int64_t batches, const char* caller, const char* expected) {
  TORCH_CHECK(batches > 0, caller, ": expected ", expected, ", got no batch");
}

void check_callbacks(const Callbacks& callbacks, const char* caller) {
  for (size_t i = 0; i < callbacks.size(); ++i) {
    TORCH_CHECK(callbacks[i] != nullptr, caller, ": expected callbacks, got null at position ",
                i + 1, " of ", callbacks.size());
  }
}

void check_output(const TrainerOptions& options, const char* without_output, const char* caller) {
  const bool has_metrics = options.metrics && !options.metrics->empty();
  TORCH_CHECK(!has_metrics || without_output == nullptr, caller, ": expected ", without_output,
              " to return a StepOutput with the metric inputs, or a fit without metrics");
}

void check_fit(const TrainerOptions& options, const detail::ModelSteps& model,
               const torch::optim::Optimizer& optimizer, const FitData& data, const char* caller) {
  const auto& group = options.process_group;
  const bool is_alone = group.world_size() == 1;
  const auto names = rank_invariants(options, data);
  const auto rank_values = distributed::together(group, caller, [&] {
    check_callbacks(data.callbacks, caller);
    TORCH_CHECK(is_alone || model.group, caller,
                ": expected a sconce::nn::DistributedDataParallel in a process group of several "
                "ranks, got another model");
    check_wrapper(options, model, caller);
    check_optimizer(optimizer, caller);
    check_gradients_enabled(model.module, caller);
    check_output(options, model.train_without_output, caller);
    if (data.test) check_output(options, model.test_without_output, caller);
    data.train.check_world_size(group.world_size());
    check_test_sets(data.test, group.world_size(), caller);
    check_batches(data.train.size(), caller, "training data");
    distributed::RankValues values = {sets_with_batches(data.test), hash_of_names(data.test)};
    for (const auto& [name, value] : names) values.push_back(value);
    return values;
  });
  int64_t tested = 0;
  for (size_t rank = 0; rank < rank_values.size(); ++rank) {
    tested |= rank_values[rank][0];
    for (size_t i = 0; i < names.size(); ++i) {
      TORCH_CHECK(rank_values[rank][i + 2] == rank_values[0][i + 2], caller, ": expected as many ",
                  names[i].first, " on every rank, got ", rank_values[0][i + 2], " on rank 0 and ",
                  rank_values[rank][i + 2], " on rank ", rank);
    }
    TORCH_CHECK(
        rank_values[rank][1] == rank_values[0][1], caller,
        ": expected test sets with the same names on every rank, got different names on rank ",
        rank, " than on rank 0");
  }
  for (const auto& set : data.test) {
    check_batches(tested % 2, caller, (set.name + " data").c_str());
    tested /= 2;
  }
}

void check_evaluation(const TrainerOptions& options, const detail::ModelSteps& model,
                      const AnyBatches& batches, const char* without_output, const char* caller) {
  const auto& group = options.process_group;
  const auto rank_values = distributed::together(group, caller, [&] {
    batches.check_world_size(group.world_size());
    check_wrapper(options, model, caller);
    check_output(options, without_output, caller);
    return distributed::RankValues{model.broadcast_buffers ? 1 : 0};
  });
  for (size_t rank = 1; rank < rank_values.size(); ++rank) {
    TORCH_CHECK(rank_values[rank][0] == rank_values[0][0], caller,
                ": expected the same broadcast_buffers on every rank (true for a model without "
                "DistributedDataParallel), got ",
                rank_values[0][0] != 0, " on rank 0 and ", rank_values[rank][0] != 0, " on rank ",
                rank);
  }
}

}  // namespace sconce
