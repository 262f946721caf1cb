#include "sconce/optim/lr_scheduler.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <random>
#include <sstream>

#include "catch.hpp"
#include "optim/two_groups.hpp"
#include "sconce/io/torch_file.hpp"
#include "sconce/optim/adam.hpp"
#include "sconce/optim/nadam.hpp"
#include "sconce/optim/sgd.hpp"
#include "sconce/optim/swa_utils.hpp"
#include "support/ask_python.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace sconce::optim::lr_scheduler;
using sconce::optim::MetricMode;
using sconce::optim::swa_utils::SWALR;
using sconce::optim::swa_utils::SWALROptions;
using sconce::test::TempDir;
using sconce::test::two_groups;
using torch::optim::Optimizer;

namespace {

constexpr int steps = 200;
constexpr int middle = 100;

using Schedulers = std::vector<std::shared_ptr<Scheduler>>;

// An optimizer and its schedulers, written in both Python and C++.
struct Example {
  std::string python;  // as in reference/lr_scheduler.py
  std::function<Schedulers(Optimizer&)> make;
};

std::shared_ptr<Optimizer> make_optimizer(const std::string& kind) {
  using namespace torch::optim;
  std::shared_ptr<Optimizer> made;
  if (kind == "SGD")
    made = std::make_shared<torch::optim::SGD>(two_groups(), SGDOptions(1).momentum(0.9));
  if (kind == "RMSprop") {
    made = std::make_shared<torch::optim::RMSprop>(two_groups(), RMSpropOptions().momentum(0.9));
  }
  if (kind == "Adam") made = std::make_shared<torch::optim::Adam>(two_groups());
  if (kind == "AdamW") made = std::make_shared<torch::optim::AdamW>(two_groups());
  if (kind == "Adagrad") made = std::make_shared<torch::optim::Adagrad>(two_groups());
  if (kind == "NAdam") made = std::make_shared<sconce::optim::NAdam>(two_groups());
  REQUIRE(made);
  made->param_groups()[0].options().set_lr(0.1);
  made->param_groups()[1].options().set_lr(0.003);
  return made;
}

double momentum(const torch::optim::OptimizerOptions& options) {
  using namespace torch::optim;
  if (const auto* sgd = dynamic_cast<const SGDOptions*>(&options)) return sgd->momentum();
  if (const auto* rms = dynamic_cast<const RMSpropOptions*>(&options)) return rms->momentum();
  if (const auto* adam = dynamic_cast<const AdamOptions*>(&options)) {
    return std::get<0>(adam->betas());
  }
  if (const auto* adamw = dynamic_cast<const AdamWOptions*>(&options)) {
    return std::get<0>(adamw->betas());
  }
  if (const auto* nadam = dynamic_cast<const sconce::optim::NAdamOptions*>(&options)) {
    return std::get<0>(nadam->betas());
  }
  return 0;
}

double metric(int i) {
  return (i * 37 % 101 + 400 / (i + 1)) / 16.0 - 3.0;
}

void step(const Schedulers& schedulers, int i) {
  for (const auto& scheduler : schedulers) {
    if (auto* plateau = dynamic_cast<ReduceLROnPlateau*>(scheduler.get())) plateau->step(metric(i));
    if (auto* other = dynamic_cast<LRScheduler*>(scheduler.get())) other->step();
  }
}

std::vector<double> numbers(Optimizer& optimizer, const Schedulers& schedulers) {
  std::vector<double> all;
  for (auto& group : optimizer.param_groups()) all.push_back(group.options().get_lr());
  for (auto& group : optimizer.param_groups()) all.push_back(momentum(group.options()));
  for (const auto& scheduler : schedulers) {
    for (const double lr : scheduler->get_last_lr()) all.push_back(lr);
  }
  return all;
}

// The scheduled values at each step. The list is shorter if a scheduler throws an exception.
using Curve = std::vector<std::vector<double>>;

std::string kind_of(const Example& example) {
  return example.python.substr(0, example.python.find('|'));
}

// Creates a new optimizer with new schedulers that load state from the existing schedulers.
Schedulers resume(const Example& example, std::shared_ptr<Optimizer>& optimizer,
                  const std::vector<c10::IValue>& states) {
  const auto fresh = make_optimizer(kind_of(example));
  auto schedulers = example.make(*fresh);
  for (size_t i = 0; i < 2; ++i) {  // like loading the optimizer's state
    fresh->param_groups()[i].set_options(optimizer->param_groups()[i].options().clone());
  }
  for (size_t i = 0; i < schedulers.size(); ++i) schedulers[i]->load_state_dict(states.at(i));
  optimizer = fresh;
  return schedulers;
}

std::vector<c10::IValue> states_of(const Schedulers& schedulers) {
  std::vector<c10::IValue> states;
  for (const auto& scheduler : schedulers) states.push_back(scheduler->state_dict());
  return states;
}

enum class Interrupted { no, yes };

Curve curve(const Example& example, Interrupted interrupted) {
  auto optimizer = make_optimizer(kind_of(example));
  Curve all;
  try {
    auto schedulers = example.make(*optimizer);
    all.push_back(numbers(*optimizer, schedulers));
    for (int i = 1; i <= steps; ++i) {
      step(schedulers, i);
      all.push_back(numbers(*optimizer, schedulers));
      if (interrupted == Interrupted::yes && i == middle) {
        auto old = optimizer;  // outlives its schedulers
        schedulers = resume(example, optimizer, states_of(schedulers));
      }
    }
  } catch (const c10::ValueError&) {
  }
  return all;
}

// Reads the curve for the next case from the Python output.
Curve read_curve(std::istream& answer) {
  Curve all;
  std::string line;
  while (answer.peek() != 'c' && std::getline(answer, line) && line != "raised") {
    std::istringstream words(line);
    all.emplace_back();
    for (std::string word; words >> word;) {
      all.back().push_back(std::strtod(word.c_str(), nullptr));
    }
  }
  std::getline(answer, line);
  return all;
}

double relative_difference(double a, double b) {
  return a == b ? 0 : std::abs(a - b) / std::max(std::abs(a), std::abs(b));
}

void check_equal(const Curve& ours, const Curve& theirs) {
  REQUIRE(ours.size() == theirs.size());
  double largest = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    REQUIRE(ours[i].size() == theirs[i].size());
    for (size_t j = 0; j < ours[i].size(); ++j) {
      largest = std::max(largest, relative_difference(ours[i][j], theirs[i][j]));
    }
  }
  CHECK(largest <= 1e-12);
}

