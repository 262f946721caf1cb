// The distributed training tests run this program as several processes:
//   test-distributed-worker MODE [NAME=VALUE...]
// If an error occurs, the program prints it to stderr and exits with code 1.
#include <fcntl.h>
#include <netdb.h>
#include <sys/socket.h>
#include <torch/torch.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>

#include "distributed/captured_steps.hpp"
#include "distributed/training.hpp"
#include "metrics/every_metric.hpp"
#include "sconce/data/from_torch.hpp"
#include "sconce/data/stream_loader.hpp"
#include "sconce/distributed/process_group.hpp"
#include "sconce/nn/requires_grad.hpp"
#include "sconce/optim/ema.hpp"
#include "sconce/optim/sgd.hpp"
#include "sconce/report/progress_bar.hpp"
#include "sconce/report/scalar_logger.hpp"
#include "sconce/training/early_stopping.hpp"
#include "sconce/training/model_checkpoint.hpp"
#include "sconce/training/stop_on_signal.hpp"
#include "sconce/training/trainer.hpp"
#include "sconce/training/weight_averaging.hpp"
#include "support/stop_when.hpp"

namespace {

using sconce::distributed::ProcessGroup;
using sconce::distributed::ReduceOp;
using Words = std::map<std::string, std::string>;

std::string word(const Words& words, const std::string& name, const std::string& otherwise = "") {
  const auto found = words.find(name);
  return found == words.end() ? otherwise : found->second;
}

ProcessGroup join(const Words& words) {
  sconce::distributed::InitOptions options;
  options.backend = word(words, "backend");
  options.init_method = word(words, "init_method", "env://");
  options.timeout = std::chrono::milliseconds(std::stoi(word(words, "timeout", "30000")));
  if (words.contains("rank")) options.rank = std::stoi(words.at("rank"));
  if (words.contains("world_size")) options.world_size = std::stoi(words.at("world_size"));
  return ProcessGroup::init(options);
}

void print(const std::string& name, const torch::Tensor& tensor) {
  std::cout << name << ':';
  const auto values = tensor.to(torch::kDouble).flatten();
  for (int64_t i = 0; i < values.size(0); ++i) std::cout << ' ' << values[i].item<double>();
  std::cout << '\n';
}

void launch(const Words& words) {
  const auto group = join(words);
  std::cout << "rank " << group.rank() << " of " << group.world_size() << ", here "
            << group.local_rank() << ", backend " << group.backend() << '\n';
  if (sconce::num_gpus() > 0) {
    const sconce::Trainer trainer({.num_gpus = 1, .process_group = group});
    std::cout << "num_gpus = 1: " << trainer.device() << '\n';
  }
  auto sum = torch::ones({1});
  const ProcessGroup copy = group;
  copy.all_reduce(sum);
  print("sum", sum);
}

// Prints the address of every listening socket in this process.
void listeners(const Words& words) {
  const auto group = join(words);
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename().string());
    int listens = 0;
    socklen_t size = sizeof listens;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0) continue;
    sockaddr_storage address = {};
    size = sizeof address;
    char host[NI_MAXHOST] = {};
    auto* raw = reinterpret_cast<sockaddr*>(&address);
    getsockname(fd, raw, &size);
    getnameinfo(raw, size, host, sizeof host, nullptr, 0, NI_NUMERICHOST);
    std::cout << host << '\n';
  }
  group.barrier();
}

void collectives(const Words& words) {
  const auto group = join(words);
  const int rank = group.rank();
  const auto mine = torch::tensor({1. + rank, 10. - rank}, torch::kFloat);
  const std::map<std::string, ReduceOp> ops = {{"sum", ReduceOp::sum},
                                               {"product", ReduceOp::product},
                                               {"min", ReduceOp::min},
                                               {"max", ReduceOp::max}};
  for (const auto& [name, op] : ops) {
    auto tensor = mine.clone();
    group.all_reduce(tensor, op);
    print(name, tensor);
  }
  auto strided = torch::full({2, 3}, rank + 1, torch::kLong);
  group.all_reduce(strided.t()[1]);
  print("column", strided);
  auto leaf = mine.clone().requires_grad_();
  group.broadcast(leaf, group.world_size() - 1);
  print("broadcast", leaf.detach());
  for (const auto& each : group.all_gather(leaf[0] + rank)) print("gathered", each);
  std::vector<torch::Tensor> parts;
  for (int part = 0; part < group.world_size(); ++part) parts.push_back(mine + 100 * part);
  print("scattered", group.reduce_scatter(parts));
  group.barrier();
}

