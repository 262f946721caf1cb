#include "sconce/trainer.hpp"

#include <ATen/autocast_mode.h>

#include <array>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <limits>
#include <sstream>

#include "catch.hpp"
#include "sconce/amp/autocast.hpp"
#include "sconce/distributed/process_group.hpp"
#include "sconce/io/checkpoint.hpp"
#include "sconce/io/torch_file.hpp"
#include "sconce/nn/clip_grad.hpp"
#include "sconce/nn/data_parallel.hpp"
#include "sconce/nn/distributed_data_parallel.hpp"
#include "sconce/optim/ema.hpp"
#include "sconce/optim/lr_scheduler.hpp"
#include "sconce/optim/sgd.hpp"
#include "support/host_reads.hpp"
#include "support/one_with_gloo.hpp"
#include "support/require_gpu.hpp"
#include "support/temp_dir.hpp"
#include "support/warnings.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::Precision;
using sconce::SchedulerInterval;
using sconce::Trainer;
using sconce::data::Batches;
using sconce::test::one_with_gloo;

namespace {

// Two classes that a line divides: points of two dimensions left and right of zero.
sconce::data::Dataset points(int64_t n, uint64_t seed = 1) {
  torch::manual_seed(seed);
  const auto x = torch::randn({n, 2});
  return {x, x.select(1, 0).gt(0).to(torch::kLong)};
}

sconce::FitData data(int64_t n = 96, int64_t batch_size = 16) {
  return {Batches(points(n), {.batch_size = batch_size, .shuffle = true, .seed = 7}),
          Batches(points(40, /*seed=*/2), {.batch_size = 40})};
}

torch::nn::Sequential net() {
  torch::manual_seed(0);
  return torch::nn::Sequential(torch::nn::Linear(2, 8), torch::nn::ReLU(), torch::nn::Dropout(0.1),
                               torch::nn::Linear(8, 2));
}

// Replicas on the CPU draw from one generator at once: which of them gets which numbers is chance.
torch::nn::Sequential net_without_dropout() {
  torch::manual_seed(0);
  return torch::nn::Sequential(torch::nn::Linear(2, 8), torch::nn::ReLU(), torch::nn::Linear(8, 2));
}

struct Plain : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& x) { return linear->forward(x); }
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(2, 2));
};

}  // namespace

TEST_CASE("the trainer's defaults are d2l's") {
  const sconce::TrainerOptions options;
  CHECK(options.num_gpus == 0);
  CHECK(options.gradient_clip_val == 0);
  CHECK(Trainer().device() == sconce::cpu());
  CHECK(Trainer({}).device() == sconce::cpu());
}

TEST_CASE("the trainer refuses options that cannot be, naming them") {
  CHECK_THROWS_WITH(Trainer({.max_epochs = 0}),
                    ContainsSubstring("expected max_epochs of at least 1, got 0"));
  CHECK_THROWS_WITH(Trainer({.num_gpus = -1}), ContainsSubstring("expected num_gpus 0 or 1"));
  CHECK_THROWS_WITH(Trainer({.num_gpus = 2}), ContainsSubstring("got 2"));
  CHECK_THROWS_WITH(Trainer({.gradient_clip_val = -1}),
                    ContainsSubstring("expected a gradient_clip_val of at least 0, got -1"));
  CHECK_THROWS_AS(Trainer({.gradient_clip_val = std::numeric_limits<double>::quiet_NaN()}),
                  c10::Error);
  CHECK_THROWS_WITH(Trainer({.accumulate_grad_batches = 0}),
                    ContainsSubstring("expected accumulate_grad_batches of at least 1, got 0"));
  CHECK_THROWS_WITH(Trainer({.precision = Precision::tf32}),
                    ContainsSubstring("expected a GPU for Precision::tf32, got cpu"));
  CHECK_THROWS_WITH(Trainer({.device = sconce::gpu(127)}), ContainsSubstring("cuda:127"));
  CHECK_THROWS_WITH(Trainer({.num_gpus = 1, .device = sconce::cpu()}),
                    ContainsSubstring("expected num_gpus or device"));
}

TEST_CASE("fit learns, and reports an entry an epoch") {
  auto model = net();
  torch::optim::SGD optimizer(model->parameters(), 0.5);
  const auto result = Trainer({.max_epochs = 12}).fit(model, optimizer, data());
  REQUIRE(result.epochs.size() == 12);
  CHECK(result.epochs.front().epoch == 1);
  CHECK(result.epochs.back().epoch == 12);
  CHECK(result.epochs.back().loss < result.epochs.front().loss);
  CHECK(result.epochs.back().test_acc.value() > 0.9);
  CHECK(result.epochs.back().examples == 96);
  CHECK(result.examples_per_second() > 0);
  CHECK(model->is_training());
}

