#pragma once

#include <c10/util/Exception.h>
#include <c10/util/safe_numerics.h>

#include <cstdint>
#include <limits>
#include <string>

namespace sconce::io {

/// Limits the memory that reading a file may use beyond the file's size. Some values occupy only a
/// few bytes in the file, and records may be compressed. Memory is counted before it is allocated,
/// because a std::bad_alloc inside LibTorch containers would terminate the process.
class MemoryBudget {
 public:
  MemoryBudget(uint64_t file_size, uint64_t max_expansion) : max_expansion_(max_expansion) {
    if (c10::mul_overflows(file_size, max_expansion, &limit_) ||
        c10::add_overflows(limit_, base, &limit_)) {
      limit_ = std::numeric_limits<uint64_t>::max();
    }
    left_ = limit_;
  }

  /// @throw c10::Error with the prefix `error_prefix` if the remaining budget is too small.
  void take(uint64_t size, const std::string& error_prefix) {
    TORCH_CHECK(size <= left_, error_prefix, "expected a file that needs at most ", limit_,
                " bytes of memory (", base, " and max_expansion = ", max_expansion_,
                " bytes for each byte of the file), got a file that needs more memory; to load "
                "the file, increase max_expansion");
    left_ -= size;
  }

  void release(uint64_t size) { left_ += size; }

 private:
  static constexpr uint64_t base = uint64_t{48} << 20;  // enough for any small file

  uint64_t max_expansion_;
  uint64_t limit_ = 0;
  uint64_t left_ = 0;
};

}  // namespace sconce::io
