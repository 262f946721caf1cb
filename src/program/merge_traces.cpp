#include "program/merge_traces.hpp"

#include <ATen/ops/equal.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

#include "program/refusals.hpp"

namespace sconce::program::detail {

namespace {

// Returns the argument with each integer evaluated at the given sizes.
Argument at_sizes(const Argument& argument, c10::IntArrayRef sizes) {
  if (const auto* size = std::get_if<Size>(&argument.value)) return {Size(size->at(sizes))};
  if (const auto* wrapped = std::get_if<WrappedNumber>(&argument.value)) {
    const auto* size = std::get_if<Size>(&wrapped->number);
    if (size != nullptr) return {WrappedNumber{Size(size->at(sizes))}};
  }
  const auto* list = std::get_if<Argument::List>(&argument.value);
  if (list == nullptr) return argument;
  Argument::List elements;
  for (const auto& element : *list) elements.push_back(at_sizes(element, sizes));
  return {std::move(elements)};
}

// Merges the values of one argument across the traces. Returns std::nullopt if the values differ in
// anything other than integers.
class Merger {
 public:
  explicit Merger(const std::vector<int64_t>& smaller) : smaller_(smaller) {}

  std::optional<Argument> merge(const std::vector<const Argument*>& all) const {
    const auto& first = *all.front();
    const auto has_kind = [&](const Argument* a) {
      return a->value.index() == first.value.index();
    };
    if (!std::all_of(all.begin(), all.end(), has_kind)) return {};
    if (std::holds_alternative<Size>(first.value)) {
      return Argument{
          merge_sizes(all, [](const Argument& a) { return std::get_if<Size>(&a.value); })};
    }
    if (const auto* wrapped = std::get_if<WrappedNumber>(&first.value);
        wrapped != nullptr && std::holds_alternative<Size>(wrapped->number)) {
      return Argument{WrappedNumber{merge_sizes(all, [](const Argument& a) {
        return std::get_if<Size>(&std::get<WrappedNumber>(a.value).number);
      })}};
    }
    if (std::holds_alternative<Argument::List>(first.value)) return merge_lists(all);
    const auto is_equal = [&](const Argument* a) { return *a == first; };
    return std::all_of(all.begin(), all.end(), is_equal) ? std::optional(first) : std::nullopt;
  }

 private:
  template <class SizeOf>
  Size merge_sizes(const std::vector<const Argument*>& all, const SizeOf& size_of) const {
    std::vector<int64_t> values;
    for (const auto* argument : all) values.push_back(size_of(*argument)->constant().value());
    return size_through(std::move(values), smaller_);
  }

  std::optional<Argument> merge_lists(const std::vector<const Argument*>& all) const {
    const auto elements = [](const Argument* a) -> const Argument::List& {
      return std::get<Argument::List>(a->value);
    };
    Argument::List list;
    for (const auto* argument : all) {
      if (elements(argument).size() != elements(all.front()).size()) return {};
    }
    for (size_t i = 0; i < elements(all.front()).size(); ++i) {
      std::vector<const Argument*> column;
      for (const auto* argument : all) column.push_back(&elements(argument)[i]);
      auto merged = merge(column);
      if (!merged) return {};
      list.push_back(*std::move(merged));
    }
    return Argument{std::move(list)};
  }

  const std::vector<int64_t>& smaller_;
};

std::string name_of(const Call& call) {
  return call.op.schema().name();
}

// Returns a description of the first position at which two call lists contain different operators,
// or an empty string if their operators match.
std::string other_operators(const std::vector<Call>& a, const std::vector<Call>& b) {
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const std::string one = i < a.size() ? name_of(a[i]) : "the end";
    const std::string other = i < b.size() ? name_of(b[i]) : "the end";
    if (one != other || (i < a.size() && !(a[i].op == b[i].op))) {
      return "calls[" + std::to_string(i) + "] is " + one + " and " + other;
    }
  }
  return {};
}

// Returns a description of how the outputs of two traces differ, or an empty string if the outputs
// match.
std::string other_outputs(const Trace& a, const Trace& b) {
  const auto is_like = [](const TracedOutput& x, const TracedOutput& y) {
    return x.value == y.value && x.dtype == y.dtype && x.shape.size() == y.shape.size();
  };
  const bool same =
      std::equal(a.outputs.begin(), a.outputs.end(), b.outputs.begin(), b.outputs.end(), is_like);
  return same ? "" : "the function returns different tensors";
}

// Describes how two traces differ, ignoring their arguments. Returns an empty string if they match.
std::string other_trace(const Trace& a, const Trace& b) {
  const auto operators = other_operators(a.calls, b.calls);
  return operators.empty() ? other_outputs(a, b) : operators;
}

}  // namespace

