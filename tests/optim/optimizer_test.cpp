#include "sconce/optim/optimizer.hpp"

#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <type_traits>

#include "catch.hpp"
#include "optim/algorithm.hpp"
#include "optim/kinds.hpp"
#include "optim/training.hpp"
#include "sconce/captured_step.hpp"
#include "sconce/devices.hpp"
#include "sconce/optim/adagrad.hpp"
#include "sconce/optim/adam.hpp"
#include "sconce/optim/lr_scheduler.hpp"
#include "sconce/optim/nadam.hpp"
#include "sconce/optim/rmsprop.hpp"
#include "sconce/optim/sgd.hpp"
#include "support/host_reads.hpp"
#include "support/require_gpu.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::optim::Adagrad;
using sconce::optim::Adam;
using sconce::optim::AdamW;
using sconce::optim::ExtraOptions;
using sconce::optim::Kernels;
using sconce::optim::NAdam;
using sconce::optim::NAdamOptions;
using sconce::optim::RMSprop;
using sconce::optim::SGD;
using torch::optim::AdagradOptions;
using torch::optim::AdamOptions;
using torch::optim::AdamWOptions;
using torch::optim::OptimizerParamGroup;
using torch::optim::RMSpropOptions;
using torch::optim::SGDOptions;

namespace {

torch::Tensor parameter(torch::IntArrayRef sizes, torch::TensorOptions options = {}) {
  auto p = torch::randn(sizes, options).requires_grad_();
  p.mutable_grad() = torch::randn(sizes, options);
  return p;
}

std::vector<torch::Tensor> copies(const std::vector<torch::Tensor>& parameters) {
  std::vector<torch::Tensor> copied;
  for (const auto& p : parameters) {
    copied.push_back(p.detach().clone().requires_grad_());
    if (p.grad().defined()) copied.back().mutable_grad() = p.grad().clone();
  }
  return copied;
}

void check_equal(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b) {
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    INFO("parameter " << i);
    CHECK(torch::allclose(a[i], b[i].to(a[i].device()), 1.3e-6, 1e-5));
  }
}

torch::Tensor ones_with_gradient() {
  auto p = torch::ones({2}).requires_grad_();
  p.mutable_grad() = torch::ones({2});
  return p;
}

// If the memory at the given address is free, returns a parameter that is allocated there. The
// allocator soon reuses free memory for a new tensor.
std::optional<torch::Tensor> parameter_at(const void* address) {
  std::vector<torch::Tensor> others;
  for (int i = 0; i < 1000; ++i) {
    others.push_back(ones_with_gradient());
    if (others.back().unsafeGetTensorImpl() == address) return others.back();
  }
  return {};
}

using Maker =
    std::function<std::unique_ptr<sconce::optim::Optimizer>(const std::vector<torch::Tensor>&)>;

// Returns a one-parameter group, either with a separate learning rate or without options.
OptimizerParamGroup group_of(const torch::Tensor& parameter,
                             std::optional<double> lr = std::nullopt) {
  if (!lr) return OptimizerParamGroup({parameter});
  return {{parameter}, std::make_unique<SGDOptions>(*lr)};
}

// Returns the tensor that a group uses as its learning rate.
torch::Tensor lr_of(const sconce::optim::Optimizer& optimizer, size_t group) {
  const auto groups = optimizer.state_dict().toGenericDict().at("param_groups").toList();
  return groups.get(group).toGenericDict().at("lr").toTensor();
}

// Returns two one-parameter groups. Their learning rates differ from each other and from the
// default of every optimizer class.
sconce::test::Groups two_rates(const sconce::test::Kind& kind,
                               const std::vector<torch::Tensor>& parameters) {
  sconce::test::Groups groups;
  groups.emplace_back(std::vector{parameters[0]}, kind.options(3e-4));
  groups.emplace_back(std::vector{parameters[1]}, kind.options(0.04));
  return groups;
}

// Returns functions that create optimizers, one function for each combination of optimizer class
// and supported kernels.
std::vector<Maker> makers() {
  std::vector<Maker> all;
  sconce::test::for_each_kind([&](const auto& kind, Kernels kernels) {
    all.emplace_back(
        [&kind, kernels](const auto& p) { return kind.make({{p}}, 0.1, {.kernels = kernels}); });
  });
  return all;
}

std::string state_text(const sconce::optim::Optimizer& optimizer) {
  std::ostringstream out;
  out << optimizer.state_dict();
  return out.str();
}

// A network body with two heads. Training alternates between the heads, so different parameters
// have gradients in each step.
struct TwoHeads {
  explicit TwoHeads(const Maker& make) : optimizer(make(parameters)) {}

  // `batch` contains the input and a flag that indicates whether the gradients overflowed.
  sconce::CapturedStep::Tensors step(size_t head, const std::vector<torch::Tensor>& batch) {
    optimizer->zero_grad();
    const auto loss = ((parameters[0] * batch[0]).square() * parameters[1 + head]).sum();
    loss.backward();
    if (optimizer->step_supports_amp_scaling()) {
      optimizer->step_with_amp_scaling({}, batch[1]);
    } else {
      optimizer->step();
    }
    return {loss.detach()};
  }

  sconce::CapturedStep captured(size_t head) {
    return sconce::CapturedStep(sconce::gpu(),
                                [this, head](const auto& batch) { return step(head, batch); },
                                {.num_warmup_iters = 1});
  }

  std::vector<torch::Tensor> parameters = copies(std::vector<torch::Tensor>(
      3, torch::tensor({0.5F, -1.0F, 2.0F}, sconce::gpu()).requires_grad_()));
  std::unique_ptr<sconce::optim::Optimizer> optimizer;
};

