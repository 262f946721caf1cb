// Tests the shared-library dependencies recorded in the built programs, and the behavior common to
// all programs.
#include <torch/version.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "catch.hpp"
#include "sconce/devices.hpp"
#include "sconce/version.hpp"
#include "support/run_program.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::test::run_program;
using sconce::test::TempDir;

namespace {

const std::string program = SCONCE_BIN_DIR "/sconce-train";
const std::string info = SCONCE_BIN_DIR "/sconce-info";
const std::string torch_lib = SCONCE_TORCH_LIBRARIES_DIR;

std::string dynamic_section(const std::string& file) {
  const auto ran = run_program("readelf -d '" + file + "'");
  REQUIRE(ran.exit_code == 0);
  return ran.out;
}

}  // namespace

TEST_CASE("programs depend on libtorch, which loads libtorch_cuda in a CUDA build") {
  CHECK_THAT(dynamic_section(program),
             ContainsSubstring("[libtorch.so]") || ContainsSubstring("[libtorch.so."));  // Debian's
  if (!std::filesystem::exists(torch_lib + "/libtorch_cuda.so")) {
    SKIP("this LibTorch is a CPU build");
  }
  CHECK_THAT(dynamic_section(torch_lib + "/libtorch.so"), ContainsSubstring("[libtorch_cuda.so]"));
}

TEST_CASE("neither programs nor libtorch depend on the driver's libcuda") {
  CHECK_THAT(dynamic_section(program), !ContainsSubstring("[libcuda.so"));
  CHECK_THAT(dynamic_section(torch_lib + "/libtorch.so"), !ContainsSubstring("[libcuda.so"));
}

TEST_CASE("programs find LibTorch and a shared sconce library only through their run path") {
  CHECK_THAT(dynamic_section(program), ContainsSubstring("[" SCONCE_RUN_PATH "]"));
}

TEST_CASE("programs load libstdc++ before LibTorch so that symbols resolve to libstdc++") {
  const std::string needs = dynamic_section(program);
  CHECK(needs.find("[libstdc++.so.6]") < needs.find("[libtorch"));
}

TEST_CASE(
    "installed programs start from any folder, find LibTorch, and train on the installed digits") {
  const std::string run_path = SCONCE_INSTALLED_RUN_PATH;
  if (run_path.empty()) SKIP("this build installs no programs that find their libraries alone");
  const TempDir prefix;
  const std::string folder = prefix.path().string();
  const auto installed = run_program("'" SCONCE_CMAKE "' --install '" SCONCE_BUILD_DIR
                                     "' --component programs --prefix " +
                                     folder);
  INFO(installed.err);
  REQUIRE(installed.exit_code == 0);
  const std::string start = "cd / && env -u LD_LIBRARY_PATH " + folder + "/bin/";
  for (const std::string name : {"sconce-train", "sconce-info", "sconce-tour"}) {
    const auto ran = run_program("(" + start + name + " --help)");
    INFO(name << ": " << ran.err);
    CHECK(ran.exit_code == 0);
    CHECK_THAT(ran.out, ContainsSubstring(name));
    CHECK_THAT(dynamic_section(folder + "/bin/" + name), ContainsSubstring("[" + run_path + "]"));
  }
  CHECK_THAT(run_program("(" + start + "sconce-export --help)").out,
             ContainsSubstring("usage: sconce-export"));
  const std::string train =
      "(" + start + "sconce-train --model linear --fast-dev-run --device cpu)";
  CHECK(run_program(train).exit_code == 0);
  std::filesystem::remove(prefix.path() / "share/sconce/digits/t10k-images-idx3-ubyte");
  CHECK_THAT(run_program(train).err, ContainsSubstring(folder + "/share/sconce/digits"));
}

TEST_CASE("a program that cannot write its output prints an error and exits with code 1") {
  const TempDir folder;
  const std::string train =
      program + " --model linear --fast-dev-run --device cpu --out " + folder.path().string();
  for (const std::string& command : {train, program + " --help", info, info + " --json",
                                     std::string(SCONCE_BIN_DIR "/sconce-tour")}) {
    const auto ran = run_program("(" + command + " >/dev/full)");
    INFO(command << ": " << ran.err);
    CHECK(ran.exit_code == 1);
    CHECK_THAT(ran.err, ContainsSubstring(": cannot write to standard output"));
  }
  CHECK(std::filesystem::exists(folder.path() / "model.safetensors"));
}

