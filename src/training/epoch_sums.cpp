#include "training/epoch_sums.hpp"

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/StringUtil.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "distributed/gather_bytes.hpp"

namespace sconce {

namespace {

// The count is stored as the first of the step's values, under the name below, so that the ranks
// agree on it and checkpoints include it.
constexpr auto count_name = "StepOutput::count";

// Clears a NaN's sign bit, because the sign would be printed.
double without_sign_of_nan(double value) {
  return std::isnan(value) ? std::abs(value) : value;
}

// Returns a string that identifies the list of names, or an empty string if there is no list.
std::string text_of(const std::optional<std::vector<std::string>>& names) {
  if (!names) return {};
  std::string text;
  for (const auto& name : *names) text += name + '\0';
  return text + '\0';
}

std::vector<std::string> names_of(const std::string& text) {
  std::vector<std::string> names;
  const char* begin = text.c_str();
  const char* const end = begin + text.size() - 1;
  while (begin != end) begin += names.emplace_back(begin).size() + 1;
  return names;
}

}  // namespace

EpochSums::EpochSums(torch::Device device, const Metrics& metrics, bool may_have_values)
    : loss_(at::zeros({1}, at::TensorOptions(at::kDouble).device(device))),
      metrics_(metrics),
      are_names_agreed_(!may_have_values),
      stopwatch_(device) {}

void EpochSums::begin(int64_t batch) {
  stopwatch_.restart();
  if (batch > 0) return;
  loss_.zero_();
  examples_ = 0;
  seconds_before_ = 0;
  for (const auto& [name, metric] : metrics_) metric->reset();
  for (auto& value : values_) value.zero_();
}

void EpochSums::add(const StepOutput& step, int64_t examples) {
  loss_.add_(step.loss, /*alpha=*/step.count.defined() ? 1 : examples);
  examples_ += examples;
  add_values(step, examples);
  if (metrics_.empty()) return;
  TORCH_CHECK(step.output.defined(),
              "sconce::Trainer: expected a step that returns a StepOutput with the metric inputs, "
              "or a fit without metrics "
              "(TrainerOptions::metrics = sconce::Metrics())");
  const auto output = step.output.detach();
  for (const auto& [name, metric] : metrics_) metric->update(output, step.target);
}

void EpochSums::add_values(const StepOutput& step, int64_t examples) {
  const auto is_named = [](const auto& value, const std::string& name) {
    return value.first == name;
  };
  const std::ptrdiff_t first = step.count.defined() ? 1 : 0;
  const bool are_same = names_ && is_counted() == step.count.defined() &&
                        std::equal(step.values.begin(), step.values.end(), names_->begin() + first,
                                   names_->end(), is_named);
  if (!are_same) {
    std::vector<std::string> names(static_cast<size_t>(first), count_name);
    for (const auto& value : step.values) {
      TORCH_CHECK(value.first != count_name,
                  "sconce::Trainer: expected a value with a unique name, got '", count_name,
                  "', which is reserved for the count");
      names.push_back(value.first);
    }
    TORCH_CHECK(!names_, "sconce::Trainer: expected each step to return the values [",
                c10::Join(", ", *names_), "] (as in the first step), got [", c10::Join(", ", names),
                "]");
    set_names(std::move(names));
  }
  auto sum = values_.begin();
  if (step.count.defined()) (sum++)->add_(step.count);
  for (const auto& [name, value] : step.values) (sum++)->add_(value, /*alpha=*/examples);
}

bool EpochSums::is_counted() const {
  return names_ && !names_->empty() && names_->front() == count_name;
}

void EpochSums::set_names(std::vector<std::string> names) {
  for (size_t i = 0; i < names.size(); ++i) {
    const auto is_same = [&](const auto& metric) { return metric.first == names[i]; };
    const bool is_metric = std::any_of(metrics_.begin(), metrics_.end(), is_same);
    const auto before = names.begin() + static_cast<std::ptrdiff_t>(i);
    TORCH_CHECK(
        !names[i].empty() && names[i].find('\0') == std::string::npos,
        "sconce::Trainer: expected non-empty value names, got an empty name or a name with a null "
        "character");
    TORCH_CHECK(!is_metric && names[i] != "loss",
                "sconce::Trainer: expected a value with a unique name, got '", names[i],
                "', which is reserved for ", is_metric ? "a metric" : "the loss");
    TORCH_CHECK(std::find(names.begin(), before, names[i]) == before,
                "sconce::Trainer: expected values with different names, got two called '", names[i],
                "'");
  }
  values_.clear();
  for (size_t i = 0; i < names.size(); ++i) values_.push_back(at::zeros_like(loss_));
  names_ = std::move(names);
}

void EpochSums::agree_on_names(const distributed::ProcessGroup& group) {
  if (std::exchange(are_names_agreed_, true) || group.world_size() == 1) return;
  std::optional<size_t> first;  // the first rank that has run a step
  const auto all = distributed::gather_texts(group, text_of(names_));
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].empty()) continue;
    if (!first) first = rank;
    TORCH_CHECK(all[rank] == all[*first],
                "sconce::Trainer: expected steps that return the same values on every rank, got [",
                c10::Join(", ", names_of(all[*first])), "] on rank ", *first, " and [",
                c10::Join(", ", names_of(all[rank])), "] on rank ", rank);
  }
  if (first && !names_) set_names(names_of(all[*first]));
}

