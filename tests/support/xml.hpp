#pragma once

#include <cctype>
#include <set>
#include <string>
#include <string_view>

#include "io/utf8.hpp"

namespace sconce::test {

/// Strictly checks the part of XML 1.0 that charts use: elements, attributes, text, and the five
/// entities. Comments, CDATA sections, character references, and document types are not supported.
class XmlCheck {
 public:
  explicit XmlCheck(std::string_view text) : text_(text) {}

  /// Returns the error, or an empty string if there is none.
  std::string problem() {
    if (!io::is_utf8(text_)) return "no UTF-8";
    for (size_t i = 0; i < text_.size(); ++i) {
      const auto byte = static_cast<unsigned char>(text_[i]);
      if (byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') return wrong("control", i);
      const auto rest = text_.substr(i, 3);
      if (rest == "\xEF\xBF\xBE" || rest == "\xEF\xBF\xBF") return wrong("no character", i);
    }
    if (!take("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")) return wrong("declaration", at_);
    if (!element()) return wrong("element", at_);
    while (at_ < text_.size() && text_[at_] == '\n') ++at_;
    return at_ == text_.size() ? "" : wrong("something after the root", at_);
  }

 private:
  std::string wrong(const std::string& what, size_t at) const {
    return what + " at " + std::to_string(at) + ": " + std::string(text_.substr(at, 60));
  }

  bool take(std::string_view expected) {
    if (text_.substr(at_, expected.size()) != expected) return false;
    at_ += expected.size();
    return true;
  }

  std::string_view name() {
    const size_t from = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 ||
                                  text_[at_] == '-' || text_[at_] == ':')) {
      ++at_;
    }
    return text_.substr(from, at_ - from);
  }

  // Reads text up to the end character without consuming that character.
  bool characters(char end) {
    while (at_ < text_.size() && text_[at_] != end) {
      if (text_[at_] == '<' || text_[at_] == '>') return false;
      if (text_[at_] == '&') {
        bool known = false;
        for (const char* entity : {"&amp;", "&lt;", "&gt;", "&quot;", "&apos;"}) {
          known = known || take(entity);
        }
        if (!known) return false;
      } else {
        ++at_;
      }
    }
    return at_ < text_.size();
  }

  bool attributes() {
    std::set<std::string_view> names;
    while (take(" ")) {
      const auto attribute = name();
      if (attribute.empty() || !names.insert(attribute).second) return false;
      if (!take("=\"") || !characters('"') || !take("\"")) return false;
    }
    return true;
  }

  bool element() {
    if (!take("<")) return false;
    const auto tag = name();
    if (tag.empty() || !attributes()) return false;
    if (take("/>")) return true;
    if (!take(">")) return false;
    while (characters('<')) {
      if (take("</")) return name() == tag && take(">");
      if (!element()) return false;
    }
    return false;
  }

  std::string_view text_;
  size_t at_ = 0;
};

/// If the text is not well-formed XML 1.0, returns the reason. Otherwise, returns an empty string.
inline std::string xml_problem(std::string_view text) {
  return XmlCheck(text).problem();
}

}  // namespace sconce::test
