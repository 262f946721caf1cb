#include "sconce/training/trainer.hpp"

#include <ATen/autocast_mode.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <future>
#include <limits>
#include <sstream>
#include <thread>

#include "catch.hpp"
#include "sconce/amp/autocast.hpp"
#include "sconce/data/data_loader.hpp"
#include "sconce/data/distributed_sampler.hpp"
#include "sconce/distributed/data_parallel.hpp"
#include "sconce/distributed/distributed_data_parallel.hpp"
#include "sconce/distributed/process_group.hpp"
#include "sconce/metrics/classification.hpp"
#include "sconce/metrics/confusion_matrix.hpp"
#include "sconce/nn/clip_grad.hpp"
#include "sconce/nn/requires_grad.hpp"
#include "sconce/optim/ema.hpp"
#include "sconce/optim/lr_scheduler.hpp"
#include "sconce/optim/rmsprop.hpp"
#include "sconce/optim/sgd.hpp"
#include "sconce/training/checkpoint.hpp"
#include "sconce/training/early_stopping.hpp"
#include "sconce/training/epoch_logger.hpp"
#include "sconce/training/lr_scheduling.hpp"
#include "sconce/training/model_checkpoint.hpp"
#include "sconce/training/weight_averaging.hpp"
#include "support/error_of.hpp"
#include "support/fitting.hpp"
#include "support/host_reads.hpp"
#include "support/of_distribution.hpp"
#include "support/one_with_gloo.hpp"
#include "support/points.hpp"
#include "support/refusals.hpp"
#include "support/require_gpu.hpp"
#include "support/stop_when.hpp"
#include "support/temp_dir.hpp"
#include "support/warnings.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using sconce::SchedulerInterval;
using sconce::Trainer;
using sconce::amp::Precision;
using sconce::data::Batches;
using sconce::test::data;
using sconce::test::Fitting;
using sconce::test::net;
using sconce::test::net_without_dropout;
using sconce::test::one_with_gloo;
using sconce::test::points;

namespace {

struct Plain : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& x) { return linear->forward(x); }
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(2, 2));
};

// A callback that records which of its methods are called.
struct Recorder : sconce::TrainerCallback {
  explicit Recorder(std::string of = "") : prefix(std::move(of)) {}
  void write(const std::string& verb) { (log ? *log : verbs) += prefix + verb + " "; }
  void load(sconce::Fit&) override { write("load"); }
  void on_fit_start(sconce::Fit&) override { write("begin"); }
  void on_fit_end(sconce::Fit&) override { write("end"); }
  void on_before_optimizer_step(sconce::Fit&) override { write("before"); }
  void on_after_optimizer_step(sconce::Fit& fit) override {
    write("after");
    if (fit.batch == throws_after) throw std::runtime_error("thrown by a callback");
    if (fit.batch == stops_after) fit.stop();
  }
  void on_epoch_end(sconce::Fit&) override { write("epoch"); }
  void on_test_start(sconce::Fit&) override { write("test_begin"); }
  void on_test_end(sconce::Fit&) override { write("test_end"); }
  bool should_save(const sconce::Fit&) const override { return saves_each_step; }
  void save(sconce::Fit&) override { write("save"); }

  std::string prefix;
  std::string verbs;
  std::string* log = nullptr;
  int64_t throws_after = -1;
  int64_t stops_after = -1;
  bool saves_each_step = false;
};

// Records the loop's named ranges during the object's lifetime, in the form "step(data()
// forward())". Ranges in which the host waits for a device are excluded.
class Ranges {
 public:
  Ranges() {
    text_.clear();
    const auto open = [](const at::RecordFunction& range) {
      if (is_wait(range)) return std::unique_ptr<at::ObserverContext>();
      if (!text_.empty() && text_.back() != '(') text_ += ' ';
      text_ += std::string(range.name()) + "(";
      return std::unique_ptr<at::ObserverContext>();
    };
    const auto close = [](const at::RecordFunction& range, at::ObserverContext*) {
      if (!is_wait(range)) text_ += ')';
    };
    handle_ = at::addThreadLocalCallback(
        at::RecordFunctionCallback(open, close).scopes({at::RecordScope::USER_SCOPE}));
  }
  ~Ranges() { at::removeCallback(handle_); }
  Ranges(const Ranges&) = delete;
  Ranges& operator=(const Ranges&) = delete;

  const std::string& text() const { return text_; }

 private:
  static bool is_wait(const at::RecordFunction& range) {
    return std::string(range.name()) == "sconce::synchronize";
  }

  inline static thread_local std::string text_ = {};
  at::CallbackHandle handle_;
};

// A model whose custom loss and custom steps reproduce the loop's behavior for `Plain`.
struct OwnStep : torch::nn::Cloneable<OwnStep> {
  OwnStep() { reset(); }
  void reset() override { linear = register_module("linear", torch::nn::Linear(2, 2)); }
  torch::Tensor forward(const torch::Tensor& x) { return linear->forward(x); }
  sconce::StepOutput training_step(const sconce::data::Dataset& batch) {
    const auto output = forward(batch.data);
    return {torch::nn::functional::cross_entropy(output, batch.target), output, batch.target};
  }
  torch::nn::Linear linear = nullptr;
};

template <class M>
std::shared_ptr<M> made() {
  torch::manual_seed(3);
  return std::make_shared<M>();
}

}  // namespace

TEST_CASE("the Trainer's defaults match d2l's, except that the Trainer uses a GPU if available") {
  CHECK(sconce::TrainerOptions().gradient_clip_val == 0);
  CHECK(Trainer().device() == sconce::try_gpu());
  CHECK(Trainer({.num_gpus = 0}).device() == sconce::cpu());
}

TEST_CASE("the Trainer rejects invalid options, and the error names the options") {
  const auto accuracy = std::make_shared<sconce::metrics::Accuracy>();
  using sconce::Metrics;
  const std::vector<std::pair<sconce::TrainerOptions, std::string>> refusals = {
      {{.max_epochs = 0, .num_gpus = 0}, "expected max_epochs to be at least 1, got 0"},
      {{.num_gpus = -1}, "expected num_gpus 0 or 1 (a Trainer uses one device), got -1"},
      {{.num_gpus = 2}, "expected num_gpus 0 or 1 (a Trainer uses one device), got 2"},
      {{.num_gpus = 0, .gradient_clip_val = -1},
       "expected gradient_clip_val to be at least 0, got -1"},
      {{.num_gpus = 0, .gradient_clip_val = std::numeric_limits<double>::quiet_NaN()},
       "expected gradient_clip_val to be at least 0, got nan"},
      {{.num_gpus = 0, .metrics = Metrics{{"acc", nullptr}}},
       "expected a metric for 'acc', got null"},
      {{.num_gpus = 0, .metrics = Metrics{{"a", accuracy}, {"a", accuracy}}},
       "expected metrics with different names, got two called 'a'"},
      {{.num_gpus = 0, .metrics = Metrics{{"loss", accuracy}}},
       "expected a metric name other than 'loss', which is reserved for the loss"},
      {{.num_gpus = 0, .accumulate_grad_batches = 0},
       "expected accumulate_grad_batches to be at least 1, got 0"},
      {{.num_gpus = 1, .device = sconce::cpu()},
       "expected only one of num_gpus and device, got num_gpus 1"},
  };
  for (const auto& [options, message] : refusals) {
    CHECK_THROWS_WITH(Trainer(options), StartsWith("sconce::Trainer: " + message));
  }
  CHECK_THROWS_WITH(Trainer({.num_gpus = 0, .precision = Precision::tf32}),
                    ContainsSubstring("expected a GPU for Precision::tf32, got cpu"));
  CHECK_THROWS_WITH(Trainer({.device = sconce::gpu(127)}), ContainsSubstring("cuda:127"));
}

TEST_CASE("the Trainer rejects graph together with accumulate_grad_batches") {
  CHECK_THROWS_WITH(
      Trainer({.num_gpus = 0, .accumulate_grad_batches = 2, .graph = true}),
      ContainsSubstring(
          "sconce::Trainer: expected accumulate_grad_batches to be 1 with graph, got 2"));
}

namespace {

// Returns the losses, accuracies, and parameters of a fit with `graph` enabled or disabled. The
// batches contain 16 rows, except for the last one in each epoch, which contains 2 rows.
std::vector<double> fit_with_graph(bool graph, Precision precision) {
  const auto device = sconce::try_gpu();
  auto model = net();
  model->to(device);
  sconce::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9),
                               {.lr = torch::full({}, 0.1, device)});
  sconce::optim::lr_scheduler::StepLR schedule(optimizer, 2, 0.5);
  sconce::LRScheduling scheduling(schedule);
  auto fit_data = data(98);
  fit_data.callbacks = {&scheduling};
  torch::manual_seed(5);  // dropout
  Trainer trainer({.max_epochs = 5,
                   .gradient_clip_val = 0.5,
                   .precision = precision,
                   .device = device,
                   .graph = graph});
  std::vector<double> values;
  for (const auto& epoch : trainer.fit(model, optimizer, fit_data).epochs) {
    values.insert(values.end(), {epoch.loss, epoch.at("train_acc"), epoch.at("test_acc")});
  }
  for (const auto& parameter : model->parameters()) {
    values.push_back(parameter.sum().item<double>());
  }
  return values;
}

}  // namespace

TEST_CASE(
    "a fit with graph enabled matches a fit without it bit for bit, including with schedules and "
    "overflows") {
  const auto precision = GENERATE(Precision::fp32, Precision::bf16, Precision::fp16);
  CHECK(fit_with_graph(true, precision) == fit_with_graph(false, precision));
}

TEST_CASE("with fp16, graph rejects an optimizer whose step checks for overflows on the host") {
  auto model = net();
  sconce::optim::RMSprop optimizer(model->parameters(), torch::optim::RMSpropOptions(0.1),
                                   {.lr = torch::full({}, 0.1, sconce::try_gpu())});
  const auto before = model->parameters()[0].detach().clone();
  Trainer trainer({.precision = Precision::fp16, .device = sconce::try_gpu(), .graph = true});
  CHECK_THROWS_WITH(
      trainer.fit(model, optimizer, data()),
      StartsWith("sconce::Trainer: expected an optimizer with fused kernels for graph and fp16"));
  CHECK(model->parameters()[0].cpu().equal(before));
}

TEST_CASE(
    "with graph enabled, callbacks run after the step, and losses stored by callbacks do not "
    "change") {
  struct Losses : sconce::TrainerCallback {
    void on_before_optimizer_step(sconce::Fit& fit) override { before.push_back(fit.loss); }
    void on_after_optimizer_step(sconce::Fit& fit) override { after.push_back(fit.loss); }
    std::vector<torch::Tensor> before, after;
  } losses;
  auto model = net();
  sconce::optim::SGD optimizer(model->parameters(), 0.1,
                               {.lr = torch::full({}, 0.1, sconce::try_gpu())});
  auto fit_data = data();
  fit_data.callbacks = {&losses};
  const auto epoch = Trainer({.num_gpus = std::min(sconce::num_gpus(), 1), .graph = true})
                         .fit(model, optimizer, fit_data)
                         .epochs.front();
  REQUIRE(losses.before.size() == 6);
  for (size_t i = 0; i < 6; ++i) CHECK(losses.before[i].is_same(losses.after[i]));
  const double mean = torch::stack(losses.after).mean().item<double>();
  CHECK(mean == Catch::Approx(epoch.loss).epsilon(1e-6));
}

TEST_CASE("on a GPU, graph rejects an optimizer that cannot be captured", "[gpu]") {
  sconce::test::require_gpu();
  const auto expected =
      ContainsSubstring("sconce::Trainer: expected a sconce optimizer with graph");
  auto model = net();
  Trainer trainer({.num_gpus = 1, .graph = true});
  trainer.prepare_model(*model);
  torch::optim::SGD plain(model->parameters(), 0.1);
  CHECK_THROWS_WITH(trainer.fit(model, plain, data()), expected);
  sconce::optim::SGD number(model->parameters(), 0.1);
  CHECK_THROWS_WITH(trainer.fit(model, number, data()), expected);
}

