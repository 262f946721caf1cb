#include "sconce/trainer.hpp"

#include <ATen/Context.h>
#include <torch/nn/functional/loss.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ostream>
#include <string>

#include "resolve_device.hpp"
#include "sconce/amp/autocast.hpp"
#include "sconce/distributed/process_group.hpp"
#include "sconce/nn/clip_grad.hpp"
#include "sconce/optim/ema.hpp"
#include "sconce/optim/lr_scheduler_base.hpp"
#include "sconce/stopwatch.hpp"

namespace sconce {

namespace {

torch::Device choose_device(const TrainerOptions& options) {
  TORCH_CHECK(options.num_gpus == 0 || options.num_gpus == 1,
              "sconce::Trainer: expected num_gpus 0 or 1 (it trains on one device), got ",
              options.num_gpus);
  if (options.device) {
    TORCH_CHECK(options.num_gpus == 0,
                "sconce::Trainer: expected num_gpus or device, got num_gpus ", options.num_gpus,
                " and device ", *options.device);
    return resolve_device(*options.device, "sconce::Trainer");
  }
  if (options.num_gpus > num_gpus()) {
    TORCH_WARN("sconce::Trainer: 1 GPU wanted, none found: using the CPU");
  }
  return options.num_gpus > 0 ? try_gpu() : cpu();
}

// LibTorch's precision of float32, which is one for the process, put back at the end of the scope.
class Tf32Guard {
 public:
  explicit Tf32Guard(Precision precision) {
    if (precision != Precision::tf32) return;
    auto& context = at::globalContext();
    before_ = {name_of(context.float32MatmulPrecision()), context.allowTF32CuDNN()};
    context.setFloat32MatmulPrecision("high");
    context.setAllowTF32CuDNN(true);
  }
  ~Tf32Guard() {
    if (!before_) return;
    at::globalContext().setFloat32MatmulPrecision(before_->first);
    at::globalContext().setAllowTF32CuDNN(before_->second);
  }
  Tf32Guard(const Tf32Guard&) = delete;
  Tf32Guard& operator=(const Tf32Guard&) = delete;

 private:
  static const char* name_of(at::Float32MatmulPrecision precision) {
    if (precision == at::Float32MatmulPrecision::HIGHEST) return "highest";
    return precision == at::Float32MatmulPrecision::HIGH ? "high" : "medium";
  }

  std::optional<std::pair<const char*, bool>> before_ = {};
};

amp::AutocastOptions autocast_options(Precision precision) {
  const bool enabled = precision == Precision::bf16 || precision == Precision::fp16;
  return {.dtype = precision == Precision::fp16 ? torch::kHalf : torch::kBFloat16,
          .enabled = enabled};
}

// The modes of a module and of all in it, put back at the end of the scope.
class ModeGuard {
 public:
  explicit ModeGuard(torch::nn::Module& module) : module_(module), training_(module.is_training()) {
    // Without itself: a model on the stack has no shared pointer.
    for (const auto& part : module.modules(/*include_self=*/false)) {
      parts_.emplace_back(part, part->is_training());
    }
  }
  ~ModeGuard() {
    module_.train(training_);
    // A module comes before its parts, so theirs are the last word.
    for (const auto& [part, training] : parts_) part->train(training);
  }
  ModeGuard(const ModeGuard&) = delete;
  ModeGuard& operator=(const ModeGuard&) = delete;

 private:
  torch::nn::Module& module_;
  bool training_;
  std::vector<std::pair<std::shared_ptr<torch::nn::Module>, bool>> parts_;
};

// Sums over the batches of an epoch, kept on the device until the epoch's end.
class Sums {
 public:
  explicit Sums(torch::Device device)
      : sums_(torch::zeros({2}, torch::TensorOptions(torch::kDouble).device(device))) {}

  void add(const torch::Tensor& loss, const torch::Tensor& output, const torch::Tensor& target) {
    sums_[0] += loss.detach() * target.size(0);
    add(output, target);
  }
  void add(const torch::Tensor& output, const torch::Tensor& target) {
    sums_[1] += output.detach().argmax(1).eq(target).sum();
    examples_ += target.size(0);
  }

  struct Means {
    double loss;
    double accuracy;
    int64_t examples;
  };

