#include "sconce/optim/warm_restarts.hpp"

#include <cstdlib>
#include <sstream>

#include "catch.hpp"
#include "optim/two_groups.hpp"
#include "support/ask_python.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace sconce::optim::lr_scheduler;
using sconce::test::sgd_of_two_groups;

TEST_CASE("CosineAnnealingWarmRestarts handles fractional epochs the same way as Python",
          "[python]") {
  const sconce::test::TempDir folder;
  const std::vector<std::pair<int64_t, int64_t>> lengths = {{1, 1}, {5, 1}, {1, 2}, {4, 2}, {3, 3}};
  std::ofstream cases(folder.path() / "cases");
  for (const auto& [T_0, T_mult] : lengths) {
    cases << "SGD|CosineAnnealingWarmRestarts(o, " << T_0 << ", " << T_mult << ", 0.001)\n";
  }
  cases.close();
  auto answer = sconce::test::ask_python(folder, "lr_scheduler.py", "fractions");
  for (const auto& [T_0, T_mult] : lengths) {
    INFO(T_0 << ", " << T_mult);
    auto optimizer = sgd_of_two_groups();
    CosineAnnealingWarmRestarts scheduler(optimizer, T_0, T_mult, 0.001);
    std::string line;
    REQUIRE((std::getline(answer, line) && line == "case"));
    for (int i = 0; i <= 200; ++i) {
      if (i > 0) i % 10 == 0 ? scheduler.step() : scheduler.step(i / 7.0);
      REQUIRE(std::getline(answer, line));
      std::istringstream words(line);  // the learning rates come first
      for (const double lr : scheduler.get_last_lr()) {
        std::string word;
        words >> word;
        CHECK_THAT(lr, Catch::Matchers::WithinRel(std::strtod(word.c_str(), nullptr), 1e-12));
      }
    }
  }
}

TEST_CASE("CosineAnnealingWarmRestarts rejects empty cycles and out-of-range epochs") {
  auto optimizer = sgd_of_two_groups();
  const std::string expected =
      "sconce::optim::lr_scheduler::CosineAnnealingWarmRestarts: expected ";
  CHECK_THROWS_WITH(CosineAnnealingWarmRestarts(optimizer, 0),
                    ContainsSubstring(expected + "T_0 to be at least 1, got 0"));
  CHECK_THROWS_WITH(CosineAnnealingWarmRestarts(optimizer, 3, 0),
                    ContainsSubstring(expected + "T_mult to be at least 1, got 0"));
  CosineAnnealingWarmRestarts scheduler(optimizer, 3);
  for (const double epoch : {-1.0, 1e300}) {
    CHECK_THROWS_WITH(scheduler.step(epoch),
                      ContainsSubstring(expected + "an epoch from 0 to 2^53, got "));
  }
  CHECK(scheduler.get_last_lr() == std::vector<double>{0.1, 0.003});
}

TEST_CASE(
    "a CosineAnnealingWarmRestarts step that throws leaves the scheduler's position unchanged") {
  auto optimizer = sgd_of_two_groups();
  CosineAnnealingWarmRestarts scheduler(optimizer, 3, 2);
  scheduler.step(1.5);
  const std::string before = c10::str(scheduler.state_dict());
  optimizer.add_param_group({{torch::zeros(1)}});  // the scheduler has no learning rate for it
  CHECK_THROWS_AS(scheduler.step(12.5), c10::Error);
  CHECK(c10::str(scheduler.state_dict()) == before);
}
