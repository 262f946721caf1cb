#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io/csv_categories.hpp"
#include "io/csv_file.hpp"
#include "io/csv_missing.hpp"
#include "sconce/io/csv.hpp"

namespace sconce::io {

inline constexpr int64_t category_limit = int64_t{1} << 24;  // float32 is exact up to here

/// A column that will be read.
struct TableColumn {
  CsvColumn column = {};  ///< categories are set if known, or once all rows are read
  size_t field = 0;       ///< the column's index in a record
  bool is_target = false;
  bool has_categories = false;
  bool is_known = false;    ///< from `CsvOptions::columns`
  int64_t number_line = 0;  ///< line of the number that made this column numeric, or 0
  std::unique_ptr<Categories> categories = {};
};

/// Returns the columns to read, in order. These are the columns in the options or, if the options
/// contain none, the file's columns without the dropped ones. Counts the memory for known
/// categories.
/// @throw c10::Error if the options contain a column that does not exist, or if no feature remains.
std::vector<TableColumn> choose_columns(CsvFile& file, const CsvOptions& options);

/// Finds the string columns, which become categorical columns. A single number makes a column
/// numeric, so a misplaced string is reported and does not become a category.
void find_kinds(std::vector<TableColumn>& columns, const CsvFile& file,
                const MissingTexts& missing);

/// Counts the memory for an additional category in a column.
void count_category(TableMemory& memory, const TableColumn& column, const std::string& category);

}  // namespace sconce::io
