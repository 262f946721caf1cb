// Uses each dependency once, to compile against its headers and to link its library.
#include <httplib.h>
#include <zlib.h>
#include <CLI/CLI.hpp>
#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

TEST_CASE("every dependency compiles and links") {
  REQUIRE(CLI::App("check").get_description() == "check");
  REQUIRE(nlohmann::json::accept("[1]"));
  REQUIRE(httplib::Server().is_valid());
  REQUIRE(zlibVersion() != nullptr);
}
