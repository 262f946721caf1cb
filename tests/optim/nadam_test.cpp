#include "sconce/optim/nadam.hpp"

#include "catch.hpp"
#include "optim/training.hpp"
#include "support/host_reads.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::optim::ExtraOptions;
using sconce::optim::Kernels;
using sconce::optim::NAdam;
using sconce::optim::NAdamOptions;

namespace {

// The row says which of the options are on: each two of them have all their values.
sconce::test::Case nadam_case(torch::ScalarType dtype, Kernels kernels, unsigned row) {
  const bool maximize = (row & 1) != 0, decoupled = (row & 2) != 0, tensor_lr = (row & 4) != 0;
  const double weight_decay = (maximize != decoupled) != tensor_lr ? 0.1 : 0;
  sconce::test::Case c;
  c.optimizer = "NAdam";
  c.dtype = dtype;
  c.extra = {.kernels = kernels, .maximize = maximize};
  if (tensor_lr) c.extra.lr = sconce::test::lr_tensor(0.02, dtype);
  std::ostringstream arguments;
  arguments << "lr=0.02, betas=(0.8, 0.95), eps=1e-6, momentum_decay=0.05, weight_decay="
            << weight_decay << ", decoupled_weight_decay=" << (decoupled ? "True" : "False");
  c.arguments = arguments.str();
  c.of_second = "lr=0.007, betas=(0.5, 0.75)";
  c.make = [=](const std::vector<torch::Tensor>& p, const ExtraOptions& extra) {
    auto options = NAdamOptions(0.02).betas({0.8, 0.95}).eps(1e-6).momentum_decay(0.05);
    options.weight_decay(weight_decay).decoupled_weight_decay(decoupled);
    auto second = options;
    second.lr(0.007).betas({0.5, 0.75});
    return std::make_unique<NAdam>(sconce::test::two_groups(p, second), options, extra);
  };
  return c;
}

}  // namespace

std::vector<sconce::test::Case> sconce::test::nadam_cases() {
  return cases_of_rows("nadam", {Kernels::foreach, Kernels::for_loop}, nadam_case);
}

TEST_CASE("NAdam reads nothing on the host except a tensor lr") {
  auto parameters = sconce::test::make_parameters(torch::kFloat);
  sconce::test::set_gradients(parameters, 0);
  const auto reads_of_step = [&](Kernels kernels, unsigned row) {
    const auto c = nadam_case(torch::kFloat, kernels, row);
    const auto optimizer = c.make(parameters, c.extra);
    optimizer->step();
    const sconce::test::HostReads reads;
    optimizer->step();
    return reads.count();
  };
  CHECK(reads_of_step(Kernels::foreach, 0) == 0);
  CHECK(reads_of_step(Kernels::for_loop, 0) == 0);
  CHECK(reads_of_step(Kernels::foreach, 4) == 2);           // one in each group
  CHECK(reads_of_step(Kernels::for_loop, 4) == 2 + 2 * 5);  // Python's loop makes two of each rate
}

TEST_CASE("NAdam rejects invalid options, sparse gradients, and fused kernels") {
  const auto p = torch::ones({2, 1}).requires_grad_();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::pair<NAdamOptions, std::string>> wrong = {
      {NAdamOptions(-1), "expected lr >= 0, got -1"},
      {NAdamOptions(nan), "expected lr >= 0, got nan"},
      {NAdamOptions().eps(-1), "expected eps >= 0, got -1"},
      {NAdamOptions().betas({1, 0.5}), "expected betas in [0, 1), got 1 and 0.5"},
      {NAdamOptions().betas({0.5, -1}), "expected betas in [0, 1), got 0.5 and -1"},
      {NAdamOptions().weight_decay(-2), "expected weight_decay >= 0, got -2"},
      {NAdamOptions().momentum_decay(nan), "expected momentum_decay >= 0, got nan"}};
  sconce::test::check_refused<NAdam>("sconce::optim::NAdam", NAdamOptions(), wrong);
  CHECK_THROWS_WITH(NAdam({p}, {}, {.kernels = Kernels::fused}),
                    ContainsSubstring("sconce::optim::NAdam: expected Kernels::foreach or "
                                      "Kernels::for_loop, because LibTorch has no others for it, "
                                      "got Kernels::fused"));
  NAdam optimizer({p});
  CHECK(optimizer.kernels() == Kernels::foreach);
  CHECK_FALSE(optimizer.step_supports_amp_scaling());
  p.mutable_grad() = torch::ones({2, 1}).to_sparse(1);
  CHECK_THROWS_WITH(optimizer.step(), ContainsSubstring("expected dense gradients, got a sparse"));
  CHECK(p.equal(torch::ones({2, 1})));
}

TEST_CASE(
    "NAdam restores its state without changing dtypes and rejects a state with a missing value") {
  const auto p = torch::ones({3}, torch::kBFloat16).requires_grad_();
  p.mutable_grad() = torch::ones({3}, torch::kBFloat16);
  NAdam optimizer({p});
  optimizer.step();
  const auto state = [](const c10::IValue& dict) {
    return dict.toGenericDict().at("state").toGenericDict().at(0).toGenericDict();
  };
  const auto product = state(optimizer.state_dict()).at("mu_product").toTensor();
  NAdam other({p});
  other.load_state_dict(optimizer.state_dict());
  CHECK(sconce::test::same_bits(state(other.state_dict()).at("mu_product").toTensor(), product));
  CHECK(product.scalar_type() == torch::kFloat);

  for (const char* key : {"step", "mu_product", "exp_avg", "exp_avg_sq"}) {
    const auto wrong = optimizer.state_dict();
    CHECK(state(wrong).erase(key) == 1);
    CHECK_THROWS_WITH(
        other.load_state_dict(wrong),
        ContainsSubstring(c10::str("expected the state of a parameter to have ", key)));
  }
}
