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
  /// File descriptor of the terminal that the stream writes to, or -1 if it does not write to a
  /// terminal. The default is the descriptor of `std::cout`, `std::cerr`, or `std::clog`, and -1
  /// for other streams.
  std::optional<int> file_descriptor = {};
  /// Returns the current time. Tests substitute their own clock.
  std::function<std::chrono::steady_clock::time_point()> clock = std::chrono::steady_clock::now;
};

/// Draws a progress bar on a terminal: title, bar, completed steps, total steps, steps per second,
/// remaining time, and a text. It is redrawn at most ten times per second. Its width is the width
/// of the terminal, otherwise the value of COLUMNS, otherwise 80 columns. Parts that do not fit are
/// omitted. Nothing is drawn if the stream is not a terminal, or if TERM is unset or "dumb". Other
/// output to the terminal starts in the bar's first column. If it is shorter than the bar, the rest
/// of the bar stays visible. Python: `tqdm`.
class TerminalBar {
 public:
  /// Constructs a bar on `out`, which must outlive this object.
  explicit TerminalBar(std::ostream& out, TerminalBarOptions options = {});
  ~TerminalBar() { clear(); }  ///< Clears the line.
  TerminalBar(const TerminalBar&) = delete;
  TerminalBar& operator=(const TerminalBar&) = delete;

  /// Returns whether the bar is drawn.
  bool is_drawn() const { return file_descriptor_ >= 0; }

  /// Starts a loop of `total` steps at the current time, of which `done` are already completed.
  void begin(std::string title, int64_t total, int64_t done = 0);
  /// Draws the bar if at least a tenth of a second has passed.
  void update(int64_t done, const std::string& text = {});
  /// Draws the bar if at least a tenth of a second has passed, and calls `text` only then.
  void update(int64_t done, const std::function<std::string()>& text);
  /// Clears the line. The next output starts in its first column.
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
  /// Whether to also show the loss of the last batch. To read it, the host waits for the device at
  /// most twice per second.
  bool live_loss = false;
  TerminalBarOptions bar = {};  ///< options of the bar
};

/// Prints the lines of `EpochLogger` with a bar for the current epoch below them, which shows the
/// loss and the metrics of the previous epoch. Only rank 0 prints. The bar requires a terminal, but
/// the lines do not. The bar is cleared when the fit ends, even if it ends with an exception.
/// Python: Lightning's `TQDMProgressBar`.
class ProgressBar : public TrainerCallback {
 public:
  /// Constructs a callback that prints to `out`, which must outlive this object.
  explicit ProgressBar(std::ostream& out, ProgressBarOptions options = {});
  /// Draws the bar of the first epoch.
  void on_fit_start(Fit& fit) override;
  /// Clears the bar. If a callback stopped the fit, prints a line that shows where and why.
  void on_fit_end(Fit& fit) override;
  /// Draws the bar if at least a tenth of a second has passed.
  void on_after_optimizer_step(Fit& fit) override;
  /// Prints the line of the epoch and draws the bar of the next one.
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
