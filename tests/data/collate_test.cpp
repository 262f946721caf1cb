#include "sconce/data/collate.hpp"

#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "sconce/data/dataset.hpp"
#include "support/error_of.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::data::Dataset;
using sconce::data::PadSequence;
using sconce::data::Stack;

TEST_CASE("Stack stacks tensors inside structs, pairs, and vectors") {
  const auto a = torch::rand({2, 3}), b = torch::rand({2, 3});
  CHECK(torch::equal(Stack()(std::vector{a, b}), torch::stack({a, b})));
  const Dataset batch = Stack()(std::vector<Dataset>{{a, torch::tensor(1)}, {b, torch::tensor(2)}});
  CHECK(torch::equal(batch.data, torch::stack({a, b})));
  CHECK(torch::equal(batch.target, torch::tensor({1, 2})));
  using Item = std::pair<std::vector<torch::Tensor>, torch::Tensor>;
  const auto [lists, rest] = Stack()(std::vector<Item>{{{a, b}, a}, {{b, b}, b}});
  REQUIRE(lists.size() == 2);
  CHECK(torch::equal(lists[0], torch::stack({a, b})));
  CHECK(torch::equal(lists[1], torch::stack({b, b})));
  CHECK(torch::equal(rest, torch::stack({a, b})));
  CHECK(torch::equal(Stack()(std::vector{a}), a.unsqueeze(0)));
  CHECK_FALSE(Stack()(std::vector<Dataset>{{a, {}}, {b, {}}}).target.defined());
}

TEST_CASE("PadSequence pads shorter items at the end and stacks zero-dimensional tensors") {
  const auto one = torch::ones({1, 2}), three = torch::ones({3, 2});
  const auto padded = PadSequence{.padding_value = 7}(std::vector{one, three});
  CHECK(torch::equal(padded, torch::stack({torch::cat({one, torch::full({2, 2}, 7)}), three})));
  CHECK(torch::equal(PadSequence()(std::vector{torch::tensor(3), torch::tensor(4)}),
                     torch::tensor({3, 4})));
  const auto classes = PadSequence()(std::vector{torch::arange(2), torch::arange(3)});
  CHECK(classes.scalar_type() == torch::kLong);
  CHECK(torch::equal(classes, torch::tensor({{0, 1, 0}, {0, 1, 2}})));
}

TEST_CASE("Stack and PadSequence reject mismatched items and report their positions in the batch") {
  const auto two = torch::ones({2}), three = torch::ones({3});
  const auto refusal = [](const auto& collate, auto items) {
    return sconce::test::error_of([&] { collate(std::move(items)); });
  };
  CHECK(refusal(Stack(), std::vector{two, two, three}) ==
        "sconce::data::Stack: expected tensors of the same size, got [2] in item 0 of the batch "
        "and [3] "
        "in item 2; sconce::data::PadSequence pads shorter tensors");
  CHECK_THAT(refusal(PadSequence(), std::vector{torch::ones({1, 2}), torch::ones({1, 3})}),
             ContainsSubstring("got [1, 2] in item 0 of the batch and [1, 3] in item 1"));
  CHECK_THAT(refusal(PadSequence(), std::vector{two, torch::ones({2, 1})}),
             ContainsSubstring("only in their first dimension"));
  using Lists = std::vector<std::vector<torch::Tensor>>;
  CHECK_THAT(refusal(Stack(), Lists{{two}, {two, two}}),
             ContainsSubstring("the same lengths, keys, and undefined tensors") &&
                 ContainsSubstring("item 1"));
}
