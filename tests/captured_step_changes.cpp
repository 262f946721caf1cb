// Tests changes to state other than a captured step's tensors, both between and during calls.

#include <c10/core/alignment.h>
#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "catch.hpp"
#include "sconce/amp/grad_scaler.hpp"
#include "sconce/captured_step.hpp"
#include "sconce/data/batches.hpp"
#include "sconce/devices.hpp"
#include "sconce/metrics/mean_metric.hpp"
#include "sconce/optim/ema.hpp"
#include "sconce/optim/lr_scheduler.hpp"
#include "sconce/optim/reduce_lr_on_plateau.hpp"
#include "sconce/optim/sgd.hpp"
#include "sconce/optim/swa_utils.hpp"
#include "sconce/optim/warm_restarts.hpp"
#include "sconce/report/summary_writer.hpp"
#include "sconce/seed_everything.hpp"
#include "sconce/stopwatch.hpp"
#include "support/error_of.hpp"
#include "support/require_gpu.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using sconce::CapturedStep;
using sconce::CapturedStepOptions;
using sconce::test::error_of;

namespace captured_step_changes {

using Tensors = CapturedStep::Tensors;
using Groups = std::vector<torch::optim::OptimizerParamGroup>;
namespace lr_scheduler = sconce::optim::lr_scheduler;

namespace {

// A network whose second layer is initially frozen.
struct Training {
  explicit Training(torch::Device on) : device(on) {
    net->to(device);
    const auto lr = torch::full({}, 0.1, device);
    optimizer = std::make_unique<sconce::optim::SGD>(
        first->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9),
        device.is_cuda() ? sconce::optim::ExtraOptions{.lr = lr} : sconce::optim::ExtraOptions{});
  }

  Tensors step(const Tensors& batch) {
    ++runs_on_host;
    optimizer->zero_grad();
    const auto loss = torch::cross_entropy_loss(net->forward(batch[0]), batch[1]);
    loss.backward();
    optimizer->step();
    if (within) within();
    return {loss};
  }