TEST_CASE("fit trains the model and reports one entry per epoch") {
  auto model = net();
  torch::optim::SGD optimizer(model->parameters(), 0.5);
  const auto result = Trainer({.max_epochs = 12, .num_gpus = 0}).fit(model, optimizer, data());
  REQUIRE(result.epochs.size() == 12);
  CHECK(result.epochs.front().epoch == 1);
  CHECK(result.epochs.back().epoch == 12);
  CHECK(result.epochs.back().loss < result.epochs.front().loss);
  CHECK(result.epochs.back().at("test_acc") > 0.9);
  CHECK(result.epochs.back().examples == 96);
  CHECK(result.examples_per_second() > 0);
  CHECK(model->is_training());
}

TEST_CASE("fits with the same seeds produce identical losses, bit for bit") {
  const auto losses = [] {
    auto model = net();
    torch::optim::SGD optimizer(model->parameters(), 0.1);
    std::vector<double> values;
    for (const auto& epoch :
         Trainer({.max_epochs = 4, .num_gpus = 0}).fit(model, optimizer, data()).epochs) {
      values.push_back(epoch.loss);
    }
    return values;
  };
  CHECK(losses() == losses());
}

TEST_CASE(
    "training gives the same results with batches from workers as with batches sliced from "
    "tensors") {
  struct Points {
    sconce::data::Dataset all = points(96);
    int64_t size() const { return all.data.size(0); }
    sconce::data::Dataset get(int64_t i) const { return {all.data[i], all.target[i]}; }
  };
  const auto losses = [](const sconce::FitData& fit_data) {
    auto model = net();
    torch::optim::SGD optimizer(model->parameters(), 0.1);
    torch::manual_seed(5);  // dropout
    std::vector<double> values;
    for (const auto& epoch :
         Trainer({.max_epochs = 3, .num_gpus = 0}).fit(model, optimizer, fit_data).epochs) {
      values.insert(values.end(), {epoch.loss, epoch.at("test_acc")});
    }
    return values;
  };
  const sconce::data::DataLoader loader(
      Points(), {.batch_size = 16, .shuffle = true, .num_workers = 2, .seed = 7});
  CHECK(losses({loader, data().test}) == losses(data()));
}

TEST_CASE("fit_epoch gives the same results as a hand-written loop") {
  auto model = net();
  auto twin = net();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  torch::optim::SGD twin_optimizer(twin->parameters(), 0.1);
  const Batches batches(points(50), {.batch_size = 16});

  torch::manual_seed(5);  // dropout
  const auto metrics = Trainer({.num_gpus = 0}).fit_epoch(model, optimizer, {batches});

  torch::manual_seed(5);
  double loss_sum = 0;
  for (const auto& [x, y] : batches) {
    twin_optimizer.zero_grad();
    const auto loss = torch::nn::functional::cross_entropy(twin->forward(x), y);
    loss.backward();
    twin_optimizer.step();
    loss_sum += loss.item<double>() * static_cast<double>(x.size(0));
  }
  CHECK(metrics.loss == Catch::Approx(loss_sum / 50).epsilon(1e-6));
  for (size_t i = 0; i < model->parameters().size(); ++i) {
    CHECK(model->parameters()[i].equal(twin->parameters()[i]));
  }
}

namespace {

// A model that records its training and test rows.
struct Reading : Plain {
  using Order = std::vector<int64_t>;
  torch::Tensor training_step(const sconce::data::Dataset& batch) { return read(batch, trained); }
  torch::Tensor validation_step(const sconce::data::Dataset& batch) { return read(batch, tested); }
  torch::Tensor read(const sconce::data::Dataset& batch, Order& rows) {
    const auto* row = batch.target.const_data_ptr<int64_t>();
    rows.insert(rows.end(), row, row + batch.target.numel());
    return forward(batch.data).square().mean();
  }
  Order trained, tested;
};

// Returns ten rows whose targets are the row numbers.
const sconce::data::Dataset& numbered_rows() {
  static const sconce::data::Dataset rows = {torch::ones({10, 2}), torch::arange(10)};
  return rows;
}

Batches shuffled_rows() {
  return Batches(numbered_rows(), {.batch_size = 4, .shuffle = true, .seed = 3});
}

// Returns the concatenated row orders of the given epochs of shuffled_rows(), computed with the
// same seeds as in Python.
Reading::Order rows_of(std::initializer_list<uint64_t> epochs) {
  Reading::Order rows;
  for (const uint64_t epoch : epochs) {
    const auto generator = at::make_generator<at::CPUGeneratorImpl>(3 + epoch);
    const auto order = torch::randperm(10, generator, torch::kLong);
    const auto* row = order.const_data_ptr<int64_t>();
    rows.insert(rows.end(), row, row + 10);
  }
  return rows;
}

const sconce::TrainerOptions of_three_epochs = {
    .max_epochs = 3, .num_gpus = 0, .metrics = sconce::Metrics{}};

}  // namespace

TEST_CASE("each fit_epoch or evaluate call in a loop uses the next epoch's order") {
  Reading model;
  torch::optim::SGD optimizer(model.parameters(), 0.01);
  Trainer trainer(of_three_epochs);
  const Batches batches = shuffled_rows();
  trainer.fit_epoch(model, optimizer, batches);
  trainer.fit_epoch(model, optimizer, batches);
  const sconce::AnyBatches loader = batches;
  trainer.fit_epoch(model, optimizer, loader);
  CHECK(model.trained == rows_of({0, 1, 2}));
  trainer.evaluate(model, loader);
  trainer.evaluate(model, batches);
  CHECK(model.tested == rows_of({3, 4}));
  CHECK(batches.begin().epoch() == 5);
}

TEST_CASE("each fit_epoch call in a loop reshuffles the items of a DataLoader") {
  struct Rows {
    int64_t size() const { return 10; }
    sconce::data::Dataset get(int64_t i) const { return {torch::ones({2}), torch::tensor(i)}; }
  };
  Reading model;
  torch::optim::SGD optimizer(model.parameters(), 0.01);
  Trainer trainer(of_three_epochs);
  sconce::data::DataLoader loader(
      Rows(), {.batch_size = 4, .shuffle = true, .num_workers = GENERATE(0, 2), .seed = 3});
  for (int epoch = 0; epoch < 2; ++epoch) trainer.fit_epoch(model, optimizer, loader);
  loader.set_epoch(7);
  for (int epoch = 7; epoch < 9; ++epoch) trainer.fit_epoch(model, optimizer, loader);
  CHECK(model.trained == rows_of({0, 1, 7, 8}));
}

TEST_CASE(
    "a fit counts its epochs independently of other loops, tests in a fixed order, and leaves a "
    "loop's epoch count unchanged") {
  Reading model;
  torch::optim::SGD optimizer(model.parameters(), 0.01);
  Trainer trainer(of_three_epochs);
  Batches batches = shuffled_rows(), tests = shuffled_rows();
  CHECK(batches.begin().epoch() == 0);
  tests.set_epoch(5);
  trainer.fit(model, optimizer, {.train = batches, .test = tests});
  CHECK(model.trained == rows_of({0, 1, 2}));
  CHECK(model.tested == rows_of({0, 0, 0}));
  CHECK(batches.begin().epoch() == 1);
  CHECK(tests.begin().epoch() == 5);
}

TEST_CASE("nested and concurrent fits over the same batches do not affect each other's row order") {
  const sconce::FitData data = {.train = shuffled_rows()};
  struct Within : sconce::TrainerCallback {
    explicit Within(const sconce::FitData& of) : data(of) {}
    void on_after_optimizer_step(sconce::Fit& fit) override {
      if (fit.batch != 1) return;
      torch::optim::SGD optimizer(model.parameters(), 0.01);
      Trainer(of_three_epochs).fit(model, optimizer, data);
    }
    const sconce::FitData& data;
    Reading model;
  } within(data);
  const auto fit = [](Reading& model, const sconce::FitData& of) {
    torch::optim::SGD optimizer(model.parameters(), 0.01);
    Trainer(of_three_epochs).fit(model, optimizer, of);
  };
  Reading outer;
  auto with = data;
  with.callbacks = {&within};
  fit(outer, with);
  CHECK(outer.trained == rows_of({0, 1, 2}));
  CHECK(within.model.trained == rows_of({0, 1, 2, 0, 1, 2, 0, 1, 2}));

  Reading one, other;
  std::thread thread([&] { fit(other, data); });
  fit(one, data);
  thread.join();
  CHECK(one.trained == rows_of({0, 1, 2}));
  CHECK(other.trained == rows_of({0, 1, 2}));
}

TEST_CASE("a fit resumed mid-epoch or after an epoch keeps its row order") {
  const int steps = GENERATE(2, 3, 5, 6);  // with three steps per epoch
  const sconce::test::TempDir folder;
  const Batches batches = shuffled_rows();
  Reading::Order trained;
  for (const bool resumes : {false, true}) {
    if (resumes) (void)batches.begin();  // a loop in between does not affect the fit
    Reading model;
    sconce::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.01));
    sconce::Checkpoint checkpoint(folder.path() / "run", {.resume = resumes});
    sconce::ModelCheckpoint saving(checkpoint);
    int left = steps;
    sconce::test::StopWhen stopping([&] { return !resumes && --left == 0; });
    const auto result =
        Trainer(of_three_epochs)
            .fit(model, optimizer, {.train = batches, .callbacks = {&saving, &stopping}});
    CHECK(result.stopped == !resumes);
    trained.insert(trained.end(), model.trained.begin(), model.trained.end());
  }
  CHECK(trained == rows_of({0, 1, 2}));
}

TEST_CASE("a custom loop resumed mid-epoch keeps its row order") {
  const Batches batches = shuffled_rows();
  Reading::Order rows;
  const auto read = [&](int64_t from, int64_t to, int64_t epoch) {
    auto place = batches.begin(from, epoch);
    for (int64_t batch = from; batch < to; ++batch, ++place) {
      const auto target = (*place).target;
      const auto* row = target.const_data_ptr<int64_t>();
      rows.insert(rows.end(), row, row + target.numel());
    }
  };
  read(0, 3, 0);
  read(0, 1, 1);
  read(1, 3, 1);  // like another process
  read(0, 3, 2);
  CHECK(rows == rows_of({0, 1, 2}));
}

TEST_CASE("with a DistributedSampler, fit does not warn, but fit_epoch without set_epoch does") {
  const sconce::test::Warnings warnings;
  const auto group = sconce::distributed::ProcessGroup::init();
  Batches batches(
      numbered_rows(),
      {.batch_size = 4, .sampler = sconce::data::DistributedSampler(10, group, {.seed = 3})});
  Reading model;
  torch::optim::SGD optimizer(model.parameters(), 0.01);
  Trainer trainer(of_three_epochs);
  trainer.fit(model, optimizer, {.train = batches, .test = batches});
  trainer.fit_epoch(model, optimizer, batches);
  batches.set_epoch(1);
  trainer.fit_epoch(model, optimizer, batches);
  CHECK(warnings.messages().empty());
  trainer.fit_epoch(model, optimizer, batches);
  trainer.fit_epoch(model, optimizer, batches);
  CHECK(warnings.messages().size() == 1);
  CHECK(model.trained == rows_of({0, 1, 2, 0, 1, 1, 1}));
}

TEST_CASE(
    "accumulating batches gives the same step as a single larger batch, including at the end of an "
    "epoch") {
  auto model = net();
  auto twin = net();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  torch::optim::SGD twin_optimizer(twin->parameters(), 0.1);
  for (auto* net : {&model, &twin}) (*net)[2]->as<torch::nn::Dropout>()->options.p(0);
  const auto whole = points(40);
  // Each epoch has three steps, which accumulate 3, 3, and 2 batches of 5 rows.
  Trainer({.num_gpus = 0, .accumulate_grad_batches = 3})
      .fit_epoch(model, optimizer, {Batches(whole, {.batch_size = 5})});
  Trainer({.num_gpus = 0}).fit_epoch(twin, twin_optimizer, {Batches(whole, {.batch_size = 15})});
  for (size_t i = 0; i < model->parameters().size(); ++i) {
    CHECK(torch::allclose(model->parameters()[i], twin->parameters()[i], 1.3e-6, 1e-5));
  }
}

