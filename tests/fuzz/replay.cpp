// Runs the fuzz targets on the corpus/ inputs.
#include "fuzz/replay.hpp"
#include "vision/jpeg.hpp"
#include "vision/png.hpp"

using sconce::test::replay;

TEST_CASE("every input in the load_safetensors corpus is loaded or rejected without a crash") {
  replay("fuzz/corpus/safetensors", sconce::test::fuzz_safetensors);
}

TEST_CASE("every input in the load_torch corpus is loaded or rejected without a crash") {
  replay("fuzz/corpus/torch_file", sconce::test::fuzz_torch_file);
}

TEST_CASE("every input in the Checkpoint::load corpus is loaded or rejected without a crash") {
  replay("fuzz/corpus/checkpoint", sconce::test::fuzz_checkpoint);
}

TEST_CASE("every input in the read_csv corpus is read or rejected without a crash") {
  replay("fuzz/corpus/csv", sconce::test::fuzz_csv);
}

TEST_CASE("every input in the read_idx corpus is read or rejected without a crash") {
  replay("fuzz/corpus/idx", sconce::test::fuzz_idx);
}

TEST_CASE("every input in the Program::load corpus is loaded or rejected without a crash") {
  replay("fuzz/corpus/program", sconce::test::fuzz_program);
}

TEST_CASE("every test image is decoded or rejected without a crash") {
  if (!sconce::vision::has_libpng() || !sconce::vision::has_libjpeg()) {
    SKIP("built without libpng or libjpeg-turbo");
  }
  replay("reference/pictures", sconce::test::fuzz_picture);
}
