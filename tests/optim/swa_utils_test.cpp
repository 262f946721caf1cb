#include "sconce/optim/swa_utils.hpp"

#include <array>
#include <fstream>

#include "catch.hpp"
#include "optim/named_states.hpp"
#include "sconce/data/batches.hpp"
#include "sconce/devices.hpp"
#include "sconce/io/torch_file.hpp"
#include "sconce/nn/lazy.hpp"
#include "sconce/nn/state_dict.hpp"
#include "support/ask_python.hpp"
#include "support/require_gpu.hpp"

namespace sconce::test::swa {

using Catch::Matchers::ContainsSubstring;
using namespace sconce::optim::swa_utils;
using torch::Tensor;

namespace {

constexpr int updates = 6;

// The same model as in reference/swa_utils.py.
struct NetImpl : torch::nn::Cloneable<NetImpl> {
  NetImpl() { reset(); }
  void reset() override {
    fc = register_module("fc", torch::nn::Linear(torch::nn::LinearOptions(7, 5).bias(false)));
    norm = register_module("norm", torch::nn::BatchNorm1d(5));
    const torch::nn::Linear shared(5, 5);
    first = register_module("first", shared);
    second = register_module("second", shared);
    last = register_module("last",
                           torch::nn::BatchNorm1d(torch::nn::BatchNorm1dOptions(5).momentum(0.3)));
  }
  Tensor forward(const Tensor& x) { return last(second(first(norm(fc(x))))); }

