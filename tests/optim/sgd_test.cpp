#include "sconce/optim/sgd.hpp"

#include "catch.hpp"
#include "optim/kinds.hpp"
#include "optim/training.hpp"
#include "sconce/io/torch_file.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::optim::ExtraOptions;
using sconce::optim::Kernels;
using sconce::optim::SGD;
using sconce::test::Case;
using sconce::test::dtypes;
using torch::optim::SGDOptions;

namespace {

struct Momentum {
  double momentum;
  double dampening;
  bool nesterov;
};

Case make_case(const SGDOptions& options, torch::ScalarType dtype, Kernels kernels, bool maximize,
               bool tensor_lr) {
  Case c;
  c.optimizer = "SGD";
  c.dtype = dtype;
  c.extra = {.kernels = kernels, .maximize = maximize};
  if (tensor_lr) c.extra.lr = sconce::test::lr_tensor(0.1, dtype);
  std::ostringstream arguments;
  arguments << "lr=0.1, momentum=" << options.momentum() << ", dampening=" << options.dampening()
            << ", weight_decay=" << options.weight_decay()
            << ", nesterov=" << (options.nesterov() ? "True" : "False");
  c.arguments = arguments.str();
  c.of_second = "lr=0.03, weight_decay=0.05";
  c.make = [options](const std::vector<torch::Tensor>& p, const ExtraOptions& extra) {
    auto second = options;
    second.lr(0.03).weight_decay(0.05);
    return std::make_unique<SGD>(sconce::test::two_groups(p, second), options, extra);
  };
  return c;
}

std::vector<Case> sgd_grid() {
  std::vector<Case> cases;
  for (const auto kernels : {Kernels::fused, Kernels::foreach, Kernels::for_loop}) {
    for (const auto dtype : dtypes) {
      if (kernels == Kernels::fused && c10::isComplexType(dtype)) continue;
      for (const auto m : {Momentum{0, 0, false}, Momentum{0.9, 0, false},
                           Momentum{0.9, 0.5, false}, Momentum{0.9, 0, true}}) {
        for (int bits = 0; bits < 8; ++bits) {
          auto options = SGDOptions(0.1).momentum(m.momentum).dampening(m.dampening);
          options.nesterov(m.nesterov).weight_decay((bits & 1) != 0 ? 0.1 : 0);
          cases.push_back(make_case(options, dtype, kernels, (bits & 2) != 0, (bits & 4) != 0));
        }
      }
    }
  }
  for (size_t i = 0; i < cases.size(); ++i) {
    static const std::array midway = {"", "archive", "dict"};
    cases[i].name = "sgd" + std::to_string(i);
    cases[i].midway = midway[(i / 8 + i) % 3];
  }
  return cases;
}

const sconce::test::AddKind sgd_row(sconce::test::with_choices<SGD>(
    {.name = "SGD",
     .takes_sparse = true,
     .optional_keys = {"momentum_buffer"},
     .python_arguments =
         [](const auto& o) {
           return sconce::test::text("momentum=", o.first, ", dampening=", o.second,
                                     ", nesterov=", o.python_flag());
         },
     .make_random =
         [](const auto& groups, const auto& o, const ExtraOptions& extra) {
           auto options = SGDOptions(o.lr).momentum(o.first).dampening(o.second);
           options.weight_decay(o.weight_decay).nesterov(o.flag);
           return std::make_unique<SGD>(groups, options, extra);
         }},
    std::vector{SGDOptions(0).momentum(0.9).dampening(0.5).weight_decay(0.1),
                SGDOptions(0).weight_decay(0.1), SGDOptions(0).momentum(0.9).weight_decay(0.1),
                SGDOptions(0).momentum(0.9).nesterov(true).weight_decay(0.1)}));

}  // namespace

TEST_CASE("SGD matches Python with the same kernels", "[python]") {
  CHECK(sconce::test::compare_with_python(sgd_grid()) == 4368);
}

