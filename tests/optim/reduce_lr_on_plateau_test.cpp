#include "sconce/optim/reduce_lr_on_plateau.hpp"

#include "catch.hpp"
#include "optim/two_groups.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace sconce::optim::lr_scheduler;
using sconce::test::sgd_of_two_groups;

TEST_CASE("ReduceLROnPlateau handles groups added later unless min_lr is a list") {
  auto optimizer = sgd_of_two_groups();
  ReduceLROnPlateau scheduler(optimizer, {.patience = 0});
  ReduceLROnPlateau listed(optimizer, {.patience = 0, .min_lr = {0.0, 0.0}});
  optimizer.add_param_group({{torch::zeros(1)}});
  scheduler.step(1);
  scheduler.step(1);
  CHECK(scheduler.get_last_lr() == std::vector<double>{0.1 * 0.1, 0.003 * 0.1, 0.1});
  listed.step(1);
  CHECK_THROWS_WITH(listed.step(1), ContainsSubstring("expected 2 parameter groups"));
}

TEST_CASE(
    "ReduceLROnPlateau resumes a run with a group added later, regardless of when the group is "
    "added again") {
  for (const int epochs : {0, 1, 2}) {  // the second epoch reduces the rate
    auto run = sgd_of_two_groups();
    ReduceLROnPlateau scheduler(run, {.patience = 0});
    run.add_param_group({{torch::zeros(1)}});
    for (int i = 0; i < epochs; ++i) scheduler.step(1);
    const auto state = scheduler.state_dict();
    std::vector<double> reached;
    for (auto& group : run.param_groups()) reached.push_back(group.options().get_lr());
    scheduler.step(1);
    for (const bool adds_first : {false, true}) {
      INFO(epochs << " epochs, added first: " << adds_first);
      auto resumed = sgd_of_two_groups();
      if (adds_first) resumed.add_param_group({{torch::zeros(1)}});
      ReduceLROnPlateau fresh(resumed, {.patience = 0});
      if (!adds_first) resumed.add_param_group({{torch::zeros(1)}});
      for (size_t i = 0; i < reached.size(); ++i) {
        resumed.param_groups()[i].options().set_lr(reached[i]);
      }
      fresh.load_state_dict(state);
      CHECK(c10::str(fresh.state_dict()) == c10::str(state));
      fresh.step(1);
      CHECK(fresh.get_last_lr().size() == 3);
      CHECK(fresh.get_last_lr() == scheduler.get_last_lr());
    }
  }
}

TEST_CASE("ReduceLROnPlateau rejects a factor of 1 or more and a min_lr of the wrong length") {
  auto optimizer = sgd_of_two_groups();
  const std::string expected = "sconce::optim::lr_scheduler::ReduceLROnPlateau: expected ";
  CHECK_THROWS_WITH(ReduceLROnPlateau(optimizer, {.factor = 1.0}),
                    ContainsSubstring(expected + "factor below 1, got 1"));
  CHECK_THROWS_WITH(ReduceLROnPlateau(optimizer, {.min_lr = {0.1, 0.2, 0.3}}),
                    ContainsSubstring(expected + "min_lr to be one value or a list of 2"));
}
