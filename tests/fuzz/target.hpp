#pragma once

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <c10/util/Logging.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "support/temp_dir.hpp"

// Defines entry points for libFuzzer. README.md describes how to run the fuzz targets. If
// SCONCE_FUZZER is not defined, the entry points are functions that the tests call with the inputs
// in corpus/.
#ifdef SCONCE_FUZZER
#define SCONCE_FUZZ_TARGET(name) extern "C" int LLVMFuzzerTestOneInput
#else
#define SCONCE_FUZZ_TARGET(name) int sconce::test::fuzz_##name
#endif

namespace sconce::test {

int fuzz_safetensors(const uint8_t* data, size_t size);
int fuzz_torch_file(const uint8_t* data, size_t size);
int fuzz_checkpoint(const uint8_t* data, size_t size);
int fuzz_command_line(const uint8_t* data, size_t size);
int fuzz_csv(const uint8_t* data, size_t size);
int fuzz_idx(const uint8_t* data, size_t size);
int fuzz_model_file(const uint8_t* data, size_t size);
int fuzz_picture(const uint8_t* data, size_t size);
int fuzz_program(const uint8_t* data, size_t size);

/// Ends the run by throwing an object that is not a LibTorch exception, because the targets catch
/// those.
inline void expect(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

/// Returns the folder for files written by the target.
inline const TempDir& folder() {
  static const TempDir folder = [] {
    at::set_num_threads(1);
    c10::SetStackTraceFetcher([] { return std::string(); });  // stack traces take most of the time
    return TempDir();
  }();
  return folder;
}

inline std::string_view text(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Ends the run if an error comes from a failed check within LibTorch and its message contains
/// neither the file nor the key. The message may quote an input that contains the same words.
inline void expect_own(const c10::Error& error, std::string_view input) {
  constexpr std::string_view words = "INTERNAL ASSERT";
  const std::string message = error.what_without_backtrace();
  expect(message.find(words) == message.npos || input.find(words) != input.npos, message.c_str());
}

}  // namespace sconce::test