// Trains once with captured steps and once with the same steps in a plain loop.
void check_captured_in_turns(const Maker& make) {
  TwoHeads plain(make), replayed(make);
  std::array<sconce::CapturedStep, 2> steps = {replayed.captured(0), replayed.captured(1)};
  for (int i = 0; i < 10; ++i) {
    INFO("step " << i);
    const size_t head = i % 2;
    const std::vector<torch::Tensor> batch = {
        torch::tensor({1.0F, 2.0F, static_cast<float>(i)}, sconce::gpu()),
        torch::full({}, i < 3 || i == 7 ? 1.0F : 0.0F, sconce::gpu())};
    const auto expected = plain.step(head, batch)[0];
    CHECK(steps[head](batch)[0].equal(expected));
  }
  for (const auto& step : steps) CHECK(step.is_captured());
  for (size_t i = 0; i < 3; ++i) CHECK(replayed.parameters[i].equal(plain.parameters[i]));
  CHECK(state_text(*replayed.optimizer) == state_text(*plain.optimizer));
}

}  // namespace

TEST_CASE(
    "an optimizer uses fused kernels if all parameters allow it, otherwise foreach, otherwise "
    "for_loop") {
  const auto floats = parameter({2, 3});
  const auto halves = parameter({2}, torch::kBFloat16);
  const auto complex = torch::ones({2}, torch::kComplexFloat).requires_grad_();
  const auto gaps = torch::ones({4, 4}).select(1, 0).detach().requires_grad_();
  const auto meta = torch::ones({2}, torch::kMeta).requires_grad_();
  CHECK(SGD({floats, halves}, SGDOptions(0.1)).kernels() == Kernels::fused);
  CHECK(Adam(std::vector<torch::Tensor>{floats.t().detach().requires_grad_()}).kernels() ==
        Kernels::fused);
  CHECK(AdamW({floats, complex}).kernels() == Kernels::foreach);
  CHECK(AdamW({floats, gaps}).kernels() == Kernels::foreach);
  CHECK(AdamW({floats, meta}).kernels() == Kernels::for_loop);
  CHECK(AdamW({floats}, AdamWOptions(), {.kernels = Kernels::for_loop}).kernels() ==
        Kernels::for_loop);
  CHECK(Adagrad({floats, halves}).kernels() == Kernels::fused);
  CHECK(RMSprop({floats, halves}).kernels() == Kernels::foreach);
  CHECK(NAdam({floats, meta}).kernels() == Kernels::for_loop);
  CHECK(SGD({floats}, SGDOptions(0.1)).step_supports_amp_scaling());
  CHECK_FALSE(SGD({floats, complex}, SGDOptions(0.1)).step_supports_amp_scaling());
}

TEST_CASE("Kernels::fused rejects parameters that are complex, non-dense, meta, or float8") {
  const ExtraOptions fused = {.kernels = Kernels::fused};
  for (const auto& p : {torch::ones({2}, torch::kComplexFloat).requires_grad_(),
                        torch::ones({4, 4}).select(1, 0).detach().requires_grad_(),
                        torch::ones({2}, torch::kMeta).requires_grad_(),
                        torch::ones({2}).to(torch::kFloat8_e4m3fn).requires_grad_()}) {
    CHECK_THROWS_WITH(
        SGD({p}, SGDOptions(0.1), fused),
        ContainsSubstring("sconce::optim::SGD: Kernels::fused requires every parameter"));
    CHECK_THROWS_WITH(AdamW({p}, AdamWOptions(), fused),
                      ContainsSubstring("sconce::optim::AdamW: Kernels::fused requires every"));
  }
  SGD optimizer({parameter({2})}, SGDOptions(0.1), fused);
  CHECK_THROWS_WITH(
      optimizer.add_param_group({{torch::ones({2}, torch::kComplexFloat).requires_grad_()}}),
      ContainsSubstring("got one of ComplexFloat"));
}

TEST_CASE(
    "step_with_amp_scaling throws if the kernels are not fused or if the scale or found_inf is "
    "invalid") {
  const auto none = torch::zeros({});
  AdamW loop({parameter({2})}, AdamWOptions(), {.kernels = Kernels::foreach});
  CHECK_THROWS_WITH(loop.step_with_amp_scaling(none, none),
                    ContainsSubstring("expected Kernels::fused, got different kernels"));
  AdamW fused({parameter({2})});
  const auto expected = ContainsSubstring("expected float32 tensors with one element");
  CHECK_THROWS_WITH(fused.step_with_amp_scaling({}, {}), expected);
  CHECK_THROWS_WITH(fused.step_with_amp_scaling({}, torch::zeros({2})), expected);
  CHECK_THROWS_WITH(fused.step_with_amp_scaling(none.to(torch::kDouble), none), expected);
}

TEST_CASE(
    "gradients whose strides differ from the parameter's strides update the correct elements") {
  for (const auto kernels : {Kernels::fused, Kernels::foreach, Kernels::for_loop}) {
    auto p = torch::zeros({2, 3}).requires_grad_();
    p.mutable_grad() = torch::arange(6.0).reshape({3, 2}).t();
    SGD({p}, SGDOptions(1.0), {.kernels = kernels}).step();
    CHECK(p.equal(-p.grad()));
  }
}

TEST_CASE(
    "fused steps match for_loop steps after changes to gradients, groups, options, or state") {
  torch::manual_seed(0);
  const std::vector<torch::Tensor> fused = {parameter({5}), parameter({7, 3}), parameter({40000}),
                                            parameter({2, 2})};
  const auto looped = copies(fused);
  const auto make = [](const std::vector<torch::Tensor>& p, Kernels kernels) {
    return std::make_unique<AdamW>(std::vector<torch::Tensor>{p[0], p[1], p[2]}, AdamWOptions(0.1),
                                   ExtraOptions{.kernels = kernels});
  };
  const auto a = make(fused, Kernels::fused);
  const auto b = make(looped, Kernels::for_loop);
  const auto change_both = [&](const auto& change) {
    change(*a, fused);
    change(*b, looped);
    for (int i = 0; i < 2; ++i) {
      a->step();
      b->step();
    }
    check_equal(fused, looped);
  };
  using Params = std::vector<torch::Tensor>;
  change_both([](AdamW&, const Params&) {});
  change_both([](AdamW&, const Params& p) { p[1].mutable_grad() = torch::Tensor(); });
  change_both([](AdamW&, const Params& p) { p[1].mutable_grad() = torch::ones({7, 3}); });
  change_both([](AdamW& o, const Params& p) { o.add_param_group({{p[3]}}); });
  change_both([](AdamW& o, const Params&) {
    static_cast<AdamWOptions&>(o.param_groups()[0].options()).amsgrad(true).lr(0.01);
  });
  change_both([](AdamW& o, const Params&) { o.state().clear(); });
  for (const auto* o : {a.get(), b.get()}) {  // restarted, so two steps have run since then
    const auto states = o->state_dict().toGenericDict().at("state").toGenericDict();
    CHECK(states.at(0).toGenericDict().at("step").toTensor().item<float>() == 2);
  }
  change_both([](AdamW& o, const Params&) {
    auto& params = o.param_groups()[0].params();
    std::swap(params[0], params[2]);
  });
  change_both([](AdamW& o, const Params&) {
    torch::optim::StepLR scheduler(o, 1, 0.5);  // LibTorch schedulers set the group options
    scheduler.step();
    scheduler.step();
  });
  CHECK(a->param_groups()[1].options().get_lr() == 0.05);
}

