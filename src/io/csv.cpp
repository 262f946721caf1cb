#include "sconce/io/csv.hpp"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <locale>
#include <optional>
#include <sstream>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "io/csv_records.hpp"
#include "io/input_file.hpp"

namespace sconce::io {

namespace {

constexpr auto missing_category = "nan";
constexpr int64_t most_reasons = 10;
constexpr int64_t most_categories = int64_t{1} << 24;  // float32 has all integers up to here
constexpr double beyond_float = 0x1.ffffffp+127;       // rounds to infinity

// Returns a text for a message: on one line, and not long.
std::string shown(std::string_view text) {
  size_t end = std::min<size_t>(text.size(), 40);
  while (end > 0 && end < text.size() && (text[end] & 0xC0) == 0x80) --end;  // within a character
  std::string line(text.substr(0, end));
  for (char& c : line) c = static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  return "'" + line + (end < text.size() ? "...'" : "'");
}

std::string shown(const std::vector<std::string>& names) {
  constexpr size_t most = 10;
  std::string line;
  for (size_t i = 0; i < std::min(names.size(), most); ++i) {
    line += (i == 0 ? "" : ", ") + shown(names[i]);
  }
  return line + (names.size() > most ? ", ..." : "");
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// For a number that is too large or too small for a double; std::from_chars does not tell which.
double infinity_or_zero(std::string_view text) {
  std::istringstream in{std::string(text)};
  in.imbue(std::locale::classic());
  double value = 0;
  in >> value;
  return value;
}

// Unlike std::from_chars, takes blanks around the number and a plus, and refuses "inf" and "nan".
std::optional<double> number_of(std::string_view text) {
  constexpr auto blanks = " \t";
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  text = text.substr(0, text.find_last_not_of(blanks) + 1);
  const bool has_plus = text.starts_with('+');
  if (has_plus) text.remove_prefix(1);
  const size_t first = !has_plus && text.starts_with('-') ? 1 : 0;
  if (first == text.size() || (text[first] != '.' && (text[first] < '0' || text[first] > '9'))) {
    return {};
  }
  double value = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (end != last || error == std::errc::invalid_argument) return {};
  return error == std::errc::result_out_of_range ? infinity_or_zero(text) : value;
}

// Sorts categories as `CsvColumn` says.
void sort_categories(std::vector<std::string>& categories, bool are_numbers) {
  const auto key = [&](const std::string& text) {
    const bool is_missing = text == missing_category;
    const double value = are_numbers && !is_missing ? *number_of(text) : 0;
    return std::tuple(is_missing, value, std::string_view(text));
  };
  std::sort(categories.begin(), categories.end(),
            [&](const auto& a, const auto& b) { return key(a) < key(b); });
}

// pandas' texts of missing values, and those of the options.
std::unordered_set<std::string> missing_texts(const std::vector<std::string>& more) {
  std::unordered_set<std::string> texts = {"",         "#N/A", "#N/A N/A", "#NA",    "-1.#IND",
                                           "-1.#QNAN", "-NaN", "-nan",     "1.#IND", "1.#QNAN",
                                           "<NA>",     "N/A",  "NA",       "NULL",   "NaN",
                                           "None",     "n/a",  "nan",      "null"};
  texts.insert(more.begin(), more.end());
  return texts;
}

// The categories of a column in the order in which they were found. While all are numbers, those of
// the same value are one category, named as the first of them is written.
class Categories {
 public:
  // Returns the code of a category, which is new if the text is not known.
  int64_t add(const std::string& text) {
    const auto next = static_cast<int64_t>(codes_.size());
    const auto [place, is_new] = codes_.try_emplace(text, next);
    if (!is_new || text == missing_category) return place->second;
    const auto number = number_of(text);
    if (number) numbers_.try_emplace(*number, next);
    are_numbers_ = are_numbers_ && number;
    return next;
  }

  // Returns the code of a text that is known, or by its value if all are numbers.
  std::optional<int64_t> find(const std::string& text) const {
    const auto code = codes_.find(text);
    if (code != codes_.end()) return code->second;
    const auto number = are_numbers_ ? number_of(text) : std::nullopt;
    const auto same = number ? numbers_.find(*number) : numbers_.end();
    return same != numbers_.end() ? std::optional(same->second) : std::nullopt;
  }

  int64_t size() const {
    const size_t missing = codes_.count(missing_category);
    return static_cast<int64_t>(are_numbers_ ? numbers_.size() + missing : codes_.size());
  }

  // Returns the names of the categories as `CsvColumn` sorts them.
  std::vector<std::string> sorted() const {
    std::vector<std::string> names;
    for (const auto& [text, code] : codes_) {
      if (code == first_code(text, code)) names.push_back(text);
    }
    sort_categories(names, are_numbers_);
    return names;
  }

  // Returns the place of each code among the names that `sorted` returned.
  at::Tensor places(const std::vector<std::string>& names) const {
    const at::Tensor places = at::empty({static_cast<int64_t>(codes_.size())}, at::kLong);
    auto* place = places.mutable_data_ptr<int64_t>();
    for (size_t i = 0; i < names.size(); ++i) place[codes_.at(names[i])] = static_cast<int64_t>(i);
    for (const auto& [text, code] : codes_) place[code] = place[first_code(text, code)];
    return places;
  }

 private:
  // Returns the code of the first text of the same value, if all are numbers.
  int64_t first_code(const std::string& text, int64_t code) const {
    const bool has_number = are_numbers_ && text != missing_category;
    return has_number ? numbers_.at(*number_of(text)) : code;
  }

  std::unordered_map<std::string, int64_t> codes_ = {};
  std::unordered_map<double, int64_t> numbers_ = {};  // the first code of each value
  bool are_numbers_ = true;
};

struct Column {
  CsvColumn told = {};
  size_t field = 0;  // its place in a record
  bool is_target = false;
  bool has_categories = false;
  bool is_known = false;  // told by a table that was read before
  Categories categories = {};
};

class TableReader {
 public:
  TableReader(const std::filesystem::path& path, const CsvOptions& options)
      : options_(options), missing_(missing_texts(options.na_values)) {
    const InputFile file(path, "sconce::io::read_csv");
    who_ = file.name();
    check_options();
    text_.resize(file.size());
    file.read(0, text_.data(), text_.size());
    read_names();
    choose_columns();
    if (options_.columns.empty()) find_kinds();
    read_rows();
    make_tensors();
  }

  CsvTable table = {};

 private:
  void check_options() const {
    constexpr std::string_view structural("\"\r\n\0", 4);
    TORCH_CHECK(structural.find(options_.delimiter) == structural.npos, who_,
                "expected a delimiter that is no quote, no line break and no NUL byte, got ",
                static_cast<int>(options_.delimiter));
    TORCH_CHECK(options_.max_categories >= 1 && options_.max_categories <= most_categories, who_,
                "expected max_categories from 1 to ", most_categories, ", got ",
                options_.max_categories);
    TORCH_CHECK(options_.columns.empty() || options_.categories.empty(), who_,
                "expected columns or categories, got both");
  }

  // Returns the records after the names.
  CsvRecords rows() const {
    std::string_view text = text_;
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    CsvRecords records(text, options_.delimiter, who_);
    if (options_.names.empty()) records.next();
    return records;
  }

  void read_names() {
    names_ = options_.names;
    if (names_.empty()) {
      const CsvRecords record = rows();
      TORCH_CHECK(record.size() > 0, who_, "expected a line of names, found an empty file");
      TORCH_CHECK(record.problem() == nullptr, who_, "line ", record.line(), ": ",
                  record.problem());
      for (size_t i = 0; i < record.size(); ++i) names_.push_back(record[i]);
    }
    std::unordered_set<std::string> seen;
    for (const auto& name : names_) {
      TORCH_CHECK(seen.insert(name).second, who_, "expected each column's name once, got ",
                  shown(name), " twice");
    }
  }

  void choose_columns() {
    std::vector<CsvColumn> all = options_.columns;
    if (all.empty()) {
      for (const auto& name : names_) all.push_back({.name = name});
    }
    std::vector<std::string> known, chosen;
    for (const auto& column : all) {
      known.push_back(column.name);
      if (contains(options_.drop, column.name)) continue;
      chosen.push_back(column.name);
      add_column(column);
    }
    const auto check = [&](const char* option, const std::string& name, const auto& among) {
      TORCH_CHECK(contains(among, name), who_, option, ": expected a column's name, got ",
                  shown(name), "; there are ", shown(among));
    };
    for (const auto& name : options_.drop) check("drop", name, known);
    for (const auto& name : options_.categories) check("categories", name, chosen);
    const bool has_target = !options_.target.empty();
    if (has_target) check("target", options_.target, chosen);
    TORCH_CHECK(columns_.size() > (has_target ? 1U : 0U), who_,
                "expected a column of features, found none");
  }

  void add_column(const CsvColumn& told) {
    const auto found = std::find(names_.begin(), names_.end(), told.name);
    TORCH_CHECK(found != names_.end(), who_, "expected a column ", shown(told.name), ", found ",
                shown(names_));
    Column column = {.told = told, .field = static_cast<size_t>(found - names_.begin())};
    column.is_target = told.name == options_.target && !options_.target.empty();
    column.is_known = !options_.columns.empty();
    column.has_categories = !told.categories.empty() || contains(options_.categories, told.name);
    for (const auto& category : told.categories) column.categories.add(category);
    columns_.push_back(std::move(column));
  }

  // Finds the columns of texts. One number makes a column one of numbers, so that a wrong text is
  // told and does not become a category.
  void find_kinds() {
    std::vector<Column*> undecided;
    for (auto& column : columns_) {
      if (!column.has_categories) undecided.push_back(&column);
    }
    CsvRecords row = rows();
    while (!undecided.empty() && row.next()) {
      if (row.problem() != nullptr || row.size() != names_.size()) continue;
      std::erase_if(undecided, [&](Column* column) {
        const std::string& text = row[column->field];
        if (missing_.contains(text)) return false;
        column->has_categories = !number_of(text);
        return !column->has_categories;
      });
    }
  }

  void read_rows() {
    std::vector<float> values(columns_.size());
    for (CsvRecords row = rows(); row.next();) {
      const std::string problem = problem_of(row, values);
      if (problem.empty()) {
        add_categories(row, values);
        cells_.insert(cells_.end(), values.begin(), values.end());
      } else if (table.skipped++ < most_reasons) {
        table.first_skipped.push_back(problem);
      }
    }
    const bool is_good = table.skipped == 0 || (options_.skip_bad && !cells_.empty());
    TORCH_CHECK(
        is_good, who_, table.first_skipped.front(),
        table.skipped > 1 ? c10::str("; this is the first of ", table.skipped, " bad rows") : "");
    TORCH_CHECK(!cells_.empty(), who_, "expected rows, found none");
  }

  // Returns what is wrong with a row, or nothing. Sets its values, except new categories.
  std::string problem_of(const CsvRecords& row, std::vector<float>& values) const {
    if (row.problem() != nullptr) return c10::str("line ", row.line(), ": ", row.problem());
    if (row.size() != names_.size()) {
      return c10::str("line ", row.line(), ": expected ", names_.size(), " fields, got ",
                      row.size());
    }
    for (size_t i = 0; i < columns_.size(); ++i) {
      const Column& column = columns_[i];
      const std::string expected = expectation(column, row[column.field], values[i]);
      if (expected.empty()) continue;
      return c10::str("line ", row.line(), ", column ", shown(column.told.name), ": expected ",
                      expected, ", got ", shown(row[column.field]));
    }
    return {};
  }

  // Returns what was expected of a wrong text, or nothing.
  std::string expectation(const Column& column, const std::string& text, float& value) const {
    const bool is_missing = missing_.contains(text);
    if (is_missing && column.is_target) return "a target";
    if (is_missing && !options_.keep_missing) return "a value";
    if (column.has_categories) {
      if (!column.is_known) return {};
      const auto code = column.categories.find(is_missing ? missing_category : text);
      if (!code) return "one of " + shown(column.told.categories);
      value = static_cast<float>(*code);
      return {};
    }
    if (is_missing) {
      value = std::numeric_limits<float>::quiet_NaN();
      return {};
    }
    const auto number = number_of(text);
    if (!number) return "a number";
    if (std::abs(*number) >= beyond_float) return "a number that float32 has";
    value = static_cast<float>(*number);
    return {};
  }

  void add_categories(const CsvRecords& row, std::vector<float>& values) {
    for (size_t i = 0; i < columns_.size(); ++i) {
      Column& column = columns_[i];
      if (!column.has_categories || column.is_known) continue;
      const std::string& text = row[column.field];
      values[i] = static_cast<float>(
          column.categories.add(missing_.contains(text) ? missing_category : text));
      TORCH_CHECK(column.categories.size() <= options_.max_categories, who_, "line ", row.line(),
                  ", column ", shown(column.told.name), ": expected at most ",
                  options_.max_categories, " categories, got another: ", shown(text));
    }
  }

  void make_tensors() {
    const auto width = static_cast<int64_t>(columns_.size());
    const auto height = static_cast<int64_t>(cells_.size()) / width;
    const at::Tensor all = at::from_blob(cells_.data(), {height, width}, at::kFloat);
    std::vector<at::Tensor> features;
    for (int64_t i = 0; i < width; ++i) {
      Column& column = columns_[static_cast<size_t>(i)];
      at::Tensor values = all.slice(1, i, i + 1);
      if (column.has_categories) values = sorted_codes(column, values.to(at::kLong));
      if (column.is_target) {
        table.target = column.has_categories ? values.squeeze(1) : values.clone();
      } else if (column.has_categories) {
        const auto count = static_cast<int64_t>(column.told.categories.size());
        features.push_back(at::zeros({height, count}, at::kFloat).scatter_(1, values, 1));
        for (const auto& category : column.told.categories) {
          table.features.push_back(column.told.name + "_" + category);
        }
      } else {
        features.push_back(values);
        table.features.push_back(column.told.name);
      }
      table.columns.push_back(column.told);
    }
    table.data = at::cat(features, 1);
  }

  // Returns the places of the categories in their order, which this sets.
  static at::Tensor sorted_codes(Column& column, const at::Tensor& codes) {
    if (column.is_known) return codes;
    column.told.categories = column.categories.sorted();
    return column.categories.places(column.told.categories).take(codes);
  }

  const CsvOptions& options_;
  const std::unordered_set<std::string> missing_;
  std::string who_ = {};
  std::string text_ = {};
  std::vector<std::string> names_ = {};
  std::vector<Column> columns_ = {};
  std::vector<float> cells_ = {};
};

}  // namespace

CsvTable read_csv(const std::filesystem::path& path, const CsvOptions& options) {
  return TableReader(path, options).table;
}

}  // namespace sconce::io