TEST_CASE("the same seeds give the same losses, bit for bit") {
  const auto losses = [] {
    auto model = net();
    torch::optim::SGD optimizer(model->parameters(), 0.1);
    std::vector<double> values;
    for (const auto& epoch : Trainer({.max_epochs = 4}).fit(model, optimizer, data()).epochs) {
      values.push_back(epoch.loss);
    }
    return values;
  };
  CHECK(losses() == losses());
}

TEST_CASE("an epoch is the loop that a user would write") {
  auto model = net();
  auto twin = net();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  torch::optim::SGD twin_optimizer(twin->parameters(), 0.1);
  const Batches batches(points(50), {.batch_size = 16});

  torch::manual_seed(5);  // dropout
  const auto metrics = Trainer().fit_epoch(model, optimizer, {batches});

  torch::manual_seed(5);
  double loss_sum = 0;
  for (const auto [x, y] : batches) {
    twin_optimizer.zero_grad();
    const auto loss = torch::nn::functional::cross_entropy(twin->forward(x), y);
    loss.backward();
    twin_optimizer.step();
    loss_sum += loss.item<double>() * static_cast<double>(x.size(0));
  }
  CHECK(metrics.loss == Catch::Approx(loss_sum / 50).epsilon(1e-6));
  for (size_t i = 0; i < model->parameters().size(); ++i) {
    CHECK(model->parameters()[i].equal(twin->parameters()[i]));
  }
}

TEST_CASE("accumulated batches make the step of their mean, the epoch's last ones too") {
  auto model = net();
  auto twin = net();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  torch::optim::SGD twin_optimizer(twin->parameters(), 0.1);
  for (auto* net : {&model, &twin}) (*net)[2]->as<torch::nn::Dropout>()->options.p(0);
  const auto whole = points(40);
  // Steps of 3, 3 and 2 batches of 5.
  Trainer({.accumulate_grad_batches = 3})
      .fit_epoch(model, optimizer, {Batches(whole, {.batch_size = 5})});
  Trainer().fit_epoch(twin, twin_optimizer, {Batches(whole, {.batch_size = 15})});
  for (size_t i = 0; i < model->parameters().size(); ++i) {
    CHECK(torch::allclose(model->parameters()[i], twin->parameters()[i], 1.3e-6, 1e-5));
  }
}

TEST_CASE("the precision is what the forward computes in, in training and testing") {
  struct Watching : Plain {
    torch::Tensor forward(const torch::Tensor& x) {
      auto out = Plain::forward(x);
      CHECK(out.scalar_type() == expected);
      return out;
    }
    torch::ScalarType expected = torch::kFloat;
  };
  const int i = GENERATE(0, 1, 2);
  const auto precision = std::array{Precision::fp32, Precision::bf16, Precision::fp16}[i];
  Watching model;
  model.expected = std::array{torch::kFloat, torch::kBFloat16, torch::kHalf}[i];
  torch::optim::SGD optimizer(model.parameters(), 0.5);
  Trainer trainer({.max_epochs = 8, .precision = precision});
  CHECK(trainer.fit(model, optimizer, data()).epochs[7].train_acc > 0.9);
  CHECK(model.linear->weight.scalar_type() == torch::kFloat);
  CHECK(trainer.scaler().is_enabled() == (precision == Precision::fp16));
  CHECK_FALSE(at::autocast::is_autocast_enabled(torch::kCPU));
}

TEST_CASE("a float16 epoch is the loop with a scaler that a user would write") {
  auto model = net();
  auto twin = net();
  const auto options = torch::optim::SGDOptions(0.1).momentum(0.9);
  sconce::optim::SGD optimizer(model->parameters(), options);
  sconce::optim::SGD twin_optimizer(twin->parameters(), options);
  const Batches batches(points(64), {.batch_size = 16});
  Trainer trainer({.gradient_clip_val = 0.5, .precision = Precision::fp16});
  sconce::amp::GradScaler scaler({.device = torch::kCPU,
                                  .init_scale = 1 << 30,  // too large: some steps are skipped
                                  .backoff_factor = 1.0 / 64,
                                  .growth_interval = 1});
  trainer.scaler().load_state_dict(scaler.state_dict());
  REQUIRE(trainer.scaler().is_enabled());
  REQUIRE(scaler.is_enabled());

  torch::manual_seed(5);
  trainer.fit_epoch(model, optimizer, {batches});

  torch::manual_seed(5);
  for (const auto [x, y] : batches) {
    twin_optimizer.zero_grad();
    torch::Tensor loss;
    {
      const sconce::amp::AutocastGuard autocast(torch::kCPU, {.dtype = torch::kHalf});
      loss = torch::nn::functional::cross_entropy(twin->forward(x), y);
    }
    scaler.scale(loss).backward();
    scaler.unscale_(twin_optimizer);
    sconce::nn::clip_grad_norm_(twin->parameters(), 0.5);
    scaler.step(twin_optimizer);
    scaler.update();
  }
  CHECK(trainer.scaler().state_dict() == scaler.state_dict());
  CHECK(scaler.get_scale() < 1 << 30);
  for (size_t i = 0; i < model->parameters().size(); ++i) {
    CHECK(model->parameters()[i].equal(twin->parameters()[i]));
    CHECK_FALSE(model->parameters()[i].equal(net()->parameters()[i]));
  }
}

