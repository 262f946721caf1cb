#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>

#include "sconce/training/epoch_lines.hpp"

namespace sconce {

/// How a bar is drawn.
struct TerminalBarOptions {
  /// File descriptor of the terminal that the stream writes to, or -1 if there is none. Without a
  /// value it is known for `std::cout`, `std::cerr` and `std::clog`, and there is none for others.
  std::optional<int> file_descriptor = {};
  /// Returns the time. Another function makes the drawing repeatable.
  std::function<std::chrono::steady_clock::time_point()> clock = std::chrono::steady_clock::now;
};

/// A line at the cursor of a terminal that shows how far a loop is: title, bar, steps done and
/// their number, steps per second, time left, and a text. It is drawn anew at most ten times a
/// second, as wide as the terminal is then (else as COLUMNS says, else 80), and leaves out what has
/// no room. Where the stream is no terminal, or TERM is "dumb" or not set, nothing is drawn. What
/// others write to the terminal begins at the bar's place; where it is the shorter one, the bar's
/// end stays beside it. Python: `tqdm`.
class TerminalBar {
 public:
  /// The stream must outlive this object.
  explicit TerminalBar(std::ostream& out, TerminalBarOptions options = {});
  ~TerminalBar() { clear(); }  ///< Clears the line.
  TerminalBar(const TerminalBar&) = delete;
  TerminalBar& operator=(const TerminalBar&) = delete;

  /// Whether the stream writes to a terminal on which the bar is drawn.
  bool is_drawn() const { return file_descriptor_ >= 0; }

  /// Begins a loop of `total` steps, of which `done` are done already, at this time.
  void begin(std::string title, int64_t total, int64_t done = 0);
  /// Draws the line if its time has come.
  void update(int64_t done, const std::string& text = {});
  /// Draws the line if its time has come, with a text that is computed only then.
  void update(int64_t done, const std::function<std::string()>& text);
  /// Empties the line, at which the next output then begins.
  void clear();

 private:
  using Time = std::chrono::steady_clock::time_point;

  std::string line(int64_t done, double seconds, std::string text) const;

  std::ostream& out_;
  int file_descriptor_;
  std::function<Time()> clock_;
  std::string title_ = {};
  int64_t total_ = 0;
  int64_t done_before_ = 0;
  Time begin_ = {};
  std::optional<Time> last_drawn_ = {};
  bool is_line_there_ = false;
};

/// How the bar of a fit is drawn.
struct ProgressBarOptions {
  /// Shows the loss of the last batch too, for which the host waits for the device at most twice a
  /// second; otherwise never.
  bool live_loss = false;
  TerminalBarOptions bar = {};
};

/// Writes `EpochLines`, and below them draws the epoch under way on a terminal, with loss and
/// metrics of the last one; on rank 0. A fit's end, by an exception too, clears the line.
/// Python: `TQDMProgressBar` of Lightning.
class ProgressBar : public TrainerCallback {
 public:
  /// The stream must outlive this object.
  explicit ProgressBar(std::ostream& out, ProgressBarOptions options = {});
  void on_fit_begin(Fit& fit) override;
  void on_fit_end(Fit& fit) override;
  void on_after_step(Fit& fit) override;
  void on_epoch_end(Fit& fit) override;

 private:
  bool is_drawn(const Fit& fit) const;
  void begin_epoch(const Fit& fit);
  std::string text(const Fit& fit);

  EpochLines lines_;
  bool live_loss_;
  std::function<std::chrono::steady_clock::time_point()> clock_;
  TerminalBar bar_;
  std::string last_epoch_ = {};
  std::string last_loss_ = {};
  std::optional<std::chrono::steady_clock::time_point> last_read_ = {};
};

}  // namespace sconce
