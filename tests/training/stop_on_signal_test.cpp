#include "sconce/training/stop_on_signal.hpp"

#include <csignal>
#include <functional>
#include <optional>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "sconce/optim/adam.hpp"
#include "sconce/training/epoch_logger.hpp"
#include "sconce/training/model_checkpoint.hpp"
#include "support/fitting.hpp"
#include "support/temp_dir.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::Fit;
using sconce::StopOnSignal;
using sconce::test::data;
using sconce::test::Fitting;
using sconce::test::TempDir;

namespace {

int passed_on = 0;  // signals that reached the action set before the fit
void count_signal(int) {
  ++passed_on;
}

// Sets the action for a signal for the lifetime of this object, and resets `passed_on` to 0.
class SignalAction {
 public:
  SignalAction(int signal, void (*action)(int))
      : signal_(signal), before_(std::signal(signal, action)) {
    passed_on = 0;
  }
  ~SignalAction() { std::signal(signal_, before_); }
  SignalAction(const SignalAction&) = delete;
  SignalAction& operator=(const SignalAction&) = delete;

 private:
  int signal_;
  void (*before_)(int);
};

// Calls a function at each numbered point in a fit, and passes the point's number to the function.
struct AtPlaces : sconce::TrainerCallback {
  explicit AtPlaces(std::function<void(int)> f) : call(std::move(f)) {}
  void on_before_optimizer_step(Fit&) override { call(place++); }
  void on_after_optimizer_step(Fit&) override { call(place++); }
  void on_test_start(Fit&) override { call(place++); }
  void on_test_end(Fit&) override { call(place++); }
  void on_epoch_end(Fit&) override { call(place++); }
  void on_before_save(Fit&) override { call(place++); }
  void save(Fit&) override { call(place++); }
  std::string name() const override { return "places"; }
  // The state function is called while a checkpoint is being saved.
  std::optional<sconce::Stateful> state() override {
    return sconce::Stateful(
        [this] {
          call(place++);
          return c10::IValue(place);
        },
        [](const c10::IValue&) {});
  }
  std::function<void(int)> call;
  int place = 0;
};

struct InterruptedRun {
  sconce::FitResult result;
  std::vector<torch::Tensor> parameters;
  int places;
};

// Starts or resumes a training run, and raises the signal at point number `at` of the run.
InterruptedRun interrupted_run(const TempDir& folder, int signal, int at) {
  torch::manual_seed(3);
  StopOnSignal stopping;
  AtPlaces places([&](int place) {
    if (place == at) std::raise(signal);
  });
  sconce::Checkpoint checkpoint(folder.path(), {.resume = true});
  sconce::ModelCheckpoint saving(checkpoint, {.every_n_train_steps = 2});
  Fitting<sconce::optim::Adam> fitting({&stopping, &places, &saving}, data(40, 8), 0.01);
  auto result = fitting.fit({.max_epochs = 3});
  return {std::move(result), fitting.model->parameters(), places.place};
}

// Repeatedly stops a run with signals at random points until the run finishes, and compares it with
// an uninterrupted run.
void check_interrupted_runs(int count) {
  const SignalAction terminate(SIGTERM, count_signal), interrupt(SIGINT, count_signal),
      user(SIGUSR1, count_signal);
  const TempDir undisturbed;
  const InterruptedRun expected = interrupted_run(undisturbed, SIGTERM, -1);
  std::mt19937 chance(7);
  for (int number = 0; number < count; ++number) {
    const TempDir folder;
    int stops = 0;
    InterruptedRun last = {};
    do {
      const int signals[] = {SIGTERM, SIGINT, SIGUSR1};
      const int at = static_cast<int>(chance() % static_cast<unsigned>(expected.places / 2));
      CAPTURE(number, stops, at);
      last = interrupted_run(folder, signals[chance() % 3], stops < 3 ? at : -1);
      stops += last.result.stopped;
      if (last.result.stopped) CHECK_THAT(last.result.stop_reason, ContainsSubstring("arrived"));
    } while (last.result.stopped);
    CHECK(stops > 0);
    CHECK(last.result.epochs.size() == 3);
    for (size_t i = 0; i < expected.parameters.size(); ++i) {
      CHECK(last.parameters[i].equal(expected.parameters[i]));
    }
    for (size_t i = 0; i < 3; ++i) {
      CHECK(last.result.epochs[i].loss == expected.result.epochs[i].loss);
      CHECK(last.result.epochs[i].at("test_acc") == expected.result.epochs[i].at("test_acc"));
    }
  }
  CHECK(passed_on == 0);
}

}  // namespace

