#include "sconce/report/progress_bar.hpp"

#include <pty.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "sconce/training/trainer.hpp"
#include "support/fit_by_hand.hpp"
#include "support/host_reads.hpp"
#include "support/points.hpp"
#include "support/processes.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::Matches;
using Catch::Matchers::StartsWith;
using sconce::ProgressBar;
using sconce::TerminalBar;
using std::chrono::milliseconds;

namespace {

// Sets an environment variable and restores it at the end of the scope.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    value != nullptr ? ::setenv(name, value, 1) : ::unsetenv(name);
  }
  ~Variable() { old_ ? ::setenv(name_, old_->c_str(), 1) : ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_ = {};
};

// A pseudoterminal whose reader receives every byte unchanged.
class Terminal {
 public:
  explicit Terminal(int columns) {
    termios raw = {};
    ::cfmakeraw(&raw);
    winsize size = {24, static_cast<unsigned short>(columns), 0, 0};
    REQUIRE(::openpty(&reader_, &writer_, nullptr, &raw, &size) == 0);
    out_.open(::ttyname(writer_));
    REQUIRE(out_.good());
  }
  ~Terminal() {
    out_.close();
    ::close(writer_);
    ::close(reader_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  std::ostream& out() { return out_; }
  int file_descriptor() const { return writer_; }
  void resize(int columns) {
    winsize size = {24, static_cast<unsigned short>(columns), 0, 0};
    REQUIRE(::ioctl(writer_, TIOCSWINSZ, &size) == 0);
  }

  // Returns the text written since the previous call.
  std::string read() {
    out_ << '\x04' << std::flush;
    std::string text;
    char c = 0;
    while (::read(reader_, &c, 1) == 1 && c != '\x04') text += c;
    return text;
  }

 private:
  int reader_ = -1;
  int writer_ = -1;
  std::ofstream out_;
};

// Returns the lines that a terminal displays after `text` is written to it.
std::vector<std::string> screen(const std::string& text) {
  std::vector<std::string> lines(1);
  size_t column = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r') {
      column = 0;
    } else if (text[i] == '\n') {
      lines.emplace_back();
      column = 0;
    } else if (text.substr(i, 3) == "\x1b[K") {
      lines.back().resize(column);
      i += 2;
    } else {
      lines.back().resize(std::max(lines.back().size(), column + 1), ' ');
      lines.back()[column++] = text[i];
    }
  }
  for (auto& line : lines) line.resize(line.find_last_not_of(' ') + 1);
  return lines;
}

// A clock that advances only when a test sets it.
struct Clock {
  std::chrono::steady_clock::time_point now = {};
  auto reader() {
    return [this] { return now; };
  }
};

// A running fit without a trainer.
struct ByHand : sconce::test::NetFitByHand {
  ByHand() : NetFitByHand(/*max_epochs=*/3, /*batches=*/10, {.enabled = false}) {}

  void step(sconce::TrainerCallback& callback) {
    ++fit.batch;
    fit.loss = torch::tensor(0.25);
    callback.on_after_optimizer_step(fit);
  }
  void end_epoch(sconce::TrainerCallback& callback) {
    fit.batch = 0;
    fit.epochs.push_back({.epoch = static_cast<int>(fit.epochs.size()) + 1,
                          .loss = 0.5,
                          .metrics = {{"train_acc", 0.75}},
                          .examples = 20,
                          .seconds = 2});
    callback.on_epoch_end(fit);
  }
  void run(sconce::TrainerCallback& callback) {
    callback.on_fit_start(fit);
    while (static_cast<int>(fit.epochs.size()) < fit.max_epochs) {
      for (int i = 0; i < fit.num_training_batches; ++i) step(callback);
      end_epoch(callback);
    }
    callback.on_fit_end(fit);
  }
};

std::string plain_lines() {
  std::ostringstream out;
  sconce::EpochLogger lines(out);
  ByHand().run(lines);
  return out.str();
}

}  // namespace

