#pragma once

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "support/temp_dir.hpp"

namespace sconce::test {

/// Returns a column from the metrics.csv file that sconce-train writes. The values are strings,
/// exactly as they appear in the file.
inline std::vector<std::string> column_of(const std::filesystem::path& csv,
                                          const std::string& name) {
  std::istringstream in(contents(csv));
  std::vector<std::string> column;
  std::string row, field;
  std::getline(in, row);
  const std::string names = "," + row + ",";
  const auto before = names.substr(0, names.find("," + name + ","));
  const auto place = std::count(before.begin(), before.end(), ',');
  while (std::getline(in, row)) {
    std::istringstream fields(row);
    for (int64_t i = 0; i <= place; ++i) std::getline(fields, field, ',');
    column.push_back(field);
  }
  return column;
}

}  // namespace sconce::test