std::string text(double value) {
  char digits[40];
  std::snprintf(digits, sizeof digits, "%.17g", value);
  return digits;
}

template <class S, class... Args>
std::shared_ptr<S> make(Optimizer& optimizer, Args&&... args) {
  return std::make_shared<S>(optimizer, std::forward<Args>(args)...);
}

std::vector<Example> step_cases() {
  std::vector<Example> cases = {
      {"SGD|LambdaLR(o, lambda e: 0.95 ** e)",
       [](Optimizer& o) {
         return Schedulers{make<LambdaLR>(o, [](int64_t e) { return std::pow(0.95, e); })};
       }},
      {"Adagrad|LambdaLR(o, [lambda e: 1 / (e + 1), lambda e: e // 30])",
       [](Optimizer& o) {
         return Schedulers{std::make_shared<LambdaLR>(
             o, PerGroup<LambdaLR::Function>{
                    [](int64_t e) { return 1 / (static_cast<double>(e) + 1); },
                    [](int64_t e) { return static_cast<double>(e / 30); }})};
       }},
      {"SGD|StepLR(o, 9)", [](Optimizer& o) { return Schedulers{make<StepLR>(o, 9)}; }},
      {"SGD|MultiStepLR(o, [8])",
       [](Optimizer& o) { return Schedulers{make<MultiStepLR>(o, std::vector<int64_t>{8})}; }}};
  for (const double gamma : {0.5, 0.999, 1.0, 1.01}) {
    cases.push_back({"SGD|ExponentialLR(o, " + text(gamma) + ")",
                     [=](Optimizer& o) { return Schedulers{make<ExponentialLR>(o, gamma)}; }});
    for (const int64_t size : {1, 7, 150}) {
      cases.push_back({c10::str("Adam|StepLR(o, ", size, ", ", text(gamma), ")"),
                       [=](Optimizer& o) { return Schedulers{make<StepLR>(o, size, gamma)}; }});
    }
    for (const std::vector<int64_t>& milestones :
         {std::vector<int64_t>{}, {30, 80}, {120, 80, 30, 80}, {0, 0, 5, 300}}) {
      cases.push_back(
          {c10::str("SGD|MultiStepLR(o, [", c10::Join(", ", milestones), "], ", text(gamma), ")"),
           [=](Optimizer& o) { return Schedulers{make<MultiStepLR>(o, milestones, gamma)}; }});
    }
  }
  return cases;
}

std::vector<Example> smooth_cases() {
  std::vector<Example> cases = {
      {"SGD|CosineAnnealingLR(o, 20)",
       [](Optimizer& o) { return Schedulers{make<CosineAnnealingLR>(o, 20)}; }},
      {"SGD|LinearLR(o)", [](Optimizer& o) { return Schedulers{make<LinearLR>(o)}; }}};
  for (const int64_t T_max : {1, 2, 3, 10, 33, 200, 500}) {
    for (const double eta_min : {0.0, 1e-4, 0.05}) {
      cases.push_back(
          {c10::str("AdamW|CosineAnnealingLR(o, ", T_max, ", ", text(eta_min), ")"),
           [=](Optimizer& o) { return Schedulers{make<CosineAnnealingLR>(o, T_max, eta_min)}; }});
    }
  }
  for (const double start : {0.01, 1.0}) {
    for (const double end : {0.0, 0.3, 1.0}) {
      for (const int64_t iters : {0, 1, 30, 150, 1000}) {
        cases.push_back(
            {c10::str("RMSprop|LinearLR(o, ", start, ", ", end, ", ", iters, ")"),
             [=](Optimizer& o) {
               return Schedulers{make<LinearLR>(
                   o, LinearLROptions{
                          .start_factor = start, .end_factor = end, .total_iters = iters})};
             }});
      }
    }
  }
  return cases;
}

std::vector<Example> restarting_and_short_cases() {
  std::vector<Example> cases = {
      {"SGD|ConstantLR(o)", [](Optimizer& o) { return Schedulers{make<ConstantLR>(o)}; }},
      {"SGD|PolynomialLR(o)", [](Optimizer& o) { return Schedulers{make<PolynomialLR>(o)}; }}};
  for (const int64_t T_0 : {1, 2, 7, 40, 300}) {
    for (const int64_t T_mult : {1, 2, 3}) {
      for (const double eta_min : {0.0, 0.02}) {
        cases.push_back({c10::str("AdamW|CosineAnnealingWarmRestarts(o, ", T_0, ", ", T_mult, ", ",
                                  text(eta_min), ")"),
                         [=](Optimizer& o) {
                           return Schedulers{
                               make<CosineAnnealingWarmRestarts>(o, T_0, T_mult, eta_min)};
                         }});
      }
    }
  }
  for (const int64_t iters : {0, 1, 30, 150, 1000}) {
    for (const double factor : {0.1, 0.75, 1.0}) {
      cases.push_back(
          {c10::str("RMSprop|ConstantLR(o, ", text(factor), ", ", iters, ")"),
           [=](Optimizer& o) { return Schedulers{make<ConstantLR>(o, factor, iters)}; }});
    }
    for (const double power : {0.0, 0.5, 1.0, 2.5}) {
      cases.push_back(
          {c10::str("Adam|PolynomialLR(o, ", iters, ", ", text(power), ")"),
           [=](Optimizer& o) { return Schedulers{make<PolynomialLR>(o, iters, power)}; }});
    }
  }
  return cases;
}

