#include "sconce/optim/reduce_lr_on_plateau.hpp"

#include "catch.hpp"
#include "optim/two_groups.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace sconce::optim::lr_scheduler;
using sconce::test::sgd_of_two_groups;

TEST_CASE("ReduceLROnPlateau takes groups that are added later unless min_lr lists the groups") {
  auto optimizer = sgd_of_two_groups();
  ReduceLROnPlateau scheduler(optimizer, {.patience = 0});
  ReduceLROnPlateau listed(optimizer, {.patience = 0, .min_lr = {0.0, 0.0}});
  optimizer.add_param_group({{torch::zeros(1)}});
  scheduler.step(1);
  scheduler.step(1);
  CHECK(scheduler.get_last_lr() == std::vector<double>{0.1 * 0.1, 0.003 * 0.1, 0.1});
  listed.step(1);
  CHECK_THROWS_WITH(listed.step(1), ContainsSubstring("expected the 2 parameter groups"));
}

TEST_CASE("ReduceLROnPlateau refuses a factor that does not reduce, and another number of min_lr") {
  auto optimizer = sgd_of_two_groups();
  const std::string expected = "sconce::optim::lr_scheduler::ReduceLROnPlateau: expected ";
  CHECK_THROWS_WITH(ReduceLROnPlateau(optimizer, {.factor = 1.0}),
                    ContainsSubstring(expected + "factor below 1, got 1"));
  CHECK_THROWS_WITH(ReduceLROnPlateau(optimizer, {.min_lr = {0.1, 0.2, 0.3}}),
                    ContainsSubstring(expected + "min_lr to be one or 2"));
}
