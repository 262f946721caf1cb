#include "io/safetensors_header.hpp"

#include <c10/util/Exception.h>
#include <c10/util/safe_numerics.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

namespace sconce::io {

namespace {

using Json = nlohmann::json;
using c10::ScalarType;

// The types in the order that the format defines. A file stores its tensors in the reverse order of
// their types.
constexpr std::array types = {SafetensorsType{"BOOL", ScalarType::Bool, 8},
                              SafetensorsType{"F4", ScalarType::Float4_e2m1fn_x2, 4},
                              SafetensorsType{"U8", ScalarType::Byte, 8},
                              SafetensorsType{"I8", ScalarType::Char, 8},
                              SafetensorsType{"F8_E5M2", ScalarType::Float8_e5m2, 8},
                              SafetensorsType{"F8_E4M3", ScalarType::Float8_e4m3fn, 8},
                              SafetensorsType{"F8_E8M0", ScalarType::Float8_e8m0fnu, 8},
                              SafetensorsType{"F8_E4M3FNUZ", ScalarType::Float8_e4m3fnuz, 8},
                              SafetensorsType{"F8_E5M2FNUZ", ScalarType::Float8_e5m2fnuz, 8},
                              SafetensorsType{"I16", ScalarType::Short, 16},
                              SafetensorsType{"U16", ScalarType::UInt16, 16},
                              SafetensorsType{"F16", ScalarType::Half, 16},
                              SafetensorsType{"BF16", ScalarType::BFloat16, 16},
                              SafetensorsType{"I32", ScalarType::Int, 32},
                              SafetensorsType{"U32", ScalarType::UInt32, 32},
                              SafetensorsType{"F32", ScalarType::Float, 32},
                              SafetensorsType{"C64", ScalarType::ComplexFloat, 64},
                              SafetensorsType{"F64", ScalarType::Double, 64},
                              SafetensorsType{"I64", ScalarType::Long, 64},
                              SafetensorsType{"U64", ScalarType::UInt64, 64}};

// Reads the JSON incrementally, so that memory never contains the header twice, and rejects
// misplaced values. nlohmann::json's parser calls these functions.
class HeaderReader : public nlohmann::json_sax<Json> {
 public:
  explicit HeaderReader(const std::string& error_prefix) : error_prefix_(error_prefix) {}

  SafetensorsHeader take() { return std::move(header_); }