std::vector<Example> one_cycle_cases() {
  std::vector<Example> cases = {
      {"SGD|OneCycleLR(o, [0.1, 0.2], epochs=30, steps_per_epoch=7, base_momentum=[0.5, 0.6], "
       "max_momentum=[0.9, 0.8], div_factor=10, final_div_factor=100)",
       [](Optimizer& o) {
         return Schedulers{make<OneCycleLR>(o, PerGroup<double>{0.1, 0.2},
                                            OneCycleLROptions{.epochs = 30,
                                                              .steps_per_epoch = 7,
                                                              .base_momentum = {0.5, 0.6},
                                                              .max_momentum = {0.9, 0.8},
                                                              .div_factor = 10,
                                                              .final_div_factor = 100})};
       }},
      {"NAdam|OneCycleLR(o, 0.1, 201)",
       [](Optimizer& o) {
         return Schedulers{make<OneCycleLR>(o, 0.1, OneCycleLROptions{.total_steps = 201})};
       }},
      {"Adagrad|OneCycleLR(o, 0.1, 201, cycle_momentum=False)", [](Optimizer& o) {
         return Schedulers{make<OneCycleLR>(
             o, 0.1, OneCycleLROptions{.total_steps = 201, .cycle_momentum = false})};
       }}};
  for (const char* kind : {"SGD", "RMSprop", "Adam", "AdamW"}) {
    for (const auto strategy : {AnnealStrategy::cos, AnnealStrategy::linear}) {
      for (const bool three_phase : {false, true}) {
        for (const double pct : {0.0, 0.1, 0.3, 0.45, 1.0}) {
          for (const int64_t total : {10, 150, 500}) {  // one of them has an empty phase
            cases.push_back(
                {c10::str(kind, "|OneCycleLR(o, 0.1, ", total, ", pct_start=", text(pct),
                          pct == 0 || pct == 1 ? ".0" : "", ", anneal_strategy='",
                          strategy == AnnealStrategy::cos ? "cos" : "linear",
                          "', three_phase=", three_phase ? "True" : "False", ")"),
                 [=](Optimizer& o) {
                   return Schedulers{
                       make<OneCycleLR>(o, 0.1,
                                        OneCycleLROptions{.total_steps = total,
                                                          .pct_start = pct,
                                                          .anneal_strategy = strategy,
                                                          .three_phase = three_phase})};
                 }});
          }
        }
      }
    }
  }
  return cases;
}

std::vector<Example> plateau_cases() {
  std::vector<Example> cases = {
      {"SGD|ReduceLROnPlateau(o)",
       [](Optimizer& o) { return Schedulers{make<ReduceLROnPlateau>(o)}; }},
      {"SGD|ReduceLROnPlateau(o, patience=0, factor=0.7, min_lr=[0.01, 0.001], eps=1e-3)",
       [](Optimizer& o) {
         return Schedulers{make<ReduceLROnPlateau>(
             o, ReduceLROnPlateauOptions{
                    .factor = 0.7, .patience = 0, .min_lr = {0.01, 0.001}, .eps = 1e-3})};
       }}};
  for (const auto mode : {MetricMode::min, MetricMode::max}) {
    for (const auto threshold_mode : {ThresholdMode::rel, ThresholdMode::abs}) {
      for (const double threshold : {0.0, 0.3}) {
        for (const int64_t patience : {0, 4}) {
          for (const int64_t cooldown : {0, 6}) {
            cases.push_back(
                {c10::str("Adam|ReduceLROnPlateau(o, '", mode == MetricMode::min ? "min" : "max",
                          "', 0.9, ", patience, ", ", text(threshold), ", '",
                          threshold_mode == ThresholdMode::rel ? "rel" : "abs", "', ", cooldown,
                          ", 1e-4)"),
                 [=](Optimizer& o) {
                   return Schedulers{make<ReduceLROnPlateau>(
                       o, ReduceLROnPlateauOptions{.mode = mode,
                                                   .factor = 0.9,
                                                   .patience = patience,
                                                   .threshold = threshold,
                                                   .threshold_mode = threshold_mode,
                                                   .cooldown = cooldown,
                                                   .min_lr = 1e-4})};
                 }});
          }
        }
      }
    }
  }
  return cases;
}

// Returns cases in which one optimizer has several schedulers. In each case, either all schedulers
// are stepped in every step, one after another, or a SequentialLR activates one scheduler at a
// time.
std::vector<Example> combined_cases() {
  using List = std::vector<std::shared_ptr<GroupLRScheduler>>;
  using Numbers = std::vector<int64_t>;
  const auto by_turns = [](Optimizer& o, List list, const Numbers& milestones) {
    return Schedulers{make<SequentialLR>(o, std::move(list), milestones)};
  };
  const std::string one_cycle = "OneCycleLR(o, 0.2, 130)";
  const auto make_one_cycle = [](Optimizer& o) {
    return make<OneCycleLR>(o, 0.2, OneCycleLROptions{.total_steps = 130});
  };
  return {
      {"SGD|LinearLR(o)|ExponentialLR(o, 0.99)",
       [](Optimizer& o) { return Schedulers{make<LinearLR>(o), make<ExponentialLR>(o, 0.99)}; }},
      {"AdamW|StepLR(o, 30)|CosineAnnealingLR(o, 25, 1e-5)|ReduceLROnPlateau(o)",
       [](Optimizer& o) {
         return Schedulers{make<StepLR>(o, 30), make<CosineAnnealingLR>(o, 25, 1e-5),
                           make<ReduceLROnPlateau>(o)};
       }},
      {"SGD|SequentialLR(o, [LinearLR(o), ExponentialLR(o, 0.98)], [20])",
       [=](Optimizer& o) {
         return by_turns(o, List{make<LinearLR>(o), make<ExponentialLR>(o, 0.98)}, {20});
       }},
      {"Adam|SequentialLR(o, [LinearLR(o, 0.1, 1.0, 10), CosineAnnealingLR(o, 50), "
       "StepLR(o, 9, 0.9)], [10, 120])",
       [=](Optimizer& o) {
         return by_turns(o,
                         List{make<LinearLR>(o, LinearLROptions{.start_factor = 0.1,
                                                                .end_factor = 1.0,
                                                                .total_iters = 10}),
                              make<CosineAnnealingLR>(o, 50), make<StepLR>(o, 9, 0.9)},
                         {10, 120});
       }},
      {"SGD|SequentialLR(o, [ExponentialLR(o, 0.9), MultiStepLR(o, [0, 40, 70]), LinearLR(o), "
       "LambdaLR(o, lambda e: 0.99 ** e)], [30, 130, 130])",
       [=](Optimizer& o) {
         return by_turns(o,
                         List{make<ExponentialLR>(o, 0.9), make<MultiStepLR>(o, Numbers{0, 40, 70}),
                              make<LinearLR>(o),
                              make<LambdaLR>(o, [](int64_t e) { return std::pow(0.99, e); })},
                         {30, 130, 130});
       }},
      {"SGD|SequentialLR(o, [LambdaLR(o, lambda e: 1.0), LinearLR(o, 0.5), " + one_cycle +
           "], [50, 90])",
       [=](Optimizer& o) {
         return by_turns(
             o,
             List{make<LambdaLR>(o, [](int64_t) { return 1.0; }),
                  make<LinearLR>(o, LinearLROptions{.start_factor = 0.5}), make_one_cycle(o)},
             {50, 90});
       }},
      {"SGD|SequentialLR(o, [OneCycleLR(o, 0.2, 130, base_momentum=0.5, max_momentum=0.7), "
       "OneCycleLR(o, 0.1, 90, cycle_momentum=False)], [120])",
       [=](Optimizer& o) {
         const auto first = make<OneCycleLR>(
             o, 0.2,
             OneCycleLROptions{.total_steps = 130, .base_momentum = 0.5, .max_momentum = 0.7});
         const auto second = make<OneCycleLR>(
             o, 0.1, OneCycleLROptions{.total_steps = 90, .cycle_momentum = false});
         return by_turns(o, List{first, second}, {120});
       }},
      {"SGD|SequentialLR(o, [ConstantLR(o, 0.5, 9), CosineAnnealingWarmRestarts(o, 15, 2), "
       "PolynomialLR(o, 40, 2.0)], [20, 110])",
       [=](Optimizer& o) {
         return by_turns(
             o,
             List{make<ConstantLR>(o, 0.5, 9), make<CosineAnnealingWarmRestarts>(o, 15, 2),
                  make<PolynomialLR>(o, 40, 2.0)},
             {20, 110});
       }},
      {"SGD|SequentialLR(o, [CosineAnnealingWarmRestarts(o, 4, 3), ConstantLR(o)], [37])",
       [=](Optimizer& o) {
         return by_turns(o, List{make<CosineAnnealingWarmRestarts>(o, 4, 3), make<ConstantLR>(o)},
                         {37});
       }},
      {"SGD|SequentialLR(o, [ExponentialLR(o, 0.9)], [])|StepLR(o, 11)", [=](Optimizer& o) {
         auto both = by_turns(o, List{make<ExponentialLR>(o, 0.9)}, {});
         both.push_back(make<StepLR>(o, 11));
         return both;
       }}};
}