TEST_CASE(
    "a parameter listed twice in a group is updated once, and a parameter in two groups is "
    "rejected") {
  const auto p = torch::ones({2}).requires_grad_();
  p.mutable_grad() = torch::ones({2});
  for (const auto kernels : {Kernels::fused, Kernels::foreach, Kernels::for_loop}) {
    SGD optimizer({p, p}, SGDOptions(1.0).momentum(0.5), {.kernels = kernels});
    const auto before = p.detach().clone();
    optimizer.step();
    CHECK(p.equal(before - 1));
    CHECK(optimizer.param_groups()[0].params().size() == 1);
    std::stringstream archive;
    torch::save(optimizer, archive);
    CHECK_NOTHROW(torch::load(optimizer, archive));
    CHECK_THROWS_WITH(
        SGD({torch::optim::OptimizerParamGroup({p}), torch::optim::OptimizerParamGroup({p})},
            SGDOptions(1.0), {.kernels = kernels}),
        ContainsSubstring(
            "expected each parameter in only one group, got a parameter in two groups"));
  }
}

TEST_CASE("a new parameter is never updated with the state of a destroyed parameter") {
  for (const auto& make : makers()) {
    for (const bool as_group : {false, true}) {
      const auto kept = ones_with_gradient();
      auto gone = ones_with_gradient();
      const auto optimizer = make({kept, gone});
      optimizer->step();
      const void* const address = gone.unsafeGetTensorImpl();
      optimizer->param_groups()[0].params() = {kept};
      gone = torch::Tensor();
      optimizer->step();  // releases the parameter

      const auto fresh = parameter_at(address).value_or(ones_with_gradient());
      const auto expected = ones_with_gradient();
      if (as_group) {
        CHECK_NOTHROW(optimizer->add_param_group({{fresh}}));
      } else {
        optimizer->param_groups()[0].params().push_back(fresh);
      }
      optimizer->step();
      make({expected})->step();
      CHECK(fresh.equal(expected));
    }
  }
}

TEST_CASE("a new parameter is never updated with the loaded state of a destroyed parameter") {
  for (const auto& make : makers()) {
    for (const bool by_archive : {false, true}) {
      auto gone = ones_with_gradient();
      const auto optimizer = make({gone});
      optimizer->step();
      if (by_archive) {
        std::stringstream archive;
        torch::save(*optimizer, archive);
        torch::load(*optimizer, archive);
      } else {
        optimizer->load_state_dict(optimizer->state_dict());
      }
      const void* const address = gone.unsafeGetTensorImpl();
      optimizer->param_groups()[0].params().clear();
      gone = torch::Tensor();

      const auto fresh = parameter_at(address).value_or(ones_with_gradient());
      const auto expected = ones_with_gradient();
      optimizer->param_groups()[0].params() = {fresh};
      optimizer->step();
      make({expected})->step();
      CHECK(fresh.equal(expected));
    }
  }
}

TEST_CASE(
    "a parameter that is removed from its group and added again keeps its state, as in Python") {
  for (const auto& make : makers()) {
    const auto a = ones_with_gradient();
    const auto b = ones_with_gradient();
    const auto left = make({a});
    const auto stayed = make({b});
    left->step();
    stayed->step();
    left->param_groups().clear();
    left->step();
    left->add_param_group({{a}});
    left->step();
    stayed->step();
    CHECK(a.equal(b));
    CHECK_THROWS_WITH(
        left->add_param_group({{a}}),
        ContainsSubstring(
            "expected each parameter in only one group, got a parameter in two groups"));
  }
}

namespace {

struct OwnOptions : torch::optim::OptimizerCloneableOptions<OwnOptions> {
  TORCH_ARG(double, lr) = 1;

 public:
  double get_lr() const override { return lr(); }
  void set_lr(const double value) override { lr(value); }
};

// An optimizer algorithm that does nothing.
class NoAlgorithm : public sconce::optim::Algorithm {
 public:
  NoAlgorithm()
      : Algorithm({.name = "OwnOptimizer",
                   .fastest = Kernels::fused,
                   .supports_sparse = false,
                   .python_has_fused_on_gpu = true}) {}
  void check(const Options&) const override {}
  void make_first_states(torch::optim::Optimizer&) const override {}
  bool prepare_group(torch::optim::Optimizer&, size_t) override { return false; }
  void step_group(size_t, const Options&, const ExtraOptions&, const sconce::optim::Amp&) override {
  }
  void forget_plans() override {}
  Tensors state_tensors(const ParamState&) const override { return {}; }
  std::unique_ptr<ParamState> make_state(const Tensors&, const torch::Tensor&) const override {
    return nullptr;
  }
  void visit_options(Options&, sconce::StateVisitor&) const override {}
  void write(torch::serialize::OutputArchive&, const torch::optim::Optimizer&) const override {}
  void read(torch::serialize::InputArchive&, torch::optim::Optimizer&) const override {}
};

// An optimizer with an option type that LibTorch does not recognize.
class OwnOptimizer : public sconce::optim::Optimizer {
 public:
  explicit OwnOptimizer(const std::vector<OptimizerParamGroup>& groups)
      : Optimizer(std::make_unique<NoAlgorithm>(), groups, std::make_unique<OwnOptions>(), {}) {}
};

}  // namespace

