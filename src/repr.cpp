#include "sconce/repr.hpp"

#include <torch/csrc/autograd/function.h>
#include <torch/types.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <vector>

#include "repr/extra_repr.hpp"
#include "repr/format.hpp"
#include "repr/module_name.hpp"
#include "sconce/nn/multihead_attention.hpp"

namespace sconce {

namespace {

// Python's default print options.
constexpr int shown_digits = 4;
constexpr int64_t threshold = 1000;
constexpr int64_t edge = 3;
constexpr int64_t line_width = 80;

// The format for floats, which is chosen based on all displayed values.
struct FloatStyle {
  bool whole = true;
  bool scientific = false;

  explicit FloatStyle(const std::vector<double>& values) {
    double least = std::numeric_limits<double>::infinity();
    double most = 0;
    for (const double value : values) {
      if (!std::isfinite(value) || value == 0) continue;
      least = std::min(least, std::abs(value));
      most = std::max(most, std::abs(value));
      whole = whole && value == std::ceil(value);
    }
    scientific = most > 0 && (most / least > 1000 || most > 1e8 || least < 1e-4);
  }

  std::string operator()(double value) const {
    if (scientific) return format(value, std::chars_format::scientific, shown_digits);
    if (!whole) return format(value, std::chars_format::fixed, shown_digits);
    return format(value, std::chars_format::fixed, 0) + (std::isfinite(value) ? "." : "");
  }
};

// Formats the elements as strings, in order and padded to the same width.
struct Cells {
  std::vector<std::string> texts = {};
  size_t width = 1;

  void pad() {
    for (auto& text : texts) text.insert(0, width - std::min(width, text.size()), ' ');
  }
};

template <typename T>
std::vector<T> read(const torch::Tensor& tensor) {
  const torch::Tensor there =
      tensor.to(torch::kCPU, c10::CppTypeToScalarType<T>::value).contiguous();
  const T* data = there.const_data_ptr<T>();
  return {data, data + there.numel()};
}

Cells make_cells(const torch::Tensor& tensor) {
  Cells cells;
  if (at::isFloatingType(tensor.scalar_type())) {
    const auto values = read<double>(tensor);
    const FloatStyle style(values);
    for (const double value : values) {
      cells.texts.push_back(style(value));
      // Strings for zeros and non-finite values may exceed this width. For example, a tensor of
      // zeros has a width of 1, but its cells look like "0.".
      if (std::isfinite(value) && value != 0) {
        cells.width = std::max(cells.width, cells.texts.back().size());
      }
    }
  } else if (tensor.scalar_type() == torch::kBool) {
    for (const int64_t value : read<int64_t>(tensor)) cells.texts.push_back(repr(value != 0));
  } else if (tensor.scalar_type() == torch::kUInt64) {
    for (const int64_t value : read<int64_t>(tensor.contiguous().view(torch::kInt64))) {
      cells.texts.push_back(std::to_string(static_cast<uint64_t>(value)));
    }
  } else {
    for (const int64_t value : read<int64_t>(tensor)) cells.texts.push_back(std::to_string(value));
  }
  if (!at::isFloatingType(tensor.scalar_type())) {
    for (const auto& text : cells.texts) cells.width = std::max(cells.width, text.size());
  }
  cells.pad();
  return cells;
}

// Writes the body of a tensor's text row by row.
class Body {
 public:
  explicit Body(torch::Tensor tensor) {
    // Only the edges of a large tensor's long dimensions are displayed, so only the edges are read.
    const bool summarize = tensor.numel() > threshold;
    for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
      cut_.push_back(summarize && tensor.size(dim) > 2 * edge);
      if (!cut_.back()) continue;
      tensor = at::cat({tensor.narrow(dim, 0, edge), tensor.narrow(dim, -edge, edge)}, dim);
    }
    sizes_ = tensor.sizes().vec();
    cells_ = make_cells(tensor);
  }

  std::string text(int64_t indent) { return cut_.empty() ? cells_.texts.front() : rows(0, indent); }

