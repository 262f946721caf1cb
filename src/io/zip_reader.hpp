#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "io/input_file.hpp"

// LibTorch's PyTorchStreamReader compares no checksums and names none, so a flipped bit of a weight
// would pass. It also opens archives in which two records have one name or lie over each other, a
// record's header has another name than the directory, or 100 MB are packed into 100 kB.
namespace sconce::io {

/// A record of a zip archive.
struct ZipRecord {
  std::string name = {};
  uint64_t begin = 0;   ///< of its bytes in the file
  uint64_t size = 0;    ///< in the file
  uint32_t crc = 0;     ///< CRC-32 of its bytes, as the directory says
  uint16_t method = 0;  ///< of compression; 0 is none
  bool read = false;    ///< and its checksum was right
};

/// A zip archive, also a zip64 one, in one file, with records that are not encrypted, lie nowhere
/// over each other, and are read only where they are not compressed.
class ZipReader {
 public:
  /// Reads the directory.
  /// @throw c10::Error naming the file and the record or byte that breaks the format.
  explicit ZipReader(const InputFile& file);

  /// In the order of their bytes.
  const std::vector<ZipRecord>& records() const { return records_; }

  /// False for an archive whose checksums are all 0: its writer made none.
  bool has_checksums() const { return has_checksums_; }

  /// Returns the record of that name, or null.
  ZipRecord* find(const std::string& name);

  /// Reads a record into memory that has room for it; given null, for its checksum alone.
  /// @throw c10::Error if it is compressed, or if there are checksums and its own is wrong.
  void read(ZipRecord& record, void* data) const;

  /// Reads the records that were not read yet, for their checksums, and keeps nothing.
  void check_others();

 private:
  const InputFile& file_;
  std::vector<ZipRecord> records_ = {};
  bool has_checksums_ = false;
  std::map<std::string, size_t> places_ = {};  // in records_; names cannot be made to collide
};

}  // namespace sconce::io