  torch::Device device;
  at::Generator seeded = [] {  // before the layers draw their weights
    torch::manual_seed(0);
    return at::globalContext().defaultGenerator(torch::kCPU);
  }();
  torch::nn::Linear first = torch::nn::Linear(6, 16);
  torch::nn::Dropout dropout = torch::nn::Dropout(0.5);
  torch::nn::Linear second = torch::nn::Linear(16, 3);
  torch::nn::Sequential net = torch::nn::Sequential(first, dropout, second);
  std::unique_ptr<sconce::optim::SGD> optimizer;
  std::function<void()> within = nullptr;  // additional work in the step
  int runs_on_host = 0;
};

Tensors batch_of(torch::Device device, int call) {
  torch::manual_seed(100 + call);
  return {torch::randn({8, 6}).to(device), torch::randint(3, {8}).to(device)};
}

// Runs the same steps with an eager loop and with a CapturedStep, and checks that the losses,
// parameters, and gradients are the same. Before each step, calls `between` for the eager loop and
// for the CapturedStep. Returns the number of replayed calls.
int compare(
    torch::Device device, const std::function<void(Training&, int)>& between,
    const std::function<void(Training&)>& prepare = [](Training&) {}) {
  Training plain(device), captured(device);
  prepare(plain);
  prepare(captured);
  CapturedStep step(device, [&](const Tensors& batch) { return captured.step(batch); },
                    {.modules = {captured.net.ptr()}});
  int replays = 0;
  for (int call = 0; call < 30; ++call) {
    INFO("call " << call);
    between(plain, call);
    between(captured, call);
    const auto batch = batch_of(device, call);
    torch::manual_seed(call);
    const auto expected = plain.step(batch)[0];
    torch::manual_seed(call);
    const int runs_before = captured.runs_on_host;
    CHECK(step(batch)[0].equal(expected));
    replays += captured.runs_on_host == runs_before ? 1 : 0;
    const auto of_plain = plain.net->parameters(), of_captured = captured.net->parameters();
    for (size_t i = 0; i < of_plain.size(); ++i) {
      CHECK(of_captured[i].equal(of_plain[i]));
      const auto &a = of_plain[i].grad(), &b = of_captured[i].grad();
      CHECK(a.defined() == b.defined());
      if (a.defined() && b.defined()) CHECK(b.equal(a));
    }
  }
  return replays;
}

void change_groups(Training& training, int call) {
  auto& groups = training.optimizer->param_groups();
  if (call == 8) training.optimizer->add_param_group({training.second->parameters()});
  if (call == 16) groups.erase(groups.begin());
  if (call == 22) training.optimizer->add_param_group({training.first->parameters()});
}

// Replaces a parameter group with a new group of the same size, and later replaces the parameters
// in a group.
void swap_groups(Training& training, int call) {
  auto& groups = training.optimizer->param_groups();
  if (call == 8) {
    groups.erase(groups.begin());
    training.optimizer->add_param_group({training.second->parameters()});
  }
  if (call == 16) groups[0].params() = training.first->parameters();
}

void change_modes(Training& training, int call) {
  if (call == 8) training.dropout->eval();
  if (call == 16) training.net->train();
  if (call == 22) training.net->eval();
}

void freeze(Training& training, int call) {
  if (call == 8) training.first->bias.requires_grad_(false);
  if (call == 16) training.first->bias.requires_grad_(true);
}

// Freezes or unfreezes a layer that does not belong to any optimizer.
void freeze_other(Training& training, int call) {
  if (call == 8) training.second->weight.requires_grad_(false);
  if (call == 16) training.second->weight.requires_grad_(true);
}

void thaw_other(Training& training, int call) {
  if (call == 0) training.second->weight.requires_grad_(false);
  if (call == 8) training.second->weight.requires_grad_(true);
}

void move_parameters(Training& training, int call) {
  if (call != 8) return;
  const torch::NoGradGuard no_grad;
  for (auto& parameter : training.net->parameters()) parameter.set_data(parameter.clone());
}

void check_changes(torch::Device device) {
  const std::map<std::string, void (*)(Training&, int)> changes = {
      {"groups changed", change_groups},      {"groups swapped", swap_groups},
      {"modes changed", change_modes},        {"frozen and thawed", freeze},
      {"another layer frozen", freeze_other}, {"another layer thawed", thaw_other},
      {"parameters moved", move_parameters}};
  for (const auto& [name, change] : changes) {
    INFO(name);
    CHECK(compare(device, change) >= 10);
  }
}

void nothing(Training&, int) {}

void update_metric_within(torch::Device device) {
  std::vector<std::unique_ptr<sconce::metrics::MeanMetric>> metrics;
  const auto prepare = [&](Training& training) {
    auto& metric = *metrics.emplace_back(std::make_unique<sconce::metrics::MeanMetric>());
    training.within = [&] { metric.update(training.first->weight.detach().sum()); };
  };
  std::vector<torch::Tensor> earlier;
  const auto between = [&](Training&, int call) {
    if (call == 12) {
      for (const auto& metric : metrics) earlier.push_back(metric->sums());
    }
    if (call == 20) metrics[call % 2]->reset();
  };
  const auto reset_both = [&](Training& training, int call) {
    between(training, call);
    if (call == 20) {
      for (const auto& metric : metrics) metric->reset();
    }
  };
  CHECK(compare(device, reset_both, prepare) >= 20);
  REQUIRE(metrics.size() == 2);
  CHECK(metrics[1]->sums().equal(metrics[0]->sums()));
  CHECK(metrics[1]->sums()[1].item<double>() == 10);
  for (const auto& sums : earlier) CHECK(sums[1].item<double>() == 12);  // unchanged by later calls
}

// Repeatedly calls a captured step that runs `within`, and returns the error that a call throws.
std::string error_of_step_with(torch::Device device, const std::function<void()>& within) {
  CapturedStep step(device, [&](const Tensors& batch) {
    within();
    return Tensors{batch[0] * 2};
  });
  return error_of([&] {
    for (int call = 0; call < 6; ++call) step({torch::ones({3}, device)});
  });
}

void check_refused(torch::Device device, const std::function<void()>& within,
                   const std::string& name) {
  INFO(name);
  CHECK_THAT(error_of_step_with(device, within),
             ContainsSubstring("sconce::CapturedStep: expected a step that can be captured, got") &&
                 ContainsSubstring(name));
}

// Tests function calls that a replay cannot repeat.
void check_refusals(torch::Device device) {
  Training training(device);
  lr_scheduler::ReduceLROnPlateau plateau(*training.optimizer);
  lr_scheduler::CosineAnnealingWarmRestarts restarts(*training.optimizer, 4);
  sconce::utils::tensorboard::SummaryWriter writer("/nonexistent/never-written");
  const sconce::data::Batches batches({torch::ones({4, 1}), torch::ones({4})}, {.batch_size = 2});
  sconce::Stopwatch stopwatch;
  const std::string optim = "sconce::optim::lr_scheduler::";
  check_refused(device, [&] { plateau.step(1.0); }, optim + "ReduceLROnPlateau::step");
  check_refused(
      device, [&] { restarts.step(0.5); }, optim + "CosineAnnealingWarmRestarts::step(epoch)");
  check_refused(device, [&] { writer.add_scalar("a", 1.0, 0); }, "SummaryWriter::add_");
  check_refused(device, [&] { batches.begin(); }, "sconce::data::Batches::begin");
  check_refused(device, [] { sconce::seed_everything(0); }, "sconce::seed_everything");
  check_refused(device, [&] { stopwatch.restart(); }, "sconce::Stopwatch::restart");
  sconce::optim::swa_utils::AveragedModel averaged(torch::nn::Linear(1, 1));
  check_refused(
      device, [&] { averaged.update_parameters(averaged.module()); },
      "sconce::optim::swa_utils::AveragedModel::update_parameters");
  const auto state = training.optimizer->state_dict();
  check_refused(
      device, [&] { training.optimizer->load_state_dict(state); },
      "sconce::optim::SGD::load_state_dict");
}

void check_scaler_without_update() {
  Training training(torch::kCPU);
  sconce::amp::GradScaler scaler({.device = torch::kCPU});
  CapturedStep step(torch::kCPU, [&](const Tensors& batch) {
    training.optimizer->zero_grad();
    const auto loss = torch::cross_entropy_loss(training.net->forward(batch[0]), batch[1]);
    scaler.scale(loss).backward();
    scaler.unscale_(*training.optimizer);
    return Tensors{loss};
  });
  const auto train = [&] {
    for (int call = 0; call < 6; ++call) {
      step(batch_of(torch::kCPU, call));
      scaler.step(*training.optimizer);
      scaler.update();
    }
  };
  CHECK_THAT(error_of(train),
             ContainsSubstring("sconce::amp::GradScaler::unscale_ or step "
                               "without a call to update in the same captured step"));
}

}  // namespace

