// Tests requirements that all optimizers must meet.
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <sstream>

#include "catch.hpp"
#include "optim/kinds.hpp"
#include "optim/training.hpp"
#include "sconce/optim/adagrad.hpp"
#include "sconce/optim/adam.hpp"
#include "sconce/optim/rmsprop.hpp"
#include "sconce/optim/sgd.hpp"
#include "support/host_reads.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::optim::ExtraOptions;
using sconce::optim::Kernels;
using sconce::test::for_each_kind;
using sconce::test::Groups;
using sconce::test::Kind;
using sconce::test::kinds;

namespace {

using Parameters = std::vector<torch::Tensor>;
using Tensors = std::map<std::string, torch::Tensor>;

Groups in_two_groups(const Parameters& p) {
  return {Groups::value_type(Parameters(p.begin(), p.begin() + 4)),
          Groups::value_type(Parameters(p.begin() + 4, p.end()))};
}

// Runs a step with gradients scaled by 8. If the step is skipped, existing tensors must remain
// unchanged, and newly created tensors must be 0.
void check_scaled_step(sconce::optim::Optimizer& optimizer, const Parameters& parameters,
                       bool skipped) {
  for (const auto& p : parameters) {
    if (p.grad().defined()) p.mutable_grad().mul_(8);
  }
  const Tensors before = sconce::test::copies(sconce::test::result_of(optimizer, parameters));
  optimizer.step_with_amp_scaling(torch::full({1}, 8.0), torch::full({1}, skipped ? 1.0 : 0.0));
  if (!skipped) return;
  const Tensors after = sconce::test::result_of(optimizer, parameters).tensors;
  for (const auto& [key, tensor] : after) {
    INFO(key);
    const auto found = before.find(key);
    CHECK((found == before.end() ? tensor.eq(0).all().item<bool>()
                                 : sconce::test::same_bits(found->second, tensor)));
  }
}

c10::impl::GenericDict state_of_first(const c10::IValue& dict) {
  return dict.toGenericDict().at("state").toGenericDict().at(0).toGenericDict();
}

}  // namespace

TEST_CASE("a skipped step of any optimizer changes nothing and does not count as the first step") {
  for (const Kind& kind : kinds()) {
    if (!kind.has_fused()) continue;
    for (size_t choice = 0; choice < kind.choices; ++choice) {
      const ExtraOptions fused = {.kernels = Kernels::fused};
      auto parameters = sconce::test::make_parameters(torch::kFloat);
      auto expected = sconce::test::make_parameters(torch::kFloat);
      const auto scaled = kind.make_choice(in_two_groups(parameters), 0.1, fused, choice);
      const auto plain = kind.make_choice(in_two_groups(expected), 0.1, fused, choice);
      for (const int step : {0, 1, 2, 3, 4, 5}) {
        INFO(kind.name << " choice " << choice << " step " << step);
        const bool skipped = step == 0 || step == 1 || step == 4;
        sconce::test::set_gradients(parameters, step);
        check_scaled_step(*scaled, parameters, skipped);
        if (skipped) continue;
        sconce::test::set_gradients(expected, step);
        plain->step();  // it is never called for the skipped steps
        const auto after = sconce::test::result_of(*scaled, parameters).tensors;
        for (const auto& [key, tensor] : sconce::test::result_of(*plain, expected).tensors) {
          INFO(key);
          REQUIRE(after.contains(key));
          // In Debian's build of LibTorch, steps with scaled gradients round differently from steps
          // with unscaled gradients.
          CHECK((SCONCE_TORCH_IS_WHEEL ? after.at(key).equal(tensor)
                                       : torch::allclose(after.at(key), tensor, 1.3e-6, 1e-5)));
        }
      }
    }
  }
}

TEST_CASE("a step reads only fused-kernel step counts and tensor learning rates on the host") {
  for_each_kind([](const Kind& kind, Kernels kernels) {
    for (const bool tensor_lr : {false, true}) {
      if (tensor_lr && kernels == Kernels::foreach && !kind.foreach_takes_tensor_lr) continue;
      auto parameters = sconce::test::make_parameters(torch::kFloat);
      ExtraOptions extra = {.kernels = kernels, .maximize = true};
      if (tensor_lr) extra.lr = torch::tensor(0.1F);
      const auto optimizer = kind.make(in_two_groups(parameters), 0.1, extra);
      sconce::test::set_gradients(parameters, 0);  // five of six have a gradient
      optimizer->step();
      const auto scale = torch::ones({}), found_inf = torch::zeros({});
      const int of_rates = tensor_lr ? 2 : 0;  // one read per group
      const bool is_loop = kernels == Kernels::for_loop;
      const int of_each = kernels == Kernels::fused ? kind.reads.fused
                          : is_loop && tensor_lr    ? kind.reads.for_loop_tensor_lr
                                                    : 0;
      const sconce::test::HostReads reads;
      optimizer->step();
      CHECK(reads.count() == of_rates + 5 * of_each);
      if (kernels != Kernels::fused) continue;
      optimizer->step_with_amp_scaling(scale, found_inf);
      CHECK(reads.count() == 2 * (of_rates + 5 * of_each));
    }
  });
  const sconce::test::HostReads reads;
  torch::zeros({}).item<float>();
  CHECK(reads.count() == 1);  // shows that the counter works
}

