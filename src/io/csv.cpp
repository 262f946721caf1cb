#include "sconce/io/csv.hpp"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "io/csv_categories.hpp"
#include "io/csv_number.hpp"
#include "io/csv_records.hpp"
#include "io/input_file.hpp"

namespace sconce::io {

namespace {

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

// Where each name is in a list. Sorted, because a file can choose names that make a hash table
// slow.
class NameIndex {
 public:
  explicit NameIndex(const std::vector<std::string>& names) : names_(names), order_(names.size()) {
    std::iota(order_.begin(), order_.end(), size_t{0});
    const auto less = [&](size_t a, size_t b) { return names[a] < names[b]; };
    std::sort(order_.begin(), order_.end(), less);
  }

  std::optional<size_t> find(const std::string& name) const {
    const auto less = [&](size_t i, const std::string& text) { return names_[i] < text; };
    const auto found = std::lower_bound(order_.begin(), order_.end(), name, less);
    if (found == order_.end() || names_[*found] != name) return {};
    return *found;
  }

  // Returns a name that occurs more than once, or null.
  const std::string* twice() const {
    const auto same = [&](size_t a, size_t b) { return names_[a] == names_[b]; };
    const auto found = std::adjacent_find(order_.begin(), order_.end(), same);
    return found == order_.end() ? nullptr : &names_[*found];
  }

 private:
  const std::vector<std::string>& names_;
  std::vector<size_t> order_;
};

// The texts of missing values: those of pandas and of the options. As in pandas, a number stands
// for all numbers of its value.
class MissingTexts {
 public:
  explicit MissingTexts(const std::vector<std::string>& more) {
    texts_.insert(more.begin(), more.end());
    for (const auto& text : more) {
      const auto value = decimal_of(text);
      if (value) values_.insert(*value);
    }
  }

  bool contains(const std::string& text) const {
    if (texts_.contains(text)) return true;
    const auto value = values_.empty() ? std::nullopt : decimal_of(text);
    return value && values_.contains(*value);
  }

