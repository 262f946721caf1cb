#include "program/private_folder.hpp"

#include <c10/util/Exception.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iomanip>
#include <sstream>

#include "io/input_file.hpp"

namespace sconce::program::detail {

namespace {

std::string octal(mode_t mode) {
  std::ostringstream text;
  text << std::oct << std::setw(4) << std::setfill('0') << (mode & 07777);
  return text.str();
}

}  // namespace

void make_private_folder(const std::filesystem::path& folder, const std::string& error_prefix) {
  if (::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return;
  const auto parent = folder.parent_path();
  if (errno == ENOENT && parent != folder && !parent.empty()) {
    make_private_folder(parent, error_prefix);
    if (::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return;
  }
  TORCH_CHECK(false, error_prefix, folder.string(),
              ": cannot create the folder: ", std::strerror(errno));
}

void check_private(const std::filesystem::path& path, mode_t kind) {
  struct stat status = {};
  TORCH_CHECK(::lstat(path.c_str(), &status) == 0, path.string(),
              ": cannot inspect it: ", std::strerror(errno));
  TORCH_CHECK((status.st_mode & S_IFMT) == kind, path.string(), ": expected ", io::kind_of(kind),
              ", found ", io::kind_of(status.st_mode));
  check_private(path, status, "");
}

void check_private(const std::filesystem::path& path, const struct stat& status,
                   const std::string& error_prefix) {
  const auto user = ::geteuid();
  TORCH_CHECK(status.st_uid == user, error_prefix, path.string(),
              ": expected the owner to be user ", user,
              " (packages contain machine code), found user ", status.st_uid,
              "; to change the owner: sudo chown ", user, " '", path.string(), "'");
  TORCH_CHECK((status.st_mode & (S_IWGRP | S_IWOTH)) == 0, error_prefix, path.string(),
              ": expected a folder that only its owner can write to (packages contain machine "
              "code), found the mode ",
              octal(status.st_mode), "; to change the mode: chmod go-w '", path.string(), "'");
}

}  // namespace sconce::program::detail