TEST_CASE("Adagrad, NAdam, and RMSprop match Python, and all options have Python's defaults",
          "[python]") {
  std::vector<sconce::test::Case> cases;
  for (const auto& some : {sconce::test::adagrad_cases(), sconce::test::nadam_cases(),
                           sconce::test::rmsprop_cases()}) {
    cases.insert(cases.end(), some.begin(), some.end());
  }
  const auto add = [&]<class Optimizer, class Options>(const char* name) {
    sconce::test::Case c;
    c.name = c.optimizer = name;
    c.extra.kernels = Kernels::for_loop;
    c.make = [](const std::vector<torch::Tensor>& p, const ExtraOptions& extra) {
      std::vector<OptimizerParamGroup> groups;
      groups.emplace_back(std::vector<torch::Tensor>(p.begin(), p.begin() + 4));
      groups.emplace_back(std::vector<torch::Tensor>(p.begin() + 4, p.end()));
      return std::make_unique<Optimizer>(groups, Options(), extra);
    };
    cases.push_back(c);
  };
  add.operator()<Adagrad, AdagradOptions>("Adagrad");
  add.operator()<Adam, AdamOptions>("Adam");
  add.operator()<AdamW, AdamWOptions>("AdamW");
  add.operator()<NAdam, NAdamOptions>("NAdam");
  add.operator()<RMSprop, RMSpropOptions>("RMSprop");
  const int of_adagrad = 46 * (6 + 6 * 2), of_nadam = 32 * (6 + 5 * 4);
  const int of_rmsprop = 32 * (6 + 5 * 2) + 32 * 5;  // half have momentum, and half are centered
  const int of_defaults = 5 * 6 + 6 * 2 + 5 * (3 + 3 + 4 + 2);
  CHECK(sconce::test::compare_with_python(cases) ==
        of_adagrad + of_nadam + of_rmsprop + of_defaults);
}

TEST_CASE("parameter groups keep options of a custom type") {
  const auto group = [](double lr) {
    auto options = std::make_unique<OwnOptions>();
    options->lr(lr);
    return OptimizerParamGroup({parameter({2})}, std::move(options));
  };
  OwnOptimizer optimizer({group(0.5), OptimizerParamGroup({parameter({2})})});
  optimizer.add_param_group(group(0.25));
  std::vector<double> rates;
  for (const auto& each : optimizer.param_groups()) rates.push_back(each.options().get_lr());
  CHECK(rates == std::vector{0.5, 1.0, 0.25});
}

TEST_CASE("add_param_group rejects an invalid group and leaves the optimizer unchanged") {
  const auto p = parameter({3});
  const auto refuse = [&](auto&& optimizer, auto options, const std::string& message) {
    optimizer.step();
    const auto before = state_text(optimizer);
    const auto q = parameter({2});
    std::vector<torch::optim::OptimizerParamGroup> group;
    group.emplace_back(std::vector<torch::Tensor>{q}, std::make_unique<decltype(options)>(options));
    CHECK_THROWS_WITH(optimizer.add_param_group(group[0]), ContainsSubstring(message));
    CHECK_THROWS_WITH(
        optimizer.add_param_group({{p}}),
        ContainsSubstring(
            "expected each parameter in only one group, got a parameter in two groups"));
    CHECK_THROWS_WITH(optimizer.add_param_group({{p * 2}}), ContainsSubstring("non-leaf"));
    CHECK(state_text(optimizer) == before);
    CHECK_NOTHROW(optimizer.step());
    CHECK_NOTHROW(optimizer.add_param_group({{q}}));

    torch::optim::Optimizer& of_libtorch = optimizer;  // its function does not check options
    group[0].params() = {parameter({2})};
    of_libtorch.add_param_group(group[0]);
    CHECK_THROWS_WITH(optimizer.step(), ContainsSubstring(message));
    of_libtorch.param_groups().pop_back();
    CHECK_NOTHROW(optimizer.step());
  };
  const double nan = std::nan("");
  refuse(SGD({p}, SGDOptions(0.1)), SGDOptions(0.1).momentum(-1), "expected momentum >= 0, got -1");
  refuse(SGD({p}, SGDOptions(0.1)), SGDOptions(nan), "expected lr >= 0, got nan");
  refuse(Adam({p}), AdamOptions(0.1).eps(-1), "expected eps >= 0, got -1");
  refuse(Adam({p}), AdamOptions(nan), "expected lr >= 0, got nan");
  refuse(AdamW({p}), AdamWOptions(0.1).weight_decay(-1), "expected weight_decay >= 0, got -1");
}

TEST_CASE("a parameter group can be added with a scheduled learning rate slightly below 0") {
  using sconce::optim::lr_scheduler::LinearLR;
  int below = 0;
  const auto add = [&](auto&& optimizer, auto options) {
    LinearLR schedule(optimizer, {.end_factor = 0, .total_iters = 4});
    for (int epoch = 0; epoch < 4; ++epoch) schedule.step();
    const double reached = optimizer.param_groups()[0].options().get_lr();
    below += static_cast<int>(reached < 0);
    options.lr(reached);
    std::vector<torch::optim::OptimizerParamGroup> group;
    group.emplace_back(std::vector<torch::Tensor>{parameter({2})},
                       std::make_unique<decltype(options)>(options));
    CHECK_NOTHROW(optimizer.add_param_group(group[0]));
    CHECK(optimizer.param_groups()[1].options().get_lr() == reached);
    CHECK_NOTHROW(optimizer.step());
  };
  add(SGD({parameter({3})}, SGDOptions(0.1)), SGDOptions(0.1));
  add(Adam({parameter({3})}, AdamOptions(0.1)), AdamOptions());
  add(AdamW({parameter({3})}, AdamWOptions(0.1)), AdamWOptions());
  CHECK(below == 3);
}

