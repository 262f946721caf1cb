#include "training/test_model.hpp"

#include <ATen/record_function.h>

#include <algorithm>

#include "sconce/nn/mode_guard.hpp"
#include "training/epoch_sums.hpp"
#include "training/fit_checks.hpp"

namespace sconce {

AnyBatch next_batch(const AnyBatches::Next& next, torch::Device device) {
  RECORD_USER_SCOPE("data");
  AnyBatch batch = next();
  batch.to(device);
  return batch;
}

MetricValues test_model(const TrainerOptions& options, const amp::MixedPrecision& precision,
                        const Metrics& metrics, const detail::ModelSteps& model,
                        const AnyBatches& batches, std::optional<int64_t> of_epoch) {
  RECORD_USER_SCOPE("test");
  const auto& group = options.process_group;
  constexpr auto who = "sconce::Trainer::evaluate";
  if (group.world_size() == 1) check_batches(batches.size(), who, "data");
  const at::NoGradGuard no_grad;
  const nn::ModeGuard restore(model.module);
  const auto settings = precision.settings();
  const auto autocast = precision.autocast();
  model.module.eval();
  for (const auto& buffer : model.module.buffers()) group.broadcast(buffer, 0);
  EpochSums sums(*options.device, metrics);
  sums.begin();
  const int64_t size = batches.size();
  const int64_t count = options.fast_dev_run ? std::min<int64_t>(size, 1) : size;
  const auto next = of_epoch ? batches.begin(0, *of_epoch) : batches.begin();
  for (int64_t i = 0; i < count; ++i) {
    const AnyBatch batch = next_batch(next, *options.device);
    sums.add(model.test(batch), batch.size());
  }
  const auto [loss, of_metrics] = sums.values(group, "");
  check_batches(sums.examples(), who, "data");
  MetricValues values = {{"loss", loss}};
  for (const auto& [name, value] : of_metrics) values.insert(name, value);
  return values;
}

}  // namespace sconce
