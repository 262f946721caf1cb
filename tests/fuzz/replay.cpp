// Reads the inputs in corpus/ as a fuzzer does.
#include <filesystem>

#include "catch.hpp"
#include "fuzz/target.hpp"

namespace {

void replay(const std::string& reader, int (*target)(const uint8_t*, size_t)) {
  int inputs = 0;
  const std::string corpus = SCONCE_TESTS_DIR "/fuzz/corpus/" + reader;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    const std::string bytes = sconce::test::contents(entry.path());
    INFO(entry.path().string());
    CHECK_NOTHROW(target(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
    ++inputs;
  }
  CHECK(inputs > 0);
}

}  // namespace

TEST_CASE("every input of the corpus of load_safetensors is read or refused, without a crash") {
  replay("safetensors", sconce::test::fuzz_safetensors);
}

TEST_CASE("every input of the corpus of load_torch is read or refused, without a crash") {
  replay("torch_file", sconce::test::fuzz_torch_file);
}

TEST_CASE("every input of the corpus of Checkpoint::load is read or refused, without a crash") {
  replay("checkpoint", sconce::test::fuzz_checkpoint);
}
