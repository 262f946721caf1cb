#include "training/test_model.hpp"

#include <ATen/record_function.h>

#include <algorithm>

#include "training/epoch_sums.hpp"
#include "training/fit_checks.hpp"

namespace sconce {

AnyBatch next_batch(const AnyBatches::Next& next, torch::Device device, int64_t index) {
  RECORD_USER_SCOPE("data");
  AnyBatch batch = next();
  batch.to(device);
  batch.set_index(index);
  return batch;
}

EvaluationScope::EvaluationScope(const TrainerOptions& options,
                                 const amp::MixedPrecision& precision,
                                 const detail::ModelSteps& model, const AnyBatches& batches,
                                 const char* caller)
    : options_(options),
      batches_(batches),
      restore_(model.module),
      settings_(precision.flags()),
      autocast_(precision.autocast()) {
  const auto& group = options.process_group;
  if (group.world_size() == 1) check_batches(batches.size(), caller, "data");
  model.module.eval();
  if (model.broadcast_buffers) {
    for (const auto& buffer : model.module.buffers()) group.broadcast(buffer, 0);
  }
}

void EvaluationScope::for_each_batch(std::optional<int64_t> epoch,
                                     const std::function<void(const AnyBatch&)>& step) const {
  const int64_t size = batches_.size();
  const int64_t count = options_.fast_dev_run ? std::min<int64_t>(size, 1) : size;
  const auto next = epoch ? batches_.begin(0, *epoch) : batches_.begin();
  for (int64_t i = 0; i < count; ++i) step(next_batch(next, *options_.device, i));
}

MetricValues test_model(const TrainerOptions& options, const amp::MixedPrecision& precision,
                        const Metrics& metrics, const detail::ModelSteps& model,
                        const AnyBatches& batches, std::optional<int64_t> epoch) {
  RECORD_USER_SCOPE("test");
  constexpr auto caller = "sconce::Trainer::evaluate";
  const EvaluationScope scope(options, precision, model, batches, caller);
  EpochSums sums(*options.device, metrics, model.may_have_values);
  sums.begin();
  scope.for_each_batch(epoch,
                       [&](const AnyBatch& batch) { sums.add(model.test(batch), batch.size()); });
  const auto [loss, metric_values] = sums.values(options.process_group, "");
  check_batches(sums.examples(), caller, "data");
  MetricValues values = {{"loss", loss}};
  for (const auto& [name, value] : metric_values) values.insert(name, value);
  return values;
}

}  // namespace sconce
