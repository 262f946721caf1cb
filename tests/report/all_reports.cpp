// Enables every report, and runs fits in two threads at the same time and nested inside each other.

#include <pty.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "sconce/metrics/classification.hpp"
#include "sconce/report/confusion_matrix_chart.hpp"
#include "sconce/report/profile.hpp"
#include "sconce/report/progress_bar.hpp"
#include "sconce/report/scalar_logger.hpp"
#include "sconce/report/training_curve.hpp"
#include "sconce/training/trainer.hpp"
#include "support/error_of.hpp"
#include "support/points.hpp"
#include "support/temp_dir.hpp"
#include "support/warnings.hpp"

using Catch::Matchers::StartsWith;

namespace {

namespace fs = std::filesystem;

// Returns the descriptor of a terminal, from which a progress bar reads the width. Each progress
// bar writes to a separate stream.
int terminal() {
  static const int descriptor = [] {
    int reader = -1;
    int writer = -1;
    winsize size = {24, 80, 0, 0};
    REQUIRE(::openpty(&reader, &writer, nullptr, nullptr, &size) == 0);
    ::setenv("TERM", "xterm", 1);
    return writer;
  }();
  return descriptor;
}

// A model, its data, and all of the fit's reports, which are written to a separate folder.
struct Run {
  sconce::test::TempDir folder = sconce::test::TempDir();
  sconce::FitData data = sconce::test::data();
  torch::nn::Sequential model = sconce::test::net_without_dropout();
  torch::optim::SGD optimizer{model->parameters(), 0.1};
  std::shared_ptr<sconce::metrics::ConfusionMatrix> matrix =
      std::make_shared<sconce::metrics::ConfusionMatrix>(
          sconce::metrics::ConfusionMatrixOptions{.num_classes = 2});

  std::ostringstream lines_text = {}, bar_text = {};
  sconce::EpochLogger lines{lines_text};
  sconce::ProgressBar bar{bar_text, {.live_loss = true, .bar = {.file_descriptor = terminal()}}};
  sconce::ScalarLogger log{folder.path() / "scalars", {.every_n_steps = 1}};
  sconce::TrainingCurve curve{folder.path() / "curve.svg"};
  sconce::ConfusionMatrixLogger chart{folder.path() / "confusion.svg", matrix};
  sconce::StepTrace trace{folder.path() / "trace.json", 2};

  sconce::FitResult result = {};
  std::vector<std::string> warnings = {};

  void fit(sconce::Callbacks further = {}) {
    const sconce::test::Warnings heard;
    data.callbacks = {&lines, &bar, &log, &curve, &chart, &trace};
    data.callbacks.insert(data.callbacks.end(), further.begin(), further.end());
    result = sconce::Trainer(
                 {.max_epochs = 3,
                  .num_gpus = 0,
                  .metrics = sconce::Metrics{{"acc", std::make_shared<sconce::metrics::Accuracy>()},
                                             {"matrix", matrix}}})
                 .fit(model, optimizer, data);
    warnings = heard.messages();
  }
};

std::string values_of(const Run& run) {
  std::ostringstream out;
  out.precision(17);
  for (const auto& epoch : run.result.epochs) {
    out << epoch.epoch << ' ' << epoch.loss;
    for (const auto& [name, value] : epoch.metrics) out << ' ' << name << ' ' << value;
    out << '\n';
  }
  return out.str();
}

void check_reports(const Run& run, const Run& alone) {
  CHECK(values_of(run) == values_of(alone));
  const auto count = [](const std::string& text) {
    return std::count(text.begin(), text.end(), '\n');
  };
  CHECK(count(run.lines_text.str()) == count(alone.lines_text.str()));
  CHECK(run.bar_text.str().find("epoch 3/3") != std::string::npos);
  CHECK(run.curve.history().epochs.size() == 3);
  CHECK(count(sconce::test::contents(run.folder.path() / "scalars/scalars.csv")) ==
        count(sconce::test::contents(alone.folder.path() / "scalars/scalars.csv")));
  for (const char* name : {"curve.svg", "confusion.svg"}) {
    CHECK(sconce::test::contents(run.folder.path() / name) ==
          sconce::test::contents(alone.folder.path() / name));
  }
}

// A process has only one profiler, so each fit either writes a trace or warns that the profiler is
// already running.
void check_trace(const Run& run) {
  const bool has_trace = fs::exists(run.folder.path() / "trace.json");
  CHECK(run.warnings.size() == (has_trace ? 0 : 1));
}

}  // namespace

TEST_CASE(
    "two fits running concurrently in separate threads write the same reports as a single fit",
    "[fits-in-threads]") {
  Run alone;
  alone.fit();
  check_trace(alone);
  Run a;
  Run b;
  std::thread other([&] { b.fit(); });
  a.fit();
  other.join();
  for (const Run* run : {&a, &b}) {
    check_reports(*run, alone);
    check_trace(*run);
  }
  CHECK(a.warnings.size() + b.warnings.size() < 2);
}

TEST_CASE("a nested fit and its outer fit write the same reports as a single fit") {
  Run alone;
  alone.fit();
  struct Nested : sconce::TrainerCallback {
    void on_epoch_end(sconce::Fit& fit) override {
      if (fit.epochs.size() == 2) inner.fit();
    }
    Run inner = {};
  } nested;
  Run outer;
  outer.fit({&nested});
  check_reports(outer, alone);
  check_reports(nested.inner, alone);
  CHECK(fs::exists(outer.folder.path() / "trace.json"));
  CHECK(fs::exists(nested.inner.folder.path() / "trace.json"));
}

TEST_CASE("ScalarLogger and TrainingCurve reject a nested fit while the outer fit is running") {
  Run run;
  struct Nested : sconce::TrainerCallback {
    explicit Nested(sconce::TrainerCallback& shared_with) : shared(shared_with) {}
    void on_epoch_end(sconce::Fit&) override {
      Run inner;
      inner.data.callbacks = {&shared};
      error = sconce::test::error_of(
          [&] { sconce::Trainer({.num_gpus = 0}).fit(inner.model, inner.optimizer, inner.data); });
    }
    sconce::TrainerCallback& shared;
    std::string error = {};
  };
  Nested with_curve(run.curve);
  Nested with_log(run.log);
  run.fit({&with_curve, &with_log});
  CHECK_THAT(with_curve.error, StartsWith("sconce::TrainingCurve: expected one fit at a time"));
  CHECK_THAT(with_log.error, StartsWith("sconce::ScalarLogger: expected one fit at a time"));
  Run alone;
  alone.fit();
  check_reports(run, alone);
}
