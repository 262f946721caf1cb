#include "sconce/trainer.hpp"

#include <ATen/Context.h>
#include <c10/util/accumulate.h>
#include <torch/nn/functional/loss.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <ostream>
#include <string>

#include "fit_progress.hpp"
#include "resolve_device.hpp"
#include "sconce/amp/autocast.hpp"
#include "sconce/distributed/process_group.hpp"
#include "sconce/io/checkpoint.hpp"
#include "sconce/nn/clip_grad.hpp"
#include "sconce/nn/data_parallel.hpp"
#include "sconce/optim/ema.hpp"
#include "sconce/optim/lr_scheduler.hpp"
#include "sconce/optim/optimizer.hpp"
#include "sconce/stopwatch.hpp"
#include "state/state_visitor.hpp"

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

  // This process' sums and examples (3,), on the device, and back.
  torch::Tensor state() const { return torch::cat({sums_, sums_.new_full({1}, examples_)}); }
  void load(const torch::Tensor& state) {
    sums_.copy_(state.narrow(0, 0, 2));
    examples_ = static_cast<int64_t>(state[2].item<double>());
  }

  void add(const torch::Tensor& loss, const torch::Tensor& output, const torch::Tensor& target) {
    sums_[0] += loss.detach() * target.size(0);
    add(output, target);
  }
  void add(const torch::Tensor& output, const torch::Tensor& target) {
    const auto classes = output.detach().argmax(1);
    TORCH_CHECK(classes.sizes() == target.sizes(), "sconce::Trainer: expected a target of sizes ",
                classes.sizes(), ", got ", target.sizes(), ": a class for each of the logits ",
                output.sizes());
    const auto answers = c10::multiply_integers(target.sizes().slice(1));  // of an example
    sums_[1] += classes.eq(target).sum(torch::kDouble) / answers;
    examples_ += target.size(0);
  }

  struct Means {
    double loss;
    double accuracy;
    int64_t examples;
  };

  // Of this process, or of all in the group: the one read from the device.
  Means means(const distributed::ProcessGroup* group) const {
    torch::Tensor sums = state();
    if (group != nullptr) group->all_reduce(sums);
    sums = sums.cpu();
    const double* of_all = sums.const_data_ptr<double>();
    const double loss = of_all[0] / of_all[2];
    // A nan may have a sign, which it would be printed with.
    return {std::isnan(loss) ? std::abs(loss) : loss, of_all[1] / of_all[2],
            static_cast<int64_t>(of_all[2])};
  }

 private:
  torch::Tensor sums_;  // (2,): loss times examples, and shares of right answers, one an example
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

// Those of all groups; `Optimizer::parameters` knows the first only.
std::vector<torch::Tensor> parameters_of(const torch::optim::Optimizer& optimizer) {
  std::vector<torch::Tensor> all;
  for (const auto& group : optimizer.param_groups()) {
    all.insert(all.end(), group.params().begin(), group.params().end());
  }
  return all;
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
  if (epochs.empty()) return std::numeric_limits<double>::quiet_NaN();
  double examples = 0;
  double seconds = 0;
  for (const auto& epoch : epochs) {
    examples += static_cast<double>(epoch.examples);
    seconds += epoch.seconds;
  }
  return examples / seconds;
}

struct Trainer::Epoch {
  explicit Epoch(torch::Device device) : sums(device), stopwatch(device) {}
  double seconds() const { return seconds_before + stopwatch.seconds(); }

  int64_t batch = 0;  // batches done
  Sums sums;
  double seconds_before = 0;  // in earlier processes
  Stopwatch stopwatch;
};

class Trainer::Saver {
 public:
  Saver(Trainer& trainer, const Model& model, torch::optim::Optimizer& optimizer,
        const FitData& data)
      : trainer_(trainer), data_(data), group_(trainer.options_.process_group) {
    auto* our_optimizer = dynamic_cast<optim::Optimizer*>(&optimizer);
    auto* replicas = dynamic_cast<nn::DataParallelBase*>(&model.module);
    auto* module = replicas ? replicas->children().front().get() : &model.module;
    parts_ = {module, our_optimizer, data.scheduler, &trainer.scaler_, data.ema};
    TORCH_CHECK(data.save_every >= 0, who, "expected save_every of at least 0, got ",
                data.save_every);
    if (data.checkpoint == nullptr) {
      TORCH_CHECK(data.save_every == 0 && !data.should_stop, who, "expected a checkpoint beside ",
                  "save_every or should_stop");
      return;
    }
    TORCH_CHECK(our_optimizer != nullptr, who, "expected, beside a checkpoint, one of ",
                "sconce's optimizers, got another");
    TORCH_CHECK(group_ == nullptr || group_ == data.checkpoint->process_group(), who,
                "expected a checkpoint of the trainer's process group, got one of another");
    TORCH_CHECK(!trainer.options_.fast_dev_run, who, "expected no checkpoint beside fast_dev_run");
  }

