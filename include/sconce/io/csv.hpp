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

  /// The categories, sorted by value if all of them are numbers, and by their bytes otherwise.
  /// Numbers with the same value, such as 1 and 1.0, form a single category, which is named after
  /// whichever number comes first in the file. Values are compared exactly, so integers of any
  /// length remain distinct. The category for missing values is "nan" and comes last. The list is
  /// empty for a numeric column.
  std::vector<std::string> categories = {};
};

/// Options for `read_csv`. Columns are identified by their names in the first line of the file.
struct CsvOptions {
  /// Column to return as `CsvTable::target`. If the name is empty, the table has no target.
  std::string target = {};

  /// Columns to treat as categorical, even if their values are numbers.
  std::vector<std::string> categories = {};

  /// Columns to exclude.
  std::vector<std::string> drop = {};

  /// Names of all columns, for a file without a header line. Python: `names`.
  std::vector<std::string> names = {};

  /// Strings to treat as missing values, such as "?", in addition to pandas' defaults. A numeric
  /// string matches every number with the same value, so "-999" also matches -999.0. Python:
  /// `na_values`.
  std::vector<std::string> na_values = {};

  char delimiter = ',';

  /// Whether to keep rows with missing values. Missing values become NaN in numeric columns and a
  /// separate category in other columns. If false, a row with a missing value counts as a bad row.
  /// A row with a missing target always counts as a bad row.
  bool keep_missing = false;

  /// Whether to skip bad rows. If false, the first bad row causes an error. If true, a numeric
  /// column that contains more text values than numbers still causes an error, because the column
  /// is probably categorical. Python: `on_bad_lines="skip"`, which skips only rows with too many
  /// fields.
  bool skip_bad = false;

  /// Maximum number of categories in a column. Each category becomes a column of `CsvTable::data`.
  int64_t max_categories = 100;

  /// Maximum memory use during reading, in bytes, including the file's text and the table. A file
  /// with many categories and short rows can require hundreds of times its size in memory. The
  /// default is 16 times the file size plus 64 MiB.
  std::optional<int64_t> max_bytes = {};

  /// Columns of a previously read table, such as `train.columns`. If set, the new table contains
  /// the same columns, in the same order, and with the same categories as the earlier table. A row
  /// with an unknown category counts as a bad row. Columns in the file that are not in this list
  /// are ignored.
  std::vector<CsvColumn> columns = {};
};

/// A table stored as tensors on the CPU.
struct CsvTable {
  /// Features, as a float32 tensor of shape `(N, F)`. A numeric column becomes one feature, and a
  /// categorical column becomes one 0/1 feature per category.
  torch::Tensor data = {};

  /// Targets: float32 values of shape `(N, 1)`, or int64 category indices of shape `(N,)`.
  /// Undefined if there is no target.
  torch::Tensor target = {};

  /// The F feature names, such as "rooms" or, for a category of the "roof" column, "roof_slate".
  std::vector<std::string> features = {};

  /// The columns that were read, including the target.
  std::vector<CsvColumn> columns = {};

  /// Number of rows skipped because of `skip_bad`.
  int64_t skipped = 0;

  /// Reasons why rows were skipped, such as "line 17, column 'rooms': expected ...", for at most
  /// the first ten skipped rows.
  std::vector<std::string> first_skipped = {};
};

/// Reads a table from a UTF-8 CSV file, as described in RFC 4180. Quoted fields may contain doubled
/// quotes, delimiters, and line breaks. Lines may end with LF, CRLF, or CR. Blank lines and a byte
/// order mark are ignored. A column is numeric if at least one of its values is a finite number or
/// if all of its values are infinite. All other columns are categorical. Numbers are parsed as
/// float64 and converted to float32.
///
/// A row is bad if its number of fields differs from the number of columns, if a numeric column
/// contains text, an infinite number, or a number outside the range of float32, if a value is
/// missing (see `keep_missing`), if a category is unknown (see `columns`), or if the row contains a
/// NUL byte, invalid UTF-8, or text after a closing quote.
///
/// Python: `pandas.read_csv(path)`, then `pandas.get_dummies(table, dummy_na=True)`. Unlike in
/// pandas, columns keep their order from the file, and a column for missing values is added only if
/// values are missing.
/// @throw c10::Error, with the file and, if applicable, the line and column in the message, if:
/// - the file cannot be read, is empty, or contains only bad rows;
/// - a row is bad and `skip_bad` is false (the message contains the number of bad rows);
/// - a column name is invalid or duplicated;
/// - the target or another column specified in the options does not exist, or no features remain;
/// - a column has more than `max_categories` categories, or reading would use more than
///   `max_bytes`;
/// - `skip_bad` would skip most values of a numeric column because they are text;
/// - a quoted field is not closed;
/// - an option is invalid.
CsvTable read_csv(const std::filesystem::path& path, const CsvOptions& options = {});

}  // namespace sconce::io
