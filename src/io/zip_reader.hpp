#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "io/input_file.hpp"

// Replaces LibTorch's PyTorchStreamReader, which does not verify checksums, so a flipped bit in a
// weight would go unnoticed. PyTorchStreamReader also opens archives with duplicate record names,
// overlapping records, record headers that contradict the directory, or 100 MB of data compressed
// to 100 kB.
namespace sconce::io {

/// A record of a zip archive.
struct ZipRecord {
  std::string name = {};
  uint64_t begin = 0;     ///< offset of the first byte
  uint64_t size = 0;      ///< bytes in the file
  uint64_t unpacked = 0;  ///< bytes after decompression
  uint32_t crc = 0;       ///< CRC-32 of the decompressed bytes, from the directory
  uint16_t method = 0;    ///< 0: none; 8: deflate
  bool read = false;      ///< whether it was read and its checksum was correct
};

/// A zip or zip64 archive in a single file, optionally followed by a newline. Its records are
/// neither encrypted nor overlapping.
class ZipReader {
 public:
  /// Reads the directory of the archive.
  /// @throw c10::Error with the file and the invalid record or byte if the archive violates the
  /// format.
  explicit ZipReader(const InputFile& file);

  /// Returns the records in the order of their bytes.
  const std::vector<ZipRecord>& records() const { return records_; }

  /// Returns false if all checksums in the archive are 0, which means that the writer did not
  /// compute any.
  bool has_checksums() const { return has_checksums_; }

  /// Returns the total size of all records after decompression.
  uint64_t unpacked_size() const;

  /// Returns the record with the given name, or null.
  ZipRecord* find(const std::string& name);

  /// Reads a record into `data`, which must have room for the decompressed bytes. If `data` is
  /// null, only verifies the checksum.
  /// @throw c10::Error if the compression method is unknown, if the data is damaged, or if the
  /// archive has checksums and the record's checksum is wrong.
  void read(ZipRecord& record, void* data) const;

  /// Verifies the checksums of the records that have not been read yet.
  void check_others();

 private:
  const InputFile& file_;
  std::vector<ZipRecord> records_ = {};
  bool has_checksums_ = false;
  std::map<std::string, size_t> places_ = {};  // indices in records_; ordered, to avoid collisions
};

}  // namespace sconce::io