std::shared_ptr<sconce::optim::Optimizer> make_ours(const std::string& kind) {
  using namespace torch::optim;
  std::shared_ptr<sconce::optim::Optimizer> made;
  if (kind == "SGD") {
    made = std::make_shared<sconce::optim::SGD>(two_groups(), SGDOptions(1).momentum(0.9));
  }
  if (kind == "Adam") made = std::make_shared<sconce::optim::Adam>(two_groups());
  if (kind == "AdamW") made = std::make_shared<sconce::optim::AdamW>(two_groups());
  REQUIRE(made);
  made->param_groups()[0].options().set_lr(0.1);
  made->param_groups()[1].options().set_lr(0.003);
  return made;
}

// Returns pairs of cycles. In each pair, the second cycle replaces the first cycle and has the same
// length but different values.
std::vector<std::pair<Example, Example>> pairs_of_cycles() {
  std::vector<std::pair<Example, Example>> all;
  for (const char* kind : {"SGD", "Adam", "AdamW"}) {
    for (const bool three_phase : {false, true}) {
      for (const bool momentum : {false, true}) {
        const auto words = c10::str(", 250, three_phase=", three_phase ? "True" : "False",
                                    ", cycle_momentum=", momentum ? "True" : "False");
        const OneCycleLROptions options = {
            .total_steps = 250, .cycle_momentum = momentum, .three_phase = three_phase};
        auto others = options;
        others.base_momentum = 0.3;
        others.max_momentum = {0.6, 0.7};
        others.div_factor = 3;
        others.final_div_factor = 7;
        all.push_back(
            {{c10::str(kind, "|OneCycleLR(o, [0.1, 0.2]", words, ")"),
              [=](Optimizer& o) {
                return Schedulers{make<OneCycleLR>(o, PerGroup<double>{0.1, 0.2}, options)};
              }},
             {c10::str(kind, "|OneCycleLR(o, 5.0", words, ", base_momentum=0.3, ",
                       "max_momentum=[0.6, 0.7], div_factor=3, final_div_factor=7)"),
              [=](Optimizer& o) { return Schedulers{make<OneCycleLR>(o, 5.0, others)}; }}});
      }
    }
  }
  return all;
}

// A schedule with random arguments, written in both Python and C++.
template <class Base>
struct Piece {
  std::string python = {};
  std::function<std::shared_ptr<Base>(Optimizer&)> make = {};
};

template <class S, class... Args>
Piece<GroupLRScheduler> piece(const std::string& python, Args... args) {
  return {python, [=](Optimizer& o) { return std::make_shared<S>(o, args...); }};
}

int64_t number_below(std::mt19937& dice, uint32_t limit) {
  return dice() % limit;
}

Piece<GroupLRScheduler> draw_multiplicative(std::mt19937& dice) {
  const auto of_group = [&dice] { return 1 - static_cast<double>(number_below(dice, 40)) / 512; };
  const double a = of_group(), b = of_group();
  const int64_t pause = 1 + number_below(dice, 9);
  const auto factor = [pause](double other) {
    return [=](int64_t e) { return e % pause == 0 ? 1.0 : other; };
  };
  const auto python = [&](double other) {
    return c10::str("lambda e: 1.0 if e % ", pause, " == 0 else ", text(other));
  };
  if (number_below(dice, 2) == 0) {
    return piece<MultiplicativeLR>("MultiplicativeLR(o, " + python(a) + ")", factor(a));
  }
  return piece<MultiplicativeLR>("MultiplicativeLR(o, [" + python(a) + ", " + python(b) + "])",
                                 PerGroup<MultiplicativeLR::Function>{factor(a), factor(b)});
}

Piece<GroupLRScheduler> draw_cyclic(std::mt19937& dice) {
  const auto share = [&dice] { return static_cast<double>(1 + number_below(dice, 63)) / 64; };
  static const std::array modes = {"triangular", "triangular2", "exp_range"};
  const auto flag = [](bool value) { return value ? "True" : "False"; };
  const double base = share() / 8, first = share(), second = share(), gamma = 1 - share() / 32;
  const double low = share() / 2, high = share();
  CyclicLROptions options = {.step_size_up = 1 + number_below(dice, 30),
                             .mode = static_cast<CyclicMode>(number_below(dice, 3)),
                             .gamma = gamma,
                             .scale_mode = static_cast<ScaleMode>(number_below(dice, 2)),
                             .cycle_momentum = number_below(dice, 2) == 0,
                             .base_momentum = {low, high},
                             .max_momentum = high};
  if (number_below(dice, 2) == 0) options.step_size_down = number_below(dice, 30);
  const bool is_custom = number_below(dice, 3) == 0;
  if (is_custom)
    options.scale_fn = [gamma](int64_t x) { return 1 / (gamma * static_cast<double>(x) + 1); };
  const auto python = c10::str(
      "CyclicLR(o, ", text(base), ", [", text(first), ", ", text(second), "], ",
      options.step_size_up, ", ",
      options.step_size_down ? std::to_string(*options.step_size_down) : "None", ", '",
      modes[static_cast<size_t>(options.mode)], "', ", text(gamma), ", ",
      is_custom ? "lambda x: 1 / (" + text(gamma) + " * x + 1)" : "None", ", '",
      options.scale_mode == ScaleMode::cycle ? "cycle" : "iterations", "', ",
      flag(options.cycle_momentum), ", [", text(low), ", ", text(high), "], ", text(high), ")");
  return {python, [=](Optimizer& o) {
            return std::make_shared<CyclicLR>(o, base, PerGroup<double>{first, second}, options);
          }};
}

