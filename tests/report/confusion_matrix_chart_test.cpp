#include "sconce/report/confusion_matrix_chart.hpp"

#include <torch/torch.h>

#include <algorithm>

#include "catch.hpp"
#include "sconce/training/trainer.hpp"
#include "support/error_of.hpp"
#include "support/points.hpp"
#include "support/require_gpu.hpp"
#include "support/sanitized.hpp"
#include "support/svg.hpp"
#include "support/temp_dir.hpp"
#include "support/warnings.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::ConfusionMatrixChart;
using sconce::ConfusionMatrixLogger;
using sconce::metrics::ConfusionMatrix;
using sconce::test::contents;
using sconce::test::error_of;
using sconce::test::svg_problem;
using sconce::test::texts_of;

namespace {

auto count(const std::vector<std::string>& texts, const std::string& text) {
  return std::count(texts.begin(), texts.end(), text);
}

// Runs a two-epoch fit with a confusion matrix among its metrics.
void fit_with(const std::filesystem::path& file, bool with_test = true,
              const std::string& name = "test", bool in_metrics = true) {
  const auto matrix =
      std::make_shared<ConfusionMatrix>(sconce::metrics::ConfusionMatrixOptions{.num_classes = 2});
  ConfusionMatrixLogger chart(file, matrix, {"left", "right"});
  auto model = sconce::test::net();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  auto data = sconce::test::data();
  data.test = {{name, data.test.value()}};
  if (!with_test) data.test.reset();
  data.callbacks = {&chart};
  sconce::Metrics metrics;
  if (in_metrics) metrics.emplace_back("confusion", matrix);
  const auto result = sconce::Trainer({.max_epochs = 2, .num_gpus = 0, .metrics = metrics})
                          .fit(model, optimizer, data);
  CHECK(result.epochs.size() == 2);
}

}  // namespace

TEST_CASE("a confusion matrix chart shows the counts, the class names, and a scale") {
  const auto counts = torch::tensor({{8, 2, 0}, {1, 9, 0}, {0, 0, 0}}, torch::kLong);
  const auto svg = ConfusionMatrixChart{.counts = counts, .class_names = {"a", "b", "c"}}.svg();
  CHECK(svg_problem(svg) == "");
  const auto texts = texts_of(svg);
  for (const char* text : {"Confusion matrix", "100%", "50%", "0%", "part of the row", "8", "2",
                           "1", "9", "predicted class", "true class"}) {
    INFO(text);
    CHECK(count(texts, text) == 1);
  }
  for (const char* name : {"a", "b", "c"}) CHECK(count(texts, name) == 2);
  CHECK(count(texts, "0") == 5);
}

TEST_CASE(
    "a confusion matrix chart accepts counts of any dtype and numbers the classes if they have no "
    "names") {
  for (const auto type : {torch::kLong, torch::kInt, torch::kFloat, torch::kDouble}) {
    const auto svg = ConfusionMatrixChart{.counts = torch::ones({2, 2}, type)}.svg();
    CHECK_THAT(svg, ContainsSubstring(">0</text>") && ContainsSubstring(">1</text>"));
  }
  const auto svg =
      ConfusionMatrixChart{.counts = torch::ones({4, 4}).t().slice(0, 1, 3).slice(1, 1, 3)}.svg();
  CHECK(svg_problem(svg) == "");
}

TEST_CASE("on a GPU, a confusion matrix is drawn the same way as on the CPU", "[gpu]") {
  sconce::test::require_gpu();
  const auto counts = torch::randint(50, {10, 10});
  CHECK(ConfusionMatrixChart{.counts = counts}.svg() ==
        ConfusionMatrixChart{.counts = counts.to(torch::kCUDA)}.svg());
}