  bool null() override {
    // The Python safetensors package treats null as missing metadata.
    const bool is_metadata = level_ == Level::top && name_ == "__metadata__";
    return is_metadata || skips() || refuse("null");
  }
  bool boolean(bool) override { return skips() || refuse("a boolean"); }
  bool number_integer(number_integer_t value) override {
    return skips() || refuse(std::to_string(value));
  }
  bool number_float(number_float_t, const string_t& text) override {
    return skips() || refuse(text);
  }
  bool binary(binary_t&) override { return refuse("binary"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (skips()) return true;
    if (level_ != Level::array) return refuse(std::to_string(value));
    constexpr uint64_t largest = std::numeric_limits<int64_t>::max();
    TORCH_CHECK(value <= largest, where(), "expected integers of at most ", largest, ", got ",
                value);
    numbers_.push_back(static_cast<int64_t>(value));
    return true;
  }

  bool string(string_t& text) override {
    if (skips()) return true;
    if (level_ == Level::metadata) {
      TORCH_CHECK(header_.metadata.emplace(field_, text).second, where(),
                  "expected unique metadata keys, got '", field_, "' twice");
      return true;
    }
    if (level_ != Level::entry || field_ != "dtype") return refuse("'" + text + "'");
    const auto* type = find_type(text);
    TORCH_CHECK(type != nullptr, where(), "expected a dtype that LibTorch supports, got '", text,
                "'");
    entry_.type = *type;
    return true;
  }

  bool start_object(size_t) override {
    if (enter_skipped()) return true;
    if (level_ == Level::outside) {
      level_ = Level::top;
    } else if (level_ == Level::top) {
      level_ = name_ == "__metadata__" ? Level::metadata : Level::entry;
      entry_ = {.name = name_};
      fields_.clear();
    } else {
      return refuse("an object");
    }
    return true;
  }

  bool key(string_t& name) override {
    if (skipped_ > 0) return true;
    if (level_ == Level::top) {
      name_ = name;
      TORCH_CHECK(names_.insert(name).second, where(),
                  "expected unique tensor names, got a duplicate");
      return true;
    }
    field_ = name;
    if (level_ == Level::metadata || is_unknown()) return true;
    TORCH_CHECK(fields_.insert(name).second, where(), "expected ", name, " once, got a duplicate");
    return true;
  }

  bool start_array(size_t) override {
    if (enter_skipped()) return true;
    if (level_ != Level::entry || field_ == "dtype") return refuse("a list");
    level_ = Level::array;
    numbers_.clear();
    return true;
  }

  bool end_array() override {
    if (leave_skipped()) return true;
    level_ = Level::entry;
    if (field_ == "shape") {
      entry_.shape = numbers_;
      return true;
    }
    TORCH_CHECK(numbers_.size() == 2, where(), "expected two data_offsets, got ", numbers_.size());
    entry_.begin = static_cast<uint64_t>(numbers_[0]);
    entry_.end = static_cast<uint64_t>(numbers_[1]);
    return true;
  }

  bool end_object() override {
    if (leave_skipped()) return true;
    if (level_ == Level::entry) {
      TORCH_CHECK(fields_.size() == 3, where(), "expected dtype, shape, and data_offsets, got ",
                  fields_.size(), " of them");
      header_.entries.push_back(std::move(entry_));
    }
    level_ = level_ == Level::top ? Level::outside : Level::top;
    return true;
  }

  bool parse_error(size_t position, const std::string&, const Json::exception& error) override {
    TORCH_CHECK(false, error_prefix_, "expected JSON at byte ", position + 7,
                " of the file: ", error.what());
  }

 private:
  enum class Level { outside, top, metadata, entry, array };

  // Newer writers may add fields to an entry. The values of unknown fields are skipped, regardless
  // of their contents.
  bool is_unknown() const {
    return field_ != "dtype" && field_ != "shape" && field_ != "data_offsets";
  }
  bool skips() const { return skipped_ > 0 || (level_ == Level::entry && is_unknown()); }
  bool enter_skipped() {
    if (!skips()) return false;
    ++skipped_;
    return true;
  }
  bool leave_skipped() {
    if (skipped_ == 0) return false;
    --skipped_;
    return true;
  }

  std::string where() const {
    return name_.empty() && names_.empty() ? error_prefix_ : error_prefix_ + "'" + name_ + "': ";
  }
  bool refuse(const std::string& what) const {
    static const std::map<Level, const char*> expected = {
        {Level::outside, "an object"},
        {Level::top, "an object"},
        {Level::metadata, "texts"},
        {Level::entry, "a dtype string and lists of integers"},
        {Level::array, "non-negative integers"}};
    TORCH_CHECK(false, where(), "expected ", expected.at(level_), ", got ", what);
  }

  const std::string& error_prefix_;
  SafetensorsHeader header_ = {};
  Level level_ = Level::outside;
  std::string name_ = {};
  std::string field_ = {};
  SafetensorsEntry entry_ = {};
  std::vector<int64_t> numbers_ = {};
  std::set<std::string> names_ = {};  // not hashed, to avoid collisions
  std::set<std::string> fields_ = {};
  size_t skipped_ = 0;  // nesting depth inside the value of an unknown field
};

// Returns the number of bytes in a tensor with the given type and shape.
uint64_t bytes_of(const SafetensorsEntry& entry, const std::string& where) {
  uint64_t elements = 1;
  uint64_t strides = 1;  // LibTorch computes strides as if sizes of 0 were 1
  bool fits = true;
  for (const int64_t size : entry.shape) {
    fits = fits && !c10::mul_overflows(elements, static_cast<uint64_t>(size), &elements);
    fits = fits && !c10::mul_overflows(strides, static_cast<uint64_t>(std::max<int64_t>(size, 1)),
                                       &strides);
  }
  uint64_t bits = 0;
  uint64_t limit = 0;
  fits = fits && !c10::mul_overflows(elements, static_cast<uint64_t>(entry.type.bits), &bits) &&
         !c10::mul_overflows(strides, uint64_t{64}, &limit);
  TORCH_CHECK(fits, where, "expected a shape whose size fits in 64 bits, got a larger size");
  const bool whole = entry.type.bits >= 8 || (!entry.shape.empty() && entry.shape.back() % 2 == 0);
  TORCH_CHECK(whole, where, "expected an even size in the last dimension for ", entry.type.name);
  return bits / 8;
}

void check_entries(std::vector<SafetensorsEntry>& entries, uint64_t data_size,
                   const std::string& error_prefix) {
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t next = 0;
  for (const auto& entry : entries) {
    const std::string where = error_prefix + "'" + entry.name + "': ";
    TORCH_CHECK(entry.begin == next && entry.end >= entry.begin, where,
                "expected data_offsets to begin at ", next,
                " (where the previous tensor ends), got ", entry.begin, " to ", entry.end);
    TORCH_CHECK(entry.end <= data_size, where, "expected data_offsets to be at most ", data_size,
                " (the number of bytes after the header), got ", entry.end);
    const uint64_t bytes = bytes_of(entry, where);
    TORCH_CHECK(entry.end - entry.begin == bytes, where, "expected ", bytes,
                " bytes for this shape and dtype, got data_offsets of ", entry.end - entry.begin);
    next = entry.end;
  }
  TORCH_CHECK(next == data_size, error_prefix, "expected ", next, " bytes after the header, found ",
              data_size);
}

std::string entry_text(const SafetensorsEntry& entry) {
  std::string shape;
  for (const int64_t size : entry.shape) {
    if (!shape.empty()) shape += ',';
    shape += std::to_string(size);
  }
  return std::string(R"({"dtype":")") + entry.type.name + R"(","shape":[)" + shape +
         R"(],"data_offsets":[)" + std::to_string(entry.begin) + "," + std::to_string(entry.end) +
         "]}";
}

}  // namespace

std::vector<int64_t> SafetensorsEntry::sizes() const {
  auto sizes = shape;
  if (type.bits < 8) sizes.back() /= 2;
  return sizes;
}

const SafetensorsType* find_type(std::string_view name) {
  const auto* found =
      std::find_if(types.begin(), types.end(), [&](const auto& type) { return type.name == name; });
  return found == types.end() ? nullptr : found;
}

const SafetensorsType* find_type(c10::ScalarType scalar) {
  const auto* found = std::find_if(types.begin(), types.end(),
                                   [&](const auto& type) { return type.type == scalar; });
  return found == types.end() ? nullptr : found;
}

SafetensorsHeader parse_header(std::string_view text, uint64_t data_size,
                               const std::string& error_prefix) {
  TORCH_CHECK(!text.empty() && text.front() == '{', error_prefix,
              "expected a header that begins with {");
  const size_t nul = text.find('\0');  // the parser would treat it as the end of the text
  TORCH_CHECK(nul == text.npos, error_prefix, "expected JSON at byte ", nul + 8,
              " of the file, got a null byte");
  HeaderReader reader(error_prefix);
  Json::sax_parse(text.begin(), text.end(), &reader);
  SafetensorsHeader header = reader.take();
  check_entries(header.entries, data_size, error_prefix);
  return header;
}

std::string header_text(const SafetensorsHeader& header, const std::string& error_prefix) {
  // Writes the JSON incrementally. The destructor of a larger nlohmann::json allocates memory, so
  // running out of memory would terminate the process.
  const auto quoted = [](const std::string& text) { return Json(text).dump(); };
  std::string text = "{";
  const auto begin_item = [&](const std::string& name) {
    if (text.back() != '{') text += ',';
    text += quoted(name) + ':';
  };
  try {
    if (!header.metadata.empty()) {
      begin_item("__metadata__");
      text += '{';
      for (const auto& [key, value] : header.metadata) {
        begin_item(key);
        text += quoted(value);
      }
      text += '}';
    }
    for (const auto& entry : header.entries) {
      begin_item(entry.name);
      text += entry_text(entry);
    }
    text += '}';
    text.resize((text.size() + 7) / 8 * 8, ' ');
    return text;
  } catch (const nlohmann::json::exception& error) {
    TORCH_CHECK(false, error_prefix, "expected names and strings in UTF-8: ", error.what());
  }
}

}  // namespace sconce::io