  // Goes on where the checkpoint was, if there is one.
  void load(FitResult& result, Epoch& epoch) {
    if (data_.checkpoint == nullptr) return;
    data_.checkpoint->lock();
    const Settings given = settings();
    const auto saved = data_.checkpoint->load(parts_);
    if (!saved) return;
    const auto progress =
        from_state<FitProgress>(saved->extra, "sconce::Trainer::fit: a checkpoint's 'extra'");
    TORCH_CHECK(progress.batches == data_.train.size(), who, "expected ", progress.batches,
                " training batches, as the checkpoint was saved with, got ", data_.train.size());
    const int64_t accumulate = trainer_.options_.accumulate_grad_batches;
    TORCH_CHECK(progress.accumulate == accumulate, who, "expected accumulate_grad_batches ",
                progress.accumulate, ", as the checkpoint was saved with, got ", accumulate);
    const std::string changes = describe_changes(given, settings());
    if (!changes.empty() && (group_ == nullptr || group_->rank() == 0)) {
      TORCH_WARN(who, "goes on with what the checkpoint was saved with: ", changes);
    }
    result.epochs = progress.epochs;
    epoch.batch = saved->batch;
    epoch.sums.load(progress.sums[group_ == nullptr ? 0 : group_->rank()]);
    epoch.seconds_before = progress.seconds;
  }

  // After a step within an epoch: saves where it is time to, and says whether to stop.
  bool save_step(const FitResult& result, const Epoch& epoch) {
    if (data_.checkpoint == nullptr) return false;
    const int64_t accumulate = trainer_.options_.accumulate_grad_batches;
    const bool is_time = data_.save_every > 0 && epoch.batch / accumulate % data_.save_every == 0;
    if (group_ != nullptr && !is_time) return false;
    const bool stop = should_stop();
    if (is_time || stop) save(result, epoch, {});
    return stop;
  }

  // After an epoch and its test.
  bool save_epoch(const FitResult& result) {
    if (data_.checkpoint == nullptr) return false;
    const bool stop = should_stop();
    save(result, Epoch(trainer_.device_), result.epochs.back().test_acc);
    return stop;
  }

 private:
  static constexpr auto who = "sconce::Trainer::fit: ";

  Settings settings() const {
    return settings_of(parts_.optimizer->state_dict(),
                       data_.scheduler ? data_.scheduler->state_dict() : c10::IValue());
  }

  // Whether any rank is to stop.
  bool should_stop() const {
    if (!data_.should_stop) return false;
    const bool stop = data_.should_stop();
    if (group_ == nullptr) return stop;
    const auto flag =
        torch::full({1}, stop ? 1 : 0, torch::dtype(torch::kInt).device(trainer_.device_));
    group_->all_reduce(flag, distributed::ReduceOp::max);
    return flag.item<int>() > 0;
  }

  void save(const FitResult& result, const Epoch& epoch, std::optional<double> metric) {
    const auto own = epoch.sums.state();
    const auto sums =
        group_ == nullptr ? own.unsqueeze(0) : torch::stack(group_->all_gather(own));  // (ranks, 3)
    const FitProgress progress = {data_.train.size(), trainer_.options_.accumulate_grad_batches,
                                  result.epochs, sums, epoch.seconds()};
    const auto epochs = static_cast<int64_t>(result.epochs.size());
    data_.checkpoint->save(parts_, {epochs, epoch.batch, as_state(progress)}, metric);
  }

  Trainer& trainer_;
  const FitData& data_;
  const distributed::ProcessGroup* group_;
  io::RunParts parts_ = {};
};

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

// The step after a OneCycleLR's last throws, and would do so late.
void Trainer::check_schedule(const FitData& data, int epochs_done, int64_t batches_done) const {
  const auto* schedule = dynamic_cast<const optim::lr_scheduler::OneCycleLR*>(data.scheduler);
  if (schedule == nullptr) return;
  const auto steps_of = [&](int64_t batches) {
    const int64_t accumulate = options_.accumulate_grad_batches;
    return (batches + accumulate - 1) / accumulate;
  };
  const bool by_steps = data.interval == SchedulerInterval::step;
  const int64_t of_epoch = by_steps ? steps_of(options_.fast_dev_run ? 1 : data.train.size()) : 1;
  const int64_t max_epochs = options_.fast_dev_run ? 1 : options_.max_epochs;
  const int64_t left =
      (max_epochs - epochs_done) * of_epoch - (by_steps ? steps_of(batches_done) : 0);
  const std::string who = "sconce::Trainer::fit";
  StateVisitor state(schedule->state_dict(), who);
  int64_t done = 0, total = 0;
  state("last_epoch", done);
  state("total_steps", total);
  TORCH_CHECK(left <= 0 || done + left <= total, who, ": expected a OneCycleLR of at least ",
              done + left, " steps, for ", max_epochs, " epochs, got one of ", total,
              "; from a checkpoint comes one of as many as it was saved with");
}

