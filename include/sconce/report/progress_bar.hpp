#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>

#include "sconce/training/epoch_logger.hpp"

namespace sconce {

/// Options for `TerminalBar`.
struct TerminalBarOptions {
  /// File descriptor of the terminal to which the stream writes, or -1 if the stream does not write
  /// to a terminal. Defaults to the stream's file descriptor for `std::cout`, `std::cerr`, and
  /// `std::clog`, and to -1 for any other stream.
  std::optional<int> file_descriptor = {};
  /// Function that returns the current time. Tests replace this function with a fake clock.
  std::function<std::chrono::steady_clock::time_point()> clock = std::chrono::steady_clock::now;
};

/// Draws a progress bar on a terminal. The line shows a title, the bar, the number of completed
/// steps, the total number of steps, the steps per second, the remaining time, and the given text.
/// The line is redrawn at most ten times per second. The line is as wide as the terminal. If the
/// terminal width is unknown, the line width is the value of COLUMNS, or 80 if COLUMNS is not set.
/// Parts of the line that do not fit are omitted. Nothing is drawn if the stream is not a terminal,
/// or if TERM is unset or "dumb". Other terminal output starts in the first column of the bar's
/// line. If this output is shorter than the bar, the rest of the bar remains visible.
/// Python: `tqdm`.
class TerminalBar {
 public:
  /// Constructs a bar that is drawn on `out`, which must outlive this object.
  explicit TerminalBar(std::ostream& out, TerminalBarOptions options = {});
  ~TerminalBar() { clear(); }  ///< Clears the line.
  TerminalBar(const TerminalBar&) = delete;
  TerminalBar& operator=(const TerminalBar&) = delete;

  /// Returns whether the bar is drawn.
  bool is_drawn() const { return file_descriptor_ >= 0; }

  /// Starts the bar and the clock for a loop of `total` steps. `done` is the number of steps
  /// already completed.
  void begin(std::string title, int64_t total, int64_t done = 0);
  /// Draws the bar if at least a tenth of a second has passed since the bar was last drawn.
  void update(int64_t done, const std::string& text = {});
  /// Calls `text` and draws the bar, but only if at least a tenth of a second has passed since the
  /// bar was last drawn.
  void update(int64_t done, const std::function<std::string()>& text);
  /// Clears the line. The next output starts in the first column of this line.
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
  bool line_visible_ = false;
};

/// Options for `ProgressBar`.
struct ProgressBarOptions {
  /// Whether to also show the last batch's loss. The host waits for the device at most twice per
  /// second to read the loss.
  bool live_loss = false;
  TerminalBarOptions bar = {};  ///< options of the bar
};

/// Prints the same lines as `EpochLogger`, followed by a bar for the current epoch. The bar also
/// shows the previous epoch's loss and metrics. Only rank 0 prints. The lines are printed to any
/// stream, but the bar is drawn only on a terminal. The bar is cleared when the fit ends, even
/// after an exception.
/// Python: Lightning's `TQDMProgressBar`.
class ProgressBar : public TrainerCallback {
 public:
  /// Constructs a callback that prints to `out`, which must outlive this object.
  explicit ProgressBar(std::ostream& out, ProgressBarOptions options = {});
  /// Draws the bar for the first epoch.
  void on_fit_start(Fit& fit) override;
  /// Clears the bar. If a callback stopped the fit, prints a line that shows where and why the fit
  /// stopped.
  void on_fit_end(Fit& fit) override;
  /// Draws the bar if at least a tenth of a second has passed since the bar was last drawn.
  void on_after_optimizer_step(Fit& fit) override;
  /// Prints the epoch's line and draws the next epoch's bar.
  void on_epoch_end(Fit& fit) override;

 private:
  bool is_drawn(const Fit& fit) const;
  void begin_epoch(const Fit& fit);
  std::string text(const Fit& fit);

  EpochLogger lines_;
  bool live_loss_;
  std::function<std::chrono::steady_clock::time_point()> clock_;
  TerminalBar bar_;
  std::string last_epoch_ = {};
  std::string last_loss_ = {};
  std::optional<std::chrono::steady_clock::time_point> last_read_ = {};
};

}  // namespace sconce
