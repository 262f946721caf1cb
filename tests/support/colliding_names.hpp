#pragma once

#include <string>
#include <unordered_set>
#include <vector>

namespace sconce::test {

/// Returns names that all fall into the same bucket of an unordered table that contains only these
/// names. Each name begins with "n".
inline std::vector<std::string> names_of_one_bucket(size_t count) {
  std::unordered_set<size_t> table;
  for (size_t i = 0; i < count; ++i) table.insert(i);
  std::vector<std::string> names;
  for (size_t i = 0; names.size() < count; ++i) {
    std::string name = "n" + std::to_string(i);
    if (std::hash<std::string>()(name) % table.bucket_count() == 0) names.push_back(name);
  }
  return names;
}

}  // namespace sconce::test
