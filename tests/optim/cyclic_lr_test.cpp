// lr_scheduler_test.cpp compares all schedulers, including CyclicLR and OneCycleLR, with Python.
#include "sconce/optim/cyclic_lr.hpp"

#include "catch.hpp"
#include "optim/two_groups.hpp"
#include "sconce/optim/swa_utils.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::optim::lr_scheduler::CyclicLR;
using sconce::test::two_groups;

TEST_CASE("CyclicLR and SWALR reject a state with values that their constructors would reject") {
  torch::optim::SGD optimizer(two_groups(), torch::optim::SGDOptions(0.1).momentum(0.9));
  const auto refused = [](auto& scheduler, const char* key, const c10::IValue& value,
                          const char* message) {
    auto state = scheduler.state_dict().toGenericDict();
    const auto before = scheduler.state_dict();
    state.insert_or_assign(key, value);
    CHECK_THROWS_WITH(scheduler.load_state_dict(state), ContainsSubstring(message));
    CHECK(scheduler.state_dict().toGenericDict().at(key) == before.toGenericDict().at(key));
  };
  CyclicLR cyclic(optimizer, 0.1, 0.2);
  refused(cyclic, "mode", "circle",
          "expected 'triangular', 'triangular2' or 'exp_range' for 'mode'");
  refused(cyclic, "total_size", 0.0, "at least 1");
  refused(cyclic, "step_ratio", 0.0, "above 0 and at most 1");
  sconce::optim::swa_utils::SWALR swa(optimizer, 0.1);
  refused(swa, "anneal_epochs", -1, "at least 0");
  refused(swa, "_anneal_strategy", "sine", "expected 'cos' or 'linear'");
}
