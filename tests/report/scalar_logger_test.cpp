#include "sconce/report/scalar_logger.hpp"

#include <torch/library.h>

#include <fstream>
#include <map>
#include <ostream>

#include "catch.hpp"
#include "sconce/optim/lr_scheduler.hpp"
#include "sconce/optim/sgd.hpp"
#include "sconce/report/training_curve.hpp"
#include "sconce/training/lr_scheduling.hpp"
#include "sconce/training/model_checkpoint.hpp"
#include "support/error_of.hpp"
#include "support/event_file.hpp"
#include "support/fit_by_hand.hpp"
#include "support/host_reads.hpp"
#include "support/points.hpp"
#include "support/require_gpu.hpp"
#include "support/stop_when.hpp"
#include "support/warnings.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::ScalarLogger;
using sconce::ScalarLogOptions;
using sconce::Trainer;
using sconce::test::data;
using sconce::test::net;
using sconce::test::shown_scalars;
using sconce::test::TempDir;

namespace {

struct ScalarRow {
  int64_t step = 0;
  int64_t epoch = 0;
  std::string tag = {};
  double value = 0;
  bool operator==(const ScalarRow&) const = default;
};

std::ostream& operator<<(std::ostream& out, const ScalarRow& row) {
  return out << row.step << ' ' << row.epoch << ' ' << row.tag << ' ' << row.value;
}

std::vector<ScalarRow> scalars_of(const std::filesystem::path& folder) {
  std::ifstream file(folder / "scalars.csv");
  std::vector<ScalarRow> rows;
  std::string line;
  std::getline(file, line);  // the column names
  for (ScalarRow row; file >> row.step && file.ignore() && file >> row.epoch;) {
    file.ignore();
    std::getline(file, row.tag, ',');
    file >> row.value;
    std::getline(file, line);
    rows.push_back(row);
  }
  return rows;
}

// Returns all scalars except those that depend on the clock.
std::vector<ScalarRow> learnt(const std::filesystem::path& folder) {
  auto rows = scalars_of(folder);
  std::erase_if(rows, [](const ScalarRow& row) {
    return row.tag == "seconds" || row.tag == "examples_per_second";
  });
  return rows;
}

void check_same_in_both_files(const std::filesystem::path& folder) {
  const auto rows = scalars_of(folder);
  const auto shown = shown_scalars(folder);
  REQUIRE(shown.size() == rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    CHECK(shown[i].step == rows[i].step);
    CHECK(shown[i].tag == rows[i].tag);
    CHECK(shown[i].value == static_cast<float>(rows[i].value));
  }
}

// Makes at::cat throw in this thread to simulate a failed read from a device.
class FailingCat {
 public:
  FailingCat() {
    others_.fallback(torch::CppFunction::makeFallthrough());
    cat_.impl("cat", torch::CppFunction::makeFromBoxedFunction<&fail>());
  }

 private:
  static constexpr auto key = c10::DispatchKey::TESTING_ONLY_GenericMode;

  static void fail(const c10::OperatorHandle&, c10::Stack*) {
    TORCH_CHECK(false, "the device is busy");
  }

  torch::Library others_{torch::Library::IMPL, "_", key, __FILE__, __LINE__};
  torch::Library cat_{torch::Library::IMPL, "aten", key, __FILE__, __LINE__};
  c10::impl::IncludeDispatchKeyGuard included_{key};
};

// A hand-written fit that does not use a Trainer and runs one step per epoch.
struct StepsByHand : sconce::test::NetFitByHand {
  StepsByHand()
      : NetFitByHand(/*max_epochs=*/2, /*batches=*/1, {.device = torch::kCPU, .init_scale = 1024}) {
  }

  void run_epoch(ScalarLogger& log, const torch::Tensor& loss) {
    log.on_before_optimizer_step(fit);
    fit.loss = loss;
    fit.batch = 1;
    log.on_after_optimizer_step(fit);
    fit.batch = 0;
    const auto epoch = static_cast<int>(fit.epochs.size()) + 1;
    fit.epochs.push_back({.epoch = epoch, .loss = 2, .examples = 8, .seconds = 0.5});
    log.on_epoch_end(fit);
  }
};

// Returns the scalars that were read from the device.
std::vector<ScalarRow> read_from_device(const std::filesystem::path& folder) {
  auto rows = scalars_of(folder);
  std::erase_if(rows, [](const auto& row) { return row.tag != "loss_step" && row.tag != "scale"; });
  return rows;
}

const std::vector<ScalarRow> two_epochs = {{1, 1, "loss_step", 0.25},
                                           {1, 1, "scale", 1024},
                                           {2, 2, "loss_step", 0.5},
                                           {2, 2, "scale", 1024}};

// A three-epoch fit that processes seven batches in four steps per epoch, and the fit's results.
struct ScalarRun {
  torch::nn::Sequential model = net();
  sconce::optim::SGD optimizer{model->parameters(), torch::optim::SGDOptions(0.5).momentum(0.9)};

