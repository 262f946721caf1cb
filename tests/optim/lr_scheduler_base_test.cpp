#include "sconce/optim/lr_scheduler_base.hpp"

#include <functional>
#include <memory>
#include <optional>

#include "catch.hpp"
#include "optim/two_groups.hpp"
#include "sconce/optim/lr_scheduler.hpp"
#include "sconce/optim/sgd.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using namespace sconce::optim::lr_scheduler;
using torch::optim::SGDOptions;

namespace {

torch::optim::SGD make_sgd(double lr) {
  return torch::optim::SGD(std::vector<torch::Tensor>{torch::zeros(1)}, SGDOptions(lr));
}

double lr_of(torch::optim::SGD& optimizer) {
  return optimizer.param_groups()[0].options().get_lr();
}

}  // namespace

TEST_CASE(
    "an optimizer's schedulers share its initial learning rate as long as any of the schedulers "
    "exists") {
  auto optimizer = make_sgd(0.8);
  std::optional<LinearLR> first(std::in_place, optimizer, LinearLROptions{.start_factor = 0.5});
  CHECK(lr_of(optimizer) == 0.4);
  std::optional<LambdaLR> second(std::in_place, optimizer, [](int64_t) { return 1.0; });
  CHECK(lr_of(optimizer) == 0.8);
  first.reset();
  optimizer.param_groups()[0].options().set_lr(0.1);
  const LambdaLR third(optimizer, [](int64_t) { return 0.5; });
  CHECK(lr_of(optimizer) == 0.4);
}

TEST_CASE(
    "an optimizer created at a destroyed optimizer's address does not reuse the destroyed "
    "optimizer's initial learning rate") {
  std::optional<torch::optim::SGD> optimizer(make_sgd(0.8));
  {
    const ExponentialLR scheduler(*optimizer, 0.5);
  }
  optimizer.emplace(make_sgd(0.2));
  const LambdaLR scheduler(*optimizer, [](int64_t) { return 1.0; });
  CHECK(lr_of(*optimizer) == 0.2);
}

TEST_CASE("loading a scheduler's state also restores its options") {
  auto optimizer = make_sgd(0.8);
  StepLR scheduler(optimizer, 3, 0.5);
  scheduler.step();
  scheduler.step();
  StepLR fresh(optimizer, 100, 0.9);
  fresh.load_state_dict(scheduler.state_dict());
  fresh.step();
  CHECK(lr_of(optimizer) == 0.4);
}

TEST_CASE(
    "a scheduler reports last_epoch, and OneCycleLR reports total_steps, before and after loading "
    "a state") {
  auto optimizer = make_sgd(0.8);
  const OneCycleLROptions of_six{.epochs = 2, .steps_per_epoch = 3, .cycle_momentum = false};
  OneCycleLR scheduler(optimizer, 1.0, of_six);
  CHECK(scheduler.total_steps() == 6);
  CHECK(scheduler.last_epoch() == 0);
  scheduler.step();
  scheduler.step();
  CHECK(scheduler.last_epoch() == 2);
  OneCycleLR fresh(optimizer, 1.0, {.total_steps = 9, .cycle_momentum = false});
  CHECK(fresh.total_steps() == 9);
  fresh.load_state_dict(scheduler.state_dict());
  CHECK(fresh.total_steps() == 6);
  CHECK(fresh.last_epoch() == 2);
}

TEST_CASE("a scheduler rejects a mismatched state and stays unchanged") {
  auto optimizer = make_sgd(0.8);
  StepLR scheduler(optimizer, 3, 0.5);
  const auto refused = [&](const char* key, const c10::IValue& value, const std::string& text) {
    auto state = StepLR(optimizer, 4, 0.25).state_dict().toGenericDict();
    (void)state.erase(key);
    if (!value.isNone()) state.insert(key, value);
    CHECK_THROWS_WITH(
        scheduler.load_state_dict(state),
        ContainsSubstring("sconce::optim::lr_scheduler::StepLR::load_state_dict: expected " +
                          text));
    CHECK(scheduler.state_dict() == StepLR(optimizer, 3, 0.5).state_dict());
  };
  refused("_last_lr", {}, "a dict with the key '_last_lr'");
  refused("_last_lr", 3, "a list of length 1 for '_last_lr', got Int");
  const std::string one = " to be a list of 1 to 1 values, one for each parameter group";
  for (const auto& lrs : {std::vector<double>(), std::vector<double>{0.1, 0.2}}) {
    refused("_last_lr", lrs, "'_last_lr'" + one);
    refused("base_lrs", lrs, "'base_lrs'" + one);
  }
  refused("step_size", 0, "'step_size' to be at least 1");
  refused("last_epoch", int64_t{1} << 60, "'last_epoch' to be from -1 to 2^53");
  refused("gamma", "half", "a number for 'gamma', got String");
  refused("last_epoch", 1.5, "an int for 'last_epoch'");
  CHECK_THROWS_WITH(scheduler.load_state_dict(3), ContainsSubstring("expected a dict, got Int"));
}

