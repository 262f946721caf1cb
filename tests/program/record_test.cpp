#include "sconce/program/record.hpp"

#include "catch.hpp"
#include "program/networks.hpp"
#include "sconce/program/program.hpp"
#include "support/temp_dir.hpp"

using sconce::StateDict;
using sconce::program::Program;
using sconce::program::record;
using sconce::program::Tensors;
using sconce::test::TempDir;

TEST_CASE("a recorded network computes what the network computes for other batch sizes") {
  const TempDir folder;
  for (const auto& network : sconce::test::networks()) {
    INFO(network.name);
    const auto file = folder.path() / (network.name + ".safetensors");
    record(file, network.forward, network.example(2), network.options());
    const auto program = Program::load(file);
    const torch::NoGradGuard no_grad;
    for (const int64_t rows : {1, 3, 17}) {
      const auto inputs = network.example(rows).values();
      const auto outputs = program.run(inputs);
      const auto expected = network.forward(inputs);
      REQUIRE(outputs.size() == expected.size());
      for (size_t i = 0; i < outputs.size(); ++i) {
        INFO(rows << " rows, output " << i);
        CHECK(outputs[i].sizes() == expected[i].sizes());
        CHECK((outputs[i] - expected[i]).abs().max().item<double>() <= 1e-5);
      }
    }
  }
}