namespace {

// Returns the JSON output of sconce-info, run with the given environment variables.
nlohmann::json info_json(const std::string& settings) {
  const auto ran = run_program(settings + " " + info + " --json");
  INFO(ran.err);
  REQUIRE(ran.exit_code == 0);
  return nlohmann::json::parse(ran.out);
}

}  // namespace

TEST_CASE("sconce-info reports LibTorch's devices and threads in a table and in JSON") {
  const auto json = info_json("OMP_NUM_THREADS=1");
  CHECK(json.at("libtorch").at("num_gpus") == sconce::num_gpus());
  CHECK(json.at("libtorch").at("num_threads") == 1);
  CHECK((json.at("verdict").at("name") == "usable") == (sconce::num_gpus() > 0));
  CHECK(json.at("variables").at("OMP_NUM_THREADS") == "1");
  const auto ran = run_program(info);
  CHECK(ran.exit_code == 0);
  CHECK_THAT(ran.out, Catch::Matchers::StartsWith("sconce  "));
  CHECK_THAT(ran.out,
             Catch::Matchers::EndsWith(json.at("verdict").at("text").get<std::string>() + "\n"));
}

TEST_CASE(
    "sconce-info finds NVML and writes valid JSON regardless of the bytes in an environment "
    "variable") {
  const std::string stand_in =
      "LD_LIBRARY_PATH='" SCONCE_NVML_DIR "'${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} ";
  const auto old = info_json(stand_in + "CUDA_VISIBLE_DEVICES=-1");
  const bool has_cuda = old.at("libtorch").at("built_with_cuda");
  CHECK(old.at("driver").at("gpus").size() == 2);
  CHECK(old.at("verdict").at("name") == (has_cuda ? "driver_too_old" : "cpu_build"));
  const auto hidden =
      info_json(stand_in + "STAND_IN_CUDA=99000 CUDA_VISIBLE_DEVICES=\"$(printf '\\377')\"");
  CHECK(hidden.at("verdict").at("name") == (has_cuda ? "hidden" : "cpu_build"));
  CHECK(hidden.at("variables").at("CUDA_VISIBLE_DEVICES") == "\xef\xbf\xbd");
}

TEST_CASE(
    "sconce-info --require-gpu exits with code 1 and a one-line error if no GPU can be used") {
  const auto ran = run_program("CUDA_VISIBLE_DEVICES= " + info + " --require-gpu");
  CHECK(ran.exit_code == 1);
  CHECK_THAT(ran.err, Catch::Matchers::StartsWith("sconce-info: no GPU can be used: "));
  CHECK(ran.err.find('\n') == ran.err.size() - 1);
  CHECK(run_program(info + " --require-gpu").exit_code == (sconce::num_gpus() > 0 ? 0 : 1));
}

TEST_CASE(
    "sconce-info and sconce-tour exit with code 2 and a one-line error for an invalid argument") {
  const auto [name, argument, error] = GENERATE(table<std::string, std::string, std::string>(
      {{"sconce-info", "--jsn", "--jsn: unknown flag; did you mean --json? "},
       {"sconce-info", "extra", "'extra': unknown argument "},
       {"sconce-tour", "--hlep", "--hlep: unknown flag; did you mean --help? "},
       {"sconce-tour", "3", "'3': unknown argument "}}));
  const auto ran = run_program(SCONCE_BIN_DIR "/" + name + " " + argument);
  CHECK(ran.exit_code == 2);
  CHECK(ran.out.empty());
  CHECK(ran.err == name + ": " + error + "(--help lists the flags)\n");
}

TEST_CASE("each program supports --help and --version, which only print text and exit") {
  const std::string name = GENERATE("sconce-train", "sconce-info", "sconce-tour");
  const auto help = run_program(SCONCE_BIN_DIR "/" + name + " --help");
  CHECK(help.exit_code == 0);
  CHECK(help.err.empty());
  CHECK_THAT(help.out, (ContainsSubstring("\nUsage: " + name + " [OPTIONS]") ||
                        ContainsSubstring("\n" + name + " [OPTIONS]")) &&  // CLI11 2.6
                           ContainsSubstring("--version") &&
                           !ContainsSubstring("CPU threads"));
  const auto version = run_program(SCONCE_BIN_DIR "/" + name + " --version");
  CHECK(version.exit_code == 0);
  CHECK(version.err.empty());
  const auto number = [](int value) { return std::to_string(value); };
  CHECK(version.out == name + " " + number(SCONCE_VERSION_MAJOR) + "." +
                           number(SCONCE_VERSION_MINOR) + "." + number(SCONCE_VERSION_PATCH) +
                           SCONCE_VERSION_SUFFIX + ", LibTorch " TORCH_VERSION "\n");
}
