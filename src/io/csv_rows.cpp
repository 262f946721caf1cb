#include "io/csv_rows.hpp"

#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "io/csv_names.hpp"
#include "io/csv_number.hpp"

namespace sconce::io {

namespace {

constexpr int64_t max_reasons = 10;
constexpr double beyond_float = 0x1.ffffffp+127;  // rounds to infinity

bool is_text(const std::string& text) {
  return !number_of(text) && !is_infinite(text);
}

class RowReader {
 public:
  RowReader(CsvFile& file, std::vector<TableColumn>& columns, const CsvOptions& options,
            const MissingTexts& missing)
      : file_(file), columns_(columns), options_(options), missing_(missing) {}

  TableRows read() {
    reserve_cells();
    std::vector<float> values(columns_.size());
    for (CsvRecords row = file_.rows(); row.next();) {
      const std::string problem = problem_of(row, values);
      if (problem.empty()) {
        add_categories(row, values);
        rows_.cells.insert(rows_.cells.end(), values.begin(), values.end());
      } else if (rows_.skipped++ < max_reasons) {
        rows_.first_skipped.push_back(problem);
      }
    }
    if (options_.skip_bad && rows_.skipped > 0) check_kinds();
    check_good();
    return std::move(rows_);
  }

 private:
  // Every value except the last is followed by a delimiter or a line break, so a text of n bytes
  // contains at most n + 1 values.
  void reserve_cells() {
    const std::string& text = file_.text;
    const auto lines =
        std::count(text.begin(), text.end(), '\n') + std::count(text.begin(), text.end(), '\r') + 1;
    rows_.cells.reserve(static_cast<size_t>(
        std::min(static_cast<double>(lines) * static_cast<double>(columns_.size()),
                 static_cast<double>(text.size() + 1))));
  }

  void check_good() const {
    const bool is_good = rows_.skipped == 0 || (options_.skip_bad && !rows_.cells.empty());
    TORCH_CHECK(is_good, file_.error_prefix, rows_.first_skipped.front(),
                rows_.skipped > 1
                    ? c10::str("; this row is the first of ", rows_.skipped, " bad rows")
                    : "");
    TORCH_CHECK(!rows_.cells.empty(), file_.error_prefix, "expected rows, found none");
  }

  // Returns a description of the problem with a row, or an empty string if there is none. Sets the
  // row's values, except for new categories.
  std::string problem_of(const CsvRecords& row, std::vector<float>& values) const {
    if (row.problem() != nullptr) return c10::str("line ", row.line(), ": ", row.problem());
    if (row.size() != file_.names.size()) {
      return c10::str("line ", row.line(), ": expected ", file_.names.size(), " fields, got ",
                      row.size());
    }
    for (size_t i = 0; i < columns_.size(); ++i) {
      const std::string expected = expectation(columns_[i], row[columns_[i].field], values[i]);
      if (!expected.empty()) return problem_of(row, columns_[i], expected);
    }
    return {};
  }

  // Returns a description of why a value is invalid.
  static std::string problem_of(const CsvRecords& row, const TableColumn& column,
                                const std::string& expected) {
    const std::string problem =
        c10::str(place_of(row, column), "expected ", expected, ", got ", shown(row[column.field]));
    if (column.number_line == 0 || expected != "a number") return problem;
    return c10::str(problem, " (line ", column.number_line,
                    " made this column numeric; to read strings, add the column to .categories)");
  }

  static std::string place_of(const CsvRecords& row, const TableColumn& column) {
    return c10::str("line ", row.line(), ", column ", shown(column.column.name), ": ");
  }

  // Sets `value` and returns an empty string if the text is valid. Otherwise, returns a description
  // of the expected value.
  std::string expectation(const TableColumn& column, const std::string& text, float& value) const {
    const bool is_missing = missing_.contains(text);
    if (is_missing && column.is_target) return "a target";
    if (is_missing && !options_.keep_missing) return "a value";
    if (column.has_categories) {
      if (!column.is_known) return {};
      const auto code = column.categories->find(is_missing ? missing_category : text);
      if (!code) return "one of " + shown(column.column.categories);
      value = static_cast<float>(*code);
      return {};
    }
    if (is_missing) {
      value = std::numeric_limits<float>::quiet_NaN();
      return {};
    }
    const auto number = number_of(text);
    if (!number) return is_infinite(text) ? "a finite number" : "a number";
    if (std::abs(*number) >= beyond_float) return "a number in the range of float32";
    value = static_cast<float>(*number);
    return {};
  }

  void add_categories(const CsvRecords& row, std::vector<float>& values) {
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (!columns_[i].has_categories || columns_[i].is_known) continue;
      values[i] = static_cast<float>(code_of(row, columns_[i]));
    }
  }

  // Returns the category code for a value, and adds the category if it is new.
  int64_t code_of(const CsvRecords& row, const TableColumn& column) {
    const std::string& field = row[column.field];
    const std::string& text = missing_.contains(field) ? missing_text_ : field;
    const int64_t before = column.categories->texts();
    const int64_t code = column.categories->add(text);
    if (code < before) return code;
    count_category(file_.memory, column, text);
    TORCH_CHECK(column.categories->size() <= options_.max_categories && code < category_limit,
                file_.error_prefix, place_of(row, column), "expected at most ",
                options_.max_categories, " categories, got one more: ", shown(field),
                "; drop the column, or raise max_categories");
    TORCH_CHECK(file_.memory.fits(), file_.error_prefix, place_of(row, column),
                file_.memory.limit(), "another category: ", shown(field));
    return code;
  }

  // Checks the column types. A single number in a column of strings would make all other rows count
  // as bad rows, and `skip_bad` must not hide this problem.
  void check_kinds() const {
    struct Counts {
      int64_t numbers = 0;
      int64_t texts = 0;
    };
    std::vector<Counts> counts(columns_.size());
    for (CsvRecords row = file_.rows(); row.next();) {
      if (!file_.is_whole(row)) continue;
      for (size_t i = 0; i < columns_.size(); ++i) {
        const std::string& text = row[columns_[i].field];
        if (columns_[i].number_line == 0 || missing_.contains(text)) continue;
        ++(is_text(text) ? counts[i].texts : counts[i].numbers);
      }
    }
    for (size_t i = 0; i < columns_.size(); ++i) {
      const auto [numbers, texts] = counts[i];
      TORCH_CHECK(texts <= numbers, file_.error_prefix, problem_of_first_text(columns_[i]),
                  "; skip_bad would drop ", texts, " of ", numbers + texts,
                  " values in the column");
    }
  }

  // Used for numeric columns.
  std::string problem_of_first_text(const TableColumn& column) const {
    CsvRecords row = file_.rows();
    const auto is_found = [&] {
      if (!file_.is_whole(row)) return false;
      const std::string& text = row[column.field];
      return !missing_.contains(text) && is_text(text);
    };
    while (row.next() && !is_found()) {
    }
    return problem_of(row, column, "a number");
  }

  CsvFile& file_;
  const std::vector<TableColumn>& columns_;
  const CsvOptions& options_;
  const MissingTexts& missing_;
  const std::string missing_text_ = missing_category;
  TableRows rows_ = {};
};

}  // namespace

TableRows read_rows(CsvFile& file, std::vector<TableColumn>& columns, const CsvOptions& options,
                    const MissingTexts& missing) {
  return RowReader(file, columns, options, missing).read();
}

}  // namespace sconce::io
