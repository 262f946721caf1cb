#include "program/package_cache.hpp"

#include <c10/util/Exception.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <system_error>

#include "check_path.hpp"
#include "failure_of.hpp"
#include "io/input_file.hpp"
#include "program/checksum.hpp"
#include "program/private_folder.hpp"
#include "sconce/io/atomic_file.hpp"

namespace sconce::program::detail {

namespace {

namespace fs = std::filesystem;
using sconce::detail::failure_of;

constexpr const char* cache_error_prefix = "sconce::program::PackageCache: ";
constexpr const char* package_name = "package.pt2";
constexpr const char* about_name = "about.json";
constexpr const char* choice_name = "choice";

// The XDG specification requires relative paths to be ignored.
fs::path default_cache() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && fs::path(cache).is_absolute()) return fs::path(cache) / "sconce/steps";
  const char* home = std::getenv("HOME");
  TORCH_CHECK(home != nullptr && fs::path(home).is_absolute(), cache_error_prefix,
              "expected an absolute path in XDG_CACHE_HOME or HOME, found none; to set a path: "
              "export XDG_CACHE_HOME=/path");
  return fs::path(home) / ".cache/sconce/steps";
}

nlohmann::json about(const PackageTarget& target, const io::InputFile& package) {
  return {{"torch", target.torch},     {"cpu", target.cpu},           {"device", target.device},
          {"threads", target.threads}, {"compiler", target.compiler}, {"size", package.size()},
          {"crc32", crc32_of(package)}};
}

PackageTarget target_in(const nlohmann::json& json) {
  return {.torch = json.at("torch").get<std::string>(),
          .cpu = json.at("cpu").get<std::string>(),
          .device = json.at("device").get<std::string>(),
          .threads = json.at("threads").get<int>(),
          .compiler = json.at("compiler").get<std::string>()};
}

// Throws unless the folder's package is complete and matches the target.
void check_package(const fs::path& folder, const PackageTarget& target) {
  const auto path = folder / package_name;
  check_private(folder, S_IFDIR);
  check_private(path, S_IFREG);
  const auto text = io::read_file(folder / about_name, "sconce::program");
  const auto json = nlohmann::json::parse(text, nullptr, false);
  TORCH_CHECK(json.is_object(), (folder / about_name).string(), ": expected a JSON object");
  const auto differs = difference(target_in(json), target);
  TORCH_CHECK(differs.empty(), path.string(), ": ", differs);
  const io::InputFile package(path, "sconce::program");
  const auto size = json.at("size").get<uint64_t>();
  TORCH_CHECK(package.size() == size, path.string(), ": expected ", size, " bytes, found ",
              package.size(), "; the file is damaged");
  const auto expected = json.at("crc32").get<std::string>();
  const auto found = crc32_of(package);
  TORCH_CHECK(found == expected, path.string(), ": expected the CRC-32 ", expected, ", found ",
              found, "; the file is damaged");
}

}  // namespace

PackageCache::PackageCache(const fs::path& folder) {
  check_path(folder, "sconce::program::PackageCache");
  const auto path = folder.empty() ? default_cache() : fs::absolute(folder);
  make_private_folder(path, cache_error_prefix);
  struct stat status = {};
  TORCH_CHECK(::stat(path.c_str(), &status) == 0, cache_error_prefix, path.string(),
              ": cannot inspect it: ", std::strerror(errno));
  TORCH_CHECK(S_ISDIR(status.st_mode), cache_error_prefix, path.string(),
              ": expected a folder, found ", io::kind_of(status.st_mode),
              "; to delete the file: rm '", path.string(), "'");
  check_private(path, status, cache_error_prefix);
  folder_ = fs::canonical(path);  // later changes to links have no effect
}

PackageCache::Found PackageCache::find(const std::string& key, const PackageTarget& target) const {
  const auto folder = folder_ / key;
  std::error_code error;
  if (!fs::exists(fs::symlink_status(folder / package_name, error))) return {};
  auto ignored = failure_of([&] { check_package(folder, target); });
  if (!ignored.empty()) return {.ignored = std::move(ignored)};
  return {.package = folder / package_name};
}

std::string PackageCache::choice(const std::string& key) const {
  std::string text;
  failure_of([&] { text = io::read_file(folder_ / key / choice_name, "sconce::program"); });
  return text;
}

std::string PackageCache::store_choice(const std::string& key, const std::string& text) const {
  return failure_of([&] {
    make_private_folder(folder_ / key, cache_error_prefix);
    io::write_file(folder_ / key / choice_name, text, "sconce::program");
  });
}

std::unique_ptr<Compilation> PackageCache::compile(const std::string& key,
                                                   const PackageTarget& target,
                                                   const Graph& program,
                                                   const fs::path& python) const {
  return std::make_unique<Compilation>(
      *this, CompileTask{.key = key, .target = target, .python = python}, program);
}

void PackageCache::add(const std::string& key, const PackageTarget& target,
                       const fs::path& package) const {
  const auto folder = folder_ / key;
  make_private_folder(folder, cache_error_prefix);
  check_private(folder, S_IFDIR);
  fs::permissions(package, fs::perms::owner_read | fs::perms::owner_write);
  const auto text = about(target, io::InputFile(package, "sconce::program")).dump(2);
  fs::remove(folder / choice_name);  // it refers to the replaced package
  fs::rename(package, folder / package_name);
  io::write_file(folder / about_name, text, "sconce::program");
}

}  // namespace sconce::program::detail