// Runs the reductions listed in the file `cases`, in the same way as reference/subgroups.py, and
// prints all results. Each line contains the ranks in a subgroup and the name of an operation.
void subgroups(const Words& words) {
  const auto group = join(words);
  const std::map<std::string, ReduceOp> ops = {{"sum", ReduceOp::sum},
                                               {"product", ReduceOp::product},
                                               {"min", ReduceOp::min},
                                               {"max", ReduceOp::max},
                                               {"avg", ReduceOp::avg}};
  std::cout.precision(17);
  std::ifstream cases(words.at("cases"));
  int number = 0;
  for (std::string op, list; cases >> op >> list; ++number) {
    std::vector<int> ranks;
    std::istringstream all(list);
    for (std::string rank; std::getline(all, rank, ',');) ranks.push_back(std::stoi(rank));
    const auto some = group.new_group(ranks);
    if (!some) continue;
    const auto dtype = number % 2 == 0 ? torch::kDouble : torch::kLong;
    auto tensor = torch::arange(1, 5, dtype) * (group.rank() + 2) + number;
    std::vector<torch::Tensor> parts;
    for (int part = 0; part < some->world_size(); ++part) parts.push_back(tensor + part);
    const auto scattered = some->reduce_scatter(parts, ops.at(op));
    some->all_reduce(tensor, ops.at(op));
    print(c10::str(some->rank(), " of ", some->world_size()), torch::stack({tensor, scattered}));
  }
  group.barrier();
}

// Calls new_group on every rank, except that rank `victim` either passes different ranks or does
// not call new_group.
void other_subgroups(const Words& words) {
  const auto group = join(words);
  const bool is_victim = group.rank() == std::stoi(words.at("victim"));
  if (is_victim && words.at("what") == "absent") return;
  (void)group.new_group({0, is_victim ? 2 : 1});
}

// Trains the cases one after another in the same group.
void train(const Words& words) {
  const auto group = join(words);
  std::istringstream cases(words.at("cases"));
  for (std::string name; std::getline(cases, name, ',');) {
    std::cerr << name << ": ";
    sconce::test::train(name, group, std::stoi(word(words, "joined", "1")),
                        words.at("out") + "." + name);
    std::cerr << "done\n";
  }
}

struct OneRow : torch::data::Dataset<OneRow> {
  torch::data::Example<> get(size_t) override { return {torch::ones({2}), torch::tensor(1)}; }
  std::optional<size_t> size() const override { return 1; }
};

sconce::AnyBatches of_torch() {
  auto rows = OneRow().map(torch::data::transforms::Stack<>());
  return sconce::data::from_torch(torch::data::make_data_loader(std::move(rows)), 1);
}

