#include "sconce/training/stateful.hpp"

#include <torch/torch.h>

#include <cmath>
#include <functional>

#include "catch.hpp"
#include "sconce/optim/adam.hpp"
#include "sconce/optim/ema.hpp"
#include "sconce/optim/lr_scheduler.hpp"
#include "sconce/optim/reduce_lr_on_plateau.hpp"
#include "sconce/optim/sgd.hpp"
#include "sconce/optim/warm_restarts.hpp"
#include "sconce/training/checkpoint.hpp"
#include "support/error_of.hpp"
#include "support/temp_dir.hpp"

using c10::impl::GenericDict;
using Catch::Matchers::ContainsSubstring;
using sconce::Stateful;
using sconce::test::error_of;

namespace {

// A custom loop with one of LibTorch's optimizers. The optimizer has two parameter groups if its
// class supports several groups. The last parameter has no gradient.
template <class Optimizer, class Options>
struct Loop {
  explicit Loop(Options of_all) : options(std::move(of_all)) {}

  std::vector<torch::optim::OptimizerParamGroup> groups() const {
    if (std::is_same_v<Optimizer, torch::optim::LBFGS>) return {net->parameters()};
    auto rest = net->ptr(1)->parameters();
    rest.push_back(unused);
    auto of_rest = std::make_unique<Options>(options);
    of_rest->set_lr(0.05);
    std::vector<torch::optim::OptimizerParamGroup> two;
    two.emplace_back(net->ptr(0)->parameters(), std::make_unique<Options>(options));
    two.emplace_back(rest, std::move(of_rest));
    return two;
  }

  void steps(int count) {
    for (int i = 0; i < count; ++i) {
      const auto x = torch::randn({8, 4});
      optimizer.step([&] {
        optimizer.zero_grad();
        auto loss = (net->forward(x) - x.narrow(1, 0, 2)).square().mean();
        loss.backward();
        return loss;
      });
    }
  }

  sconce::NamedStates parts() { return {{"model", *net}, {"optimizer", optimizer}}; }
  GenericDict state() { return Stateful(optimizer).state_dict().toGenericDict(); }

  Options options;
  torch::nn::Sequential net{torch::nn::Linear(4, 3), torch::nn::Linear(3, 2)};
  torch::Tensor unused = torch::ones({2}, torch::requires_grad());
  Optimizer optimizer{groups(), options};
};

// Compares the parameters and the next random numbers.
template <class L>
void check_equal(const L& a, const std::vector<torch::Tensor>& b, const torch::Tensor& next) {
  for (size_t i = 0; i < b.size(); ++i) CHECK(torch::equal(a.net->parameters()[i], b[i]));
  CHECK(torch::equal(torch::rand({1}), next));
}

template <class L>
std::vector<torch::Tensor> copies(const L& loop) {
  std::vector<torch::Tensor> all;
  for (const auto& parameter : loop.net->parameters()) all.push_back(parameter.detach().clone());
  return all;
}

template <class Optimizer, class Options>
void check_resumed(const Options& options) {
  using Run = Loop<Optimizer, Options>;
  for (const int before : {0, 1, 4}) {
    INFO(c10::demangle(typeid(Optimizer).name()) << " after " << before << " steps");
    const sconce::test::TempDir folder;
    torch::manual_seed(1);
    Run whole(options);
    whole.steps(before);
    sconce::Checkpoint(folder.path()).save(whole.parts(), {});
    whole.steps(3);
    const auto next = torch::rand({1});

    auto other = options;
    other.set_lr(0.9);  // the value in the file takes precedence
    Run resumed(other);
    resumed.steps(1);  // leaves state that is then replaced
    REQUIRE(sconce::Checkpoint(folder.path(), {.resume = true}).load(resumed.parts()));
    resumed.steps(3);
    check_equal(resumed, copies(whole), next);
  }
}

// Corrupts a state with `damage`, and checks that loading rejects the state and leaves the run
// unchanged.
template <class Optimizer, class Options>
void check_refused(const Options& options, const std::string& error,
                   const std::function<void(GenericDict&)>& damage) {
  using Run = Loop<Optimizer, Options>;
  INFO(error);
  torch::manual_seed(1);
  Run other(options);
  other.steps(3);
  auto state = other.state();
  damage(state);
  std::vector<torch::Tensor> undisturbed;
  torch::Tensor next;
  for (const bool is_disturbed : {false, true}) {
    torch::manual_seed(2);
    Run run(options);
    run.steps(2);
    if (is_disturbed) {
      CHECK_THAT(error_of([&] { Stateful(run.optimizer).load_state_dict(state); }),
                 ContainsSubstring(error) && ContainsSubstring("torch::optim::"));
    }
    run.steps(2);
    if (is_disturbed) {
      check_equal(run, undisturbed, next);
    } else {
      undisturbed = copies(run);
      next = torch::rand({1});
    }
  }
}

GenericDict of_parameter(const GenericDict& state, int64_t index) {
  return state.at("state").toGenericDict().at(index).toGenericDict();
}

GenericDict of_group(const GenericDict& state) {
  return state.at("param_groups").toList().get(0).toGenericDict();
}

void remove(GenericDict dict, const c10::IValue& key) {
  REQUIRE(dict.erase(key) == 1);
}

}  // namespace