TEST_CASE("the forward pass runs in the Trainer's precision during training and testing") {
  struct Watching : Plain {
    torch::Tensor forward(const torch::Tensor& x) {
      auto out = Plain::forward(x);
      CHECK(out.scalar_type() == expected);
      return out;
    }
    torch::ScalarType expected = torch::kFloat;
  };
  const int i = GENERATE(0, 1, 2);
  const auto precision = std::array{Precision::fp32, Precision::bf16, Precision::fp16}[i];
  Watching model;
  model.expected = std::array{torch::kFloat, torch::kBFloat16, torch::kHalf}[i];
  torch::optim::SGD optimizer(model.parameters(), 0.5);
  Trainer trainer({.max_epochs = 8, .num_gpus = 0, .precision = precision});
  CHECK(trainer.fit(model, optimizer, data()).epochs[7].at("train_acc") > 0.9);
  CHECK(model.linear->weight.scalar_type() == torch::kFloat);
  CHECK(trainer.scaler().is_enabled() == (precision == Precision::fp16));
  CHECK_FALSE(at::autocast::is_autocast_enabled(torch::kCPU));
}

TEST_CASE("a float16 epoch matches a hand-written loop with a GradScaler") {
  auto model = net();
  auto twin = net();
  const auto options = torch::optim::SGDOptions(0.1).momentum(0.9);
  sconce::optim::SGD optimizer(model->parameters(), options);
  sconce::optim::SGD twin_optimizer(twin->parameters(), options);
  const Batches batches(points(64), {.batch_size = 16});
  Trainer trainer({.num_gpus = 0, .gradient_clip_val = 0.5, .precision = Precision::fp16});
  sconce::amp::GradScaler scaler({.device = torch::kCPU,
                                  .init_scale = 1 << 30,  // too large: some steps are skipped
                                  .backoff_factor = 1.0 / 64,
                                  .growth_interval = 1});
  trainer.scaler().load_state_dict(scaler.state_dict());
  REQUIRE(trainer.scaler().is_enabled());
  REQUIRE(scaler.is_enabled());

  torch::manual_seed(5);
  trainer.fit_epoch(model, optimizer, {batches});

  torch::manual_seed(5);
  for (const auto& [x, y] : batches) {
    twin_optimizer.zero_grad();
    torch::Tensor loss;
    {
      const sconce::amp::AutocastGuard autocast(torch::kCPU, {.dtype = torch::kHalf});
      loss = torch::nn::functional::cross_entropy(twin->forward(x), y);
    }
    scaler.scale(loss).backward();
    scaler.unscale_(twin_optimizer);
    sconce::nn::clip_grad_norm_(twin->parameters(), 0.5);
    scaler.step(twin_optimizer);
    scaler.update();
  }
  CHECK(trainer.scaler().state_dict() == scaler.state_dict());
  CHECK(scaler.get_scale() < 1 << 30);
  for (size_t i = 0; i < model->parameters().size(); ++i) {
    CHECK(model->parameters()[i].equal(twin->parameters()[i]));
    CHECK_FALSE(model->parameters()[i].equal(net()->parameters()[i]));
  }
}

TEST_CASE(
    "WeightAveraging updates its averages after every step and tests with the averages instead of "
    "the model's weights") {
  auto model = net();
  torch::optim::SGD optimizer(model->parameters(), 0.5);
  sconce::optim::ExponentialMovingAverage ema(*model, {.decay = 1});  // the first step's values
  sconce::WeightAveraging averaging(ema);
  auto fit = data(96, 16);
  fit.callbacks = {&averaging};
  Trainer trainer({.max_epochs = 3, .num_gpus = 0});
  const auto result = trainer.fit(model, optimizer, fit);
  CHECK(ema.n_averaged() == 18);
  CHECK(result.epochs[0].at("test_acc") == result.epochs[2].at("test_acc"));
  CHECK(trainer.evaluate(model, *fit.test).at("acc") > 0.9);
  CHECK(result.epochs[2].at("test_acc") < trainer.evaluate(model, *fit.test).at("acc"));
}

TEST_CASE(
    "with scheduling, averaging, fp16, clipping, and accumulation enabled, an epoch still reads "
    "only its sums on the host") {
  auto model = net();
  sconce::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  sconce::optim::lr_scheduler::ExponentialLR scheduler(optimizer, 0.9);
  sconce::optim::ExponentialMovingAverage ema(*model);
  sconce::LRScheduling scheduling(scheduler, SchedulerInterval::step);
  sconce::WeightAveraging averaging(ema);
  auto fit = data(96, GENERATE(4, 48));
  fit.callbacks = {&scheduling, &averaging};
  Trainer trainer({.num_gpus = 0,
                   .gradient_clip_val = 1,
                   .precision = Precision::fp16,
                   .accumulate_grad_batches = 2});
  REQUIRE(trainer.scaler().is_enabled());
  const sconce::test::HostReads reads;
  trainer.fit(model, optimizer, fit);
  CHECK(reads.count() == 0);  // on the CPU the sums are read in place
}

TEST_CASE("the number of host reads does not grow with the number of steps") {
  const auto reads_of = [](int64_t batch_size) {
    auto model = net();
    torch::optim::SGD optimizer(model->parameters(), 0.1);
    const sconce::test::HostReads reads;
    Trainer({.num_gpus = 0, .gradient_clip_val = 1}).fit(model, optimizer, data(96, batch_size));
    return reads.count();
  };
  CHECK(reads_of(48) == reads_of(4));
}

TEST_CASE("gradient_clip_val limits the size of the parameter update") {
  auto model = std::make_shared<Plain>();
  const auto before = model->linear->weight.detach().clone();
  torch::optim::SGD optimizer(model->parameters(), 1.0);
  const Batches one(points(16), {.batch_size = 16});
  Trainer({.num_gpus = 0, .gradient_clip_val = 1e-3}).fit_epoch(model, optimizer, {one});
  const double step = (model->linear->weight.detach() - before).norm().item<double>();
  CHECK(step > 0);
  CHECK(step <= 1.001e-3);
}

TEST_CASE("gradient clipping applies to exactly the parameters that the optimizer updates") {
  const auto precision = GENERATE(Precision::fp32, Precision::fp16);
  const bool is_frozen = GENERATE(false, true);  // or trained, but without an optimizer
  auto model = net_without_dropout(), twin = net_without_dropout();
  for (auto& parameter : model[0]->parameters()) {
    parameter.set_requires_grad(!is_frozen);
    parameter.mutable_grad() = torch::full_like(parameter, 1e30);  // left over from an earlier fit
  }
  const torch::optim::SGDOptions options(0.1);
  sconce::optim::SGD optimizer(model[2]->parameters(), options);
  sconce::optim::SGD twin_optimizer(twin[2]->parameters(), options);
  const Batches batches(points(64), {.batch_size = 16});
  Trainer trainer({.num_gpus = 0, .gradient_clip_val = 0.5, .precision = precision});
  sconce::amp::GradScaler scaler({.device = torch::kCPU, .enabled = precision == Precision::fp16});
  trainer.fit_epoch(model, optimizer, {batches});
  for (const auto& [x, y] : batches) {
    twin->zero_grad();
    torch::Tensor loss;
    {
      const sconce::amp::AutocastGuard autocast(
          torch::kCPU, {.dtype = torch::kHalf, .enabled = precision == Precision::fp16});
      loss = torch::nn::functional::cross_entropy(twin->forward(x), y);
    }
    scaler.scale(loss).backward();
    scaler.unscale_(twin_optimizer);
    sconce::nn::clip_grad_norm_(twin[2]->parameters(), 0.5);
    scaler.step(twin_optimizer);
    scaler.update();
  }
  CHECK(model[2]->parameters()[0].equal(twin[2]->parameters()[0]));
  CHECK_FALSE(model[2]->parameters()[0].equal(net_without_dropout()[2]->parameters()[0]));
}

TEST_CASE("gradient clipping applies to the gradients of all parameter groups together") {
  auto model = net_without_dropout();
  torch::optim::SGD optimizer({torch::optim::OptimizerParamGroup(model[0]->parameters()),
                               torch::optim::OptimizerParamGroup(model[2]->parameters())},
                              torch::optim::SGDOptions(1.0));
  const Batches one(points(16), {.batch_size = 16});
  Trainer({.num_gpus = 0, .gradient_clip_val = 1e-3}).fit_epoch(model, optimizer, {one});
  double squares = 0;
  for (const auto& parameter : model->parameters()) {
    squares += parameter.grad().square().sum().item<double>();
  }
  CHECK(std::sqrt(squares) == Catch::Approx(1e-3).epsilon(1e-4));
}

TEST_CASE("modules, module holders, and shared pointers are accepted as models") {
  Plain module;
  auto pointer = std::make_shared<Plain>();
  auto holder = net();
  const auto fit = [](auto& model, const torch::nn::Module& with_parameters) {
    torch::optim::SGD optimizer(with_parameters.parameters(), 0.1);
    CHECK_NOTHROW(Trainer({.num_gpus = 0}).fit(model, optimizer, data()));
  };
  fit(module, module);
  fit(pointer, *pointer);
  fit(holder, *holder);
}

// Returns the logits of two classes for each element of the data.
struct SignOfEach : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& x) { return torch::stack({-x, x}, 1) * scale; }
  torch::Tensor scale = register_parameter("scale", torch::ones({1}));
};

TEST_CASE("with per-pixel logits, accuracy is the fraction of correctly classified pixels") {
  SignOfEach model;
  torch::manual_seed(1);
  const auto x = torch::randn({10, 4, 5});
  auto y = x.gt(0).to(torch::kLong);  // (10, 4, 5)
  y.select(1, 0).mul_(-1).add_(1);    // a quarter of the targets is wrong
  const Batches batches({x, y}, {.batch_size = 4});
  CHECK(Trainer({.num_gpus = 0}).evaluate(model, batches).at("acc") == Catch::Approx(0.75));
  torch::optim::SGD optimizer(model.parameters(), 0.0);
  const auto metrics = Trainer({.num_gpus = 0}).fit_epoch(model, optimizer, {batches});
  CHECK(metrics.at("train_acc") == Catch::Approx(0.75));
  CHECK(metrics.examples == 10);
}

TEST_CASE("the Trainer rejects targets that do not contain exactly one class per row of logits") {
  Plain model;
  torch::optim::SGD optimizer(model.parameters(), 0.1);
  const auto x = torch::randn({2, 2});
  const Batches probabilities({x, torch::full({2, 2}, 0.5)}, {.batch_size = 2});
  CHECK_THROWS_WITH(
      Trainer({.num_gpus = 0}).fit_epoch(model, optimizer, {probabilities}),
      ContainsSubstring("sconce::metrics::Accuracy: expected a target of integer classes"));
  const Batches column({x, torch::zeros({2, 1}, torch::kLong)}, {.batch_size = 2});
  CHECK_THROWS_AS(Trainer({.num_gpus = 0}).evaluate(model, column), c10::Error);
}

TEST_CASE("a profile contains nested ranges for each step") {
  const Ranges ranges;
  Plain model;
  torch::optim::SGD sgd(model.parameters(), 0.1);
  Trainer({.num_gpus = 0, .accumulate_grad_batches = 2})
      .fit(model, sgd,
           {.train = Batches(points(6), {.batch_size = 2}), .test = Batches(points(2), {})});
  CHECK(ranges.text() ==
        "step(data() forward() backward() data() forward() backward() optimizer()) "
        "step(data() forward() backward() optimizer()) test(data() data())");
}