  torch::nn::Linear fc = nullptr, first = nullptr, second = nullptr;
  torch::nn::BatchNorm1d norm = nullptr, last = nullptr;
};
TORCH_MODULE(Net);

AveragedModelOptions options_of(int64_t number) {
  static constexpr std::array decays = {0.0, 0.3, 0.9, 0.999, 1.0};
  const int64_t kind = number % 5;
  const double decay = decays.at(static_cast<size_t>(number / 10 % 5));
  AveragedModelOptions options = {.use_buffers = number / 5 % 2 != 0 && kind != 4};
  if (kind == 1) options.avg_fn = get_swa_avg_fn();
  if (kind == 2) options.avg_fn = get_ema_avg_fn(decay);
  if (kind == 3) options.multi_avg_fn = get_ema_multi_avg_fn(decay);
  if (kind == 4) options.multi_avg_fn = get_swa_multi_avg_fn();
  return options;
}

c10::impl::GenericDict dict_of(const State& state) {
  c10::impl::GenericDict dict(c10::StringType::get(), c10::AnyType::get());
  for (const auto& item : state) dict.insert(item.key(), item.value().clone());
  return dict;
}

// Computes Python's averages twice: once from the start, and once from Python's state after half of
// the updates. Returns sconce's state after half of the updates.
State check_case(int64_t number, const c10::impl::GenericDict& python) {
  const auto models = python.at("model").toListRef(), averages = python.at("averaged").toListRef();
  const Net net;
  set_all(*net, models[0]);
  AveragedModel averaged(net, options_of(number));
  AveragedModel resumed(*net, options_of(number));
  check_equal(tensors_of(averaged), state_from(averages[0]));
  State middle;
  for (size_t i = 1; i < models.size(); ++i) {
    set_all(*net, models[i]);
    averaged.update_parameters(net);
    check_equal(tensors_of(averaged), state_from(averages[i]));
    if (i > updates / 2) resumed.update_parameters(*net);
    if (i == updates / 2) {
      sconce::nn::load_state_dict(resumed, state_from(averages[i]));
      middle = copy_of(tensors_of(averaged));
    }
  }
  check_equal(tensors_of(resumed), state_from(averages[updates]));

  std::vector<std::pair<Tensor, Tensor>> batches;
  for (const auto& batch : python.at("batches").toListRef()) {
    batches.emplace_back(batch.toTensor(), Tensor());
  }
  averaged.train(number % 2 != 0);
  update_bn(batches, averaged);
  CHECK(averaged.is_training() == (number % 2 != 0));
  check_equal(tensors_of(averaged), state_from(python.at("means")));
  return middle;
}

void compare_with_python(int64_t count) {
  const TempDir folder;
  std::ofstream(folder.path() / "cases") << count;
  sconce::test::ask_python(folder, "swa_utils.py", "averages");
  const auto cases = sconce::io::load_torch(folder.path() / "averages");
  REQUIRE(std::ssize(cases.toListRef()) == count);
  auto states = c10::impl::GenericList(c10::AnyType::get());
  for (int64_t number = 0; number < count; ++number) {
    INFO("case " << number);
    const c10::IValue python = cases.toListRef()[static_cast<size_t>(number)];
    states.push_back(dict_of(check_case(number, python.toGenericDict())));
  }
  sconce::io::save_torch(folder.path() / "ours", states);
  auto answer = sconce::test::ask_python(folder, "swa_utils.py", "resume");
  int64_t equal = 0;
  for (std::string line; std::getline(answer, line); ++equal) CHECK(line == "equal");
  CHECK(equal == count);
}

}  // namespace

TEST_CASE(
    "AveragedModel and update_bn compute the same values as Python, and an AveragedModel's state "
    "can be moved to Python and back",
    "[python]") {
  compare_with_python(20);
}

TEST_CASE("200 random AveragedModels compute the same values as Python", "[.][slow]") {
  compare_with_python(200);
}

TEST_CASE(
    "constructing an AveragedModel makes an independent copy of the model and draws no random "
    "numbers") {
  Net net;
  net->fc->weight.requires_grad_(false);
  net->norm->eval();
  torch::manual_seed(1);
  AveragedModel averaged(net);
  const auto next = torch::rand(1);
  torch::manual_seed(1);
  CHECK(torch::rand(1).equal(next));
  const auto copy = averaged.module();
  CHECK_FALSE(copy->fc->weight.requires_grad());
  CHECK(copy->last->weight.requires_grad());
  CHECK_FALSE(copy->norm->is_training());
  CHECK(copy->last->is_training());
  CHECK_FALSE(copy->fc->weight.is_same(net->fc->weight));
  const auto x = torch::randn({3, 7});
  averaged.eval();
  net->eval();
  CHECK(averaged(x).equal(net(x)));
  CHECK(sconce::nn::state_dict(averaged).keys().front() == "n_averaged");
  CHECK(sconce::repr(averaged).starts_with("AveragedModel(\n  (module): Net(\n"));
}

TEST_CASE(
    "update_bn accepts every kind of batch and restores momenta and modes even if it throws") {
  const auto x = torch::randn({6, 7});
  const auto means_of = [&](const auto& batches) {
    torch::manual_seed(2);
    Net net;
    net->norm->eval();
    update_bn(batches, net);
    CHECK(net->is_training());
    CHECK_FALSE(net->norm->is_training());
    CHECK(net->norm->options.momentum() == 0.1);
    CHECK(net->last->options.momentum() == 0.3);
    return net->norm->running_mean.clone();
  };
  const auto expected = means_of(std::vector{x});
  CHECK(expected.abs().sum().item<float>() > 0);
  CHECK(means_of(std::vector{std::tuple(x, 1)}).equal(expected));
  CHECK(means_of(std::vector{std::vector{x, x}}).equal(expected));
  CHECK(means_of(std::vector{torch::data::Example<>(x, x)}).equal(expected));
  CHECK(means_of(sconce::data::Batches({x, x}, {.batch_size = 6})).equal(expected));

  Net net;
  net->eval();
  CHECK_THROWS(update_bn(std::vector{torch::ones({2, 3})}, *net));
  CHECK_FALSE(net->is_training());
  CHECK(net->last->options.momentum() == 0.3);

  const torch::nn::BatchNorm1d shared(7);
  torch::nn::Sequential twice(shared, shared);
  update_bn(std::vector{x}, twice);
  CHECK(shared->options.momentum() == 0.1);

  torch::nn::Linear without(3, 2);
  CHECK_NOTHROW(update_bn(std::vector{torch::ones({2, 7})}, without));  // does not run the model
}

TEST_CASE(
    "AveragedModel rejects models that it cannot copy or average and rejects out-of-range decays") {
  struct Plain : torch::nn::Module {};
  const std::string who = "sconce::optim::swa_utils::";
  CHECK_THROWS_WITH(AveragedModel(Plain()),
                    ContainsSubstring(who + "AveragedModel: expected a module that can be cloned"));
  const torch::nn::Linear linear(3, 2);
  CHECK_THROWS_WITH(
      AveragedModel(linear, {.avg_fn = get_swa_avg_fn(), .multi_avg_fn = get_swa_multi_avg_fn()}),
      ContainsSubstring("expected only one of avg_fn and multi_avg_fn, got both"));
  CHECK_THROWS_WITH(AveragedModel(sconce::nn::LazyLinear(3)), ContainsSubstring("uninitialized"));
  for (const double decay : {-0.1, 1.1}) {
    CHECK_THROWS_WITH(get_ema_avg_fn(decay),
                      ContainsSubstring(who + "get_ema_avg_fn: expected dec"));
    CHECK_THROWS_WITH(get_ema_multi_avg_fn(decay), ContainsSubstring("expected decay between 0"));
  }
  AveragedModel averaged(linear);
  averaged.update_parameters(linear);
  const auto before = averaged.module()->weight.clone();
  CHECK_THROWS_WITH(averaged.update_parameters(torch::nn::Linear(3, 4)),
                    ContainsSubstring("update_parameters: expected 'weight' of shape [2, 3]"));
  CHECK_THROWS_WITH(averaged.update_parameters(Net()), ContainsSubstring("expected 2 tensors"));
  CHECK(averaged.module()->weight.equal(before));
  CHECK(averaged.n_averaged.item<int64_t>() == 1);
}

TEST_CASE("on a GPU, an AveragedModel can store its averages on the GPU or on the CPU", "[gpu]") {
  sconce::test::require_gpu();
  Net net;
  net->to(sconce::gpu());
  AveragedModel with_model(net, {.use_buffers = true}), on_cpu(net, {.device = torch::kCPU});
  for (const double value : {1, 2, 6}) {
    fill_all(*net, value);
    with_model.update_parameters(net);
    on_cpu.update_parameters(net);
  }
  CHECK(with_model.module()->fc->weight.device() == sconce::gpu());
  CHECK(on_cpu.module()->fc->weight.is_cpu());
  CHECK(with_model.module()->fc->weight.allclose(torch::full({5, 7}, 3., sconce::gpu())));
  CHECK(on_cpu.module()->fc->weight.allclose(torch::full({5, 7}, 3.)));
  CHECK((with_model.module()->norm->running_mean == 3).all().item<bool>());
  CHECK((on_cpu.module()->norm->running_mean == 6).all().item<bool>());
}

}  // namespace sconce::test::swa
