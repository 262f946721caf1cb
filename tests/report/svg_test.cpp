#include "report/svg.hpp"

#include <random>

#include "catch.hpp"
#include "support/sanitized.hpp"
#include "support/svg.hpp"

using Catch::Matchers::ContainsSubstring;
namespace svg = sconce::svg;
using sconce::test::xml_problem;

namespace {

const std::string no_character = "\xEF\xBF\xBD";

std::string document_of(const std::string& name) {
  return svg::document({.height = 100, .title = name, .body = svg::text(1, 2, name)});
}

}  // namespace

TEST_CASE("xml_problem finds malformed XML") {
  const std::string head = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  CHECK(xml_problem(head + "<a b=\"1\" c=\"&amp;\"><d/>&lt;</a>\n") == "");
  for (const char* wrong :
       {"", "<a>", "<a></b>", "<a b=1/>", "<a b=\"1\" b=\"2\"/>", "<a>&</a>", "<a>&nbsp;</a>",
        "<a b=\"<\"/>", "<a/><b/>", "<a>\x01</a>", "<a>\xFF</a>", "<a>\xEF\xBF\xBF</a>"}) {
    INFO(wrong);
    CHECK(xml_problem(head + wrong) != "");
  }
}

TEST_CASE("svg_problem detects both non-finite numbers and points outside the image") {
  const auto problem_of = [](const std::string& data) {
    return sconce::test::svg_problem(
        svg::document({.height = 100, .title = "a", .body = svg::path("line", data)}));
  };
  for (const char* right : {"M0 0L600 100", "M590 90l10 0-600 10", "M1 1a3.5 3.5 0 1 0 7 0z"}) {
    CHECK(problem_of(right) == "");
  }
  for (const char* wrong : {"M0 101", "M590 0l10.1 0", "M5 5h-6", "M5 5v96", "M1 nan", "M1 inf"}) {
    INFO(wrong);
    CHECK(problem_of(wrong) != "");
  }
}

TEST_CASE("svg::escape turns any text into valid XML") {
  CHECK(svg::escape("a < b & \"c\" > 'd'") == "a &lt; b &amp; &quot;c&quot; &gt; 'd'");
  CHECK(svg::escape("two\nlines\tand\r") == "two lines and ");
  CHECK(svg::escape(std::string("a\0b\x01", 4)) == "a" + no_character + "b" + no_character);
  CHECK(svg::escape("na\xC3\xAFve \xF0\x9F\x90\x88") == "na\xC3\xAFve \xF0\x9F\x90\x88");
  CHECK(svg::escape("\xC3(\xFF\xED\xA0\x80") ==
        no_character + "(" + no_character + no_character + no_character + no_character);
  CHECK(svg::escape("\xEF\xBF\xBE\xEF\xBF\xBF") == no_character + no_character);
}

TEST_CASE("an SVG document is well-formed, regardless of the bytes in a name") {
  std::mt19937 random(1);
  std::uniform_int_distribution<int> byte(0, 255), length(0, 60), kind(0, 3);
  for (int i = 0; i < sconce::test::rounds(5'000, 500); ++i) {
    std::string name;
    for (int k = length(random); k > 0; --k) {
      const int drawn = byte(random);
      name += kind(random) == 0 ? "<>&\"'\xEF\xBF\xC3]"[drawn % 9] : static_cast<char>(drawn);
    }
    REQUIRE(xml_problem(document_of(name)) == "");
  }
}

TEST_CASE("SVG text that does not fit is truncated and appears in full in its tooltip") {
  const std::string name = "a class with a very long name & more";
  const auto cut = svg::text(1, 2, name, {.room = 60});
  CHECK_THAT(cut, ContainsSubstring("<title>a class with a very long name &amp; more</title>a c"));
  CHECK_THAT(cut, ContainsSubstring("\xE2\x80\xA6</text>"));
  CHECK_THAT(svg::text(1, 2, "short", {.room = 60}), ContainsSubstring(">short</text>"));
  CHECK(svg::text_width("WWWW") > svg::text_width("iiii"));
}

TEST_CASE("SVG numbers are written compactly") {
  CHECK(svg::tenths(125) == "12.5");
  CHECK(svg::tenths(-5) == "-.5");
  CHECK(svg::tenths(-40) == "-4");
  CHECK(svg::tenths(0) == "0");
  CHECK(svg::number(-0.01) == "0");
  CHECK(svg::number(99.96) == "100");
}
