#include "sconce/report/profile.hpp"

#include <ATen/record_function.h>
#include <c10/util/ScopeExit.h>
#include <fcntl.h>
#include <torch/csrc/autograd/profiler_kineto.h>
#include <unistd.h>

#include <barrier>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
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

// Returns the ranges that sconce adds to a trace, keyed by name.
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

// Trains for two epochs on `rows` examples, with a batch size of 1 and a test after each epoch.
void fit(StepTrace& trace, int64_t rows, int accumulate = 1) {
  auto model = net();
  torch::optim::SGD sgd(model->parameters(), 0.1);
  Trainer({.max_epochs = 2, .num_gpus = 0, .accumulate_grad_batches = accumulate})
      .fit(model, sgd,
           {.train = Batches(points(rows), {.batch_size = 1}),
            .test = Batches(points(2), {.batch_size = 2}),
            .callbacks = {&trace}});
}

}  // namespace

TEST_CASE("a trace contains the requested number of steps and each step's named ranges") {
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
  CHECK(ranges.at("data").size() == 6);  // including the test's batch
  CHECK_FALSE(steps[0].holds(ranges.at("test")[0]));
}

TEST_CASE("a trace writes nothing to stderr, even on a machine without a GPU") {
  const TempDir folder;
  const auto log = folder.path() / "stderr";
  const int before = ::dup(STDERR_FILENO);
  const int file = ::open(log.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ::dup2(file, STDERR_FILENO);
  {
    const auto restore = c10::make_scope_exit([&] { ::dup2(before, STDERR_FILENO); });
    StepTrace trace(folder.path() / "trace.json", 2);
    fit(trace, 8);
  }
  ::close(file);
  ::close(before);
  CHECK(contents(log).empty());
  CHECK(fs::exists(folder.path() / "trace.json"));
}

TEST_CASE("if a fit runs fewer steps than a trace requests, the trace ends with the fit") {
  const TempDir folder;
  const auto file = folder.path() / "trace.json";
  StepTrace trace(file, 100);
  fit(trace, 4, /*accumulate=*/2);
  CHECK(named_ranges(file).at("step").size() == 3);
  const std::string text = contents(file);
  fit(trace, 4);
  CHECK(contents(file) == text);
}

TEST_CASE("tracing a one-step fit writes no file and warns") {
  const TempDir folder;
  const Warnings warnings;
  StepTrace trace(folder.path() / "trace.json", 1);
  auto model = net();
  torch::optim::SGD sgd(model->parameters(), 0.1);
  Trainer({.num_gpus = 0})
      .fit(model, sgd, {.train = Batches(points(2), {.batch_size = 2}), .callbacks = {&trace}});
  REQUIRE(warnings.messages().size() == 1);
  CHECK_THAT(warnings.messages()[0], StartsWith("sconce::StepTrace: expected a fit of at least 2"));
  fit(trace, 4);
  CHECK(warnings.messages().size() == 1);
  CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("a trace that cannot be written causes a warning, and the fit continues") {
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

TEST_CASE("a custom loop's profile is written only once") {
  const TempDir folder;
  const auto file = folder.path() / "trace.json";
  const auto x = torch::ones({2, 2}, torch::requires_grad());
  Profile profile;
  CHECK_THAT(error_of([] { Profile second; }),
             StartsWith("sconce::profiler::Profile: expected no other active profile"));
  {
    RECORD_USER_SCOPE("mine");
    torch::mm(x, x).sum().backward();
  }
  profile.export_chrome_trace(file);
  CHECK(named_ranges(file).at("mine").size() == 1);
  CHECK_THAT(contents(file), ContainsSubstring("aten::mm") && ContainsSubstring("MmBackward0"));
  CHECK_THAT(error_of([&] { profile.export_chrome_trace(file); }),
             ContainsSubstring("got a profile that has ended"));
  const Profile next;  // its records are never requested
}

TEST_CASE("exporting a profile does not use TMPDIR") {
  const TempDir folder;
  const TempDir temporary;
  const auto theirs =
      temporary.write("sconce-trace-" + std::to_string(::getpid()) + ".json", "theirs");
  const auto file = folder.path() / "trace.json";
  const auto export_with = [&](const fs::path& temporary_files) {
    const char* before = std::getenv("TMPDIR");
    const auto kept = before != nullptr ? std::optional<std::string>(before) : std::nullopt;
    ::setenv("TMPDIR", temporary_files.c_str(), 1);
    const auto put_back = c10::make_scope_exit(
        [&] { kept ? ::setenv("TMPDIR", kept->c_str(), 1) : ::unsetenv("TMPDIR"); });
    return error_of([&] {
      Profile profile;
      {
        RECORD_USER_SCOPE("mine");
      }
      profile.export_chrome_trace(file);
    });
  };
  CHECK(export_with(temporary.path()) == "nothing was thrown");
  CHECK(contents(theirs) == "theirs");
  CHECK(export_with(folder.path() / "none") == "nothing was thrown");
  CHECK(named_ranges(file).at("mine").size() == 1);
  CHECK(sconce::test::names_in(folder.path()) == std::vector<std::string>{"trace.json"});
}

TEST_CASE("exporting a profile to a missing folder throws an error that names the file") {
  const TempDir folder;
  const auto file = folder.path() / "none" / "trace.json";
  CHECK_THAT(error_of([&] { Profile().export_chrome_trace(file); }),
             StartsWith("sconce::profiler::Profile::export_chrome_trace: " + file.string()) &&
                 ContainsSubstring("No such file or directory"));
  const Profile next;
}

TEST_CASE("a second profile in another thread is rejected and does not affect the first") {
  const TempDir folder;
  const auto file = folder.path() / "trace.json";
  const auto in_another_thread = [](const auto& work) { std::thread(work).join(); };
  Profile first;
  std::string error;
  in_another_thread([&] { error = error_of([] { Profile second; }); });
  CHECK_THAT(error, StartsWith("sconce::profiler::Profile: expected no other active profile"));
  {
    RECORD_USER_SCOPE("mine");
  }
  first.export_chrome_trace(file);
  CHECK(named_ranges(file).at("mine").size() == 1);
  in_another_thread([&] {
    Profile next;
    {
      RECORD_USER_SCOPE("other");
    }
    next.export_chrome_trace(file);
  });
  CHECK(named_ranges(file).at("other").size() == 1);
}

TEST_CASE("if two threads start a profile at the same time, only one succeeds") {
  for (int round = 0; round < 5; ++round) {
    const TempDir folder;
    std::barrier both(2);
    std::atomic<int> refused = 0;
    const auto work = [&] {
      both.arrive_and_wait();
      std::optional<Profile> profile;
      const auto error = error_of([&] { profile.emplace(); });
      refused += static_cast<int>(!profile);
      both.arrive_and_wait();
      if (!profile) return;
      {
        RECORD_USER_SCOPE("mine");
      }
      profile->export_chrome_trace(folder.path() / "trace.json");
    };
    std::thread other(work);
    work();
    other.join();
    CHECK(refused == 1);
    CHECK(named_ranges(folder.path() / "trace.json").at("mine").size() == 1);
  }
}

TEST_CASE("Profile throws while a LibTorch profiler is running in another thread") {
  namespace libtorch = torch::autograd::profiler;
  std::barrier both(2);
  size_t events = 0;
  std::thread other([&] {
    const torch::profiler::impl::ProfilerConfig config(
        torch::profiler::impl::ProfilerState::KINETO);
    const std::set activities = {torch::profiler::impl::ActivityType::CPU};
    libtorch::prepareProfiler(config, activities);
    libtorch::enableProfiler(config, activities);
    both.arrive_and_wait();
    both.arrive_and_wait();
    torch::ones({2, 2}).mm(torch::ones({2, 2}));
    events = libtorch::disableProfiler()->events().size();
  });
  both.arrive_and_wait();
  const auto error = error_of([] { Profile ours; });
  both.arrive_and_wait();
  other.join();
  CHECK_THAT(error, StartsWith("sconce::profiler::Profile: expected no other active profile"));
  CHECK(events > 0);
  const Profile next;  // the rejected profile has left nothing behind
}

TEST_CASE(
    "a fit that runs while another profile is active continues without a trace, and a warning "
    "explains why") {
  const TempDir folder;
  const Warnings warnings;
  const auto file = folder.path() / "trace.json";
  const auto other = folder.path() / "other.json";
  Profile under_way;
  StepTrace trace(file, 2);
  fit(trace, 4);
  under_way.export_chrome_trace(other);
  REQUIRE(warnings.messages().size() == 1);
  CHECK_THAT(warnings.messages()[0],
             StartsWith("sconce::StepTrace: training continues without this report: "
                        "sconce::profiler::Profile: expected no other active profile"));
  CHECK(sconce::test::names_in(folder.path()) == std::vector<std::string>{"other.json"});
  CHECK(named_ranges(other).at("step").size() == 8);
}

TEST_CASE(
    "if two traces run in the same fit, only the first is written, and a warning reports that the "
    "second is not") {
  const TempDir folder;
  const Warnings warnings;
  const auto file = folder.path() / "trace.json";
  StepTrace first(file, 2);
  StepTrace second(folder.path() / "second.json", 2);
  auto model = net();
  torch::optim::SGD sgd(model->parameters(), 0.1);
  Trainer({.num_gpus = 0})
      .fit(model, sgd,
           {.train = Batches(points(8), {.batch_size = 2}), .callbacks = {&first, &second}});
  CHECK(warnings.messages().size() == 1);
  CHECK(sconce::test::names_in(folder.path()) == std::vector<std::string>{"trace.json"});
  CHECK(named_ranges(file).at("step").size() == 2);
}

TEST_CASE("a trace ends with the fit that started it, even if a nested fit ends earlier") {
  const TempDir folder;
  const auto file = folder.path() / "trace.json";
  StepTrace trace(file, 100);
  struct Nested : sconce::TrainerCallback {
    explicit Nested(StepTrace& shared) : trace(shared) {}
    void on_epoch_end(sconce::Fit& outer) override {
      if (outer.epochs.size() == 1) fit(trace, 4);
    }
    StepTrace& trace;
  } nested(trace);
  auto model = net();
  torch::optim::SGD sgd(model->parameters(), 0.1);
  Trainer({.max_epochs = 2, .num_gpus = 0})
      .fit(model, sgd,
           {.train = Batches(points(6), {.batch_size = 2}), .callbacks = {&trace, &nested}});
  CHECK(named_ranges(file).at("step").size() == 5 + 8);  // includes the steps of the nested fit
}
