// In a single-process group with a backend, DistributedDataParallel needs LibTorch's Reducer only
// to compress gradients, to find unused parameters, and to support static graphs. Without the
// Reducer, DistributedDataParallel must reject the same misuse and produce the same gradients as
// with the Reducer. The models in these tests use small integer values, which float16 represents
// exactly, so a Reducer that compresses gradients can serve as the reference.

#include <torch/csrc/autograd/custom_function.h>

#include <array>
#include <map>
#include <random>
#include <string>

#include "catch.hpp"
#include "distributed/training.hpp"
#include "sconce/distributed/distributed_data_parallel.hpp"
#include "support/error_of.hpp"
#include "support/of_distribution.hpp"
#include "support/one_with_gloo.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::distributed::ProcessGroup;
using sconce::nn::CommHook;
using sconce::nn::DistributedDataParallel;
using sconce::nn::DistributedDataParallelOptions;
using sconce::test::error_of;
using sconce::test::one_with_gloo;
using torch::Tensor;

namespace {

const std::string unfinished =
    "Expected to have finished reduction in the prior iteration before starting a new one.";
const std::string twice = "Expected to mark a variable ready only once.";
const std::string nothing = "nothing was thrown";

// The backward pass reaches the input to this function but does not produce a gradient for the
// input.
struct Cut : torch::autograd::Function<Cut> {
  static Tensor forward(torch::autograd::AutogradContext*, const Tensor& input) {
    return input.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 torch::autograd::variable_list) {
    return {Tensor()};
  }
};

struct Parts : torch::nn::Module {
  // Returns two outputs. A bit mask for each output selects the parameters used to compute that
  // output.
  std::pair<Tensor, Tensor> forward(const Tensor& x, std::array<unsigned, 2> bits) {
    std::array<Tensor, 2> outputs = {x.sum() * 1, x.sum() * 1};
    const std::array<Tensor, 4> terms = {a * x, b * x, c * x, Cut::apply(cut) * x};
    for (size_t i = 0; i < outputs.size(); ++i) {
      for (size_t j = 0; j < terms.size(); ++j) {
        if ((bits[i] >> j & 1U) != 0) outputs[i] = outputs[i] + terms[j].sum();
      }
    }
    return {outputs[0], outputs[1]};
  }
  Tensor a = register_parameter("a", torch::ones({3}));
  Tensor b = register_parameter("b", torch::ones({3}));
  Tensor c = register_parameter("c", torch::ones({2, 3}).t().sum(1).detach().requires_grad_());
  Tensor cut = register_parameter("cut", torch::ones({3}));
};

// The random choices for one step, shared by both models.
struct Step {
  std::array<unsigned, 2> bits = {};
  unsigned backward = 0;
  bool sync = true, grad_mode = true, clear = false;
  Tensor x;
};

Step draw(std::mt19937& random) {
  Step step;
  const auto one_in = [&](unsigned n) { return random() % n == 0; };
  const unsigned all = one_in(4) ? random() % 16 : 15;  // three in four steps use all parameters
  step.bits[0] = all & static_cast<unsigned>(random());
  step.bits[1] = all & ~(one_in(6) ? 0 : step.bits[0]);
  step.backward = one_in(3) ? static_cast<unsigned>(random() % 5) : 5;
  step.sync = !one_in(4);
  step.grad_mode = !one_in(8);
  step.clear = one_in(2);
  step.x = torch::arange(1.F, 4.F) + static_cast<float>(random() % 3);
  return step;
}

void run(DistributedDataParallel<Parts>& model, const Step& step) {
  const torch::AutoGradMode mode(step.grad_mode);
  std::optional<sconce::nn::NoSyncGuard> no_sync;
  if (!step.sync) no_sync.emplace(model);
  if (step.clear) model.module()->zero_grad();
  const auto [first, second] = model.forward(step.x, step.bits);
  if (!(first + second).requires_grad()) return;
  const auto backward = [](const Tensor& loss) {
    if (loss.requires_grad()) loss.backward({}, /*retain_graph=*/true);
  };
  switch (step.backward) {
    case 0:
      return;
    case 1:
      return backward(first);
    case 2:
      backward(first);
      return backward(second);
    case 3:
      backward(first + second);
      return backward(first + second);
    case 4:
      model.module()->a.requires_grad_(false);
      backward(first + second);
      model.module()->a.requires_grad_(true);
      return;
    default:
      return backward(first + second * 2);
  }
}

// Returns the parameters listed in the error, either by name or, as in the Reducer's errors, by
// position.
std::string named(const std::string& error) {
  const std::array<std::string, 4> names = {"a", "b", "c", "cut"};
  std::string found, word;
  const auto by_place = error.find("for rank 0:"), by_name = error.find("no gradient for ");
  if (by_place != std::string::npos) {
    std::istringstream places(error.substr(by_place + 11));
    for (size_t place = 0; places >> place;) found += names.at(place) + " ";
  } else if (by_name != std::string::npos) {
    std::istringstream text(error.substr(by_name + 16));
    while (text >> word) found += word.substr(0, word.find(',')) + " ";
  } else if (const auto once = error.find(" with name "); once != std::string::npos) {
    std::istringstream(error.substr(once + 11)) >> found;
  }
  return found;
}

std::string kind(const std::string& error) {
  for (const auto& text : {unfinished, twice}) {
    if (error.find(text) != std::string::npos) return text;
  }
  return error;
}

}  // namespace

