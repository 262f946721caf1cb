#pragma once

#include <c10/util/Exception.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/utf8.hpp"

namespace sconce::io {

/// Iterates over the records in a CSV text, including the first one. Blank lines are skipped.
class CsvRecords {
 public:
  /// Error messages start with `error_prefix`. The text must outlive this object. A record stores
  /// at most `max_fields` fields and only counts the remaining ones, so its memory does not depend
  /// on the number of delimiters.
  CsvRecords(std::string_view text, char delimiter, std::string error_prefix, size_t max_fields)
      : text_(text),
        error_prefix_(std::move(error_prefix)),
        delimiter_(delimiter),
        ends_({delimiter, '\r', '\n'}),
        max_fields_(max_fields) {}

  /// Reads the next record. Returns false at the end.
  /// @throw c10::Error with the line number if a quote is never closed.
  bool next() {
    while (at_ < text_.size()) {
      const size_t begin = at_;
      begin_line_ = line_;
      count_ = 0;
      problem_ = nullptr;
      while (read_field()) {
      }
      const std::string_view raw = text_.substr(begin, at_ - begin);
      if (is_blank(raw)) continue;
      if (raw.find('\0') != raw.npos) problem_ = "expected text, got a NUL byte";
      if (!is_utf8(raw)) problem_ = "expected valid UTF-8, got invalid bytes";
      return true;
    }
    count_ = 0;
    return false;
  }

  /// Returns the line number of the record's first field, starting at 1.
  int64_t line() const { return begin_line_; }

  /// Returns the number of fields in the record.
  size_t size() const { return count_; }

  /// Returns one of the stored fields, without quotes.
  const std::string& operator[](size_t i) const { return fields_[i]; }

  /// Returns a description of the problem with the record, or null.
  const char* problem() const { return problem_; }

 private:
  // Returns whether the record has another field.
  bool read_field() {
    std::string& field = next_field();
    field.clear();
    const bool is_quoted = at_ < text_.size() && text_[at_] == '"';
    if (is_quoted) read_quoted(field);
    const size_t end = std::min(text_.find_first_of(ends_, at_), text_.size());
    if (is_quoted && end > at_)
      problem_ = "expected a quoted field to end with its closing quote, got text after the quote";
    field += text_.substr(at_, end - at_);
    at_ = end;
    if (at_ == text_.size()) return false;
    const char c = text_[at_++];
    if (c == delimiter_) return true;
    if (c == '\r' && at_ < text_.size() && text_[at_] == '\n') ++at_;
    ++line_;
    return false;
  }

  std::string& next_field() {
    const size_t i = count_++;
    if (i >= max_fields_) return other_field_;
    if (i == fields_.size()) fields_.emplace_back();
    return fields_[i];
  }

  void read_quoted(std::string& field) {
    const size_t begin = at_++;
    const int64_t begin_line = line_;
    while (true) {
      const size_t quote = text_.find('"', at_);
      TORCH_CHECK(quote != text_.npos, error_prefix_, "line ", begin_line,
                  ": expected a quote that closes the field, got the end of the file");
      field += text_.substr(at_, quote - at_);
      at_ = quote + 1;
      if (at_ == text_.size() || text_[at_] != '"') break;
      field += text_[at_++];
    }
    for (size_t i = begin; i < at_; ++i) {
      const bool is_crlf = text_[i] == '\r' && text_[i + 1] == '\n';
      if ((text_[i] == '\r' && !is_crlf) || text_[i] == '\n') ++line_;
    }
  }

  // Returns whether the record is blank. Unquoted blanks are ignored, but a quoted field counts
  // even if it contains only blanks.
  bool is_blank(std::string_view raw) const {
    return count_ == 1 && raw.find_first_not_of(" \t\r\n") == raw.npos;
  }

  std::string_view text_;
  std::string error_prefix_;
  char delimiter_;
  std::string ends_;
  size_t at_ = 0;
  int64_t line_ = 1;
  int64_t begin_line_ = 1;
  size_t count_ = 0;
  size_t max_fields_;
  std::vector<std::string> fields_ = {};
  std::string other_field_ = {};
  const char* problem_ = nullptr;
};

}  // namespace sconce::io
