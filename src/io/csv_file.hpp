#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "io/csv_records.hpp"
#include "sconce/io/csv.hpp"

namespace sconce::io {

/// Counts the memory that reading a table takes, before it is allocated.
class TableMemory {
 public:
  TableMemory(uint64_t file_size, std::optional<int64_t> most);

  void add(double bytes) { bytes_ += bytes; }

  /// Counts a column or a category, whose texts are kept in `chars` bytes.
  void add_entry(double chars) { bytes_ += bytes_of_entry + chars; }

  /// Returns whether this number of entries can be added, apart from their texts.
  bool fits(double entries = 0) const { return bytes_ + bytes_of_entry * entries <= most_; }

  /// Returns the largest number of entries that can be added to an empty table.
  size_t most_entries() const { return static_cast<size_t>(most_ / bytes_of_entry); }

  /// Returns the beginning of the error where it does not fit, up to "got".
  std::string limit() const;

 private:
  static constexpr double bytes_of_entry = 320;  // names, and nodes of trees

  double bytes_;
  double most_;
};

/// A CSV file in memory.
struct CsvFile {
  std::string who;  ///< begins the message of an error
  TableMemory memory;
  std::string text = {};
  char delimiter = ',';
  std::vector<std::string> names = {};  ///< of all columns of the file
  bool begins_with_names = true;

  /// Returns the records from the first on, which keep at most this number of fields.
  CsvRecords records(size_t most_fields) const;

  /// Returns the records after the names.
  CsvRecords rows() const;

  /// Returns whether a record has a field for each column. Other records are bad rows.
  bool is_whole(const CsvRecords& row) const {
    return row.problem() == nullptr && row.size() == names.size();
  }
};

/// Reads the whole file and the names of its columns.
/// @throw c10::Error if an option that is about the file is invalid, or a name occurs twice.
CsvFile open_csv(const std::filesystem::path& path, const CsvOptions& options);

/// Checks that no name occurs twice. `option` names the list in the error.
void check_once(const CsvFile& file, const std::vector<std::string>& names, const char* option);

}  // namespace sconce::io
