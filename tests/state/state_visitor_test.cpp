#include "state/state_visitor.hpp"

#include <array>
#include <map>
#include <memory>

#include "catch.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::StateVisitor;

namespace visited {

enum class Kind { first, second };

std::array<const char*, 2> names(Kind) {
  return {"one", "two"};
}

struct Part {
  double number = 0;
  std::optional<double> maybe = {};
};

// A class with a custom state dict.
struct Counter {
  c10::IValue state_dict() const { return count; }
  void load_state_dict(const c10::IValue& state) { count = state.toInt(); }

  int64_t count = 0;
};

struct All {
  int64_t count = 0;
  int small = 0;
  bool flag = false;
  bool newer = false;
  std::string text = {};
  torch::Tensor tensor = {};
  c10::IValue anything = {};
  Kind kind = Kind::first;
  std::tuple<double, double> pair = {};
  std::optional<Part> none = {}, some = {};
  std::vector<Part> parts = {};
  std::vector<int64_t> milestones = {0, 0};
  std::shared_ptr<Counter> counter = std::make_shared<Counter>();
  std::optional<double> absent = {}, present = {};
};

void visit_state(Part& part, StateVisitor& state) {
  state("number", part.number);
  state.check(part.number >= 0, "at least 0");
  state("maybe", part.maybe);
}

void visit_state(All& all, StateVisitor& state) {
  state.count("count", all.count);
  state("small", all.small);
  state("flag", all.flag);
  state("newer", all.newer, false);
  state("text", all.text);
  state("tensor", all.tensor);
  state("anything", all.anything);
  state("kind", all.kind);
  state("pair", all.pair);
  state("none", all.none);
  state("some", all.some);
  state.any_length("parts", all.parts);
  state("milestones", all.milestones);
  state("counter", all.counter);
  state.optional_value("absent", all.absent);
  state.optional_value("present", all.present);
  state.write_only("constant", 1);
}

All example() {
  return {.count = 3,
          .small = -4,
          .flag = true,
          .newer = true,
          .text = "text",
          .tensor = torch::arange(3),
          .anything = c10::List<int64_t>({1, 2}),
          .kind = Kind::second,
          .pair = {0.5, 0.25},
          .some = Part{1.5, 2.5},
          .parts = {{1, {}}, {2, 3.0}},
          .milestones = {5, 6},
          .counter = std::make_shared<Counter>(Counter{7}),
          .present = 8.0};
}

}  // namespace visited

using visited::All;
using visited::example;

TEST_CASE("a state visitor reads back every kind of member that it wrote, in the order visited") {
  const auto state = sconce::as_state(example()).toGenericDict();
  std::vector<std::string> keys;
  for (const auto& entry : state) keys.push_back(entry.key().toStringRef());
  CHECK(keys == std::vector<std::string>{"count", "small", "flag", "newer", "text", "tensor",
                                         "anything", "kind", "pair", "none", "some", "parts",
                                         "milestones", "counter", "present", "constant"});
  CHECK(state.at("kind") == c10::IValue("two"));
  CHECK(state.at("none").isNone());
  CHECK(state.at("parts").toListRef()[1].toGenericDict().at("maybe") == c10::IValue(3.0));

  const auto read = sconce::from_state<All>(state, "here");
  CHECK(read.small == -4);
  CHECK(read.counter->count == 7);
  CHECK_FALSE(read.none);
  CHECK_FALSE(read.absent);
  const auto again = sconce::as_state(read).toGenericDict();
  for (const auto& entry : state) {
    INFO(entry.key().toStringRef());
    const auto& value = again.at(entry.key());
    CHECK((value.isTensor() ? value.toTensor().equal(torch::arange(3)) : value == entry.value()));
  }
}

TEST_CASE(
    "a state visitor accepts a tensor or bool in place of a number, and a list in place of a "
    "pair") {
  const auto state = sconce::as_state(example()).toGenericDict();
  c10::impl::GenericList pair(c10::AnyType::get());
  pair.push_back(torch::full({1}, 0.5));
  pair.push_back(2);
  state.insert_or_assign("pair", pair);
  state.insert_or_assign("present", true);
  const auto read = sconce::from_state<All>(state, "here");
  CHECK(read.pair == std::tuple(0.5, 2.0));
  CHECK(read.present == 1.0);
}

TEST_CASE(
    "a member whose key is missing from an older state gets its default value or stays unchanged") {
  auto state = sconce::as_state(example()).toGenericDict();
  for (const char* key : {"newer", "present"}) CHECK(state.erase(key) == 1);
  const auto read = sconce::from_state<All>(state, "here", {.newer = true, .present = 9.0});
  CHECK_FALSE(read.newer);
  CHECK(read.present == 9.0);
}

TEST_CASE(
    "a state visitor rejects an invalid type, length, or range and reports the key and its path") {
  const auto two = c10::impl::toList(c10::List<double>({1.0, 2.0}));
  auto negative = sconce::string_dict();
  negative.insert("number", -1.0);
  const std::multimap<std::string, std::pair<c10::IValue, std::string>> wrong = {
      {"count", {1.5, "expected an int for 'count', got Double"}},
      {"count", {-1, "expected 'count' to be at least 0, got another value"}},
      {"small", {int64_t{1} << 31, "expected a 32-bit int for 'small', got Int"}},
      {"flag", {1, "expected a bool for 'flag', got Int"}},
      {"newer", {c10::IValue(), "expected a bool for 'newer', got None"}},
      {"text", {2, "expected a string for 'text', got Int"}},
      {"tensor", {2, "expected a tensor for 'tensor', got Int"}},
      {"kind", {"three", "expected 'one' or 'two' for 'kind', got String"}},
      {"pair", {std::tuple(1, 2, 3), "expected 2 numbers for 'pair', got Tuple"}},
      {"pair", {std::tuple(1, "2"), "expected a number for 'pair', got String"}},
      {"some", {3, "'some': expected a dict, got Int"}},
      {"some", {sconce::string_dict(), "'some': expected a dict with the key 'number'"}},
      {"some", {negative, "'some': expected 'number' to be at least 0, got another value"}},
      {"parts", {two, "'parts': expected a dict, got Double"}},
      {"parts", {c10::IValue(), "expected a list of length 0 for 'parts', got None"}},
      {"milestones", {c10::List<int64_t>({1}), "expected a list of length 2 for 'milestones'"}},
      {"present", {torch::ones({2}), "expected a number for 'present', got Tensor"}},
      {"present", {torch::Tensor(), "expected a number for 'present', got Tensor"}},
      {"present", {torch::ones({}, torch::kComplexFloat), "expected a number for 'present'"}},
      {"present", {c10::IValue(), "expected a number for 'present', got None"}}};
  for (const auto& [key, value_and_message] : wrong) {
    auto state = sconce::as_state(example()).toGenericDict();
    state.insert_or_assign(key, value_and_message.first);
    INFO(key << ": " << value_and_message.second);
    CHECK_THROWS_WITH(sconce::from_state<All>(state, "here"),
                      ContainsSubstring("here: " + value_and_message.second));
  }
  CHECK_THROWS_WITH(sconce::from_state<All>(3, "here"), ContainsSubstring("here: expected a dict"));
}
