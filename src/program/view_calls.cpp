#include "program/view_calls.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

namespace sconce::program::detail {

namespace {

Argument integer(int64_t value) {
  return {Size(value)};
}

Argument integers(const std::vector<int64_t>& values) {
  Argument::List list;
  for (const int64_t value : values) list.push_back(integer(value));
  return {std::move(list)};
}

size_t add_of(Graph& graph, const char* op, size_t tensor, std::vector<Argument> further) {
  further.insert(further.begin(), Argument{ValueId{tensor}});
  return add_call(graph, op, "", std::move(further));
}

size_t add_slice(Graph& graph, size_t tensor, size_t dim, int64_t start, int64_t size) {
  return add_call(graph, "aten::slice", "Tensor",
                  {{ValueId{tensor}},
                   integer(static_cast<int64_t>(dim)),
                   integer(start),
                   integer(start + size),
                   integer(1)});
}

// A multidimensional block, reshaped from a vector, in which a view spans an index range along each
// dimension. If the view's elements are not adjacent, the block has an additional dimension for the
// stride between the elements. The view uses a single index in this additional dimension.
struct Block {
  int64_t offset = 0;  // offset of the first element in the vector
  std::vector<int64_t> sizes = {};
  std::vector<int64_t> starts = {};
};

// Returns a block in which the view spans an index range along each dimension, or std::nullopt if
// no suitable block exists. The view's dimensions are sorted by descending strides.
std::optional<Block> block_of(int64_t numel, const Placement& view) {
  Block block;
  int64_t rest = view.offset;
  int64_t outer = numel;
  for (size_t i = 0; i < view.sizes.size(); ++i) {
    const int64_t stride = view.strides[i];
    if (stride <= 0 || (i > 0 && outer % stride != 0)) return {};
    block.sizes.push_back(outer / stride);
    block.starts.push_back(rest / stride);
    rest %= stride;
    outer = stride;
    if (block.starts.back() + view.sizes[i] > block.sizes.back()) return {};
  }
  if (outer > 1) {
    block.sizes.push_back(outer);
    block.starts.push_back(rest);
  }
  return block;
}

// Like `block_of`, but falls back to the part of the vector that starts at the view's offset if the
// whole vector has no suitable block.
std::optional<Block> find_block(int64_t numel, const Placement& view) {
  auto block = block_of(numel, view);
  if (block || view.sizes.empty()) return block;
  const int64_t part = view.sizes[0] * view.strides[0];
  if (view.offset + part > numel) return {};
  block = block_of(part, {view.sizes, view.strides, 0});
  if (block) block->offset = view.offset;
  return block;
}

// Adds the calls that reshape the vector to the block and select the view's range in each
// dimension. The view's dimensions are sorted by descending strides.
size_t add_range(Graph& graph, size_t flat, int64_t numel, const Block& block,
                 const Placement& view) {
  const int64_t used =
      std::accumulate(block.sizes.begin(), block.sizes.end(), int64_t{1}, std::multiplies<>());
  size_t value = used == numel ? flat : add_slice(graph, flat, 0, block.offset, used);
  value = add_of(graph, "aten::reshape", value, {integers(block.sizes)});
  for (size_t i = 0; i < view.sizes.size(); ++i) {
    if (view.sizes[i] == block.sizes[i]) continue;
    value = add_slice(graph, value, i, block.starts[i], view.sizes[i]);
  }
  if (block.sizes.size() == view.sizes.size()) return value;
  return add_call(graph, "aten::select", "int",
                  {{ValueId{value}},
                   integer(static_cast<int64_t>(view.sizes.size())),
                   integer(block.starts.back())});
}

std::vector<int64_t> inverse(const std::vector<int64_t>& order) {
  std::vector<int64_t> inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  }
  return inverse;
}

size_t add_permutation(Graph& graph, size_t value, const std::vector<int64_t>& order) {
  if (std::is_sorted(order.begin(), order.end())) return value;
  return add_of(graph, "aten::permute", value, {integers(order)});
}

// Returns the view without dimensions of size 1 or stride 0.
Placement without_repeats(const Placement& view) {
  Placement core = {{}, {}, view.offset};
  for (size_t i = 0; i < view.sizes.size(); ++i) {
    if (view.sizes[i] == 1 || view.strides[i] == 0) continue;
    core.sizes.push_back(view.sizes[i]);
    core.strides.push_back(view.strides[i]);
  }
  return core;
}

// Restores the dimensions that `without_repeats` removed.
size_t add_repeats(Graph& graph, size_t value, const Placement& view) {
  bool repeats = false;
  for (size_t i = 0; i < view.sizes.size(); ++i) {
    if (view.sizes[i] != 1 && view.strides[i] != 0) continue;
    value = add_of(graph, "aten::unsqueeze", value, {integer(static_cast<int64_t>(i))});
    repeats |= view.sizes[i] != 1;
  }
  if (!repeats) return value;
  return add_of(graph, "aten::expand", value, {integers(view.sizes), {false}});
}

}  // namespace

