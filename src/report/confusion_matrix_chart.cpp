#include "sconce/report/confusion_matrix_chart.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/isfinite.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "check_path.hpp"
#include "report/best_effort.hpp"
#include "report/svg.hpp"
#include "sconce/io/atomic_file.hpp"

namespace sconce {

namespace {

constexpr int levels = 40;               // number of color levels above 0
constexpr double matrix_top = 44;        // pixels above the matrix
constexpr double scale_width = 84;       // pixels to the right of the matrix, for the scale
constexpr double max_label_width = 130;  // maximum width of a class name in pixels
constexpr double line_height = 14;

constexpr auto matrix_style =
    ".cell{fill:#08306b;shape-rendering:crispEdges}.on{fill:#fff}"
    "@media(prefers-color-scheme:dark){.cell{fill:#9ecbff}.on{fill:#0d1117}}";
constexpr double on_dark = 0.58;  // at this opacity, numbers switch to the background color

void check_classes(int64_t classes, size_t names, const char* caller) {
  TORCH_CHECK(classes >= 2 && classes <= 100, caller, ": expected 2 to 100 classes, got ", classes);
  TORCH_CHECK(names == 0 || std::cmp_equal(names, classes), caller, ": expected ", classes,
              " class names or an empty list, got ", names);
}

torch::Tensor checked_counts(const ConfusionMatrixChart& chart) {
  constexpr auto caller = "sconce::ConfusionMatrixChart";
  TORCH_CHECK(chart.counts.defined() && chart.counts.dim() == 2 &&
                  chart.counts.size(0) == chart.counts.size(1),
              caller, ": expected counts (C, C), got ",
              chart.counts.defined() ? c10::str(chart.counts.sizes()) : "an undefined tensor");
  check_classes(chart.counts.size(0), chart.class_names.size(), caller);
  const auto counts = chart.counts.detach().to(at::kCPU, at::kDouble).contiguous();
  TORCH_CHECK(at::isfinite(counts).logical_and(counts.ge(0)).all().item<bool>(), caller,
              ": expected non-negative counts, got negative or non-finite values");
  return counts;
}

// Even level 0 is not fully transparent, so that a small count can be distinguished from a count of
// 0.
double opacity_of(int level) {
  return 0.06 + 0.94 * level / levels;
}

class Drawing {
 public:
  explicit Drawing(const ConfusionMatrixChart& chart)
      : title_(chart.title),
        counts_(checked_counts(chart)),
        classes_(counts_.size(0)),
        row_sums_(counts_.sum(1)),
        names_(chart.class_names) {
    for (int64_t i = 0; std::ssize(names_) < classes_; ++i) names_.push_back(std::to_string(i));
    label_ = std::min(svg::widest(names_), max_label_width);
    const double room = svg::chart_width - scale_width - 16 - line_height - label_ - 18;
    cell_ = std::min(std::floor(room / static_cast<double>(classes_)), 110.);
    left_ = svg::chart_width - scale_width - room / 2 - side() / 2;
  }

  std::string svg() const {
    std::string body = draw_colours() + draw_scale() +
                       svg::path("frame", svg::rectangle(left_, matrix_top, side(), side())) +
                       svg::path("frame", svg::rectangle(scale(), matrix_top, 14, side()));
    if (has_numbers()) body += draw_numbers();
    body += draw_names();
    return svg::document({.height = matrix_top + side() + below() + 36,
                          .title = title_,
                          .style = matrix_style,
                          .body = body});
  }

 private:
  double side() const { return cell_ * static_cast<double>(classes_); }
  double scale() const { return left_ + side() + 18; }
  double at(int64_t i) const { return cell_ * static_cast<double>(i); }
  bool is_level() const { return label_ + 6 <= cell_; }  // whether the lower names are horizontal
  double below() const { return is_level() ? line_height + 6 : label_ + 10; }

  double count(int64_t row, int64_t column) const {
    return counts_.const_data_ptr<double>()[row * classes_ + column];
  }

  int level_of(int64_t row, int64_t column) const {
    const double sum = row_sums_.const_data_ptr<double>()[row];
    return static_cast<int>(std::lround(count(row, column) / sum * levels));
  }

  // All cells at the same level share one path, because a separate element for each cell would make
  // the file much larger.
  void add_cells(std::array<std::string, levels + 1>& paths) const {
    for (int64_t row = 0; row < classes_; ++row) {
      for (int64_t column = 0; column < classes_; ++column) {
        if (count(row, column) == 0) continue;
        paths.at(static_cast<size_t>(level_of(row, column))) +=
            svg::rectangle(left_ + at(column), matrix_top + at(row), cell_, cell_);
      }
    }
  }

  // Draws the cells and the scale, with one path per color level.
  std::string draw_colours() const {
    std::array<std::string, levels + 1> paths;
    add_cells(paths);
    std::string drawn;
    // Using whole pixels avoids seams between neighboring levels.
    const auto height = [&](int level) { return std::round(side() * level / (levels + 1)); };
    for (int level = 0; level <= levels; ++level) {
      auto& path = paths.at(static_cast<size_t>(level));
      path += svg::rectangle(scale(), matrix_top + side() - height(level + 1), 14,
                             height(level + 1) - height(level));
      const int percent = static_cast<int>(std::lround(opacity_of(level) * 100));
      const std::string opacity =
          percent == 100 ? "1" : (percent < 10 ? ".0" : ".") + std::to_string(percent);
      drawn += "<path class=\"cell\" fill-opacity=\"" + opacity + "\" d=\"" + path + "\"/>\n";
    }
    return drawn;
  }

