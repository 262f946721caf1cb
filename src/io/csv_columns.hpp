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

inline constexpr int64_t most_categories = int64_t{1} << 24;  // float32 has all integers up to here

/// A column that is read.
struct TableColumn {
  CsvColumn column = {};  ///< has the categories only if they are known, or once all rows are read
  size_t field = 0;       ///< its place in a record
  bool is_target = false;
  bool has_categories = false;
  bool is_known = false;    ///< given by `CsvOptions::columns`
  int64_t number_line = 0;  ///< the line whose number made it a column of numbers, or 0
  std::unique_ptr<Categories> categories = {};
};

/// Returns the columns to read, in order: those of the options, or else those of the file without
/// the dropped ones. Known categories count toward the file's memory.
/// @throw c10::Error if a column that the options name does not exist, or no feature is left.
std::vector<TableColumn> choose_columns(CsvFile& file, const CsvOptions& options);

/// Finds the columns of texts, which become columns of categories. One number makes a column one of
/// numbers, so that a wrong text is reported and does not become a category.
void find_kinds(std::vector<TableColumn>& columns, const CsvFile& file,
                const MissingTexts& missing);

/// Counts the memory of another category of a column.
void count_category(TableMemory& memory, const TableColumn& column, const std::string& category);

}  // namespace sconce::io