  sconce::FitResult fit(const sconce::Callbacks& callbacks,
                        sconce::TrainerOptions options = {.num_gpus = 0}) {
    options.max_epochs = 3;
    options.accumulate_grad_batches = 2;
    auto with = data(/*n=*/112);
    with.callbacks = callbacks;
    return Trainer(options).fit(model, optimizer, with);
  }
};

}  // namespace

TEST_CASE(
    "each epoch's scalars are written to scalars.csv and to the event file with the step number of "
    "the epoch's last step") {
  const TempDir folder;
  ScalarLogger log(folder.path());
  ScalarRun run;
  const auto result = run.fit({&log});
  const auto rows = scalars_of(folder.path());
  const std::vector<std::string> tags = {"loss", "train_acc",           "test_loss", "test_acc",
                                         "lr",   "examples_per_second", "seconds"};
  REQUIRE(rows.size() == 3 * tags.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto& epoch = result.epochs[i / tags.size()];
    const auto& tag = tags[i % tags.size()];
    INFO(tag);
    CHECK(rows[i].tag == tag);
    CHECK(rows[i].epoch == epoch.epoch);
    CHECK(rows[i].step == 4 * epoch.epoch);
    if (epoch.contains(tag)) CHECK(rows[i].value == epoch.at(tag));
    if (tag == "lr") CHECK(rows[i].value == 0.5);
    if (tag == "seconds") CHECK(rows[i].value == epoch.seconds);
    if (tag == "examples_per_second") CHECK(rows[i].value == 112 / epoch.seconds);
  }
  check_same_in_both_files(folder.path());
}

TEST_CASE("every_n_steps logs the loss of a step's last batch without a host read per step") {
  struct Losses : sconce::TrainerCallback {
    void on_after_optimizer_step(sconce::Fit& fit) override { losses.push_back(fit.loss.clone()); }
    std::vector<torch::Tensor> losses;
  };
  const auto reads_of = [](const sconce::Callbacks& callbacks) {
    ScalarRun run;
    const sconce::test::HostReads reads;
    run.fit(callbacks);
    return reads.count();
  };
  const TempDir folder;
  ScalarLogger log(folder.path(), {.every_n_steps = 3});
  Losses losses;
  CHECK(reads_of({&log, &losses}) == reads_of({}));
  std::vector<ScalarRow> steps;
  for (const auto& row : scalars_of(folder.path())) {
    if (row.tag == "loss_step") steps.push_back(row);
  }
  REQUIRE(steps.size() == 4);
  for (int64_t i = 0; i < 4; ++i) {
    CHECK(steps[i].step == 3 * (i + 1));
    CHECK(steps[i].epoch == (3 * (i + 1) + 3) / 4);
    CHECK(steps[i].value == losses.losses[steps[i].step - 1].item<double>());
  }
  check_same_in_both_files(folder.path());
}

TEST_CASE(
    "on a GPU, each flush of the scalar log fetches the values of all its steps in a single host "
    "read",
    "[gpu]") {
  sconce::test::require_gpu();
  const auto reads_of = [](const sconce::Callbacks& callbacks) {
    ScalarRun run;
    const sconce::test::HostReads reads;
    run.fit(callbacks, {.precision = sconce::amp::Precision::fp16, .device = sconce::gpu()});
    return reads.count();
  };
  const TempDir folder;
  ScalarLogger log(folder.path(), {.every_n_steps = 1});
  CHECK(reads_of({&log}) == reads_of({}) + 3);  // one read per epoch
  check_same_in_both_files(folder.path());
}

TEST_CASE("scalars keep their order even if a single device read cannot return all of them") {
  const TempDir folder;
  ScalarLogger log(folder.path(), {.every_n_steps = 1});
  auto model = net();
  torch::optim::SGD optimizer(model->parameters(), 0.);
  auto with = data(/*n=*/2100, /*batch_size=*/1);
  with.callbacks = {&log};
  Trainer({.num_gpus = 0}).fit(model, optimizer, with);
  int64_t steps = 0;
  double sum = 0;
  for (const auto& row : scalars_of(folder.path())) {
    if (row.tag == "loss_step") CHECK(row.step == ++steps);
    if (row.tag == "loss_step") sum += row.value;
    if (row.tag == "loss") CHECK(row.value == Catch::Approx(sum / 2100).epsilon(1e-6));
  }
  CHECK(steps == 2100);
}

