// What the built programs need, read from their files, and what all of them do alike.
#include <filesystem>

#include "catch.hpp"
#include "support/run_program.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::test::run_program;
using sconce::test::TempDir;

namespace {

const std::string program = SCONCE_BIN_DIR "/sconce-train";
const std::string torch_lib = SCONCE_TORCH_ROOT "/lib";

std::string dynamic_section(const std::string& file) {
  const auto ran = run_program("readelf -d '" + file + "'");
  REQUIRE(ran.exit_code == 0);
  return ran.out;
}

}  // namespace

TEST_CASE("programs need libtorch, and through it libtorch_cuda where LibTorch has CUDA") {
  CHECK_THAT(dynamic_section(program), ContainsSubstring("[libtorch.so]"));
  if (!std::filesystem::exists(torch_lib + "/libtorch_cuda.so")) {
    SKIP("this LibTorch is a CPU build");
  }
  CHECK_THAT(dynamic_section(torch_lib + "/libtorch.so"), ContainsSubstring("[libtorch_cuda.so]"));
}

TEST_CASE("programs do not need the driver's libcuda, nor do the libraries they load first") {
  CHECK_THAT(dynamic_section(program), !ContainsSubstring("[libcuda.so"));
  CHECK_THAT(dynamic_section(torch_lib + "/libtorch.so"), !ContainsSubstring("[libcuda.so"));
}

TEST_CASE("programs find LibTorch by one run path and no other folder") {
  CHECK_THAT(dynamic_section(program), ContainsSubstring("[" + torch_lib + "]"));
}

TEST_CASE("programs take the C++ library's symbols from itself, not from LibTorch") {
  const std::string needs = dynamic_section(program);
  CHECK(needs.find("[libstdc++.so.6]") < needs.find("[libtorch"));
}

TEST_CASE("a program whose output is not taken ends with exit code 1 and says so") {
  const TempDir folder;
  const std::string train =
      program + " --model linear --fast-dev-run --device cpu --out " + folder.path().string();
  for (const std::string& command :
       {train, program + " --help", std::string(SCONCE_BIN_DIR "/sconce-tour")}) {
    const auto ran = run_program("(" + command + " >/dev/full)");
    INFO(command << ": " << ran.err);
    CHECK(ran.exit_code == 1);
    CHECK_THAT(ran.err, ContainsSubstring(": cannot write to standard output"));
  }
  CHECK(std::filesystem::exists(folder.path() / "model.safetensors"));
}
