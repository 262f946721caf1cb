#include "report/best_effort.hpp"

#include <c10/util/Exception.h>

#include <stdexcept>

#include "catch.hpp"
#include "support/warnings.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

TEST_CASE("a failing report warns once and never throws") {
  const sconce::test::Warnings warnings;
  sconce::BestEffort effort("sconce::Report");
  CHECK(effort.run([] {}));
  CHECK_FALSE(effort.run([] { TORCH_CHECK(false, "no room for x.svg"); }));
  CHECK_FALSE(effort.run([] { throw std::runtime_error("no room again"); }));
  CHECK(effort.run([] {}));
  REQUIRE(warnings.messages().size() == 1);
  CHECK_THAT(warnings.messages().front(), StartsWith("sconce::Report: "));
  CHECK_THAT(warnings.messages().front(), ContainsSubstring("no room for x.svg"));
}

TEST_CASE("each report warns separately") {
  const sconce::test::Warnings warnings;
  sconce::BestEffort first("sconce::First");
  sconce::BestEffort second("sconce::Second");
  first.run([] { throw std::runtime_error("full"); });
  second.run([] { throw std::runtime_error("full"); });
  CHECK(warnings.messages().size() == 2);
}