Piece<GroupLRScheduler> draw_swa(std::mt19937& dice) {
  const double lr = static_cast<double>(1 + number_below(dice, 63)) / 256, other = lr / 4;
  const bool is_linear = number_below(dice, 2) == 0, is_list = number_below(dice, 2) == 0;
  const SWALROptions options = {
      .anneal_epochs = number_below(dice, 40),
      .anneal_strategy = is_linear ? AnnealStrategy::linear : AnnealStrategy::cos};
  const auto lrs = is_list ? PerGroup<double>{lr, other} : PerGroup<double>(lr);
  return piece<SWALR>(
      c10::str("SWALR(o, ", is_list ? "[" + text(lr) + ", " + text(other) + "]" : text(lr), ", ",
               options.anneal_epochs, ", '", is_linear ? "linear" : "cos", "')"),
      lrs, options);
}

// Draws schedules with the given function. Each schedule is used alone or as the first or second
// scheduler of a SequentialLR.
std::vector<Example> draw_alone_and_by_turns(Piece<GroupLRScheduler> (*draw)(std::mt19937&),
                                             uint32_t count) {
  static const std::array kinds = {"SGD", "RMSprop", "Adam", "AdamW", "NAdam"};
  std::vector<Example> all;
  for (uint32_t seed = 0; seed < count; ++seed) {
    std::mt19937 dice(seed);
    const std::string kind = kinds[seed % kinds.size()];
    const auto one = draw(dice);
    const auto other = piece<ExponentialLR>("ExponentialLR(o, 0.96875)", 0.96875);
    const int64_t milestone = number_below(dice, 90);
    if (seed % 3 == 0) {
      all.push_back(
          {kind + "|" + one.python, [=](Optimizer& o) { return Schedulers{one.make(o)}; }});
      continue;
    }
    const auto& begin = seed % 3 == 1 ? one : other;
    const auto& end = seed % 3 == 1 ? other : one;
    all.push_back({c10::str(kind, "|SequentialLR(o, [", begin.python, ", ", end.python, "], [",
                            milestone, "])"),
                   [=](Optimizer& o) {
                     const auto first = begin.make(o);
                     return Schedulers{std::make_shared<SequentialLR>(
                         o, std::vector{first, end.make(o)}, std::vector{milestone})};
                   }});
  }
  return all;
}

