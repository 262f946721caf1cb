#include "sconce/report/profile.hpp"

#include <ATen/record_function.h>

#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "catch.hpp"
#include "sconce/training/trainer.hpp"
#include "support/error_of.hpp"
#include "support/points.hpp"
#include "support/temp_dir.hpp"
#include "support/warnings.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using sconce::StepTrace;
using sconce::Trainer;
using sconce::data::Batches;
using sconce::profiler::Profile;
using sconce::test::contents;
using sconce::test::error_of;
using sconce::test::net;
using sconce::test::points;
using sconce::test::TempDir;
using sconce::test::Warnings;

namespace {

namespace fs = std::filesystem;

struct Range {
  double begin = 0;
  double end = 0;
  bool holds(const Range& other) const { return begin <= other.begin && other.end <= end; }
};

// The ranges of a trace that have names of ours, by these.
std::map<std::string, std::vector<Range>> named_ranges(const fs::path& file) {
  const auto trace = nlohmann::json::parse(contents(file));
  std::map<std::string, std::vector<Range>> ranges;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.value("cat", "") != "user_annotation") continue;
    const double begin = event.at("ts");
    ranges[event.at("name")].push_back({begin, begin + event.at("dur").get<double>()});
  }
  return ranges;
}

// Fits `rows` rows, one a batch, for two epochs with a test after each.
void fit(StepTrace& trace, int64_t rows, int accumulate = 1) {
  auto model = net();
  torch::optim::SGD sgd(model->parameters(), 0.1);
  Trainer({.max_epochs = 2, .accumulate_grad_batches = accumulate})
      .fit(model, sgd,
           {.train = Batches(points(rows), {.batch_size = 1}),
            .test = Batches(points(2), {.batch_size = 2}),
            .callbacks = {&trace}});
}

}  // namespace

TEST_CASE("a trace has the steps asked for, and in each its ranges") {
  const TempDir folder;
  const auto file = folder.path() / "trace.json";
  StepTrace trace(file, 5);
  fit(trace, 4);
  const auto ranges = named_ranges(file);
  const auto& steps = ranges.at("step");
  CHECK(steps.size() == 5);
  CHECK(ranges.at("test").size() == 1);
  for (const char* name : {"data", "forward", "backward", "optimizer"}) {
    INFO(name);
    const auto& parts = ranges.at(name);
    for (const auto& step : steps) {
      CHECK(std::count_if(parts.begin(), parts.end(),
                          [&](const Range& part) { return step.holds(part); }) == 1);
    }
  }
  CHECK(ranges.at("data").size() == 6);  // and the test's
  CHECK_FALSE(steps[0].holds(ranges.at("test")[0]));
}

TEST_CASE("a trace of more steps than a fit has ends with the fit") {
  const TempDir folder;
  const auto file = folder.path() / "trace.json";
  StepTrace trace(file, 100);
  fit(trace, 4, /*accumulate=*/2);
  CHECK(named_ranges(file).at("step").size() == 3);
  const std::string text = contents(file);
  fit(trace, 4);
  CHECK(contents(file) == text);
}

TEST_CASE("a fit of one step leaves no trace, and says so") {
  const TempDir folder;
  const Warnings warnings;
  StepTrace trace(folder.path() / "trace.json", 1);
  auto model = net();
  torch::optim::SGD sgd(model->parameters(), 0.1);
  Trainer({}).fit(model, sgd,
                  {.train = Batches(points(2), {.batch_size = 2}), .callbacks = {&trace}});
  REQUIRE(warnings.messages().size() == 1);
  CHECK_THAT(warnings.messages()[0], StartsWith("sconce::StepTrace: expected a fit of at least 2"));
  CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("a trace that cannot be written is warned of, and the fit goes on") {
  const TempDir folder;
  const Warnings warnings;
  const auto file = folder.path() / "missing" / "trace.json";
  StepTrace trace(file, 1);
  fit(trace, 4);
  REQUIRE(warnings.messages().size() == 1);
  CHECK_THAT(warnings.messages()[0],
             StartsWith("sconce::StepTrace: ") && ContainsSubstring(file.string()));
  CHECK(error_of([&] { StepTrace(file, 0); }) ==
        "sconce::StepTrace: expected at least 1 step, got 0");
}

TEST_CASE("a profile of a loop of one's own is written once") {
  const TempDir folder;
  const auto file = folder.path() / "trace.json";
  const auto x = torch::ones({2, 2}, torch::requires_grad());
  Profile profile;
  CHECK_THAT(error_of([] { Profile second; }),
             StartsWith("sconce::profiler::Profile: expected no other profile under way"));
  {
    RECORD_USER_SCOPE("mine");
    torch::mm(x, x).sum().backward();
  }
  profile.export_chrome_trace(file);
  CHECK(named_ranges(file).at("mine").size() == 1);
  CHECK_THAT(contents(file), ContainsSubstring("aten::mm") && ContainsSubstring("MmBackward0"));
  CHECK_THAT(error_of([&] { profile.export_chrome_trace(file); }),
             ContainsSubstring("got one that is over"));
  const Profile next;  // whose records nobody asks for
}
