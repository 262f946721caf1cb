// Fuzzes the reader for recorded programs without running the programs.
#include <ATen/ops/zeros.h>
#include <zlib.h>

#include <cstdio>

#include "fuzz/target.hpp"
#include "sconce/io/safetensors.hpp"
#include "sconce/program/program.hpp"

using sconce::program::Program;
using sconce::test::expect;
using sconce::test::folder;

namespace {

// Writes the input to a file. If the input begins with a brace, the input is a program's JSON, to
// which this function adds a correct checksum and the weights that the corpus expects. Any other
// input is a complete file.
void write(std::string_view input, const std::filesystem::path& file) {
  if (!input.starts_with("{")) {
    folder().write(file.filename(), input);
    return;
  }
  const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(input.data()), input.size());
  char digits[9];
  std::snprintf(digits, sizeof(digits), "%08lx", crc);
  sconce::io::save_safetensors(
      file, {{"weight", at::zeros({2, 2})}, {"bias", at::zeros(2)}},
      {{"sconce.program", std::string(input)}, {"sconce.program.crc32", digits}});
}

}  // namespace

SCONCE_FUZZ_TARGET(program)(const uint8_t* data, size_t size) {
  const auto input = sconce::test::text(data, size);
  const auto file = folder().path() / "in";
  try {
    write(input, file);
    const auto program = Program::load(file);
    expect(program.inputs().size() <= size && program.outputs().size() <= size,
           "a program has more inputs and outputs than its file has bytes");
  } catch (const c10::Error& error) {
    sconce::test::expect_own(error, input);
    const std::string message = error.what_without_backtrace();
    expect(message.find(file.string()) != message.npos, "the error does not name the file");
  }
  return 0;
}