TEST_CASE(
    "the learning rates logged for a step are the rates that the step used, one per parameter "
    "group") {
  for (const auto& [log_first, every] : {std::pair(true, 1), {false, 1}, {true, 4}}) {
    const TempDir folder;
    auto model = net();
    using Group = torch::optim::OptimizerParamGroup;
    sconce::optim::SGD optimizer(
        std::vector<Group>{
            Group(model[0]->parameters()),
            Group(model[3]->parameters(), std::make_unique<torch::optim::SGDOptions>(0.25))},
        torch::optim::SGDOptions(0.5));
    sconce::optim::lr_scheduler::StepLR scheduler(optimizer, /*step_size=*/2, 0.5);
    sconce::LRScheduling scheduling(scheduler, sconce::SchedulerInterval::step);
    ScalarLogger log(folder.path(), {.every_n_steps = every});
    auto with = data();
    with.callbacks = {&log, &scheduling};
    if (!log_first) std::swap(with.callbacks[0], with.callbacks[1]);
    Trainer({.num_gpus = 0}).fit(model, optimizer, with);
    std::map<std::string, std::vector<double>> lrs;
    for (const auto& row : scalars_of(folder.path())) lrs[row.tag].push_back(row.value);
    std::vector<double> of_steps = {0.5, 0.5, 0.25, 0.25, 0.125, 0.125};
    if (every == 4) of_steps = {0.25};
    CHECK(lrs["lr_step"] == of_steps);
    for (auto& lr : of_steps) lr /= 2;
    CHECK(lrs["lr-1_step"] == of_steps);
    CHECK(lrs["lr"] == std::vector<double>{0.125});
    CHECK(lrs["lr-1"] == std::vector<double>{0.0625});
  }
}

TEST_CASE("a learning rate stored in a tensor is logged and plotted") {
  struct Fill : sconce::TrainerCallback {
    explicit Fill(torch::Tensor tensor) : lr(std::move(tensor)) {}
    void on_before_optimizer_step(sconce::Fit& fit) override {
      lr.fill_(1.0 / static_cast<double>(fit.epochs.size() + 2));
    }
    torch::Tensor lr;
  };
  const TempDir folder;
  auto model = net();
  Fill fill(torch::tensor(0.125, torch::kDouble));
  sconce::optim::SGD optimizer(model->parameters(), 0.1, {.lr = fill.lr});
  ScalarLogger log(folder.path());
  sconce::TrainingCurve curve(folder.path() / "training.svg");
  auto with = data();
  with.callbacks = {&fill, &log, &curve};
  Trainer({.max_epochs = 2, .num_gpus = 0}).fit(model, optimizer, with);
  std::vector<double> logged;
  for (const auto& row : scalars_of(folder.path())) {
    if (row.tag == "lr") logged.push_back(row.value);
  }
  REQUIRE(logged.size() == 2);
  CHECK(logged[0] == 0.5);
  CHECK(logged[1] == Catch::Approx(1.0 / 3));
  CHECK(curve.history().learning_rates == std::vector<double>{1.0 / 2, 1.0 / 3});
}

TEST_CASE("an enabled GradScaler's scale is logged, even in a custom loop") {
  const TempDir folder;
  StepsByHand steps;
  ScalarLogger log(folder.path());
  log.on_fit_start(steps.fit);
  steps.fit.epochs.push_back({.epoch = 1, .loss = 2, .examples = 8, .seconds = 0.5});
  const sconce::test::HostReads reads;
  log.on_epoch_end(steps.fit);
  CHECK(reads.count() == 0);
  const std::vector<ScalarRow> rows = {{1, 1, "loss", 2},
                                       {1, 1, "scale", 1024},
                                       {1, 1, "examples_per_second", 16},
                                       {1, 1, "seconds", 0.5}};
  CHECK(scalars_of(folder.path()) == rows);
  log.on_fit_end(steps.fit);
}

TEST_CASE("a loss of shape (1) is logged together with the GradScaler's scale") {
  const TempDir folder;
  const sconce::test::Warnings warnings;
  StepsByHand steps;
  ScalarLogger log(folder.path(), {.every_n_steps = 1});
  log.on_fit_start(steps.fit);
  steps.run_epoch(log, torch::full({1}, 0.25));
  steps.run_epoch(log, torch::full({1}, 0.5));
  log.on_fit_end(steps.fit);
  CHECK(read_from_device(folder.path()) == two_epochs);
  CHECK(warnings.messages().empty());
}