Placement Placement::of(const at::Tensor& tensor) {
  return {tensor.sizes().vec(), tensor.strides().vec(), tensor.storage_offset()};
}

Placement Placement::flat(int64_t numel) {
  return {{numel}, {1}, 0};
}

int64_t Placement::numel() const {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

Placement Placement::by_stride(std::vector<int64_t>& order) const {
  order.resize(sizes.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto key = [this](int64_t dim) {
    const auto index = static_cast<size_t>(dim);
    return std::tuple(strides[index], sizes[index], -dim);
  };
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return key(a) > key(b); });
  Placement sorted = {{}, {}, offset};
  for (const int64_t dim : order) {
    sorted.sizes.push_back(sizes[static_cast<size_t>(dim)]);
    sorted.strides.push_back(strides[static_cast<size_t>(dim)]);
  }
  return sorted;
}

bool Placement::is_contiguous() const {
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] != 1 && strides[i] != stride) return false;
    stride *= sizes[i];
  }
  return true;
}

size_t add_call(Graph& graph, const char* op, const char* overload,
                std::vector<Argument> arguments) {
  auto& call =
      graph.calls.emplace_back(Call{c10::Dispatcher::singleton().findSchemaOrThrow(op, overload)});
  call.arguments = std::move(arguments);
  call.arguments.resize(call.op.schema().arguments().size());
  call.results = {{ValueId{graph.values}}};
  return graph.values++;
}

size_t add_empty(Graph& graph, const Placement& placement, c10::ScalarType dtype) {
  return add_call(graph, "aten::empty_strided", "",
                  {integers(placement.sizes),
                   integers(placement.strides),
                   {dtype},
                   {c10::Layout::Strided},
                   {c10::DeviceType::CPU}});
}

size_t add_flat(Graph& graph, size_t base, const Placement& base_placement) {
  if (base_placement == Placement::flat(base_placement.numel())) return base;
  std::vector<int64_t> order;
  TORCH_CHECK(base_placement.offset == 0 && base_placement.by_stride(order).is_contiguous(),
              "expected a dense tensor that starts at the beginning of its storage, got sizes ",
              base_placement.sizes, ", strides ", base_placement.strides, " and offset ",
              base_placement.offset);
  base = add_permutation(graph, base, order);
  return add_of(graph, "aten::reshape", base, {integers({base_placement.numel()})});
}

size_t add_view(Graph& graph, size_t base, const Placement& base_placement,
                const Placement& view_placement) {
  if (base_placement == view_placement) return base;
  if (view_placement.offset == 0 && base_placement.offset == 0 &&
      base_placement.numel() == view_placement.numel() && base_placement.is_contiguous() &&
      view_placement.is_contiguous()) {
    return add_of(graph, "aten::reshape", base, {integers(view_placement.sizes)});
  }
  std::vector<int64_t> order;
  const auto core = without_repeats(view_placement).by_stride(order);
  size_t value = add_flat(graph, base, base_placement);
  const auto block = find_block(base_placement.numel(), core);
  if (!block || view_placement.numel() == 0) {
    return add_call(graph, "aten::as_strided", "",
                    {{ValueId{value}},
                     integers(view_placement.sizes),
                     integers(view_placement.strides),
                     integer(view_placement.offset)});
  }
  value = add_range(graph, value, base_placement.numel(), *block, core);
  value = add_permutation(graph, value, inverse(order));
  return add_repeats(graph, value, view_placement);
}

}  // namespace sconce::program::detail
