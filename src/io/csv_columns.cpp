#include "io/csv_columns.hpp"

#include <c10/util/Exception.h>

#include <iterator>
#include <utility>

#include "io/csv_names.hpp"
#include "io/csv_number.hpp"

namespace sconce::io {

namespace {

// The column roles that the options specify.
struct Roles {
  std::vector<bool> is_dropped;
  std::vector<bool> has_categories;
  std::optional<size_t> target = {};
};

std::vector<std::string> left(const std::vector<std::string>& names,
                              const std::vector<bool>& is_dropped) {
  std::vector<std::string> left;
  for (size_t i = 0; i < names.size(); ++i) {
    if (!is_dropped[i]) left.push_back(names[i]);
  }
  return left;
}

Roles find_roles(const std::string& error_prefix, const std::vector<std::string>& names,
                 const CsvOptions& options) {
  Roles roles{std::vector<bool>(names.size()), std::vector<bool>(names.size())};
  const NameIndex index(names);
  const auto place_of = [&](const char* option, const std::string& name) {
    const auto place = index.find(name);
    TORCH_CHECK(place && !roles.is_dropped[*place], error_prefix, option,
                ": expected a column name, got ", shown(name), "; there are ",
                shown(left(names, roles.is_dropped)));
    return *place;
  };
  std::vector<size_t> dropped;
  for (const auto& name : options.drop) dropped.push_back(place_of("drop", name));
  for (const size_t place : dropped) roles.is_dropped[place] = true;
  for (const auto& name : options.categories) {
    roles.has_categories[place_of("categories", name)] = true;
  }
  if (!options.target.empty()) roles.target = place_of("target", options.target);
  return roles;
}

// Adds the categories of a column from a previously read table.
void add_known(TableColumn& added, CsvFile& file) {
  const auto& [name, categories] = added.column;
  added.is_known = true;
  if (categories.empty()) return;
  added.has_categories = true;
  added.categories = std::make_unique<Categories>();
  for (const auto& category : categories) {
    added.categories->add(category);
    count_category(file.memory, added, category);
  }
  TORCH_CHECK(added.categories->size() == std::ssize(categories), file.error_prefix,
              "columns: expected each category of ", shown(name), " once, got ", categories.size(),
              ", of which only ", added.categories->size(), " are distinct");
}

}  // namespace

std::vector<TableColumn> choose_columns(CsvFile& file, const CsvOptions& options) {
  std::vector<std::string> known;
  for (const auto& column : options.columns) known.push_back(column.name);
  check_once(file, known, "columns: ");
  const auto& names = known.empty() ? file.names : known;
  const Roles roles = find_roles(file.error_prefix, names, options);
  const NameIndex fields(file.names);
  std::vector<TableColumn> columns;
  for (size_t i = 0; i < names.size(); ++i) {
    if (roles.is_dropped[i]) continue;
    const auto field = fields.find(names[i]);
    TORCH_CHECK(field, file.error_prefix, "expected a column ", shown(names[i]), ", found ",
                shown(file.names), "; to read a file without this column, add the column to .drop");
    TableColumn& added = columns.emplace_back();
    added.column = known.empty() ? CsvColumn{.name = names[i]} : options.columns[i];
    added.field = *field;
    added.is_target = roles.target == i;
    added.has_categories = roles.has_categories[i];
    if (!known.empty()) add_known(added, file);
  }
  TORCH_CHECK(columns.size() > (roles.target ? 1U : 0U), file.error_prefix,
              "expected at least one feature column, found none");
  return columns;
}

void find_kinds(std::vector<TableColumn>& columns, const CsvFile& file,
                const MissingTexts& missing) {
  std::vector<TableColumn*> undecided;
  for (auto& column : columns) {
    if (!column.has_categories) undecided.push_back(&column);
  }
  CsvRecords row = file.rows();
  while (!undecided.empty() && row.next()) {
    if (!file.is_whole(row)) continue;
    std::erase_if(undecided, [&](TableColumn* column) {
      const std::string& text = row[column->field];
      if (missing.contains(text) || is_infinite(text)) return false;
      column->has_categories = !number_of(text);
      if (!column->has_categories) column->number_line = row.line();
      return !column->has_categories;
    });
  }
  for (auto& column : columns) {
    if (column.has_categories) column.categories = std::make_unique<Categories>();
  }
}

void count_category(TableMemory& memory, const TableColumn& column, const std::string& category) {
  memory.add_entry(4 * static_cast<double>(category.size()) +
                   static_cast<double>(column.column.name.size()));
}

}  // namespace sconce::io