TEST_CASE("a scheduler is stepped after each epoch or after each step") {
  const auto rate_after = [](SchedulerInterval interval, int accumulate) {
    auto model = net();
    torch::optim::SGD optimizer(model->parameters(), 1.0);
    sconce::optim::lr_scheduler::ExponentialLR scheduler(optimizer, 0.5);
    auto fit = data(96, 16);  // 6 batches
    fit.scheduler = &scheduler;
    fit.interval = interval;
    Trainer({.max_epochs = 2, .accumulate_grad_batches = accumulate}).fit(model, optimizer, fit);
    return optimizer.param_groups()[0].options().get_lr();
  };
  CHECK(rate_after(SchedulerInterval::epoch, 1) == std::pow(0.5, 2));
  CHECK(rate_after(SchedulerInterval::step, 1) == std::pow(0.5, 12));
  CHECK(rate_after(SchedulerInterval::step, 4) == std::pow(0.5, 4));
}

TEST_CASE("averages follow every step and are tested in the model's place") {
  auto model = net();
  torch::optim::SGD optimizer(model->parameters(), 0.5);
  sconce::optim::ExponentialMovingAverage ema(*model, {.decay = 1});  // the first step's values
  auto fit = data(96, 16);
  fit.ema = &ema;
  Trainer trainer({.max_epochs = 3});
  const auto result = trainer.fit(model, optimizer, fit);
  CHECK(ema.n_averaged() == 18);
  CHECK(result.epochs[0].test_acc == result.epochs[2].test_acc);
  CHECK(trainer.evaluate(model, *fit.test) > 0.9);
  CHECK(result.epochs[2].test_acc.value() < trainer.evaluate(model, *fit.test));
}

TEST_CASE("with all that goes along an epoch still reads its sums only") {
  auto model = net();
  sconce::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  sconce::optim::lr_scheduler::ExponentialLR scheduler(optimizer, 0.9);
  sconce::optim::ExponentialMovingAverage ema(*model);
  auto fit = data(96, GENERATE(4, 48));
  fit.scheduler = &scheduler;
  fit.interval = SchedulerInterval::step;
  fit.ema = &ema;
  Trainer trainer(
      {.gradient_clip_val = 1, .precision = Precision::fp16, .accumulate_grad_batches = 2});
  REQUIRE(trainer.scaler().is_enabled());
  const sconce::test::HostReads reads;
  trainer.fit(model, optimizer, fit);
  CHECK(reads.count() == 0);  // on the CPU the sums are read where they lie
}

TEST_CASE("the number of host reads does not grow with the number of steps") {
  const auto reads_of = [](int64_t batch_size) {
    auto model = net();
    torch::optim::SGD optimizer(model->parameters(), 0.1);
    const sconce::test::HostReads reads;
    Trainer({.gradient_clip_val = 1}).fit(model, optimizer, data(96, batch_size));
    return reads.count();
  };
  CHECK(reads_of(48) == reads_of(4));
}

TEST_CASE("gradient_clip_val bounds the step") {
  auto model = std::make_shared<Plain>();
  const auto before = model->linear->weight.detach().clone();
  torch::optim::SGD optimizer(model->parameters(), 1.0);
  const Batches one(points(16), {.batch_size = 16});
  Trainer({.gradient_clip_val = 1e-3}).fit_epoch(model, optimizer, {one});
  const double step = (model->linear->weight.detach() - before).norm().item<double>();
  CHECK(step > 0);
  CHECK(step <= 1.001e-3);
}

TEST_CASE("gradients are clipped over what the optimizer steps and no others") {
  const auto precision = GENERATE(Precision::fp32, Precision::fp16);
  const bool is_frozen = GENERATE(false, true);  // or trained on, without an optimizer
  auto model = net_without_dropout(), twin = net_without_dropout();
  for (auto& parameter : model[0]->parameters()) {
    parameter.set_requires_grad(!is_frozen);
    parameter.mutable_grad() = torch::full_like(parameter, 1e30);  // of an earlier fit
  }
  const torch::optim::SGDOptions options(0.1);
  sconce::optim::SGD optimizer(model[2]->parameters(), options);
  sconce::optim::SGD twin_optimizer(twin[2]->parameters(), options);
  const Batches batches(points(64), {.batch_size = 16});
  Trainer trainer({.gradient_clip_val = 0.5, .precision = precision});
  sconce::amp::GradScaler scaler({.device = torch::kCPU, .enabled = precision == Precision::fp16});
  trainer.fit_epoch(model, optimizer, {batches});
  for (const auto [x, y] : batches) {
    twin->zero_grad();
    torch::Tensor loss;
    {
      const sconce::amp::AutocastGuard autocast(
          torch::kCPU, {.dtype = torch::kHalf, .enabled = precision == Precision::fp16});
      loss = torch::nn::functional::cross_entropy(twin->forward(x), y);
    }
    scaler.scale(loss).backward();
    scaler.unscale_(twin_optimizer);
    sconce::nn::clip_grad_norm_(twin[2]->parameters(), 0.5);
    scaler.step(twin_optimizer);
    scaler.update();
  }
  CHECK(model[2]->parameters()[0].equal(twin[2]->parameters()[0]));
  CHECK_FALSE(model[2]->parameters()[0].equal(net_without_dropout()[2]->parameters()[0]));
}