TEST_CASE("a parameter group that replaces a removed group is also validated") {
  const auto p = parameter({3});
  SGD optimizer(
      {torch::optim::OptimizerParamGroup({p}), torch::optim::OptimizerParamGroup({parameter({2})})},
      SGDOptions(0.1));
  optimizer.param_groups().pop_back();
  CHECK_THROWS_WITH(
      optimizer.add_param_group({{p}}),
      ContainsSubstring(
          "expected each parameter in only one group, got a parameter in two groups"));
  optimizer.add_param_group({{torch::ones({2}, torch::kComplexFloat).requires_grad_()}});
  CHECK(optimizer.kernels() == Kernels::foreach);
}

TEST_CASE("an optimizer can be returned from a function but not copied or moved") {
  STATIC_CHECK_FALSE(std::is_move_constructible_v<SGD>);
  STATIC_CHECK_FALSE(std::is_move_assignable_v<SGD>);
  STATIC_CHECK_FALSE(std::is_copy_constructible_v<Adam>);
  STATIC_CHECK_FALSE(std::is_move_constructible_v<Adam>);
  STATIC_CHECK_FALSE(std::is_move_constructible_v<AdamW>);
  const auto p = ones_with_gradient();
  const auto make = [&] { return SGD({p}, SGDOptions(0.5)); };
  auto optimizer = make();
  sconce::optim::lr_scheduler::ExponentialLR schedule(optimizer, 0.5);
  schedule.step();
  optimizer.step();
  CHECK(p.equal(torch::full({2}, 0.75)));
}

TEST_CASE("the automatic choice of kernels is updated when a group is added") {
  torch::manual_seed(0);
  const std::vector<torch::Tensor> fused = {parameter({5}), parameter({3}, torch::kComplexFloat)};
  const auto looped = copies(fused);
  AdamW a({fused[0]});
  AdamW b({looped[0]}, AdamWOptions(), {.kernels = Kernels::for_loop});
  for (int i = 0; i < 4; ++i) {
    if (i == 2) {
      CHECK(a.kernels() == Kernels::fused);
      a.add_param_group({{fused[1]}});
      b.add_param_group({{looped[1]}});
    }
    a.step();
    b.step();
  }
  CHECK(a.kernels() == Kernels::foreach);
  check_equal(fused, looped);
}

TEST_CASE("loading a mismatched archive leaves the optimizer's state and options unchanged") {
  const auto p = parameter({3});
  Adam optimizer({p}, AdamOptions(0.1));
  optimizer.step();
  const auto before = state_text(optimizer);
  Adam other({parameter({4})}, AdamOptions(0.7));
  other.step();
  std::stringstream archive;
  torch::save(other, archive);
  CHECK_THROWS_WITH(torch::load(optimizer, archive),
                    ContainsSubstring("expected exp_avg of sizes [3], got [4]"));
  CHECK(state_text(optimizer) == before);
}

TEST_CASE("calling state_dict between steps does not change later values of a tensor lr") {
  using sconce::optim::lr_scheduler::ExponentialLR;
  const auto rates = [](bool makes_states) {
    AdamW optimizer({parameter({3})}, AdamWOptions(), {.lr = torch::tensor(0.1F)});
    ExponentialLR scheduler(optimizer, 0.9);
    std::vector<double> found;
    for (int i = 0; i < 10; ++i) {
      optimizer.step();
      scheduler.step();
      if (makes_states) CHECK(optimizer.state_dict().isGenericDict());
      found.push_back(scheduler.get_last_lr()[0]);
      CHECK(found.back() == static_cast<float>(found.back()));  // equals the tensor's value
    }
    return found;
  };
  CHECK(rates(true) == rates(false));
}

TEST_CASE("schedulers and loaded states update a tensor lr") {
  using sconce::optim::lr_scheduler::ExponentialLR;
  const auto lr = torch::tensor(0.5F);
  AdamW optimizer({parameter({3})}, AdamWOptions(), {.lr = lr});
  CHECK(optimizer.param_groups()[0].options().get_lr() == 0.5);
  ExponentialLR scheduler(optimizer, 0.5);
  optimizer.step();
  CHECK(lr.item<float>() == 0.5F);
  scheduler.step();
  optimizer.step();
  CHECK(lr.item<float>() == 0.25F);
  lr.fill_(2);
  optimizer.step();
  CHECK(lr.item<float>() == 2);  // no code changed the options
  const auto changed = optimizer.state_dict();
  AdamW other({parameter({3})}, AdamWOptions(), {.lr = torch::tensor(0.1F)});
  other.load_state_dict(changed);
  CHECK(other.param_groups()[0].options().get_lr() == 2);

  torch::optim::StepLR stock(other, 1, 0.5);  // LibTorch schedulers also set the options
  stock.step();
  stock.step();
  other.step();
  CHECK(other.state_dict()
            .toGenericDict()
            .at("param_groups")
            .toListRef()[0]
            .toGenericDict()
            .at("lr")
            .toTensor()
            .item<float>() == 1);
}

TEST_CASE("a group added to an optimizer with a tensor lr starts at the scheduled learning rate") {
  using sconce::optim::lr_scheduler::ExponentialLR;
  for (const bool by_libtorch : {false, true}) {
    const auto lr = torch::tensor(0.5F);
    SGD optimizer({parameter({3})}, SGDOptions(0.1), {.lr = lr});
    ExponentialLR scheduler(optimizer, 0.5);
    scheduler.step();
    torch::optim::Optimizer& of_libtorch = optimizer;  // its function does not write learning rates
    if (by_libtorch) {
      of_libtorch.add_param_group({{parameter({2})}});
    } else {
      optimizer.add_param_group({{parameter({2})}});
      CHECK(optimizer.param_groups()[1].options().get_lr() == 0.25);
    }
    scheduler.step();
    scheduler.step();
    CHECK(lr.item<float>() == 0.0625F);
    CHECK(scheduler.get_last_lr() == std::vector{0.0625, 0.0625});
  }
}

