// Runs the fuzz targets of sconce-train's command line and decoders on the fuzzer's initial inputs.
#include "fuzz/replay.hpp"
#include "train/picture_decoder.hpp"

using sconce::test::replay;

TEST_CASE("every input of the corpus of command lines is taken or refused in one line") {
  replay("fuzz/corpus/command_line", sconce::test::fuzz_command_line);
}

TEST_CASE("every picture kept for tests is read or refused, without a crash") {
  if (!train::has_libpng() || !train::has_libjpeg()) SKIP("built without libpng or libjpeg-turbo");
  replay("reference/pictures", sconce::test::fuzz_picture);
}
