// Runs the fuzz targets of sconce-train on the inputs in corpus/.
#include "fuzz/replay.hpp"

using sconce::test::replay;

TEST_CASE("every input of the corpus of command lines is taken or refused in one line") {
  replay("fuzz/corpus/command_line", sconce::test::fuzz_command_line);
}

TEST_CASE("every input of the corpus of model files is read or refused, without a crash") {
  replay("fuzz/corpus/model_file", sconce::test::fuzz_model_file);
}
