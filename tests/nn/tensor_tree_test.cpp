#include "sconce/nn/tensor_tree.hpp"

#include <ATen/core/List.h>

#include <array>
#include <deque>
#include <filesystem>
#include <string>
#include <unordered_map>

#include "catch.hpp"

using sconce::nn::ContainerOfTensors;
using sconce::nn::for_each_tensor;
using sconce::nn::TensorTree;
using torch::Tensor;

namespace {

using Everything =
    std::tuple<Tensor, std::vector<std::pair<Tensor, int>>, std::map<std::string, Tensor>,
               std::optional<Tensor>, std::vector<bool>, std::string>;

Everything everything() {
  const auto one = [](int64_t value) { return torch::tensor(value); };
  return {one(1), {{one(2), 0}, {one(3), 0}}, {{"b", one(5)}, {"a", one(4)}}, one(6), {true}, "s"};
}

struct Mine {
  Tensor tensor;
};

struct OfMembers {
  Tensor a;
  std::vector<Tensor> b;
};

struct WithNumbers {
  Tensor a;
  std::pair<Tensor, int> b;
};

}  // namespace

template <>
struct sconce::nn::TensorTree<Mine> {
  static constexpr bool any = true;
  static constexpr bool only = true;
  template <class Value, class F>
  static void for_each(Value& value, const F& f) {
    f(value.tensor);
  }
  static bool alike(const Mine&, const Mine&) { return true; }
};
template <>
struct sconce::nn::TensorTree<OfMembers> : sconce::nn::TensorMembers<&OfMembers::a, &OfMembers::b> {
};
template <>
struct sconce::nn::TensorTree<WithNumbers>
    : sconce::nn::TensorMembers<&WithNumbers::a, &WithNumbers::b> {};

TEST_CASE("for_each_tensor visits every tensor of a nested value once, in order") {
  const auto value = everything();
  std::vector<int64_t> seen;
  for_each_tensor(value, [&](const Tensor& tensor) { seen.push_back(tensor.item<int64_t>()); });
  CHECK(seen == std::vector<int64_t>{1, 2, 3, 4, 5, 6});
}

TEST_CASE("for_each_tensor can replace the tensors that it visits") {
  auto value = everything();
  for_each_tensor(value, [](Tensor& tensor) { tensor = tensor * 10; });
  CHECK(std::get<1>(value)[1].first.item<int64_t>() == 30);
  CHECK(std::get<2>(value)["b"].item<int64_t>() == 50);
  CHECK(std::get<3>(value)->item<int64_t>() == 60);
}

TEST_CASE(
    "TensorTree reports whether a type can contain tensors and whether the type contains only "
    "tensors") {
  STATIC_CHECK(TensorTree<Tensor>::only);
  STATIC_CHECK(TensorTree<std::map<int, std::vector<std::optional<Tensor>>>>::only);
  STATIC_CHECK(TensorTree<Everything>::any);
  STATIC_CHECK_FALSE(TensorTree<Everything>::only);
  STATIC_CHECK_FALSE(TensorTree<std::pair<Tensor, int>>::only);
  STATIC_CHECK_FALSE(TensorTree<std::vector<std::tuple<int, std::string>>>::any);
  STATIC_CHECK(TensorTree<std::vector<Mine>>::only);
}

TEST_CASE("a specialization of TensorTree makes for_each_tensor visit a user-defined type") {
  std::vector<Mine> value = {{torch::ones({2})}, {torch::ones({3})}};
  int64_t elements = 0;
  for_each_tensor(value, [&](const Tensor& tensor) { elements += tensor.numel(); });
  CHECK(elements == 5);
}

TEST_CASE("TensorTree visits the tensors of a class that lists its members") {
  const auto t = torch::ones({1});
  std::vector<OfMembers> value = {{t, {t, t}}, {t, {}}};
  for_each_tensor(value, [](Tensor& tensor) { tensor = tensor * 2; });
  int64_t count = 0;
  for_each_tensor(std::as_const(value), [&](const Tensor& tensor) {
    CHECK(tensor.item<float>() == 2);
    ++count;
  });
  CHECK(count == 4);
  STATIC_CHECK(TensorTree<OfMembers>::any);
  STATIC_CHECK(TensorTree<OfMembers>::only);
  STATIC_CHECK(TensorTree<WithNumbers>::any);
  STATIC_CHECK_FALSE(TensorTree<WithNumbers>::only);
  using Value = std::vector<OfMembers>;
  CHECK(TensorTree<Value>::alike({{t, {t}}}, {{t + 1, {t}}}));
  CHECK_FALSE(TensorTree<Value>::alike({{t, {t}}}, {{{}, {t}}}));
  CHECK_FALSE(TensorTree<Value>::alike({{t, {t}}}, {{t, {t, t}}}));
}

TEST_CASE("TensorTree::alike compares lengths, keys, and the positions of undefined tensors") {
  using Value = std::tuple<std::vector<Tensor>, std::map<int, Tensor>, std::optional<Tensor>,
                           std::pair<Tensor, Tensor>>;
  const auto t = torch::ones({1});
  const Value value = {{t, t}, {{1, t}}, t, {t, t}};
  const auto alike = [&](const Value& other) {
    CHECK(TensorTree<Value>::alike(value, other) == TensorTree<Value>::alike(other, value));
    return TensorTree<Value>::alike(value, other);
  };
  CHECK(alike({{t + 1, torch::ones({3})}, {{1, t}}, t, {t, t}}));
  CHECK_FALSE(alike({{t}, {{1, t}}, t, {t, t}}));
  CHECK_FALSE(alike({{t, {}}, {{1, t}}, t, {t, t}}));
  CHECK_FALSE(alike({{t, t}, {{2, t}}, t, {t, t}}));
  CHECK_FALSE(alike({{t, t}, {{1, t}, {2, t}}, t, {t, t}}));
  CHECK_FALSE(alike({{t, t}, {{1, t}}, {}, {t, t}}));
  CHECK_FALSE(alike({{t, t}, {{1, t}}, t, {t, {}}}));
}

TEST_CASE(
    "ContainerOfTensors recognizes tensor containers at any depth, even container types that "
    "TensorTree does not support") {
  STATIC_CHECK(ContainerOfTensors<std::array<Tensor, 2>>);
  STATIC_CHECK(ContainerOfTensors<std::unordered_map<std::string, Tensor>>);
  STATIC_CHECK(ContainerOfTensors<at::TensorList>);
  STATIC_CHECK(ContainerOfTensors<c10::List<Tensor>>);
  STATIC_CHECK(ContainerOfTensors<Tensor[2][3]>);
  STATIC_CHECK(ContainerOfTensors<std::deque<std::pair<int, std::vector<Mine>>>>);
  STATIC_CHECK_FALSE(ContainerOfTensors<std::array<int, 2>>);
  STATIC_CHECK_FALSE(ContainerOfTensors<std::unordered_map<std::string, int>>);
  STATIC_CHECK_FALSE(ContainerOfTensors<at::IntArrayRef>);
  STATIC_CHECK_FALSE(ContainerOfTensors<char[5]>);
  STATIC_CHECK_FALSE(ContainerOfTensors<std::filesystem::path>);
  STATIC_CHECK_FALSE(ContainerOfTensors<Tensor>);
}
