#include "sconce/training/stateful.hpp"

#include <torch/torch.h>

#include "catch.hpp"
#include "sconce/optim/ema.hpp"
#include "sconce/optim/sgd.hpp"

using sconce::Stateful;

TEST_CASE("a state is read from an object and loaded into another") {
  torch::nn::Linear a(2, 1), b(2, 1);
  Stateful(*b).load_state_dict(Stateful(*a).state_dict());
  CHECK(b->weight.equal(a->weight));
  CHECK(Stateful(*a).type().empty());

  sconce::optim::SGD of_a(a->parameters(), 0.1), of_b(b->parameters(), 0.2);
  Stateful(of_b).load_state_dict(Stateful(of_a).state_dict());
  CHECK(of_b.param_groups()[0].options().get_lr() == 0.1);
  CHECK(Stateful(of_a).type() == "sconce::optim::SGD");

  sconce::optim::ExponentialMovingAverage averages(*a), others(*b);
  averages.update();
  Stateful(others).load_state_dict(Stateful(averages).state_dict());
  CHECK(others.n_averaged() == 1);

  const Stateful nothing;
  CHECK(nothing.state_dict().isNone());
  CHECK_NOTHROW(nothing.load_state_dict(1));
}