TEST_CASE("Stateful reads one object's state and loads it into another object") {
  torch::nn::Linear a(2, 1), b(2, 1);
  Stateful(*b).load_state_dict(Stateful(*a).state_dict());
  CHECK(b->weight.equal(a->weight));
  CHECK(Stateful(*a).type().empty());

  sconce::optim::SGD of_a(a->parameters(), 0.1), of_b(b->parameters(), 0.2);
  Stateful(of_b).load_state_dict(Stateful(of_a).state_dict());
  CHECK(of_b.param_groups()[0].options().get_lr() == 0.1);
  CHECK(Stateful(of_a).type() == "SGD");

  sconce::optim::ExponentialMovingAverage averages(*a), others(*b);
  averages.update();
  Stateful(others).load_state_dict(Stateful(averages).state_dict());
  CHECK(others.n_averaged() == 1);

  const Stateful nothing;
  CHECK(nothing.state_dict().isNone());
  CHECK_NOTHROW(nothing.load_state_dict(1));
}

TEST_CASE("a custom loop with a LibTorch optimizer resumes from its checkpoint bit for bit") {
  using namespace torch::optim;
  check_resumed<SGD>(SGDOptions(0.1));
  check_resumed<SGD>(SGDOptions(0.1).momentum(0.9).nesterov(true).weight_decay(0.01));
  check_resumed<Adam>(AdamOptions(0.01).betas({0.8, 0.99}).weight_decay(0.1));
  check_resumed<AdamW>(AdamWOptions(0.01).amsgrad(true));
  check_resumed<RMSprop>(RMSpropOptions(0.01));
  check_resumed<RMSprop>(RMSpropOptions(0.01).momentum(0.9).centered(true));
  check_resumed<Adagrad>(AdagradOptions(0.1).lr_decay(0.1).initial_accumulator_value(0.1));
  check_resumed<LBFGS>(LBFGSOptions(0.1).history_size(3).max_iter(4));
  check_resumed<LBFGS>(LBFGSOptions(1).history_size(5).line_search_fn("strong_wolfe"));
}

TEST_CASE("a LibTorch optimizer rejects a mismatched state and stays unchanged") {
  using namespace torch::optim;
  const auto adam = [](const char* error, const std::function<void(GenericDict&)>& damage) {
    check_refused<Adam>(AdamOptions(0.01).amsgrad(true), error, damage);
  };
  const auto in_state = [](const char* key, const c10::IValue& value) {
    return [=](GenericDict& state) { of_parameter(state, 1).insert_or_assign(key, value); };
  };
  const auto in_group = [](const char* key, const c10::IValue& value) {
    return [=](GenericDict& state) { of_group(state).insert_or_assign(key, value); };
  };
  const auto without = [](const char* key) {
    return [=](GenericDict& state) { remove(of_parameter(state, 1), key); };
  };
  adam("with the key 'state'", [](GenericDict& state) { remove(state, "state"); });
  adam("expected 2 parameter groups, got 1",
       [](GenericDict& state) { state.at("param_groups").toList().pop_back(); });
  adam("expected a group of 2 parameters, got 1",
       [](GenericDict& state) { of_group(state).at("params").toList().pop_back(); });
  adam("'exp_avg' to be of sizes [3]", in_state("exp_avg", torch::zeros({4})));
  adam("expected a tensor for 'exp_avg_sq'", in_state("exp_avg_sq", 1));
  for (const double count : {-1.0, 0.5, std::nan(""), 1e300}) {
    adam("'step' to be a number of steps", in_state("step", count));
  }
  adam("with the key 'exp_avg'", without("exp_avg"));
  adam("with the key 'max_exp_avg_sq'", without("max_exp_avg_sq"));
  adam("Invalid learning rate", in_group("lr", std::nan("")));
  adam("Invalid beta", in_group("betas", std::make_tuple(2.0, 0.9)));
  adam("'maximize' to be false", in_group("maximize", true));
  adam("'decoupled_weight_decay' to be false, as in Adam",
       in_group("decoupled_weight_decay", true));
  check_refused<SGD>(SGDOptions(0.1).momentum(0.9), "'momentum_buffer' to be of sizes [3]",
                     in_state("momentum_buffer", torch::zeros({})));
  check_refused<RMSprop>(RMSpropOptions(0.01).momentum(0.9), "with the key 'momentum_buffer'",
                         without("momentum_buffer"));
  check_refused<Adagrad>(AdagradOptions(0.1), "got no state for parameter 1",
                         [](GenericDict& state) { remove(state.at("state").toGenericDict(), 1); });
  const auto lbfgs = [](const char* error, const char* key, const c10::IValue& value) {
    check_refused<LBFGS>(LBFGSOptions(0.1).history_size(3), error, [&](GenericDict& state) {
      of_parameter(state, 0).insert_or_assign(key, value);
    });
  };
  lbfgs("'d' to be of sizes [23]", "d", torch::zeros({22}));
  lbfgs("expected a tensor for 'H_diag'", "H_diag", {});
  lbfgs("'ro' to be of sizes []", "ro", std::vector<torch::Tensor>(3, torch::zeros({2})));
  lbfgs("'ro' to be as long as 'old_dirs'", "ro", std::vector<torch::Tensor>(2, torch::zeros({})));
  lbfgs("'old_dirs' to be no longer than 'history_size'", "old_dirs",
        std::vector<torch::Tensor>(4, torch::zeros({23})));
  lbfgs("'n_iter' to be at least 0", "n_iter", -1);
}

