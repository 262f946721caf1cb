#include "training/fit_checks.hpp"

#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include <exception>
#include <utility>
#include <vector>

namespace sconce {

namespace {

void check_model(const TrainerOptions& options, const detail::ModelSteps& model, const char* who) {
  const auto& group = options.process_group;
  TORCH_CHECK(group.world_size() == 1 || model.group, who, ": expected, in a process group of ",
              "several, a sconce::nn::DistributedDataParallel, got another model");
  if (!model.group) return;
  const bool are_alone = group.world_size() == 1 && model.group->world_size() == 1;
  TORCH_CHECK(are_alone || *model.group == group, who, ": expected the process group of the ",
              "DistributedDataParallel, of ", model.group->world_size(),
              " ranks, as TrainerOptions::process_group, got another, of ", group.world_size());
  const auto device = model.module.parameters().front().device();
  TORCH_CHECK(device == *options.device, who,
              ": expected the module of the DistributedDataParallel on ", *options.device,
              " from its construction on, got it on ", device);
}

// What each rank of a fit must have alike, by name. A rank with more batches than another would
// wait forever.
std::vector<std::pair<const char*, int64_t>> alike(const TrainerOptions& options,
                                                   const FitData& data) {
  return {{"training batches", data.train.size()},
          {"epochs", options.max_epochs},
          {"batches a step", options.accumulate_grad_batches},
          {"sets of test data", data.test ? 1 : 0}};
}

// Throws on all ranks if one has failed, or if they differ.
void check_ranks(const TrainerOptions& options, const FitData& data,
                 const std::exception_ptr& failure, const char* who) {
  const auto& group = options.process_group;
  const auto names = alike(options, data);
  std::vector<int64_t> own = {failure ? 1 : 0, data.test ? data.test->size() : 0};
  for (const auto& [name, value] : names) own.push_back(value);
  at::Tensor of_ranks;  // (ranks, values)
  try {
    const auto tensor = at::tensor(at::IntArrayRef(own)).to(*options.device);
    of_ranks = at::stack(group.all_gather(tensor)).cpu();
  } catch (...) {
    if (!failure) throw;
  }
  if (failure) std::rethrow_exception(failure);
  const auto at = [&](int64_t rank, int64_t i) { return of_ranks[rank][i].item<int64_t>(); };
  for (int64_t rank = 0; rank < group.world_size(); ++rank) {
    TORCH_CHECK(at(rank, 0) == 0, who, ": expected arguments that every rank accepts, but rank ",
                rank, " refuses its own");
  }
  for (size_t i = 0; i < names.size(); ++i) {
    const auto column = static_cast<int64_t>(i) + 2;
    for (int64_t rank = 1; rank < group.world_size(); ++rank) {
      TORCH_CHECK(at(rank, column) == at(0, column), who, ": expected as many ", names[i].first,
                  " on every rank, got ", at(0, column), " on rank 0 and ", at(rank, column),
                  " on rank ", rank);
    }
  }
  if (data.test) check_batches(of_ranks.select(1, 1).sum().item<int64_t>(), who, "test data");
}

}  // namespace

void check_batches(int64_t batches, const char* who, const char* expected) {
  TORCH_CHECK(batches > 0, who, ": expected ", expected, ", got no batch");
}

void check_callbacks(const Callbacks& callbacks, const char* who) {
  for (size_t i = 0; i < callbacks.size(); ++i) {
    TORCH_CHECK(callbacks[i] != nullptr, who, ": expected callbacks, got null as number ", i + 1,
                " of ", callbacks.size());
  }
}

void check_output(const TrainerOptions& options, const char* without_output, const char* who) {
  const bool has_metrics = options.metrics && !options.metrics->empty();
  TORCH_CHECK(!has_metrics || without_output == nullptr, who, ": expected ", without_output,
              " to return a StepOutput with what the metrics are to get, or no metrics");
}

void check_fit(const TrainerOptions& options, const detail::ModelSteps& model, const FitData& data,
               const char* who) {
  const auto& group = options.process_group;
  const bool is_alone = group.world_size() == 1;
  const auto check_own = [&] {
    check_callbacks(data.callbacks, who);
    check_model(options, model, who);
    check_output(options, model.train_without_output, who);
    if (data.test) check_output(options, model.test_without_output, who);
    data.train.check_world_size(group.world_size());
    if (data.test) data.test->check_world_size(group.world_size());
    check_batches(data.train.size(), who, "training data");
    if (data.test && is_alone) check_batches(data.test->size(), who, "test data");
  };
  if (is_alone) return check_own();
  std::exception_ptr failure;
  try {
    check_own();
  } catch (...) {
    failure = std::current_exception();
  }
  check_ranks(options, data, failure, who);
}

}  // namespace sconce
