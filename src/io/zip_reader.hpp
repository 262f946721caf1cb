#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "io/input_file.hpp"

// LibTorch's PyTorchStreamReader does not check checksums, so a flipped bit in a weight would pass.
// It also opens archives with two records of one name, with overlapping records, with a record
// header that differs from the directory, or with 100 MB packed into 100 kB.
namespace sconce::io {

/// A record of a zip archive.
struct ZipRecord {
  std::string name = {};
  uint64_t begin = 0;     ///< first byte in the file
  uint64_t size = 0;      ///< bytes in the file
  uint64_t unpacked = 0;  ///< bytes without compression
  uint32_t crc = 0;       ///< CRC-32 of the latter, from the directory
  uint16_t method = 0;    ///< compression method; 0 is none, 8 is deflate
  bool read = false;      ///< whether it was read with a correct checksum
};

/// A zip or zip64 archive in one file, which a newline may follow. Its records are not encrypted
/// and do not overlap.
class ZipReader {
 public:
  /// Reads the directory.
  /// @throw c10::Error naming the file and the record or byte that breaks the format.
  explicit ZipReader(const InputFile& file);

  /// Returns the records in the order of their bytes.
  const std::vector<ZipRecord>& records() const { return records_; }

  /// Returns false if all checksums of the archive are 0, which means that its writer made none.
  bool has_checksums() const { return has_checksums_; }

  /// Returns the bytes to which all compressed records unpack together.
  uint64_t unpacked_size() const;

  /// Returns the record with this name, or null.
  ZipRecord* find(const std::string& name);

  /// Reads a record into memory that has room for its unpacked bytes, or, if `data` is null, only
  /// checks its checksum.
  /// @throw c10::Error if its compression is unknown or damaged, or if the archive has checksums
  /// and that of the record is wrong.
  void read(ZipRecord& record, void* data) const;

  /// Checks the checksums of the records that were not read yet.
  void check_others();

 private:
  const InputFile& file_;
  std::vector<ZipRecord> records_ = {};
  bool has_checksums_ = false;
  std::map<std::string, size_t> places_ = {};  // in records_; not hashed, so no collisions
};

}  // namespace sconce::io
