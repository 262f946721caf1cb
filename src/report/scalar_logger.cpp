#include "sconce/report/scalar_logger.hpp"

#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <c10/util/Exception.h>
#include <torch/optim/optimizer.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "check_path.hpp"
#include "report/best_effort.hpp"
#include "sconce/optim/optimizer.hpp"
#include "sconce/report/scalar_writer.hpp"

namespace sconce {

namespace {

// Returns the number of finished steps. The last step in an epoch may contain fewer batches.
int64_t scalar_step(const Fit& fit) {
  return std::ssize(fit.epochs) * fit.steps_in(fit.num_training_batches) + fit.steps_in(fit.batch);
}

bool is_logged(int64_t step, const ScalarLogOptions& options) {
  return options.every_n_steps > 0 && step % options.every_n_steps == 0;
}

}  // namespace

class ScalarLogger::Writing {
 public:
  Writing(const std::filesystem::path& folder, std::optional<int64_t> resume_step)
      : files_(folder, {.resume_step = resume_step}) {}

  // Reads the learning rates before the step, because a scheduler changes them after the step.
  void note_lrs(torch::optim::Optimizer& optimizer) {
    lrs_.clear();
    if (auto* ours = dynamic_cast<optim::Optimizer*>(&optimizer)) ours->read_lr();
    for (const auto& group : optimizer.param_groups()) lrs_.push_back(group.options().get_lr());
  }

  void add_step(const Fit& fit) {
    begin(scalar_step(fit), std::ssize(fit.epochs) + 1);
    add("loss_step", fit.loss);
    add_lrs("_step");
  }

  void add_epoch(Fit& fit) {
    const EpochMetrics& epoch = fit.epochs.back();
    begin(scalar_step(fit), epoch.epoch);
    add("loss", epoch.loss);
    for (const auto& [name, value] : epoch.metrics) add(name, value);
    add_lrs("");
    if (fit.scaler.is_enabled()) {  // get_scale() would wait for the device
      add("scale", fit.scaler.scale(at::ones({}, at::TensorOptions().device(fit.device))));
    }
    add("examples_per_second", static_cast<double>(epoch.examples) / epoch.seconds);
    add("seconds", epoch.seconds);
  }

  void flush() {
    read_device();
    for (const auto& scalar : std::exchange(scalars_, {})) {
      attempt([&] { files_.add(scalar); });
    }
    files_.flush();
  }

  void attempt(const std::function<void()>& write) { effort_.run(write); }

 private:
  using seconds = std::chrono::duration<double>;
  static constexpr size_t gathered = 1024;  // number of values that are merged into one tensor

  void begin(int64_t step, int64_t epoch) {
    step_ = step;
    epoch_ = epoch;
    wall_time_ = seconds(std::chrono::system_clock::now().time_since_epoch()).count();
  }

  void add(std::string tag, double value) {
    scalars_.push_back({std::move(tag), value, step_, epoch_, wall_time_});
  }

  // Copies the value, because a loop may write the next loss to the same tensor. Reshapes the
  // value, because a loss may have shape (1).
  void add(std::string tag, const torch::Tensor& value) {
    on_device_.push_back(
        value.detach().reshape({}).to(at::kDouble, /*non_blocking=*/false, /*copy=*/true));
    from_device_.push_back(scalars_.size());
    add(std::move(tag), 0.);
    if (on_device_.size() == gathered) gather();
  }

  void add_lrs(const std::string& suffix) {
    for (size_t i = 0; i < lrs_.size(); ++i) {
      add((i == 0 ? "lr" : "lr-" + std::to_string(i)) + suffix, lrs_[i]);
    }
  }

  // Each tensor takes up at least 512 bytes on the device, so many values are merged into one
  // tensor. The merge does not wait for the device.
  void gather() {
    blocks_.push_back(at::stack(on_device_));
    on_device_.clear();
  }

  // If this throws, the next call reads the same values again.
  void read_device() {
    if (from_device_.empty()) return;
    if (!on_device_.empty()) gather();
    const torch::Tensor values = at::cat(blocks_).cpu();
    for (size_t i = 0; i < from_device_.size(); ++i) {
      scalars_[from_device_[i]].value = values.const_data_ptr<double>()[i];
    }
    blocks_.clear();
    from_device_.clear();
  }

  ScalarWriter files_;
  BestEffort effort_{"sconce::ScalarLogger"};
  std::vector<double> lrs_ = {};
  int64_t step_ = 0;
  int64_t epoch_ = 0;
  double wall_time_ = 0;
  std::vector<ScalarEvent> scalars_ = {};
  std::vector<size_t> from_device_ = {};       // indices in `scalars_` that have not been read
  std::vector<torch::Tensor> on_device_ = {};  // values that are not in `blocks_` yet
  std::vector<torch::Tensor> blocks_ = {};
};

ScalarLogger::ScalarLogger(std::filesystem::path folder, ScalarLogOptions options)
    : folder_(std::move(folder)), options_(options) {
  check_path(folder_, "sconce::ScalarLogger");
  TORCH_CHECK(options_.every_n_steps >= 0,
              "sconce::ScalarLogger: expected every_n_steps to be at least 0, got ",
              options_.every_n_steps);
}

ScalarLogger::~ScalarLogger() = default;

void ScalarLogger::on_fit_start(Fit& fit) {
  if (fit.process_group.rank() > 0) return;
  TORCH_CHECK(!writing_,
              "sconce::ScalarLogger: expected one fit at a time, got a nested fit: use a separate "
              "ScalarLogger and folder for each fit");
  std::optional<int64_t> resume_step;
  if (options_.resume) resume_step = scalar_step(fit);
  writing_ = std::make_unique<Writing>(folder_, resume_step);
  write();
}

void ScalarLogger::on_fit_end(Fit&) {
  write();
  writing_.reset();
}

void ScalarLogger::on_before_optimizer_step(Fit& fit) {
  const bool ends_epoch = fit.batch + fit.accumulate_grad_batches >= fit.num_training_batches;
  if (!writing_ || !(ends_epoch || is_logged(scalar_step(fit) + 1, options_))) return;
  writing_->attempt([&] { writing_->note_lrs(fit.optimizer); });
}

void ScalarLogger::on_after_optimizer_step(Fit& fit) {
  if (!writing_ || !is_logged(scalar_step(fit), options_)) return;
  writing_->attempt([&] { writing_->add_step(fit); });
}

void ScalarLogger::on_epoch_end(Fit& fit) {
  if (!writing_) return;
  writing_->attempt([&] { writing_->add_epoch(fit); });
  write();
}

void ScalarLogger::on_before_save(Fit&) {
  write();
}

void ScalarLogger::write() {
  if (writing_) writing_->attempt([&] { writing_->flush(); });
}

}  // namespace sconce