TEST_CASE("a scheduler loads a Python state whose learning rates are tensors") {
  auto optimizer = make_sgd(0.8);
  StepLR scheduler(optimizer, 3, 0.5);
  const auto state = scheduler.state_dict().toGenericDict();
  for (const char* key : {"_last_lr", "base_lrs"}) {
    c10::impl::GenericList tensors(c10::AnyType::get());
    tensors.push_back(torch::full({}, 0.25));
    state.insert_or_assign(key, tensors);
  }
  scheduler.load_state_dict(state);
  CHECK(scheduler.get_last_lr() == std::vector<double>{0.25});
}

TEST_CASE("a scheduler does not count a step that throws") {
  auto optimizer = make_sgd(0.8);
  const auto lambda = std::make_shared<LambdaLR>(optimizer, [](int64_t) { return 1.0; });
  const auto after = std::make_shared<StepLR>(optimizer, 1, 0.5);
  SequentialLR sequence(optimizer, {lambda, after}, {5});
  sequence.step();
  const std::string before = c10::str(sequence.state_dict());
  optimizer.add_param_group({{torch::zeros(1)}});
  CHECK_THROWS_WITH(sequence.step(), ContainsSubstring("expected the 1 parameter groups"));
  CHECK(c10::str(sequence.state_dict()) == before);
}

TEST_CASE("a scheduler that rejects its arguments leaves the optimizer unchanged") {
  auto optimizer = make_sgd(0.8);
  CHECK_THROWS_AS(OneCycleLR(optimizer, 0.1, {}), c10::Error);
  CHECK_THROWS_AS(ConstantLR(optimizer, 2), c10::Error);
  CHECK_THROWS_WITH(
      OneCycleLR(optimizer, 0.1, {.epochs = int64_t{1} << 40, .steps_per_epoch = 1 << 30}),
      ContainsSubstring("expected at most 2^53 steps"));
  optimizer.param_groups()[0].options().set_lr(0.2);
  const LambdaLR scheduler(optimizer, [](int64_t) { return 1.0; });
  CHECK(lr_of(optimizer) == 0.2);
}

TEST_CASE("if a restart in SequentialLR throws, the restarted scheduler keeps its position") {
  auto optimizer = make_sgd(0.8);
  const auto first = std::make_shared<LambdaLR>(optimizer, [](int64_t) { return 1.0; });
  bool throws = false;
  const auto second = std::make_shared<LambdaLR>(optimizer, [&](int64_t) {
    TORCH_CHECK(!throws, "no factor");
    return 0.5;
  });
  second->step();
  SequentialLR sequence(optimizer, {first, second}, {1});
  const std::string before = c10::str(second->state_dict());
  throws = true;
  CHECK_THROWS_WITH(sequence.step(), ContainsSubstring("no factor"));
  CHECK(c10::str(second->state_dict()) == before);
}

TEST_CASE(
    "a group added later is scheduled unless the scheduler needs the group's initial learning "
    "rate") {
  auto optimizer = make_sgd(0.8);
  StepLR step(optimizer, 1, 0.5);
  LambdaLR lambda(optimizer, [](int64_t) { return 1.0; });
  optimizer.add_param_group({{torch::zeros(1)}});
  step.step();
  CHECK(step.get_last_lr() == std::vector<double>{0.4, 0.4});
  CHECK_THROWS_WITH(lambda.step(),
                    ContainsSubstring("sconce::optim::lr_scheduler::LambdaLR: expected the 1 "
                                      "parameter groups that existed at construction"));
}