// Fits a model while rank `victim` has one more batch than the other ranks. Before this fit, prints
// the errors for rejected fits, which use a torch::data loader, arguments that differ between
// ranks, or a different process group. Rejected fits leave the parameters unchanged.
void uneven(const Words& words) {
  const auto group = join(words);
  const int64_t rows = group.rank() == std::stoi(words.at("victim")) ? 5 : 4;
  torch::nn::Linear linear(2, 2);
  sconce::nn::DistributedDataParallel model(linear, group);
  torch::optim::SGD optimizer(linear->parameters(), 0.1);
  sconce::Trainer trainer({.num_gpus = 0, .process_group = group});
  const auto ones = [](int64_t size) {
    return sconce::data::Batches({torch::ones({size, 2}), torch::ones({size}, torch::kLong)});
  };
  const std::function<void()> refused[] = {
      [&] { trainer.fit(model, optimizer, {.train = of_torch()}); },
      [&] { trainer.fit(model, optimizer, {.train = ones(4), .test = of_torch()}); },
      [&] { trainer.evaluate(model, of_torch()); },
      [&] {
        sconce::Trainer({.max_epochs = 2 + group.rank(), .num_gpus = 0, .process_group = group})
            .fit(model, optimizer, {ones(4)});
      },
      [&] {
        sconce::FitData data = {ones(4)};
        if (group.rank() == 0) data.test = ones(4);
        trainer.fit(model, optimizer, data);
      },
      [&] { trainer.fit(model, optimizer, {.train = ones(4), .test = ones(0)}); },
      [&] {
        sconce::FitData data = {ones(4)};
        if (group.rank() == 1) data.callbacks = {nullptr};
        trainer.fit(model, optimizer, data);
      },
      [&] { sconce::Trainer({.num_gpus = 0}).fit(model, optimizer, {ones(4)}); },
      [&] {
        sconce::EarlyStopping stopping("no_such_value");
        sconce::FitData data = {ones(4)};
        if (group.rank() == 1) data.callbacks = {&stopping};
        trainer.fit(model, optimizer, data);
      },
      [&] {
        sconce::EarlyStopping one("loss"), other("loss");
        sconce::FitData data = {ones(4)};
        data.callbacks = {&one};
        if (group.rank() == 1) data.callbacks.push_back(&other);
        trainer.fit(model, optimizer, data);
      },
      [&] {
        std::shared_ptr<sconce::StepCompiler> compiler;
        if (group.rank() == 0) {
          compiler =
              std::make_shared<sconce::test::RankCompiler>(sconce::test::RankCompiler::Options());
        }
        sconce::Trainer({.num_gpus = 0, .compiler = compiler, .process_group = group})
            .fit(model, optimizer, {ones(4)});
      }};
  const auto before = linear->weight.detach().clone();
  for (size_t i = 0; i < std::size(refused); ++i) {
    try {
      refused[i]();
    } catch (const c10::Error& error) {
      std::cerr << i << ' ' << error.what_without_backtrace() << '\n';
    }
  }
  if (!linear->weight.equal(before)) std::cerr << "a fit that was refused has trained\n";
  trainer.fit(model, optimizer, {ones(rows)});
}

// Fits a model without gradient averaging.
void unwrapped(const Words& words) {
  torch::nn::Linear linear(2, 2);
  torch::optim::SGD optimizer(linear->parameters(), 0.1);
  sconce::Trainer trainer({.num_gpus = 0, .process_group = join(words)});
  const sconce::data::Dataset data = {torch::ones({4, 2}), torch::ones({4}, torch::kLong)};
  trainer.fit(linear, optimizer, {sconce::data::Batches(data)});
}

// Prints the error for each fit that is rejected because rank 1 differs from rank 0.
void one_unwrapped(const Words& words) {
  const auto group = join(words);
  const bool is_other = group.rank() == 1;
  torch::nn::Linear linear(2, 2);
  torch::optim::SGD optimizer(linear->parameters(), 0.1);
  sconce::Trainer trainer({.num_gpus = 0, .process_group = group});
  sconce::Trainer alone({.num_gpus = 0});
  const sconce::data::Batches batches(
      sconce::data::Dataset{torch::ones({4, 2}), torch::ones({4}, torch::kLong)});
  const auto wrapped = [&](bool broadcast_buffers) {
    return sconce::nn::DistributedDataParallel(linear, group,
                                               {.broadcast_buffers = broadcast_buffers});
  };
  const std::function<void()> refused[] = {
      [&] {
        if (is_other) trainer.fit(linear, optimizer, {batches});
        auto model = wrapped(true);
        trainer.fit(model, optimizer, {batches});
      },
      [&] {
        if (is_other) sconce::nn::requires_grad_(*linear, false);
        wrapped(true);
      },
      [&] {
        sconce::nn::requires_grad_(*linear);
        auto model = wrapped(true);
        alone.evaluate(model, batches);
      },
      [&] {
        auto model = wrapped(true);
        alone.predict(model, batches);
      },
      [&] {
        auto model = wrapped(false);
        is_other ? trainer.evaluate(linear, batches) : trainer.evaluate(model, batches);
      },
      [&] {
        auto model = wrapped(false);
        is_other ? trainer.predict(linear, batches) : trainer.predict(model, batches);
      },
      [&] {
        if (is_other) trainer.predict(linear, batches);
        trainer.evaluate(linear, batches);
      }};
  for (size_t i = 0; i < std::size(refused); ++i) {
    try {
      refused[i]();
      std::cerr << i << " no error\n";
    } catch (const c10::Error& error) {
      std::cerr << i << ' ' << error.what_without_backtrace() << '\n';
    }
  }
}