TEST_CASE(
    "if SGD's first step was skipped, the next step counts as the first, even after the state is "
    "reloaded") {
  const auto options = SGDOptions(0.1).momentum(0.9).dampening(0.5);
  for (const std::string midway : {"archive", "dict"}) {
    INFO(midway);
    auto c = make_case(options, torch::kFloat, Kernels::fused, false, false);
    c.midway = midway;
    auto parameters = sconce::test::make_parameters(torch::kFloat);
    std::unique_ptr<sconce::optim::Optimizer> optimizer = c.make(parameters, c.extra);
    sconce::test::set_gradients(parameters, 0);
    optimizer->step_with_amp_scaling({}, torch::ones({}));
    sconce::test::change_optimizer(c, optimizer, parameters);
    const auto before = parameters[1].detach().clone();
    optimizer->step();
    CHECK(parameters[1].equal(before.add(parameters[1].grad(), -0.1)));
  }
}

TEST_CASE("SGD rejects invalid options, both as defaults and in every group") {
  const auto p = [] { return torch::ones({2}).requires_grad_(); };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::pair<SGDOptions, std::string>> wrong = {
      {SGDOptions(-1), "expected lr >= 0, got -1"},
      {SGDOptions(nan), "expected lr >= 0, got nan"},
      {SGDOptions(0.1).momentum(-0.5), "expected momentum >= 0, got -0.5"},
      {SGDOptions(0.1).momentum(nan), "expected momentum >= 0, got nan"},
      {SGDOptions(0.1).weight_decay(-2), "expected weight_decay >= 0, got -2"},
      {SGDOptions(0.1).nesterov(true), "got momentum 0 and dampening 0"},
      {SGDOptions(0.1).nesterov(true).momentum(0.9).dampening(0.5),
       "got momentum 0.9 and dampening 0.5"}};
  sconce::test::check_refused<SGD>("sconce::optim::SGD", SGDOptions(0.1), wrong);
  SGD optimizer({p()}, SGDOptions(0.1));
  optimizer.param_groups()[0].set_options(std::make_unique<torch::optim::AdamOptions>());
  CHECK_THROWS_WITH(optimizer.step(), ContainsSubstring("this optimizer's options"));
  CHECK_THROWS_WITH(SGD({p()}, SGDOptions(0.1), {.lr = torch::ones({2})}),
                    ContainsSubstring("expected a tensor lr with 1 element"));
  CHECK_THROWS_WITH(SGD({p()}, SGDOptions(0.1), {.lr = torch::tensor(-1.0)}),
                    ContainsSubstring("expected lr >= 0, got -1"));
  CHECK_THROWS_WITH(
      SGD({p()}, SGDOptions(0.1), {.lr = torch::tensor(1)}),
      ContainsSubstring("expected a floating-point tensor lr, got a tensor of type Long"));
}

TEST_CASE("SGD supports sparse gradients, except with Kernels::fused") {
  const auto dense_grad = torch::tensor({0.0F, 2.0F, 0.0F, 4.0F}).reshape({4, 1});
  const auto parameter = [&] {
    auto p = torch::ones({4, 1}).requires_grad_();
    p.mutable_grad() = dense_grad.to_sparse(1);
    return p;
  };
  for (const auto kernels : {Kernels::automatic, Kernels::foreach, Kernels::for_loop}) {
    const auto p = parameter();
    SGD optimizer({p}, SGDOptions(0.5).momentum(0.9), {.kernels = kernels});
    optimizer.step();
    optimizer.step();
    CHECK(torch::allclose(p, 1 - 0.5 * 2.9 * dense_grad));
  }
  const auto p = parameter();
  SGD fused({p}, SGDOptions(0.5), {.kernels = Kernels::fused});
  CHECK_THROWS_WITH(fused.step(),
                    ContainsSubstring("expected dense gradients, got a sparse gradient"));
  SGD automatic({p}, SGDOptions(0.5));
  CHECK_FALSE(automatic.step_supports_amp_scaling());
  CHECK_THROWS_WITH(automatic.step_with_amp_scaling({}, torch::zeros({})),
                    ContainsSubstring("expected dense gradients, got a sparse gradient"));
  CHECK(p.equal(torch::ones({4, 1})));
}

