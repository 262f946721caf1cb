#include "io/zip_reader.hpp"

#include <c10/util/safe_numerics.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <memory>

namespace sconce::io {

static_assert(std::endian::native == std::endian::little, "the format's numbers are little-endian");

namespace {

constexpr uint64_t end_size = 22, end64_size = 56, locator_size = 20;
constexpr uint64_t entry_size = 46, local_size = 30;  // without the name and the extra fields
constexpr uint32_t unknown32 = std::numeric_limits<uint32_t>::max();  // see the zip64 field
constexpr uint16_t unknown16 = std::numeric_limits<uint16_t>::max();
constexpr uint16_t data_descriptor = 1 << 3,
                   utf8_names = 1 << 11;        // the flags that torch.save sets
constexpr uint16_t compression_flags = 3 << 1;  // flags for the compression level
constexpr uint16_t stored = 0, deflated = 8;    // compression methods

template <class T>
T number(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

bool has_signature(const char* bytes, char third, char fourth) {
  return bytes[0] == 'P' && bytes[1] == 'K' && bytes[2] == third && bytes[3] == fourth;
}

// The location of the zip directory, which lists the records.
struct Directory {
  uint64_t entries = 0;
  uint64_t begin = 0;
  uint64_t size = 0;
  uint64_t end = 0;  // where the next part of the file starts
};

// Reads the zip64 end record if one precedes the regular end record.
bool read_end64(const InputFile& file, uint64_t file_end, Directory& directory) {
  if (file_end < end64_size + locator_size + end_size) return false;
  std::array<char, locator_size> locator = {};
  file.read(file_end - end_size - locator_size, locator.data(), locator_size);
  if (!has_signature(locator.data(), 6, 7)) return false;
  const uint64_t at = file_end - end_size - locator_size - end64_size;
  TORCH_CHECK(number<uint64_t>(&locator[8]) == at && number<uint32_t>(&locator[4]) == 0 &&
                  number<uint32_t>(&locator[16]) == 1,
              file.name(), "expected a single-file zip64 end record at byte ", at, ", got ",
              number<uint64_t>(&locator[8]));
  std::array<char, end64_size> end = {};
  file.read(at, end.data(), end64_size);
  TORCH_CHECK(has_signature(end.data(), 6, 6) && number<uint64_t>(&end[4]) == end64_size - 12 &&
                  number<uint64_t>(&end[16]) == 0 &&
                  number<uint64_t>(&end[24]) == number<uint64_t>(&end[32]),
              file.name(), "expected a single-file zip64 end record at byte ", at);
  directory = {number<uint64_t>(&end[32]), number<uint64_t>(&end[48]), number<uint64_t>(&end[40]),
               at};
  return true;
}

// Returns the size of the comment at the end of the file, or 0 if there is none.
size_t comment_size(const InputFile& file) {
  std::string tail(std::min<uint64_t>(file.size(), end_size + unknown16), '\0');
  file.read(file.size() - tail.size(), tail.data(), tail.size());
  for (size_t size = 1; size + end_size <= tail.size(); ++size) {
    const char* end = tail.data() + tail.size() - size - end_size;
    if (has_signature(end, 5, 6) && number<uint16_t>(end + 20) == size) return size;
  }
  return 0;
}

// Returns the offset at which the archive ends. Text tools may append a newline, but an archive
// without a comment never ends with one.
uint64_t end_without_newline(const InputFile& file) {
  std::array<char, 2> last = {};
  if (file.size() < last.size()) return file.size();
  file.read(file.size() - last.size(), last.data(), last.size());
  if (last[1] != '\n') return file.size();
  return file.size() - (last[0] == '\r' ? 2 : 1);
}

Directory read_end(const InputFile& file) {
  std::array<char, end_size> end = {};
  const uint64_t file_end = end_without_newline(file);
  if (file_end >= end_size) file.read(file_end - end_size, end.data(), end_size);
  const bool is_end = has_signature(end.data(), 5, 6);
  const size_t comment = is_end ? 0 : comment_size(file);
  TORCH_CHECK(comment == 0, file.name(),
              "expected a zip archive without a comment, got a comment of ", comment, " bytes");
  TORCH_CHECK(is_end && number<uint32_t>(&end[4]) == 0 &&
                  number<uint16_t>(&end[8]) == number<uint16_t>(&end[10]) &&
                  number<uint16_t>(&end[20]) == 0,
              file.name(), "expected the end record of a zip archive in its last ", end_size,
              " bytes: the file is cut short or damaged");
  const uint64_t entries = number<uint16_t>(&end[10]);
  const uint64_t size = number<uint32_t>(&end[12]), begin = number<uint32_t>(&end[16]);
  Directory directory = {entries, begin, size, file_end - end_size};
  const bool is64 = read_end64(file, file_end, directory);
  const auto agrees = [is64](uint64_t here, uint64_t there, uint64_t unknown) {
    return here == there || (is64 && here == unknown);
  };
  TORCH_CHECK(
      agrees(entries, directory.entries, unknown16) && agrees(size, directory.size, unknown32) &&
          agrees(begin, directory.begin, unknown32),
      file.name(), "expected both end records to contain the same values, got different values");
  TORCH_CHECK(
      directory.size <= directory.end && directory.begin == directory.end - directory.size &&
          directory.entries <= directory.size / entry_size,
      file.name(), "expected a zip directory that ends at byte ", directory.end, ", got ",
      directory.entries, " records in ", directory.size, " bytes at byte ", directory.begin);
  return directory;
}

// A record that the zip directory lists. The record's local header must contain the same values.
struct Entry {
  ZipRecord record;
  uint64_t header = 0;  // where its local header starts
  uint16_t flags = 0;
};

// Reads the values that did not fit into their regular fields from the zip64 field, which contains
// only these values.
bool read_zip64(const char* extra, size_t size, std::initializer_list<uint64_t*> numbers) {
  const auto is_missing = [](const uint64_t* value) { return *value == unknown32; };
  if (std::none_of(numbers.begin(), numbers.end(), is_missing)) return true;
  for (size_t i = 0; i + 4 <= size;) {
    const size_t length = number<uint16_t>(extra + i + 2);
    const bool is_zip64 = number<uint16_t>(extra + i) == 1;
    i += 4;
    if (length > size - i) return false;
    if (!is_zip64) {
      i += length;
      continue;
    }
    const size_t end = i + length;
    for (uint64_t* value : numbers) {
      if (!is_missing(value)) continue;
      if (end - i < sizeof(uint64_t)) return false;
      *value = number<uint64_t>(extra + i);
      i += sizeof(uint64_t);
    }
    return true;
  }
  return false;
}

// Reads the entry at `bytes`, where `left` bytes remain, and returns the size of the entry.
size_t parse_entry(const char* bytes, size_t left, const std::string& where, Entry& entry) {
  TORCH_CHECK(left >= entry_size && has_signature(bytes, 1, 2), where,
              "expected a record in the zip directory");
  const size_t name = number<uint16_t>(bytes + 28), extra = number<uint16_t>(bytes + 30);
  const size_t size = entry_size + name + extra + number<uint16_t>(bytes + 32);
  TORCH_CHECK(size <= left, where, "expected ", size, " bytes of the zip directory, found ", left);
  entry.flags = number<uint16_t>(bytes + 8);
  entry.record.method = number<uint16_t>(bytes + 10);
  entry.record.crc = number<uint32_t>(bytes + 16);
  entry.record.size = number<uint32_t>(bytes + 20);
  entry.record.unpacked = number<uint32_t>(bytes + 24);
  entry.header = number<uint32_t>(bytes + 42);
  entry.record.name.assign(bytes + entry_size, name);
  const std::string of = where + "'" + entry.record.name + "': ";
  TORCH_CHECK(read_zip64(bytes + entry_size + name, extra,
                         {&entry.record.unpacked, &entry.record.size, &entry.header}),
              of, "expected a zip64 field that contains the record's sizes");
  TORCH_CHECK(number<uint16_t>(bytes + 34) == 0, of, "expected a single-file zip archive");
  TORCH_CHECK((entry.flags & 1) == 0, of, "expected an unencrypted record");
  const int allowed = data_descriptor | utf8_names |
                      (entry.record.method == deflated ? compression_flags : uint16_t{0});
  TORCH_CHECK((entry.flags & ~allowed) == 0, of, "expected no flags other than ", allowed, ", got ",
              entry.flags);
  TORCH_CHECK(entry.record.method != stored || entry.record.unpacked == entry.record.size, of,
              "expected ", entry.record.unpacked, " bytes, got ", entry.record.size);
  return size;
}

std::vector<Entry> read_entries(const InputFile& file, const Directory& directory) {
  std::string bytes(directory.size, '\0');
  file.read(directory.begin, bytes.data(), bytes.size());
  std::vector<Entry> entries(directory.entries);
  size_t at = 0;
  for (auto& entry : entries) {
    const std::string where = file.name() + "byte " + std::to_string(directory.begin + at) + ": ";
    at += parse_entry(bytes.data() + at, bytes.size() - at, where, entry);
  }
  TORCH_CHECK(at == bytes.size(), file.name(), "expected a zip directory of ", at, " bytes, got ",
              bytes.size());
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.header < b.header; });
  return entries;
}

// Locates the record's bytes, which follow its local header. Both the local header and the bytes
// must be located between `from` and `to`.
void locate(const InputFile& file, Entry& entry, uint64_t from, uint64_t to) {
  auto& record = entry.record;
  const std::string where = file.name() + "'" + record.name + "': ";
  const uint64_t room = entry.header >= from && entry.header <= to ? to - entry.header : 0;
  TORCH_CHECK(local_size + record.name.size() <= room, where, "expected a header offset from ",
              from, " to ", to, ", got ", entry.header);
  std::string bytes(local_size + record.name.size(), '\0');
  file.read(entry.header, bytes.data(), bytes.size());
  const size_t extra_size = number<uint16_t>(&bytes[28]);
  TORCH_CHECK(has_signature(bytes.data(), 3, 4) && number<uint16_t>(&bytes[6]) == entry.flags &&
                  number<uint16_t>(&bytes[8]) == record.method &&
                  number<uint16_t>(&bytes[26]) == record.name.size() &&
                  std::string_view(bytes).substr(local_size) == record.name,
              where, "the header at byte ", entry.header, " does not match the zip directory");
  TORCH_CHECK(extra_size <= room - bytes.size() && record.size <= room - bytes.size() - extra_size,
              where, "expected ", record.size, " bytes between byte ", entry.header, " and byte ",
              to);
  record.begin = entry.header + bytes.size() + extra_size;
  if ((entry.flags & data_descriptor) != 0) return;
  uint64_t size = number<uint32_t>(&bytes[18]), unpacked = number<uint32_t>(&bytes[22]);
  std::string extra(extra_size, '\0');
  file.read(entry.header + bytes.size(), extra.data(), extra_size);
  TORCH_CHECK(read_zip64(extra.data(), extra_size, {&unpacked, &size}) && size == record.size &&
                  unpacked == record.unpacked && number<uint32_t>(&bytes[14]) == record.crc,
              where, "the header at byte ", entry.header,
              " does not match the size or the checksum in the zip directory");
}

constexpr size_t chunk_size = size_t{1} << 18;  // the data stays in the cache for the checksum

uint32_t add_to_checksum(uLong crc, const char* bytes, size_t size) {
  return static_cast<uint32_t>(
      ::crc32(crc, reinterpret_cast<const Bytef*>(bytes), static_cast<uInt>(size)));
}

// Reads a record into `data`, unless `data` is null, and returns its checksum.
uint32_t copy(const InputFile& file, const ZipRecord& record, char* data) {
  std::vector<char> own(data == nullptr ? std::min<uint64_t>(record.size, chunk_size) : 0);
  uint32_t crc = 0;
  for (uint64_t done = 0; done < record.size;) {
    const auto size = static_cast<size_t>(std::min<uint64_t>(record.size - done, chunk_size));
    char* to = data == nullptr ? own.data() : data + done;
    file.read(record.begin + done, to, size);
    crc = add_to_checksum(crc, to, size);
    done += size;
  }
  return crc;
}

// Like `copy`, but for a deflated record.
uint32_t inflate_record(const InputFile& file, const ZipRecord& record, char* data) {
  const std::string where = file.name() + "'" + record.name + "': ";
  std::vector<char> packed(std::min<uint64_t>(record.size, chunk_size));
  std::vector<char> own(data == nullptr ? chunk_size : 0);
  z_stream stream = {};
  TORCH_CHECK(::inflateInit2(&stream, -MAX_WBITS) == Z_OK, where,
              "cannot decompress the record: out of memory");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, ::inflateEnd);
  uint32_t crc = 0;
  uint64_t taken = 0, made = 0;
  for (int result = Z_OK; result != Z_STREAM_END;) {
    if (stream.avail_in == 0) {
      const auto size = static_cast<size_t>(std::min<uint64_t>(record.size - taken, chunk_size));
      file.read(record.begin + taken, packed.data(), size);
      taken += size;
      stream.next_in = reinterpret_cast<Bytef*>(packed.data());
      stream.avail_in = static_cast<uInt>(size);
    }
    char* to = data == nullptr ? own.data() : data + made;
    const auto room = static_cast<size_t>(std::min<uint64_t>(record.unpacked - made, chunk_size));
    char none = 0;  // zlib requires a non-null pointer even if no data remains
    stream.next_out = reinterpret_cast<Bytef*>(room > 0 ? to : &none);
    stream.avail_out = static_cast<uInt>(room);
    result = ::inflate(&stream, Z_NO_FLUSH);
    const size_t size = room - stream.avail_out;
    crc = add_to_checksum(crc, to, size);
    made += size;
    TORCH_CHECK(result == Z_OK || result == Z_STREAM_END, where, "expected ", record.unpacked,
                " deflated bytes, got ", made, " followed by invalid data: the file is damaged");
  }
  TORCH_CHECK(made == record.unpacked && stream.avail_in == 0 && taken == record.size, where,
              "expected ", record.size, " bytes that unpack to ", record.unpacked,
              ", got the end of the data after ", taken - stream.avail_in, " and ", made);
  return crc;
}

}  // namespace

