// Tests concurrent use of charts, logs, and values from several threads.

#include <string>
#include <utility>

#include "catch.hpp"
#include "sconce/report/confusion_matrix_chart.hpp"
#include "sconce/report/line_chart.hpp"
#include "sconce/report/lr_find.hpp"
#include "sconce/report/scalar_writer.hpp"
#include "sconce/report/summary_writer.hpp"
#include "sconce/training/fit_result.hpp"
#include "support/at_once.hpp"
#include "support/temp_dir.hpp"

using sconce::test::check_at_once;

TEST_CASE("four threads read the same chart and result concurrently") {
  const sconce::test::TempDir folder;
  const sconce::LineChart chart = {.panels = {{.series = {{.x = {0, 1}, .y = {1, 2}}}}}};
  const sconce::ConfusionMatrixChart matrix = {.counts = torch::ones({2, 2}, torch::kLong)};
  const sconce::LRFindResult found = {.lrs = {0.1, 0.2}, .losses = {1, 2}};
  const sconce::FitResult result = {
      .epochs = {{.epoch = 1, .loss = 2, .metrics = {{"train_acc", 0.5}}, .seconds = 1}}};
  const std::string svg = chart.svg(), matrix_svg = matrix.svg();
  check_at_once({
      {"LineChart",
       [&] {
         chart.save(folder.path() / "chart.svg");
         return chart.svg() == svg;
       }},
      {"ConfusionMatrixChart",
       [&] {
         matrix.save(folder.path() / "matrix.svg");
         return matrix.svg() == matrix_svg;
       }},
      {"LRFindResult", [&] { return !found.chart().svg().empty(); }},
      {"FitResult",
       [&] {
         const auto& metrics = result.epochs[0].metrics;
         return result.epochs[0].at("loss") == 2 && metrics.contains("train_acc") &&
                metrics.at("train_acc") == 0.5 && result.examples_per_second() == 0;
       }},
  });
  CHECK(sconce::test::contents(folder.path() / "chart.svg") == svg);
}

TEST_CASE(
    "four threads write event files to the same folder concurrently, each with a separate writer") {
  const sconce::test::TempDir folder;
  check_at_once({
      {"SummaryWriter",
       [&] {
         sconce::utils::tensorboard::SummaryWriter writer(folder.path());
         writer.add_scalar("loss", 1);
         writer.flush();
         return true;
       }},
      {"ScalarWriter",
       [] {
         const sconce::test::TempDir of_thread;
         sconce::ScalarWriter files(of_thread.path());
         files.add({.tag = "loss", .value = 1, .step = 1, .epoch = 1});
         files.flush();
         return sconce::test::names_in(of_thread.path()).size() == 2;
       }},
  });
  CHECK(sconce::test::names_in(folder.path()).size() == 8);
}