TEST_CASE("gradients are clipped over all groups of the optimizer together") {
  auto model = net_without_dropout();
  torch::optim::SGD optimizer({torch::optim::OptimizerParamGroup(model[0]->parameters()),
                               torch::optim::OptimizerParamGroup(model[2]->parameters())},
                              torch::optim::SGDOptions(1.0));
  const Batches one(points(16), {.batch_size = 16});
  Trainer({.gradient_clip_val = 1e-3}).fit_epoch(model, optimizer, {one});
  double squares = 0;
  for (const auto& parameter : model->parameters()) {
    squares += parameter.grad().square().sum().item<double>();
  }
  CHECK(std::sqrt(squares) == Catch::Approx(1e-3).epsilon(1e-4));
}

TEST_CASE("modules, holders and shared pointers are models") {
  Plain module;
  auto pointer = std::make_shared<Plain>();
  auto holder = net();
  torch::optim::SGD optimizer(module.parameters(), 0.1);
  Trainer trainer;
  CHECK_NOTHROW(trainer.fit(module, optimizer, data()));
  CHECK_NOTHROW(trainer.fit(pointer, optimizer, data()));
  CHECK_NOTHROW(trainer.fit(holder, optimizer, data()));
}

// Logits of two classes for each element of its data.
struct SignOfEach : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& x) { return torch::stack({-x, x}, 1) * scale; }
  torch::Tensor scale = register_parameter("scale", torch::ones({1}));
};

TEST_CASE("of logits for each pixel the accuracy is the share of the pixels") {
  SignOfEach model;
  torch::manual_seed(1);
  const auto x = torch::randn({10, 4, 5});
  auto y = x.gt(0).to(torch::kLong);  // (10, 4, 5)
  y.select(1, 0).mul_(-1).add_(1);    // a quarter of them is wrong
  const Batches batches({x, y}, {.batch_size = 4});
  CHECK(Trainer().evaluate(model, batches) == Catch::Approx(0.75));
  torch::optim::SGD optimizer(model.parameters(), 0.0);
  const auto metrics = Trainer().fit_epoch(model, optimizer, {batches});
  CHECK(metrics.train_acc == Catch::Approx(0.75));
  CHECK(metrics.examples == 10);
}

TEST_CASE("a target that is no class for each of the logits is refused with both sizes") {
  Plain model;
  torch::optim::SGD optimizer(model.parameters(), 0.1);
  const auto x = torch::randn({2, 2});
  const Batches probabilities({x, torch::full({2, 2}, 0.5)}, {.batch_size = 2});
  CHECK_THROWS_WITH(
      Trainer().fit_epoch(model, optimizer, {probabilities}),
      ContainsSubstring("sconce::Trainer: expected a target of sizes [2], got [2, 2]"));
  const Batches column({x, torch::zeros({2, 1}, torch::kLong)}, {.batch_size = 2});
  CHECK_THROWS_WITH(Trainer().evaluate(model, column),
                    ContainsSubstring("expected a target of sizes [2], got [2, 1]"));
}

TEST_CASE("evaluate runs in evaluation mode and records no gradient") {
  struct Watching : Plain {
    torch::Tensor forward(const torch::Tensor& x) {
      CHECK_FALSE(is_training());
      CHECK_FALSE(torch::GradMode::is_enabled());
      return Plain::forward(x);
    }
  } model;
  Trainer().evaluate(model, Batches(points(16), {.batch_size = 4}));
  CHECK(model.is_training());
}

TEST_CASE("evaluate restores the mode of every module, also when the model throws") {
  auto model = net();
  model[2]->eval();  // a layer frozen by its user
  const Batches batches(points(64), {.batch_size = 10});
  Trainer().evaluate(model, batches);
  CHECK(model->is_training());
  CHECK_FALSE(model[2]->is_training());
  const Batches too_wide({torch::ones({4, 3}), torch::zeros({4}, torch::kLong)});
  CHECK_THROWS_AS(Trainer().evaluate(model, too_wide), c10::Error);
  CHECK(model->is_training());
}

TEST_CASE("num_gpus = 1 without a GPU warns and trains on the CPU") {
  if (sconce::num_gpus() > 0) SKIP("this machine has a GPU");
  struct Recorder : c10::WarningHandler {
    void process(const c10::Warning& warning) override { text += warning.msg(); }
    std::string text;
  } recorder;
  c10::WarningUtils::WarningHandlerGuard guard(&recorder);
  CHECK(Trainer({.num_gpus = 1}).device() == sconce::cpu());
  CHECK_THAT(recorder.text, ContainsSubstring("1 GPU wanted, none found: using the CPU"));
}