TEST_CASE("callbacks receive the last batch's loss on the device, detached from the graph") {
  struct Losses : sconce::TrainerCallback {
    void on_fit_start(sconce::Fit& fit) override { CHECK_FALSE(fit.loss.defined()); }
    void on_after_optimizer_step(sconce::Fit& fit) override {
      CHECK_FALSE(fit.loss.requires_grad());
      all.push_back(fit.loss);
    }
    std::vector<torch::Tensor> all;
  } losses;
  Plain model;
  torch::optim::SGD sgd(model.parameters(), 0.0);
  const auto data = points(4);
  const auto fit =
      Trainer({.num_gpus = 0})
          .fit(model, sgd, {.train = Batches(data, {.batch_size = 2}), .callbacks = {&losses}});
  REQUIRE(losses.all.size() == 2);
  for (int64_t i = 0; i < 2; ++i) {
    const auto expected = torch::nn::functional::cross_entropy(
        model.forward(data.data.narrow(0, 2 * i, 2)), data.target.narrow(0, 2 * i, 2));
    CHECK(torch::equal(losses.all[static_cast<size_t>(i)], expected));
  }
}

TEST_CASE(
    "callbacks run in the given order, except that end-of-test and end-of-fit functions run in "
    "reverse order") {
  std::string log;
  Recorder a("a."), b("b.");
  a.log = b.log = &log;
  a.saves_each_step = true;
  Fitting<> f({&a, &b}, data(32, 16));
  f.fit();
  CHECK(log ==
        "a.load b.load a.begin b.begin "
        "a.before b.before a.after b.after a.save "
        "a.before b.before a.after b.after "
        "a.test_begin b.test_begin b.test_end a.test_end a.epoch b.epoch a.save b.save "
        "b.end a.end ");
}

TEST_CASE(
    "if a callback throws, callbacks that have already started are ended, and the exception is "
    "propagated") {
  Recorder first, second;
  second.throws_after = 16;
  Fitting<> f({&first, &second});
  second.throws_after = 1;
  CHECK_THROWS_WITH(f.fit(), "thrown by a callback");
  CHECK(first.verbs == "load begin before after end ");
  CHECK(second.verbs == "load begin before after end ");
}

TEST_CASE("if a test throws, the model's weights are restored in place of the averages") {
  auto model = net();
  sconce::optim::ExponentialMovingAverage ema(*model, {.decay = 1});
  sconce::WeightAveraging averaging(ema);
  torch::optim::SGD optimizer(model->parameters(), 0.5);
  auto with = data();
  with.test = Batches({torch::ones({4, 3}), torch::zeros({4}, torch::kLong)});
  with.callbacks = {&averaging};
  CHECK_THROWS_AS(Trainer({.num_gpus = 0}).fit(model, optimizer, with), c10::Error);
  CHECK_FALSE(model->parameters()[0].equal(ema.state_dict()["module.0.weight"]));
}

TEST_CASE("a callback can stop a fit that has no checkpoint") {
  Recorder recorder;
  recorder.stops_after = 2;
  Fitting<> f({&recorder});
  const auto result = f.fit({.max_epochs = 3});
  CHECK(result.stopped);
  CHECK(result.epochs.empty());
  CHECK(recorder.verbs == "load begin before after before after save end ");
}

TEST_CASE("a callback cannot undo another callback's request to stop") {
  struct Later : sconce::TrainerCallback {
    void on_after_optimizer_step(sconce::Fit& fit) override { seen.push_back(fit.is_stopping()); }
    std::vector<bool> seen;
  } before, after;
  sconce::test::StopWhen stopping([&] { return before.seen.size() == 2; });
  Fitting<> f({&before, &stopping, &after});
  CHECK(f.fit().stopped);
  CHECK(before.seen == std::vector{false, false});
  CHECK(after.seen == std::vector{false, true});
}

TEST_CASE("callbacks whose states share a name or use a reserved name are rejected") {
  auto model = net();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  sconce::EarlyStopping one, two;
  auto with = data();
  with.callbacks = {&one, &two};
  CHECK_THROWS_WITH(
      Trainer({.num_gpus = 0}).fit(model, optimizer, with),
      ContainsSubstring(
          "unique names other than 'model', 'optimizer', and 'scaler', got two called "
          "'early_stopping'; rename one callback, for example with EarlyStoppingOptions::name"));
  struct Named : sconce::EarlyStopping {
    explicit Named(std::string given) : own_name(std::move(given)) {}
    std::string name() const override { return own_name; }
    std::string own_name;
  } as_part("optimizer"), as_key("epoch");
  with.callbacks = {&as_part};
  CHECK_THROWS_WITH(Trainer({.num_gpus = 0}).fit(model, optimizer, with),
                    ContainsSubstring("got two called 'optimizer'"));

  const sconce::test::TempDir folder;
  sconce::Checkpoint checkpoint(folder.path());
  sconce::ModelCheckpoint saving(checkpoint);
  with.callbacks = {&as_key, &saving};
  sconce::optim::SGD of_ours(model->parameters(), 0.1);
  const auto before = model->parameters()[0].detach().clone();
  CHECK_THROWS_WITH(Trainer({.num_gpus = 0}).fit(model, of_ours, with),
                    ContainsSubstring("not reserved (such as 'epoch')"));
  CHECK(model->parameters()[0].equal(before));
}

TEST_CASE("a custom training_step is used in each precision, on every rank, and in every replica") {
  const auto precision = GENERATE(Precision::fp32, Precision::bf16, Precision::fp16);
  const auto fit = [&](auto model, auto wrap) {
    sconce::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.5));
    auto wrapped = wrap(model);
    const auto result = Trainer({.max_epochs = 3, .num_gpus = 0, .precision = precision})
                            .fit(wrapped, optimizer, data());
    return std::pair(result.epochs.back(), model->parameters()[0].detach().clone());
  };
  const auto itself = [](auto model) { return model; };
  const auto [expected, expected_weight] = fit(made<Plain>(), itself);
  const auto [own, weight] = fit(made<OwnStep>(), itself);
  CHECK(own.loss == expected.loss);
  CHECK(own.at("test_acc") == expected.at("test_acc"));
  CHECK(own.at("test_loss") == expected.at("test_loss"));
  CHECK(weight.equal(expected_weight));
  const auto of_rank = [](auto model) {
    return sconce::nn::DistributedDataParallel(model, one_with_gloo());
  };
  CHECK(fit(made<OwnStep>(), of_rank).second.equal(expected_weight));
  if (precision != Precision::fp32) return;  // chunks round differently than the whole batch
  const auto replicas = [](auto model) {
    return sconce::nn::DataParallel(model, {.device_ids = {torch::kCPU, torch::kCPU}});
  };
  const auto [parallel, parallel_weight] = fit(made<OwnStep>(), replicas);
  CHECK(parallel.loss == Catch::Approx(expected.loss).epsilon(1e-6));
  CHECK(torch::allclose(parallel_weight, expected_weight, 1.3e-6, 1e-5));
}

TEST_CASE("replica losses are weighted by the number of examples that each replica receives") {
  auto model = made<OwnStep>();
  auto twin = made<OwnStep>();
  torch::optim::SGD optimizer(model->parameters(), 0.5), twin_optimizer(twin->parameters(), 0.5);
  sconce::nn::DataParallel replicas(model, {.device_ids = {torch::kCPU, torch::kCPU}});
  const Batches five(points(5), {.batch_size = 5});  // one replica gets three
  const double loss = Trainer({.num_gpus = 0}).fit_epoch(replicas, optimizer, five).loss;
  CHECK(loss == Catch::Approx(Trainer({.num_gpus = 0}).fit_epoch(twin, twin_optimizer, five).loss)
                    .epsilon(1e-6));
  CHECK(torch::allclose(model->linear->weight, twin->linear->weight, 1.3e-6, 1e-5));
}

TEST_CASE("evaluate uses validation_step if the model defines it and test_step otherwise") {
  struct Tested : OwnStep {
    torch::Tensor training_step(const torch::Tensor& x) { return forward(x).square().mean(); }
    torch::Tensor test_step(const torch::Tensor&) { return torch::full({}, 5.0); }
  };
  struct Validated : Tested {
    torch::Tensor validation_step(const torch::Tensor&) { return torch::full({}, 7.0); }
  };
  Tested tested;
  Validated model;
  torch::optim::SGD optimizer(model.parameters(), 0.1);
  const std::vector<torch::Tensor> x = {torch::randn({4, 2}), torch::randn({2, 2})};
  struct Source {
    int64_t size() const { return 2; }
    auto begin() const { return batches.begin(); }
    std::vector<torch::Tensor> batches;
  };
  Trainer trainer({.num_gpus = 0});
  const auto result = trainer.fit(model, optimizer, {Source{x}, Source{x}});
  CHECK(result.epochs[0].at("test_loss") == 7);
  CHECK(trainer.evaluate(tested, Source{x}).at("loss") == 5);
  CHECK(result.epochs[0].examples == 6);
}

namespace {

// A source that returns batches of an arbitrary type, one batch at a time.
template <class T>
struct Each {
  int64_t size() const { return std::ssize(batches); }
  auto begin() const { return batches.begin(); }
  std::vector<T> batches;
};

}  // namespace

namespace {

// A batch with a non-tensor member that the model reads.
struct CountedRows {
  torch::Tensor data, target;
  double rows;
};

struct DividesByRows : Plain {
  torch::Tensor training_step(const CountedRows& batch) {
    return (forward(batch.data).select(1, 0) - batch.target).square().sum() / batch.rows;
  }
};

}  // namespace

template <>
struct sconce::nn::TensorTree<CountedRows>
    : sconce::nn::TensorMembers<&CountedRows::data, &CountedRows::target> {};

TEST_CASE(
    "with graph enabled, a batch keeps its non-tensor fields, even when the last batch is "
    "smaller") {
  const auto all = points(44);
  std::vector<CountedRows> batches;
  for (int64_t first = 0; first < 44; first += 8) {
    const int64_t rows = std::min<int64_t>(8, 44 - first);
    batches.push_back({all.data.narrow(0, first, rows), all.target.narrow(0, first, rows),
                       static_cast<double>(rows)});
  }
  const auto fit = [&](bool graph) {
    auto model = made<DividesByRows>();
    sconce::optim::SGD optimizer(model->parameters(), 0.1);
    Trainer trainer({.max_epochs = 3, .num_gpus = 0, .graph = graph});
    const auto epochs = trainer.fit(model, optimizer, {Each<CountedRows>{batches}}).epochs;
    return std::tuple(epochs[0].loss, epochs[2].loss, model->linear->weight.sum().item<double>());
  };
  CHECK(fit(true) == fit(false));
}

TEST_CASE(
    "the last of several tensors in a batch is the target, and a single tensor is both input and "
    "target") {
  struct Sum : torch::nn::Module {
    torch::Tensor forward(const torch::Tensor& a, const torch::Tensor& b) { return (a + b) * w; }
    torch::Tensor w = register_parameter("w", torch::ones({1}));
  } sum;
  const auto mse = [](const torch::Tensor& output, const torch::Tensor& target) {
    return torch::mse_loss(output, target);
  };
  torch::optim::SGD of_sum(sum.parameters(), 0.1);
  const auto a = torch::randn({6, 1}), b = torch::randn({6, 1});
  using Three = std::tuple<torch::Tensor, torch::Tensor, torch::Tensor>;
  Trainer trainer({.max_epochs = 200, .num_gpus = 0, .loss = mse});
  trainer.fit(sum, of_sum, {Each<Three>{{{a, b, 3 * (a + b)}}}});
  CHECK(sum.w.item<double>() == Catch::Approx(3).epsilon(1e-3));

  torch::nn::Linear same(2, 2);
  torch::optim::SGD of_same(same->parameters(), 0.5);
  const auto x = torch::randn({16, 2});
  const auto result = trainer.fit(same, of_same, {Each<torch::Tensor>{{x}}});
  CHECK(result.epochs.back().loss < 0.01 * result.epochs.front().loss);
  CHECK_FALSE(result.epochs[0].contains("train_acc"));
}