FitResult Trainer::fit_model(const Model& model, torch::optim::Optimizer& optimizer,
                             const FitData& data) {
  check_fit(model, data, "sconce::Trainer::fit");
  prepare_model(model.module);
  std::ostream* log =
      options_.process_group && options_.process_group->rank() > 0 ? nullptr : options_.log;
  const int max_epochs = options_.fast_dev_run ? 1 : options_.max_epochs;
  FitData of_epoch = data;
  Saver saver(*this, model, optimizer, data);
  FitResult result;
  Epoch epoch(device_);
  saver.load(result, epoch);
  check_schedule(data, static_cast<int>(result.epochs.size()), epoch.batch);
  for (int i = static_cast<int>(result.epochs.size()); i < max_epochs;
       ++i, epoch = Epoch(device_)) {
    of_epoch.train.set_epoch(i);
    const auto metrics = train_model(model, optimizer, of_epoch, epoch,
                                     [&] { return saver.save_step(result, epoch); });
    result.stopped = !metrics;
    if (result.stopped) return result;
    result.epochs.push_back(*metrics);
    result.epochs.back().epoch = i + 1;
    if (data.test) {
      std::optional<optim::ExponentialMovingAverage::SwapGuard> averages;
      if (data.ema != nullptr) averages.emplace(*data.ema);
      result.epochs.back().test_acc = test_model(model, *data.test);
    }
    if (log != nullptr) {
      *log << "epoch " << i + 1 << '/' << max_epochs << ": " << describe(result.epochs.back())
           << std::endl;
    }
    result.stopped = saver.save_epoch(result) && i + 1 < max_epochs;
    if (result.stopped) return result;
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

EpochMetrics Trainer::train_epoch(const Model& model, torch::optim::Optimizer& optimizer,
                                  const FitData& data) {
  TORCH_CHECK(data.checkpoint == nullptr && data.save_every == 0 && !data.should_stop,
              "sconce::Trainer::fit_epoch: expected no checkpoint, save_every or should_stop, ",
              "which fit takes");
  Epoch epoch(device_);
  return *train_model(model, optimizer, data, epoch, {});
}

std::optional<EpochMetrics> Trainer::train_model(const Model& model,
                                                 torch::optim::Optimizer& optimizer,
                                                 const FitData& data, Epoch& epoch,
                                                 const std::function<bool()>& after_step) {
  model.module.train();
  epoch.stopwatch.restart();
  const Tf32Guard tf32(options_.precision);
  const int64_t batches = options_.fast_dev_run ? 1 : data.train.size();
  auto batch = data.train.begin();
  for (int64_t i = 0; i < epoch.batch; ++i) ++batch;
  while (epoch.batch < batches) {
    const int64_t of_step =
        std::min<int64_t>(options_.accumulate_grad_batches, batches - epoch.batch);
    optimizer.zero_grad();
    for (int64_t i = 0; i < of_step; ++i, ++batch) {
      const bool sync = i + 1 == of_step || !model.no_sync;
      const std::shared_ptr<void> no_sync = sync ? nullptr : model.no_sync();
      const auto [x, y] = prepare_batch(*batch);
      const auto [output, loss] = output_and_loss(model, x, y);
      scaler_.scale(of_step == 1 ? loss : loss / of_step).backward();
      epoch.sums.add(loss, output, y);
    }
    step(optimizer, data);
    epoch.batch += of_step;
    if (after_step && epoch.batch < batches && after_step()) return {};
  }
  if (data.scheduler != nullptr && data.interval == SchedulerInterval::epoch) {
    data.scheduler->step();
  }
  const double seconds = epoch.seconds();
  const auto [loss, accuracy, examples] = epoch.sums.means(options_.process_group);
  return EpochMetrics{
      .epoch = 1, .loss = loss, .train_acc = accuracy, .examples = examples, .seconds = seconds};
}

void Trainer::step(torch::optim::Optimizer& optimizer, const FitData& data) {
  if (options_.gradient_clip_val > 0) {
    scaler_.unscale_(optimizer);
    // Not the model's: gradients of what is not stepped are neither zeroed nor unscaled.
    nn::clip_grad_norm_(parameters_of(optimizer), options_.gradient_clip_val);
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