TEST_CASE("the log has a line an epoch and the book's two lines") {
  std::ostringstream log;
  auto model = net();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  Trainer({.max_epochs = 2, .log = &log}).fit(model, optimizer, data());
  using Catch::Matchers::Matches;
  CHECK_THAT(
      log.str(),
      Matches("epoch 1/2: loss \\d\\.\\d{3}, train acc [01]\\.\\d{3}, test acc [01]\\.\\d{3}\n"
              "epoch 2/2: loss \\d\\.\\d{3}, train acc [01]\\.\\d{3}, test acc [01]\\.\\d{3}\n"
              "loss \\d\\.\\d{3}, train acc [01]\\.\\d{3}, test acc [01]\\.\\d{3}\n"
              "\\d+\\.\\d examples/sec on cpu\n"));
}

TEST_CASE("a loss that is no number is logged without a sign") {
  for (const double sign : {1., -1.}) {
    std::ostringstream log;
    auto model = net();
    torch::optim::SGD optimizer(model->parameters(), 0.1);
    auto nans = points(8);
    nans.data.fill_(std::copysign(std::numeric_limits<double>::quiet_NaN(), sign));
    const auto result =
        Trainer({.log = &log}).fit(model, optimizer, {Batches(nans, {.batch_size = 4})});
    CHECK(std::isnan(result.epochs[0].loss));
    CHECK_FALSE(std::signbit(result.epochs[0].loss));
    CHECK_THAT(log.str(), ContainsSubstring("loss nan") && !ContainsSubstring("-nan"));
  }
  CHECK(std::isnan(sconce::FitResult{}.examples_per_second()));
  CHECK_FALSE(std::signbit(sconce::FitResult{}.examples_per_second()));
}

TEST_CASE("without test data there is no test accuracy") {
  std::ostringstream log;
  auto model = net();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  const auto result =
      Trainer({.log = &log}).fit(model, optimizer, {Batches(points(8), {.batch_size = 4})});
  CHECK_FALSE(result.epochs[0].test_acc.has_value());
  CHECK_THAT(log.str(), !ContainsSubstring("test acc"));
}

TEST_CASE("fast_dev_run takes one batch of one epoch") {
  auto model = net();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  const auto result =
      Trainer({.max_epochs = 9, .fast_dev_run = true}).fit(model, optimizer, data());
  REQUIRE(result.epochs.size() == 1);
  CHECK(result.epochs[0].examples == 16);
}

TEST_CASE("fit refuses data without a batch") {
  auto model = net();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  const Batches none(points(0), {});
  CHECK_THROWS_WITH(Trainer().fit(model, optimizer, {none}),
                    ContainsSubstring("sconce::Trainer::fit: expected training data"));
  CHECK_THROWS_WITH(Trainer().fit(model, optimizer, {Batches(points(4)), none}),
                    ContainsSubstring("expected test data"));
  CHECK_THROWS_WITH(
      Trainer().fit_epoch(model, optimizer, {none}),
      ContainsSubstring("sconce::Trainer::fit_epoch: expected training data, got no batch"));
  CHECK_THROWS_WITH(Trainer().evaluate(model, none),
                    ContainsSubstring("sconce::Trainer::evaluate: expected data, got no batch"));
}

TEST_CASE("two replicas on the CPU train as the module does") {
  const auto train = [](bool parallel) {
    torch::manual_seed(0);
    torch::nn::Sequential model(torch::nn::Linear(2, 8), torch::nn::ReLU(),
                                torch::nn::Linear(8, 2));
    torch::optim::SGD optimizer(model->parameters(), 0.1);
    Trainer trainer({.max_epochs = 3});
    if (!parallel) return trainer.fit(model, optimizer, data()).epochs.back();
    sconce::nn::DataParallel replicas(model, {.device_ids = {sconce::cpu(), sconce::cpu()}});
    return trainer.fit(replicas, optimizer, data()).epochs.back();
  };
  CHECK(train(true).loss == Catch::Approx(train(false).loss).epsilon(1e-6));
  CHECK(train(true).test_acc == train(false).test_acc);
}

TEST_CASE("a group of one trains as the module does, also over several batches a step") {
  const auto group = one_with_gloo();
  const auto train = [&](bool distributed) {
    auto model = net();
    torch::optim::SGD optimizer(model->parameters(), 0.1);
    sconce::TrainerOptions options = {.max_epochs = 3, .accumulate_grad_batches = 2};
    if (!distributed) return Trainer(options).fit(model, optimizer, data()).epochs.back();
    sconce::nn::DistributedDataParallel of_rank(model, group);
    options.process_group = &group;
    return Trainer(options).fit(of_rank, optimizer, data()).epochs.back();
  };
  CHECK(train(true).loss == train(false).loss);
  CHECK(train(true).train_acc == train(false).train_acc);
  CHECK(train(true).test_acc == train(false).test_acc);
  CHECK(train(true).examples == train(false).examples);
}