TEST_CASE("a model with a method called module is trained like any other model") {
  struct Wrapper : Plain {
    torch::nn::Linear module() const { return linear; }
  } model;
  torch::optim::SGD optimizer(model.parameters(), 0.1);
  const auto before = model.linear->weight.detach().clone();
  Trainer({.num_gpus = 0}).fit_epoch(model, optimizer, Batches(points(8), {.batch_size = 4}));
  CHECK_FALSE(model.linear->weight.equal(before));
}

TEST_CASE(
    "batches that the model does not accept are rejected, and the error reports the expected and "
    "actual types or counts") {
  auto model = made<OwnStep>();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  CHECK_THROWS_WITH(
      Trainer({.num_gpus = 0})
          .fit_epoch(model, optimizer, Each<torch::Tensor>{{torch::ones({2, 2})}}),
      ContainsSubstring("expected batches of type sconce::data::Dataset, got at::Tensor"));
  Plain plain;
  const std::vector<torch::Tensor> three(3, torch::ones({2, 2}));
  CHECK_THROWS_WITH(
      Trainer({.num_gpus = 0})
          .fit_epoch(plain, optimizer, Each<std::vector<torch::Tensor>>{{three}}),
      ContainsSubstring("expected a model whose forward takes 2 tensors and returns one"));
  const std::map<std::string, torch::Tensor> named = {{"x", torch::ones({2, 2})}};
  CHECK_THROWS_WITH(
      Trainer({.num_gpus = 0})
          .fit_epoch(plain, optimizer, Each<std::map<std::string, torch::Tensor>>{{named}}),
      ContainsSubstring("expected a model with training_step"));
}

TEST_CASE(
    "a training_step that returns only a loss is accepted if the fit has no metrics and rejected "
    "otherwise") {
  struct LossAlone : OwnStep {
    torch::Tensor training_step(const sconce::data::Dataset& batch) {
      return OwnStep::training_step(batch).loss;
    }
  } model;
  torch::optim::SGD optimizer(model.parameters(), 0.1);
  const auto accuracy = std::make_shared<sconce::metrics::Accuracy>();
  CHECK_THROWS_WITH(Trainer({.num_gpus = 0, .metrics = sconce::Metrics{{"acc", accuracy}}})
                        .fit(model, optimizer, data()),
                    StartsWith("sconce::Trainer::fit: expected the model's training_step to return "
                               "a StepOutput with the metric inputs, or a fit without metrics"));
  const auto epoch = Trainer({.num_gpus = 0}).fit(model, optimizer, data()).epochs[0];
  CHECK(epoch.at("test_loss") > 0);
  CHECK_FALSE(epoch.contains("train_acc"));
  CHECK(Trainer({.num_gpus = 0, .metrics = sconce::Metrics{}})
            .fit(model, optimizer, data())
            .epochs[0]
            .loss > 0);
}

TEST_CASE(
    "with metrics, a validation_step that returns only a loss is rejected before any work is "
    "done") {
  struct Validated : OwnStep {
    torch::Tensor validation_step(const sconce::data::Dataset& batch) {
      return OwnStep::training_step(batch).loss;
    }
  } model;
  torch::optim::SGD optimizer(model.parameters(), 0.1);
  const auto before = model.linear->weight.detach().clone();
  const auto accuracy = std::make_shared<sconce::metrics::Accuracy>();
  Trainer trainer({.num_gpus = 0, .metrics = sconce::Metrics{{"acc", accuracy}}});
  const std::string expected = "expected the model's validation_step to return a StepOutput";
  CHECK_THROWS_WITH(trainer.fit(model, optimizer, data()),
                    StartsWith("sconce::Trainer::fit: " + expected));
  CHECK_THROWS_WITH(trainer.evaluate(model, data().test.value()),
                    StartsWith("sconce::Trainer::evaluate: " + expected));
  CHECK(model.linear->weight.equal(before));
  const auto without_test = trainer.fit(model, optimizer, {.train = data().train});
  CHECK(without_test.epochs[0].contains("train_acc"));
}

TEST_CASE("custom metrics are computed during training and testing") {
  struct Ones : sconce::metrics::Metric {  // the fraction of targets that are 1
    Ones() : Metric(2) {}
    void update(const torch::Tensor&, const torch::Tensor& target) override {
      add(torch::stack({target.sum(), torch::full({}, target.numel())}));
    }
    torch::Tensor compute(const torch::Tensor& sums) const override { return sums[0] / sums[1]; }
    using Metric::compute;
  };
  const auto ones = std::make_shared<Ones>();
  auto model = net();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  const auto fit = data();
  Trainer trainer({.num_gpus = 0, .metrics = sconce::Metrics{{"ones", ones}}});
  const auto epoch = trainer.fit(model, optimizer, fit).epochs[0];
  const auto share = [](const sconce::data::Dataset& of) {
    return of.target.to(torch::kDouble).mean().item<double>();
  };
  CHECK(epoch.at("train_ones") == Catch::Approx(share(points(96))));
  CHECK(epoch.at("test_ones") == Catch::Approx(share(points(40, /*seed=*/2))));
  CHECK(ones->compute().item<double>() == epoch.at("test_ones"));
}

TEST_CASE("evaluate runs in evaluation mode without recording gradients") {
  struct Watching : Plain {
    torch::Tensor forward(const torch::Tensor& x) {
      CHECK_FALSE(is_training());
      CHECK_FALSE(torch::GradMode::is_enabled());
      return Plain::forward(x);
    }
  } model;
  Trainer({.num_gpus = 0}).evaluate(model, Batches(points(16), {.batch_size = 4}));
  CHECK(model.is_training());
}

TEST_CASE("evaluate restores the mode of every module, even if the model throws") {
  auto model = net();
  model[2]->eval();  // a layer that the user has frozen
  const Batches batches(points(64), {.batch_size = 10});
  Trainer({.num_gpus = 0}).evaluate(model, batches);
  CHECK(model->is_training());
  CHECK_FALSE(model[2]->is_training());
  const Batches too_wide({torch::ones({4, 3}), torch::zeros({4}, torch::kLong)});
  CHECK_THROWS_AS(Trainer({.num_gpus = 0}).evaluate(model, too_wide), c10::Error);
  CHECK(model->is_training());
}

TEST_CASE("without a GPU, num_gpus = 1 warns and trains on the CPU") {
  if (sconce::num_gpus() > 0) SKIP("this machine has a GPU");
  struct Recorder : c10::WarningHandler {
    void process(const c10::Warning& warning) override { text += warning.msg(); }
    std::string text;
  } recorder;
  c10::WarningUtils::WarningHandlerGuard guard(&recorder);
  CHECK(Trainer({.num_gpus = 1}).device() == sconce::cpu());
  CHECK_THAT(recorder.text, ContainsSubstring("1 GPU requested, none found: using the CPU"));
}

TEST_CASE("fast_dev_run runs a single batch for one epoch and saves nothing") {
  Recorder recorder;
  Fitting<> f({&recorder});
  const auto result = f.fit({.max_epochs = 9, .fast_dev_run = true});
  REQUIRE(result.epochs.size() == 1);
  CHECK(result.epochs[0].examples == 16);
  CHECK(recorder.verbs == "begin before after test_begin test_end epoch end ");
}

TEST_CASE("the Trainer rejects data that contains no batches") {
  Fitting<> f;
  Trainer trainer({.num_gpus = 0});
  const Batches none(points(0), {}), some(points(4));
  sconce::test::check_refusals(
      {{[&] { trainer.fit(f.model, f.optimizer, {none}); },
        "sconce::Trainer::fit: expected training data, got no batch"},
       {[&] { trainer.fit(f.model, f.optimizer, {some, none}); },
        "sconce::Trainer::fit: expected test data, got no batch"},
       {[&] { trainer.fit_epoch(f.model, f.optimizer, none); },
        "sconce::Trainer::fit_epoch: expected training data, got no batch"},
       {[&] { trainer.evaluate(f.model, none); },
        "sconce::Trainer::evaluate: expected data, got no batch"}});
}

namespace {

// A callback that calls the given function in each of its methods.
struct InEach : sconce::TrainerCallback {
  explicit InEach(std::function<void()> f) : run(std::move(f)) {}
  void load(sconce::Fit&) override { run(); }
  void on_fit_start(sconce::Fit&) override { run(); }
  void on_fit_end(sconce::Fit&) override { run(); }
  void on_before_optimizer_step(sconce::Fit&) override { run(); }
  void on_after_optimizer_step(sconce::Fit&) override { run(); }
  void on_epoch_end(sconce::Fit&) override { run(); }
  void on_test_start(sconce::Fit&) override { run(); }
  void on_test_end(sconce::Fit&) override { run(); }
  bool should_save(const sconce::Fit& fit) const override { return fit.batch % 2 == 0; }
  void save(sconce::Fit&) override { run(); }
  std::function<void()> run;
};

// Like a chart, reads a metric's sums at the end of each epoch, and appends the sums to a vector.
struct ReadSums : sconce::TrainerCallback {
  ReadSums(const sconce::metrics::Metric& of, std::vector<double>& into) : metric(of), all(into) {}
  void on_epoch_end(sconce::Fit&) override { append(metric.sums()); }
  void append(const torch::Tensor& tensor) {
    const auto values = tensor.detach().to(torch::kDouble).contiguous();
    all.insert(all.end(), values.data_ptr<double>(), values.data_ptr<double>() + values.numel());
  }
  const sconce::metrics::Metric& metric;
  std::vector<double>& all;
};

// Runs a fit with a callback whose methods all call `inner`. Returns the values from each epoch, a
// metric's sums at the end of each epoch and after the fit, and the parameters.
std::vector<double> numbers_of_fit(
    const std::function<void(Trainer& trainer, const sconce::Metrics& metrics)>& inner) {
  const auto matrix = std::make_shared<sconce::metrics::ConfusionMatrix>(
      sconce::metrics::ConfusionMatrixOptions{.num_classes = 2});
  const sconce::Metrics metrics = {{"acc", std::make_shared<sconce::metrics::Accuracy>()},
                                   {"matrix", matrix}};
  Trainer trainer({.max_epochs = 2, .num_gpus = 0, .metrics = metrics});
  std::vector<double> numbers;
  InEach running([&] { inner(trainer, metrics); });
  ReadSums reading(*matrix, numbers);
  auto model = net_without_dropout();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  auto with = data();
  with.callbacks = {&running, &reading};
  for (const auto& epoch : trainer.fit(model, optimizer, with).epochs) {
    numbers.insert(numbers.end(), {epoch.loss, epoch.at("train_acc"), epoch.at("test_loss"),
                                   epoch.at("test_acc"), static_cast<double>(epoch.examples)});
  }
  reading.append(matrix->sums());
  for (const auto& parameter : model->parameters()) reading.append(parameter.flatten());
  return numbers;
}

}  // namespace

TEST_CASE("evaluating or training inside a fit does not change the fit's results") {
  const auto expected = numbers_of_fit([](Trainer&, const sconce::Metrics&) {});
  Plain other;
  torch::optim::SGD optimizer(other.parameters(), 0.1);
  const Batches batches(points(10, /*seed=*/3), {.batch_size = 5});
  const Batches too_wide({torch::ones({4, 3}), torch::zeros({4}, torch::kLong)});
  CHECK(numbers_of_fit([&](Trainer& trainer, const sconce::Metrics&) {
          trainer.evaluate(other, batches);
        }) == expected);
  CHECK(numbers_of_fit([&](Trainer&, const sconce::Metrics& metrics) {
          Trainer({.num_gpus = 0, .metrics = metrics}).evaluate(other, batches);
        }) == expected);
  CHECK(numbers_of_fit([&](Trainer& trainer, const sconce::Metrics&) {
          std::async(std::launch::async, [&] { trainer.evaluate(other, batches); }).get();
        }) == expected);
  CHECK(numbers_of_fit([&](Trainer&, const sconce::Metrics& metrics) {
          Trainer({.num_gpus = 0, .metrics = metrics}).fit_epoch(other, optimizer, batches);
        }) == expected);
  CHECK(numbers_of_fit([&](Trainer& trainer, const sconce::Metrics&) {
          trainer.fit(other, optimizer, {batches, batches});
        }) == expected);
  CHECK(numbers_of_fit([&](Trainer& trainer, const sconce::Metrics&) {
          CHECK_THROWS_AS(trainer.evaluate(other, too_wide), c10::Error);
          CHECK_THROWS_AS(trainer.fit(other, optimizer, {batches, too_wide}), c10::Error);
        }) == expected);
}