 private:
  std::string rows(size_t dim, int64_t indent) {
    std::vector<std::string> parts;
    const bool last = dim + 1 == cut_.size();
    for (int64_t i = 0; i < sizes_[dim]; ++i) {
      if (cut_[dim] && i == edge) parts.push_back(last ? " ..." : "...");
      parts.push_back(last ? std::move(cells_.texts[next_++]) : rows(dim + 1, indent + 1));
    }
    const std::string margin(static_cast<size_t>(indent) + 1, ' ');
    const std::string new_line = "," + std::string(last ? 1 : cut_.size() - dim - 1, '\n') + margin;
    const auto cell = static_cast<int64_t>(cells_.width) + 2;
    const auto per_line =
        last ? static_cast<size_t>(std::max<int64_t>(1, (line_width - indent) / cell)) : 1;
    std::string text = "[";
    for (size_t i = 0; i < parts.size(); ++i) {
      if (i > 0) text += i % per_line == 0 ? new_line : ", ";
      text += parts[i];
    }
    return text + "]";
  }

  Cells cells_ = {};
  std::vector<bool> cut_ = {};
  std::vector<int64_t> sizes_ = {};
  size_t next_ = 0;
};

// Returns Python's name for the function that created the tensor, or an empty string.
std::string grad_fn_name(const torch::Tensor& tensor) {
  try {
    const auto& function = tensor.grad_fn();
    if (!function) return {};
    const std::string name = function->name();
    const auto colons = name.rfind("::");
    return colons == std::string::npos ? name : name.substr(colons + 2);
  } catch (const c10::Error&) {
    return "Invalid";  // a view created without gradients and later changed in place
  }
}

void check_supported(const torch::Tensor& tensor) {
  TORCH_CHECK(tensor.defined(), "sconce::repr: expected a defined tensor, got an undefined one");
  TORCH_CHECK(tensor.layout() == torch::kStrided && !tensor.is_nested(),
              "sconce::repr: expected a dense tensor, got ",
              tensor.is_nested() ? "a nested one" : c10::str("one of layout ", tensor.layout()));
  const auto dtype = tensor.scalar_type();
  const bool is_float = dtype == torch::kFloat || dtype == torch::kDouble ||
                        dtype == torch::kHalf || dtype == torch::kBFloat16;
  TORCH_CHECK(is_float || dtype == torch::kBool || at::isIntegralType(dtype, false) ||
                  dtype == torch::kUInt16 || dtype == torch::kUInt32 || dtype == torch::kUInt64,
              "sconce::repr: expected a tensor of bool, integers, float16, bfloat16, float32, or "
              "float64, got a tensor of ",
              dtype);
}

// Indents every line except the first line and empty lines.
std::string indented(const std::string& text) {
  std::string moved;
  for (size_t i = 0; i < text.size(); ++i) {
    moved += text[i];
    if (text[i] == '\n' && i + 1 < text.size() && text[i + 1] != '\n') moved += "  ";
  }
  return moved;
}

// Returns the lines of text that describe the child modules. Consecutive ModuleList children that
// print the same text share a line.
std::vector<std::string> child_lines(const torch::nn::Module& module) {
  const bool merge = dynamic_cast<const torch::nn::ModuleListImpl*>(&module) != nullptr;
  // Python's attention module uses a Linear subclass with a different name.
  const bool renames = dynamic_cast<const torch::nn::MultiheadAttentionImpl*>(&module) != nullptr ||
                       dynamic_cast<const nn::MultiheadAttentionImpl*>(&module) != nullptr;
  std::vector<std::string> lines;
  const auto children = module.named_children();
  for (size_t first = 0, end = 0; first < children.size(); first = end) {
    const auto text_of = [&](size_t i) {
      return children[i].value() ? repr(*children[i].value()) : "None";
    };
    const std::string text = text_of(first);
    for (end = first + 1; merge && end < children.size() && text_of(end) == text;) ++end;
    const std::string& key = children[first].key();
    const std::string head = end == first + 1
                                 ? "(" + key + "): "
                                 : c10::str("(", key, "-", end - 1, "): ", end - first, " x ");
    lines.push_back(head + (renames ? "NonDynamicallyQuantizable" : "") + indented(text));
  }
  return lines;
}

}  // namespace