TEST_CASE(
    "SGD saves and loads a sparse momentum buffer through a state dict and through an archive") {
  const auto p = torch::ones({4, 1}).requires_grad_();
  p.mutable_grad() = torch::tensor({0.0F, 2.0F, 0.0F, 4.0F}).reshape({4, 1}).to_sparse(1);
  const auto options = SGDOptions(0.5).momentum(0.9);
  SGD source({p}, options);
  source.step();
  const auto expected = p.detach() - 0.5 * 1.9 * p.grad().to_dense();
  SGD by_dict({p}, options);
  by_dict.load_state_dict(source.state_dict());
  const auto before = p.detach().clone();
  by_dict.step();
  CHECK(torch::allclose(p, expected));
  p.detach().copy_(before);
  std::stringstream archive;
  torch::save(source, archive);
  SGD by_archive({p}, options);
  torch::load(by_archive, archive);
  by_archive.step();
  CHECK(torch::allclose(p, expected));
}

TEST_CASE(
    "a momentum buffer whose strides differ from the parameter's strides resumes bit for bit") {
  const auto options = SGDOptions(0.1).momentum(0.9).dampening(0.25).weight_decay(0.1);
  for (const auto kernels : {Kernels::fused, Kernels::foreach, Kernels::for_loop}) {
    for (const auto dtype : {torch::kHalf, torch::kBFloat16, torch::kFloat}) {
      for (const std::string midway : {"dict", "archive", "file"}) {
        INFO("kernels " << static_cast<int>(kernels) << " " << dtype << " by " << midway);
        auto whole = sconce::test::numbers(1, {7, 33}, dtype).requires_grad_();
        auto resumed = whole.detach().clone().requires_grad_();
        SGD a({whole}, options, {.kernels = kernels});
        auto b = std::make_unique<SGD>(std::vector<torch::Tensor>{resumed}, options,
                                       ExtraOptions{.kernels = kernels});
        for (int step = 0; step < 10; ++step) {
          whole.mutable_grad() = sconce::test::numbers(10 + step, {33, 7}, dtype).t();
          resumed.mutable_grad() = whole.grad();
          if (step == 5) {
            auto other = std::make_unique<SGD>(std::vector<torch::Tensor>{resumed}, options,
                                               ExtraOptions{.kernels = kernels});
            const sconce::test::TempDir folder;
            std::stringstream archive;
            if (midway == "archive") {
              torch::save(*b, archive);
              torch::load(*other, archive);
            } else if (midway == "file") {
              sconce::io::save_torch(folder.path() / "b", b->state_dict());
              other->load_state_dict(sconce::io::load_torch(folder.path() / "b"));
            } else {
              other->load_state_dict(b->state_dict());
            }
            b = std::move(other);
          }
          a.step();
          b->step();
        }
        CHECK(sconce::test::same_bits(whole.detach(), resumed.detach()));
      }
    }
  }
}

TEST_CASE("after a skipped step, SGD determines each parameter's first step separately") {
  const auto options = SGDOptions(1.0).momentum(0.9).dampening(0.5);
  const std::vector<torch::Tensor> both = {torch::zeros({2}).requires_grad_(),
                                           torch::zeros({2}).requires_grad_()};
  SGD optimizer(both, options, {.kernels = Kernels::fused});
  const auto step = [&](bool with_second, float found_inf) {
    both[0].mutable_grad() = torch::ones({2});
    both[1].mutable_grad() = with_second ? torch::ones({2}) : torch::Tensor();
    optimizer.step_with_amp_scaling({}, torch::full({}, found_inf));
  };
  step(true, 1);
  step(false, 0);  // the first step for parameter 0 only
  CHECK(both[0].equal(torch::full({2}, -1.0F)));
  step(true, 0);  // second for parameter 0, first for parameter 1
  CHECK(torch::allclose(both[0], torch::full({2}, -1.0F - 0.9F - 0.5F)));
  CHECK(both[1].equal(torch::full({2}, -1.0F)));
}