TEST_CASE(
    "an optimizer rejects kernels that LibTorch does not provide for that optimizer and uses the "
    "fastest kernels by default") {
  for (const Kind& kind : kinds()) {
    INFO(kind.name);
    const auto p = torch::ones({2, 1}).requires_grad_();
    const Groups groups = {Groups::value_type({p})};
    const auto optimizer = kind.make(groups, 0.1);
    CHECK(optimizer->kernels() == kind.fastest);
    CHECK(optimizer->step_supports_amp_scaling() == kind.has_fused());
    if (kind.has_fused()) continue;
    const bool has_foreach = kind.fastest == Kernels::foreach;
    CHECK_THROWS_WITH(
        kind.make(groups, 0.1, {.kernels = Kernels::fused}),
        ContainsSubstring(
            "sconce::optim::" + kind.name + ": expected " +
            (has_foreach ? "Kernels::foreach or " : "") +
            "Kernels::for_loop (LibTorch provides no other kernels for this optimizer), got "
            "Kernels::fused"));
  }
}

TEST_CASE(
    "a sparse gradient that the kernels do not support is rejected before any parameter is "
    "updated") {
  for_each_kind([](const Kind& kind, Kernels kernels) {
    if (kind.takes_sparse && kernels != Kernels::fused) return;
    const auto dense = torch::ones({2, 1}).requires_grad_();
    const auto sparse = torch::ones({2, 1}).requires_grad_();
    const auto optimizer =
        kind.make({Groups::value_type({dense, sparse})}, 0.1, {.kernels = kernels});
    dense.mutable_grad() = torch::ones({2, 1});
    sparse.mutable_grad() = torch::ones({2, 1}).to_sparse(1);
    CHECK_THROWS_WITH(optimizer->step(),
                      ContainsSubstring("expected dense gradients, got a sparse gradient"));
    CHECK(dense.equal(torch::ones({2, 1})));  // the step must not be partially applied
    CHECK(sparse.equal(torch::ones({2, 1})));
  });
}

TEST_CASE(
    "an optimizer rejects a state dict that lacks a tensor that the step requires, and scalar "
    "state stays in float32") {
  for_each_kind([](const Kind& kind, Kernels kernels) {
    const auto p = torch::ones({3}, torch::kBFloat16).requires_grad_();
    p.mutable_grad() = torch::ones({3}, torch::kBFloat16);
    const auto make = [&] {
      return kind.make({Groups::value_type({p})}, 0.1, {.kernels = kernels});
    };
    const auto optimizer = make();
    optimizer->step();
    const auto other = make();
    other->load_state_dict(optimizer->state_dict());
    for (const auto& entry : state_of_first(optimizer->state_dict())) {
      const auto key = entry.key().toStringRef();
      const auto tensor = entry.value().toTensor();
      INFO(key);
      CHECK(tensor.scalar_type() == (tensor.dim() == 0 ? torch::kFloat : torch::kBFloat16));
      CHECK(
          sconce::test::same_bits(state_of_first(other->state_dict()).at(key).toTensor(), tensor));
      const auto wrong = optimizer->state_dict();
      CHECK(state_of_first(wrong).erase(key) == 1);
      if (std::ranges::count(kind.optional_keys, key) != 0) {
        CHECK_NOTHROW(make()->load_state_dict(wrong));
      } else {
        CHECK_THROWS_WITH(make()->load_state_dict(wrong),
                          ContainsSubstring("expected each parameter's state to contain " + key));
      }
    }
  });
}

TEST_CASE("an optimizer archive restores state and options bit for bit") {
  for_each_kind([](const Kind& kind, Kernels kernels) {
    auto parameters = sconce::test::make_parameters(torch::kFloat);
    sconce::test::set_gradients(parameters, 0);
    const auto make = [&](double lr) {
      return kind.make(in_two_groups(parameters), lr, {.kernels = kernels});
    };
    const auto source = make(0.25);
    source->step();
    source->step();
    std::stringstream archive;
    torch::save(*source, archive);
    const auto target = make(0.5);
    torch::load(*target, archive);
    const auto expected = sconce::test::result_of(*source, parameters);
    const auto loaded = sconce::test::result_of(*target, parameters);
    CHECK(sconce::test::same_bits(expected.tensors, loaded.tensors));
    CHECK(expected.options == loaded.options);
  });
}