TEST_CASE("nested evaluations inside a fit restore each fit's metric sums") {
  const auto accuracy = std::make_shared<sconce::metrics::Accuracy>();
  const sconce::TrainerOptions options = {.num_gpus = 0,
                                          .metrics = sconce::Metrics{{"acc", accuracy}}};
  Trainer trainer(options);
  Plain other;
  const Batches batches(points(10, /*seed=*/3), {.batch_size = 5});
  torch::Tensor before, after;
  InEach evaluating([&] {
    before = accuracy->sums().clone();
    trainer.evaluate(other, batches);
    after = accuracy->sums();
    CHECK(after.equal(before));
  });
  InEach fitting([&] {
    torch::optim::SGD optimizer(other.parameters(), 0.1);
    Trainer(options).fit(other, optimizer, {.train = batches, .callbacks = {&evaluating}});
  });
  auto model = net_without_dropout(), twin = net_without_dropout();
  torch::optim::SGD optimizer(model->parameters(), 0.1), twin_optimizer(twin->parameters(), 0.1);
  auto with = data();
  const auto expected = Trainer({.num_gpus = 0}).fit(twin, twin_optimizer, with).epochs[0];
  with.callbacks = {&fitting};
  const auto epoch = trainer.fit(model, optimizer, with).epochs[0];
  CHECK(epoch.at("train_acc") == expected.at("train_acc"));
  CHECK(epoch.at("test_acc") == expected.at("test_acc"));
}

TEST_CASE("outside a fit, evaluate leaves its sums in the metrics, even after a failed fit") {
  const auto accuracy = std::make_shared<sconce::metrics::Accuracy>();
  const auto own = std::make_shared<sconce::metrics::Accuracy>();
  Trainer trainer({.num_gpus = 0, .metrics = sconce::Metrics{{"acc", accuracy}}});
  Trainer other({.num_gpus = 0, .metrics = sconce::Metrics{{"acc", own}}});
  auto model = net();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  const Batches ten(points(10), {.batch_size = 5});
  auto with = data();
  int64_t calls = 0;
  InEach evaluating([&] {  // with metrics other than the fit's
    const double value = other.evaluate(model, ten).at("acc");
    CHECK(own->compute().item<double>() == value);
    if (++calls == 4) throw std::runtime_error("thrown by a callback");
  });
  with.callbacks = {&evaluating};
  CHECK_THROWS_WITH(trainer.fit(model, optimizer, with), "thrown by a callback");
  const double value = trainer.evaluate(model, ten).at("acc");
  CHECK(accuracy->compute().item<double>() == value);
  CHECK(accuracy->sums().sum().item<double>() > 0);
}

TEST_CASE(
    "a metric registered under two names keeps its sums after a run, and a nested run restores the "
    "sums") {
  const auto accuracy = std::make_shared<sconce::metrics::Accuracy>();
  Trainer trainer({.num_gpus = 0, .metrics = sconce::Metrics{{"a", accuracy}, {"b", accuracy}}});
  auto model = net_without_dropout();
  const Batches ten(points(10), {.batch_size = 5});
  const double value = trainer.evaluate(model, ten).at("a");
  CHECK(accuracy->compute().item<double>() == value);
  const auto with = [&](bool evaluates) {
    auto twin = net_without_dropout();
    torch::optim::SGD twin_optimizer(twin->parameters(), 0.1);
    InEach evaluating([&] {
      if (evaluates) trainer.evaluate(model, ten);
    });
    auto fit_data = data();
    fit_data.callbacks = {&evaluating};
    return trainer.fit(twin, twin_optimizer, fit_data).epochs[0].at("train_b");
  };
  CHECK(with(true) == with(false));
}

TEST_CASE("a nested fit by the same Trainer leaves the loss scale unchanged") {
  const auto weights = [](bool is_nested) {
    Trainer trainer({.num_gpus = 0, .precision = Precision::fp16});
    Plain other;
    sconce::optim::SGD of_other(other.parameters(), 0.1);
    const Batches overflowing({torch::full({2, 2}, 1e30), torch::zeros({2}, torch::kLong)});
    InEach fitting([&] {
      if (is_nested) trainer.fit_epoch(other, of_other, overflowing);
    });
    auto model = net_without_dropout();
    sconce::optim::SGD optimizer(model->parameters(), 0.1);
    auto with = data();
    with.callbacks = {&fitting};
    trainer.fit(model, optimizer, with);
    CHECK(trainer.scaler().get_scale() == 65536);
    return model->parameters()[0].detach().clone();
  };
  CHECK(weights(true).equal(weights(false)));
}

TEST_CASE(
    "a fit scales its losses correctly after an earlier fit failed between unscaling and the "
    "step") {
  Trainer trainer({.num_gpus = 0, .precision = Precision::fp16});
  auto model = net_without_dropout();
  sconce::optim::SGD optimizer(model->parameters(), 0.1);
  struct Failing : sconce::TrainerCallback {
    void on_before_optimizer_step(sconce::Fit& fit) override {
      fit.scaler.unscale_(fit.optimizer);
      throw std::runtime_error("thrown by a callback");
    }
  } failing;
  auto with = data();
  with.callbacks = {&failing};
  CHECK_THROWS_WITH(trainer.fit(model, optimizer, with), "thrown by a callback");

  trainer.fit(model, optimizer, data());
  auto twin = net_without_dropout();
  sconce::optim::SGD of_twin(twin->parameters(), 0.1);
  Trainer({.num_gpus = 0, .precision = Precision::fp16}).fit(twin, of_twin, data());
  CHECK(model->parameters()[0].equal(twin->parameters()[0]));
}

TEST_CASE("evaluating inside a fit restores training modes, gradient mode, and autocast state") {
  struct Watching : Plain {
    torch::Tensor forward(const torch::Tensor& x) {
      CHECK(is_training() == torch::GradMode::is_enabled());
      CHECK(at::autocast::is_autocast_enabled(torch::kCPU));
      return Plain::forward(x);
    }
  } model;
  Trainer trainer({.num_gpus = 0, .precision = Precision::bf16});
  const Batches batches(points(10), {.batch_size = 5});
  InEach evaluating([&] {
    trainer.evaluate(model, batches);
    CHECK(model.is_training());
    CHECK(torch::GradMode::is_enabled());
    CHECK_FALSE(at::autocast::is_autocast_enabled(torch::kCPU));
  });
  torch::optim::SGD optimizer(model.parameters(), 0.1);
  auto with = data();
  with.callbacks = {&evaluating};
  CHECK(trainer.fit(model, optimizer, with).epochs.size() == 1);
}

TEST_CASE("setup runs before all other callback functions and can add value names") {
  struct Counting : Recorder {
    void setup(sconce::Fit& fit) override {
      CHECK(fit.epochs.empty());
      CHECK(fit.value_names ==
            std::vector<std::string>{"loss", "train_acc", "test_loss", "test_acc"});
      fit.value_names.emplace_back("epochs_left");
      fit.value_modes["epochs_left"] = sconce::optim::MetricMode::min;
      write("setup");
    }
    void on_epoch_end(sconce::Fit& fit) override {
      const auto left = fit.max_epochs - std::ssize(fit.epochs);
      fit.epochs.back().metrics.insert("epochs_left", static_cast<double>(left));
    }
  } counting;
  const bool fast_dev_run = GENERATE(false, true);
  sconce::EarlyStopping stopping("epochs_left");
  auto model = net();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  auto with = data(16, 16);
  with.callbacks = {&counting, &stopping};
  const auto result = Trainer({.max_epochs = 2, .num_gpus = 0, .fast_dev_run = fast_dev_run})
                          .fit(model, optimizer, with);
  CHECK(result.epochs.back().at("epochs_left") == 0);
  CHECK_THAT(counting.verbs, StartsWith(fast_dev_run ? "setup begin " : "setup load begin "));
  with.callbacks = {&stopping, &counting};
  CHECK_THROWS_WITH(Trainer({.num_gpus = 0}).fit(model, optimizer, with),
                    ContainsSubstring("got epochs_left"));
}

TEST_CASE("null callbacks and models are rejected before any work is done") {
  Recorder recorder;
  Fitting<> f({&recorder, nullptr});
  Trainer trainer({.num_gpus = 0});
  const Batches batches(points(4), {});
  std::shared_ptr<Plain> pointer;
  std::unique_ptr<Plain> owner;
  torch::nn::Linear holder = nullptr;
  const std::string null_model = "sconce::Trainer: expected a model, got null";
  sconce::test::check_refusals(
      {{[&] { f.fit(); }, "sconce::Trainer::fit: expected callbacks, got null at position 2 of 2"},
       {[&] { trainer.fit(pointer, f.optimizer, {batches}); }, null_model},
       {[&] { trainer.fit_epoch(pointer, f.optimizer, batches); }, null_model},
       {[&] { trainer.evaluate(pointer, batches); }, null_model},
       {[&] { trainer.fit(holder, f.optimizer, {batches}); }, null_model},
       {[&] { trainer.evaluate(owner, batches); }, null_model}});
  CHECK(recorder.verbs.empty());
}

TEST_CASE(
    "an undefined loss is rejected in both a fit and a test, and the error explains the cause") {
  auto model = net();
  sconce::optim::SGD optimizer(model->parameters(), 0.1);
  const auto none = [](const torch::Tensor&, const torch::Tensor&) { return torch::Tensor(); };
  const auto of_function = StartsWith(
      "sconce::Trainer: expected a loss from TrainerOptions::loss, "
      "got an undefined tensor");
  for (const auto precision : {Precision::fp32, Precision::bf16}) {
    for (const bool graph : {false, true}) {
      Trainer trainer({.num_gpus = 0, .precision = precision, .graph = graph, .loss = none});
      CHECK_THROWS_WITH(trainer.fit(model, optimizer, data()), of_function);
    }
  }
  CHECK_THROWS_WITH(Trainer({.num_gpus = 0, .loss = none}).evaluate(model, *data().test),
                    of_function);

  struct LossAlone : torch::nn::Cloneable<LossAlone> {
    LossAlone() { reset(); }
    void reset() override { linear = register_module("linear", torch::nn::Linear(2, 2)); }
    torch::Tensor training_step(const sconce::data::Dataset& batch) {
      return is_undefined ? torch::Tensor() : linear->forward(batch.data).mean();
    }
    torch::Tensor validation_step(const sconce::data::Dataset&) { return {}; }
    torch::nn::Linear linear = nullptr;
    bool is_undefined = true;
  };
  auto own = std::make_shared<LossAlone>();
  torch::optim::SGD of_own(own->parameters(), 0.1);
  Trainer trainer({.num_gpus = 0, .metrics = sconce::Metrics{}});
  const auto of_step = [](const std::string& name) {
    return ContainsSubstring("sconce::Trainer: expected a loss from the model's " + name +
                             ", got an undefined tensor");
  };
  CHECK_THROWS_WITH(trainer.fit(own, of_own, data()), of_step("training_step"));
  sconce::nn::DataParallel replicas(own, {.device_ids = {torch::kCPU, torch::kCPU}});
  CHECK_THROWS_WITH(trainer.fit(replicas, of_own, data()), of_step("training_step"));
  sconce::nn::DistributedDataParallel of_rank(own, one_with_gloo());
  CHECK_THROWS_WITH(trainer.fit(of_rank, of_own, data()), of_step("training_step"));
  own->is_undefined = false;
  CHECK_THROWS_WITH(trainer.fit(own, of_own, data()), of_step("validation_step"));
}

