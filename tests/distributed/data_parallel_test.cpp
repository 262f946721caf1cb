#include "sconce/distributed/data_parallel.hpp"

#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <dlfcn.h>
#include <malloc.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cmath>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "catch.hpp"
#include "sconce/activation_checkpoint.hpp"
#include "sconce/amp/autocast.hpp"
#include "sconce/devices.hpp"
#include "sconce/nn/lazy.hpp"
#include "sconce/repr.hpp"
#include "sconce/training/trainer.hpp"
#include "support/ask_python.hpp"
#include "support/error_of.hpp"
#include "support/require_gpu.hpp"
#include "support/warnings.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::nn::DataParallel;
using sconce::nn::DataParallelOptions;
using sconce::test::error_of;
using sconce::test::Warnings;
using torch::Tensor;
namespace nn = torch::nn;

namespace {

DataParallelOptions cpus(size_t count = 2) {
  return {.device_ids = std::vector<torch::Device>(count, sconce::cpu())};
}

// A module whose forward method passes the module to an arbitrary function.
template <class F>
struct CallingImpl : nn::Cloneable<CallingImpl<F>> {
  explicit CallingImpl(F body) : f(std::make_shared<F>(body)) { reset(); }
  void reset() override {
    linear = this->register_module("linear", nn::Linear(3, 2));
    count = this->register_buffer("count", torch::zeros({}));
  }
  template <class... A>
  auto forward(A&&... arguments) {
    return (*f)(*this, std::forward<A>(arguments)...);
  }
  std::shared_ptr<F> f;  // cloning assigns it, and a lambda cannot be assigned
  nn::Linear linear = nullptr;
  Tensor count;
};

template <class F>
auto calling(F f) {
  return std::make_shared<CallingImpl<F>>(f);
}

nn::Sequential mlp() {
  return nn::Sequential(nn::Linear(3, 8), nn::Tanh(), nn::Linear(8, 2));
}

nn::Sequential cnn() {
  return nn::Sequential(nn::Conv2d(nn::Conv2dOptions(3, 4, 3).padding(1)), nn::BatchNorm2d(4),
                        nn::ReLU(), nn::Flatten(), nn::Linear(4 * 5 * 5, 2));
}

at::Generator cpu_generator() {
  return at::globalContext().defaultGenerator(torch::kCPU);
}

template <class M>
M copy_of(const M& module) {
  const auto rng = cpu_generator().get_state();
  auto copy = std::dynamic_pointer_cast<typename M::ContainedType>(module->clone());
  cpu_generator().set_state(rng);
  return M(copy);
}

template <class M>
Tensor joined_chunks(M& module, const Tensor& X, int64_t devices) {
  std::vector<Tensor> outputs;
  for (const auto& chunk : X.chunk(devices)) outputs.push_back(module->forward(chunk));
  return torch::cat(outputs);
}

bool close(const Tensor& a, const Tensor& b) {
  return torch::allclose(a, b, 1.3e-6, 1e-5);
}

// Returns the value of a /proc/self/status field, such as "Threads".
int64_t status_of(const std::string& field) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(field + ":")) return std::stoll(line.substr(field.size() + 1));
  }
  FAIL("/proc/self/status has no " << field);
  return 0;
}

}  // namespace

TEST_CASE(
    "DataParallel matches the module bit for bit on each chunk and approximately on the whole "
    "batch") {
  const size_t devices = GENERATE(2, 3, 4);
  const int64_t rows = GENERATE(4, 8, 13, 64);
  torch::manual_seed(1);
  const auto check = [&](auto module, const Tensor& X) {
    module->eval();
    DataParallel net(module, cpus(devices));
    const auto output = net.forward(X);
    CHECK(output.equal(joined_chunks(module, X, static_cast<int64_t>(devices))));
    CHECK(close(output, module->forward(X)));
    CHECK(output.size(0) == rows);
  };
  check(mlp(), torch::randn({rows, 3}));
  check(cnn(), torch::randn({rows, 3, 5, 5}));
}

TEST_CASE("DataParallel's gradients match the module's gradients on the whole batch") {
  const size_t devices = GENERATE(2, 3);
  torch::manual_seed(2);
  const auto X = torch::randn({10, 3}).requires_grad_();
  const auto twin_X = X.detach().clone().requires_grad_();
  auto module = mlp();
  auto twin = copy_of(module);
  DataParallel net(module, cpus(devices));
  net.forward(X).pow(2).mean().backward();
  twin->forward(twin_X).pow(2).mean().backward();
  CHECK(close(X.grad(), twin_X.grad()));
  for (size_t i = 0; i < module->parameters().size(); ++i) {
    const auto grad = module->parameters()[i].grad();
    REQUIRE(grad.defined());
    CHECK(grad.abs().sum().item<double>() > 0);
    CHECK(close(grad, twin->parameters()[i].grad()));
  }
}

TEST_CASE(
    "replicas can run their own backward passes, and the module receives the gradients' sum") {
  const size_t devices = GENERATE(2, 3);
  torch::manual_seed(5);
  auto module = mlp();
  auto twin = copy_of(module);
  DataParallel net(module, cpus(devices));
  const auto backward = [](nn::SequentialImpl& replica, const Tensor& x) {
    const Tensor loss = replica.forward(x).pow(2).sum();
    loss.backward();
    return loss.detach().view(1);
  };
  for (int step = 0; step < 20; ++step) {
    const auto X = torch::randn({10, 3});
    module->zero_grad();
    twin->zero_grad();
    const auto losses = net.call(backward, X);
    const Tensor loss = twin->forward(X).pow(2).sum();
    loss.backward();
    CHECK(close(losses.sum(), loss));
    for (size_t i = 0; i < module->parameters().size(); ++i) {
      CHECK(close(module->parameters()[i].grad(), twin->parameters()[i].grad()));
    }
  }
}

