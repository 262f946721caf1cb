#include "training/epoch_sums.hpp"

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <vector>

namespace sconce {

EpochSums::EpochSums(torch::Device device, const Metrics& metrics)
    : loss_(at::zeros({1}, at::TensorOptions(at::kDouble).device(device))),
      metrics_(metrics),
      stopwatch_(device) {}

void EpochSums::begin(int64_t batch) {
  stopwatch_.restart();
  if (batch > 0) return;
  loss_.zero_();
  examples_ = 0;
  seconds_before_ = 0;
  for (const auto& [name, metric] : metrics_) metric->reset();
}

void EpochSums::add(const StepOutput& step, int64_t examples) {
  loss_.add_(step.loss, /*alpha=*/examples);
  examples_ += examples;
  if (metrics_.empty()) return;
  TORCH_CHECK(step.output.defined(), "sconce::Trainer: expected a step that returns a ",
              "StepOutput with what the metrics are to get, or no metrics");
  const auto output = step.output.detach();
  for (const auto& [name, metric] : metrics_) metric->update(output, step.target);
}

EpochSums::Values EpochSums::values(const distributed::ProcessGroup& group,
                                    const std::string& prefix) {
  torch::Tensor all = sums();
  group.all_reduce(all);
  all = all.cpu();
  set_examples_and_metrics(all);
  const double loss = all.const_data_ptr<double>()[0] / static_cast<double>(examples_);
  // A nan may have a sign, which would be printed.
  Values values = {std::isnan(loss) ? std::abs(loss) : loss, {}};
  for (const auto& [name, metric] : metrics_) {
    const auto value = metric->compute().to(at::kCPU, at::kDouble);
    if (value.numel() == 1) values.metrics.insert(prefix + name, *value.const_data_ptr<double>());
  }
  return values;
}

at::Tensor EpochSums::all_sums(const distributed::ProcessGroup& group, bool has_begun) const {
  return at::stack(group.all_gather(has_begun ? sums() : loss_.new_empty({0})));
}

void EpochSums::load(const at::Tensor& all_sums, int rank, double seconds) {
  const int64_t size = sums().numel();
  TORCH_CHECK(
      all_sums.dim() == 2 && all_sums.size(0) > rank && all_sums.size(1) == size,
      "sconce::Trainer::fit: expected the metrics that the checkpoint was saved with within an ",
      "epoch, with 'sums' of the sizes ", all_sums.sizes(), ", got others, of ", size,
      " sums; one that an earlier sconce saved within an epoch cannot be resumed");
  const auto own = all_sums[rank].to(at::kCPU, at::kDouble).contiguous();
  loss_.copy_(own.narrow(0, 0, 1));
  set_examples_and_metrics(own);
  seconds_before_ = seconds;
}

torch::Tensor EpochSums::sums() const {
  std::vector<torch::Tensor> all = {loss_, at::full({1}, examples_, loss_.options())};
  for (const auto& [name, metric] : metrics_) all.push_back(metric->sums().to(loss_.device()));
  return at::cat(all);
}

void EpochSums::set_examples_and_metrics(const torch::Tensor& sums) {
  examples_ = static_cast<int64_t>(sums.const_data_ptr<double>()[1]);
  int64_t next = 2;
  for (const auto& [name, metric] : metrics_) {
    const int64_t size = metric->sums().numel();
    metric->set_sums(sums.narrow(0, next, size));
    next += size;
  }
}

}  // namespace sconce