TEST_CASE("a checkpoint from a different LibTorch optimizer is rejected before anything changes") {
  using namespace torch::optim;
  const sconce::test::TempDir folder;
  Loop<Adam, AdamOptions> saved(AdamOptions(0.01));
  sconce::Checkpoint(folder.path()).save(saved.parts(), {});
  Loop<AdamW, AdamWOptions> other(AdamWOptions(0.01));
  const auto before = copies(other);
  torch::manual_seed(3);
  CHECK_THROWS_WITH(
      sconce::Checkpoint(folder.path(), {.resume = true}).load(other.parts()),
      ContainsSubstring("the class Adam for 'optimizer' (as in the checkpoint), got AdamW"));
  const auto next = torch::rand({1});
  torch::manual_seed(3);
  CHECK(torch::equal(torch::rand({1}), next));
  for (size_t i = 0; i < before.size(); ++i) {
    CHECK(torch::equal(other.net->parameters()[i], before[i]));
  }
}

TEST_CASE("a LibTorch optimizer's state has the same keys and types as in Python") {
  using namespace torch::optim;
  Loop<Adam, AdamOptions> loop(AdamOptions(0.01));
  loop.steps(2);
  const auto state = of_parameter(loop.state(), 0);
  CHECK(state.at("step").toTensor().item<float>() == 2);
  CHECK(state.at("step").toTensor().scalar_type() == torch::kFloat);
  CHECK_FALSE(state.contains("max_exp_avg_sq"));
  CHECK(state.at("exp_avg").toTensor().sizes() == torch::IntArrayRef({3, 4}));

  // A float32 step count cannot be incremented past 2^24. In older PyTorch versions, the step count
  // is not a tensor.
  for (const double count : {16'777'217.0, 3.0}) {
    auto from = loop.state();
    of_parameter(from, 0).insert_or_assign("step", count);
    Stateful(loop.optimizer).load_state_dict(from);
    CHECK(of_parameter(loop.state(), 0).at("step").toTensor().item<double>() == count);
  }
}

TEST_CASE(
    "Stateful rejects an optimizer without a state, and the error names the optimizer's class") {
  struct Own : torch::optim::SGD {
    using SGD::SGD;
  };
  const auto parameters = torch::nn::Linear(2, 1)->parameters();
  Own own(parameters, 0.1);
  CHECK_THROWS_WITH(Stateful(own), ContainsSubstring("Own") &&
                                       ContainsSubstring("torch::optim optimizer (Adagrad"));
  sconce::optim::SGD ours(parameters, 0.1);
  const Stateful state(static_cast<torch::optim::Optimizer&>(ours));
  CHECK(state.type() == "SGD");
  CHECK(state.state_dict().toGenericDict().contains("param_groups"));
}

TEST_CASE(
    "the options of an optimizer or scheduler contain exactly the state that steps leave "
    "unchanged") {
  namespace lr_scheduler = sconce::optim::lr_scheduler;
  const auto text = [](const c10::IValue& value) { return c10::str(value); };
  torch::nn::Linear net(2, 2);
  sconce::optim::AdamW ours(net->parameters(), torch::optim::AdamWOptions(0.1));
  torch::optim::AdamW libtorchs(net->parameters(), torch::optim::AdamWOptions(0.1));
  for (const Stateful& part : {Stateful(ours), Stateful(libtorchs)}) {
    const auto groups = part.state_dict().toGenericDict().at("param_groups");
    CHECK(text(part.options()) == text(groups));
  }

  using Group = lr_scheduler::GroupLRScheduler;
  auto first = std::make_shared<lr_scheduler::ConstantLR>(ours, 0.5, 2);
  auto second = std::make_shared<lr_scheduler::CosineAnnealingWarmRestarts>(ours, 2);
  lr_scheduler::SequentialLR sequence(ours, std::vector<std::shared_ptr<Group>>{first, second},
                                      {3});
  lr_scheduler::ReduceLROnPlateau plateau(ours, {.patience = 1});
  const Stateful of_sequence(sequence), of_plateau(plateau);
  const auto texts = [&] {
    return std::pair(text(of_sequence.options()), text(of_plateau.options()));
  };
  const auto before = texts();
  for (int i = 0; i < 7; ++i) {
    sequence.step();
    plateau.step(1);
  }
  CHECK(texts() == before);
  CHECK_THAT(before.first, ContainsSubstring("T_mult") && ContainsSubstring("_milestones") &&
                               !ContainsSubstring("last_epoch"));
  CHECK_THAT(before.second, ContainsSubstring("patience") && !ContainsSubstring("best"));
  CHECK(Stateful(*net).options().isNone());
}