// Trains a model with BatchNorm on each rank's rows. Tests the model on three batches of rank 0,
// the only rank with test batches, using averaged weights if `ema` is 1. Makes predictions for the
// same batches. Prints the accuracy. Rank 0 also prints the accuracy computed by hand.
void evaluate(const Words& words) {
  const auto group = join(words);
  torch::manual_seed(group.rank());
  torch::nn::Sequential net(torch::nn::Linear(2, 8), torch::nn::BatchNorm1d(8), torch::nn::ReLU(),
                            torch::nn::Linear(8, 2));
  sconce::nn::DistributedDataParallel model(net, group);
  torch::optim::SGD optimizer(net->parameters(), 0.1);
  std::optional<sconce::optim::ExponentialMovingAverage> ema;
  if (word(words, "ema") == "1")
    ema.emplace(*net, sconce::optim::ExponentialMovingAverageOptions{.decay = 0.5});
  const auto points = [&](int64_t rows) {
    const auto x = torch::randn({rows, 2}) * (group.rank() + 1) + group.rank();
    return sconce::data::Dataset{x, x.select(1, 0).gt(0.3).to(torch::kLong)};
  };
  const auto test = points(group.rank() == 0 ? 60 : 0);
  sconce::Trainer trainer({.num_gpus = 0, .process_group = group});
  sconce::FitData data = {.train = sconce::data::Batches(points(32), {.batch_size = 8}),
                          .test = sconce::data::Batches(test, {.batch_size = 20})};
  std::optional<sconce::WeightAveraging> averaging;
  if (ema) data.callbacks.push_back(&averaging.emplace(*ema));
  const auto result = trainer.fit(model, optimizer, data);
  std::cout << "accuracy: " << result.epochs[0].at("test_acc") << '\n';
  const auto outputs = trainer.predict(model, data.test.value());
  TORCH_CHECK(std::ssize(outputs) == (group.rank() == 0 ? 3 : 0), "got ", outputs.size(),
              " predictions");
  torch::nn::BatchNorm1d with_own(2);
  sconce::nn::DistributedDataParallel of_own(with_own, group, {.broadcast_buffers = false});
  with_own->running_mean.fill_(group.rank());
  trainer.evaluate(of_own, data.test.value());
  TORCH_CHECK(with_own->running_mean.eq(group.rank()).all().item<bool>(), "got another's buffers");
  if (group.rank() > 0) return;
  std::optional<sconce::optim::ExponentialMovingAverage::SwapGuard> averages;
  if (ema) averages.emplace(*ema);
  net->eval();
  const auto right = net->forward(test.data).argmax(1).eq(test.target);
  std::cout << "by hand: " << right.to(torch::kDouble).mean().item<double>() << '\n';
}

// Prints the value of each metric for the batches on all ranks and for the combined batch.
void metrics(const Words& words) {
  const auto group = join(words);
  torch::manual_seed(1);
  for (const auto& [name, metric, same, preds, target] : sconce::test::every_further_metric(11)) {
    const auto own = [&](const torch::Tensor& all) {
      return all.slice(0, group.rank(), all.size(0), group.world_size());
    };
    metric->update(own(preds), own(target));
    auto sums = metric->sums().clone();
    group.all_reduce(sums);
    same->update(preds, target);
    print(name, torch::stack({metric->compute(sums), same->compute()}));
  }
}

struct OwnStep : torch::nn::Module {
  sconce::StepOutput training_step(const sconce::data::Dataset& batch) {
    const auto output = linear->forward(batch.data);
    return {torch::nn::functional::cross_entropy(output, batch.target), output, batch.target};
  }
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(2, 2));
};