std::vector<Example> cyclic_multiplicative_and_swa_cases(uint32_t count) {
  std::vector<Example> all = {
      {"SGD|CyclicLR(o, 0.01, 0.1)",
       [](Optimizer& o) { return Schedulers{make<CyclicLR>(o, 0.01, 0.1)}; }},
      {"Adagrad|CyclicLR(o, 0.01, 0.1, 7, cycle_momentum=False)",
       [](Optimizer& o) {
         return Schedulers{make<CyclicLR>(
             o, 0.01, 0.1, CyclicLROptions{.step_size_up = 7, .cycle_momentum = false})};
       }},
      {"SGD|SWALR(o, 0.05)", [](Optimizer& o) { return Schedulers{make<SWALR>(o, 0.05)}; }},
      {"SGD|LinearLR(o)|SWALR(o, 0.05, 30)", [](Optimizer& o) {
         return Schedulers{make<LinearLR>(o),
                           make<SWALR>(o, 0.05, SWALROptions{.anneal_epochs = 30})};
       }}};
  for (const auto draw : {draw_multiplicative, draw_cyclic, draw_swa}) {
    const auto some = draw_alone_and_by_turns(draw, count);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

Piece<GroupLRScheduler> draw_piece(std::mt19937& dice) {
  const double factor = static_cast<double>(1 + number_below(dice, 40)) / 40;
  const double other = static_cast<double>(number_below(dice, 41)) / 40;
  const int64_t count = 1 + number_below(dice, 70), multiple = 1 + number_below(dice, 3);
  const auto f = text(factor), g = text(other);
  switch (number_below(dice, 10)) {
    case 0:
      return piece<LambdaLR>("LambdaLR(o, lambda e: " + f + " ** e)",
                             [=](int64_t e) { return std::pow(factor, e); });
    case 1:
      return piece<StepLR>(c10::str("StepLR(o, ", count, ", ", f, ")"), count, factor);
    case 2:
      return piece<MultiStepLR>(c10::str("MultiStepLR(o, [", count, ", 80, ", count, "], ", f, ")"),
                                std::vector<int64_t>{count, 80, count}, factor);
    case 3:
      return piece<ExponentialLR>("ExponentialLR(o, 1 - " + f + " / 16)", 1 - factor / 16);
    case 4:
      return piece<CosineAnnealingLR>(c10::str("CosineAnnealingLR(o, ", count, ", ", g, " / 256)"),
                                      count, other / 256);
    case 5:
      return piece<CosineAnnealingWarmRestarts>(
          c10::str("CosineAnnealingWarmRestarts(o, ", count, ", ", multiple, ", ", g, " / 256)"),
          count, multiple, other / 256);
    case 6:
      return piece<ConstantLR>(c10::str("ConstantLR(o, ", f, ", ", count, ")"), factor, count);
    case 7:
      return piece<LinearLR>(
          c10::str("LinearLR(o, ", f, ", ", g, ", ", count, ")"),
          LinearLROptions{.start_factor = factor, .end_factor = other, .total_iters = count});
    case 8:
      return piece<PolynomialLR>(c10::str("PolynomialLR(o, ", count, ", 3 * ", g, ")"), count,
                                 3 * other);
    default:
      return piece<OneCycleLR>(c10::str("OneCycleLR(o, ", f, ", 250, pct_start=", f, " / 2)"),
                               factor,
                               OneCycleLROptions{.total_steps = 250, .pct_start = factor / 2});
  }
}

Piece<Scheduler> draw_turns(std::mt19937& dice) {
  std::vector<Piece<GroupLRScheduler>> pieces = {draw_piece(dice)};
  std::vector<int64_t> milestones;
  std::string python = "SequentialLR(o, [" + pieces[0].python;
  while (pieces.size() < 2 || (pieces.size() < 4 && number_below(dice, 2) == 0)) {
    milestones.push_back((milestones.empty() ? 0 : milestones.back()) + number_below(dice, 90));
    pieces.push_back(draw_piece(dice));
    python += ", " + pieces.back().python;
  }
  return {c10::str(python, "], [", c10::Join(", ", milestones), "])"), [=](Optimizer& o) {
            std::vector<std::shared_ptr<GroupLRScheduler>> list;
            for (const auto& each : pieces) list.push_back(each.make(o));
            return std::make_shared<SequentialLR>(o, list, milestones);
          }};
}

// Draws one or two schedules for an optimizer. A schedule may be a SequentialLR that consists of
// several schedules.
Example draw_example(uint32_t seed) {
  std::mt19937 dice(seed);
  static const std::array kinds = {"SGD", "RMSprop", "Adam", "AdamW", "NAdam"};
  std::string python = kinds[static_cast<size_t>(number_below(dice, 5))];
  std::vector<Piece<Scheduler>> pieces;
  for (int64_t i = number_below(dice, 2); i < 2; ++i) {
    if (number_below(dice, 3) == 0) {
      pieces.push_back(draw_turns(dice));
    } else {
      const auto one = draw_piece(dice);
      pieces.push_back({one.python, one.make});
    }
    python += "|" + pieces.back().python;
  }
  return {python, [=](Optimizer& o) {
            Schedulers schedulers;
            for (const auto& each : pieces) schedulers.push_back(each.make(o));
            return schedulers;
          }};
}

std::vector<Example> all_cases() {
  std::vector<Example> all;
  for (const auto& some :
       {step_cases(), smooth_cases(), restarting_and_short_cases(), one_cycle_cases(),
        plateau_cases(), combined_cases(), cyclic_multiplicative_and_swa_cases(6)}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

void write_cases(const TempDir& folder, const std::vector<Example>& cases) {
  std::ofstream file(folder.path() / "cases");
  for (const auto& example : cases) file << example.python << '\n';
}

void compare_curves(const std::vector<Example>& cases) {
  const TempDir folder;
  write_cases(folder, cases);
  auto answer = sconce::test::ask_python(folder, "lr_scheduler.py", "curves");
  answer.ignore(100, '\n');  // the first "case"
  for (const auto& example : cases) {
    INFO(example.python);
    const Curve theirs = read_curve(answer);
    check_equal(curve(example, Interrupted::no), theirs);
    check_equal(curve(example, Interrupted::yes), theirs);
  }
}

// Resumes in the middle of a run. Python loads state from C++, and C++ loads state from Python.
void compare_states(const std::vector<Example>& all) {
  const TempDir folder;
  std::vector<Example> cases;
  std::vector<std::shared_ptr<Optimizer>> optimizers;
  auto states = c10::impl::GenericList(c10::AnyType::get());
  for (const auto& example : all) {
    if (curve(example, Interrupted::no).size() <= middle) continue;
    cases.push_back(example);
    optimizers.push_back(make_optimizer(kind_of(example)));
    const auto schedulers = example.make(*optimizers.back());
    for (int i = 1; i <= middle; ++i) step(schedulers, i);
    auto list = c10::impl::GenericList(c10::AnyType::get());
    for (const auto& state : states_of(schedulers)) list.push_back(state);
    states.push_back(list);
  }
  write_cases(folder, cases);
  sconce::io::save_torch(folder.path() / "ours", states);

  auto answer = sconce::test::ask_python(folder, "lr_scheduler.py", "states");
  answer.ignore(100, '\n');  // the first "case"
  const auto theirs = sconce::io::load_torch(folder.path() / "theirs");
  REQUIRE(theirs.toListRef().size() == cases.size());
  for (size_t i = 0; i < cases.size(); ++i) {
    INFO(cases[i].python);
    const Curve expected = curve(cases[i], Interrupted::no);
    check_equal({expected.begin() + middle, expected.end()}, read_curve(answer));

    const auto schedulers =
        resume(cases[i], optimizers[i], theirs.toListRef()[i].toListRef().vec());
    Curve resumed(expected.begin(), expected.begin() + middle + 1);
    try {
      for (int j = middle + 1; j <= steps; ++j) {
        step(schedulers, j);
        resumed.push_back(numbers(*optimizers[i], schedulers));
      }
    } catch (const c10::ValueError&) {
    }
    check_equal(resumed, expected);
  }
}

}  // namespace

TEST_CASE("200 steps of every scheduler produce the same values as Python, even after resuming",
          "[python]") {
  compare_curves(all_cases());
}

TEST_CASE("scheduler states can be loaded from C++ into Python and vice versa", "[python]") {
  compare_states(all_cases());
}

TEST_CASE(
    "400 random schedules produce the same values as Python, even after resuming in either "
    "language",
    "[.][slow]") {
  std::vector<Example> all;
  for (uint32_t seed = 0; seed < 400; ++seed) all.push_back(draw_example(seed));
  for (const char* name : {"CosineAnnealingWarmRestarts", "ConstantLR", "PolynomialLR",
                           "OneCycleLR", "SequentialLR"}) {
    INFO(name);
    CHECK(std::count_if(all.begin(), all.end(), [=](const Example& example) {
            return example.python.find(name) != std::string::npos;
          }) > 60);
  }
  compare_curves(all);
  compare_states(all);
}

TEST_CASE(
    "200 random schedules for each of CyclicLR, MultiplicativeLR, and SWALR match Python, even "
    "after resuming in either language",
    "[.][slow]") {
  const auto all = cyclic_multiplicative_and_swa_cases(200);
  compare_curves(all);
  compare_states(all);
}

TEST_CASE(
    "a run with OneCycleLR can move from C++ to Python and back, regardless of the new scheduler's "
    "options",
    "[python]") {
  const TempDir folder;
  const auto cases = pairs_of_cycles();
  std::vector<Example> lines;
  for (const auto& [begun, other] : cases) {
    lines.push_back({begun.python + other.python.substr(other.python.find('|')), {}});
  }
  write_cases(folder, lines);
  auto states = c10::impl::GenericList(c10::AnyType::get());
  for (const auto& [begun, other] : cases) {
    const auto optimizer = make_ours(kind_of(begun));
    const auto schedulers = begun.make(*optimizer);
    for (int i = 1; i <= middle; ++i) step(schedulers, i);
    auto both = c10::impl::GenericList(c10::AnyType::get());
    both.push_back(optimizer->state_dict());
    both.push_back(schedulers[0]->state_dict());
    states.push_back(both);
  }
  sconce::io::save_torch(folder.path() / "ours", states);

  auto answer = sconce::test::ask_python(folder, "lr_scheduler.py", "cycles");
  answer.ignore(100, '\n');  // the first "case"
  const auto theirs = sconce::io::load_torch(folder.path() / "theirs");
  REQUIRE(theirs.toListRef().size() == cases.size());
  for (size_t i = 0; i < cases.size(); ++i) {
    INFO(lines[i].python);
    const auto& [begun, other] = cases[i];
    const Curve whole = curve(begun, Interrupted::no);
    const Curve expected(whole.begin() + middle, whole.end());
    check_equal(expected, read_curve(answer));

    const auto optimizer = make_ours(kind_of(other));
    const auto schedulers = other.make(*optimizer);
    const auto both = theirs.toListRef()[i].toListRef();
    optimizer->load_state_dict(both[0]);
    schedulers[0]->load_state_dict(both[1]);
    Curve resumed = {numbers(*optimizer, schedulers)};
    for (int j = middle + 1; j <= steps; ++j) {
      step(schedulers, j);
      resumed.push_back(numbers(*optimizer, schedulers));
    }
    check_equal(resumed, expected);
  }
}

TEST_CASE("OneCycleLR stores its values in the optimizer state and restores them from that state") {
  for (const auto& [begun, other] : pairs_of_cycles()) {
    INFO(begun.python << " into " << other.python);
    const auto run = make_ours(kind_of(begun));
    const auto schedulers = begun.make(*run);
    for (int i = 1; i <= middle; ++i) step(schedulers, i);
    const auto resumed = make_ours(kind_of(other));
    const auto fresh = other.make(*resumed);
    resumed->load_state_dict(run->state_dict());
    fresh[0]->load_state_dict(schedulers[0]->state_dict());
    for (int i = middle; i <= steps; ++i) {
      CHECK(numbers(*resumed, fresh) == numbers(*run, schedulers));
      step(schedulers, i);
      step(fresh, i);
    }
    const auto dict = run->state_dict().toGenericDict().at("param_groups").toListRef()[1];
    CHECK(dict.toGenericDict().at("max_lr").toDouble() == 0.2);
    const bool cycles = begun.python.find("cycle_momentum=True") != std::string::npos;
    CHECK(dict.toGenericDict().contains("base_momentum") == cycles);
  }
}

TEST_CASE("loading an optimizer state that lacks scheduler values keeps the current values") {
  const auto optimizer = make_ours("SGD");
  const auto without = optimizer->state_dict();
  OneCycleLR scheduler(*optimizer, 0.1, {.total_steps = 9});
  const auto expected = *optimizer->group_values();
  CHECK(expected[1].at("max_lr") == 0.1);
  optimizer->load_state_dict(without);
  CHECK(*optimizer->group_values() == expected);
  CHECK_NOTHROW(scheduler.step());
}

TEST_CASE(
    "a scheduler starts from the initial learning rate in the loaded optimizer state, as in "
    "Python") {
  const auto run = make_ours("SGD");
  ExponentialLR schedule(*run, 0.5);
  schedule.step();
  const auto resumed = make_ours("SGD");
  resumed->load_state_dict(run->state_dict());
  CHECK(resumed->param_groups()[0].options().get_lr() == 0.05);
  const LambdaLR again(*resumed, [](int64_t) { return 1.0; });
  CHECK(resumed->param_groups()[0].options().get_lr() == 0.1);
}

TEST_CASE("schedulers reject invalid arguments for the same reasons as Python") {
  const auto optimizer = make_optimizer("SGD");
  auto& o = *optimizer;
  const auto refused = [](const auto& construct, const std::string& text) {
    CHECK_THROWS_WITH(construct(), ContainsSubstring("sconce::optim::lr_scheduler::" + text));
  };
  const LambdaLR::Function one = [](int64_t) { return 1.0; };
  refused([&] { LambdaLR(o, {one, one, one}); },
          "LambdaLR: expected lr_lambdas to be one value or a list of 2");
  refused([&] { LambdaLR(o, LambdaLR::Function()); }, "LambdaLR: expected functions");
  refused([&] { StepLR(o, 0); }, "StepLR: expected step_size to be at least 1, got 0");
  refused([&] { CosineAnnealingLR(o, 0); }, "CosineAnnealingLR: expected T_max to be at least 1");
  for (const double factor : {0.0, -1.0, 1.5}) {
    refused([&] { LinearLR(o, {.start_factor = factor}); }, "LinearLR: expected start_factor");
  }
  for (const double factor : {-0.5, 1.5}) {
    refused([&] { LinearLR(o, {.end_factor = factor}); }, "LinearLR: expected end_factor");
  }
  for (const double factor : {0.0, -1.0, 1.5}) {
    refused([&] { ConstantLR(o, factor); }, "ConstantLR: expected factor to be greater than 0");
  }
  refused([&] { PolynomialLR(o, 5, -1); }, "PolynomialLR: expected power to be at least 0, got -1");
  const std::string cycle = "OneCycleLR: expected ";
  refused([&] { OneCycleLR(o, 0.1, {}); }, cycle + "either total_steps or both");
  refused([&] { OneCycleLR(o, 0.1, {.epochs = 3}); }, cycle + "either total_steps or both");
  refused([&] { OneCycleLR(o, 0.1, {.total_steps = 0}); }, cycle + "positive total_steps");
  refused([&] { OneCycleLR(o, 0.1, {.epochs = -1, .steps_per_epoch = 2}); },
          cycle + "positive epochs");
  refused([&] { OneCycleLR(o, 0.1, {.epochs = 1, .steps_per_epoch = 0}); },
          cycle + "positive steps_per_epoch");
  refused([&] { OneCycleLR(o, 0.1, {.total_steps = 9, .pct_start = 1.5}); }, cycle + "pct_start");
  refused([&] { OneCycleLR(o, {0.1}, {.total_steps = 9}); },
          cycle + "max_lr to be one value or a list of 2");
  refused([&] { OneCycleLR(o, 0.1, {.total_steps = 9, .base_momentum = {0.1}}); },
          cycle + "base_momentum to be one value or a list of 2");
  refused([&] { OneCycleLR(*make_optimizer("Adagrad"), 0.1, {.total_steps = 9}); },
          cycle + "an optimizer with momentum or betas");
  refused([&] { MultiplicativeLR(o, {one, one, one}); },
          "MultiplicativeLR: expected lr_lambdas to be one value or a list of 2");
  refused([&] { MultiplicativeLR(o, MultiplicativeLR::Function()); },
          "MultiplicativeLR: expected functions");
  const std::string cyclic = "CyclicLR: expected ";
  refused([&] { CyclicLR(o, 0.1, 0.2, {.step_size_up = 0}); },
          cyclic + "step_size_up to be at least 1");
  refused([&] { CyclicLR(o, 0.1, 0.2, {.step_size_down = -1}); }, cyclic + "step_size_down to be");
  refused([&] { CyclicLR(o, {0.1}, 0.2); }, cyclic + "base_lr to be one value or a list of 2");
  refused([&] { CyclicLR(o, 0.1, {0.2}); }, cyclic + "max_lr to be one value or a list of 2");
  refused([&] { CyclicLR(o, 0.1, 0.2, {.base_momentum = {0.1}}); },
          cyclic + "base_momentum to be one value or a list of 2");
  refused([&] { CyclicLR(*make_optimizer("Adagrad"), 0.1, 0.2); },
          cyclic + "an optimizer with momentum or betas");
  CHECK_THROWS_WITH(SWALR(o, {0.1}),
                    ContainsSubstring("swa_utils::SWALR: expected swa_lr to be one"));
  CHECK_THROWS_WITH(SWALR(o, 0.1, {.anneal_epochs = -1}),
                    ContainsSubstring("swa_utils::SWALR: expected anneal_epochs to be at least 0"));
  const std::string sequence = "SequentialLR: expected ";
  const auto step_lr = std::make_shared<StepLR>(o, 3);
  const auto other = make_optimizer("SGD");
  refused([&] { SequentialLR(o, {}, {}); }, sequence + "at least one scheduler");
  refused([&] { SequentialLR(o, {step_lr}, {1}); }, sequence + "one fewer milestone");
  refused([&] { SequentialLR(o, {step_lr, step_lr, step_lr}, {5, 1}); },
          sequence + "milestones in order");
  refused([&] { SequentialLR(o, {step_lr, nullptr}, {5}); }, sequence + "schedulers, got a null");
  refused(
      [&] { SequentialLR(o, {step_lr, std::make_shared<StepLR>(*other, 3)}, {5}); },
      sequence +
          "all schedulers to belong to the same optimizer, got a different optimizer at index 1");
  CHECK(o.param_groups()[0].options().get_lr() == 0.1);
}

TEST_CASE(
    "an SWALR's swa_lr is stored in the optimizer state and used by the SWALR of a resumed run") {
  const auto run = make_ours("SGD");
  SWALR schedule(*run, {0.5, 0.25});
  schedule.step();
  const auto resumed = make_ours("SGD");
  SWALR fresh(*resumed, 9.0);
  resumed->load_state_dict(run->state_dict());
  fresh.load_state_dict(schedule.state_dict());
  for (int i = 0; i < 12; ++i) {
    schedule.step();
    fresh.step();
    CHECK(fresh.get_last_lr() == schedule.get_last_lr());
  }
  CHECK(fresh.get_last_lr() == std::vector<double>{0.5, 0.25});
}

TEST_CASE("with cycle_momentum disabled, OneCycleLR leaves another schedule's momentum unchanged") {
  const auto momenta = [](bool with_second) {
    const auto optimizer = make_optimizer("SGD");
    std::vector<std::shared_ptr<GroupLRScheduler>> turns = {std::make_shared<OneCycleLR>(
        *optimizer, 0.2,
        OneCycleLROptions{.total_steps = 50, .base_momentum = 0.5, .max_momentum = 0.7})};
    if (with_second) {  // as in Python, its momentum lists are never read
      turns.push_back(std::make_shared<OneCycleLR>(
          *optimizer, 0.1,
          OneCycleLROptions{.total_steps = 90, .cycle_momentum = false, .base_momentum = {0.1}}));
    }
    SequentialLR scheduler(*optimizer, turns,
                           with_second ? std::vector<int64_t>{50} : std::vector<int64_t>{});
    std::vector<double> all;
    for (int i = 0; i < 49; ++i) {
      scheduler.step();
      all.push_back(momentum(optimizer->param_groups()[0].options()));
    }
    return all;
  };
  CHECK(momenta(true) == momenta(false));
}

TEST_CASE("SequentialLR starts with the second scheduler if the first milestone is 0") {
  const auto optimizer = make_optimizer("SGD");
  const SequentialLR scheduler(*optimizer,
                               {std::make_shared<ExponentialLR>(*optimizer, 0.5),
                                std::make_shared<LinearLR>(*optimizer, LinearLROptions{0.25})},
                               {0});
  CHECK(scheduler.get_last_lr() == std::vector<double>{0.1 * 0.25, 0.003 * 0.25});
}

TEST_CASE("after loading a state with unknown phases, OneCycleLR throws at the next step") {
  const auto optimizer = make_optimizer("SGD");
  OneCycleLR scheduler(*optimizer, 0.1, {.total_steps = 9});
  const auto state = scheduler.state_dict().toGenericDict();
  state.at("_schedule_phases").toListRef()[0].toGenericDict().insert_or_assign("end_lr", "top_lr");
  scheduler.load_state_dict(state);
  CHECK_THROWS_WITH(scheduler.step(), ContainsSubstring("OneCycleLR: expected a state whose"));
}

TEST_CASE(
    "ConstantLR and PolynomialLR reject a state with values that their constructors would reject") {
  const auto optimizer = make_optimizer("SGD");
  ConstantLR constant(*optimizer);
  auto state = constant.state_dict().toGenericDict();
  state.insert_or_assign("factor", 0.0);
  CHECK_THROWS_WITH(constant.load_state_dict(state), ContainsSubstring("above 0 and at most 1"));
  PolynomialLR polynomial(*optimizer);
  state = polynomial.state_dict().toGenericDict();
  state.insert_or_assign("power", -1.0);
  CHECK_THROWS_WITH(polynomial.load_state_dict(state), ContainsSubstring("at least 0"));
}
