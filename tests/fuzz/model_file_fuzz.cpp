#include "fuzz/target.hpp"
#include "train/program_file.hpp"

using sconce::test::expect;

// Fuzzes the functions that read sconce-train weights and programs, including the metadata.
SCONCE_FUZZ_TARGET(model_file)(const uint8_t* data, size_t size) {
  const auto file = sconce::test::folder().write("in", sconce::test::text(data, size));
  try {
    if (train::is_program(file)) {
      train::load_predictor(file);
      return 0;
    }
    const auto model = train::load_model(file);
    int64_t bytes = 0;
    for (const auto& tensor : model.network->parameters()) bytes += tensor.nbytes();
    expect(bytes <= 8 * static_cast<int64_t>(size), "the network is larger than its file");
  } catch (const c10::Error& error) {
    sconce::test::expect_own(error, sconce::test::text(data, size));
    const std::string message = error.what_without_backtrace();
    expect(message.find(file.string()) != message.npos, "the error does not name the file");
  }
  return 0;
}