TEST_CASE("with a tensor lr, each group uses a separate learning rate") {
  torch::manual_seed(0);
  const std::vector<torch::Tensor> start = {parameter({3}), parameter({300, 300})};
  for (const auto kernels : {Kernels::automatic, Kernels::for_loop}) {
    for (const auto& kind : sconce::test::kinds()) {
      INFO(kind.name);
      const auto with_numbers = copies(start), with_tensors = copies(start);
      const auto expected = kind.make(two_rates(kind, with_numbers), 0.2, {.kernels = kernels});
      const auto optimizer = kind.make(two_rates(kind, with_tensors), 0.2,
                                       {.kernels = kernels, .lr = torch::tensor(0.2F)});
      for (int i = 0; i < 3; ++i) {
        expected->step();
        optimizer->step();
      }
      check_equal(with_numbers, with_tensors);
      CHECK(lr_of(*optimizer, 0).equal(torch::tensor(3e-4F)));
      CHECK(lr_of(*optimizer, 1).equal(torch::tensor(0.04F)));
    }
  }
}

TEST_CASE("setting one group's learning rate does not change another group's tensor lr") {
  const auto lr = torch::tensor(0.5F);
  const std::vector<torch::Tensor> p = {ones_with_gradient(), ones_with_gradient()};
  SGD optimizer({group_of(p[0]), group_of(p[1])}, SGDOptions(0.1), {.lr = lr});
  optimizer.param_groups()[1].options().set_lr(0.25);
  optimizer.step();
  CHECK(p[0].equal(torch::full({2}, 0.5)));
  CHECK(p[1].equal(torch::full({2}, 0.75)));
  lr.fill_(1);  // the learning rate of the first group
  optimizer.step();
  CHECK(p[0].equal(torch::full({2}, -0.5)));
  CHECK(p[1].equal(torch::full({2}, 0.5)));
}

TEST_CASE("a scheduler reports the learning rates stored in the groups' lr tensors") {
  using sconce::optim::lr_scheduler::LambdaLR;
  const std::vector<torch::Tensor> p = {ones_with_gradient(), ones_with_gradient()};
  SGD optimizer({group_of(p[0]), group_of(p[1])}, SGDOptions(0.1), {.lr = torch::tensor(0.5F)});
  const auto factor = [](double value) { return [=](int64_t) { return value; }; };
  LambdaLR scheduler(optimizer, {factor(1), factor(0.125)});
  CHECK(scheduler.get_last_lr() == std::vector{0.5, 0.0625});
  optimizer.step();
  CHECK(p[0].equal(torch::full({2}, 0.5)));
  CHECK(p[1].equal(torch::full({2}, 0.9375)));
}

TEST_CASE("a scheduler continues from a learning rate written to the tensor lr") {
  using sconce::optim::lr_scheduler::ExponentialLR;
  const auto lr = torch::tensor(0.5F);
  SGD optimizer({parameter({3})}, SGDOptions(0.1), {.lr = lr});
  ExponentialLR scheduler(optimizer, 0.5);
  lr.fill_(8);
  const sconce::test::HostReads reads;
  scheduler.step();
  CHECK(reads.count() == 1);
  scheduler.step();  // the tensor has not changed, so the host does not read it
  CHECK(reads.count() == 1);
  CHECK(scheduler.get_last_lr() == std::vector{2.0});
  CHECK(lr.item<float>() == 2);
}

TEST_CASE("removing or adding groups does not change the other groups' tensor lr") {
  const auto lr = torch::tensor(0.5F);
  const std::vector<torch::Tensor> p = {ones_with_gradient(), ones_with_gradient(),
                                        ones_with_gradient()};
  SGD optimizer({group_of(p[0]), group_of(p[1], 0.5), group_of(p[2], 0.25)}, SGDOptions(0.1),
                {.lr = lr});
  CHECK(lr_of(optimizer, 0).is_same(lr));
  const auto of_last = lr_of(optimizer, 2);
  optimizer.param_groups().pop_back();
  optimizer.write_lr();
  optimizer.add_param_group(group_of(p[2], 0.25));
  CHECK(lr_of(optimizer, 2).is_same(of_last));  // a graph might read it
  lr.fill_(2);
  optimizer.param_groups().erase(optimizer.param_groups().begin());
  optimizer.step();
  CHECK(p[0].equal(torch::ones({2})));
  CHECK(p[1].equal(torch::full({2}, 0.5)));
  CHECK(p[2].equal(torch::full({2}, 0.75)));
  CHECK(lr_of(optimizer, 1).is_same(of_last));

  optimizer.add_param_group(group_of(p[0]));  // has no learning rate, so it uses the tensor
  CHECK(lr_of(optimizer, 2).is_same(lr));
  CHECK(lr.item<float>() == 2);
  optimizer.add_param_group(group_of(ones_with_gradient(), 0.125));
  CHECK(lr_of(optimizer, 3).item<float>() == 0.125F);
  CHECK(optimizer.param_groups()[3].options().get_lr() == 0.125);
}

TEST_CASE("zero_grad removes gradients, or sets them to zero if set_to_none is false") {
  const auto p = torch::ones({2}).requires_grad_();
  SGD optimizer({p}, SGDOptions(0.5));
  optimizer.zero_grad();  // without a gradient
  p.mutable_grad() = torch::ones({2});
  const auto gradient = p.grad();
  optimizer.zero_grad(/*set_to_none=*/false);
  CHECK(p.grad().is_same(gradient));
  CHECK(gradient.equal(torch::zeros({2})));
  optimizer.zero_grad();
  CHECK(!p.grad().defined());
}

TEST_CASE("step runs its closure with gradients enabled and returns the closure's loss") {
  const auto p = torch::ones({2}).requires_grad_();
  SGD optimizer({p}, SGDOptions(0.5));
  const torch::NoGradGuard no_grad;
  const auto loss = optimizer.step([&] {
    const auto sum = (p * 3).sum();
    sum.backward();
    return sum;
  });
  CHECK(loss.item<float>() == 6);
  CHECK(p.equal(torch::full({2}, -0.5)));
}

