#include "sconce/vision/idx.hpp"

#include "fuzz/target.hpp"

using sconce::test::expect;

SCONCE_FUZZ_TARGET(idx)(const uint8_t* data, size_t size) {
  const auto file = sconce::test::folder().write("in", sconce::test::text(data, size));
  try {
    const auto read = sconce::vision::read_idx(file, {.max_bytes = 64 << 20});
    const bool is_gzipped = size > 1 && data[0] == 0x1f && data[1] == 0x8b;
    const auto header = 4 + 4 * static_cast<size_t>(read.dim());
    expect(is_gzipped || header + read.nbytes() == size, "bytes of a plain file were left out");
  } catch (const c10::Error& error) {
    sconce::test::expect_own(error, sconce::test::text(data, size));
  }
  return 0;
}
