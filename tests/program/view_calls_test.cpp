#include "program/view_calls.hpp"

#include <algorithm>
#include <numeric>

#include "catch.hpp"
#include "program/prepared_program.hpp"
#include "support/draw.hpp"

using sconce::program::detail::add_view;
using sconce::program::detail::Graph;
using sconce::program::detail::Placement;
using sconce::program::detail::PreparedProgram;
using sconce::test::Draw;

namespace {

// Returns a view of a vector, created by a random sequence of view operations.
torch::Tensor draw_view(Draw& draw, torch::Tensor tensor) {
  for (int64_t i = 0; i < 6; ++i) {
    const auto dim = draw.below(tensor.dim() + 1) - 1;
    const int64_t size = dim < 0 ? 1 : tensor.size(dim);
    switch (draw.below(7)) {
      case 0:
        if (dim >= 0) tensor = tensor.transpose(dim, draw.below(tensor.dim()));
        break;
      case 1:
        if (dim >= 0 && size > 1)
          tensor = tensor.narrow(dim, draw.below(size - size / 2), size / 2);
        break;
      case 2:
        if (dim >= 0) tensor = tensor.select(dim, draw.below(size));
        break;
      case 3:
        tensor = tensor.unsqueeze(dim + 1);
        break;
      case 4:
        if (dim >= 0 && size % 2 == 0) tensor = tensor.unflatten(dim, {2, size / 2});
        break;
      case 5:
        if (dim >= 0 && size > 2) tensor = tensor.slice(dim, draw.below(2), size, 2);
        break;
      default:
        auto sizes = tensor.unsqueeze(dim + 1).sizes().vec();
        sizes[static_cast<size_t>(dim + 1)] = 3;
        tensor = tensor.unsqueeze(dim + 1).expand(sizes);
    }
  }
  return tensor;
}

// Runs the calls that recreate `view` as a view of `base`.
torch::Tensor run(const torch::Tensor& base, const torch::Tensor& view, bool& is_strided) {
  Graph graph;
  graph.values = 1;
  graph.inputs.push_back({.name = "base", .value = 0, .dtype = base.scalar_type()});
  for (const int64_t size : base.sizes()) {
    graph.inputs.back().shape.push_back(sconce::program::detail::Size(size));
  }
  const auto value = add_view(graph, 0, Placement::of(base), Placement::of(view));
  graph.outputs.push_back({.name = "view", .value = value, .dtype = base.scalar_type()});
  for (const int64_t size : view.sizes()) {
    graph.outputs.back().shape.push_back(sconce::program::detail::Size(size));
  }
  is_strided = std::any_of(graph.calls.begin(), graph.calls.end(), [](const auto& call) {
    return call.op.schema().name() == "aten::as_strided";
  });
  return PreparedProgram(std::move(graph), torch::kCPU, "view: ").run({base})[0];
}

}  // namespace

TEST_CASE("add_view reproduces random views and rarely needs as_strided") {
  Draw draw(0);
  int strided = 0;
  for (int i = 0; i < 2000; ++i) {
    const auto base = torch::rand({draw.of<int64_t>({1, 24, 60, 64})});
    const auto view = draw_view(draw, base);
    bool is_strided = false;
    const auto made = run(base, view, is_strided);
    INFO(view.sizes() << " " << view.strides() << " " << view.storage_offset());
    CHECK(made.equal(view));
    CHECK(made.data_ptr() == view.data_ptr());
    strided += is_strided ? 1 : 0;
  }
  CHECK(strided <= 20);
}

TEST_CASE("add_view reproduces views of a dense, permuted base") {
  Draw draw(1);
  for (int i = 0; i < 500; ++i) {
    const auto flat = torch::rand({2 * 3 * 4 * 5});
    const auto order = draw.of<std::vector<int64_t>>({{0, 1, 2, 3}, {0, 3, 1, 2}, {3, 2, 1, 0}});
    const auto base = flat.view({2, 3, 4, 5}).permute(order);
    const auto view = draw_view(draw, flat);
    bool is_strided = false;
    CHECK(run(base, view, is_strided).equal(view));
  }
}

TEST_CASE("add_view uses as_strided for overlapping elements") {
  const auto base = torch::arange(10.);
  bool is_strided = false;
  const auto view = base.unfold(0, 4, 2);
  CHECK(run(base, view, is_strided).equal(view));
  CHECK(is_strided);
}

TEST_CASE("add_view rejects a base that does not span its entire storage") {
  const auto base = torch::rand({4, 4}).slice(1, 0, 2);
  bool is_strided = false;
  CHECK_THROWS_WITH(run(base, base.t(), is_strided),
                    Catch::Matchers::ContainsSubstring(
                        "expected a dense tensor that starts at the beginning of its storage"));
}