  // Of this process, or of all in the group: the one read from the device.
  Means means(const distributed::ProcessGroup* group) const {
    torch::Tensor sums = torch::cat({sums_, sums_.new_full({1}, examples_)});  // (3,)
    if (group != nullptr) group->all_reduce(sums);
    sums = sums.cpu();
    const double* of_all = sums.const_data_ptr<double>();
    return {of_all[0] / of_all[2], of_all[1] / of_all[2], static_cast<int64_t>(of_all[2])};
  }

 private:
  torch::Tensor sums_;  // (2,): loss times examples, right answers
  int64_t examples_ = 0;
};

void check_batches(int64_t batches, const char* who, const char* expected) {
  TORCH_CHECK(batches > 0, who, ": expected ", expected, ", got no batch");
}

// A rank with more batches than another would wait for it in vain.
void check_ranks(const distributed::ProcessGroup& group, int64_t batches, torch::Device device,
                 const char* who) {
  const auto own = torch::full({1}, batches, torch::TensorOptions(torch::kLong).device(device));
  const auto of_ranks = torch::cat(group.all_gather(own)).cpu();
  const auto* each = of_ranks.const_data_ptr<int64_t>();
  for (int rank = 0; rank < group.world_size(); ++rank) {
    TORCH_CHECK(each[rank] == each[0], who,
                ": expected as many training batches on every rank, got ", each[0],
                " on rank 0 and ", each[rank], " on rank ", rank);
  }
}

// std::format is missing from some of the supported compilers.
template <class... A>
std::string format(const char* pattern, A... values) {
  std::string text(static_cast<size_t>(std::snprintf(nullptr, 0, pattern, values...)), '\0');
  std::snprintf(text.data(), text.size() + 1, pattern, values...);
  return text;
}

// "loss 0.123, train acc 0.987, test acc 0.965", as the book prints it.
std::string describe(const EpochMetrics& epoch) {
  std::string text = format("loss %.3f, train acc %.3f", epoch.loss, epoch.train_acc);
  if (epoch.test_acc) text += format(", test acc %.3f", *epoch.test_acc);
  return text;
}

}  // namespace

double FitResult::examples_per_second() const {
  double examples = 0;
  double seconds = 0;
  for (const auto& epoch : epochs) {
    examples += static_cast<double>(epoch.examples);
    seconds += epoch.seconds;
  }
  return examples / seconds;
}

Trainer::Trainer(TrainerOptions options)
    : options_(options),
      device_(choose_device(options)),
      scaler_({.device = device_.type(), .enabled = options.precision == Precision::fp16}) {
  TORCH_CHECK(options.max_epochs >= 1, "sconce::Trainer: expected max_epochs of at least 1, got ",
              options.max_epochs);
  TORCH_CHECK(std::isfinite(options.gradient_clip_val) && options.gradient_clip_val >= 0,
              "sconce::Trainer: expected a gradient_clip_val of at least 0, got ",
              options.gradient_clip_val);
  TORCH_CHECK(options.accumulate_grad_batches >= 1,
              "sconce::Trainer: expected accumulate_grad_batches of at least 1, got ",
              options.accumulate_grad_batches);
  TORCH_CHECK(options.precision != Precision::tf32 || device_.is_cuda(),
              "sconce::Trainer: expected a GPU for Precision::tf32, got ", device_);
}

data::Dataset Trainer::prepare_batch(const data::Dataset& batch) const {
  // Only towards a GPU: a copy to the CPU that nobody waits for is read before it is there.
  const bool non_blocking = device_.is_cuda();
  return {batch.data.to(device_, non_blocking), batch.target.to(device_, non_blocking)};
}

void Trainer::check_fit(const Model& model, const FitData& data, const char* who) const {
  const auto* group = options_.process_group;
  TORCH_CHECK(group == nullptr || model.no_sync, who, ": expected, beside a process group, a ",
              "sconce::nn::DistributedDataParallel, got another model");
  if (model.no_sync) {
    const auto device = model.module.parameters().front().device();
    TORCH_CHECK(device == device_, who, ": expected the module of the DistributedDataParallel on ",
                device_, " from its construction on, got it on ", device);
  }
  if (group != nullptr) check_ranks(*group, data.train.size(), device_, who);
  check_batches(data.train.size(), who, "training data");
  if (data.test && group == nullptr) check_batches(data.test->size(), who, "test data");
}

FitResult Trainer::fit_model(const Model& model, torch::optim::Optimizer& optimizer,
                             const FitData& data) {
  check_fit(model, data, "sconce::Trainer::fit");
  prepare_model(model.module);
  std::ostream* log =
      options_.process_group && options_.process_group->rank() > 0 ? nullptr : options_.log;
  const int max_epochs = options_.fast_dev_run ? 1 : options_.max_epochs;
  FitData of_epoch = data;
  FitResult result;
  for (int epoch = 0; epoch < max_epochs; ++epoch) {
    of_epoch.train.set_epoch(epoch);
    EpochMetrics metrics = train_model(model, optimizer, of_epoch);
    metrics.epoch = epoch + 1;
    if (data.test) {
      std::optional<optim::ExponentialMovingAverage::SwapGuard> averages;
      if (data.ema != nullptr) averages.emplace(*data.ema);
      metrics.test_acc = test_model(model, *data.test);
    }
    if (log != nullptr) {
      *log << "epoch " << metrics.epoch << '/' << max_epochs << ": " << describe(metrics)
           << std::endl;
    }
    result.epochs.push_back(metrics);
  }
  if (log != nullptr) {
    *log << describe(result.epochs.back()) << '\n'
         << format("%.1f", result.examples_per_second()) << " examples/sec on " << device_
         << std::endl;
  }
  return result;
}

std::pair<torch::Tensor, torch::Tensor> Trainer::output_and_loss(const Model& model,
                                                                 const torch::Tensor& x,
                                                                 const torch::Tensor& y) const {
  const amp::AutocastGuard autocast(device_.type(), autocast_options(options_.precision));
  torch::Tensor output = model.train(x);  // (N, classes)
  torch::Tensor loss = torch::nn::functional::cross_entropy(output, y);
  return {std::move(output), std::move(loss)};
}

EpochMetrics Trainer::train_model(const Model& model, torch::optim::Optimizer& optimizer,
                                  const FitData& data) {
  model.module.train();
  const Tf32Guard tf32(options_.precision);
  const int64_t batches = options_.fast_dev_run ? 1 : data.train.size();
  Sums sums(device_);
  const Stopwatch stopwatch(device_);
  auto batch = data.train.begin();
  for (int64_t done = 0; done < batches;) {
    const int64_t of_step = std::min<int64_t>(options_.accumulate_grad_batches, batches - done);
    optimizer.zero_grad();
    for (int64_t i = 0; i < of_step; ++i, ++batch) {
      const bool sync = i + 1 == of_step || !model.no_sync;
      const std::shared_ptr<void> no_sync = sync ? nullptr : model.no_sync();
      const auto [x, y] = prepare_batch(*batch);
      const auto [output, loss] = output_and_loss(model, x, y);
      scaler_.scale(of_step == 1 ? loss : loss / of_step).backward();
      sums.add(loss, output, y);
    }
    step(model, optimizer, data);
    done += of_step;
  }
  if (data.scheduler != nullptr && data.interval == SchedulerInterval::epoch) {
    data.scheduler->step();
  }
  const double seconds = stopwatch.seconds();
  const auto [loss, accuracy, examples] = sums.means(options_.process_group);
  return {
      .epoch = 1, .loss = loss, .train_acc = accuracy, .examples = examples, .seconds = seconds};
}

void Trainer::step(const Model& model, torch::optim::Optimizer& optimizer, const FitData& data) {
  if (options_.gradient_clip_val > 0) {
    scaler_.unscale_(optimizer);
    nn::clip_grad_norm_(model.module.parameters(), options_.gradient_clip_val);
  }
  scaler_.step(optimizer);
  scaler_.update();
  if (data.ema != nullptr) data.ema->update();
  if (data.scheduler != nullptr && data.interval == SchedulerInterval::step) {
    data.scheduler->step();
  }
}

double Trainer::test_model(const Model& model, const data::Batches& batches) const {
  const auto* group = options_.process_group;
  constexpr auto who = "sconce::Trainer::evaluate";
  if (group == nullptr) check_batches(batches.size(), who, "data");
  const torch::NoGradGuard no_grad;
  const ModeGuard restore(model.module);
  const Tf32Guard tf32(options_.precision);
  const amp::AutocastGuard autocast(device_.type(), autocast_options(options_.precision));
  model.module.eval();
  if (group != nullptr) {
    for (const auto& buffer : model.module.buffers()) group->broadcast(buffer, 0);
  }
  Sums sums(device_);
  for (const auto& batch : batches) {
    const auto [x, y] = prepare_batch(batch);
    sums.add(model.test(x), y);
    if (options_.fast_dev_run) break;
  }
  const auto means = sums.means(group);
  check_batches(means.examples, who, "data");
  return means.accuracy;
}

}  // namespace sconce
