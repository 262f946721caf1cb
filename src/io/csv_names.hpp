#pragma once

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sconce::io {

/// Shortens a string from a file to a single line for an error message.
inline std::string shown(std::string_view text) {
  size_t end = std::min<size_t>(text.size(), 40);
  while (end > 0 && end < text.size() && (text[end] & 0xC0) == 0x80)
    --end;  // do not split a character
  std::string line(text.substr(0, end));
  for (char& c : line) c = static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  return "'" + line + (end < text.size() ? "...'" : "'");
}

/// Returns the first ten names for an error message.
inline std::string shown(const std::vector<std::string>& names) {
  constexpr size_t most = 10;
  std::string line;
  for (size_t i = 0; i < std::min(names.size(), most); ++i) {
    line += (i == 0 ? "" : ", ") + shown(names[i]);
  }
  return line + (names.size() > most ? ", ..." : "");
}

/// Maps names to their positions in a list. This class uses sorting instead of hashing, because a
/// file could contain names that make a hash table slow.
class NameIndex {
 public:
  /// The names must outlive this object.
  explicit NameIndex(const std::vector<std::string>& names) : names_(names), order_(names.size()) {
    std::iota(order_.begin(), order_.end(), size_t{0});
    const auto less = [&](size_t a, size_t b) { return names[a] < names[b]; };
    std::sort(order_.begin(), order_.end(), less);
  }

  std::optional<size_t> find(const std::string& name) const {
    const auto less = [&](size_t i, const std::string& text) { return names_[i] < text; };
    const auto found = std::lower_bound(order_.begin(), order_.end(), name, less);
    if (found == order_.end() || names_[*found] != name) return {};
    return *found;
  }

  /// Returns a duplicate name, or null.
  const std::string* find_duplicate() const {
    const auto same = [&](size_t a, size_t b) { return names_[a] == names_[b]; };
    const auto found = std::adjacent_find(order_.begin(), order_.end(), same);
    return found == order_.end() ? nullptr : &names_[*found];
  }

 private:
  const std::vector<std::string>& names_;
  std::vector<size_t> order_;
};

}  // namespace sconce::io