TEST_CASE(
    "a run with a parameter group added later can be resumed, whether the group is added before or "
    "after the scheduler is created") {
  using Make = std::function<std::shared_ptr<LRScheduler>(torch::optim::Optimizer&)>;
  const std::vector<Make> makes = {
      [](auto& o) { return std::make_shared<StepLR>(o, 1, 0.5); },
      [](auto& o) { return std::make_shared<MultiStepLR>(o, std::vector<int64_t>{1, 2}, 0.5); },
      [](auto& o) { return std::make_shared<ExponentialLR>(o, 0.5); },
      [](auto& o) { return std::make_shared<CosineAnnealingLR>(o, 10); },
      [](auto& o) { return std::make_shared<ConstantLR>(o, 0.5, 2); },
      [](auto& o) { return std::make_shared<PolynomialLR>(o, 10); },
      [](auto& o) { return std::make_shared<LinearLR>(o); },
      [](auto& o) {
        const std::vector<std::shared_ptr<GroupLRScheduler>> turns = {
            std::make_shared<StepLR>(o, 1, 0.5), std::make_shared<StepLR>(o, 1, 0.5)};
        return std::make_shared<SequentialLR>(o, turns, std::vector<int64_t>{9});
      }};
  const auto make_sgd_of_ours = [] {
    return sconce::optim::SGD({torch::zeros(1)}, SGDOptions(0.8));
  };
  for (size_t i = 0; i < makes.size(); ++i) {
    for (const bool steps_after : {true, false}) {
      auto run = make_sgd_of_ours();
      const auto scheduler = makes[i](run);
      run.add_param_group({{torch::zeros(1)}});
      if (steps_after) scheduler->step();
      const auto optimizer_state = run.state_dict();
      const auto state = scheduler->state_dict();
      scheduler->step();
      for (const bool adds_first : {false, true}) {
        INFO("scheduler " << i << ", stepped: " << steps_after << ", added first: " << adds_first);
        auto resumed = make_sgd_of_ours();
        if (adds_first) resumed.add_param_group({{torch::zeros(1)}});
        const auto fresh = makes[i](resumed);
        if (!adds_first) resumed.add_param_group({{torch::zeros(1)}});
        resumed.load_state_dict(optimizer_state);
        fresh->load_state_dict(state);
        CHECK(c10::str(fresh->state_dict()) == c10::str(state));
        fresh->step();
        CHECK(fresh->get_last_lr().size() == 2);
        CHECK(fresh->get_last_lr() == scheduler->get_last_lr());
      }
    }
  }
}

TEST_CASE(
    "LambdaLR and OneCycleLR reject a group added after construction, even after they load a state "
    "that includes the group") {
  const LambdaLR::Function one = [](int64_t) { return 1.0; };
  const OneCycleLROptions of_six{.total_steps = 6, .cycle_momentum = false};
  auto run = make_sgd(0.8);
  run.add_param_group({{torch::zeros(1)}});
  const LambdaLR lambda(run, one);
  const OneCycleLR cycle(run, 1.0, of_six);
  auto resumed = make_sgd(0.8);
  LambdaLR fresh_lambda(resumed, one);
  OneCycleLR fresh_cycle(resumed, 1.0, of_six);
  resumed.add_param_group({{torch::zeros(1)}});
  fresh_lambda.load_state_dict(lambda.state_dict());
  fresh_cycle.load_state_dict(cycle.state_dict());
  CHECK_THROWS_WITH(fresh_lambda.step(),
                    ContainsSubstring("sconce::optim::lr_scheduler::LambdaLR: expected the 1 "
                                      "parameter groups that existed at construction"));
  CHECK_THROWS_WITH(fresh_cycle.step(),
                    ContainsSubstring("sconce::optim::lr_scheduler::OneCycleLR: expected the 1 "
                                      "parameter groups that existed at construction"));
}

TEST_CASE("SequentialLR can be constructed after parameter groups were added or removed") {
  sconce::optim::SGD optimizer({torch::zeros(1)}, SGDOptions(0.8));
  const auto first = std::make_shared<StepLR>(optimizer, 1, 0.5);
  const auto second = std::make_shared<StepLR>(optimizer, 1, 0.5);
  optimizer.add_param_group({{torch::zeros(1)}});
  optimizer.load_state_dict(optimizer.state_dict());  // the group is included, without values
  SequentialLR sequence(optimizer, {first, second}, {5});
  sequence.step();
  CHECK(sequence.get_last_lr() == std::vector<double>{0.4, 0.4});
  auto fewer = sconce::test::sgd_of_two_groups();
  const auto only = std::make_shared<StepLR>(fewer, 1, 0.5);
  fewer.param_groups().pop_back();
  const SequentialLR of_one(fewer, {only}, {});
  CHECK(of_one.get_last_lr() == std::vector<double>{0.1});
}

TEST_CASE(
    "a scheduler throws if its optimizer was moved from, and cannot be built from a temporary "
    "optimizer") {
  STATIC_CHECK_FALSE(std::is_constructible_v<StepLR, torch::optim::SGD, int64_t>);
  STATIC_CHECK_FALSE(std::is_constructible_v<ReduceLROnPlateau, torch::optim::SGD>);
  auto optimizer = make_sgd(0.1);
  StepLR schedule(optimizer, 1);
  ReduceLROnPlateau plateau(optimizer);
  const auto elsewhere = std::move(optimizer);
  const auto expected =
      ContainsSubstring("expected an optimizer with parameter groups, got an empty");
  CHECK_THROWS_WITH(schedule.step(),
                    StartsWith("sconce::optim::lr_scheduler::StepLR: ") && expected);
  CHECK_THROWS_WITH(plateau.step(1), expected);
}