// How often a function of LibTorch's is called in all threads while this lives.
class Calls {
 public:
  explicit Calls(std::string name) {
    name_ = std::move(name);
    count_ = 0;
    handle_ = at::addGlobalCallback(at::RecordFunctionCallback([](const at::RecordFunction& call) {
      if (call.name() == name_) ++count_;
      return std::unique_ptr<at::ObserverContext>();
    }));
  }
  ~Calls() { at::removeCallback(handle_); }
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

  int count() const { return count_; }

 private:
  inline static std::string name_;
  inline static std::atomic<int> count_ = 0;
  at::CallbackHandle handle_;
};

TEST_CASE("gradients travel once a step, and metrics once an epoch") {
  const auto group = one_with_gloo();
  auto model = net();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  sconce::nn::DistributedDataParallel of_rank(model, group);
  Trainer trainer({.accumulate_grad_batches = 2, .process_group = &group});
  const Calls sums("c10d::allreduce_");
  trainer.fit_epoch(of_rank, optimizer, {Batches(points(96), {.batch_size = 16})});
  CHECK(sums.count() == 3 + 1);  // of six batches
}

TEST_CASE("beside a process group only a module of its ranks is trained") {
  const auto group = one_with_gloo();
  auto model = net();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  Trainer trainer({.process_group = &group});
  CHECK_THROWS_WITH(trainer.fit(model, optimizer, data()),
                    ContainsSubstring("sconce::Trainer::fit: expected, beside a process group"));
  CHECK_THROWS_WITH(trainer.fit_epoch(model, optimizer, data()),
                    ContainsSubstring("sconce::Trainer::fit_epoch: expected, beside"));
}

TEST_CASE("a training step on the GPU gives the CPU's numbers", "[gpu]") {
  sconce::test::require_gpu();
  at::globalContext().setAllowTF32CuBLAS(false);
  const auto train = [](torch::Device device) {
    torch::manual_seed(0);
    auto model =
        torch::nn::Sequential(torch::nn::Linear(2, 8), torch::nn::ReLU(), torch::nn::Linear(8, 2));
    torch::optim::SGD optimizer(model->parameters(), 0.1);  // before the model moves
    const auto result = Trainer({.max_epochs = 3, .gradient_clip_val = 1, .device = device})
                            .fit(model, optimizer, data());
    CHECK(model->parameters()[0].device() == device);
    return std::pair(result.epochs.back().loss, model->parameters()[0].detach().cpu());
  };
  const auto [cpu_loss, cpu_weight] = train(sconce::cpu());
  const auto [gpu_loss, gpu_weight] = train(sconce::gpu());
  CHECK(gpu_loss == Catch::Approx(cpu_loss).epsilon(1e-4));
  CHECK(torch::allclose(gpu_weight, cpu_weight, 1e-4, 1e-5));
}

namespace {

// The parameters after three epochs of six steps; with a folder the fit is stopped after each four.
template <class Make, class Wrap>
std::vector<torch::Tensor> fit_in_parts(torch::Device device, const std::string& folder,
                                        const Make& make, const Wrap& wrap) {
  for (;;) {
    auto model = make();
    sconce::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.5).momentum(0.9));
    sconce::optim::lr_scheduler::StepLR scheduler(optimizer, /*step_size=*/1);
    std::optional<sconce::io::Checkpoint> checkpoint;
    auto fit_data = data();
    fit_data.scheduler = &scheduler;
    int steps = 0;
    if (!folder.empty()) {
      checkpoint.emplace(folder, sconce::io::CheckpointOptions{.resume = true});
      fit_data.checkpoint = &*checkpoint;
      fit_data.should_stop = [&steps] { return ++steps == 4; };
    }
    auto wrapped = wrap(model);
    Trainer trainer({.max_epochs = 3, .device = device});
    if (trainer.fit(wrapped, optimizer, fit_data).stopped) continue;
    if (checkpoint) {  // with the names of the model, whatever wraps it
      const auto saved = sconce::io::load_torch(checkpoint->latest()).toGenericDict();
      CHECK(saved.at("model").toGenericDict().contains("0.weight"));
    }
    return model->parameters();
  }
}

template <class Make, class Wrap>
void check_parts(torch::Device device, const Make& make, const Wrap& wrap) {
  const sconce::test::TempDir folder;
  const auto whole = fit_in_parts(device, "", make, wrap);
  const auto parts = fit_in_parts(device, folder.path().string(), make, wrap);
  for (size_t i = 0; i < whole.size(); ++i) {
    CHECK(torch::allclose(parts[i], whole[i], 0, device.is_cpu() ? 0 : 1e-6));
  }
}

}  // namespace

TEST_CASE("a fit that is stopped and resumed often comes to what it would have come to") {
  check_parts(torch::kCPU, net, [](auto& model) { return model; });
  check_parts(torch::kCPU, net_without_dropout, [](auto& model) {
    return sconce::nn::DataParallel(model, {.device_ids = {torch::kCPU, torch::kCPU}});
  });
}