TEST_CASE("an optimizer rejects a mismatched state dict and stays unchanged") {
  const auto p = parameter({3});
  Adam optimizer({p}, AdamOptions(0.1));
  optimizer.step();
  const auto before = state_text(optimizer);
  const auto refuse = [&](const c10::IValue& dict, const std::string& message) {
    CHECK_THROWS_WITH(optimizer.load_state_dict(dict),
                      ContainsSubstring("sconce::optim::Adam") && ContainsSubstring(message));
    CHECK(state_text(optimizer) == before);
  };
  const auto of = [](auto&& other) {
    other.step();
    return other.state_dict();
  };
  refuse(c10::IValue(3), "expected a dict, got Int");
  refuse(c10::impl::GenericDict(c10::StringType::get(), c10::AnyType::get()),
         "expected a dict with the key 'state'");
  refuse(of(Adam({parameter({3}), parameter({3})})), "expected a group of 1 parameters, got 2");
  refuse(of(Adam({parameter({4})})), "expected exp_avg of sizes [3], got [4]");
  refuse(of(Adam({parameter({3})}, AdamOptions(), {.maximize = true})), "expected maximize=0");
  refuse(of(SGD({parameter({3})}, SGDOptions(0.1))), "expected a dict with the key 'betas'");
  Adam two_groups({parameter({3})});
  two_groups.add_param_group({{parameter({3})}});
  refuse(two_groups.state_dict(), "expected 1 parameter groups, got 2");
  const auto refuse_option = [&](const char* key, const c10::IValue& value,
                                 const std::string& message) {
    const auto wrong = optimizer.state_dict();
    const auto groups = wrong.toGenericDict().at("param_groups").toListRef().vec();
    groups[0].toGenericDict().insert_or_assign(key, value);
    refuse(wrong, message);
  };
  refuse_option("lr", std::nan(""), "expected lr >= 0, got nan");
  refuse_option("weight_decay", -1.0, "expected weight_decay >= 0, got -1");
  refuse_option("max_lr", "high", "expected a number for 'max_lr', got String");
  auto half = optimizer.state_dict();
  CHECK(half.toGenericDict().at("state").toGenericDict().at(0).toGenericDict().erase("exp_avg") ==
        1);
  refuse(half, "expected each parameter's state to contain exp_avg");
}

TEST_CASE("a run whose schedule rounded the learning rate to slightly below 0 can be resumed") {
  using sconce::optim::lr_scheduler::LinearLR;
  const auto lr_of = [](Adam& optimizer) { return optimizer.param_groups()[0].options().get_lr(); };
  int below = 0;
  for (const double lr : {0.1, 0.8, 0.003}) {
    for (int64_t length = 1; length <= 30; ++length) {
      INFO(lr << " to 0 in " << length);
      const auto p = parameter({3});
      Adam run({p}, AdamOptions(lr));
      LinearLR schedule(run, {.end_factor = 0, .total_iters = length});
      for (int64_t i = 0; i < length; ++i) schedule.step();
      const double reached = lr_of(run);
      below += static_cast<int>(reached < 0);
      Adam by_dict({p});
      by_dict.load_state_dict(run.state_dict());
      CHECK(lr_of(by_dict) == reached);
      std::stringstream stream;
      torch::save(run, stream);
      Adam by_archive({p});
      torch::load(by_archive, stream);
      CHECK(lr_of(by_archive) == reached);
      Adam with_tensor({p}, AdamOptions(), {.lr = torch::tensor(1.0, torch::kDouble)});
      with_tensor.load_state_dict(run.state_dict());
      CHECK(lr_of(with_tensor) == reached);
      for (Adam* resumed : {&by_dict, &by_archive, &with_tensor}) CHECK_NOTHROW(resumed->step());
    }
  }
  CHECK(below > 0);
}

TEST_CASE(
    "a group added before a state is loaded accepts a loaded learning rate slightly below 0") {
  const std::vector<torch::Tensor> p = {parameter({3}), parameter({2})};
  Adam run({torch::optim::OptimizerParamGroup({p[0]}), torch::optim::OptimizerParamGroup({p[1]})});
  run.step();
  run.param_groups()[1].options().set_lr(-1.85e-18);  // as if set by a schedule
  std::stringstream stream;
  torch::save(run, stream);
  for (const bool by_archive : {false, true}) {
    Adam resumed({p[0]});
    resumed.add_param_group({{p[1], p[1]}});  // the duplicate counts only once
    if (by_archive) {
      torch::load(resumed, stream);
    } else {
      resumed.load_state_dict(run.state_dict());
    }
    CHECK(resumed.param_groups()[1].options().get_lr() == -1.85e-18);
    CHECK_NOTHROW(resumed.step());
  }
}

TEST_CASE(
    "an optimizer's load_state_dict copies the state and converts it to the parameters' dtype") {
  const auto p = parameter({3});
  Adam source({p}, AdamOptions(0.1));
  source.step();
  const auto q = parameter({3}, torch::kDouble);
  Adam target({q});
  target.load_state_dict(source.state_dict());
  const auto exp_avg = [](const Adam& optimizer) {
    return optimizer.state_dict()
        .toGenericDict()
        .at("state")
        .toGenericDict()
        .at(0)
        .toGenericDict()
        .at("exp_avg")
        .toTensor();
  };
  CHECK(exp_avg(target).scalar_type() == torch::kDouble);
  const auto before = exp_avg(target).clone();
  source.step();
  CHECK(exp_avg(target).equal(before));
  CHECK(target.param_groups()[0].options().get_lr() == 0.1);
}