ZipReader::ZipReader(const InputFile& file) : file_(file) {
  const Directory directory = read_end(file);
  auto entries = read_entries(file, directory);
  records_.reserve(entries.size());
  uint64_t from = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    const uint64_t to = i + 1 < entries.size() ? entries[i + 1].header : directory.begin;
    locate(file, entries[i], from, std::min(to, directory.begin));
    from = entries[i].record.begin + entries[i].record.size;
    records_.push_back(std::move(entries[i].record));
    has_checksums_ = has_checksums_ || records_.back().crc != 0;
    const auto& name = records_.back().name;
    TORCH_CHECK(places_.emplace(name, i).second, file.name(), "'", name,
                "': the zip archive contains two records with this name");
  }
}

ZipRecord* ZipReader::find(const std::string& name) {
  const auto place = places_.find(name);
  return place == places_.end() ? nullptr : &records_[place->second];
}

uint64_t ZipReader::unpacked_size() const {
  uint64_t size = 0;
  for (const auto& record : records_) {
    // If the sum overflows 64 bits, the archive exceeds any size limit.
    if (record.method != stored && c10::add_overflows(size, record.unpacked, &size))
      return std::numeric_limits<uint64_t>::max();
  }
  return size;
}

void ZipReader::read(ZipRecord& record, void* data) const {
  TORCH_CHECK(record.method == stored || record.method == deflated, file_.name(), "'", record.name,
              "': expected a stored or deflated record, got method ", record.method);
  auto* to = static_cast<char*>(data);
  const uint32_t crc =
      record.method == stored ? copy(file_, record, to) : inflate_record(file_, record, to);
  TORCH_CHECK(!has_checksums_ || crc == record.crc, file_.name(), "'", record.name,
              "': expected the checksum ", record.crc, ", got ", crc, ": the file is damaged");
  record.read = true;
}

void ZipReader::check_others() {
  for (auto& record : records_) {
    if (!record.read) read(record, nullptr);
  }
}

}  // namespace sconce::io
