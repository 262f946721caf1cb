#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace sconce::io {

/// A file that appears complete under its final name or not at all, even if the machine crashes. It
/// is written under a temporary name in the same folder, synced, and renamed. The first AtomicFile
/// for a given name removes the incomplete files left by killed writers.
///
/// If it replaces a file, the new file keeps the old one's permissions, access control list, group,
/// and, where possible, owner, but not the setuid, setgid, and sticky bits. If the group or the
/// list cannot be kept, nobody gets access that the old file denied. Until `finish`, only this user
/// can read the new content, even if the writer is killed. A new file has the permissions allowed
/// by the umask from the start.
class AtomicFile {
 public:
  /// Opens a temporary file in the same folder as `path`. If `path` is a symbolic link, its target
  /// is written, even if the target does not exist yet. Links are followed as if the system setting
  /// `fs.protected_symlinks` were enabled, whatever its value. `caller` is the prefix of error
  /// messages.
  /// @throw c10::Error, with the file in the message, if:
  /// - the folder does not exist or is not writable;
  /// - the path has no file name, has one that is too long, or contains a NUL byte;
  /// - the file exists and is not a writable regular file;
  /// - the file is a link in a world-writable sticky folder, such as /tmp, and the link is owned
  ///   neither by this user nor by the folder's owner.
  AtomicFile(const std::filesystem::path& path, std::string caller);

  /// Removes the temporary file unless `finish` was called.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Appends `size` bytes.
  /// @throw c10::Error if they cannot be written, for example because the disk is full.
  void write(const void* data, size_t size);

  /// Syncs the file and renames it, which replaces any earlier file of that name.
  /// @throw c10::Error if the file cannot be synced or renamed. An earlier file is then kept.
  /// @throw c10::Error if the folder cannot be synced because of a disk error. The new file then
  /// exists, but may be lost if the machine crashes.
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

  std::string caller_;
  std::filesystem::path path_;
  std::filesystem::path folder_;
  std::filesystem::path part_ = {};
  std::optional<struct stat> before_ = {};  // the file to replace
  int fd_ = -1;
};

/// Writes a text file with an `AtomicFile`.
/// @throw c10::Error in the same cases as `AtomicFile`.
void write_file(const std::filesystem::path& path, std::string_view text, std::string caller);

/// Returns the contents of a regular file. Never blocks on a FIFO.
/// @throw c10::Error, with the file in the message, if it cannot be read or is not a regular file.
std::string read_file(const std::filesystem::path& path, const std::string& caller);

/// Ensures that new and renamed files in a folder survive a crash of the machine. Returns 0, or the
/// errno of the failure. Does nothing if the folder is not readable or the file system cannot sync
/// folders. For internal use.
int sync_folder(const std::filesystem::path& folder);

/// Removes incomplete files of killed writers in `folder` whose names begin with `prefix`. Files
/// that are still being written are locked and are kept. For internal use.
void sweep_parts(const std::filesystem::path& folder, const std::string& prefix);

}  // namespace sconce::io