EpochSums::Values EpochSums::values(const distributed::ProcessGroup& group,
                                    const std::string& prefix) {
  agree_on_names(group);
  torch::Tensor all = sums();
  group.all_reduce(all);
  all = all.cpu();
  set_examples_and_metrics(all);
  const auto* sum = all.const_data_ptr<double>();
  const auto* next_value_sum = sum + all.numel() - std::ssize(values_);
  const auto examples = static_cast<double>(examples_);
  Values values = {without_sign_of_nan(*sum / (is_counted() ? *next_value_sum : examples)), {}};
  for (const auto& [name, metric] : metrics_) {
    const auto value = metric->compute().to(at::kCPU, at::kDouble);
    if (value.numel() == 1) values.metrics.insert(prefix + name, *value.const_data_ptr<double>());
  }
  for (const auto& name : value_names()) {
    const double value_sum = *next_value_sum++;
    if (name == count_name) continue;
    values.metrics.insert(prefix + name, without_sign_of_nan(value_sum / examples));
  }
  return values;
}

at::Tensor EpochSums::all_sums(const distributed::ProcessGroup& group, bool mid_epoch) const {
  return at::stack(group.all_gather(mid_epoch ? sums() : loss_.new_empty({0})));
}

void EpochSums::load(const at::Tensor& all_sums, std::vector<std::string> names, int rank,
                     double seconds) {
  if (!names.empty()) set_names(std::move(names));
  const int64_t size = sums().numel();
  TORCH_CHECK(
      all_sums.dim() == 2 && all_sums.size(0) > rank && all_sums.size(1) == size,
      "sconce::Trainer::fit: expected the same metrics as in the checkpoint (saved mid-epoch with "
      "'sums' of shape ",
      all_sums.sizes(), "), got metrics with ", size,
      " sums; checkpoints saved mid-epoch by an earlier version of sconce cannot be resumed");
  const auto own = all_sums[rank].to(at::kCPU, at::kDouble).contiguous();
  loss_.copy_(own.narrow(0, 0, 1));
  set_examples_and_metrics(own);
  int64_t next = size - std::ssize(values_);
  for (auto& value : values_) value.copy_(own.narrow(0, next++, 1));
  seconds_before_ = seconds;
}

torch::Tensor EpochSums::sums() const {
  std::vector<torch::Tensor> all = {loss_, at::full({1}, examples_, loss_.options())};
  for (const auto& [name, metric] : metrics_) all.push_back(metric->sums().to(loss_.device()));
  all.insert(all.end(), values_.begin(), values_.end());
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
