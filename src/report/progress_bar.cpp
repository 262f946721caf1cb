#include "sconce/report/progress_bar.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <string_view>
#include <utility>

#include "repr/format.hpp"
#include "training/describe_epoch.hpp"

namespace sconce {

namespace {

using std::chrono::milliseconds;

constexpr auto redraw_after = milliseconds(100);
constexpr auto loss_read_interval = milliseconds(500);
constexpr int64_t min_bar = 5;
constexpr int64_t max_bar = 40;

// The original buffers of the streams, stored before `main` starts. If a program replaces a
// stream's buffer, the stream no longer writes to a terminal.
const std::streambuf* const out_buffer = std::cout.rdbuf();
const std::streambuf* const error_buffer = std::cerr.rdbuf();
const std::streambuf* const log_buffer = std::clog.rdbuf();

int file_descriptor_of(const std::ostream& out) {
  const auto* buffer = out.rdbuf();
  if (buffer == nullptr) return -1;
  if (buffer == out_buffer) return STDOUT_FILENO;
  return buffer == error_buffer || buffer == log_buffer ? STDERR_FILENO : -1;
}

bool can_redraw(int file_descriptor) {
  const char* term = std::getenv("TERM");
  return file_descriptor >= 0 && isatty(file_descriptor) == 1 && term != nullptr && *term != '\0' &&
         std::string_view(term) != "dumb";
}

int64_t columns_of(int file_descriptor) {
  winsize size = {};
  if (ioctl(file_descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char* columns = std::getenv("COLUMNS");
  const int64_t number = columns != nullptr ? std::strtol(columns, nullptr, 10) : 0;
  return number > 0 && number < 10'000 ? number : 80;
}

std::string minutes(double seconds) {
  const auto all = static_cast<int64_t>(std::ceil(std::min(seconds, 3.6e8)));
  return all < 3600 ? format("%d:%02d left", static_cast<int>(all / 60), static_cast<int>(all % 60))
                    : format("%lld:%02d:%02d left", static_cast<long long>(all / 3600),
                             static_cast<int>(all / 60 % 60), static_cast<int>(all % 60));
}

std::string bar_of(int64_t size, int64_t done, int64_t total) {
  const int64_t inner = size - 2;
  const int64_t full = total > 0 ? std::clamp<int64_t>(inner * done / total, 0, inner) : 0;
  return '[' + std::string(static_cast<size_t>(full), '#') +
         std::string(static_cast<size_t>(inner - full), '.') + ']';
}

}  // namespace

TerminalBar::TerminalBar(std::ostream& out, TerminalBarOptions options)
    : out_(out),
      file_descriptor_(options.file_descriptor.value_or(file_descriptor_of(out))),
      clock_(std::move(options.clock)) {
  if (!can_redraw(file_descriptor_)) file_descriptor_ = -1;
}

void TerminalBar::begin(std::string title, int64_t total, int64_t done) {
  if (!is_drawn()) return;
  title_ = std::move(title);
  total_ = total;
  done_before_ = done;
  begin_ = clock_();
}

void TerminalBar::update(int64_t done, const std::string& text) {
  update(done, [&] { return text; });
}

void TerminalBar::update(int64_t done, const std::function<std::string()>& text) {
  if (!is_drawn()) return;
  const auto now = clock_();
  if (last_drawn_ && now - *last_drawn_ < redraw_after) return;
  last_drawn_ = now;
  const std::chrono::duration<double> elapsed = now - begin_;
  // Moves the cursor to the first column, so that other output starts there.
  out_ << '\r' << line(done, elapsed.count(), text()) << "\x1b[K\r" << std::flush;
  line_visible_ = true;
}

void TerminalBar::clear() {
  if (!std::exchange(line_visible_, false)) return;
  out_ << "\r\x1b[K" << std::flush;
}

std::string TerminalBar::line(int64_t done, double seconds, std::string text) const {
  const double rate = seconds > 0 ? static_cast<double>(done - done_before_) / seconds : 0;
  // The last column stays empty, because some terminals wrap lines after it.
  int64_t room = columns_of(file_descriptor_) - 1;
  const auto take = [&room](const std::string& part) {
    const int64_t size = std::ssize(part) + 1;
    if (part.empty() || size > room) return std::string();
    room -= size;
    return part + ' ';
  };
  // Adds the parts in descending order of importance while there is room.
  const std::string count = take(std::to_string(done) + '/' + std::to_string(total_));
  const std::string title = take(title_);
  const std::string left =
      take(rate > 0 ? minutes(static_cast<double>(total_ - done) / rate) : std::string());
  const std::string speed =
      take(rate > 0 ? format(rate, std::chars_format::fixed, 1) + "/s" : std::string());
  const int64_t bar_size = room > min_bar + 2 ? min_bar + 3 : 0;
  room -= bar_size;
  while (!text.empty() && std::ssize(text) + 1 > room) {
    const auto comma = text.rfind(", ");
    text.resize(comma == std::string::npos ? 0 : comma);
  }
  text = take(text);
  const int64_t size = std::min(bar_size + room - 1, max_bar + 2);
  const std::string bar = bar_size > 0 ? bar_of(size, done, total_) + ' ' : std::string();
  return title + bar + count + speed + left + text;
}

ProgressBar::ProgressBar(std::ostream& out, ProgressBarOptions options)
    : lines_(out),
      live_loss_(options.live_loss),
      clock_(options.bar.clock),
      bar_(out, std::move(options.bar)) {}

bool ProgressBar::is_drawn(const Fit& fit) const {
  return bar_.is_drawn() && fit.process_group.rank() == 0 &&
         std::ssize(fit.epochs) < fit.max_epochs;
}

void ProgressBar::begin_epoch(const Fit& fit) {
  if (!is_drawn(fit)) return;
  const auto epoch = std::to_string(fit.epochs.size() + 1);
  last_epoch_ = fit.epochs.empty() ? std::string() : describe(fit.epochs.back());
  bar_.begin("epoch " + epoch + '/' + std::to_string(fit.max_epochs), fit.num_training_batches,
             fit.batch);
  bar_.update(fit.batch, last_epoch_);
}

void ProgressBar::on_fit_start(Fit& fit) {
  lines_.on_fit_start(fit);
  last_loss_.clear();
  begin_epoch(fit);
}

void ProgressBar::on_fit_end(Fit& fit) {
  bar_.clear();
  lines_.on_fit_end(fit);
}

void ProgressBar::on_after_optimizer_step(Fit& fit) {
  if (!is_drawn(fit)) return;
  bar_.update(fit.batch, [&] { return text(fit); });
}

void ProgressBar::on_epoch_end(Fit& fit) {
  bar_.clear();
  lines_.on_epoch_end(fit);
  begin_epoch(fit);
}

std::string ProgressBar::text(const Fit& fit) {
  if (!live_loss_ || !fit.loss.defined()) return last_epoch_;
  const auto now = clock_();
  if (!last_read_ || now - *last_read_ >= loss_read_interval) {
    last_read_ = now;
    last_loss_ = "batch loss " + format(fit.loss.item<double>(), std::chars_format::fixed, 3);
  }
  return last_epoch_.empty() ? last_loss_ : last_loss_ + ", " + last_epoch_;
}

}  // namespace sconce