// Trains a model that defines a custom training step. Each rank trains on its share of every batch.
// The last rank requests a stop after `stop` steps, and all ranks stop at the next save. Prints the
// outcome.
void own_step(const Words& words) {
  const auto group = join(words);
  torch::manual_seed(1);
  const auto model = std::make_shared<OwnStep>();
  const auto x = torch::randn({32, 2});
  const auto own = [&](const torch::Tensor& all) {
    return all.slice(0, group.rank(), all.size(0), group.world_size()).contiguous();
  };
  const sconce::data::Dataset rows = {own(x), own(x.select(1, 0).gt(0).to(torch::kLong))};
  const sconce::data::Batches batches(rows, {.batch_size = 8 / group.world_size()});
  sconce::nn::DistributedDataParallel of_rank(model, group);
  torch::optim::SGD optimizer(model->parameters(), 0.5);
  int64_t steps = 0;
  sconce::test::StopWhen stopping([&] {
    return group.rank() + 1 == group.world_size() && ++steps == std::stoi(word(words, "stop", "0"));
  });
  TORCH_CHECK(sconce::Trainer({.process_group = group}).device() == group.device());
  sconce::test::SaveEvery pausing(2);
  sconce::Trainer trainer({.max_epochs = 3, .num_gpus = 0, .process_group = group});
  const auto result = trainer.fit(
      of_rank, optimizer, {.train = batches, .test = batches, .callbacks = {&stopping, &pausing}});
  std::cout << "epochs: " << result.epochs.size() << '\n';
  if (!result.epochs.empty()) {
    const auto& last = result.epochs.back();
    std::cout << last.loss << ' ' << last.at("test_loss") << ' ' << last.at("test_acc") << ' ';
  }
  for (const auto& parameter : model->parameters()) {
    for (int64_t i = 0; i < parameter.numel(); ++i) {
      std::cout << parameter.flatten()[i].item<float>() << ' ';
    }
  }
}

struct OnStepAndSave : sconce::TrainerCallback {
  void on_before_optimizer_step(sconce::Fit& fit) override { on_step(fit); }
  std::string name() const override { return "raising"; }
  std::optional<sconce::Stateful> state() override {
    return sconce::Stateful(on_save, [](const c10::IValue&) {});
  }
  std::function<void(const sconce::Fit&)> on_step = [](const sconce::Fit&) {};
  std::function<c10::IValue()> on_save = [] { return c10::IValue(); };
};

// Saves a fit every two steps, and raises SIGUSR1 on the last rank in the first step of the third
// epoch. If `again` is 1, the next save raises the signal again. Prints the number of epochs, the
// stop reason, the signal, and the latest checkpoint.
void signal_in_fit(const Words& words) {
  const auto group = join(words);
  torch::manual_seed(1);
  torch::nn::Linear linear(2, 2);
  sconce::nn::DistributedDataParallel model(linear, group);
  sconce::optim::SGD optimizer(linear->parameters(), torch::optim::SGDOptions(0.1));
  const sconce::data::Batches batches(
      sconce::data::Dataset{torch::ones({9, 2}), torch::ones({9}, torch::kLong)},
      {.batch_size = 3});
  OnStepAndSave raising;
  bool has_raised = false;
  raising.on_step = [&](const sconce::Fit& fit) {
    if (fit.epochs.size() != 2 || fit.batch != 0 || group.rank() + 1 < group.world_size()) return;
    has_raised = true;
    std::raise(SIGUSR1);
  };
  raising.on_save = [&] {
    if (has_raised && word(words, "again") == "1") std::raise(SIGUSR1);
    return c10::IValue();
  };
  sconce::StopOnSignal stopping;
  sconce::Checkpoint checkpoint(words.at("out"), {.process_group = group});
  sconce::ModelCheckpoint saving(checkpoint, {.every_n_train_steps = 2});
  sconce::Trainer trainer({.max_epochs = 5, .num_gpus = 0, .process_group = group});
  const auto result = trainer.fit(model, optimizer,
                                  {.train = batches, .callbacks = {&raising, &stopping, &saving}});
  std::cout << result.epochs.size() << " epochs, " << result.stop_reason << ", signal "
            << stopping.signal() << ", " << checkpoint.latest().filename().string() << '\n';
}

// A stream of the data points for one rank. Rank 0 has fewer points, so its stream restarts
// earlier.
struct RankPoints {
  std::optional<sconce::data::Dataset> next() {
    if (place == count) return {};
    const auto x = torch::full({2}, static_cast<float>(place++ - 5));
    return sconce::data::Dataset{x, x[0].gt(0).to(torch::kLong)};
  }
  c10::IValue state_dict() const { return place; }
  void load_state_dict(const c10::IValue& state) { place = state.toInt(); }

  int64_t count;
  int64_t place = 0;
};