TEST_CASE(
    "graph rejects a batch that contains an undefined tensor, and the error reports the tensor's "
    "position") {
  Plain model;
  sconce::optim::SGD optimizer(model.parameters(), 0.1);
  const auto [x, y] = points(4);
  const Each<sconce::data::Dataset> batches{{{x, y}, {x, torch::Tensor()}}};
  CHECK_THROWS_WITH(
      Trainer({.num_gpus = 0, .graph = true}).fit(model, optimizer, {batches}),
      ContainsSubstring("expected a batch of tensors, got an undefined tensor at position 2 of 2"));
}

TEST_CASE("an optimizer whose parameters all lack gradients is rejected in each precision") {
  const auto precision = GENERATE(Precision::fp32, Precision::bf16, Precision::fp16);
  const auto [graph, accumulate] =
      GENERATE(std::pair(false, 1), std::pair(false, 2), std::pair(true, 1));
  const sconce::TrainerOptions options = {.num_gpus = 0,
                                          .gradient_clip_val = GENERATE(0.0, 1.0),
                                          .precision = precision,
                                          .accumulate_grad_batches = accumulate,
                                          .graph = graph};
  auto model = made<OwnStep>(), other = made<OwnStep>();
  sconce::optim::SGD optimizer(other->parameters(), 0.1);
  torch::optim::SGD libtorchs(other->parameters(), 0.1);
  const auto expected = StartsWith(
      "sconce::Trainer: expected an optimizer for the parameters of (anonymous "
      "namespace)::OwnStep, "
      "got an optimizer for 2 parameters (0 from the model), and no parameter has a gradient after "
      "the backward pass");
  const auto before = other->linear->weight.detach().clone();
  CHECK_THROWS_WITH(Trainer(options).fit(model, optimizer, data()), expected);
  const auto of_libtorch = StartsWith("sconce::Trainer: expected a sconce optimizer with graph (");
  CHECK_THROWS_WITH(Trainer(options).fit(model, libtorchs, data()), graph ? of_libtorch : expected);
  CHECK_THROWS_WITH(Trainer(options).fit_epoch(model, optimizer, data().train), expected);
  sconce::nn::DataParallel replicas(model, {.device_ids = {torch::kCPU, torch::kCPU}});
  CHECK_THROWS_WITH(Trainer(options).fit(replicas, optimizer, data()), expected);
  if (graph) return;
  sconce::nn::DistributedDataParallel of_rank(model, one_with_gloo());
  CHECK_THROWS_WITH(Trainer(options).fit(of_rank, optimizer, data()), expected);
  CHECK(other->linear->weight.equal(before));
}

TEST_CASE("a model can be trained even if some of its parameters receive no gradient") {
  struct PartlyUsed : OwnStep {
    torch::nn::Linear unused = register_module("unused", torch::nn::Linear(2, 2));
  };
  const auto precision = GENERATE(Precision::fp32, Precision::fp16);
  const bool graph = GENERATE(false, true);
  auto model = made<PartlyUsed>();
  std::vector<torch::Tensor> last_has_one = model->unused->parameters();
  last_has_one.push_back(model->linear->bias);
  sconce::optim::SGD optimizer(last_has_one, 0.1);
  const auto before = model->linear->bias.detach().clone();
  Trainer({.num_gpus = 0, .precision = precision, .graph = graph}).fit(model, optimizer, data());
  CHECK_FALSE(model->linear->bias.equal(before));
}

TEST_CASE("a step changes nothing if a callback has cleared the gradients") {
  struct Dropping : sconce::TrainerCallback {
    void on_before_optimizer_step(sconce::Fit& fit) override { fit.optimizer.zero_grad(); }
  } dropping;
  Fitting<> f({&dropping});
  f.fit();
  CHECK(f.model->parameters()[0].equal(net()->parameters()[0]));
}

TEST_CASE("callbacks that store references cannot be constructed from temporaries") {
  namespace schedulers = sconce::optim::lr_scheduler;
  STATIC_CHECK(std::is_constructible_v<sconce::LRScheduling, schedulers::StepLR&>);
  STATIC_CHECK_FALSE(std::is_constructible_v<sconce::LRScheduling, schedulers::StepLR>);
  STATIC_CHECK_FALSE(
      std::is_constructible_v<sconce::PlateauScheduling, schedulers::ReduceLROnPlateau>);
  STATIC_CHECK_FALSE(std::is_constructible_v<sconce::ModelCheckpoint, sconce::Checkpoint>);
  STATIC_CHECK_FALSE(
      std::is_constructible_v<sconce::WeightAveraging, sconce::optim::ExponentialMovingAverage>);
  STATIC_CHECK_FALSE(std::is_constructible_v<sconce::EpochLogger, std::ostringstream>);
}

TEST_CASE("each Trainer warns once that fp16 on the CPU is slow") {
  auto model = net();
  sconce::optim::SGD optimizer(model->parameters(), 0.1);
  for (const auto precision : {Precision::fp32, Precision::bf16, Precision::fp16}) {
    const sconce::test::Warnings warnings;
    Trainer trainer({.precision = precision, .device = sconce::cpu()});
    trainer.fit(model, optimizer, data());
    trainer.evaluate(model, *data().test);
    REQUIRE(warnings.messages().size() == (precision == Precision::fp16 ? 1 : 0));
    if (precision != Precision::fp16) continue;
    CHECK_THAT(warnings.messages()[0], StartsWith("sconce::Trainer: fp16 on a CPU"));
  }
}

TEST_CASE(
    "training with two replicas on the CPU gives the same results as training without replicas") {
  const auto train = [](bool parallel) {
    torch::manual_seed(0);
    torch::nn::Sequential model(torch::nn::Linear(2, 8), torch::nn::ReLU(),
                                torch::nn::Linear(8, 2));
    torch::optim::SGD optimizer(model->parameters(), 0.1);
    Trainer trainer({.max_epochs = 3, .num_gpus = 0});
    if (!parallel) return trainer.fit(model, optimizer, data()).epochs.back();
    sconce::nn::DataParallel replicas(model, {.device_ids = {sconce::cpu(), sconce::cpu()}});
    return trainer.fit(replicas, optimizer, data()).epochs.back();
  };
  CHECK(train(true).loss == Catch::Approx(train(false).loss).epsilon(1e-6));
  CHECK(train(true).at("test_acc") == train(false).at("test_acc"));
}

TEST_CASE(
    "training in a single-process group gives the same results as training without a group, even "
    "with gradient accumulation") {
  const auto train = [](const sconce::distributed::ProcessGroup& group, bool wrapped) {
    auto model = net();
    torch::optim::SGD optimizer(model->parameters(), 0.1);
    Trainer trainer(
        {.max_epochs = 3, .num_gpus = 0, .accumulate_grad_batches = 2, .process_group = group});
    if (!wrapped) return trainer.fit(model, optimizer, data()).epochs.back();
    sconce::nn::DistributedDataParallel of_rank(model, group);
    return trainer.fit(of_rank, optimizer, data()).epochs.back();
  };
  const auto alone = train({}, false);
  for (const auto& group : {sconce::distributed::ProcessGroup(), one_with_gloo()}) {
    for (const bool wrapped : {false, true}) {
      const auto epoch = train(group, wrapped);
      CHECK(epoch.loss == alone.loss);
      CHECK(epoch.at("train_acc") == alone.at("train_acc"));
      CHECK(epoch.at("test_acc") == alone.at("test_acc"));
      CHECK(epoch.examples == alone.examples);
    }
  }
}

// During its lifetime, counts the calls to a LibTorch function in all threads.
class Calls {
 public:
  explicit Calls(std::string name) {
    name_ = std::move(name);
    count_ = 0;
    handle_ = at::addGlobalCallback(at::RecordFunctionCallback([](const at::RecordFunction& call) {
      if (call.name() == name_) ++count_;
      return std::unique_ptr<at::ObserverContext>();
    }));
  }
  ~Calls() { at::removeCallback(handle_); }
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

  int count() const { return count_; }

 private:
  inline static std::string name_;
  inline static std::atomic<int> count_ = 0;
  at::CallbackHandle handle_;
};

TEST_CASE("gradients are reduced once per step and metrics once per epoch") {
  sconce::test::require_gloo_of_16_bits();
  const auto group = one_with_gloo();
  auto model = net();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  // Without a communication hook, DistributedDataParallel does not communicate gradients in a
  // single-process group.
  sconce::nn::DistributedDataParallel of_rank(model, group,
                                              {.comm_hook = sconce::nn::CommHook::bf16_compress});
  Trainer trainer({.num_gpus = 0, .accumulate_grad_batches = 2, .process_group = group});
  const Calls sums("c10d::allreduce_");
  trainer.fit_epoch(of_rank, optimizer, {Batches(points(96), {.batch_size = 16})});
  CHECK(sums.count() == 3 + 1);  // for six batches
}

TEST_CASE("on a GPU, a training step matches the CPU", "[gpu]") {
  sconce::test::require_gpu();
  at::globalContext().setAllowTF32CuBLAS(false);
  const auto train = [](torch::Device device) {
    torch::manual_seed(0);
    auto model =
        torch::nn::Sequential(torch::nn::Linear(2, 8), torch::nn::ReLU(), torch::nn::Linear(8, 2));
    torch::optim::SGD optimizer(model->parameters(), 0.1);  // created before the model moves
    const auto result = Trainer({.max_epochs = 3, .gradient_clip_val = 1, .device = device})
                            .fit(model, optimizer, data());
    CHECK(model->parameters()[0].device() == device);
    return std::pair(result.epochs.back().loss, model->parameters()[0].detach().cpu());
  };
  const auto [cpu_loss, cpu_weight] = train(sconce::cpu());
  const auto [gpu_loss, gpu_weight] = train(sconce::gpu());
  CHECK(gpu_loss == Catch::Approx(cpu_loss).epsilon(1e-4));
  CHECK(torch::allclose(gpu_weight, cpu_weight, 1e-4, 1e-5));
}

TEST_CASE("on a GPU, num_gpus = 1 selects the first GPU", "[gpu]") {
  sconce::test::require_gpu();
  CHECK(Trainer({.num_gpus = 1}).device() == sconce::gpu());
}

TEST_CASE("on a GPU, each epoch reads the training sums once and the test sums once", "[gpu]") {
  sconce::test::require_gpu();
  const int64_t batch_size = GENERATE(4, 48);
  auto model = net();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  const sconce::test::HostReads reads;
  Trainer({.num_gpus = 1, .gradient_clip_val = 1}).fit(model, optimizer, data(96, batch_size));
  CHECK(reads.count() == 2);
}

TEST_CASE("on a GPU, models train in tf32, fp16, and bf16 without changing LibTorch's settings",
          "[gpu]") {
  sconce::test::require_gpu();
  at::globalContext().setFloat32MatmulPrecision("highest");
  at::globalContext().setAllowTF32CuDNN(false);
  const auto precision = GENERATE(Precision::tf32, Precision::fp16, Precision::bf16);
  auto model = net();
  sconce::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.5));
  Trainer trainer({.max_epochs = 12, .num_gpus = 1, .precision = precision});
  CHECK(trainer.scaler().is_enabled() == (precision == Precision::fp16));
  const sconce::test::HostReads reads;
  CHECK(trainer.fit(model, optimizer, data()).epochs.back().at("test_acc") > 0.9);
  CHECK(reads.count() == 24);  // one for each epoch's sums and one for its test
  CHECK(at::globalContext().float32MatmulPrecision() == at::Float32MatmulPrecision::HIGHEST);
  CHECK_FALSE(at::globalContext().allowTF32CuDNN());
}

