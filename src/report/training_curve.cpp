#include "sconce/report/training_curve.hpp"

#include <torch/optim/optimizer.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "check_path.hpp"
#include "report/best_effort.hpp"
#include "sconce/optim/optimizer.hpp"

namespace sconce {

namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

// Returns a metric's panel and series names, such as "acc" and "val" for "val_acc". Each test set
// has a loss, from which the name of the set is derived.
std::pair<std::string, std::string> place_of(const std::string& name, const MetricValues& metrics) {
  for (size_t i = name.find('_'); i != name.npos; i = name.find('_', i + 1)) {
    const std::string part = name.substr(0, i);
    if (part == "train" || part == "test" || metrics.contains(part + "_loss")) {
      return {name.substr(i + 1), part};
    }
  }
  return {name, name};
}

ChartPanel& panel_of(LineChart& chart, const std::string& label) {
  for (auto& panel : chart.panels) {
    if (panel.y_label == label) return panel;
  }
  return chart.panels.emplace_back(ChartPanel{.y_label = label});
}

ChartSeries& series_of(ChartPanel& panel, const std::string& name) {
  for (auto& series : panel.series) {
    if (series.name == name) return series;
  }
  return panel.series.emplace_back(ChartSeries{.name = name});
}

void add_by_epoch(LineChart& chart, const std::string& label, const TrainingHistory& history,
                  const std::vector<double>& values) {
  const bool is_known =
      std::any_of(values.begin(), values.end(), [](double value) { return !std::isnan(value); });
  if (!is_known) return;
  ChartSeries series{.name = label};
  for (size_t i = 0; i < std::min(history.epochs.size(), values.size()); ++i) {
    series.x.push_back(history.epochs[i].epoch);
    series.y.push_back(values[i]);
  }
  chart.panels.push_back({.y_label = label, .series = {std::move(series)}});
}

}  // namespace

LineChart training_chart(const TrainingHistory& history, std::string title) {
  LineChart chart{.title = std::move(title),
                  .x_label = "epoch",
                  .panels = {{.y_label = "loss", .series = {{.name = "train"}}}}};
  const auto add = [&](const auto& epoch, const std::string& label, const std::string& name,
                       double value) {
    auto& series = series_of(panel_of(chart, label), name);
    series.x.push_back(epoch.epoch);
    series.y.push_back(value);
  };
  for (const auto& epoch : history.epochs) {
    add(epoch, "loss", "train", epoch.loss);
    for (const auto& [metric, value] : epoch.metrics) {
      const auto [label, name] = place_of(metric, epoch.metrics);
      add(epoch, label, name, value);
    }
  }
  add_by_epoch(chart, "learning rate", history, history.learning_rates);
  add_by_epoch(chart, "scale", history, history.scales);
  return chart;
}

TrainingCurve::TrainingCurve(std::filesystem::path file, std::string title)
    : file_(std::move(file)),
      title_(std::move(title)),
      effort_(std::make_shared<BestEffort>("sconce::TrainingCurve")) {
  check_path(file_, "sconce::TrainingCurve");
}

void TrainingCurve::on_fit_start(Fit& fit) {
  TORCH_CHECK(!is_active_,
              "sconce::TrainingCurve: expected one fit at a time, got a nested fit: use a separate "
              "TrainingCurve and file for each fit");
  is_active_ = true;
  const std::vector<double> before(fit.epochs.size(), unknown);
  history_ = {fit.epochs, before, before};
  if (!fit.epochs.empty()) draw(fit);
}

void TrainingCurve::on_fit_end(Fit&) {
  is_active_ = false;
}

// Reads the learning rate here, because a scheduler may change it before `on_epoch_end` is called.
void TrainingCurve::on_before_optimizer_step(Fit& fit) {
  if (auto* ours = dynamic_cast<optim::Optimizer*>(&fit.optimizer)) ours->read_lr();
  learning_rate_ = fit.optimizer.param_groups().front().options().get_lr();
}

void TrainingCurve::on_epoch_end(Fit& fit) {
  history_.epochs.push_back(fit.epochs.back());
  history_.learning_rates.push_back(learning_rate_);
  history_.scales.push_back(fit.scaler.is_enabled() ? fit.scaler.get_scale() : unknown);
  draw(fit);
}

void TrainingCurve::draw(const Fit& fit) {
  if (fit.process_group.rank() > 0) return;
  effort_->run([&] { training_chart(history_, title_).save(file_); });
}

}  // namespace sconce
