#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace sconce::io {

/// A file that appears complete under its name or not at all, even if the machine crashes. It is
/// written under another name beside it, synced and renamed. The first AtomicFile of the same name
/// removes the incomplete files of killed writers.
///
/// A file that it replaces keeps its permissions, its access control list, its group and, where
/// possible, its owner, but not the bits setuid, setgid and sticky. If the group or the list cannot
/// be kept, nobody gets access that the earlier file denied. Until `finish`, only this user can
/// read the new content, even if the writer is killed. A file that is new gets the permissions that
/// the umask leaves, from the start.
class AtomicFile {
 public:
  /// Opens the file beside `path`. If `path` is a symbolic link, its target is written, even if it
  /// does not exist yet. Links are followed as with the system's setting `fs.protected_symlinks`,
  /// whatever its value. `who` begins the messages of errors.
  /// @throw c10::Error, naming the file, if:
  /// - its folder is missing or cannot be written;
  /// - the path has no file name or too long a one, or contains a NUL byte;
  /// - it exists and is not a regular file that may be written;
  /// - it is a link in a sticky folder that everybody may write, such as /tmp, and neither this
  ///   user nor the folder's owner owns the link.
  AtomicFile(const std::filesystem::path& path, std::string who);

  /// Removes what was written, unless `finish` was called.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Adds `size` bytes at the end.
  /// @throw c10::Error if they cannot be written, as on a full disk.
  void write(const void* data, size_t size);

  /// Syncs the file and gives it its name. This replaces an earlier file of that name.
  /// @throw c10::Error if the file cannot be synced or renamed, and an earlier file then stays; or
  /// if its folder cannot be synced because of an error of the disk, and the new file is then
  /// there, but may be lost if the machine crashes.
  void finish();

 private:
  void check_before();
  void keep_access();
  bool keep_owner();
  bool keep_access_list();
  void create();
  void discard();
  std::string prefix() const;
  [[noreturn]] void fail(const char* doing) const;

  std::string who_;
  std::filesystem::path path_;
  std::filesystem::path folder_;
  std::filesystem::path part_ = {};
  std::optional<struct stat> before_ = {};  // the file to replace
  int fd_ = -1;
};

/// Writes a text file by a `AtomicFile`.
/// @throw c10::Error as `AtomicFile` does.
void write_file(const std::filesystem::path& path, std::string_view text, std::string who);

/// Returns the bytes of a regular file, and never waits for the writer of a FIFO.
/// @throw c10::Error, naming the file, if it cannot be read or is not a regular file.
std::string read_file(const std::filesystem::path& path, const std::string& who);

/// Makes new and renamed files of a folder survive a crash of the machine. Returns 0, or the errno
/// of the failure. Does nothing for a folder that may not be read, and where the file system cannot
/// sync folders. Not for direct use.
int sync_folder(const std::filesystem::path& folder);

/// Removes the incomplete files of killed writers in the folder whose names begin with `prefix`. A
/// file that is being written is locked and stays. Not for direct use.
void sweep_parts(const std::filesystem::path& folder, const std::string& prefix);

}  // namespace sconce::io