TEST_CASE(
    "on the CPU, a captured step picks up changes to param groups, modes, and parameters between "
    "calls") {
  check_changes(torch::kCPU);
}

TEST_CASE(
    "on a GPU, a captured step picks up changes to param groups, modes, and parameters between "
    "calls",
    "[gpu]") {
  sconce::test::require_gpu();
  check_changes(sconce::gpu());
}

TEST_CASE(
    "on the CPU, each replay of a captured step advances the schedulers and updates the parameter "
    "averages") {
  std::vector<std::unique_ptr<lr_scheduler::ExponentialLR>> schedules;
  std::vector<std::unique_ptr<sconce::optim::ExponentialMovingAverage>> averages;
  const auto prepare = [&](Training& training) {
    auto& schedule = *schedules.emplace_back(
        std::make_unique<lr_scheduler::ExponentialLR>(*training.optimizer, 0.9));
    auto& average = *averages.emplace_back(
        std::make_unique<sconce::optim::ExponentialMovingAverage>(*training.net));
    training.within = [&] {
      schedule.step();
      average.update();
    };
  };
  CHECK(compare(torch::kCPU, nothing, prepare) >= 20);
  REQUIRE(schedules.size() == 2);
  CHECK(schedules[1]->last_epoch() == 30);
  CHECK(schedules[1]->get_last_lr() == schedules[0]->get_last_lr());
  CHECK(averages[1]->n_averaged() == 30);
  const auto expected = averages[0]->state_dict(), found = averages[1]->state_dict();
  for (const auto& average : expected) CHECK(found[average.key()].equal(average.value()));
}

TEST_CASE("on the CPU, each replay of a captured step uses the momentum set by a CyclicLR") {
  std::vector<std::unique_ptr<lr_scheduler::CyclicLR>> schedules;
  const auto prepare = [&](Training& training) {
    auto& schedule = *schedules.emplace_back(std::make_unique<lr_scheduler::CyclicLR>(
        *training.optimizer, 0.01, 0.2, lr_scheduler::CyclicLROptions{.step_size_up = 4}));
    training.within = [&] { schedule.step(); };
  };
  CHECK(compare(torch::kCPU, nothing, prepare) >= 20);
  CHECK(schedules[1]->get_last_lr() == schedules[0]->get_last_lr());
}

TEST_CASE("on the CPU, each replay of a captured step updates its metrics") {
  update_metric_within(torch::kCPU);
}

