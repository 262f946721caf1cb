#include "program_file.hpp"

#include <elf.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "command_line.hpp"

namespace simgpu {

namespace {

bool can_run(const std::filesystem::path& file) {
  std::error_code error;
  return std::filesystem::is_regular_file(file, error) && access(file.c_str(), X_OK) == 0;
}

// Returns whether an ELF file specifies a dynamic loader. Without a dynamic loader, no library can
// be preloaded.
bool is_dynamic(std::ifstream& file, const Elf64_Ehdr& header) {
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment = {};
    file.seekg(static_cast<std::streamoff>(header.e_phoff) +
               std::streamoff{i} * header.e_phentsize);
    if (!file.read(reinterpret_cast<char*>(&segment), sizeof segment)) return false;
    if (segment.p_type == PT_INTERP) return true;
  }
  return false;
}

void check_is_dynamic(const std::filesystem::path& path, std::ifstream& file) {
  Elf64_Ehdr header = {};
  file.seekg(0);
  const bool is_elf = file.read(reinterpret_cast<char*>(&header), sizeof header) &&
                      std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
                      header.e_ident[EI_CLASS] == ELFCLASS64;
  if (!is_elf) {
    throw UsageError(path.string() +
                     ": expected a 64-bit program, or a script that starts with #!");
  }
  if (!is_dynamic(file, header)) {
    throw UsageError(path.string() +
                     ": expected a program that loads LibTorch as a shared library, but "
                     "the program is linked statically");
  }
}

// Returns the interpreter from a script's first line, such as "#!/usr/bin/python3" or
// "#!/usr/bin/env python3".
std::filesystem::path interpreter(const std::string& first_line) {
  std::istringstream words(first_line.substr(2));
  std::string word;
  words >> word;
  if (std::filesystem::path(word).filename() == "env") words >> word;
  return find_program(word);
}

}  // namespace

std::filesystem::path find_program(const std::string& name) {
  std::istringstream folders;
  if (name.find('/') != std::string::npos) {
    if (can_run(name)) return name;
  } else {
    const char* path = std::getenv("PATH");
    folders.str(path == nullptr ? "" : path);
  }
  for (std::string folder; std::getline(folders, folder, ':');) {
    const auto file = std::filesystem::path(folder.empty() ? "." : folder) / name;
    if (can_run(file)) return file;
  }
  throw UsageError("'" + name + "': no such program, or the program is not executable");
}

std::filesystem::path executable_of(const std::filesystem::path& program) {
  std::ifstream file(program, std::ios::binary);
  if (!file) throw UsageError("cannot read " + program.string());
  std::string first_line;
  std::array<char, 2> magic = {};
  file.read(magic.data(), magic.size());
  if (magic == std::array<char, 2>{'#', '!'}) {
    file.seekg(0);
    std::getline(file, first_line);
    const auto found = interpreter(first_line);
    std::ifstream interpreter_file(found, std::ios::binary);
    check_is_dynamic(found, interpreter_file);
    return found;
  }
  file.clear();
  check_is_dynamic(program, file);
  return program;
}

}  // namespace simgpu