TEST_CASE("on a GPU, a batch moved to the CPU is complete when prepare_batch returns", "[gpu]") {
  sconce::test::require_gpu();
  const auto there = torch::rand({1 << 24}, sconce::gpu()).add_(1);
  const auto here = Trainer({.num_gpus = 0}).prepare_batch({there, there});
  CHECK(here.data.min().item<float>() >= 1);
  CHECK(here.target.equal(there.cpu()));
}

TEST_CASE("on a GPU, a device without an index refers to the current GPU", "[gpu]") {
  sconce::test::require_gpu();
  CHECK(Trainer({.device = torch::Device("cuda")}).device() == sconce::gpu());
}

TEST_CASE("a fit that cannot compute gradients throws an error that reports the cause") {
  auto model = net();
  sconce::optim::SGD optimizer(model->parameters(), 0.1);
  Trainer trainer({.num_gpus = 0});
  const auto fit = [&] { trainer.fit(model, optimizer, data()); };
  {
    const torch::NoGradGuard no_grad;
    CHECK_THROWS_WITH(
        fit(), StartsWith("sconce::Trainer::fit: expected gradients to be enabled, got a call with "
                          "gradients disabled, for example by torch::NoGradGuard"));
    CHECK_THROWS_WITH(trainer.fit_epoch(model, optimizer, data().train),
                      StartsWith("sconce::Trainer::fit_epoch: expected gradients"));
  }
  {
    const c10::InferenceMode inference;
    CHECK_THROWS_WITH(fit(), StartsWith("sconce::Trainer::fit: expected gradients to be enabled, "
                                        "got a call in c10::InferenceMode"));
    model->push_back(torch::nn::Linear(2, 2));
  }
  CHECK_THROWS_WITH(fit(), StartsWith("sconce::Trainer::fit: expected parameters that can have a "
                                      "gradient, got 4.weight, an inference tensor created in"));
  model = net();
  sconce::nn::requires_grad_(*model, false);
  const bool graph = GENERATE(false, true);
  sconce::optim::SGD frozen(model->parameters(), 0.1);
  CHECK_THROWS_WITH(
      Trainer({.num_gpus = 0, .graph = graph}).fit(model, frozen, data()),
      ContainsSubstring("sconce::Trainer: expected the loss to depend on a parameter that requires "
                        "a gradient, got a loss that depends on no such parameter; of the 4 "
                        "parameters of torch::nn::SequentialImpl, 0 require"));
}

TEST_CASE("a loss with several elements is rejected in both training and testing") {
  auto model = net();
  sconce::optim::SGD optimizer(model->parameters(), 0.1);
  Trainer trainer({.num_gpus = 0, .loss = [](const auto& output, const auto& target) {
                     return torch::nn::functional::cross_entropy(
                         output, target,
                         torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kNone));
                   }});
  const auto expected = StartsWith(
      "sconce::Trainer: expected a loss of one real number from TrainerOptions::loss, "
      "such as the mean over the examples, got CPUFloatType of sizes [");
  CHECK_THROWS_WITH(trainer.fit(model, optimizer, data()), expected);
  CHECK_THROWS_WITH(trainer.evaluate(model, data().train), expected);
}

TEST_CASE(
    "the Trainer rejects an optimizer whose step requires a closure, and the error names the "
    "optimizer") {
  auto model = net();
  torch::optim::LBFGS optimizer(model->parameters());
  CHECK_THROWS_WITH(Trainer({.num_gpus = 0}).fit(model, optimizer, data()),
                    StartsWith("sconce::Trainer::fit: expected an optimizer whose step requires no "
                               "closure, such as sconce::optim::AdamW, got torch::optim::LBFGS"));
}

TEST_CASE("a fit stops and saves after max_time, even mid-epoch") {
  const sconce::test::TempDir folder;
  sconce::Checkpoint checkpoint(folder.path());
  sconce::ModelCheckpoint saving(checkpoint);
  int steps = 0;
  sconce::test::StopWhen sleeping([&] {
    if (++steps == 2) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    return false;
  });
  Fitting<> fitting({&sleeping, &saving});
  const auto result = fitting.fit({.max_epochs = 2, .max_time = std::chrono::milliseconds(200)});
  CHECK(result.stopped);
  CHECK(result.epochs.empty());
  CHECK(result.stop_reason == "max_time of 0.2 s has passed");
  CHECK_FALSE(checkpoint.latest().empty());
}

TEST_CASE("a fit that ends before max_time is not marked as stopped") {
  Fitting<> fitting;
  CHECK_FALSE(fitting.fit({.max_time = std::chrono::hours(1000)}).stopped);
  using Seconds = std::chrono::duration<double>;
  CHECK_THROWS_WITH(fitting.fit({.max_time = Seconds(0)}),
                    ContainsSubstring("expected max_time to be above 0 s, got 0 s"));
  CHECK_THROWS_WITH(fitting.fit({.max_time = Seconds(NAN)}), ContainsSubstring("max_time"));
}

TEST_CASE("fit accepts batches as arguments or in a FitData") {
  const auto with = data();
  const auto fit = [&](auto... given) {
    auto model = net();
    torch::optim::SGD optimizer(model->parameters(), 0.1);
    return Trainer({.max_epochs = 2, .num_gpus = 0}).fit(model, optimizer, given...).epochs[1];
  };
  const auto expected = fit(with);
  const Batches train(points(96), {.batch_size = 16, .shuffle = true, .seed = 7});
  const Batches test(points(40, /*seed=*/2), {.batch_size = 40});
  CHECK(fit(train, test).at("test_loss") == expected.at("test_loss"));
  CHECK(fit(train).loss == expected.loss);
  CHECK(fit(with.train).loss == expected.loss);
  CHECK_FALSE(fit(train).metrics.contains("test_loss"));
}

TEST_CASE(
    "a LibTorch function with additional arguments can be used as the loss, and the additional "
    "arguments keep their defaults") {
  const auto output = torch::randn({6, 3}), target = torch::randn({6, 3});
  const auto shares = torch::rand({6, 3}), classes = torch::randint(0, 3, {6}, torch::kLong);
  const auto check = [](const sconce::Loss& loss, const torch::Tensor& x, const torch::Tensor& y,
                        const torch::Tensor& expected) { CHECK(loss(x, y).loss.equal(expected)); };
  check(torch::mse_loss, output, target, torch::mse_loss(output, target));
  check(&torch::l1_loss, output, target, torch::l1_loss(output, target));
  check(torch::soft_margin_loss, output, target, torch::soft_margin_loss(output, target));
  check(torch::smooth_l1_loss, output, target, torch::smooth_l1_loss(output, target));
  check(torch::huber_loss, output, target, torch::huber_loss(output, target));
  check(torch::binary_cross_entropy, shares, shares, torch::binary_cross_entropy(shares, shares));
  check(torch::binary_cross_entropy_with_logits, output, shares,
        torch::binary_cross_entropy_with_logits(output, shares));
  check(torch::cross_entropy_loss, output, classes, torch::cross_entropy_loss(output, classes));
  check(torch::nn::functional::mse_loss, output, target, torch::mse_loss(output, target));
  check(torch::nn::functional::cross_entropy, output, classes,
        torch::cross_entropy_loss(output, classes));
  check(torch::nn::MSELoss(), output, target, torch::mse_loss(output, target));
  const auto column = torch::randn({6, 1}), row = torch::randn({6});
  for (const auto& loss : {sconce::Loss(torch::mse_loss), sconce::Loss(torch::l1_loss),
                           sconce::Loss(torch::soft_margin_loss),
                           sconce::Loss(torch::smooth_l1_loss), sconce::Loss(torch::huber_loss)}) {
    CHECK(sconce::test::error_of([&] { loss(column, row); }) ==
          "sconce::TrainerOptions: loss: expected an output and a target with the same shape, got "
          "[6, 1] and [6]");
  }
  CHECK_FALSE(static_cast<bool>(sconce::Loss(sconce::Loss::Function())));
  CHECK_FALSE(static_cast<bool>(sconce::Loss(sconce::Loss::SumFunction())));
}

namespace {

torch::Tensor sum_loss(const torch::Tensor& output, const torch::Tensor& target,
                       int64_t power /* = 2 by default */) {
  return (output - target).pow(power).sum();
}

}  // namespace

TEST_CASE("a loss function with additional arguments whose defaults are unknown is rejected") {
  CHECK_THROWS_WITH(Trainer({.loss = sum_loss}),
                    StartsWith("sconce::TrainerOptions: loss: expected a function of two tensors "
                               "or a LibTorch loss, got another function"));
}

namespace {

// Records the batch index passed to each step.
struct NumbersBatches : Plain {
  torch::Tensor training_step(const sconce::data::Dataset& batch, int64_t batch_idx) {
    trained.push_back(batch_idx);
    return torch::nn::functional::cross_entropy(forward(batch.data), batch.target);
  }
  torch::Tensor validation_step(const sconce::data::Dataset& batch, int batch_idx) const {
    tested.push_back(batch_idx);
    return batch.data.sum() * 0;
  }
  torch::Tensor predict_step(sconce::data::Dataset batch, size_t batch_idx) {
    return batch.data * 0 + static_cast<double>(batch_idx);
  }
  std::vector<int64_t> trained = {};
  mutable std::vector<int64_t> tested = {};
};

}  // namespace

TEST_CASE("a training_step that takes batch_idx receives the batch's index within the epoch") {
  using Numbers = std::vector<int64_t>;
  NumbersBatches model;
  torch::optim::SGD optimizer(model.parameters(), 0.1);
  const Batches train(points(10), {.batch_size = 2}), test(points(4), {.batch_size = 2});
  Trainer trainer({.max_epochs = 2, .num_gpus = 0, .accumulate_grad_batches = 2});
  trainer.fit(model, optimizer, train, test);
  CHECK(model.trained == Numbers{0, 1, 2, 3, 4, 0, 1, 2, 3, 4});
  CHECK(model.tested == Numbers{0, 1, 0, 1});
  CHECK(trainer.predict(model, test)[1].eq(1).all().item<bool>());
}

TEST_CASE("replicas receive the batch_idx of the unsplit batch") {
  struct Numbered : OwnStep {
    torch::Tensor training_step(const sconce::data::Dataset& batch, int64_t batch_idx) {
      return forward(batch.data).sum() * 0 + static_cast<double>(batch_idx);
    }
  };
  struct Copied : torch::nn::Cloneable<Copied> {
    Copied() { reset(); }
    void reset() override { linear = register_module("linear", torch::nn::Linear(2, 2)); }
    torch::Tensor forward(const torch::Tensor& x) { return linear->forward(x); }
    torch::Tensor training_step(const sconce::data::Dataset& batch, int64_t batch_idx) {
      return linear->forward(batch.data).sum() * 0 + static_cast<double>(batch_idx);
    }
    torch::nn::Linear linear = nullptr;
  };
  const Batches batches(points(12), {.batch_size = 4});
  const auto mean_number = [&](auto& model, const auto& parameters) {
    torch::optim::SGD optimizer(parameters, 0.1);
    return Trainer({.num_gpus = 0}).fit(model, optimizer, batches).epochs[0].loss;
  };
  auto module = std::make_shared<Copied>();
  sconce::nn::DataParallel replicas(module, {.device_ids = {torch::kCPU, torch::kCPU}});
  CHECK(mean_number(replicas, module->parameters()) == 1);
  auto ranked = std::make_shared<Numbered>();
  sconce::nn::DistributedDataParallel rank(ranked, one_with_gloo());
  CHECK(mean_number(rank, ranked->parameters()) == 1);
}

TEST_CASE(
    "graph rejects a training_step that takes batch_idx, because a replay would reuse the captured "
    "index") {
  NumbersBatches model;
  sconce::optim::SGD optimizer(model.parameters(), 0.1);
  const Batches batches(points(4), {.batch_size = 2});
  CHECK_THROWS_WITH(Trainer({.num_gpus = 0, .graph = true}).fit(model, optimizer, batches),
                    StartsWith("sconce::Trainer: expected training_step(batch) with graph, got a "
                               "training_step with batch_idx"));
}