TEST_CASE("training with DataParallel matches training the module alone") {
  torch::manual_seed(3);
  auto module = mlp();
  auto twin = copy_of(module);
  DataParallel net(module, cpus(3));
  torch::optim::SGD optimizer(module->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  torch::optim::SGD twin_optimizer(twin->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  for (int step = 0; step < 20; ++step) {
    const auto X = torch::randn({12, 3});
    optimizer.zero_grad();
    net.forward(X).pow(2).mean().backward();
    optimizer.step();
    twin_optimizer.zero_grad();
    twin->forward(X).pow(2).mean().backward();
    twin_optimizer.step();
  }
  for (size_t i = 0; i < module->parameters().size(); ++i) {
    CHECK(torch::allclose(module->parameters()[i], twin->parameters()[i], 1.3e-6, 5e-5));
  }
}

TEST_CASE("DataParallel keeps only chunk 0's changes to buffers, such as BatchNorm's statistics") {
  torch::manual_seed(4);
  auto module = cnn();
  auto twin = copy_of(module);
  DataParallel net(module, cpus());
  const auto X = torch::randn({9, 3, 5, 5});
  for (int step = 0; step < 3; ++step) {
    const auto output = net.forward(X);
    output.sum().backward();
    const auto first = twin->forward(X.slice(0, 0, 5));
    CHECK(output.slice(0, 0, 5).equal(first));
  }
  const auto buffers = module->named_buffers();
  REQUIRE(buffers.size() == 3);
  for (const auto& item : twin->named_buffers()) {
    CHECK(buffers[item.key()].equal(item.value()));
  }
  CHECK(buffers["1.num_batches_tracked"].item<int64_t>() == 3);
}

TEST_CASE("DataParallel keeps only chunk 0's changes to weights, such as an Embedding's max_norm") {
  nn::Embedding module(nn::EmbeddingOptions(4, 3).max_norm(1));
  {
    const torch::NoGradGuard no_grad;
    module->weight.fill_(2);
  }
  DataParallel net(module, cpus());
  const auto rows = net.forward(torch::arange(4));
  CHECK(close(rows.norm(2, 1), torch::ones({4})));
  CHECK(close(module->weight.norm(2, 1),
              torch::tensor({1.0, 1.0, std::sqrt(12.0), std::sqrt(12.0)}, torch::kFloat)));
}

TEST_CASE("replicas inherit the caller's grad mode") {
  const bool enabled = GENERATE(true, false);
  const at::AutoGradMode mode(enabled);
  DataParallel net(calling([](auto& self, const Tensor& x) {
                     const auto flag = torch::full_like(x, at::GradMode::is_enabled() ? 1 : 0);
                     return std::tuple(flag, self.linear(x));
                   }),
                   cpus(3));
  const auto [flags, output] = net.forward(torch::ones({6, 3}));
  CHECK(flags.equal(torch::full({6, 3}, enabled ? 1.0f : 0.0f)));
  CHECK(output.requires_grad() == enabled);
}

TEST_CASE("replicas run under the caller's autocast settings") {
  torch::manual_seed(5);
  const auto dtype = GENERATE(torch::kBFloat16, torch::kHalf);
  const bool cached = GENERATE(true, false);
  auto module = mlp();
  DataParallel net(module, cpus(3));
  DataParallel flags(calling([](auto&, const Tensor& x) {
                       return x.fill_(at::autocast::is_autocast_cache_enabled() ? 1 : 0);
                     }),
                     cpus(3));
  const auto X = torch::randn({9, 3});
  const sconce::amp::AutocastGuard guard(torch::kCPU, {.dtype = dtype, .cache_enabled = cached});
  const auto output = net.forward(X);
  CHECK(output.scalar_type() == dtype);
  CHECK(output.equal(joined_chunks(module, X, 3)));
  CHECK(flags.forward(torch::zeros({9})).equal(torch::full({9}, cached ? 1.0f : 0.0f)));
}

TEST_CASE(
    "under autocast, DataParallel uses the current parameter values, even with gradients "
    "disabled") {
  torch::manual_seed(5);
  auto module = mlp();
  DataParallel net(module, cpus());
  const auto X = torch::ones({4, 3});
  const sconce::amp::AutocastGuard guard(torch::kCPU, {.cache_enabled = true});
  const torch::NoGradGuard no_grad;
  const auto before = net.forward(X);
  for (auto& parameter : module->parameters()) parameter.mul_(2);
  const auto after = net.forward(X);
  CHECK_FALSE(after[3].equal(before[3]));  // computed by replica 1
}

TEST_CASE("an autocast scope inside a replica does not clear the caller's cached casts") {
  const auto weight = torch::ones({2, 2}, torch::requires_grad());
  DataParallel net(calling([](auto&, const Tensor& x) {
                     {
                       const sconce::amp::AutocastGuard off(torch::kCPU, {.enabled = false});
                     }
                     return x + 1;
                   }),
                   cpus(3));
  const sconce::amp::AutocastGuard guard(torch::kCPU, {.cache_enabled = true});
  torch::mm(weight, weight);
  weight.detach().mul_(2);
  net.forward(torch::ones({3, 1}));
  CHECK(torch::mm(weight, weight).sum().item<double>() == 8);  // with the cached weight
}

TEST_CASE("replicas use the caller's intra-op thread count") {
  const int before = at::get_num_threads();
  const auto openmp_threads =
      reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
  REQUIRE(openmp_threads != nullptr);
  std::array<std::atomic<int>, 2> seen = {};
  DataParallel net(calling([&](auto&, const Tensor& x) {
                     seen.at(static_cast<size_t>(x[0].item<int>())) = openmp_threads();
                     return x;
                   }),
                   cpus());
  auto module = mlp();
  DataParallel parallel(module, cpus());
  const auto X = torch::randn({8, 3});
  for (const int threads : {1, 3, 2}) {
    at::set_num_threads(threads);
    net.forward(torch::tensor({0, 1}));
    CHECK(seen[0] == threads);
    CHECK(seen[1] == threads);
    CHECK(parallel.forward(X).equal(joined_chunks(module, X, 2)));
  }
  at::set_num_threads(before);
}

TEST_CASE("every replica runs in a separate thread") {
  std::mutex mutex;
  std::map<std::thread::id, int> calls;
  std::atomic<int> waiting = 0;
  DataParallel net(calling([&](auto&, const Tensor& x) {
                     {
                       const std::scoped_lock lock(mutex);
                       ++calls[std::this_thread::get_id()];
                     }
                     ++waiting;
                     while (waiting < 3) std::this_thread::yield();  // ends only if all run at once
                     return x;
                   }),
                   cpus(3));
  net.forward(torch::ones({3}));
  CHECK(calls.size() == 3);
  CHECK(calls[std::this_thread::get_id()] == 1);
}

TEST_CASE("DataParallel keeps its replicas' threads, but not the state of the previous call") {
  std::mutex mutex;
  std::map<pid_t, int> calls;  // by kernel thread, since the IDs of ended std::threads are reused
  std::vector<std::string> states;
  DataParallel net(calling([&](auto& self, const Tensor& x) {
                     const auto y = self.linear(x);
                     const std::scoped_lock lock(mutex);
                     ++calls[::gettid()];
                     states.push_back(sconce::repr(y.scalar_type()) +
                                      (y.requires_grad() ? " with grad" : "") +
                                      (at::autocast::is_autocast_cache_enabled() ? " cached" : ""));
                     return x;
                   }),
                   cpus(3));
  const auto forward = [&] {
    net.forward(torch::ones({3, 3}));
    return std::exchange(states, {});
  };
  using States = std::vector<std::string>;
  const States defaults(3, "torch.float32 with grad cached");
  CHECK(forward() == defaults);
  {
    const torch::NoGradGuard no_grad;
    const sconce::amp::AutocastGuard guard(torch::kCPU, {.cache_enabled = false});
    CHECK(forward() == States(3, "torch.bfloat16"));
  }
  CHECK(forward() == defaults);
  CHECK(calls.size() == 3);
  for (const auto& [thread, count] : calls) CHECK(count == 3);
}

TEST_CASE("200 calls to DataParallel leak neither memory nor threads", "[alone]") {
  auto module = nn::Sequential(nn::Linear(256, 256), nn::BatchNorm1d(256), nn::Linear(256, 256));
  DataParallel net(module, cpus(3));
  const auto X = torch::ones({6, 256});
  const auto step = [&](int i) {
    if (i % 3 == 0) {
      const sconce::amp::AutocastGuard guard(torch::kCPU);
      net.forward(X).sum().backward();
    } else if (i % 3 == 1) {
      const torch::NoGradGuard no_grad;
      net.forward(X);
    } else {
      net.forward(X).sum().backward();
    }
    module->zero_grad();
  };
  for (int i = 0; i < 60; ++i) step(i);
  malloc_trim(0);
  const int64_t memory = status_of("VmRSS"), threads = status_of("Threads");
  for (int i = 0; i < 200; ++i) step(i);
  malloc_trim(0);
  CHECK(status_of("Threads") <= threads);
  CHECK(status_of("VmRSS") - memory < 16 << 10);  // kB; replicas never freed would take 0.2 GB
}

TEST_CASE(
    "DataParallel scatters and gathers tensors in vectors, tuples, pairs, maps, and optionals") {
  using Map = std::map<std::string, Tensor>;
  DataParallel net(calling([](auto&, const Tensor& a, const std::vector<Tensor>& b,
                              const std::tuple<Tensor, std::pair<Tensor, int>>& c, const Map& d,
                              std::optional<Tensor> e) {
                     const auto& [x, pair] = c;
                     const Map map = {{"sum", a + b[0] + b[1]}, {"e", e.value_or(a * 0)}};
                     return std::tuple(std::pair(x, pair.first * pair.second),
                                       std::vector<Map>{map, d}, e);
                   }),
                   cpus(3));
  const auto ramp = torch::arange(8).reshape({8, 1});
  const Map d = {{"p", ramp * 5}, {"q", ramp * 6}};
  const std::vector<Tensor> b = {ramp, ramp * 2};
  const auto c = std::tuple(ramp * 3, std::pair(ramp * 4, 7));
  const auto [pair, maps, e] = net.forward(ramp, b, c, d, std::optional(ramp * 7));
  CHECK(pair.first.equal(ramp * 3));
  CHECK(pair.second.equal(ramp * 28));
  CHECK(maps[0].at("sum").equal(ramp * 4));
  CHECK(maps[0].at("e").equal(ramp * 7));
  CHECK(maps[1].at("p").equal(ramp * 5));
  CHECK(maps[1].at("q").equal(ramp * 6));
  CHECK(e->equal(ramp * 7));
  CHECK(b[1].equal(ramp * 2));  // the caller's tensor is unchanged
  const auto without = net.forward(ramp, b, c, d, std::optional<Tensor>());
  CHECK_FALSE(std::get<2>(without).has_value());
  DataParallel one(calling([](auto&, std::tuple<Tensor, Tensor> xy) { return xy; }), cpus(3));
  CHECK(std::get<1>(one.forward(std::tuple(ramp, ramp * 2))).equal(ramp * 2));
}

TEST_CASE("DataParallel passes non-tensor arguments to every replica unchanged") {
  struct Unmovable {
    std::atomic<int> calls = 0;
    Unmovable() = default;
    Unmovable(const Unmovable&) = delete;
  } shared;
  const std::string text = "as it is";
  std::mutex mutex;
  std::vector<const void*> places;
  DataParallel net(calling([&](auto&, Tensor x, const std::string& same, Unmovable& counter,
                               int number, const Tensor& none) {
                     const std::scoped_lock lock(mutex);
                     places.push_back(&same);
                     ++counter.calls;
                     return none.defined() ? x : x * number;
                   }),
                   cpus(3));
  CHECK(net.forward(torch::ones({4}), text, shared, 5, Tensor()).equal(torch::full({2 * 2}, 5.0f)));
  CHECK(shared.calls == 2);  // two chunks
  CHECK(places == std::vector<const void*>{&text, &text});
}

TEST_CASE(
    "DataParallel splits inputs as in Python and runs fewer replicas if there are fewer chunks "
    "than devices") {
  DataParallel net(calling([](auto&, const Tensor& x) { return torch::full({1}, x.size(0)); }),
                   cpus(4));
  const auto sizes = [&](int64_t rows) { return net.forward(torch::ones({rows, 2})); };
  CHECK(sizes(8).equal(torch::tensor({2, 2, 2, 2})));
  CHECK(sizes(7).equal(torch::tensor({2, 2, 2, 1})));
  CHECK(sizes(5).equal(torch::tensor({2, 2, 1})));
  CHECK(sizes(3).equal(torch::tensor({1, 1, 1})));
  CHECK(sizes(1).equal(torch::tensor({1})));
  CHECK(sizes(0).equal(torch::tensor({0, 0, 0, 0})));
}

TEST_CASE(
    "DataParallel runs every replica if no argument is a tensor, but only one replica if there are "
    "no arguments") {
  DataParallel net(calling([](auto& self, auto&&... numbers) {
                     return (torch::ones({1}) + ... + numbers) + self.count;
                   }),
                   cpus(3));
  CHECK(net.forward(2, 3).equal(torch::full({3}, 6.0f)));
  CHECK(net.forward().equal(torch::ones({1})));
  CHECK(net.forward(Tensor(torch::ones({1, 1}))).equal(torch::full({1, 1}, 2.0f)));
}

TEST_CASE("DataParallel accepts a module whose forward returns nothing or undefined tensors") {
  std::atomic<int> calls = 0;
  DataParallel nothing(calling([&](auto&, const Tensor&) { ++calls; }), cpus(3));
  nothing.forward(torch::ones({3}));
  CHECK(calls == 3);
  DataParallel undefined(
      calling([](auto&, const Tensor& x) { return std::vector<Tensor>{x, Tensor()}; }), cpus(2));
  const auto output = undefined.forward(torch::ones({3}));
  CHECK(output[0].equal(torch::ones({3})));
  CHECK_FALSE(output[1].defined());
}

TEST_CASE(
    "DataParallel scatters inputs and gathers outputs along the dimension given in its options") {
  auto options = cpus(2);
  options.dim = 1;
  DataParallel net(calling([](auto&, const Tensor& x) { return x.mul(x.size(1)); }), options);
  CHECK(net.forward(torch::ones({2, 3})).equal(torch::tensor({{2., 2., 1.}, {2., 2., 1.}})));
}

TEST_CASE("DataParallel gathers zero-dimensional outputs into a vector and warns", "[alone]") {
  const Warnings warnings;
  DataParallel net(calling([](auto& self, const Tensor& x) { return self.linear(x).sum(); }),
                   cpus(2));
  const auto X = torch::ones({3, 3});
  const auto losses = net.forward(X);
  CHECK(losses.sizes() == at::IntArrayRef{2});
  CHECK(close(losses.sum(), net.module()->forward(X)));
  losses.mean().backward();
  CHECK(net.module()->linear->bias.grad().defined());
  net.forward(X);
  REQUIRE(warnings.messages().size() == 1);
  CHECK_THAT(warnings.messages()[0], ContainsSubstring("sconce::nn::DataParallel: the replicas "
                                                       "returned 0-dim tensors"));
}

TEST_CASE("with one device or no devices, DataParallel runs the module itself") {
  const auto thread = std::this_thread::get_id();
  struct Plain : nn::Module {  // cannot be cloned, and its outputs cannot be gathered
    std::pair<std::string, std::thread::id> forward(const Tensor& x) {
      return {sconce::repr(x), std::this_thread::get_id()};
    }
  };
  std::vector<DataParallelOptions> all = {cpus(1)};
  if (sconce::num_gpus() == 0) all.push_back({});
  for (const auto& options : all) {
    auto module = std::make_shared<Plain>();
    DataParallel net(module, options);
    CHECK(net.module() == module);
    CHECK(net.device_ids() == options.device_ids);
  }
  auto module = calling([&](auto& self, const Tensor& x) {
    REQUIRE(std::this_thread::get_id() == thread);
    return self.linear(x);
  });
  DataParallel net(module, cpus(1));
  const auto X = torch::randn({5, 3});
  CHECK(net.forward(X).equal(module->forward(X)));
  CHECK(DataParallel(module, cpus(1)).forward(torch::ones({3})).sizes() == at::IntArrayRef{2});
}

TEST_CASE(
    "DataParallel rethrows the first error after all replicas finish, with the original error "
    "nested inside") {
  std::atomic<int> ended = 0;
  const auto failing = [&](auto error) {
    return DataParallel(calling([&ended, error](auto&, const Tensor& x) {
                          const int index = x[0].template item<int>();
                          if (index == 0)
                            std::this_thread::sleep_for(std::chrono::milliseconds(50));
                          ++ended;
                          if (index > 0) throw error;
                          return x;
                        }),
                        cpus(3));
  };
  const auto caught = [&](auto error, auto kind) {
    auto net = failing(error);
    ended = 0;
    try {
      net.forward(torch::arange(3));
    } catch (const decltype(kind)& outer) {
      CHECK(ended == 3);
      CHECK_THAT(outer.what(),
                 ContainsSubstring("sconce::nn::DataParallel: replica 1 on device cpu: "));
      try {
        std::rethrow_if_nested(outer);
      } catch (const decltype(error)&) {
        return std::string(outer.what());
      }
    }
    return std::string("no such error");
  };
  CHECK_THAT(caught(std::invalid_argument("too wide"), std::runtime_error("")),
             ContainsSubstring("device cpu: too wide"));
  CHECK_THAT(caught(42, std::runtime_error("")),
             ContainsSubstring("not derived from std::exception"));
  CHECK_THAT(caught(c10::ValueError("bad value", nullptr), c10::Error("", nullptr)),
             ContainsSubstring("device cpu: bad value"));
  CHECK_THAT(
      caught(c10::OutOfMemoryError("no memory", nullptr), c10::OutOfMemoryError("", nullptr)),
      ContainsSubstring("device cpu: no memory"));
}

TEST_CASE(
    "an error in the module itself is reported for replica 0, and the next forward succeeds") {
  auto module = mlp();
  DataParallel net(module, cpus());
  const auto threads = status_of("Threads") + 1;  // the second replica's thread is kept
  const auto error = error_of([&] { net.forward(torch::ones({4, 5})); });
  CHECK_THAT(error,
             ContainsSubstring("sconce::nn::DataParallel: replica 0 on device cpu: ") &&
                 ContainsSubstring("mat1 and mat2 shapes cannot be multiplied (2x5 and 3x8)"));
  CHECK(status_of("Threads") <= threads);
  const auto X = torch::ones({4, 3});
  CHECK(net.forward(X).equal(joined_chunks(module, X, 2)));
  CHECK(status_of("Threads") <= threads);
}

TEST_CASE("replicas can use activation checkpointing") {
  torch::manual_seed(4);
  const auto module = calling([](auto& self, const Tensor& x, bool is_checkpointed) {
    const auto function = [&self](const Tensor& input) { return self.linear(input).exp(); };
    return is_checkpointed ? sconce::checkpoint(function, x) : function(x);
  });
  DataParallel net(module, cpus());
  const auto gradients = [&](bool is_checkpointed) {
    net.module()->zero_grad();
    const auto x = torch::linspace(-1, 1, 24).view({8, 3}).requires_grad_();
    net.forward(x, is_checkpointed).sum().backward();
    return torch::cat(
        {x.grad().flatten(), module->linear->weight.grad().flatten(), module->linear->bias.grad()});
  };
  CHECK(gradients(true).equal(gradients(false)));
}

TEST_CASE(
    "DataParallel rejects outputs whose lengths or keys differ, and rejects inputs that split into "
    "fewer chunks than the others") {
  DataParallel net(calling([](auto&, const Tensor& x, const Tensor& y) {
                     return std::vector<Tensor>(static_cast<size_t>(x[0].item<int64_t>()), y);
                   }),
                   cpus());
  const auto two = torch::ones({2});
  CHECK_THAT(
      error_of([&] { net.forward(torch::tensor({1, 2}), two); }),
      ContainsSubstring("sconce::nn::DataParallel: expected outputs with the same structure"));
  CHECK_THAT(error_of([&] { net.forward(two, torch::ones({1})); }),
             ContainsSubstring("every tensor to have 2 chunks along dimension 0 on 2 devices (like "
                               "the first tensor), got a tensor of shape [1] with 1 chunks"));
  CHECK_THAT(error_of([&] { net.forward(two, torch::ones({})); }),
             ContainsSubstring("with at least one dimension, got a 0-dim tensor"));
}

TEST_CASE("DataParallel rejects a module that cannot be cloned, and the error names its class") {
  struct Plain : nn::Module {
    Tensor forward(Tensor x) { return x; }
  };
  struct Derived : nn::LinearImpl {  // clones to a plain Linear
    using LinearImpl::LinearImpl;
  };
  struct Forgetful : nn::Cloneable<Forgetful> {
    Forgetful() { register_parameter("weight", torch::ones({1})); }
    void reset() override {}
    Tensor forward(Tensor x) { return x; }
  };
  const auto refused = [](auto module, const std::string& name) {
    const auto error = error_of([&] { DataParallel net(module, cpus()); });
    INFO(error);
    CHECK_THAT(error, ContainsSubstring("sconce::nn::DataParallel: expected modules that can be") &&
                          ContainsSubstring("torch::nn::Cloneable<") && ContainsSubstring(name));
  };
  refused(std::make_shared<Plain>(), "Plain");
  refused(std::make_shared<Derived>(3, 2), "Derived");
  refused(std::make_shared<Forgetful>(), "Forgetful");
  struct Around : nn::Cloneable<Around> {
    Around() { reset(); }
    void reset() override { inner = register_module("inner", std::make_shared<Plain>()); }
    std::shared_ptr<Plain> inner;
    Tensor forward(Tensor x) { return x; }
  };
  refused(std::make_shared<Around>(), "Plain");
  refused(nn::Sequential(std::make_shared<Plain>()), "Plain");
  CHECK_THROWS_WITH(DataParallel(std::shared_ptr<nn::LinearImpl>(), cpus()),
                    ContainsSubstring("expected a module, got null"));
}

TEST_CASE("weights tied through a layer member remain tied in the replicas") {
  struct Tied : nn::Cloneable<Tied> {
    explicit Tied(bool turned) : transposed(turned) { reset(); }
    void reset() override {
      words = register_module("words", nn::Embedding(7, 3));
      hidden = register_module("hidden", nn::Linear(3, 3));
      again = register_module("again", nn::Linear(3, 3));
      scores = register_module("scores", nn::Linear(nn::LinearOptions(3, 7).bias(true)));
      scores->weight = words->weight;
      again->weight = transposed ? hidden->weight.t() : hidden->weight;
      again->bias = Tensor();
    }
    Tensor forward(const Tensor& x) { return scores(again(torch::tanh(hidden(words(x))))); }
    bool transposed;
    nn::Embedding words = nullptr;
    nn::Linear hidden = nullptr, again = nullptr, scores = nullptr;
  };
  torch::manual_seed(11);
  const bool transposed = GENERATE(false, true);
  const auto module = std::make_shared<Tied>(transposed);
  const auto X = torch::randint(7, {6});
  DataParallel net(module, cpus(3));
  torch::optim::SGD optimizer(module->parameters(), 0.5);
  for (int step = 0; step < 3; ++step) {
    CHECK(net.forward(X).equal(joined_chunks(module, X, 3)));
    optimizer.zero_grad();
    joined_chunks(module, X, 3).square().sum().backward();
    const auto words = module->words->weight.grad().clone();
    const auto hidden = module->hidden->weight.grad().clone();
    optimizer.zero_grad();
    net.forward(X).square().sum().backward();
    CHECK(torch::allclose(module->words->weight.grad(), words, 1e-5, 1e-5));
    CHECK(torch::allclose(module->hidden->weight.grad(), hidden, 1e-5, 1e-5));
    optimizer.step();
  }
}

TEST_CASE(
    "weights passed to a layer as an option are copied to the replicas and remain trainable") {
  torch::manual_seed(14);
  const auto words = torch::randn({5, 3});
  nn::Sequential module(
      nn::Embedding::from_pretrained(words, nn::EmbeddingFromPretrainedOptions().freeze(false)),
      nn::Linear(3, 2));
  const auto weight = module->parameters()[0];
  const auto* data = weight.data_ptr();
  const auto X = torch::tensor({0, 1, 2, 3, 4, 4});
  DataParallel net(module, cpus(3));
  CHECK(net.forward(X).equal(joined_chunks(module, X, 3)));
  CHECK(weight.data_ptr() == data);
  REQUIRE(weight.requires_grad());
  net.forward(X).square().sum().backward();
  const auto grad = weight.grad().clone();
  module->zero_grad();
  joined_chunks(module, X, 3).square().sum().backward();
  CHECK(close(grad, weight.grad()));
}

TEST_CASE("a layer that occurs twice in a module is also shared within each replica") {
  torch::manual_seed(12);
  nn::Linear layer(3, 3);
  nn::Sequential module(layer, nn::Tanh(), layer);
  const auto X = torch::randn({6, 3});
  DataParallel net(module, cpus());
  net.forward(X).sum().backward();
  const auto grad = layer->weight.grad().clone();
  layer->zero_grad();
  const auto expected = joined_chunks(module, X, 2);
  expected.sum().backward();
  CHECK(close(grad, layer->weight.grad()));
  CHECK(net.forward(X).equal(expected));
}

namespace {

// A custom layer with data members that DataParallel does not recognize.
struct ScaleImpl : nn::Cloneable<ScaleImpl> {
  ScaleImpl() { reset(); }
  void reset() override {
    weight = register_parameter("weight", torch::randn({3}));
    shift = register_buffer("shift", torch::randn({3}));
  }
  void exchange(const Tensor& value) { weight = parameters_["weight"] = value; }
  Tensor forward(const Tensor& x) { return x * weight + shift; }
  Tensor weight, shift;
};
TORCH_MODULE(Scale);

}  // namespace

TEST_CASE("replicas pick up a parameter that was replaced after DataParallel was constructed") {
  torch::manual_seed(13);
  nn::Linear linear(3, 3);
  nn::BatchNorm1d norm(3);
  Scale scale;
  nn::Sequential module(linear, norm, scale);
  module->eval();
  const auto X = torch::randn({6, 3});
  DataParallel net(module, cpus());
  const auto check = [&](const Tensor& changed) {
    CHECK(net.forward(X).equal(joined_chunks(module, X, 2)));
    changed.mutable_grad() = Tensor();
    net.forward(X).square().sum().backward();
    const auto grad = changed.grad().clone();
    changed.mutable_grad() = Tensor();
    joined_chunks(module, X, 2).square().sum().backward();
    CHECK(torch::allclose(changed.grad(), grad, 1e-5, 1e-5));
  };
  linear->weight = torch::randn({3, 3}, torch::requires_grad());
  check(linear->weight);
  norm->running_mean = torch::randn({3});
  check(linear->weight);
  linear->bias = Tensor();
  check(linear->weight);
  scale->exchange(torch::randn({3}, torch::requires_grad()));
  check(scale->weight);
  linear->register_parameter("more", torch::zeros({1}));
  CHECK_THAT(error_of([&] { net.forward(X); }), ContainsSubstring("torch::nn::LinearImpl"));
}

TEST_CASE(
    "DataParallel rejects a layer with a tensor member that the layer's own reset() does not "
    "create") {
  struct TiesOwn : nn::Cloneable<TiesOwn> {
    TiesOwn() { reset(); }
    void reset() override {
      first = register_module("first", Scale());
      second = register_module("second", Scale());
      second->weight = first->weight;
    }
    Tensor forward(const Tensor& x) { return second(first(x)); }
    Scale first = nullptr, second = nullptr;
  };
  struct Keeps : nn::Cloneable<Keeps> {
    Keeps() { reset(); }
    void reset() override {
      linear = register_module("linear", nn::Linear(3, 3));
      weight = linear->weight;
    }
    Tensor forward(const Tensor& x) { return linear(x).matmul(weight); }
    nn::Linear linear = nullptr;
    Tensor weight;
  };
  const auto refused = [](auto module, const std::string& name) {
    const torch::optim::SGD holds_them_too(module->parameters(), 0.1);
    const auto before = cpu_generator().get_state();
    const auto error = error_of([&] { DataParallel net(module, cpus()); });
    INFO(error);
    CHECK_THAT(error, ContainsSubstring("sconce::nn::DataParallel: expected ") &&
                          ContainsSubstring("tensor members that its reset() sets") &&
                          ContainsSubstring(name));
    CHECK(cpu_generator().get_state().equal(before));
  };
  refused(std::make_shared<TiesOwn>(), "ScaleImpl");
  refused(std::make_shared<Keeps>(), "Keeps");
  nn::RNNCell cell(3, 3), other(3, 3);
  other->weight_hh = cell->weight_hh;
  refused(nn::Sequential(cell, other), "RNNCellImpl");
  struct Given : nn::Cloneable<Given> {
    explicit Given(const Tensor& value) : scale(value) { reset(); }
    void reset() override { register_buffer("scale", scale); }
    Tensor forward(const Tensor& x) { return x * scale; }
    Tensor scale;
  };
  CHECK_THAT(error_of([&] { DataParallel net(std::make_shared<Given>(torch::ones(3)), cpus()); }),
             ContainsSubstring("Given to register a new tensor for 'scale'"));
  DataParallel fine(nn::Sequential(Scale(), Scale(), nn::RNNCell(3, 3)), cpus());
  CHECK(fine.forward(torch::ones({4, 3})).size(0) == 4);
}

TEST_CASE("DataParallel rejects a ParameterList or ParameterDict and suggests register_parameter") {
  struct Around : nn::Cloneable<Around> {
    void reset() override {
      list = register_module("list", nn::ParameterList(torch::ones({3})));
      dict = register_module("dict", nn::ParameterDict());
    }
    Tensor forward(const Tensor& x) { return x * list->parameters()[0]; }
    nn::ParameterList list = nullptr;
    nn::ParameterDict dict = nullptr;
  };
  const auto module = std::make_shared<Around>();
  module->reset();
  const auto error = [&] { return error_of([&] { DataParallel net(module, cpus()); }); };
  CHECK_THAT(error(), ContainsSubstring("sconce::nn::DataParallel: expected modules that can be "
                                        "cloned, got torch::nn::ParameterListImpl") &&
                          ContainsSubstring("register_parameter") &&
                          !ContainsSubstring("derived from"));
  module->list = module->replace_module("list", nn::ParameterList());
  module->dict->insert("a", torch::ones({3}));
  CHECK_THAT(error(), ContainsSubstring("got torch::nn::ParameterDictImpl"));
  module->dict->clear();
  DataParallel empty(module, cpus());
  module->list->append(torch::ones({3}));
  CHECK_THAT(error_of([&] { empty.forward(torch::ones({4, 3})); }),
             ContainsSubstring("got torch::nn::ParameterListImpl"));
}

TEST_CASE("DataParallel rejects devices that do not exist") {
  const auto refused = [](DataParallelOptions options) {
    return error_of([&] { DataParallel net(nn::Linear(3, 2), options); });
  };
  const auto missing = sconce::gpu(127);
  CHECK_THAT(refused({.device_ids = {sconce::cpu(), missing}}),
             ContainsSubstring("sconce::nn::DataParallel: expected the CPU or one of") &&
                 ContainsSubstring("cuda:127"));
  CHECK_THAT(refused({.device_ids = {sconce::cpu()}, .output_device = missing}),
             ContainsSubstring("cuda:127"));
  CHECK_THAT(refused({.device_ids = {torch::Device("meta"), sconce::cpu()}}),
             ContainsSubstring("got meta"));
}

TEST_CASE("on the CPU, creating replicas draws no random numbers, even if creation fails") {
  torch::manual_seed(6);
  const auto expected = torch::rand({4});
  torch::manual_seed(6);
  auto module = mlp();
  torch::manual_seed(6);
  DataParallel net(module, cpus(3));
  CHECK(torch::rand({4}).equal(expected));
  struct Failing : nn::Cloneable<Failing> {
    void reset() override {
      torch::rand({3});
      TORCH_CHECK(false, "no reset");
    }
    Tensor forward(Tensor x) { return x; }
  };
  torch::manual_seed(6);
  CHECK_THROWS_AS(DataParallel(std::make_shared<Failing>(), cpus()), c10::Error);
  CHECK(torch::rand({4}).equal(expected));
}

TEST_CASE("DataParallel rejects an uninitialized lazy layer until the module itself has run") {
  nn::Sequential module(sconce::nn::LazyLinear(4), nn::ReLU(), sconce::nn::LazyBatchNorm1d());
  DataParallel net(module, cpus());
  const auto X = torch::randn({6, 3});
  for (int i = 0; i < 2; ++i) {
    CHECK_THAT(error_of([&] { net.forward(X); }),
               ContainsSubstring("sconce::nn::DataParallel: expected an initialized layer, but "
                                 "'0', LazyLinear(in_features=0, out_features=4"));
  }
  module->forward(X);
  const auto next = cpu_generator().get_state();
  const auto output = net.forward(X);
  CHECK(next.equal(cpu_generator().get_state()));
  CHECK(output.equal(joined_chunks(module, X, 2)));
  DataParallel one(sconce::nn::LazyLinear(4), cpus(1));
  CHECK(one.forward(X).sizes() == at::IntArrayRef{6, 4});  // runs the module itself
}

TEST_CASE(
    "a backward pass can run after later forward passes, whether or not those passes record "
    "gradients") {
  torch::manual_seed(7);
  auto module = mlp();
  auto twin = copy_of(module);
  DataParallel net(module, cpus(3));
  const auto A = torch::randn({6, 3}), B = torch::randn({6, 3});
  const auto a = net.forward(A);
  {
    const torch::NoGradGuard no_grad;
    net.forward(B);
  }
  {
    const c10::InferenceMode inference;
    CHECK(close(net.forward(B), twin->forward(B)));
  }
  const auto b = net.forward(B);
  (a.pow(2).sum() + b.sum()).backward();
  (twin->forward(A).pow(2).sum() + twin->forward(B).sum()).backward();
  for (size_t i = 0; i < module->parameters().size(); ++i) {
    CHECK(
        torch::allclose(module->parameters()[i].grad(), twin->parameters()[i].grad(), 1e-5, 1e-6));
  }
}

TEST_CASE("second-order gradients reach the module through DataParallel") {
  torch::manual_seed(8);
  auto module = mlp();
  auto twin = copy_of(module);
  DataParallel net(module, cpus());
  const auto penalty = [](auto& model, const Tensor& X) {
    const auto x = X.clone().requires_grad_();
    const auto grad = torch::autograd::grad({model.forward(x).sum()}, {x}, {}, true, true)[0];
    grad.pow(2).sum().backward();
  };
  const auto X = torch::randn({6, 3});
  penalty(net, X);
  penalty(*twin, X);
  for (const size_t i : {0, 2}) {
    const auto grad = module->parameters()[i].grad();
    CHECK(grad.abs().sum().item<double>() > 0);
    CHECK(close(grad, twin->parameters()[i].grad()));
  }
}

TEST_CASE("frozen parameters receive no gradients from DataParallel, but unfrozen parameters do") {
  auto module = mlp();
  DataParallel net(module, cpus());
  const auto X = torch::ones({4, 3});
  auto weight = module->parameters()[0];
  weight.requires_grad_(false);
  net.forward(X).sum().backward();
  CHECK_FALSE(weight.grad().defined());
  weight.requires_grad_(true);
  net.forward(X).sum().backward();
  CHECK(weight.grad().defined());
  for (auto& parameter : module->parameters()) parameter.requires_grad_(false);
  CHECK_FALSE(net.forward(X).requires_grad());
}

TEST_CASE("each replica layer has the same training mode as the corresponding module layer") {
  torch::manual_seed(9);
  auto module = cnn();
  DataParallel net(module, cpus());
  const auto X = torch::randn({8, 3, 5, 5});
  module->eval();
  CHECK(net.forward(X).equal(joined_chunks(module, X, 2)));
  module->train();
  module[1]->eval();  // frozen statistics
  const auto statistics = module->named_buffers()["1.running_mean"].clone();
  CHECK(net.forward(X).equal(joined_chunks(module, X, 2)));
  CHECK(statistics.equal(module->named_buffers()["1.running_mean"]));
}

TEST_CASE("replicas reflect changes to the module's dtype, values, and layers") {
  torch::manual_seed(10);
  struct Net : nn::Cloneable<Net> {
    Net() { reset(); }
    void reset() override {
      fc = register_module("fc", nn::Linear(3, 2));
      act = register_module("act", nn::Sequential(nn::ReLU()));
    }
    Tensor forward(const Tensor& x) { return act->forward(fc(x)); }
    nn::Linear fc = nullptr;
    nn::Sequential act = nullptr;
  };
  auto module = std::make_shared<Net>();
  DataParallel net(module, cpus());
  auto X = torch::randn({6, 3});
  net.forward(X);
  module->to(torch::kDouble);
  X = X.to(torch::kDouble);
  CHECK(net.forward(X).equal(joined_chunks(module, X, 2)));
  module->fc = module->replace_module("fc", nn::Linear(nn::LinearOptions(3, 4).bias(false)));
  module->act->push_back(nn::Tanh());
  module->to(torch::kDouble);
  CHECK(net.forward(X).sizes() == at::IntArrayRef{6, 4});
  CHECK(net.forward(X).equal(joined_chunks(module, X, 2)));
}

TEST_CASE("DataParallel is not a module, and the Trainer trains the module inside it") {
  auto module = mlp();
  DataParallel net(module, cpus());
  STATIC_CHECK_FALSE(std::is_convertible_v<decltype(net)&, nn::Module&>);
  CHECK(net.module() == module.ptr());
  CHECK(net.output_device() == sconce::cpu());
  const auto X = torch::randn({64, 3});
  const sconce::data::Batches batches({X, X.select(1, 0).gt(0).to(torch::kLong)},
                                      {.batch_size = 16});
  torch::optim::SGD optimizer(module->parameters(), 0.5);
  const auto result =
      sconce::Trainer({.max_epochs = 8, .num_gpus = 0}).fit(net, optimizer, {batches, batches});
  CHECK(result.epochs.back().loss < result.epochs.front().loss);
  CHECK(result.epochs.back().at("test_acc") > 0.9);
  CHECK(net(X).equal(joined_chunks(module, X, 2)));
}

TEST_CASE("DataParallel has the same defaults as in Python and splits batches into the same chunks",
          "[python]") {
  const sconce::test::TempDir folder;
  auto file = sconce::test::ask_python(folder, "data_parallel.py", "all");
  const DataParallelOptions options;
  std::string line;
  REQUIRE(std::getline(file, line));
  CHECK(line == "device_ids=None output_device=None dim=" + std::to_string(options.dim));
  CHECK(options.device_ids.empty());
  CHECK_FALSE(options.output_device.has_value());

  int64_t devices = 0, rows = 0, cases = 0;
  for (std::string sizes; file >> devices >> rows >> sizes; ++cases) {
    DataParallel net(calling([](auto&, const Tensor& x, const std::vector<Tensor>& y, int) {
                       return torch::full({1}, x.size(0) * 100 + y[0].size(0));
                     }),
                     cpus(static_cast<size_t>(devices)));
    const auto X = torch::ones({rows, 1});
    std::ostringstream ours;
    const auto seen = net.forward(X, std::vector<Tensor>{X}, 1);
    for (int64_t i = 0; i < seen.size(0); ++i) {
      ours << (i > 0 ? "," : "") << seen[i].item<int64_t>();
    }
    INFO(rows << " rows on " << devices << " devices");
    CHECK(ours.str() == sizes);
  }
  CHECK(cases >= 20);
}

TEST_CASE("replicas on a GPU and the CPU match the module", "[gpu]") {
  sconce::test::require_gpu();
  at::globalContext().setAllowTF32CuBLAS(false);
  const auto gpu = sconce::gpu(), cpu = sconce::cpu();
  const auto devices = GENERATE_COPY(std::vector{gpu, gpu}, std::vector{gpu, cpu, gpu},
                                     std::vector{cpu, gpu}, std::vector{gpu});
  const auto output_device = GENERATE_COPY(gpu, cpu);
  torch::manual_seed(11);
  auto module = mlp();
  auto twin = copy_of(module);
  module->to(devices[0]);
  DataParallel net(module, {.device_ids = devices, .output_device = output_device});
  for (int step = 0; step < 3; ++step) {
    const auto X = torch::randn({1 << 14, 3});
    const auto output = net.forward(X);
    if (devices.size() > 1) CHECK(output.device() == output_device);
    output.pow(2).mean().backward();
    twin->forward(X).pow(2).mean().backward();
    CHECK(torch::allclose(output.cpu(), twin->forward(X), 1e-4, 1e-5));
    for (size_t i = 0; i < module->parameters().size(); ++i) {
      auto parameter = module->parameters()[i];
      CHECK(parameter.grad().device() == devices[0]);
      CHECK(torch::allclose(parameter.grad().cpu(), twin->parameters()[i].grad(), 1e-4, 1e-6));
      const torch::NoGradGuard no_grad;
      parameter.sub_(parameter.grad());
      twin->parameters()[i].copy_(parameter);
    }
  }
}

TEST_CASE(
    "on a GPU, replicas run on the caller's current stream and under the caller's autocast "
    "settings",
    "[gpu]") {
  sconce::test::require_gpu();
  const c10::impl::VirtualGuardImpl impl(torch::kCUDA);
  const auto stream = impl.getStreamFromGlobalPool(sconce::gpu());
  std::mutex mutex;
  std::vector<c10::Stream> seen;
  auto module = calling([&](auto& self, const Tensor& x) {
    const std::scoped_lock lock(mutex);
    seen.push_back(impl.getStream(x.device()));
    return self.linear(x);
  });
  module->to(sconce::gpu());
  DataParallel net(module, {.device_ids = {sconce::gpu(), sconce::gpu()}});
  const c10::StreamGuard on_stream(stream);
  const sconce::amp::AutocastGuard autocast(torch::kCUDA);
  const auto output = net.forward(torch::ones({4, 3}));
  CHECK(output.scalar_type() == torch::kHalf);
  CHECK(output.isfinite().all().item<bool>());
  CHECK(seen == std::vector{stream, stream});
}

TEST_CASE(
    "on a GPU, each replica runs on its own device and on the caller's current stream for that "
    "device",
    "[gpu]") {
  sconce::test::require_gpu();
  const auto last = sconce::gpu(sconce::num_gpus() - 1);
  const c10::impl::VirtualGuardImpl impl(torch::kCUDA);
  const c10::MultiStreamGuard streams(
      {impl.getStreamFromGlobalPool(sconce::gpu()), impl.getStreamFromGlobalPool(last)});
  std::mutex mutex;
  std::vector<torch::Device> current;
  auto module = calling([&](auto& self, const Tensor& x) {
    const std::scoped_lock lock(mutex);
    CHECK(impl.getDevice() == x.device());
    CHECK(impl.getStream(x.device()) != impl.getDefaultStream(x.device()));
    current.push_back(impl.getDevice());
    return self.linear(x);
  });
  module->to(sconce::gpu());
  DataParallel net(module, {.device_ids = {sconce::gpu(), last}});
  CHECK(net.forward(torch::ones({4, 3})).isfinite().all().item<bool>());
  CHECK(std::count(current.begin(), current.end(), last) == (sconce::num_gpus() > 1 ? 1 : 2));
}

TEST_CASE("on a GPU, creating replicas draws no random numbers", "[gpu]") {
  sconce::test::require_gpu();
  struct Noise : nn::Cloneable<Noise> {
    Noise() { reset(); }
    void reset() override { noise = register_buffer("noise", torch::rand({3}, torch::kCUDA)); }
    Tensor forward(Tensor x) { return x + noise; }
    Tensor noise;
  };
  auto module = std::make_shared<Noise>();
  torch::manual_seed(12);
  const auto expected = torch::rand({4}, torch::kCUDA);
  torch::manual_seed(12);
  DataParallel net(module, {.device_ids = {sconce::gpu(), sconce::gpu()}});
  CHECK(torch::rand({4}, torch::kCUDA).equal(expected));
}

TEST_CASE("on a GPU, DataParallel uses all GPUs by default and accepts inputs from any device",
          "[gpu]") {
  sconce::test::require_gpu();
  auto module = mlp();
  module->to(sconce::gpu());
  DataParallel net(module);
  CHECK(net.device_ids() == sconce::try_all_gpus());
  CHECK(net.output_device() == sconce::gpu());
  const auto output = net.forward(torch::ones({8, 3}).pin_memory());
  CHECK(output.device() == sconce::gpu());
}

TEST_CASE("on a GPU, DataParallel rejects a parameter that is not on the first device", "[gpu]") {
  sconce::test::require_gpu();
  DataParallel net(mlp(), {.device_ids = {sconce::gpu(), sconce::cpu()}});
  CHECK_THAT(error_of([&] { net.forward(torch::ones({2, 3})); }),
             ContainsSubstring("sconce::nn::DataParallel: expected the module's parameters and "
                               "buffers on the first device (cuda:0), got a tensor on cpu"));
}
