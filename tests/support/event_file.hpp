#pragma once

#include <bit>
#include <cstdint>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/temp_dir.hpp"

namespace sconce::test {

/// One record in a TensorBoard event file.
struct Event {
  std::string bytes = {};  ///< the record with its length and checksums
  double wall_time = 0;
  int64_t step = 0;
  std::string file_version = {};
  bool is_start = false;  ///< hides earlier scalars for its step and for later steps
  std::string tag = {};   ///< empty if the record is not a scalar
  float value = 0;
  std::string summary = {};  ///< the message for any other value, such as an image
};

/// Reads event files strictly, and throws an exception on any unexpected byte.
class EventReader {
 public:
  explicit EventReader(std::string bytes) : bytes_(std::move(bytes)) {}

  std::vector<Event> events() {
    std::vector<Event> all;
    for (size_t at = 0; at < bytes_.size();) {
      const auto length = number(piece(at, 8), 8);
      check(number(piece(at + 8, 4), 4) == masked_crc(piece(at, 8)), "the length's checksum");
      const auto data = piece(at + 12, length);
      check(number(piece(at + 12 + length, 4), 4) == masked_crc(data), "the data's checksum");
      Event& event = all.emplace_back(read_event(data));
      event.bytes = piece(at, length + 16);
      at += length + 16;
    }
    return all;
  }

  struct Field {
    uint64_t number = 0;  ///< for the kinds 0, 1 and 5
    std::string_view text = {};
  };

  /// Returns the fields of a message, keyed by number and kind. No field may occur twice.
  static std::map<std::pair<int, int>, Field> fields(std::string_view text) {
    std::map<std::pair<int, int>, Field> all;
    while (!text.empty()) {
      const auto key = varint(text);
      const int kind = static_cast<int>(key & 7);
      Field field;
      if (kind == 0) {
        field.number = varint(text);
      } else {
        check(kind == 1 || kind == 2 || kind == 5, "a field's kind");
        const uint64_t size = kind == 1 ? 8 : kind == 5 ? 4 : varint(text);
        check(size <= text.size(), "a field's size");
        field.text = text.substr(0, size);
        if (kind != 2) field.number = number(field.text, static_cast<int>(size));
        text.remove_prefix(size);
      }
      check(all.emplace(std::pair(static_cast<int>(key >> 3), kind), field).second, "a repeat");
    }
    return all;
  }

 private:
  static void check(bool good, const std::string& what) {
    if (!good) throw std::runtime_error("EventReader: " + what + " is wrong");
  }

  std::string_view piece(size_t at, size_t size) const {
    check(at <= bytes_.size() && size <= bytes_.size() - at, "the file's end");
    return std::string_view(bytes_).substr(at, size);
  }

  static uint64_t number(std::string_view text, int bytes) {
    uint64_t value = 0;
    for (int i = bytes - 1; i >= 0; --i) value = value << 8 | static_cast<uint8_t>(text.at(i));
    return value;
  }

  static uint32_t masked_crc(std::string_view text) {
    uint32_t crc = 0xFFFFFFFF;
    for (const char byte : text) {
      crc ^= static_cast<uint8_t>(byte);
      for (int i = 0; i < 8; ++i) crc = (crc & 1) != 0 ? crc >> 1 ^ 0x82F63B78 : crc >> 1;
    }
    crc = ~crc;
    return (crc >> 15 | crc << 17) + 0xA282EAD8;
  }

  static uint64_t varint(std::string_view& text) {
    for (uint64_t value = 0, shift = 0; shift < 64; shift += 7) {
      check(!text.empty(), "a varint");
      const auto byte = static_cast<uint8_t>(text.front());
      text.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128) return value;
    }
    throw std::runtime_error("EventReader: a varint is too long");
  }

  static Event read_event(std::string_view data) {
    Event event;
    auto rest = fields(data);
    const auto take = [](auto& from, int number, int kind) {
      auto node = from.extract({number, kind});
      return node.empty() ? Field() : node.mapped();
    };
    event.wall_time = std::bit_cast<double>(take(rest, 1, 1).number);
    event.step = static_cast<int64_t>(take(rest, 2, 0).number);
    event.file_version = take(rest, 3, 2).text;
    take(rest, 10, 2);  // the writer, which files from Python specify
    if (rest.contains({7, 2})) {
      auto log = fields(take(rest, 7, 2).text);
      event.is_start = take(log, 1, 0).number == 1;
      check(event.is_start && log.empty(), "a session log");
    }
    if (rest.contains({5, 2})) {
      auto summary = fields(take(rest, 5, 2).text);
      const auto message = take(summary, 1, 2).text;
      auto value = fields(message);
      check(summary.empty() && value.contains({1, 2}), "a summary");
      if (value.contains({2, 5})) {
        event.tag = take(value, 1, 2).text;
        event.value = std::bit_cast<float>(static_cast<uint32_t>(take(value, 2, 5).number));
        check(value.empty(), "a scalar");
      } else {
        check(value.contains({4, 2}) || value.contains({5, 2}) || value.contains({9, 2}),
              "a value");
        event.summary = message;
      }
    }
    check(rest.empty(), "an event's field");
    return event;
  }

  std::string bytes_;
};

/// Returns the events in an event file.
inline std::vector<Event> read_events(const std::filesystem::path& file) {
  return EventReader(contents(file)).events();
}

/// Returns the event files in a folder, in the order in which TensorBoard reads them.
inline std::vector<std::filesystem::path> event_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& name : names_in(folder)) {
    if (name.starts_with("events.out.tfevents.")) files.push_back(folder / name);
  }
  return files;
}

/// Returns the scalars that TensorBoard shows for a folder, in order. The start of a session
/// removes the scalars for its step and for later steps.
inline std::vector<Event> shown_scalars(const std::filesystem::path& folder) {
  std::vector<Event> shown;
  for (const auto& file : event_files(folder)) {
    for (const auto& event : read_events(file)) {
      if (event.is_start) std::erase_if(shown, [&](auto& e) { return e.step >= event.step; });
      if (!event.tag.empty()) shown.push_back(event);
    }
  }
  return shown;
}

}  // namespace sconce::test