// Checks that the sconce class can load archives written by the LibTorch class, and vice versa.
template <class Ours, class Theirs, class State, class Options>
void check_archives(const Options& options) {
  auto parameters = sconce::test::make_parameters(torch::kFloat);
  sconce::test::set_gradients(parameters, 0);
  Ours ours(parameters, options);
  Theirs theirs(parameters, Options(0.5));
  ours.step();
  ours.step();
  std::stringstream to_theirs;
  torch::save(ours, to_theirs);
  torch::load(theirs, to_theirs);
  const auto& state =
      static_cast<const State&>(*theirs.state().at(parameters[0].unsafeGetTensorImpl()));
  if constexpr (requires { state.step(); }) CHECK(state.step() == 2);
  CHECK(theirs.param_groups()[0].options().get_lr() == options.lr());

  const auto before = sconce::test::copies(sconce::test::result_of(ours, parameters));
  std::stringstream to_ours;
  torch::save(theirs, to_ours);
  Ours again(parameters, Options(0.5));
  torch::load(again, to_ours);
  CHECK(sconce::test::same_bits(before, sconce::test::result_of(again, parameters).tensors));
}

TEST_CASE("LibTorch optimizer archives load into sconce optimizers and vice versa") {
  namespace libtorch = torch::optim;
  check_archives<sconce::optim::SGD, libtorch::SGD, libtorch::SGDParamState>(
      libtorch::SGDOptions(0.01).momentum(0.9));
  check_archives<sconce::optim::Adam, libtorch::Adam, libtorch::AdamParamState>(
      libtorch::AdamOptions(0.01).amsgrad(true));
  check_archives<sconce::optim::AdamW, libtorch::AdamW, libtorch::AdamWParamState>(
      libtorch::AdamWOptions(0.01));
  check_archives<sconce::optim::Adagrad, libtorch::Adagrad, libtorch::AdagradParamState>(
      libtorch::AdagradOptions(0.01).lr_decay(0.5));
  check_archives<sconce::optim::RMSprop, libtorch::RMSprop, libtorch::RMSpropParamState>(
      libtorch::RMSpropOptions(0.01).momentum(0.9).centered(true));
}

// Checks that a group's options have the same values as in the LibTorch class.
template <class Ours, class Theirs, class Options>
void check_merged(const Options& defaults, const Options& of_group) {
  const auto merged = [&]<class Optimizer>() {
    std::vector<torch::optim::OptimizerParamGroup> groups;
    groups.emplace_back(Parameters{torch::ones({2}).requires_grad_()},
                        std::make_unique<Options>(of_group));
    const Optimizer optimizer(groups, defaults);
    return static_cast<const Options&>(optimizer.param_groups()[0].options());
  };
  CHECK(merged.template operator()<Ours>() == merged.template operator()<Theirs>());
}

TEST_CASE("a group's options are merged with the optimizer's defaults as in LibTorch") {
  namespace libtorch = torch::optim;
  check_merged<sconce::optim::SGD, libtorch::SGD>(libtorch::SGDOptions(0.5).momentum(0.9),
                                                  libtorch::SGDOptions(0.1).momentum(0));
  check_merged<sconce::optim::Adam, libtorch::Adam>(libtorch::AdamOptions(0.5).amsgrad(true),
                                                    libtorch::AdamOptions());
  check_merged<sconce::optim::AdamW, libtorch::AdamW>(libtorch::AdamWOptions(0.5).eps(0.25),
                                                      libtorch::AdamWOptions());
  check_merged<sconce::optim::Adagrad, libtorch::Adagrad>(libtorch::AdagradOptions(0.5),
                                                          libtorch::AdagradOptions());
  check_merged<sconce::optim::RMSprop, libtorch::RMSprop>(libtorch::RMSpropOptions(0.5),
                                                          libtorch::RMSpropOptions());
}

TEST_CASE("every optimizer rejects an empty list of parameters and accepts an empty group") {
  for (const Kind& kind : kinds()) {
    INFO(kind.name);
    CHECK_THROWS_WITH(
        kind.make_list({}),
        ContainsSubstring(
            "sconce::optim::" + kind.name +
            ": expected parameters, got an empty list; register each layer in its module"));
    CHECK_THROWS_AS(kind.make_list({}), c10::ValueError);
    const auto optimizer = kind.make({Groups::value_type(Parameters())}, 0.1);
    CHECK_NOTHROW(optimizer->step());
  }
}
