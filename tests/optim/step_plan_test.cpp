#include "catch.hpp"
#include "optim/kinds.hpp"
#include "optim/training.hpp"
#include "sconce/optim/adam.hpp"
#include "sconce/optim/sgd.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::optim::AdamW;
using sconce::optim::Kernels;
using sconce::optim::SGD;
using torch::optim::SGDOptions;

namespace {

using Parameters = std::vector<torch::Tensor>;

// An optimizer with the given kernels and a separate group for each parameter.
struct KindAndKernels {
  std::string name;
  Kernels kernels;

  std::unique_ptr<sconce::optim::Optimizer> make(const Parameters& parameters) const {
    sconce::test::Groups groups;
    for (const auto& p : parameters) groups.emplace_back(Parameters{p});
    const double lr = name == "RMSprop" ? 0.01 : 0.1;
    return sconce::test::kind_named(name).make(groups, lr, {.kernels = kernels});
  }
};

std::vector<KindAndKernels> kinds_and_kernels() {
  std::vector<KindAndKernels> all;
  for (const auto& kind : sconce::test::kinds()) {
    for (const auto kernels :
         {Kernels::automatic, Kernels::fused, Kernels::foreach, Kernels::for_loop}) {
      if (kind.has(kernels)) all.push_back({kind.name, kernels});
    }
  }
  return all;
}

torch::Tensor ones_with_gradient(torch::IntArrayRef sizes) {
  auto p = torch::ones(sizes).requires_grad_();
  p.mutable_grad() = torch::ones(sizes);
  return p;
}

void become(torch::Tensor& parameter, const torch::Tensor& data) {
  parameter.set_data(data);
  parameter.mutable_grad() = torch::ones_like(data);
}

torch::Tensor channels_last(const torch::Tensor& tensor) {
  return tensor.detach().contiguous(torch::MemoryFormat::ChannelsLast);
}

}  // namespace

TEST_CASE("step reports a changed parameter size before updating any parameter") {
  const std::vector<std::pair<std::vector<int64_t>, std::vector<int64_t>>> changes = {
      {{4, 3}, {2, 3}}, {{4}, {1}}, {{}, {2}}, {{100}, {4}}, {{4}, {100}}};
  for (const auto& kind : kinds_and_kernels()) {
    for (const auto& [before, after] : changes) {
      INFO(kind.name << " with kernels " << static_cast<int>(kind.kernels) << " from " << before
                     << " to " << after);
      const auto first = ones_with_gradient({3});
      auto second = ones_with_gradient(before);
      const auto optimizer = kind.make({first, second});
      optimizer->step();
      become(second, torch::ones(after));
      const auto first_before = first.detach().clone();
      CHECK_THROWS_WITH(
          optimizer->step(),
          ContainsSubstring(c10::str(
              "sconce::optim::", kind.name,
              "::step: expected parameter 0 of group 1 to have the shape of the optimizer state (",
              torch::IntArrayRef(before), "), got ", torch::IntArrayRef(after))));
      CHECK(first.equal(first_before));
      CHECK(second.equal(torch::ones(after)));

      optimizer->state().erase(second.unsafeGetTensorImpl());  // the next step creates it again
      optimizer->step();
      CHECK_FALSE(first.equal(first_before));
      CHECK(second.lt(1).all().item<bool>());
    }
  }
}

TEST_CASE("a parameter without optimizer state can be resized") {
  auto p = ones_with_gradient({4});
  SGD optimizer({p}, SGDOptions(0.5));
  optimizer.step();
  become(p, torch::ones({2, 50}));
  optimizer.step();
  CHECK(p.equal(torch::full({2, 50}, 0.5)));
}

TEST_CASE("step reports a gradient with a mismatched size before updating any parameter") {
  for (const auto& kind : kinds_and_kernels()) {
    for (const int steps_before : {0, 1}) {
      INFO(kind.name << " with kernels " << static_cast<int>(kind.kernels) << " after "
                     << steps_before);
      const auto first = ones_with_gradient({3});
      auto second = ones_with_gradient({4});
      const auto optimizer = kind.make({first, second});
      for (int i = 0; i < steps_before; ++i) optimizer->step();
      const auto first_before = first.detach().clone();
      const auto second_before = second.detach().clone();
      for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{100}, {1}, {2, 2}, {}}) {
        second.mutable_grad() = torch::ones(sizes);
        CHECK_THROWS_WITH(
            optimizer->step(),
            ContainsSubstring(c10::str("sconce::optim::", kind.name,
                                       "::step: expected the gradient of parameter 0 of group 1 to "
                                       "have the parameter's shape ([4]), got ",
                                       torch::IntArrayRef(sizes))));
        CHECK(first.equal(first_before));
        CHECK(second.equal(second_before));
      }
      second.mutable_grad() = torch::ones({4});
      optimizer->step();
      CHECK(second.lt(second_before).all().item<bool>());
    }
  }
}

