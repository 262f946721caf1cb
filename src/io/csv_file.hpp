#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "io/csv_records.hpp"
#include "sconce/io/csv.hpp"

namespace sconce::io {

/// Counts the memory needed to read a table before it is allocated.
class TableMemory {
 public:
  TableMemory(uint64_t file_size, std::optional<int64_t> most);

  void add(double bytes) { bytes_ += bytes; }

  /// Counts the memory for a column or category whose strings occupy `chars` bytes.
  void add_entry(double chars) { bytes_ += bytes_of_entry + chars; }

  /// Returns whether there is room for `entries` more entries, not counting their strings.
  bool fits(double entries = 0) const { return bytes_ + bytes_of_entry * entries <= limit_; }

  /// Returns the maximum number of entries in an empty table.
  size_t max_entries() const { return static_cast<size_t>(limit_ / bytes_of_entry); }

  /// Returns the beginning of the error message for a table that does not fit, up to "got".
  std::string limit() const;

 private:
  static constexpr double bytes_of_entry = 320;  // for its name and tree nodes

  double bytes_;
  double limit_;
};

/// A CSV file in memory.
struct CsvFile {
  std::string error_prefix;  ///< prefix of error messages
  TableMemory memory;
  std::string text = {};
  char delimiter = ',';
  std::vector<std::string> names = {};  ///< names of all columns in the file
  bool begins_with_names = true;

  /// Returns all records. Each record stores at most `max_fields` fields.
  CsvRecords records(size_t max_fields) const;

  /// Returns the records that follow the column names.
  CsvRecords rows() const;

  /// Returns whether a record has a field for each column. Any other record is a bad row.
  bool is_whole(const CsvRecords& row) const {
    return row.problem() == nullptr && row.size() == names.size();
  }
};

/// Reads the whole file and its column names.
/// @throw c10::Error if an option about the file is invalid, or if a name occurs twice.
CsvFile open_csv(const std::filesystem::path& path, const CsvOptions& options);

/// Checks that no name occurs twice. `option` is the name of the list in the error message.
void check_once(const CsvFile& file, const std::vector<std::string>& names, const char* option);

}  // namespace sconce::io
