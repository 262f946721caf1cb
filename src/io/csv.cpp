#include "sconce/io/csv.hpp"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <iterator>
#include <utility>

#include "io/csv_columns.hpp"
#include "io/csv_file.hpp"
#include "io/csv_missing.hpp"
#include "io/csv_rows.hpp"

namespace sconce::io {

namespace {

// For each column, maps category codes to positions among the sorted categories. Columns with known
// categories have no entries, because their codes are already in order.
using Places = std::vector<std::vector<int64_t>>;

// Sorts the new categories of each column.
Places sort_categories(std::vector<TableColumn>& columns) {
  Places places(columns.size());
  for (size_t i = 0; i < columns.size(); ++i) {
    TableColumn& column = columns[i];
    if (!column.has_categories || column.is_known) continue;
    column.column.categories = column.categories->sorted();
    places[i] = column.categories->places(column.column.categories);
  }
  return places;
}

std::vector<std::string> names_of_features(const std::vector<TableColumn>& columns) {
  std::vector<std::string> features;
  for (const auto& column : columns) {
    if (column.is_target) continue;
    const auto& [name, categories] = column.column;
    if (!column.has_categories) features.push_back(name);
    for (const auto& category : categories) features.push_back(name + "_" + category);
  }
  return features;
}

int64_t height_of(const TableRows& rows, const std::vector<TableColumn>& columns) {
  return static_cast<int64_t>(rows.cells.size() / columns.size());
}

void check_memory(CsvFile& file, const TableRows& rows, int64_t height, int64_t features) {
  file.memory.add(4 * static_cast<double>(rows.cells.size()) +
                  static_cast<double>(height) * (8 + 4 * static_cast<double>(features)));
  TORCH_CHECK(file.memory.fits(), file.error_prefix, file.memory.limit(), height, " rows of ",
              features, " features");
}

at::Tensor make_data(const TableRows& rows, const std::vector<TableColumn>& columns,
                     const Places& places, int64_t features) {
  const int64_t height = height_of(rows, columns);
  at::Tensor data = at::zeros({height, features}, at::kFloat);
  auto* feature = data.mutable_data_ptr<float>();
  const float* cell = rows.cells.data();
  for (int64_t row = 0; row < height; ++row) {
    for (size_t i = 0; i < columns.size(); ++i, ++cell) {
      if (columns[i].is_target) continue;
      if (!columns[i].has_categories) {
        *feature++ = *cell;
        continue;
      }
      const auto code = static_cast<size_t>(*cell);
      feature[columns[i].is_known ? code : static_cast<size_t>(places[i][code])] = 1;
      feature += columns[i].column.categories.size();
    }
  }
  return data;
}

// Returns the values of a column, or the indices of its categories.
at::Tensor make_target(TableRows& rows, const std::vector<TableColumn>& columns,
                       const Places& places, size_t target) {
  const int64_t height = height_of(rows, columns);
  const auto first = static_cast<int64_t>(target);
  const auto all = at::from_blob(rows.cells.data(), {height, std::ssize(columns)}, at::kFloat);
  const auto values = all.slice(1, first, first + 1);
  if (!columns[target].has_categories) return values.clone(at::MemoryFormat::Contiguous);
  at::Tensor indices = values.squeeze(1).to(at::kLong);
  if (columns[target].is_known) return indices;
  auto* code = indices.mutable_data_ptr<int64_t>();
  for (int64_t row = 0; row < height; ++row) {
    code[row] = places[target][static_cast<size_t>(code[row])];
  }
  return indices;
}

CsvTable make_table(CsvFile& file, std::vector<TableColumn>& columns, TableRows& rows) {
  CsvTable table;
  const Places places = sort_categories(columns);
  table.features = names_of_features(columns);
  const auto features = std::ssize(table.features);
  check_memory(file, rows, height_of(rows, columns), features);
  table.data = make_data(rows, columns, places, features);
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].is_target) table.target = make_target(rows, columns, places, i);
  }
  for (auto& column : columns) table.columns.push_back(std::move(column.column));
  table.skipped = rows.skipped;
  table.first_skipped = std::move(rows.first_skipped);
  return table;
}

}  // namespace

CsvTable read_csv(const std::filesystem::path& path, const CsvOptions& options) {
  CsvFile file = open_csv(path, options);
  const MissingTexts missing(options.na_values);
  std::vector<TableColumn> columns = choose_columns(file, options);
  if (options.columns.empty()) find_kinds(columns, file, missing);
  TableRows rows = read_rows(file, columns, options, missing);
  return make_table(file, columns, rows);
}

}  // namespace sconce::io
