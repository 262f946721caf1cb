// Runs the sconce-train fuzz targets on the corpus/ inputs.
#include "fuzz/replay.hpp"

using sconce::test::replay;

TEST_CASE("every input in the command line corpus is accepted or rejected with a one-line error") {
  replay("fuzz/corpus/command_line", sconce::test::fuzz_command_line);
}

TEST_CASE("every input in the model file corpus is loaded or rejected without a crash") {
  replay("fuzz/corpus/model_file", sconce::test::fuzz_model_file);
}
