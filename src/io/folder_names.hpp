#pragma once

#include <dirent.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace sconce::detail {

/// Returns the names of the entries in a folder, in any order, and sets `error`. This function does
/// not use std::filesystem::directory_iterator, because the iterator terminates the process if
/// memory runs out.
inline std::vector<std::string> folder_names(const std::filesystem::path& folder,
                                             std::error_code& error) {
  std::vector<std::string> names;
  const auto last_error = [] { return std::error_code(errno, std::generic_category()); };
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), ::closedir);
  error = entries ? std::error_code() : last_error();
  while (entries) {
    errno = 0;
    const auto* entry = ::readdir(entries.get());
    if (entry == nullptr) {
      error = last_error();
      break;
    }
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  return names;
}

}  // namespace sconce::detail