TEST_CASE("a fit on a GPU goes on from its checkpoint", "[gpu]") {
  sconce::test::require_gpu();
  check_parts(sconce::gpu(), net, [](auto& model) { return model; });
}

TEST_CASE("what goes along with a checkpoint is checked before the training") {
  const sconce::test::TempDir folder;
  auto model = net();
  torch::optim::SGD libtorchs(model->parameters(), 0.1);
  sconce::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1));
  sconce::io::Checkpoint checkpoint(folder.path(), {.resume = true});
  auto with = data();
  with.checkpoint = &checkpoint;
  CHECK_THROWS_WITH(Trainer().fit(model, libtorchs, with),
                    ContainsSubstring("one of sconce's optimizers"));
  CHECK_THROWS_WITH(Trainer({.fast_dev_run = true}).fit(model, optimizer, with),
                    ContainsSubstring("fast_dev_run"));
  CHECK_THROWS_WITH(Trainer().fit_epoch(model, optimizer, with), ContainsSubstring("fit_epoch"));
  auto only_save_every = data();
  only_save_every.save_every = 1;
  CHECK_THROWS_WITH(Trainer().fit_epoch(model, optimizer, only_save_every),
                    ContainsSubstring("save_every"));
  Trainer().fit(model, optimizer, with);
  auto other = data(96, /*batch_size=*/8);
  other.checkpoint = &checkpoint;
  CHECK_THROWS_WITH(Trainer().fit(model, optimizer, other),
                    ContainsSubstring("expected 6 training batches"));
  auto without = data();
  without.save_every = 1;
  CHECK_THROWS_WITH(Trainer().fit(model, optimizer, without), ContainsSubstring("a checkpoint"));
  with.save_every = -1;
  CHECK_THROWS_WITH(Trainer().fit(model, optimizer, with), ContainsSubstring("save_every"));
}

namespace {

// A model of its own, an optimizer, and what else a fit with a checkpoint takes.
struct Fitting {
  explicit Fitting(sconce::io::Checkpoint& checkpoint, double lr = 0.1) : optimizer(parts(), lr) {
    with = data();
    with.checkpoint = &checkpoint;
  }
  std::vector<torch::Tensor> parts() { return model->parameters(); }
  sconce::FitResult run(sconce::TrainerOptions options = {}) {
    return Trainer(options).fit(model, optimizer, with);
  }

  torch::nn::Sequential model = net();
  sconce::optim::SGD optimizer;
  sconce::FitData with = data();
};

torch::Tensor saved_weight(const std::filesystem::path& file) {
  const auto saved = sconce::io::load_torch(file).toGenericDict();
  return saved.at("model").toGenericDict().at("0.weight").toTensor();
}

}  // namespace

TEST_CASE("a second fit with the same checkpoint is saved as the first was") {
  const sconce::test::TempDir folder;
  sconce::io::Checkpoint checkpoint(folder.path());
  Fitting first(checkpoint), second(checkpoint, /*lr=*/0.3);
  first.run({.max_epochs = 3});
  CHECK(saved_weight(checkpoint.latest()).equal(first.parts()[0]));
  CHECK(second.run({.max_epochs = 2}).epochs.size() == 2);
  CHECK(saved_weight(checkpoint.latest()).equal(second.parts()[0]));
}

TEST_CASE("a fit whose checkpoints' folder another one writes is refused before its first step") {
  const sconce::test::TempDir folder;
  const std::string name = folder.path().string();
  std::optional<sconce::io::Checkpoint> other(folder.path());
  sconce::io::Checkpoint checkpoint(folder.path());
  Fitting fitting(checkpoint), fits(*other);
  fits.run();
  CHECK_THROWS_WITH(fitting.run(),
                    ContainsSubstring(name + ": expected a folder in which nobody else saves"));
  other.reset();
  CHECK_THROWS_WITH(fitting.run(),
                    ContainsSubstring(name + ": expected a folder without checkpoints, or resume"));
  CHECK(fitting.parts()[0].equal(net()->parameters()[0]));
}

TEST_CASE("a fit is resumed with as many batches a step as it was saved with") {
  const sconce::test::TempDir folder;
  sconce::io::Checkpoint checkpoint(folder.path(), {.resume = true});
  Fitting fitting(checkpoint);
  fitting.run({.accumulate_grad_batches = 2});
  CHECK_THROWS_WITH(
      fitting.run({.max_epochs = 2, .accumulate_grad_batches = 3}),
      ContainsSubstring("expected accumulate_grad_batches 2, as the checkpoint was saved with, "
                        "got 3"));
}