  std::string draw_scale() const {
    const double x = scale() + 20;
    return svg::text(x, matrix_top + 10, "100%", {.style_class = "muted"}) +
           svg::text(x, matrix_top + side() / 2 + 4, "50%", {.style_class = "muted"}) +
           svg::text(x, matrix_top + side(), "0%", {.style_class = "muted"}) +
           svg::text(x + 10, matrix_top + side() / 4 + 2, "part of the row",
                     {.anchor = "middle", .style_class = "muted", .is_turned = true});
  }

  static std::string text_of(double count) {
    char text[32];
    return {text, std::to_chars(text, std::end(text), count, std::chars_format::general, 6).ptr};
  }

  bool has_numbers() const {
    std::vector<std::string> texts;
    for (int64_t i = 0; i < counts_.numel(); ++i) texts.push_back(text_of(count(0, i)));
    return cell_ >= 18 && svg::widest(texts) + 4 <= cell_;
  }

  std::string draw_numbers() const {
    std::string drawn;
    for (int64_t row = 0; row < classes_; ++row) {
      for (int64_t column = 0; column < classes_; ++column) {
        const bool is_none = count(row, column) == 0;
        const bool is_on_dark = !is_none && opacity_of(level_of(row, column)) >= on_dark;
        const char* kind = is_none ? "muted" : is_on_dark ? "on" : "";
        drawn += svg::text(left_ + at(column) + cell_ / 2, matrix_top + at(row) + cell_ / 2 + 4,
                           text_of(count(row, column)), {.anchor = "middle", .style_class = kind});
      }
    }
    return drawn;
  }

  // If the names are too close together, draws only every second, fifth, or tenth name.
  int64_t names_every() const {
    for (const int64_t every : {1, 2, 5}) {
      if (static_cast<double>(every) * cell_ >= line_height) return every;
    }
    return 10;
  }

  std::string draw_names() const {
    std::string drawn;
    const double bottom = matrix_top + side();
    for (int64_t i = 0; i < classes_; i += names_every()) {
      const std::string& name = names_[static_cast<size_t>(i)];
      const double middle = at(i) + cell_ / 2;
      drawn +=
          svg::text(left_ - 6, matrix_top + middle + 4, name, {.room = label_, .anchor = "end"});
      drawn += svg::text(
          left_ + middle + (is_level() ? 0 : 4), bottom + (is_level() ? 16 : 6), name,
          {.room = label_, .anchor = is_level() ? "middle" : "end", .is_turned = !is_level()});
    }
    drawn += svg::text(left_ + side() / 2, bottom + below() + 18, "predicted class",
                       {.anchor = "middle"});
    return drawn + svg::text(left_ - label_ - 16, matrix_top + side() / 2, "true class",
                             {.anchor = "middle", .is_turned = true});
  }

  std::string title_;
  torch::Tensor counts_;
  int64_t classes_;
  torch::Tensor row_sums_;
  std::vector<std::string> names_;
  double label_ = 0;  // width of the widest name, in pixels
  double cell_ = 0;
  double left_ = 0;
};

}  // namespace

std::string ConfusionMatrixChart::svg() const {
  return Drawing(*this).svg();
}

void ConfusionMatrixChart::save(const std::filesystem::path& file) const {
  io::write_file(file, svg(), "sconce::ConfusionMatrixChart::save");
}

ConfusionMatrixLogger::ConfusionMatrixLogger(std::filesystem::path file,
                                             std::shared_ptr<metrics::ConfusionMatrix> matrix,
                                             std::vector<std::string> class_names)
    : file_(std::move(file)),
      matrix_(std::move(matrix)),
      class_names_(std::move(class_names)),
      effort_(std::make_shared<BestEffort>("sconce::ConfusionMatrixLogger")) {
  check_path(file_, "sconce::ConfusionMatrixLogger");
  TORCH_CHECK(matrix_, "sconce::ConfusionMatrixLogger: expected a matrix, got null");
  check_classes(matrix_->compute().size(0), class_names_.size(), "sconce::ConfusionMatrixLogger");
}

void ConfusionMatrixLogger::on_epoch_end(Fit& fit) {
  const auto& epoch = fit.epochs.back();
  const auto& values = epoch.metrics;
  const bool has_test = std::any_of(values.begin(), values.end(), [](const auto& value) {
    return value.first.ends_with("_loss") && !value.first.starts_with("train_");
  });
  if (fit.process_group.rank() > 0 || !has_test) return;
  effort_->run([&] {
    const auto counts = matrix_->compute().cpu();
    TORCH_CHECK(
        counts.sum().item<int64_t>() > 0,
        "expected the matrix to be listed in TrainerOptions::metrics, got a matrix without counts "
        "after the test");
    ConfusionMatrixChart({.title = c10::str("Confusion matrix, epoch ", epoch.epoch),
                          .counts = counts,
                          .class_names = class_names_})
        .save(file_);
  });
}

}  // namespace sconce
