#include "training/fit_checks.hpp"

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>

namespace sconce {

namespace {

// A rank with more batches than another would wait forever.
void check_ranks(const distributed::ProcessGroup& group, int64_t batches, torch::Device device,
                 const char* who) {
  const auto own = at::full({1}, batches, at::TensorOptions(at::kLong).device(device));
  const auto of_ranks = at::cat(group.all_gather(own)).cpu();
  const auto* each = of_ranks.const_data_ptr<int64_t>();
  for (int rank = 0; rank < group.world_size(); ++rank) {
    TORCH_CHECK(each[rank] == each[0], who,
                ": expected as many training batches on every rank, got ", each[0],
                " on rank 0 and ", each[rank], " on rank ", rank);
  }
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

void check_model_and_batches(const TrainerOptions& options, const detail::ModelSteps& model,
                             const AnyBatches& train, const char* who) {
  const auto& group = options.process_group;
  const bool is_alone = group.world_size() == 1;
  TORCH_CHECK(is_alone || model.no_sync, who, ": expected, in a process group of several, a ",
              "sconce::nn::DistributedDataParallel, got another model");
  if (model.no_sync) {
    const auto device = model.module.parameters().front().device();
    TORCH_CHECK(device == *options.device, who,
                ": expected the module of the DistributedDataParallel on ", *options.device,
                " from its construction on, got it on ", device);
  }
  train.check_world_size(group.world_size());
  if (!is_alone) check_ranks(group, train.size(), *options.device, who);
  check_batches(train.size(), who, "training data");
}

}  // namespace sconce
