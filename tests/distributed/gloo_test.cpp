// Compares the headers in src/gloo_stand_in with the Gloo code in the linked LibTorch. The tests
// fail if a LibTorch version has different virtual functions.
#include <dlfcn.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/device.h>
#include <link.h>

#include <bit>
#include <chrono>
#include <sstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "distributed/nccl.hpp"
#include "support/run_program.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using gloo::rendezvous::Store;
using sconce::test::run_program;

namespace {

constexpr auto process_group_table = "_ZTVN4c10d16ProcessGroupGlooE";

// A virtual table in LibTorch.
struct Table {
  std::string file;                // the library that contains it
  size_t bytes = 0;                // including the two entries before the functions
  std::vector<std::string> names;  // the names under which the library exports its functions
};

Table library_table(const char* symbol) {
  void* const start = dlsym(RTLD_DEFAULT, symbol);
  INFO("expected LibTorch to export " << symbol);
  REQUIRE(start != nullptr);
  Dl_info found = {};
  ElfW(Sym)* entry = nullptr;
  REQUIRE(dladdr1(start, &found, reinterpret_cast<void**>(&entry), RTLD_DL_SYMENT) != 0);
  Table table = {.file = found.dli_fname, .bytes = entry->st_size, .names = {}};
  void* const* const functions = static_cast<void**>(start) + 2;
  for (size_t i = 0; i < table.bytes / sizeof(void*) - 2; ++i) {
    Dl_info function = {};
    const bool named = dladdr(functions[i], &function) != 0 && function.dli_sname != nullptr;
    table.names.emplace_back(named ? function.dli_sname : "");
  }
  return table;
}

// Returns the index of a virtual function in its virtual table. In the Itanium ABI, a pointer to a
// virtual function contains the function's offset in the table, plus one on x86-64.
template <class Function>
size_t slot_of(Function Store::* function) {
  struct Pointer {
    ptrdiff_t offset;
    ptrdiff_t adjustment;
  };
  const auto offset = static_cast<size_t>(std::bit_cast<Pointer>(function).offset);
  return offset / sizeof(void*);
}

struct Symbol {
  std::string name;
  size_t bytes = 0;
};

// Returns the virtual tables that sconce defines in this program or in the sconce shared library.
std::vector<Symbol> own_tables() {
  Dl_info found = {};
  REQUIRE(dladdr(reinterpret_cast<void*>(&sconce::distributed::is_nccl_available), &found) != 0);
  const auto ran = run_program("readelf -sW '" + std::string(found.dli_fname) + "'");
  REQUIRE(ran.exit_code == 0);
  std::vector<Symbol> tables;
  std::istringstream lines(ran.out);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string number, value, bytes, type, binding, visibility, section, name;
    words >> number >> value >> bytes >> type >> binding >> visibility >> section >> name;
    if (name.starts_with("_ZTV") && section != "UND") {
      tables.push_back({.name = name, .bytes = std::stoul(bytes, nullptr, 0)});
    }
  }
  return tables;
}

}  // namespace

TEST_CASE("the stand-in for Gloo's store declares virtual functions in the same order as Gloo") {
  using Keys = const std::vector<std::string>&;
  const auto table = library_table("_ZTVN4gloo10rendezvous11PrefixStoreE");
  // Gloo is either part of LibTorch or, on Debian, a separate library.
  CHECK_THAT(table.file, ContainsSubstring("libtorch_cpu") || ContainsSubstring("libgloo"));
  const auto at = [&](size_t slot) { return table.names.at(slot); };
  CHECK_THAT(at(slot_of(&Store::set)), StartsWith("_ZN4gloo10rendezvous11PrefixStore3setE"));
  CHECK_THAT(at(slot_of(&Store::get)), StartsWith("_ZN4gloo10rendezvous11PrefixStore3getE"));
  const auto wait = slot_of(static_cast<void (Store::*)(Keys)>(&Store::wait));
  const auto wait_for =
      slot_of(static_cast<void (Store::*)(Keys, const std::chrono::milliseconds&)>(&Store::wait));
  // LibTorch does not export this function, because it is inline. The Debian build of Gloo exports
  // the function under its newer name.
  CHECK((at(wait) == "" || at(wait).starts_with("_ZN4gloo6IStore8wait_getE")));
  CHECK_THAT(at(wait_for),
             StartsWith("_ZN4gloo10rendezvous11PrefixStore4waitE") && ContainsSubstring("chrono"));
}

TEST_CASE("the stand-in for Gloo's buffers declares its destructors first, as in Gloo") {
  const auto table = library_table("_ZTVN4gloo9transport3tcp13UnboundBufferE");
  CHECK_THAT(table.names.at(0), StartsWith("_ZN4gloo9transport3tcp13UnboundBufferD"));
  CHECK_THAT(table.names.at(1), StartsWith("_ZN4gloo9transport3tcp13UnboundBufferD"));
}

TEST_CASE(
    "sconce's Gloo process group has as many virtual functions as LibTorch's Gloo process group") {
  size_t bytes = 0;
  for (const auto& table : own_tables()) {
    if (table.name == "_ZTVN6sconce11distributed4GlooE") bytes = table.bytes;
  }
  CHECK(bytes == library_table(process_group_table).bytes);
}

TEST_CASE("sconce defines no vtables for Gloo's classes or for LibTorch's Gloo store") {
  const auto tables = own_tables();
  CHECK(tables.size() > 1);
  for (const auto& [name, bytes] : tables) {
    CHECK_THAT(name, !StartsWith("_ZTVN4gloo") && !StartsWith("_ZTVN4c10d16ProcessGroupGloo"));
  }
}
