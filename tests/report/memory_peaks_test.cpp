#include "sconce/report/memory_peaks.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <sstream>

#include "catch.hpp"
#include "sconce/training/trainer.hpp"
#include "support/points.hpp"
#include "support/require_gpu.hpp"

using Catch::Matchers::Matches;
using sconce::MemoryPeaks;
using sconce::Trainer;
using sconce::data::Batches;
using sconce::test::points;

namespace {

constexpr int64_t MiB = 1 << 20;

// Takes memory in the forward of two rows, and gives it back at once.
struct Greedy : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& x) {
    const auto options = torch::device(x.device()).dtype(torch::kByte);
    if (x.size(0) == 2) torch::ones({256 * MiB}, options);
    return linear->forward(x);
  }
  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(2, 2));
};

// Fits batches of 1 or 2 rows, of which 2 take much memory, with a test of 1 or 2 rows.
void fit_rows(int64_t train, int64_t test, std::vector<sconce::TrainerCallback*> callbacks,
              int max_epochs = 1) {
  Greedy model;
  torch::optim::SGD sgd(model.parameters(), 0.1);
  Trainer({.max_epochs = max_epochs, .num_gpus = 0})
      .fit(model, sgd,
           {.train = Batches(points(train), {.batch_size = train}),
            .test = Batches(points(test), {.batch_size = test}),
            .callbacks = std::move(callbacks)});
}

// Fits within a fit, after each of its epochs.
struct Nested : sconce::TrainerCallback {
  explicit Nested(std::function<void()> inner_fit) : inner(std::move(inner_fit)) {}
  void on_epoch_end(sconce::Fit&) override { inner(); }
  std::function<void()> inner;
};

std::vector<std::string> phases_of(const MemoryPeaks& peaks) {
  std::vector<std::string> names;
  for (const auto& [name, bytes] : peaks.peaks()) names.push_back(name);
  return names;
}

const std::vector<std::string> all_phases = {"data", "forward", "backward", "optimizer", "test"};

// Whether the peak of a phase is that of two rows.
bool is_high(const MemoryPeaks& peaks, size_t phase) {
  return peaks.peaks().at(phase).second - peaks.peaks().at(0).second > 240 * MiB;
}

void check_peaks(torch::Device device) {
  std::ostringstream out;
  MemoryPeaks peaks(out);
  Greedy model;
  torch::optim::SGD sgd(model.parameters(), 0.1);
  const auto fit = [&] {
    Trainer({.device = device})
        .fit(model, sgd,
             {.train = Batches(points(4), {.batch_size = 2}),
              .test = Batches(points(3), {.batch_size = 2}),
              .callbacks = {&peaks}});
  };
  fit();
  CHECK(phases_of(peaks) == all_phases);
  const auto of = [&](size_t phase) { return peaks.peaks()[phase].second; };
  CHECK(of(1) - of(0) > 240 * MiB);
  CHECK(of(1) - of(2) > 240 * MiB);
  CHECK(of(1) - of(3) > 240 * MiB);
  CHECK(of(4) - of(3) > 240 * MiB);
  CHECK_THAT(out.str(), Matches("peak memory on " + device.str() +
                                ": data [0-9.]+ MiB, forward [0-9.]+ MiB, backward [0-9.]+ MiB, "
                                "optimizer [0-9.]+ MiB, test [0-9.]+ MiB\n"));
  out.str("");
  fit();
  CHECK(peaks.peaks().size() == 5);
  CHECK_FALSE(out.str().empty());
  // After the fit nobody listens any more.
  const auto before = peaks.peaks();
  Trainer({.device = device}).fit(model, sgd, {.train = Batches(points(40), {.batch_size = 40})});
  CHECK(peaks.peaks() == before);
}

}  // namespace

TEST_CASE("each phase of a fit has its peak of memory", "[alone]") {
  check_peaks(torch::kCPU);
}

TEST_CASE("each phase of a fit has its peak of a GPU's memory", "[gpu]") {
  sconce::test::require_gpu();
  check_peaks(torch::Device(torch::kCUDA, 0));
}

TEST_CASE("two measurements of the memory in one fit find the same") {
  std::ostringstream out;
  MemoryPeaks first(out);
  MemoryPeaks second(out);
  fit_rows(2, 1, {&first, &second});
  for (const auto* peaks : {&first, &second}) {
    CHECK(phases_of(*peaks) == all_phases);
    CHECK(is_high(*peaks, 1));
    CHECK_FALSE(is_high(*peaks, 3));
    CHECK_FALSE(is_high(*peaks, 4));
  }
}

TEST_CASE("the memory of a fit and of one within it are measured each on its own") {
  std::ostringstream out;
  MemoryPeaks outer(out);
  std::optional<MemoryPeaks> inner;
  Nested nested([&] {
    inner.emplace(out);
    fit_rows(1, 1, {&*inner});
    CHECK(phases_of(*inner) == all_phases);
    CHECK_FALSE(is_high(*inner, 1));
    inner.reset();  // nothing may read it any more
  });
  fit_rows(1, 2, {&outer, &nested}, /*max_epochs=*/2);
  CHECK(phases_of(outer) == all_phases);
  CHECK_FALSE(is_high(outer, 1));
  CHECK(is_high(outer, 4));
}

TEST_CASE("one measurement of the memory in a fit and in one within it has the peaks of both") {
  std::ostringstream out;
  {
    MemoryPeaks peaks(out);
    Nested nested([&] { fit_rows(2, 1, {&peaks}); });
    fit_rows(1, 1, {&peaks, &nested}, /*max_epochs=*/2);
    CHECK(phases_of(peaks) == all_phases);
    CHECK(is_high(peaks, 1));
    CHECK_FALSE(is_high(peaks, 4));
    CHECK(std::ranges::count(out.str(), '\n') == 1);
  }
  out.str("");
  fit_rows(1, 1, {});  // after which nobody listens
  CHECK(out.str().empty());
}

TEST_CASE("a phase keeps its peak where a fit within it measures too") {
  // Takes much memory and gives it back, and then fits.
  struct Outer : torch::nn::Module {
    torch::Tensor forward(const torch::Tensor& x) {
      torch::ones({256 * MiB}, torch::kByte);
      std::ostringstream out;
      MemoryPeaks inner(out);
      if (is_training()) fit_rows(1, 1, {&inner});
      return linear->forward(x);
    }
    torch::nn::Linear linear = register_module("linear", torch::nn::Linear(2, 2));
  };
  Outer model;
  torch::optim::SGD sgd(model.parameters(), 0.1);
  std::ostringstream out;
  MemoryPeaks peaks(out);
  Trainer({.num_gpus = 0})
      .fit(model, sgd, {.train = Batches(points(4), {.batch_size = 4}), .callbacks = {&peaks}});
  CHECK(phases_of(peaks) == std::vector<std::string>{"data", "forward", "backward", "optimizer"});
  CHECK(is_high(peaks, 1));
}
