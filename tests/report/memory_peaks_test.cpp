#include "sconce/report/memory_peaks.hpp"

#include <regex>
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
  std::vector<std::string> names;
  for (const auto& [name, bytes] : peaks.peaks()) names.push_back(name);
  CHECK(names == std::vector<std::string>{"data", "forward", "backward", "optimizer", "test"});
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