std::string at_text(const std::vector<int64_t>& sizes, const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < sizes.size(); ++i) {
    text += (i == 0 ? "" : ", ") + names[i] + " = " + std::to_string(sizes[i]);
  }
  return text;
}

std::vector<Call> merge_traces(const std::vector<TraceAt>& corners,
                               const std::vector<int64_t>& smaller,
                               const std::vector<std::string>& names) {
  const auto& first = corners.front();
  for (const auto& corner : corners) {
    const auto other = other_trace(first.trace, corner.trace);
    TORCH_CHECK(
        other.empty(), record_error_prefix, "expected the same operators for all sizes, but ",
        other, " at ", at_text(first.sizes, names), " and ", at_text(corner.sizes, names),
        "; replace loops and branches that depend on sizes with operators on whole tensors");
  }
  const Merger merger(smaller);
  std::vector<Call> calls;
  for (size_t i = 0; i < first.trace.calls.size(); ++i) {
    auto& call = calls.emplace_back(first.trace.calls[i]);
    for (size_t j = 0; j < call.arguments.size(); ++j) {
      std::vector<const Argument*> all;
      for (const auto& corner : corners) all.push_back(&corner.trace.calls[i].arguments[j]);
      auto merged = merger.merge(all);
      TORCH_CHECK(merged.has_value(), record_error_prefix, place_of(i, call.op), ": argument '",
                  call.op.schema().arguments()[j].name(),
                  "': expected the same value for all sizes, or an integer computed from the "
                  "sizes, got different values or list lengths; compute the value with operators, "
                  "or pass the value as an input");
      call.arguments[j] = *std::move(merged);
    }
  }
  return calls;
}

std::string difference(const std::vector<Call>& calls, const TraceAt& other,
                       const std::vector<std::string>& names) {
  const auto operators = other_operators(calls, other.trace.calls);
  if (!operators.empty()) return operators + " at " + at_text(other.sizes, names);
  for (size_t i = 0; i < calls.size(); ++i) {
    for (size_t j = 0; j < calls[i].arguments.size(); ++j) {
      if (at_sizes(calls[i].arguments[j], other.sizes) == other.trace.calls[i].arguments[j])
        continue;
      return place_of(i, calls[i].op) + ": argument '" +
             calls[i].op.schema().arguments()[j].name() + "' at " + at_text(other.sizes, names) +
             ": expected a multilinear polynomial in the dynamic sizes with integer coefficients, "
             "got a "
             "different integer; " +
             "compute the integer with operators, or pass a tensor that contains the integer as an "
             "input";
    }
    if (calls[i].results != other.trace.calls[i].results) {
      return place_of(i, calls[i].op) + ": expected the same result count at " +
             at_text(other.sizes, names) + ", got a different count";
    }
  }
  return {};
}

std::string difference(const std::vector<Weight>& constants, const std::vector<Weight>& other) {
  bool same = constants.size() == other.size();
  for (size_t i = 0; same && i < constants.size(); ++i) {
    const auto& a = constants[i].tensor;
    const auto& b = other[i].tensor;
    same = constants[i].value == other[i].value && a.scalar_type() == b.scalar_type() &&
           a.sizes() == b.sizes() && at::equal(a, b);
  }
  return same ? ""
              : "expected host-created tensors to be the same for all inputs, got different "
                "tensors; create the tensors with operators, or pass the tensors as inputs";
}

}  // namespace sconce::program::detail