TEST_CASE(
    "the progress bar shows the epoch, batches, rate, remaining time, and the last epoch's "
    "values") {
  const Variable term("TERM", "xterm");
  Terminal terminal(120);
  Clock clock;
  ProgressBar bar(terminal.out(), {.bar = {.file_descriptor = terminal.file_descriptor(),
                                           .clock = clock.reader()}});
  ByHand by;
  bar.on_fit_start(by.fit);
  by.end_epoch(bar);
  clock.now += milliseconds(500);
  by.step(bar);
  const auto lines = screen(terminal.read());
  REQUIRE(lines.size() == 2);
  CHECK(lines[0] == "epoch 1/3: loss 0.500, train acc 0.750");
  CHECK_THAT(lines[1], Matches("epoch 2/3 \\[#+\\.+\\] 1/10 2\\.0/s 0:05 left "
                               "loss 0\\.500, train acc 0\\.750"));
  bar.on_fit_end(by.fit);
  CHECK(screen(terminal.read()).back().empty());
}

TEST_CASE("the progress bar fits the terminal's width, even after the terminal is resized") {
  const Variable term("TERM", "xterm");
  const Variable columns("COLUMNS", "30");
  Terminal terminal(20);
  Clock clock;
  TerminalBar bar(terminal.out(),
                  {.file_descriptor = terminal.file_descriptor(), .clock = clock.reader()});
  REQUIRE(bar.is_drawn());
  bar.begin("epoch 1/3", 1000);
  for (const int width : {1, 2, 8, 12, 20, 40, 80, 200, 20, 0}) {
    terminal.resize(width);
    clock.now += milliseconds(1000);
    bar.update(10, "loss 0.500, train acc 0.750, test acc 0.250");
    const auto lines = screen(terminal.read());
    INFO(width << ": " << lines.back());
    CHECK(lines.size() == 1);
    CHECK(lines.back().size() < static_cast<size_t>(width > 0 ? width : 30));
    if (width >= 20) CHECK_THAT(lines.back(), ContainsSubstring("10/1000"));
    if (width == 200) CHECK_THAT(lines.back(), ContainsSubstring("test acc 0.250"));
  }
}

TEST_CASE("the progress bar is drawn at most ten times per second") {
  const Variable term("TERM", "xterm");
  Terminal terminal(80);
  Clock clock;
  TerminalBar bar(terminal.out(),
                  {.file_descriptor = terminal.file_descriptor(), .clock = clock.reader()});
  bar.begin("steps", 2000);
  int texts = 0;
  for (int i = 0; i < 2000; ++i, clock.now += milliseconds(1)) {
    bar.update(i, [&texts] { return std::to_string(++texts); });
  }
  CHECK(texts == 20);
}

TEST_CASE("if the progress bar cannot be drawn, only plain lines are written") {
  Terminal terminal(80);
  const std::string plain = plain_lines();
  const auto lines_with = [&](const char* term, int file_descriptor) {
    const Variable variable("TERM", term);
    ProgressBar bar(terminal.out(), {.bar = {.file_descriptor = file_descriptor}});
    ByHand().run(bar);
    return terminal.read();
  };
  CHECK(lines_with("dumb", terminal.file_descriptor()) == plain);
  CHECK(lines_with("", terminal.file_descriptor()) == plain);
  CHECK(lines_with(nullptr, terminal.file_descriptor()) == plain);
  CHECK(lines_with("xterm", -1) == plain);
  CHECK(lines_with("xterm", terminal.file_descriptor()) != plain);

  const Variable variable("TERM", "xterm");
  std::ostringstream out;
  ProgressBar to_text(out);
  ByHand().run(to_text);
  CHECK(out.str() == plain);
  std::ostringstream no_terminal;
  auto* const buffer = std::cout.rdbuf(no_terminal.rdbuf());
  const bool is_drawn = TerminalBar(std::cout).is_drawn();
  std::cout.rdbuf(buffer);
  CHECK_FALSE(is_drawn);
  CHECK(TerminalBar(std::cout).is_drawn() == (::isatty(STDOUT_FILENO) == 1));
  CHECK(TerminalBar(std::cerr).is_drawn() == (::isatty(STDERR_FILENO) == 1));
}

TEST_CASE("on a terminal, the progress bar disappears at the end and the plain lines remain") {
  const Variable term("TERM", "xterm");
  Terminal terminal(80);
  ProgressBar bar(terminal.out(), {.bar = {.file_descriptor = terminal.file_descriptor()}});
  ByHand().run(bar);
  std::string shown;
  for (const auto& line : screen(terminal.read())) shown += line + '\n';
  CHECK(shown == plain_lines() + '\n');
}

