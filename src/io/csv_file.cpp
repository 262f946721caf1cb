#include "io/csv_file.hpp"

#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>

#include <string_view>

#include "io/csv_columns.hpp"
#include "io/csv_names.hpp"
#include "io/input_file.hpp"

namespace sconce::io {

namespace {

void check_options(const std::string& error_prefix, const CsvOptions& options) {
  constexpr std::string_view structural("\"\r\n\0", 4);
  TORCH_CHECK(structural.find(options.delimiter) == structural.npos, error_prefix,
              "expected a delimiter other than a quote, a line break, or a NUL byte, got ",
              static_cast<int>(options.delimiter));
  TORCH_CHECK(options.max_categories >= 1 && options.max_categories <= category_limit, error_prefix,
              "expected max_categories from 1 to ", category_limit, ", got ",
              options.max_categories);
  TORCH_CHECK(!options.max_bytes || *options.max_bytes >= 1, error_prefix,
              "expected a positive max_bytes, got ", options.max_bytes.value_or(0));
  TORCH_CHECK(options.columns.empty() || options.categories.empty(), error_prefix,
              "expected columns or categories, got both");
}

std::vector<std::string> first_line(const CsvFile& file) {
  CsvRecords record = file.records(file.memory.max_entries() + 1);
  TORCH_CHECK(record.next(), file.error_prefix,
              "expected a line of column names, found an empty file");
  TORCH_CHECK(record.problem() == nullptr, file.error_prefix, "line ", record.line(), ": ",
              record.problem());
  TORCH_CHECK(file.memory.fits(static_cast<double>(record.size())), file.error_prefix, "line ",
              record.line(), ": ", file.memory.limit(), record.size(), " columns");
  std::vector<std::string> names;
  names.reserve(record.size());
  for (size_t i = 0; i < record.size(); ++i) names.push_back(record[i]);
  return names;
}

}  // namespace

TableMemory::TableMemory(uint64_t file_size, std::optional<int64_t> most)
    : bytes_(static_cast<double>(file_size)),
      limit_(most ? static_cast<double>(*most) : 16 * bytes_ + 0x1p26) {}  // 64 MiB

std::string TableMemory::limit() const {
  return c10::str("expected a table that needs at most ", static_cast<int64_t>(limit_),
                  " bytes of memory (max_bytes), got ");
}

CsvRecords CsvFile::records(size_t max_fields) const {
  std::string_view bytes = text;
  if (bytes.starts_with("\xEF\xBB\xBF")) bytes.remove_prefix(3);
  return {bytes, delimiter, error_prefix, max_fields};
}

CsvRecords CsvFile::rows() const {
  CsvRecords rows = records(names.size());
  if (begins_with_names) rows.next();
  return rows;
}

CsvFile open_csv(const std::filesystem::path& path, const CsvOptions& options) {
  const InputFile input(path, "sconce::io::read_csv");
  check_options(input.name(), options);
  CsvFile file = {.error_prefix = input.name(),
                  .memory = TableMemory(input.size(), options.max_bytes),
                  .delimiter = options.delimiter,
                  .begins_with_names = options.names.empty()};
  TORCH_CHECK(file.memory.fits(), file.error_prefix, file.memory.limit(), "a file of ",
              input.size(), " bytes");
  file.text.resize(input.size());
  input.read(0, file.text.data(), file.text.size());
  file.names = file.begins_with_names ? first_line(file) : options.names;
  for (const auto& name : file.names) file.memory.add_entry(4 * static_cast<double>(name.size()));
  check_once(file, file.names, "");
  return file;
}

void check_once(const CsvFile& file, const std::vector<std::string>& names, const char* option) {
  const NameIndex index(names);
  const std::string* duplicate = index.find_duplicate();
  TORCH_CHECK(duplicate == nullptr, file.error_prefix, option, "expected unique column names, got ",
              shown(*duplicate), " twice");
}

}  // namespace sconce::io
