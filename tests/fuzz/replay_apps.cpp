// Runs the fuzz target of sconce-train's command line on the fuzzer's initial inputs.
#include "fuzz/replay.hpp"

using sconce::test::replay;

TEST_CASE("every input of the corpus of command lines is taken or refused in one line") {
  replay("fuzz/corpus/command_line", sconce::test::fuzz_command_line);
}