TEST_CASE("after a failed device read, the next read logs all values under the correct names") {
  const TempDir folder;
  const sconce::test::Warnings warnings;
  StepsByHand steps;
  ScalarLogger log(folder.path(), {.every_n_steps = 1});
  log.on_fit_start(steps.fit);
  {
    const FailingCat failing;
    steps.run_epoch(log, torch::tensor(0.25));
  }
  REQUIRE(warnings.messages().size() == 1);
  CHECK_THAT(warnings.messages()[0], ContainsSubstring("the device is busy"));
  CHECK(scalars_of(folder.path()).empty());
  steps.run_epoch(log, torch::tensor(0.5));
  log.on_fit_end(steps.fit);
  CHECK(read_from_device(folder.path()) == two_epochs);
  check_same_in_both_files(folder.path());
}

TEST_CASE("each step is logged once, even if the fit stops or fails at any point and is resumed") {
  const TempDir whole;
  ScalarLogger whole_log(whole.path(), {.every_n_steps = 1});
  ScalarRun().fit({&whole_log});
  const auto expected = learnt(whole.path());
  REQUIRE(expected.size() == 12 * 2 + 3 * 5);
  for (const int64_t every_n_train_steps : {0, 3}) {
    for (const bool fails : {true, false}) {
      for (int every = 5; every <= 7; ++every) {
        const TempDir folder;
        const auto run = folder.path() / "run";
        for (int tries = 0;; ++tries) {
          REQUIRE(tries < 20);
          sconce::Checkpoint checkpoint(folder.path() / "checkpoints", {.resume = true});
          sconce::ModelCheckpoint saving(checkpoint, {.every_n_train_steps = every_n_train_steps});
          ScalarLogger log(run, {.every_n_steps = 1, .resume = true});
          int steps = 0;
          sconce::test::StopWhen stopping([&] {
            if (++steps == every && fails) throw std::runtime_error("killed");
            return steps == every;
          });
          ScalarRun part;
          try {
            if (!part.fit({&log, &saving, &stopping}).stopped) break;
          } catch (const std::runtime_error&) {
          }
        }
        INFO("every_n_train_steps " << every_n_train_steps << ", fails " << fails << ", every "
                                    << every);
        CHECK(learnt(run) == expected);
        check_same_in_both_files(run);
      }
    }
  }
}

TEST_CASE(
    "scalars logged before a mid-epoch save are already in the files, regardless of callback "
    "order") {
  struct ReadsOnSave : sconce::test::SaveEvery {
    ReadsOnSave(std::filesystem::path of, std::vector<int64_t>& into)
        : SaveEvery(3), folder(std::move(of)), last_steps(into) {}
    void save(sconce::Fit&) override {
      const auto rows = scalars_of(folder);
      last_steps.push_back(rows.empty() ? 0 : rows.back().step);
    }
    std::filesystem::path folder;
    std::vector<int64_t>& last_steps;
  };
  const TempDir folder;
  std::vector<int64_t> last_steps;
  ReadsOnSave saving(folder.path(), last_steps);
  ScalarLogger log(folder.path(), {.every_n_steps = 1});
  auto model = net();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  auto with = data(64, 8);  // 8 batches
  with.callbacks = {&saving, &log};
  Trainer({.num_gpus = 0}).fit(model, optimizer, with);
  CHECK(last_steps == std::vector<int64_t>{3, 6, 8});
}

TEST_CASE(
    "a fit that does not resume throws before training starts and leaves another run's scalars "
    "unchanged") {
  const TempDir folder;
  ScalarLogger log(folder.path());
  ScalarRun().fit({&log});
  const auto before = sconce::test::contents(folder.path() / "scalars.csv");
  ScalarRun second;
  const auto parameters = second.model->parameters()[0].clone();
  CHECK_THROWS_WITH(second.fit({&log}), ContainsSubstring("expected a folder without scalars"));
  CHECK(torch::equal(second.model->parameters()[0], parameters));
  ScalarLogger resuming(folder.path(), {.resume = true});
  CHECK_THROWS_WITH(second.fit({&resuming}), ContainsSubstring("(the run starts over)"));
  CHECK(sconce::test::contents(folder.path() / "scalars.csv") == before);
  CHECK_THROWS_WITH(
      ScalarLogger(folder.path(), {.every_n_steps = -1}),
      ContainsSubstring("sconce::ScalarLogger: expected every_n_steps to be at least 0"));
}

TEST_CASE("if the scalar log cannot be written, the fit warns once and produces the same result") {
  ScalarRun plain;
  const auto expected = plain.fit({});
  const sconce::test::Warnings warnings;
  ScalarLogger log("/proc/no/such", {.every_n_steps = 1});
  ScalarRun run;
  const auto result = run.fit({&log});
  REQUIRE(warnings.messages().size() == 1);
  CHECK_THAT(warnings.messages()[0],
             ContainsSubstring("sconce::ScalarLogger: ") && ContainsSubstring("/proc/no/such"));
  REQUIRE(result.epochs.size() == 3);
  CHECK(result.epochs[2].loss == expected.epochs[2].loss);
}
