#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "io/csv_number.hpp"

namespace sconce::io {

/// The strings that mark missing values: pandas' defaults and the strings in the options. As in
/// pandas, a number matches every number with the same value.
class MissingTexts {
 public:
  explicit MissingTexts(const std::vector<std::string>& more) {
    texts_.insert(more.begin(), more.end());
    for (const auto& text : more) {
      const auto value = decimal_of(text);
      if (value) values_.insert(*value);
    }
  }

  bool contains(const std::string& text) const {
    if (texts_.contains(text)) return true;
    const auto value = values_.empty() ? std::nullopt : decimal_of(text);
    return value && values_.contains(*value);
  }

 private:
  std::set<std::string> texts_ = {"",         "#N/A", "#N/A N/A", "#NA",    "-1.#IND",
                                  "-1.#QNAN", "-NaN", "-nan",     "1.#IND", "1.#QNAN",
                                  "<NA>",     "N/A",  "NA",       "NULL",   "NaN",
                                  "None",     "n/a",  "nan",      "null"};
  std::set<Decimal> values_ = {};
};

}  // namespace sconce::io