TEST_CASE("a resumed fit warns of options that its checkpoint replaces, and only then") {
  const sconce::test::TempDir folder;
  const bool is_scheduled = GENERATE(false, true);
  const auto warnings_with = [&](double lr, double gamma, int epochs) {
    sconce::io::Checkpoint checkpoint(folder.path(), {.resume = true});
    Fitting fitting(checkpoint, lr);
    std::optional<sconce::optim::lr_scheduler::ExponentialLR> scheduler;
    if (is_scheduled) fitting.with.scheduler = &scheduler.emplace(fitting.optimizer, gamma);
    const sconce::test::Warnings warnings;
    fitting.run({.max_epochs = epochs});
    return warnings.messages();
  };
  CHECK(warnings_with(0.5, 0.5, 1).empty());
  CHECK(warnings_with(0.5, 0.5, 2).empty());
  const auto messages = warnings_with(0.25, 0.125, 3);
  REQUIRE(messages.size() == 1);
  CHECK_THAT(messages[0], ContainsSubstring("sconce::Trainer::fit: goes on with what the "
                                            "checkpoint was saved with: "));
  if (is_scheduled) {
    CHECK_THAT(messages[0], ContainsSubstring("scheduler.base_lrs[0] 0.5 in the place of 0.25") &&
                                ContainsSubstring("scheduler.gamma 0.5 in the place of 0.125") &&
                                !ContainsSubstring("].lr"));
  } else {
    CHECK_THAT(messages[0], ContainsSubstring("param_groups[0].lr 0.5 in the place of 0.25"));
  }
}

TEST_CASE("a OneCycleLR that would end before the fit is refused before the first step") {
  const sconce::test::TempDir folder;
  const auto run = [&](int epochs, SchedulerInterval interval, int64_t total_steps) {
    sconce::io::Checkpoint checkpoint(folder.path(), {.resume = true});
    Fitting fitting(checkpoint);
    sconce::optim::lr_scheduler::OneCycleLR scheduler(fitting.optimizer, 0.1,
                                                      {.total_steps = total_steps});
    fitting.with.scheduler = &scheduler;
    fitting.with.interval = interval;
    return fitting.run({.max_epochs = epochs, .accumulate_grad_batches = 4}).epochs.size();
  };
  // Six batches are two steps.
  CHECK_THROWS_WITH(run(3, SchedulerInterval::step, 5),
                    ContainsSubstring("expected a OneCycleLR of at least 6 steps, for 3 epochs, "
                                      "got one of 5"));
  CHECK_THROWS_WITH(run(3, SchedulerInterval::epoch, 2), ContainsSubstring("at least 3 steps"));
  CHECK(std::filesystem::is_empty(folder.path()));
  CHECK(run(3, SchedulerInterval::step, 6) == 3);
  CHECK(run(3, SchedulerInterval::step, 6) == 3);
  const sconce::test::Warnings of_the_resumed;
  CHECK_THROWS_WITH(run(4, SchedulerInterval::step, 8), ContainsSubstring("at least 8 steps"));
}

TEST_CASE("num_gpus chooses the first GPU", "[gpu]") {
  sconce::test::require_gpu();
  CHECK(Trainer({.num_gpus = 1}).device() == sconce::gpu());
}

TEST_CASE("an epoch on the GPU reads the sums once, and the test's once", "[gpu]") {
  sconce::test::require_gpu();
  const int64_t batch_size = GENERATE(4, 48);
  auto model = net();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  const sconce::test::HostReads reads;
  Trainer({.num_gpus = 1, .gradient_clip_val = 1}).fit(model, optimizer, data(96, batch_size));
  CHECK(reads.count() == 2);
}

TEST_CASE("tf32 and fp16 train on the GPU and leave LibTorch's settings as they were", "[gpu]") {
  sconce::test::require_gpu();
  at::globalContext().setFloat32MatmulPrecision("highest");
  at::globalContext().setAllowTF32CuDNN(false);
  const auto precision = GENERATE(Precision::tf32, Precision::fp16, Precision::bf16);
  auto model = net();
  sconce::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.5));
  Trainer trainer({.max_epochs = 12, .num_gpus = 1, .precision = precision});
  CHECK(trainer.scaler().is_enabled() == (precision == Precision::fp16));
  const sconce::test::HostReads reads;
  CHECK(trainer.fit(model, optimizer, data()).epochs.back().test_acc.value() > 0.9);
  CHECK(reads.count() == 24);  // an epoch's sums and the test's
  CHECK(at::globalContext().float32MatmulPrecision() == at::Float32MatmulPrecision::HIGHEST);
  CHECK_FALSE(at::globalContext().allowTF32CuDNN());
}

TEST_CASE("a batch from a GPU is whole on the CPU when prepare_batch returns", "[gpu]") {
  sconce::test::require_gpu();
  const auto there = torch::rand({1 << 24}, sconce::gpu()).add_(1);
  const auto here = Trainer().prepare_batch({there, there});
  CHECK(here.data.min().item<float>() >= 1);
  CHECK(here.target.equal(there.cpu()));
}

TEST_CASE("a GPU named without an index is the current one", "[gpu]") {
  sconce::test::require_gpu();
  CHECK(Trainer({.device = torch::Device("cuda")}).device() == sconce::gpu());
}