// Starts or resumes training on a stream, and stops all ranks after `stop` steps. Prints the
// weights.
void stream(const Words& words) {
  const auto group = join(words);
  torch::manual_seed(1);
  torch::nn::Linear linear(2, 2);
  sconce::nn::DistributedDataParallel model(linear, group);
  sconce::optim::SGD optimizer(linear->parameters(), torch::optim::SGDOptions(0.1));
  const sconce::data::StreamLoader train(
      RankPoints{10 + group.rank()},
      {.batch_size = 3, .batches_per_epoch = 5, .shuffle_buffer = 4, .num_workers = 1});
  int steps = 0;
  sconce::test::StopWhen stopping([&] { return ++steps == std::stoi(word(words, "stop", "0")); });
  sconce::Checkpoint checkpoint(words.at("out"), {.resume = true, .process_group = group});
  sconce::ModelCheckpoint saving(checkpoint, {.every_n_train_steps = 1});
  sconce::Trainer({.max_epochs = 3, .num_gpus = 0, .process_group = group})
      .fit(model, optimizer, {.train = train, .callbacks = {&stopping, &saving}});
  std::cout << linear->weight << linear->bias;
}

// A model with a custom step that returns two values.
struct StepWithValues : torch::nn::Module {
  sconce::StepOutput training_step(const sconce::data::Dataset& batch) {
    const auto error = linear->forward(batch.data) - batch.target.unsqueeze(1);
    const auto loss = error.square().mean();
    return {.loss = loss, .values = {{name, loss}, {"bias", error.mean()}}};
  }
  sconce::StepOutput validation_step(const sconce::data::Dataset& batch) {
    return {.loss = training_step(batch).loss, .values = {{"largest", batch.data.mean()}}};
  }
  std::string name = "square";
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(2, 1));
};

// Trains and tests a model that reports step values, using batches of different sizes and two test
// sets. The last rank has no batches from the second test set. Prints the values.
void values(const Words& words) {
  const auto group = join(words);
  torch::manual_seed(1);
  const auto model = std::make_shared<StepWithValues>();
  if (word(words, "other") == "1" && group.rank() == 1) model->name = "cube";
  const auto x = torch::randn({20, 2});
  const auto own = [&](const torch::Tensor& all) {
    return all.slice(0, group.rank(), all.size(0), group.world_size()).contiguous();
  };
  const auto of = [&](const torch::Tensor& rows) {
    return sconce::data::Batches({rows, rows.select(1, 0).clone()},
                                 {.batch_size = 8 / group.world_size()});
  };
  const bool is_last = group.rank() + 1 == group.world_size() && group.rank() > 0;
  sconce::nn::DistributedDataParallel of_rank(model, group);
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  sconce::test::SaveEvery pausing(1);
  sconce::Trainer trainer(
      {.max_epochs = 2, .num_gpus = 0, .metrics = sconce::Metrics(), .process_group = group});
  const auto result =
      trainer.fit(of_rank, optimizer,
                  {.train = of(own(x)),
                   .test = {{"val", of(own(x))}, {"hard", of(is_last ? x.slice(0, 0, 0) : x)}},
                   .callbacks = {&pausing}});
  for (const auto& epoch : result.epochs) {
    std::cout << "loss " << epoch.loss << ' ';
    for (const auto& [name, value] : epoch.metrics) std::cout << name << ' ' << value << ' ';
  }
}

// Trains and then tests a model whose loss is averaged over the targets that are not ignored. On
// rank 1, all targets in the first batches are ignored, and the last rank has no test batches.
// Prints the losses and parameters.
void counts(const Words& words) {
  const auto group = join(words);
  torch::manual_seed(1);
  const auto x = torch::randn({32, 2});
  const auto y = x.select(1, 0).gt(0).to(torch::kLong);
  y.slice(0, 1, 20, 2).fill_(-100);
  const auto own = [&](const torch::Tensor& all) {
    return all.slice(0, group.rank(), all.size(0), group.world_size()).contiguous();
  };
  const auto over_targets = [](const torch::Tensor& output, const torch::Tensor& target) {
    const auto sum = torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum);
    return sconce::LossSum{.sum = torch::nn::functional::cross_entropy(output, target, sum),
                           .count = (target != -100).sum()};
  };
  const bool graph = word(words, "graph") == "1";
  const bool is_last = group.rank() + 1 == group.world_size() && group.rank() > 0;
  const auto of_test = [&](const torch::Tensor& all) { return all.slice(0, 0, is_last ? 0 : 32); };
  torch::nn::Linear model(2, 2);
  sconce::nn::DistributedDataParallel of_rank(model, group);
  sconce::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.5));
  sconce::Trainer trainer({.max_epochs = 2,
                           .num_gpus = 0,
                           .gradient_clip_val = 0.2,
                           .accumulate_grad_batches = graph ? 1 : 3,
                           .graph = graph,
                           .loss = over_targets,
                           .process_group = group});
  const sconce::data::Batches train({own(x), own(y)}, {.batch_size = 8 / group.world_size()});
  const sconce::data::Batches test({of_test(x), of_test(y)}, {.batch_size = 8});
  const auto result = trainer.fit(of_rank, optimizer, train, test);
  for (const auto& epoch : result.epochs) {
    std::cout << epoch.loss << ' ' << epoch.at("test_loss") << ' ';
  }
  for (const auto& parameter : model->parameters()) print("parameter", parameter);
}

