#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace sconce::io {

/// A file that appears under its final name only once it is complete, even if the machine crashes.
/// The file is written under a temporary name in the same folder, synced, and renamed. The first
/// AtomicFile for a given name removes incomplete files left by writers that were killed.
///
/// A file that replaces an existing file inherits the existing file's permissions, access control
/// list, group, and, if possible, owner. The setuid, setgid, and sticky bits are not kept. If the
/// group or the access control list cannot be kept, the permissions are reduced so that no
/// additional users gain access. Until `finish` is called, only the current user can read the new
/// content, even if the writer is killed. If no file exists yet, the umask determines the new
/// file's permissions from the start, even before `finish` is called.
class AtomicFile {
 public:
  /// Opens a temporary file in the same folder as `path`. If `path` is a symbolic link, this object
  /// writes to the link's target, even if the target does not exist yet. In a world-writable folder
  /// with the sticky bit, such as /tmp, only links that belong to the current user or to the
  /// folder's owner are followed, even if the `fs.protected_symlinks` system setting is disabled.
  /// `caller` is the prefix of error messages.
  /// @throw c10::Error, with the file in the message, if:
  /// - the folder does not exist or is not writable;
  /// - the path has no file name, the file name is too long, or the path contains a NUL byte;
  /// - the file exists and is not a writable regular file;
  /// - the file is a symbolic link that must not be followed, as described above.
  AtomicFile(const std::filesystem::path& path, std::string caller);

  /// Removes the temporary file unless `finish` was called.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Appends `size` bytes.
  /// @throw c10::Error if the bytes cannot be written, for example because the disk is full.
  void write(const void* data, size_t size);

  /// Syncs the file and renames it, replacing any existing file with the same name.
  /// @throw c10::Error if the file cannot be synced or renamed. In that case, an existing file is
  /// kept.
  /// @throw c10::Error if the folder cannot be synced because of a disk error.
  /// In that case, the new file is in place but may be lost if the machine crashes.
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

/// Returns the contents of a regular file. Does not block, even if the path is a FIFO.
/// @throw c10::Error, with the file in the message, if the file cannot be read or is not a regular
/// file.
std::string read_file(const std::filesystem::path& path, const std::string& caller);

/// Ensures that new and renamed files in a folder survive a system crash. Returns 0 on success, or
/// the errno value on failure. Does nothing if the folder is not readable or the file system cannot
/// sync folders. For internal use.
int sync_folder(const std::filesystem::path& folder);

/// Removes incomplete files that killed writers left in `folder`. Only files whose names begin with
/// `prefix` are removed. Keeps locked files, which are still being written. For internal use.
void sweep_parts(const std::filesystem::path& folder, const std::string& prefix);

}  // namespace sconce::io