 private:
  std::set<std::string> texts_ = {"",         "#N/A", "#N/A N/A", "#NA",    "-1.#IND",
                                  "-1.#QNAN", "-NaN", "-nan",     "1.#IND", "1.#QNAN",
                                  "<NA>",     "N/A",  "NA",       "NULL",   "NaN",
                                  "None",     "n/a",  "nan",      "null"};
  std::set<Decimal> values_ = {};
};

// What a column is, besides its part in `CsvTable::columns`.
struct Column {
  size_t field = 0;  // its place in a record
  bool is_target = false;
  bool has_categories = false;
  bool is_known = false;    // given by `CsvOptions::columns`
  int64_t number_line = 0;  // the line whose number made it a column of numbers, or 0
  std::unique_ptr<Categories> categories = {};
};

class TableReader {
 public:
  TableReader(const std::filesystem::path& path, const CsvOptions& options)
      : options_(options), missing_(options.na_values) {
    const InputFile file(path, "sconce::io::read_csv");
    who_ = file.name();
    check_options();
    bytes_ = static_cast<double>(file.size());
    most_bytes_ = options_.max_bytes ? static_cast<double>(*options_.max_bytes)
                                     : 16 * bytes_ + 0x1p26;  // 64 MiB
    TORCH_CHECK(bytes_ <= most_bytes_, who_, memory_limit(), "a file of ", file.size(), " bytes");
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
  // What a column or a category takes at most besides its text: names, and nodes of trees.
  static constexpr double bytes_of_entry = 320;

  std::string memory_limit() const {
    return c10::str("expected a table that takes at most ", static_cast<int64_t>(most_bytes_),
                    " bytes of memory (max_bytes), got ");
  }

  void check_options() const {
    constexpr std::string_view structural("\"\r\n\0", 4);
    TORCH_CHECK(structural.find(options_.delimiter) == structural.npos, who_,
                "expected a delimiter that is no quote, no line break and no NUL byte, got ",
                static_cast<int>(options_.delimiter));
    TORCH_CHECK(options_.max_categories >= 1 && options_.max_categories <= most_categories, who_,
                "expected max_categories from 1 to ", most_categories, ", got ",
                options_.max_categories);
    TORCH_CHECK(!options_.max_bytes || *options_.max_bytes >= 1, who_,
                "expected a positive max_bytes, got ", options_.max_bytes.value_or(0));
    TORCH_CHECK(options_.columns.empty() || options_.categories.empty(), who_,
                "expected columns or categories, got both");
  }

  // Returns the records from the first on, or those after the names.
  CsvRecords records(size_t most_fields) const {
    std::string_view text = text_;
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    return {text, options_.delimiter, who_, most_fields};
  }

  CsvRecords rows() const {
    CsvRecords rows = records(names_.size());
    if (options_.names.empty()) rows.next();
    return rows;
  }

  void read_names() {
    names_ = options_.names;
    if (names_.empty()) {
      CsvRecords record = records(static_cast<size_t>(most_bytes_ / bytes_of_entry) + 1);
      TORCH_CHECK(record.next(), who_, "expected a line of names, found an empty file");
      TORCH_CHECK(record.problem() == nullptr, who_, "line ", record.line(), ": ",
                  record.problem());
      TORCH_CHECK(bytes_ + bytes_of_entry * static_cast<double>(record.size()) <= most_bytes_, who_,
                  "line ", record.line(), ": ", memory_limit(), record.size(), " columns");
      names_.reserve(record.size());
      for (size_t i = 0; i < record.size(); ++i) names_.push_back(record[i]);
    }
    for (const auto& name : names_) bytes_ += bytes_of_entry + 4 * static_cast<double>(name.size());
    check_once(names_, "");
  }

  void check_once(const std::vector<std::string>& names, const char* option) const {
    const NameIndex index(names);
    const std::string* twice = index.twice();
    TORCH_CHECK(twice == nullptr, who_, option, "expected each column's name once, got ",
                shown(*twice), " twice");
  }

  void choose_columns() {
    std::vector<std::string> known;
    for (const auto& column : options_.columns) known.push_back(column.name);
    check_once(known, "columns: ");
    const auto& all = known.empty() ? names_ : known;
    const NameIndex index(all), fields(names_);
    std::vector<bool> is_dropped(all.size()), has_categories(all.size());
    const auto place_of = [&](const char* option, const std::string& name) {
      const auto place = index.find(name);
      TORCH_CHECK(place && !is_dropped[*place], who_, option, ": expected a column's name, got ",
                  shown(name), "; there are ", shown(left(all, is_dropped)));
      return *place;
    };
    std::vector<size_t> dropped;
    for (const auto& name : options_.drop) dropped.push_back(place_of("drop", name));
    for (const size_t place : dropped) is_dropped[place] = true;
    for (const auto& name : options_.categories)
      has_categories[place_of("categories", name)] = true;
    const bool has_target = !options_.target.empty();
    const size_t target = has_target ? place_of("target", options_.target) : all.size();
    for (size_t i = 0; i < all.size(); ++i) {
      if (is_dropped[i]) continue;
      const auto field = fields.find(all[i]);
      TORCH_CHECK(field, who_, "expected a column ", shown(all[i]), ", found ", shown(names_));
      Column column = {.field = *field, .is_target = i == target};
      column.has_categories = has_categories[i];
      add_column(std::move(column),
                 known.empty() ? CsvColumn{.name = all[i]} : options_.columns[i]);
    }
    TORCH_CHECK(columns_.size() > (has_target ? 1U : 0U), who_,
                "expected a column of features, found none");
  }

  static std::vector<std::string> left(const std::vector<std::string>& names,
                                       const std::vector<bool>& is_dropped) {
    std::vector<std::string> left;
    for (size_t i = 0; i < names.size(); ++i) {
      if (!is_dropped[i]) left.push_back(names[i]);
    }
    return left;
  }

  void add_column(Column column, CsvColumn known) {
    column.is_known = !options_.columns.empty();
    if (!known.categories.empty()) {
      column.has_categories = true;
      column.categories = std::make_unique<Categories>();
      for (const auto& category : known.categories) {
        column.categories->add(category);
        count_category(known.name, category);
      }
      TORCH_CHECK(column.categories->size() == std::ssize(known.categories), who_,
                  "columns: expected each category of ", shown(known.name), " once, got ",
                  known.categories.size(), ", of which ", column.categories->size(),
                  " are different");
    }
    columns_.push_back(std::move(column));
    table.columns.push_back(std::move(known));
  }

  void count_category(const std::string& column, const std::string& category) {
    bytes_ += bytes_of_entry + 4 * static_cast<double>(category.size()) +
              static_cast<double>(column.size());
  }

  // Finds the columns of texts. One number makes a column one of numbers, so that a wrong text is
  // reported and does not become a category.
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
        if (missing_.contains(text) || is_infinite(text)) return false;
        column->has_categories = !number_of(text);
        if (!column->has_categories) column->number_line = row.line();
        return !column->has_categories;
      });
    }
    for (auto& column : columns_) {
      if (column.has_categories) column.categories = std::make_unique<Categories>();
    }
  }

  void read_rows() {
    // Each value ends with a delimiter or a line break, except the last one.
    const auto lines = std::count(text_.begin(), text_.end(), '\n') +
                       std::count(text_.begin(), text_.end(), '\r') + 1;
    cells_.reserve(static_cast<size_t>(
        std::min(static_cast<double>(lines) * static_cast<double>(columns_.size()),
                 static_cast<double>(text_.size() + 1))));
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
    if (options_.skip_bad && table.skipped > 0) check_kinds();
    const bool is_good = table.skipped == 0 || (options_.skip_bad && !cells_.empty());
    TORCH_CHECK(
        is_good, who_, table.first_skipped.front(),
        table.skipped > 1 ? c10::str("; this is the first of ", table.skipped, " bad rows") : "");
    TORCH_CHECK(!cells_.empty(), who_, "expected rows, found none");
  }

  // One number in a column of texts makes all other rows bad, which `skip_bad` must not hide.
  void check_kinds() const {
    struct Counts {
      int64_t numbers = 0;
      int64_t texts = 0;
    };
    std::vector<Counts> counts(columns_.size());
    for (CsvRecords row = rows(); row.next();) {
      if (row.problem() != nullptr || row.size() != names_.size()) continue;
      for (size_t i = 0; i < columns_.size(); ++i) {
        const std::string& text = row[columns_[i].field];
        if (columns_[i].number_line == 0 || missing_.contains(text)) continue;
        ++(is_text(text) ? counts[i].texts : counts[i].numbers);
      }
    }
    for (size_t i = 0; i < columns_.size(); ++i) {
      const auto [numbers, texts] = counts[i];
      TORCH_CHECK(texts <= numbers, who_, problem_of_first_text(i), "; skip_bad would leave out ",
                  texts, " of ", numbers + texts, " values of the column");
    }
  }

  // Of a column of numbers.
  std::string problem_of_first_text(size_t i) const {
    CsvRecords row = rows();
    const auto is_found = [&] {
      if (row.problem() != nullptr || row.size() != names_.size()) return false;
      const std::string& text = row[columns_[i].field];
      return !missing_.contains(text) && is_text(text);
    };
    while (row.next() && !is_found()) {
    }
    return problem_of(row, i, "a number");
  }

  static bool is_text(const std::string& text) { return !number_of(text) && !is_infinite(text); }

  // Returns what is wrong with a row, or nothing. Sets its values, except new categories.
  std::string problem_of(const CsvRecords& row, std::vector<float>& values) const {
    if (row.problem() != nullptr) return c10::str("line ", row.line(), ": ", row.problem());
    if (row.size() != names_.size()) {
      return c10::str("line ", row.line(), ": expected ", names_.size(), " fields, got ",
                      row.size());
    }
    for (size_t i = 0; i < columns_.size(); ++i) {
      const std::string expected = expectation(i, row[columns_[i].field], values[i]);
      if (!expected.empty()) return problem_of(row, i, expected);
    }
    return {};
  }

  // Returns the problem of a value that is not as expected.
  std::string problem_of(const CsvRecords& row, size_t i, const std::string& expected) const {
    const Column& column = columns_[i];
    const std::string problem =
        c10::str("line ", row.line(), ", column ", shown(name_of(i)), ": expected ", expected,
                 ", got ", shown(row[column.field]));
    if (column.number_line == 0 || expected != "a number") return problem;
    return c10::str(problem, " (line ", column.number_line,
                    " made this a column of numbers; list it in .categories to read texts)");
  }

  const std::string& name_of(size_t i) const { return table.columns[i].name; }

  // Returns what was expected of a wrong text, or nothing.
  std::string expectation(size_t i, const std::string& text, float& value) const {
    const Column& column = columns_[i];
    const bool is_missing = missing_.contains(text);
    if (is_missing && column.is_target) return "a target";
    if (is_missing && !options_.keep_missing) return "a value";
    if (column.has_categories) {
      if (!column.is_known) return {};
      const auto code = column.categories->find(is_missing ? missing_category : text);
      if (!code) return "one of " + shown(table.columns[i].categories);
      value = static_cast<float>(*code);
      return {};
    }
    if (is_missing) {
      value = std::numeric_limits<float>::quiet_NaN();
      return {};
    }
    const auto number = number_of(text);
    if (!number) return is_infinite(text) ? "a finite number" : "a number";
    if (std::abs(*number) >= beyond_float) return "a number that float32 has";
    value = static_cast<float>(*number);
    return {};
  }

  void add_categories(const CsvRecords& row, std::vector<float>& values) {
    for (size_t i = 0; i < columns_.size(); ++i) {
      const Column& column = columns_[i];
      if (!column.has_categories || column.is_known) continue;
      const std::string& field = row[column.field];
      const std::string& text = missing_.contains(field) ? missing_text_ : field;
      const int64_t before = column.categories->texts();
      const int64_t code = column.categories->add(text);
      values[i] = static_cast<float>(code);
      if (code < before) continue;
      count_category(name_of(i), text);
      TORCH_CHECK(column.categories->size() <= options_.max_categories && code < most_categories,
                  who_, "line ", row.line(), ", column ", shown(name_of(i)), ": expected at most ",
                  options_.max_categories, " categories, got another: ", shown(field));
      TORCH_CHECK(bytes_ <= most_bytes_, who_, "line ", row.line(), ", column ", shown(name_of(i)),
                  ": ", memory_limit(), "another category: ", shown(field));
    }
  }

  // Sets the names of the features and the order of new categories, and returns the place of each
  // code in that order. Known categories are in order.
  std::vector<std::vector<int64_t>> order_categories() {
    std::vector<std::vector<int64_t>> places(columns_.size());
    for (size_t i = 0; i < columns_.size(); ++i) {
      auto& [name, categories] = table.columns[i];
      if (columns_[i].has_categories && !columns_[i].is_known) {
        categories = columns_[i].categories->sorted();
        places[i] = columns_[i].categories->places(categories);
      }
      if (columns_[i].is_target) continue;
      if (!columns_[i].has_categories) table.features.push_back(name);
      for (const auto& category : categories) table.features.push_back(name + "_" + category);
    }
    return places;
  }

  void make_tensors() {
    const auto places = order_categories();
    const size_t width = columns_.size();
    const auto height = static_cast<int64_t>(cells_.size() / width);
    const auto count = std::ssize(table.features);
    bytes_ += 4 * static_cast<double>(cells_.size()) +
              static_cast<double>(height) * (8 + 4 * static_cast<double>(count));
    TORCH_CHECK(bytes_ <= most_bytes_, who_, memory_limit(), height, " rows of ", count,
                " features");
    table.data = at::zeros({height, count}, at::kFloat);
    auto* feature = table.data.mutable_data_ptr<float>();
    const float* cell = cells_.data();
    for (int64_t row = 0; row < height; ++row) {
      for (size_t i = 0; i < width; ++i, ++cell) {
        if (columns_[i].is_target) continue;
        if (!columns_[i].has_categories) {
          *feature++ = *cell;
          continue;
        }
        const auto code = static_cast<size_t>(*cell);
        feature[columns_[i].is_known ? code : static_cast<size_t>(places[i][code])] = 1;
        feature += table.columns[i].categories.size();
      }
    }
    for (size_t i = 0; i < width; ++i) {
      if (columns_[i].is_target) set_target(i, height, places[i]);
    }
  }

  void set_target(size_t i, int64_t height, const std::vector<int64_t>& places) {
    const auto all = at::from_blob(cells_.data(), {height, std::ssize(columns_)}, at::kFloat);
    const auto values = all.slice(1, static_cast<int64_t>(i), static_cast<int64_t>(i) + 1);
    if (!columns_[i].has_categories) {
      table.target = values.clone(at::MemoryFormat::Contiguous);
      return;
    }
    table.target = values.squeeze(1).to(at::kLong);
    if (columns_[i].is_known) return;
    auto* code = table.target.mutable_data_ptr<int64_t>();
    for (int64_t row = 0; row < height; ++row) code[row] = places[static_cast<size_t>(code[row])];
  }

  const CsvOptions& options_;
  const MissingTexts missing_;
  const std::string missing_text_ = missing_category;
  std::string who_ = {};
  std::string text_ = {};
  std::vector<std::string> names_ = {};
  std::vector<Column> columns_ = {};
  std::vector<float> cells_ = {};
  double bytes_ = 0;  // of memory, as counted so far
  double most_bytes_ = 0;
};

}  // namespace

CsvTable read_csv(const std::filesystem::path& path, const CsvOptions& options) {
  return TableReader(path, options).table;
}

}  // namespace sconce::io