// Trains until rank `victim` fails at the point given by `where`: start, joined, or step.
void fault(const Words& words) {
  const std::string what = words.at("what");
  const int victim = std::stoi(words.at("victim"));
  const auto fail_at = [&](const std::string& place, int rank) {
    if (place != word(words, "where") || rank != victim) return;
    if (what == "killed") raise(SIGKILL);
    if (what == "stopped") raise(SIGSTOP);
    if (what == "forward") throw std::runtime_error("forward failed");
  };
  fail_at("start", std::stoi(std::getenv("RANK")));
  const auto group = join(words);
  fail_at("joined", group.rank());
  const auto model = sconce::test::mlp(what == "shape" && group.rank() == victim ? 31 : 30);
  sconce::nn::DistributedDataParallel ddp(model, group, {.bucket_cap_mb = 0.002});
  for (int step = 0; step < 1000; ++step) {
    auto output = ddp(torch::randn({8, 20}));
    if (step == 5) fail_at("step", group.rank());
    output.sum().backward();
  }
}

// Prints the differences between captured and eager steps in this group, and between captured and
// eager fits.
void captured(const Words& words) {
  const auto group = join(words);
  sconce::test::compare_captured_steps(group);
  sconce::test::compare_collectives(group);
  sconce::test::compare_captured_fits(group);
  sconce::test::refuse_captured_steps(group);
}

// Prints how each rank runs each step.
void compiled(const Words& words) {
  sconce::test::run_compiled_steps(join(words));
}

// Runs a short fit in which the progress bar writes to a terminal and each rank logs to a separate
// folder.
void report(const Words& words) {
  const auto group = join(words);
  sconce::ScalarLogger log(words.at("out") + "/" + std::to_string(group.rank()));
  sconce::ProgressBar bar(std::cout, {.bar = {.file_descriptor = posix_openpt(O_RDWR | O_NOCTTY)}});
  torch::nn::Linear model(2, 2);
  sconce::nn::DistributedDataParallel ddp(model, group);
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  const sconce::data::Batches data({torch::ones({8, 2}), torch::ones({8}, torch::kLong)},
                                   {.batch_size = 4});
  sconce::Trainer({.max_epochs = 1, .num_gpus = 0, .process_group = group})
      .fit(ddp, optimizer, {.train = data, .callbacks = {&bar, &log}});
}

}  // namespace

int main(int argc, char** argv) {
  const auto start = std::chrono::steady_clock::now();
  const std::map<std::string, std::function<void(const Words&)>> modes = {
      {"launch", launch},
      {"listeners", listeners},
      {"collectives", collectives},
      {"captured", captured},
      {"compiled", compiled},
      {"subgroups", subgroups},
      {"other_subgroups", other_subgroups},
      {"train", train},
      {"uneven", uneven},
      {"unwrapped", unwrapped},
      {"one_unwrapped", one_unwrapped},
      {"evaluate", evaluate},
      {"fault", fault},
      {"own_step", own_step},
      {"signal_in_fit", signal_in_fit},
      {"stream", stream},
      {"values", values},
      {"counts", counts},
      {"report", report},
      {"metrics", metrics}};
  try {
    Words words;
    for (int i = 2; i < argc; ++i) {
      const std::string text = argv[i];
      words[text.substr(0, text.find('='))] = text.substr(text.find('=') + 1);
    }
    modes.at(argv[1])(words);
    return 0;
  } catch (const c10::Error& error) {
    std::cerr << error.what_without_backtrace() << '\n';
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
  }
  const std::chrono::duration<double> now = std::chrono::steady_clock::now().time_since_epoch();
  const std::chrono::duration<double> began = start.time_since_epoch();
  std::cerr << std::fixed << "began: " << began.count() << " ended: " << now.count() << '\n';
  return 1;
}
