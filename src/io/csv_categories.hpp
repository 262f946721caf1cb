#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "io/csv_number.hpp"

namespace sconce::io {

inline constexpr auto missing_category = "nan";

/// The categories of a column, in order of appearance. As long as all of them are numbers, numbers
/// with the same value form one category, which is named after its first spelling. This class uses
/// trees instead of hash tables, because a file could contain strings that make hash tables slow.
class Categories {
 public:
  Categories() = default;
  Categories(const Categories&) = delete;  // values_ refers to nodes in codes_
  Categories& operator=(const Categories&) = delete;

  /// Returns the code for a string. The code for a new string is the current number of strings.
  int64_t add(const std::string& text) {
    const auto [place, is_new] = codes_.try_emplace(text, texts());
    if (!is_new) return place->second;
    if (text == missing_category) {
      has_missing_ = true;
    } else if (are_numbers_) {
      const auto value = decimal_of(text);
      if (value) values_.try_emplace(*value, place);
      are_numbers_ = value.has_value();
      if (!are_numbers_) values_.clear();
    }
    return place->second;
  }

  /// Returns the code of a known string, or of a known number with the same value.
  std::optional<int64_t> find(const std::string& text) const {
    const auto code = codes_.find(text);
    if (code != codes_.end()) return code->second;
    const auto value = are_numbers_ ? decimal_of(text) : std::nullopt;
    const auto same = value ? values_.find(*value) : values_.end();
    return same != values_.end() ? std::optional(same->second->second) : std::nullopt;
  }

  /// Returns the number of distinct strings. Different spellings of a number are counted
  /// separately.
  int64_t texts() const { return static_cast<int64_t>(codes_.size()); }

  int64_t size() const {
    return are_numbers_ ? static_cast<int64_t>(values_.size()) + (has_missing_ ? 1 : 0) : texts();
  }

  /// Returns the category names in the order used by `CsvColumn`.
  std::vector<std::string> sorted() const {
    std::vector<std::string> names;
    for (const auto& [value, place] : values_) names.push_back(place->first);
    for (const auto& [text, code] : codes_) {
      if (!are_numbers_ && text != missing_category) names.push_back(text);
    }
    if (has_missing_) names.emplace_back(missing_category);
    return names;
  }

  /// Returns the index of each code in the names returned by `sorted`.
  std::vector<int64_t> places(const std::vector<std::string>& names) const {
    std::vector<int64_t> places(codes_.size());
    const auto place_of = [&](int64_t code) -> int64_t& {
      return places[static_cast<size_t>(code)];
    };
    for (size_t i = 0; i < names.size(); ++i) {
      place_of(codes_.at(names[i])) = static_cast<int64_t>(i);
    }
    for (const auto& [text, code] : codes_) {
      const bool has_value = are_numbers_ && text != missing_category;
      if (has_value) place_of(code) = place_of(values_.at(*decimal_of(text))->second);
    }
    return places;
  }

 private:
  using Codes = std::map<std::string, int64_t>;

  Codes codes_ = {};
  std::map<Decimal, Codes::const_iterator> values_ = {};  // maps values to their first spellings
  bool are_numbers_ = true;
  bool has_missing_ = false;
};

}  // namespace sconce::io