TEST_CASE("on a GPU, optimizer steps match the CPU and perform no host reads", "[gpu]") {
  sconce::test::require_gpu();
  torch::manual_seed(0);
  const std::vector<torch::Tensor> on_cpu = {parameter({5}), parameter({300, 300})};
  for (const auto kernels : {Kernels::fused, Kernels::foreach, Kernels::for_loop}) {
    const auto expected = copies(on_cpu);
    std::vector<torch::Tensor> on_gpu;
    for (const auto& p : on_cpu) {
      on_gpu.push_back(p.detach().to(sconce::gpu()).requires_grad_());
      on_gpu.back().mutable_grad() = p.grad().to(sconce::gpu());
    }
    AdamW theirs(expected, AdamWOptions(0.1), {.kernels = kernels});
    AdamW ours(on_gpu, AdamWOptions(0.1), {.kernels = kernels});
    const auto sgd_options = SGDOptions(0.1).momentum(0.9).dampening(0.5);
    SGD their_sgd(expected, sgd_options, {.kernels = kernels});
    SGD our_sgd(on_gpu, sgd_options, {.kernels = kernels});
    theirs.step();
    their_sgd.step();
    theirs.step();
    their_sgd.step();
    const auto scale = torch::ones({}, sconce::gpu());
    const sconce::test::HostReads reads;
    if (kernels == Kernels::fused) {
      ours.step_with_amp_scaling(scale, scale);  // found_inf is 1, so both are skipped
      our_sgd.step_with_amp_scaling(scale, scale);
    }
    for (int i = 0; i < 2; ++i) {
      ours.step();
      our_sgd.step();
    }
    CHECK(reads.count() == 0);
    check_equal(expected, on_gpu);
  }
}

TEST_CASE("on a GPU, steps with a tensor lr match the CPU and perform no host reads", "[gpu]") {
  sconce::test::require_gpu();
  torch::manual_seed(0);
  const std::vector<torch::Tensor> on_cpu = {parameter({5}), parameter({30, 30})};
  const auto check = [&](const auto& make) {
    const auto expected = copies(on_cpu);
    std::vector<torch::Tensor> on_gpu;
    for (const auto& p : on_cpu) {
      on_gpu.push_back(p.detach().to(sconce::gpu()).requires_grad_());
      on_gpu.back().mutable_grad() = p.grad().to(sconce::gpu());
    }
    const auto theirs = make(expected, torch::tensor(0.01));
    const auto ours = make(on_gpu, torch::tensor(0.01, sconce::gpu()));
    CHECK(ours->is_capturable());
    const auto two_steps = [&] {
      ours->step();
      ours->step();
    };
    two_steps();
    const sconce::test::HostReads reads;
    two_steps();
    CHECK(reads.count() == 0);
    for (int i = 0; i < 4; ++i) theirs->step();
    check_equal(expected, on_gpu);
    const auto again = make(on_gpu, torch::tensor(0.01, sconce::gpu()));
    again->load_state_dict(ours->state_dict());
    CHECK(state_text(*again) == state_text(*ours));
  };
  for (const auto& kind : sconce::test::kinds()) {
    if (!kind.is_capturable()) continue;
    for (size_t choice = 0; choice < kind.choices; ++choice) {
      INFO(kind.name << " choice " << choice);
      check([&](const auto& p, const torch::Tensor& lr) {
        return kind.make_choice({{p}}, 0.01, {.lr = lr}, choice);
      });
    }
  }
}

TEST_CASE("on a GPU, a step updates or skips CPU and GPU parameters together", "[gpu]") {
  sconce::test::require_gpu();
  const auto here = torch::ones({2}).requires_grad_();
  const auto there = torch::ones({2}, sconce::gpu()).requires_grad_();
  for (const auto& p : {here, there}) p.mutable_grad() = torch::ones_like(p);
  SGD optimizer({here, there}, SGDOptions(0.5), {.lr = torch::tensor(0.5F, sconce::gpu())});
  optimizer.step_with_amp_scaling(torch::ones({}, sconce::gpu()), torch::ones({}, sconce::gpu()));
  CHECK(here.equal(torch::ones({2})));
  CHECK(there.cpu().equal(torch::ones({2})));
  optimizer.step_with_amp_scaling(torch::ones({}, sconce::gpu()), torch::zeros({}, sconce::gpu()));
  CHECK(here.equal(torch::full({2}, 0.5)));
  CHECK(there.cpu().equal(torch::full({2}, 0.5)));
}

TEST_CASE("on a GPU, a captured step reads each group's learning rate", "[gpu]") {
  using sconce::optim::lr_scheduler::LambdaLR;
  sconce::test::require_gpu();
  torch::manual_seed(0);
  const auto start = torch::tensor({0.5F, -1.0F, 2.0F}, sconce::gpu());
  for (const auto& kind : sconce::test::kinds()) {
    if (!kind.is_capturable()) continue;
    INFO(kind.name);
    const auto train = [&](bool captures) {
      const auto p = copies({start, start});
      ExtraOptions extra;
      if (captures) extra.lr = torch::full({}, 0.2F, sconce::gpu());
      const auto optimizer = kind.make(two_rates(kind, p), 0.2, extra);
      LambdaLR scheduler(*optimizer, {[](int64_t i) { return std::pow(0.5, i); },
                                      [](int64_t i) { return std::pow(0.25, i); }});
      const auto step = [&](const std::vector<torch::Tensor>& batch) {
        optimizer->zero_grad();
        ((p[0] + p[1]) * batch[0]).square().sum().backward();
        optimizer->step();
        return std::vector<torch::Tensor>{};
      };
      sconce::CapturedStep captured(sconce::gpu(), step, {.num_warmup_iters = 1});
      for (int i = 0; i < 6; ++i) {
        captures ? captured({start + i}) : step({start + i});
        scheduler.step();
      }
      CHECK(captured.is_captured() == captures);
      return p;
    };
    check_equal(train(false), train(true));
  }
}

TEST_CASE("on a GPU, alternating captured steps with different gradients match the eager loop",
          "[gpu]") {
  sconce::test::require_gpu();
  for (const auto& kind : sconce::test::kinds()) {
    if (!kind.is_capturable()) continue;
    DYNAMIC_SECTION(kind.name) {
      check_captured_in_turns([&](const auto& p) {
        return kind.make({{p}}, 0.01, {.lr = torch::full({}, 0.01F, sconce::gpu())});
      });
    }
  }
}

TEST_CASE("a parameter that is not in any group keeps its value and its gradient") {
  const auto p = parameter({3}), q = parameter({3});
  SGD optimizer({OptimizerParamGroup({p})}, SGDOptions(0.5));
  const auto before = q.detach().clone(), gradient = q.grad().clone();
  optimizer.step();
  optimizer.zero_grad();
  CHECK(q.equal(before));
  CHECK(q.grad().equal(gradient));
}