TEST_CASE("if a fit stops early, the progress bar's last line reports the reason") {
  const Variable term("TERM", "xterm");
  Terminal terminal(80);
  ProgressBar bar(terminal.out(), {.bar = {.file_descriptor = terminal.file_descriptor()}});
  ByHand by;
  bar.on_fit_start(by.fit);
  for (int i = 0; i < 3; ++i) by.step(bar);
  by.fit.stop("the loss is nan");
  bar.on_fit_end(by.fit);
  const std::vector<std::string> expected = {
      "stopped in epoch 1/3 after batch 3/10: the loss is nan", ""};
  CHECK(screen(terminal.read()) == expected);
}

TEST_CASE("the progress bar disappears when the fit throws, and later output takes its place") {
  const Variable term("TERM", "xterm");
  Terminal terminal(80);
  ProgressBar bar(terminal.out(), {.bar = {.file_descriptor = terminal.file_descriptor()}});
  struct Thrower : sconce::TrainerCallback {
    void on_after_optimizer_step(sconce::Fit&) override { throw std::runtime_error("enough"); }
  } thrower;
  auto model = sconce::test::net();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  auto with = sconce::test::data();
  with.callbacks = {&bar, &thrower};
  CHECK_THROWS_WITH(sconce::Trainer({.num_gpus = 0}).fit(model, optimizer, with),
                    ContainsSubstring("enough"));
  CHECK(screen(terminal.read()).back().empty());

  TerminalBar steps(terminal.out(), {.file_descriptor = terminal.file_descriptor()});
  steps.begin("steps", 10);
  steps.update(1);
  terminal.out() << "Warning: it is warm\n";
  CHECK_THAT(screen(terminal.read())[0], StartsWith("Warning: it is warm"));
}

TEST_CASE(
    "the progress bar reads the loss at most twice per second, and only if live_loss is set") {
  const Variable term("TERM", "xterm");
  const bool live_loss = GENERATE(false, true);
  Terminal terminal(80);
  Clock clock;
  ProgressBar bar(terminal.out(), {.live_loss = live_loss,
                                   .bar = {.file_descriptor = terminal.file_descriptor(),
                                           .clock = clock.reader()}});
  ByHand by;
  by.fit.num_training_batches = 3000;
  bar.on_fit_start(by.fit);
  by.fit.loss = torch::tensor(0.25);
  const sconce::test::HostReads reads;
  std::string text;
  for (int i = 0; i < 3000; ++i, clock.now += milliseconds(1)) {
    ++by.fit.batch;
    bar.on_after_optimizer_step(by.fit);
    if (i % 100 == 0) text += terminal.read();
  }
  CHECK(reads.count() == (live_loss ? 6 : 0));
  CHECK((text.find("batch loss 0.250") != std::string::npos) == live_loss);
}

TEST_CASE("only rank 0 draws the progress bar, prints progress lines, and logs scalars",
          "[distributed]") {
  const Variable term("TERM", "xterm");
  const sconce::test::TempDir folder;
  auto ranks = sconce::test::start_ranks(
      2, {SCONCE_WORKER, "report", "backend=gloo", "out=" + folder.path().string()});
  wait_for(ranks, sconce::test::Seconds(60));
  for (const auto& rank : ranks) {
    INFO(rank->err());
    REQUIRE(rank->exit_code == 0);
  }
  CHECK(ranks[1]->out().empty());
  CHECK_THAT(ranks[0]->out(),
             ContainsSubstring("\repoch 1/1 [") && ContainsSubstring("epoch 1/1: loss "));
  CHECK(std::filesystem::exists(folder.path() / "0/scalars.csv"));
  CHECK_FALSE(std::filesystem::exists(folder.path() / "1"));
}

TEST_CASE(
    "in a resumed epoch, the batch rate counts only the batches run since the fit was resumed") {
  const Variable term("TERM", "xterm");
  Terminal terminal(80);
  Clock clock;
  TerminalBar bar(terminal.out(),
                  {.file_descriptor = terminal.file_descriptor(), .clock = clock.reader()});
  bar.begin("epoch 2/3", 100, 50);
  clock.now += milliseconds(1000);
  bar.update(60);
  CHECK_THAT(screen(terminal.read())[0], ContainsSubstring("60/100 10.0/s 0:04 left"));
}