TEST_CASE("on a GPU, each replay of a captured step updates its metrics", "[gpu]") {
  sconce::test::require_gpu();
  update_metric_within(sconce::gpu());
}

TEST_CASE(
    "on the CPU, a captured step rejects a call that a replay cannot repeat, and the error "
    "identifies the call") {
  check_refusals(torch::kCPU);
  check_scaler_without_update();
}

TEST_CASE(
    "on a GPU, a captured step rejects a call that changes host state, and the error identifies "
    "the call",
    "[gpu]") {
  sconce::test::require_gpu();
  check_refusals(sconce::gpu());
  Training training(sconce::gpu());
  lr_scheduler::ExponentialLR schedule(*training.optimizer, 0.9);
  sconce::optim::ExponentialMovingAverage average(*training.net);
  check_refused(
      sconce::gpu(), [&] { schedule.step(); }, "sconce::optim::lr_scheduler::ExponentialLR::step");
  check_refused(
      sconce::gpu(), [&] { average.update(); }, "sconce::optim::ExponentialMovingAverage::update");
  CHECK(schedule.last_epoch() == 3);  // the warmup steps
}

TEST_CASE("changing a scaler's growth factor between calls takes effect in a captured step") {
  const auto device = sconce::try_gpu();
  Training training(device);
  sconce::amp::GradScaler scaler(
      {.device = device.type(), .init_scale = 1024, .growth_interval = 1});
  CapturedStep step(device, [&](const Tensors& batch) {
    training.optimizer->zero_grad();
    const auto loss = torch::cross_entropy_loss(training.net->forward(batch[0]), batch[1]);
    scaler.scale(loss).backward();
    scaler.step(*training.optimizer);
    scaler.update();
    return Tensors{loss};
  });
  for (int call = 0; call < 8; ++call) step(batch_of(device, call));
  CHECK(step.is_captured());
  const double before = scaler.get_scale();
  scaler.set_growth_factor(4);
  for (int call = 0; call < 6; ++call) step(batch_of(device, call));
  CHECK(scaler.get_scale() == before * 4096);
}

TEST_CASE(
    "a captured step returns the same values as calling its function on a fresh copy of the "
    "batch") {
  const auto device = sconce::try_gpu();
  torch::manual_seed(0);
  const auto rows = torch::randn({40, 7}).to(device);
  const auto weight = torch::randn({7, 5}).to(device);
  const auto function = [&](const Tensors& batch) {
    CHECK(reinterpret_cast<std::uintptr_t>(batch[0].const_data_ptr()) % c10::gAlignment == 0);
    return Tensors{batch[0].matmul(weight).softmax(1), batch[0].sum(), batch[0].exp().mean(0)};
  };
  const auto slice = [&](int call) {
    const auto part = rows.slice(0, call, call + 3);
    return call % 3 == 0 ? part.clone().t().contiguous().t() : part;
  };
  for (const int first : {0, 1}) {  // with other strides, or with another alignment
    CapturedStep step(device, function);
    for (int call = first; call < 30; ++call) {
      INFO("first " << first << ", call " << call);
      auto fresh = torch::empty_like(slice(first)).copy_(slice(call));
      const auto expected = function({fresh});
      const auto found = step({slice(call)});
      for (size_t i = 0; i < found.size(); ++i) CHECK(found[i].equal(expected[i]));
    }
    CHECK(step.is_captured());
  }
}

TEST_CASE("a captured step rejects concurrent and recursive calls") {
  std::promise<void> is_within, may_end;
  bool waits = false;
  std::function<void()> nested;
  CapturedStep step(torch::kCPU, [&](const Tensors& batch) {
    if (nested) nested();
    if (waits) {
      is_within.set_value();
      may_end.get_future().wait();
    }
    return batch;
  });
  const Tensors batch = {torch::ones({2})};
  waits = true;
  auto first = std::async(std::launch::async, [&] { step(batch); });
  is_within.get_future().wait();
  CHECK_THAT(error_of([&] { step(batch); }),
             StartsWith("sconce::CapturedStep: expected one call at a time, got a call during"));
  waits = false;
  may_end.set_value();
  first.get();
  nested = [&] { step(batch); };
  CHECK_THAT(error_of([&] { step(batch); }), StartsWith("sconce::CapturedStep: expected one call"));
  nested = nullptr;
  CHECK(step(batch)[0].equal(batch[0]));
}

}  // namespace captured_step_changes