TEST_CASE("random steps in a single-process group match the same steps with a Reducer") {
  sconce::test::require_gloo_of_16_bits();
  const auto group = one_with_gloo();
  std::map<std::string, int> ends;
  for (unsigned script = 0; script < 400; ++script) {
    std::mt19937 random(script);
    DistributedDataParallel alone(std::make_shared<Parts>(), group);
    DistributedDataParallel reduced(std::make_shared<Parts>(), group,
                                    {.comm_hook = CommHook::fp16_compress});
    std::string error = nothing;
    for (int i = 0; i < 8 && error == nothing; ++i) {
      const Step step = draw(random);
      const std::string expected = error_of([&] { run(reduced, step); });
      error = error_of([&] { run(alone, step); });
      INFO("script " << script << ", step " << i << '\n' << error << '\n' << expected);
      REQUIRE(kind(error) == kind(expected));
      REQUIRE(named(error) == named(expected));
      const auto ours = alone.module()->parameters(), theirs = reduced.module()->parameters();
      for (size_t p = 0; p < ours.size(); ++p) {
        REQUIRE(ours[p].grad().defined() == theirs[p].grad().defined());
        if (!ours[p].grad().defined()) continue;
        REQUIRE(ours[p].grad().equal(theirs[p].grad()));
        REQUIRE(ours[p].grad().strides() == theirs[p].grad().strides());
      }
    }
    if (error != nothing) CHECK_FALSE(named(error).empty());
    // As in LibTorch's Reducer, later calls throw this error again.
    if (kind(error) == unfinished) {
      CHECK(error_of([&] { run(alone, Step{.x = torch::ones({3})}); }) == error);
    }
    ++ends[kind(error)];
  }
  CHECK(ends.size() == 3);
  CHECK(ends[nothing] > 40);
  CHECK(ends[unfinished] > 40);
  CHECK(ends[twice] > 20);
}

TEST_CASE("in a single-process group, gradients are copied only if the options require a Reducer") {
  const auto group = one_with_gloo();
  const auto has_buckets = [&](const auto& module, DistributedDataParallelOptions options = {}) {
    return !DistributedDataParallel(module, group, options).bucket_sizes().empty();
  };
  const auto mlp = sconce::test::mlp(30);
  CHECK_FALSE(has_buckets(mlp));
  CHECK_FALSE(has_buckets(mlp, {.broadcast_buffers = false, .bucket_cap_mb = 1}));
  CHECK(has_buckets(mlp, {.find_unused_parameters = true}));
  CHECK(has_buckets(mlp, {.static_graph = true}));
  CHECK(has_buckets(mlp, {.comm_hook = CommHook::bf16_compress}));
  CHECK(has_buckets(sconce::test::Words()));  // Gloo sums sparse gradient rows
}

TEST_CASE(
    "as with a Reducer, a single-process group rejects a gradient whose layout differs from the "
    "parameter's layout") {
  struct Table : torch::nn::Module {
    Tensor weight = register_parameter("weight", torch::ones({5, 2}));
    Tensor forward(const Tensor& x) { return torch::embedding(weight, x, -1, false, true); }
  };
  const auto group = one_with_gloo();
  for (const auto hook : {CommHook::none, CommHook::fp16_compress}) {
    DistributedDataParallel model(std::make_shared<Table>(), group, {.comm_hook = hook});
    const auto loss = model.forward(torch::arange(3)).sum();
    const std::string error = error_of([&] { loss.backward(); });
    CHECK(error != nothing);
    if (hook != CommHook::none) continue;
    CHECK_THAT(error, ContainsSubstring("expected type CPUFloatType for the gradient of weight "
                                        "(the type of the parameter), got SparseCPUFloatType"));
  }
}

TEST_CASE(
    "in a single-process group, DistributedDataParallel reports the name of a parameter frozen "
    "after construction") {
  const auto group = one_with_gloo();
  torch::nn::Linear linear(3, 2);
  DistributedDataParallel model(linear, group);
  linear->bias.requires_grad_(false);
  model(torch::ones({1, 3})).sum().backward();
  CHECK_THROWS_WITH(model(torch::ones({1, 3})), ContainsSubstring("no gradient for bias"));
}

TEST_CASE(
    "in a single-process group, two wrappers may share a module, and the module may outlive both "
    "wrappers") {
  const auto group = one_with_gloo();
  torch::nn::Linear linear(3, 2);
  const auto x = torch::ones({1, 3});
  Tensor later;
  {
    DistributedDataParallel model(linear, group), other(linear, group);
    model(x).sum().backward();
    other(x).sum().backward();
    model(x).sum().backward();
    later = other(x).sum();
  }
  later.backward();
  CHECK(linear->bias.grad().eq(4).all().item<bool>());
}

TEST_CASE("running forward twice before backward preserves the buffers that backward needs") {
  struct Scaled : torch::nn::Module {
    Tensor forward(const Tensor& x) { return weight * x * scale; }
    Tensor weight = register_parameter("weight", torch::ones({3}));
    Tensor scale = register_buffer("scale", torch::full({3}, 2.0));
  };
  const auto module = std::make_shared<Scaled>();
  DistributedDataParallel model(module, one_with_gloo(), {.find_unused_parameters = true});
  (model(torch::ones({3})).sum() + model(torch::full({3}, 3.0)).sum()).backward();
  CHECK(module->weight.grad().equal(torch::full({3}, 8.0)));
}
