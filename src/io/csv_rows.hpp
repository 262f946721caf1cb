#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/csv_columns.hpp"
#include "io/csv_file.hpp"
#include "io/csv_missing.hpp"
#include "sconce/io/csv.hpp"

namespace sconce::io {

/// The values of the good rows, and the problems with the bad rows.
struct TableRows {
  /// Stored row by row, with one number per column: the value or the code of its category.
  std::vector<float> cells = {};
  int64_t skipped = 0;                          ///< the number of bad rows
  std::vector<std::string> first_skipped = {};  ///< the problems with the first ten bad rows
};

/// Reads all rows. Adds new categories to the columns and counts their memory.
/// @throw c10::Error if there are no good rows, or if there are too many categories. Also throws if
/// there is a bad row and `skip_bad` is not set, or if `skip_bad` would omit most values of a
/// column.
TableRows read_rows(CsvFile& file, std::vector<TableColumn>& columns, const CsvOptions& options,
                    const MissingTexts& missing);

}  // namespace sconce::io