TEST_CASE("a confusion matrix chart with 2 to 100 classes has a bounded file size") {
  torch::manual_seed(1);
  for (int64_t classes = 2; classes <= 100; classes += sconce::test::rounds(1, 7)) {
    const auto counts = torch::randint(1000, {classes, classes});
    const auto svg = ConfusionMatrixChart{.counts = counts}.svg();
    INFO(classes);
    CHECK(svg_problem(svg) == "");
    CHECK(svg.size() < 6'000 + 100 * static_cast<size_t>(classes * classes));
    CHECK(svg.size() < 300'000);
  }
}

TEST_CASE("a confusion matrix chart shows numbers in the cells only if all numbers fit") {
  const auto shown = [](int64_t classes, int64_t number) {
    const auto counts = torch::full({classes, classes}, number);
    return count(texts_of(ConfusionMatrixChart{.counts = counts}.svg()), std::to_string(number));
  };
  CHECK(shown(10, 10000) == 100);
  CHECK(shown(10, 12345678) == 0);
  CHECK(shown(100, 1000) == 0);
}

TEST_CASE(
    "class names in a confusion matrix chart are escaped, regardless of their length and "
    "contents") {
  const std::string wide(300, 'W');
  const auto svg =
      ConfusionMatrixChart{
          .title = "<&>", .counts = torch::ones({3, 3}), .class_names = {wide, "a<b>&\x01\xFF", ""}}
          .svg();
  CHECK(svg_problem(svg) == "");
  CHECK_THAT(svg, ContainsSubstring("<title>" + wide + "</title>W"));
  CHECK_THAT(svg, ContainsSubstring("a&lt;b&gt;&amp;\xEF\xBF\xBD\xEF\xBF\xBD</text>"));
}

TEST_CASE("ConfusionMatrixChart rejects invalid counts and class names") {
  const auto error = [](const torch::Tensor& counts, std::vector<std::string> names = {}) {
    return error_of([&] { ConfusionMatrixChart{.counts = counts, .class_names = names}.svg(); });
  };
  CHECK_THAT(error({}), ContainsSubstring("expected counts (C, C), got an undefined tensor"));
  CHECK_THAT(error(torch::ones({2, 3})), ContainsSubstring("expected counts (C, C), got [2, 3]"));
  CHECK_THAT(error(torch::ones({4})), ContainsSubstring("expected counts (C, C), got [4]"));
  CHECK_THAT(error(torch::ones({1, 1})), ContainsSubstring("expected 2 to 100 classes, got 1"));
  CHECK_THAT(error(torch::ones({101, 101})), ContainsSubstring("100 classes, got 101"));
  CHECK_THAT(error(torch::ones({2, 2}), {"a"}), ContainsSubstring("expected 2 class names or "));
  CHECK_THAT(error(-torch::ones({2, 2})), ContainsSubstring("expected non-negative counts"));
  CHECK_THAT(error(torch::full({2, 2}, NAN)), ContainsSubstring("expected non-negative counts"));
  CHECK_THAT(error_of([] { ConfusionMatrixLogger chart("x.svg", nullptr); }),
             ContainsSubstring("sconce::ConfusionMatrixLogger: expected a matrix, got null"));
  const auto matrix =
      std::make_shared<ConfusionMatrix>(sconce::metrics::ConfusionMatrixOptions{.num_classes = 2});
  CHECK_THAT(error_of([&] { ConfusionMatrixLogger chart("x.svg", matrix, {"a", "b", "c"}); }),
             ContainsSubstring(
                 "sconce::ConfusionMatrixLogger: expected 2 class names or an empty list, got 3"));
}

TEST_CASE("ConfusionMatrixLogger draws each test's confusion matrix and ignores training batches") {
  const sconce::test::TempDir folder;
  const auto file = folder.path() / "confusion.svg";
  fit_with(file, /*with_test=*/true, GENERATE("test", "val"));
  const auto svg = contents(file);
  CHECK(svg_problem(svg) == "");
  int rows = 0;
  for (const auto& text : texts_of(svg)) {
    if (text.find_first_not_of("0123456789") == text.npos) rows += std::stoi(text);
  }
  CHECK(count(texts_of(svg), "Confusion matrix, epoch 2") == 1);
  CHECK(rows == 40);  // from the test; training has 96
}

TEST_CASE("ConfusionMatrixLogger draws nothing if the fit has no test data") {
  const sconce::test::TempDir folder;
  fit_with(folder.path() / "confusion.svg", /*with_test=*/false);
  CHECK(sconce::test::names_in(folder.path()).empty());
}

TEST_CASE("ConfusionMatrixLogger warns once if its file cannot be written") {
  const sconce::test::TempDir folder;
  const auto file = folder.write("file", "") / "confusion.svg";  // the parent is a file
  const sconce::test::Warnings warnings;
  fit_with(file);
  REQUIRE(warnings.messages().size() == 1);
  CHECK_THAT(warnings.messages().front(), ContainsSubstring("sconce::ConfusionMatrixLogger: ") &&
                                              ContainsSubstring(file.string()));
}

TEST_CASE("ConfusionMatrixLogger warns once if its matrix is not among the fit's metrics") {
  const sconce::test::TempDir folder;
  const sconce::test::Warnings warnings;
  fit_with(folder.path() / "confusion.svg", /*with_test=*/true, "test", /*in_metrics=*/false);
  REQUIRE(warnings.messages().size() == 1);
  CHECK_THAT(warnings.messages().front(),
             ContainsSubstring("listed in TrainerOptions::metrics, got a matrix without counts"));
  CHECK(sconce::test::names_in(folder.path()).empty());
}
