#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sconce/fwd.hpp"

namespace sconce::io {

/// A column of a table.
struct CsvColumn {
  std::string name = {};

  /// The categories, sorted: by value if all are numbers, otherwise by their bytes. Numbers of one
  /// value, such as 1 and 1.0, are one category, named as the first in the file. Values are exact,
  /// so integers of any length are different categories. The category of missing values is "nan",
  /// and is last. Empty for a column of numbers.
  std::vector<std::string> categories = {};
};

/// The options of `read_csv`. Columns are named as in the file's first line.
struct CsvOptions {
  /// The column of `CsvTable::target`. Empty: none.
  std::string target = {};

  /// Columns of categories, even if their values are numbers.
  std::vector<std::string> categories = {};

  /// Columns to leave out.
  std::vector<std::string> drop = {};

  /// The names of all columns of a file whose first line is a row. Python: `names`.
  std::vector<std::string> names = {};

  /// Texts that stand for a missing value, besides those of pandas, such as "?". A number stands
  /// for every number of its value: "-999" for -999.0 too. Python: `na_values`.
  std::vector<std::string> na_values = {};

  char delimiter = ',';

  /// Whether a row may have missing values: NaN in a column of numbers, a category of their own in
  /// others. Otherwise such a row is bad. A row without its target always is.
  bool keep_missing = false;

  /// Whether to leave out bad rows. Otherwise the first one is an error. It is an error too if a
  /// column of numbers contains more texts than numbers, because it is probably a column of
  /// categories. Python: `on_bad_lines="skip"`, for rows of too many fields alone.
  bool skip_bad = false;

  /// Most categories of a column, each of which becomes a column of `CsvTable::data`.
  int64_t max_categories = 100;

  /// Most bytes of memory to use while reading, including the file's text and the table. Many
  /// categories in short rows can take hundreds of times the file's size. Default: 16 times the
  /// file's size plus 64 MiB.
  std::optional<int64_t> max_bytes = {};

  /// The columns of a table that was read before, such as `train.columns`: the same columns are
  /// read in the same order, with the same categories. Another category is bad. Other columns of
  /// the file are ignored.
  std::vector<CsvColumn> columns = {};
};

/// A table as tensors on the CPU.
struct CsvTable {
  /// Features `(N, F)`, float32: for each column of numbers a column, and for each column of
  /// categories a column of 0 and 1 for each category.
  torch::Tensor data = {};

  /// Numbers `(N, 1)`, float32, or indices of categories `(N,)`, int64. Undefined without a target.
  torch::Tensor target = {};

  /// The F names of the features, such as "rooms" and, for a category of "roof", "roof_slate".
  std::vector<std::string> features = {};

  /// The columns that were read, among them the target.
  std::vector<CsvColumn> columns = {};

  /// The number of rows that `skip_bad` left out.
  int64_t skipped = 0;

  /// Why rows were left out, for at most the first ten: "line 17, column 'rooms': expected ...".
  std::vector<std::string> first_skipped = {};
};

/// Reads a table from a CSV file in UTF-8, as RFC 4180 describes it: fields may be quoted, with
/// doubled quotes, delimiters and line breaks inside. Lines end with LF, CRLF or CR. Blank lines
/// and a byte order mark are ignored. A column in which some value is a finite number is one of
/// numbers, and so is one of infinite numbers only. Other columns are categories. Numbers become
/// float32 by way of float64.
///
/// A row is bad if it has more or fewer fields than there are columns, a text, an infinite number
/// or a number beyond float32 in a column of numbers, a value that is missing (see `keep_missing`),
/// an unknown category (see `columns`), a NUL byte, bytes that are not UTF-8, or text after a
/// closing quote.
///
/// Python: `pandas.read_csv(path)`, then `pandas.get_dummies(table, dummy_na=True)`, with the
/// columns in the file's order and no column of missing categories where none is missing.
/// @throw c10::Error, naming the file and, where there is one, the line and the column, if:
/// - the file cannot be read, is empty, or has no good row;
/// - a row is bad and `skip_bad` is false; the error tells the number of bad rows;
/// - the names are bad, or one occurs twice;
/// - the target or another column that the options name does not exist, or no feature is left;
/// - a column has more than `max_categories` categories, or reading would take more than
/// `max_bytes`;
/// - `skip_bad` would leave out most values of a column of numbers because they are texts;
/// - a quote is never closed;
/// - an option is invalid.
CsvTable read_csv(const std::filesystem::path& path, const CsvOptions& options = {});

}  // namespace sconce::io
