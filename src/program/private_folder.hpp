#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <string>

// These functions ensure that no other user can modify certain files and folders.
namespace sconce::program::detail {

/// Creates the folder and its parents for this user only. Does not modify an existing folder.
/// @throw c10::Error with the prefix `error_prefix` on failure.
void make_private_folder(const std::filesystem::path& folder, const std::string& error_prefix);

/// Checks a file or folder. Does not follow links. `kind` is S_IFREG or S_IFDIR.
/// @throw c10::Error if the kind differs, or in any of the cases listed below.
void check_private(const std::filesystem::path& path, mode_t kind);

/// Checks the file or folder that `status` describes.
/// @throw c10::Error, with a message that starts with `error_prefix` and contains a command that
/// fixes the problem, if the file or folder belongs to another user or is writable by its group or
/// others.
void check_private(const std::filesystem::path& path, const struct stat& status,
                   const std::string& error_prefix);

}  // namespace sconce::program::detail
