#pragma once

#include <filesystem>

#include "catch.hpp"
#include "fuzz/target.hpp"

namespace sconce::test {

/// Runs a target on each file in a folder under tests/, as a fuzzer would.
inline void replay(const std::string& folder, int (*target)(const uint8_t*, size_t)) {
  int inputs = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(SCONCE_TESTS_DIR "/" + folder)) {
    if (!entry.is_regular_file()) continue;
    const std::string bytes = contents(entry.path());
    INFO(entry.path().string());
    CHECK_NOTHROW(target(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
    ++inputs;
  }
  CHECK(inputs > 0);
}

}  // namespace sconce::test
