#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <string>

// Files and folders that nobody else can change.
namespace sconce::program::detail {

/// Makes the folder, and its parents, for this user alone. An existing one stays as it is.
/// @throw c10::Error, beginning with `who`, if that fails.
void make_private_folder(const std::filesystem::path& folder, const std::string& who);

/// Checks a file or folder without following links. `kind` is S_IFREG or S_IFDIR.
/// @throw c10::Error if it is of another kind, or as below.
void check_private(const std::filesystem::path& path, mode_t kind);

/// Checks the file or folder that `stat` described.
/// @throw c10::Error, beginning with `who` and with a command that helps, if it belongs to another
/// user, or its group or others can write to it.
void check_private(const std::filesystem::path& path, const struct stat& status,
                   const std::string& who);

}  // namespace sconce::program::detail
