#include "sconce/data/detail/stream_places.hpp"

#include "catch.hpp"
#include "support/error_of.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::data::detail::LoopPosition;
using sconce::data::detail::StreamPlaces;

TEST_CASE("StreamPlaces stores only the last position, even after loading a state dict") {
  StreamPlaces places;
  CHECK(places.find({.epoch = 0, .batch = 0}));
  places.note({.epoch = 2, .batch = 3}, {.pass = 4, .chunk = 5, .taken = 6, .stream = 7});
  CHECK_FALSE(places.find({.epoch = 0, .batch = 0}));
  CHECK_FALSE(places.find({.epoch = 2, .batch = 4}));
  StreamPlaces loaded;
  loaded.load_state_dict(places.state_dict());
  const auto place = loaded.find({.epoch = 2, .batch = 3});
  REQUIRE(place);
  CHECK(place->pass == 4);
  CHECK(place->chunk == 5);
  CHECK(place->taken == 6);
  CHECK(place->stream.value().toInt() == 7);
}

TEST_CASE("StreamPlaces rejects a state dict with a missing key or a negative number") {
  StreamPlaces places;
  auto lacking = places.state_dict().toGenericDict().copy();
  CHECK(lacking.erase("chunk") == 1);
  CHECK_THAT(sconce::test::error_of([&] { places.load_state_dict(lacking); }),
             ContainsSubstring("expected a dict with the key 'chunk'"));
  auto negative = places.state_dict().toGenericDict().copy();
  negative.insert_or_assign("pass", -1);
  CHECK_THAT(sconce::test::error_of([&] { places.load_state_dict(negative); }),
             ContainsSubstring("expected 'pass' to be at least 0"));
}