std::string repr(const torch::Tensor& tensor) {
  check_supported(tensor);
  const at::NoGradGuard no_grad;
  std::vector<std::string> suffixes;
  if (!tensor.is_cpu()) suffixes.push_back("device='" + tensor.device().str() + "'");
  const bool shows_none = tensor.is_meta() || tensor.numel() == 0;
  if (tensor.is_meta() || (shows_none && tensor.dim() != 1)) {
    suffixes.push_back("size=" + extra_repr::text(tensor.sizes()));
  }
  // The elements already indicate the types int64 and bool, so these types are printed only for
  // empty tensors.
  const auto dtype = tensor.scalar_type();
  const bool evident = !shows_none && (dtype == torch::kInt64 || dtype == torch::kBool);
  if (dtype != torch::get_default_dtype_as_scalartype() && !evident) {
    suffixes.push_back("dtype=" + repr(dtype));
  }
  if (const auto name = grad_fn_name(tensor); !name.empty()) {
    suffixes.push_back("grad_fn=<" + name + ">");
  } else if (tensor.requires_grad()) {
    suffixes.push_back("requires_grad=True");
  }

  std::string text = "tensor(";
  const auto indent = static_cast<int64_t>(text.size());
  if (tensor.is_meta()) {
    text += "...";
  } else {
    text += shows_none ? "[]" : Body(tensor.detach().resolve_neg()).text(indent);
  }
  // As in Python, the column starts at the line's length plus one, or plus two on the first line.
  const auto line_start = text.rfind('\n');
  auto column = static_cast<int64_t>(text.size()) + 1 -
                (line_start == std::string::npos ? -1 : static_cast<int64_t>(line_start));
  for (const auto& suffix : suffixes) {
    const auto length = static_cast<int64_t>(suffix.size());
    const bool fits = column + length + 2 <= line_width;
    text += (fits ? ", " : ",\n" + std::string(static_cast<size_t>(indent), ' ')) + suffix;
    column = (fits ? column + 2 : indent) + length;
  }
  return text + ")";
}

std::string repr(torch::Device device) {
  const std::string index = device.has_index() ? c10::str(", index=", int{device.index()}) : "";
  return "device(type='" + c10::DeviceTypeName(device.type(), /*lower_case=*/true) + "'" + index +
         ")";
}

std::string repr(torch::ScalarType dtype) {
  return "torch." + std::string(c10::getDtypeNames(dtype).first);
}

std::string repr(c10::IntArrayRef sizes) {
  return c10::str("torch.Size([", c10::Join(", ", sizes), "])");
}

std::string repr(bool value) {
  return value ? "True" : "False";
}

std::string repr(double value) {
  if (std::isnan(value)) return "nan";
  const double size = std::abs(value);
  const bool fixed = size == 0 || !std::isfinite(value) || (size >= 1e-4 && size < 1e16);
  std::array<char, 40> text;
  const auto style = fixed ? std::chars_format::fixed : std::chars_format::scientific;
  const auto end = std::to_chars(text.begin(), text.end(), value, style).ptr;
  const bool needs_point =
      fixed && std::isfinite(value) && std::find(text.begin(), end, '.') == end;
  return std::string(text.begin(), end) + (needs_point ? ".0" : "");
}

std::string repr(const torch::nn::Module& module) {
  TORCH_CHECK(dynamic_cast<const torch::nn::ParameterListImpl*>(&module) == nullptr &&
                  dynamic_cast<const torch::nn::ParameterDictImpl*>(&module) == nullptr,
              "sconce::repr: expected a module other than ParameterList and ParameterDict, got ",
              module.name());
  const auto* own = dynamic_cast<const ReprOverride*>(&module);
  const auto own_extra = own != nullptr ? own->extra_repr() : std::nullopt;
  const std::string name = module_name(module);
  const std::string extra = own_extra ? *own_extra : extra_repr::for_module(module);

  const auto children = child_lines(module);
  if (children.empty() && extra.find('\n') == std::string::npos) return name + "(" + extra + ")";
  std::string text = name + "(";
  if (!extra.empty()) {
    text += "\n  ";
    for (const char letter : extra) text += letter == '\n' ? "\n  " : std::string(1, letter);
  }
  for (const auto& line : children) text += "\n  " + line;
  return text + "\n)";
}

}  // namespace sconce