TEST_CASE(
    "a weight that switches to channels-last and back is updated like a weight that stays "
    "contiguous") {
  for (const auto& kind : kinds_and_kernels()) {
    for (const bool gradient_moves : {false, true}) {
      auto moving = sconce::test::numbers(1, {2, 3, 4, 5}, torch::kFloat).requires_grad_();
      auto staying = moving.detach().clone().requires_grad_();
      const auto a = kind.make({moving});
      const auto b = kind.make({staying});
      for (int step = 0; step < 8; ++step) {
        INFO(kind.name << " with kernels " << static_cast<int>(kind.kernels) << " at step "
                       << step);
        if (step == 2) moving.set_data(channels_last(moving));
        if (step == 5) moving.set_data(moving.detach().contiguous());
        staying.mutable_grad() = sconce::test::numbers(10 + step, moving.sizes(), torch::kFloat);
        moving.mutable_grad() =
            gradient_moves ? channels_last(staying.grad()) : staying.grad().clone();
        a->step();
        b->step();
        CHECK(sconce::test::close(moving, staying));
        const auto states = sconce::test::result_of(*a, {moving}).tensors;
        for (const auto& [key, tensor] : sconce::test::result_of(*b, {staying}).tensors) {
          INFO(key);
          CHECK(sconce::test::close(states.at(key), tensor));
        }
      }
    }
  }
}

TEST_CASE("updates to a weight that switches to channels-last match updates computed by hand") {
  for (const auto kernels : {Kernels::fused, Kernels::foreach, Kernels::for_loop}) {
    auto p = torch::zeros({1, 2, 2, 2}).requires_grad_();
    p.mutable_grad() = torch::arange(8.0F).reshape({1, 2, 2, 2});
    SGD optimizer({p}, SGDOptions(1.0).momentum(0.5), {.kernels = kernels});
    optimizer.step();
    p.set_data(channels_last(p));
    optimizer.step();
    CHECK(p.equal(p.grad() * -2.5));  // the gradient, then 1.5 times the gradient
  }
}

TEST_CASE("optimizer state is converted when its parameter changes dtype") {
  for (const auto& kind : kinds_and_kernels()) {
    INFO(kind.name << " with kernels " << static_cast<int>(kind.kernels));
    auto p = ones_with_gradient({4});
    auto expected = ones_with_gradient({4});
    const auto optimizer = kind.make({p});
    const auto plain = kind.make({expected});
    for (int step = 0; step < 4; ++step) {
      if (step == 2) become(p, p.detach().to(torch::kDouble));
      optimizer->step();
      plain->step();
    }
    CHECK(sconce::test::close(p.to(torch::kFloat), expected));
    for (const auto& [key, tensor] : sconce::test::result_of(*optimizer, {p}).tensors) {
      const bool is_number = key.ends_with("step") || key.ends_with("mu_product");
      CHECK(tensor.scalar_type() == (is_number ? torch::kFloat : torch::kDouble));
    }
  }
}

TEST_CASE("fused kernels reject new parameter data that has gaps or overlapping elements") {
  for (const auto& data : {torch::ones({4, 4}).select(1, 0), torch::ones({1}).expand({4})}) {
    auto p = ones_with_gradient({4});
    AdamW optimizer({p});
    optimizer.step();
    become(p, data);
    CHECK_THROWS_WITH(
        optimizer.step(),
        ContainsSubstring("sconce::optim::AdamW: Kernels::fused requires every parameter"));
    CHECK(p.equal(torch::ones({4})));
  }
}

TEST_CASE("parameters that overlap in memory are updated one at a time") {
  const int threads = at::get_num_threads();
  at::set_num_threads(4);
  constexpr int count = 500;
  constexpr int size = 8192;
  const auto separate = torch::zeros({count, size});
  const bool in_one_storage = GENERATE(false, true);
  const auto memory = in_one_storage ? separate[0] : torch::zeros({size});
  const auto gradient = torch::ones({size});
  Parameters parameters;
  for (int i = 0; i < count; ++i) {
    parameters.push_back(separate[i].detach().requires_grad_());
    parameters.back().mutable_grad() = gradient;
  }
  SGD optimizer(parameters, SGDOptions(1.0), {.kernels = Kernels::fused});
  optimizer.step();
  CHECK(separate.equal(torch::full({count, size}, -1.0F)));
  memory.zero_();
  for (auto& p : parameters) p.set_data(memory.detach());  // tied after the first step
  for (int step = 1; step <= 20; ++step) {
    optimizer.step();
    CHECK(memory.equal(torch::full({size}, -1.0F * count * step)));
  }
  at::set_num_threads(threads);
}
