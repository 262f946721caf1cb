// Tests the output of sconce-train --compile and the files that later runs reuse.

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "apps/run_train.hpp"
#include "catch.hpp"
#include "support/processes.hpp"
#include "support/temp_dir.hpp"
#include "support/wait_until.hpp"

namespace compiled_runs {

namespace fs = std::filesystem;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using sconce::test::contents;
using sconce::test::Process;
using sconce::test::Processes;
using sconce::test::Seconds;
using sconce::test::TempDir;

namespace {

// Starts a run on the CPU with the given additional flags and cache folder.
std::unique_ptr<Process> started(const std::vector<std::string>& flags, const fs::path& cache,
                                 sconce::test::Variables variables = {}) {
  std::vector<std::string> command = {SCONCE_BIN_DIR "/sconce-train",
                                      "--compile",
                                      "--model",
                                      "mlp",
                                      "--scheduler",
                                      "none",
                                      "--device",
                                      "cpu"};
  command.insert(command.end(), flags.begin(), flags.end());
  variables.insert({{"XDG_CACHE_HOME", cache.string()}, {"CUDA_VISIBLE_DEVICES", ""}});
  return std::make_unique<Process>(command, variables);
}

// Waits until the run has stored its chosen step variant in a file, and returns the file's path.
// Compilation can take minutes while other tests are using the cores.
fs::path wait_for_choice(Process& run, const fs::path& cache) {
  const auto steps = cache / "sconce/steps";
  const auto deadline = Process::Clock::now() + std::chrono::minutes(4);
  while (!run.ended() && Process::Clock::now() < deadline) {
    std::error_code error;
    for (const auto& step : fs::directory_iterator(steps, error)) {
      if (fs::exists(step.path() / "choice")) return step.path() / "choice";
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    run.poll();
  }
  FAIL("no form was kept; the run printed: " << run.err());
  return {};
}

int64_t count_lines(const std::string& text) {
  return std::count(text.begin(), text.end(), '\n');
}

// Returns the number of the epoch during or after which the run stopped.
int stopped_epoch(const std::string& out) {
  std::smatch found;
  REQUIRE(std::regex_search(out, found, std::regex("\nstopped (?:in|after) epoch (\\d+)/")));
  return std::stoi(found[1]);
}

}  // namespace

TEST_CASE("sconce-train --compile compiles the step and saves the faster variant in the checkpoint",
          "[.][slow]") {
  const TempDir folder;
  const auto cache = folder.path() / "cache";
  const std::string saved = (folder.path() / "saved").string();
  Processes runs;
  runs.push_back(started({"--epochs", "1000000", "--checkpoint", saved}, cache));
  const auto choice = wait_for_choice(*runs[0], cache);
  const std::string form = contents(choice);
  runs[0]->send(SIGUSR1);
  wait_for(runs, Seconds(60));
  REQUIRE(runs[0]->exit_code == 128 + SIGUSR1);
  CHECK_THAT(runs[0]->err(), ContainsSubstring("sconce-train: stopped by SIGUSR1; --resume"));

  fs::remove(choice);  // so that only the checkpoint stores the form
  const std::string epochs = std::to_string(stopped_epoch(runs[0]->out()) + 1);
  runs.push_back(started({"--epochs", epochs, "--checkpoint", saved, "--resume"}, cache));
  wait_for(runs, Seconds(60));
  CHECK(runs[1]->exit_code == 0);
  CHECK(runs[1]->err() == "");
  CHECK_THAT(runs[1]->out(),
             EndsWith(std::string("the step is ") + (form == "compiled" ? "" : "not ") +
                      "compiled, because an earlier run kept this variant\n"));
}

TEST_CASE("sconce-train --compile rejects a cache folder that is writable by other users") {
  const TempDir folder;
  const auto steps = folder.path() / "sconce/steps";
  fs::create_directories(steps);
  REQUIRE(::chmod(steps.c_str(), 0777) == 0);
  Processes runs;
  runs.push_back(started({"--epochs", "1"}, folder.path()));
  wait_for(runs, Seconds(60));
  CHECK(runs[0]->exit_code == 1);
  CHECK_THAT(
      runs[0]->err(),
      ContainsSubstring(steps.string() + ": expected a folder that only its owner can write to"));
  CHECK(count_lines(runs[0]->err()) == 1);
  CHECK_THAT(runs[0]->out(), !ContainsSubstring("epoch 1/"));
}

TEST_CASE("if Python fails, sconce-train --compile warns once and replays the step") {
  const TempDir folder;
  // Python cannot start without its standard library.
  const auto run =
      started({"--epochs", "1000000"}, folder.path(), {{"PYTHONHOME", "/no/such/folder"}});
  sconce::test::wait_until([&] { return run->err().ends_with('\n'); });
  const auto epochs = count_lines(run->out());
  sconce::test::wait_until([&] { return count_lines(run->out()) > epochs + 2; });
  CHECK_THAT(run->err(), ContainsSubstring("Warning: sconce::CapturedStep: the step is replayed "
                                           "instead of compiled: sconce::program::inductor: "));
  CHECK(count_lines(run->err()) == 1);
}

}  // namespace compiled_runs