TEST_CASE("runs that StopOnSignal stops at random points resume bit for bit") {
  check_interrupted_runs(3);
}

TEST_CASE("100 runs that StopOnSignal stops at random points resume bit for bit", "[.][slow]") {
  check_interrupted_runs(100);
}

TEST_CASE(
    "a signal from another thread ends a fit after the current step and sets the stop reason") {
  const SignalAction user(SIGUSR1, count_signal);
  StopOnSignal stopping;
  std::ostringstream log;
  sconce::EpochLogger lines(log);
  AtPlaces places([](int place) {
    if (place == 4) std::thread([] { std::raise(SIGUSR1); }).join();
  });
  const auto result = Fitting<>({&stopping, &places, &lines}).fit({.max_epochs = 2});
  CHECK(result.stopped);
  CHECK(result.stop_reason == "SIGUSR1 arrived");
  CHECK(stopping.signal() == SIGUSR1);
  CHECK(log.str() == "stopped in epoch 1/2 after batch 3/6: SIGUSR1 arrived\n");
  CHECK(passed_on == 0);
}

TEST_CASE("StopOnSignal restores the signal actions after a fit and after a signal") {
  const SignalAction user(SIGUSR1, count_signal), interrupt(SIGINT, SIG_IGN);
  StopOnSignal stopping;
  int raised = 0;
  AtPlaces places([&](int place) {
    if (place == 1) std::raise(SIGINT);  // it was ignored before and stays ignored
    if (place < 3 || raised == 2) return;
    std::raise(SIGUSR1);
    ++raised;
  });
  Fitting<> fitting({&stopping, &places});
  fitting.fit();
  CHECK(raised == 2);
  CHECK(passed_on == 1);  // the second signal
  std::raise(SIGUSR1);
  CHECK(passed_on == 2);

  fitting.with.callbacks = {&stopping};
  CHECK_FALSE(fitting.fit().stopped);
  CHECK(stopping.signal() == 0);
}

TEST_CASE(
    "StopOnSignal restores the signal actions after an error and keeps actions set during a fit") {
  const SignalAction user(SIGUSR1, count_signal);
  StopOnSignal stopping;
  AtPlaces failing([](int) { throw std::runtime_error("failed"); });
  Fitting<> fitting({&stopping, &failing});
  CHECK_THROWS_WITH(fitting.fit(), "failed");
  std::raise(SIGUSR1);
  CHECK(passed_on == 1);

  AtPlaces setting([](int) { std::signal(SIGUSR1, SIG_IGN); });
  fitting.with.callbacks = {&stopping, &setting};
  fitting.fit();
  CHECK(std::signal(SIGUSR1, count_signal) == SIG_IGN);
}

TEST_CASE("a signal ends both a nested fit and its enclosing fit") {
  const SignalAction user(SIGUSR1, count_signal);
  StopOnSignal outer_stopping, stopping;
  sconce::FitResult inner;
  AtPlaces raising([](int place) {
    if (place == 1) std::raise(SIGUSR1);
  });
  AtPlaces fitting_inside([&](int place) {
    if (place == 1) inner = Fitting<>({&stopping, &raising}).fit();
  });
  const auto result = Fitting<>({&outer_stopping, &fitting_inside}).fit();
  CHECK(inner.stop_reason == "SIGUSR1 arrived");
  CHECK(result.stop_reason == "SIGUSR1 arrived");
  AtPlaces again([&](int place) {
    if (place == 1) Fitting<>({&outer_stopping}).fit();
  });
  CHECK_THROWS_WITH(Fitting<>({&outer_stopping, &again}).fit(),
                    ContainsSubstring("sconce::StopOnSignal: expected one fit at a time"));
}

TEST_CASE("StopOnSignal rejects signals that a process cannot handle") {
  CHECK_THROWS_WITH(StopOnSignal(std::vector<int>()),
                    ContainsSubstring("expected signals, got none"));
  CHECK_THROWS_WITH(StopOnSignal({SIGTERM, SIGKILL}), ContainsSubstring("got signal 9"));
  CHECK_THROWS_WITH(StopOnSignal({0}), ContainsSubstring("got signal 0"));
  CHECK_THROWS_WITH(StopOnSignal({100000}), ContainsSubstring("got signal 100000"));
}
