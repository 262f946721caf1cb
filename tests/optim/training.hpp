#pragma once

#include <torch/version.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <iomanip>
#include <map>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "sconce/io/torch_file.hpp"
#include "sconce/optim/optimizer.hpp"
#include "support/ask_python.hpp"
#include "support/run_program.hpp"
#include "support/temp_dir.hpp"

// Performs one small training run with sconce optimizers. tests/reference/optim.py does the same
// with Python optimizers.
namespace sconce::test {

// The dtypes of the parameters that the optimizers train.
inline const std::vector<torch::ScalarType> dtypes = {
    torch::kFloat, torch::kDouble, torch::kBFloat16, torch::kHalf, torch::kComplexFloat};

constexpr int steps = 20;

/// Returns numbers that are computed the same way in Python.
inline torch::Tensor numbers(int64_t seed, torch::IntArrayRef sizes, torch::ScalarType dtype) {
  if (c10::isComplexType(dtype)) {
    return torch::complex(numbers(seed, sizes, torch::kFloat),
                          numbers(seed + 17, sizes, torch::kFloat));
  }
  const auto whole =
      (torch::arange(c10::multiply_integers(sizes)) * 7919 + seed * 104729).remainder(2003) - 1001;
  return (whole.to(torch::kDouble) / 1024).to(dtype).reshape(sizes);
}

/// Returns the parameters for two groups. Parameter 3 never has a gradient, and parameter 5 has a
/// gradient only in some steps.
inline std::vector<torch::Tensor> make_parameters(torch::ScalarType dtype) {
  const std::vector<std::vector<int64_t>> sizes = {{3, 5}, {67}, {}, {4}, {2, 3, 4}, {33}};
  std::vector<torch::Tensor> parameters;
  for (size_t i = 0; i < sizes.size(); ++i) {
    parameters.push_back(numbers(1000 + static_cast<int64_t>(i), sizes[i], dtype).requires_grad_());
  }
  return parameters;
}

/// Sets the gradients for a step. Sparse gradients contain each row twice.
inline void set_gradients(std::vector<torch::Tensor>& parameters, int step, bool sparse = false) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    auto& p = parameters[i];
    p.mutable_grad() = torch::Tensor();
    if (i == 3 || (i == 5 && step % 3 == 1)) continue;
    const auto grad = numbers(100 * step + static_cast<int64_t>(i), p.sizes(), p.scalar_type());
    if (sparse && p.dim() > 0) {
      const auto rows = torch::arange(step % 2, p.size(0), 2).repeat(2);
      p.mutable_grad() =
          torch::sparse_coo_tensor(rows.unsqueeze(0), grad.index_select(0, rows), p.sizes());
    } else {
      p.mutable_grad() = grad;
    }
  }
}

/// Returns a learning rate with the same type as the parameters.
inline torch::Tensor lr_tensor(double lr, torch::ScalarType dtype) {
  return torch::tensor(lr, dtype == torch::kDouble ? torch::kDouble : torch::kFloat);
}

/// A training run and its description for the Python script.
struct Case {
  std::string name = {};       ///< without spaces
  std::string optimizer = {};  ///< the Python class
  torch::ScalarType dtype = torch::kFloat;
  optim::ExtraOptions extra = {};
  std::string arguments = {};  ///< in Python, without the kernels
  std::string of_second = {};  ///< in Python, for the second group
  std::string midway = {};     ///< what happens halfway through: "", "archive", "dict", "swap"
  bool sparse = false;         ///< whether all but the zero-dimensional gradients are sparse

  /// Creates the optimizer for the two groups of parameters.
  std::function<std::unique_ptr<optim::Optimizer>(const std::vector<torch::Tensor>&,
                                                  const optim::ExtraOptions&)>
      make = {};
};

/// Returns some of the 8 bit combinations: all of them for float32, and two opposite ones for other
/// types.
inline std::vector<unsigned> rows_of(torch::ScalarType dtype) {
  if (dtype == torch::kFloat) return {0, 1, 2, 3, 4, 5, 6, 7};
  const auto place = std::find(dtypes.begin(), dtypes.end(), dtype) - dtypes.begin();
  const auto row = static_cast<unsigned>(place - 1);
  return {row, 7 - row};
}

/// Returns the parameters in two groups. The second group has separate options.
template <class Options>
std::vector<torch::optim::OptimizerParamGroup> two_groups(const std::vector<torch::Tensor>& p,
                                                          const Options& second) {
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(std::vector<torch::Tensor>(p.begin(), p.begin() + 4));
  groups.emplace_back(std::vector<torch::Tensor>(p.begin() + 4, p.end()),
                      std::make_unique<Options>(second));
  return groups;
}

/// Returns a case `make(dtype, kernels, row)` for every combination of type, kernels, and row. The
/// cases differ in what happens halfway through the run.
template <class Make>
std::vector<Case> cases_of_rows(const std::string& name, const std::vector<optim::Kernels>& all,
                                const Make& make) {
  static const std::array midway = {"", "archive", "dict", "swap"};
  std::vector<Case> cases;
  for (const auto kernels : all) {
    for (const auto dtype : dtypes) {
      if (kernels == optim::Kernels::fused && c10::isComplexType(dtype)) continue;
      for (const unsigned row : rows_of(dtype)) {
        cases.push_back(make(dtype, kernels, row));
        cases.back().midway = midway[(cases.size() + cases.size() / 8) % 4];
        cases.back().name = name + std::to_string(cases.size());
      }
    }
  }
  return cases;
}

/// Checks that the optimizer rejects each set of options with the corresponding message, both as
/// defaults and in a second group.
template <class Optimizer, class Options>
void check_refused(const std::string& name, const Options& defaults,
                   const std::vector<std::pair<Options, std::string>>& wrong) {
  using Catch::Matchers::ContainsSubstring;
  const auto p = [] { return torch::ones({2}).requires_grad_(); };
  for (const auto& [options, message] : wrong) {
    CHECK_THROWS_WITH(Optimizer({p()}, options),
                      ContainsSubstring(name + ": ") && ContainsSubstring(message));
    std::vector<torch::optim::OptimizerParamGroup> groups;
    groups.emplace_back(std::vector<torch::Tensor>{p()});
    groups.emplace_back(std::vector<torch::Tensor>{p()}, std::make_unique<Options>(options));
    CHECK_THROWS_WITH(Optimizer(groups, defaults), ContainsSubstring(message));
  }
}

// These functions return the test cases for Adagrad, NAdam, and RMSprop. The cases share one Python
// process, because starting Python takes most of the time.
std::vector<Case> adagrad_cases();
std::vector<Case> nadam_cases();
std::vector<Case> rmsprop_cases();

/// The tensors and options at the end of a training run, keyed by their names in optim.py.
struct Result {
  std::map<std::string, torch::Tensor> tensors = {};
  std::map<std::string, std::string> options = {};
};

inline std::string option_text(const c10::IValue& value) {
  if (value.isNone()) return "None";
  if (value.isBool()) return value.toBool() ? "True" : "False";
  if (value.isTuple()) {
    const auto& pair = value.toTupleRef().elements();
    return option_text(pair[0]) + " " + option_text(pair[1]);
  }
  std::ostringstream text;
  if (value.isList()) {  // the parameter numbers
    for (const auto& number : value.toListRef()) {
      text << (text.tellp() > 0 ? ", " : "[") << number.toInt();
    }
    text << "]";
    return text.str();
  }
  text << std::setprecision(17)
       << (value.isTensor() ? value.toTensor().item<double>() : value.toDouble());
  return text.str();
}

inline Result result_of(const optim::Optimizer& optimizer,
                        const std::vector<torch::Tensor>& parameters) {
  Result result;
  for (size_t i = 0; i < parameters.size(); ++i) {
    result.tensors["parameter." + std::to_string(i)] = parameters[i].detach();
  }
  const auto all = optimizer.state_dict().toGenericDict();
  for (const auto& state : all.at("state").toGenericDict()) {
    for (const auto& entry : state.value().toGenericDict()) {
      result.tensors["state." + std::to_string(state.key().toInt()) + "." +
                     entry.key().toStringRef()] = entry.value().toTensor();
    }
  }
  int index = 0;
  for (const auto& group : all.at("param_groups").toListRef()) {
    for (const auto& entry : group.toGenericDict()) {
      if (entry.key().toStringRef() == "fused") continue;  // not all Python optimizers have it
      result.options["group." + std::to_string(index) + "." + entry.key().toStringRef()] =
          option_text(entry.value());
    }
    ++index;
  }
  return result;
}

inline bool same_bits(const torch::Tensor& a, const torch::Tensor& b) {
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() &&
         std::memcmp(a.contiguous().data_ptr(), b.contiguous().data_ptr(), a.nbytes()) == 0;
}

/// Returns copies of the tensors for a later comparison.
inline std::map<std::string, torch::Tensor> copies(const Result& result) {
  auto tensors = result.tensors;
  for (auto& entry : tensors) entry.second = entry.second.clone();
  return tensors;
}

/// Returns whether both contain the same names and bitwise identical tensors.
inline bool same_bits(const std::map<std::string, torch::Tensor>& a,
                      const std::map<std::string, torch::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && same_bits(x.second, y.second);
  });
}

/// Replaces the optimizer with another one that takes over its state.
inline void change_optimizer(const Case& c, std::unique_ptr<optim::Optimizer>& optimizer,
                             const std::vector<torch::Tensor>& parameters) {
  auto other = c.make(parameters, c.extra);
  if (c.midway == "archive") {
    std::stringstream stream;
    torch::save(*optimizer, stream);
    torch::load(*other, stream);
  } else {
    other->load_state_dict(optimizer->state_dict());
  }
  optimizer = std::move(other);
}

/// Writes the file from which optim.py resumes.
inline void write_half(const std::filesystem::path& file, const optim::Optimizer& optimizer,
                       const std::vector<torch::Tensor>& parameters) {
  c10::impl::GenericDict half(c10::StringType::get(), c10::AnyType::get());
  half.insert("optimizer", optimizer.state_dict());
  half.insert("parameters", c10::List<torch::Tensor>(parameters));
  io::save_torch(file, half);
}

/// Runs the training steps. If Python runs the second half, its files are in `folder`.
inline Result train(const Case& c, const TempDir& folder) {
  auto parameters = make_parameters(c.dtype);
  auto optimizer = c.make(parameters, c.extra);
  for (int step = 0; step < steps; ++step) {
    if (step == 5) {
      auto groups = std::span(optimizer->param_groups());
      if (c.extra.lr) {  // the learning rate of the first group
        c.extra.lr->mul_(0.5);
        groups = groups.subspan(1);
      }
      for (auto& group : groups) group.options().set_lr(group.options().get_lr() * 0.5);
    }
    if (step == steps / 2 && (c.midway == "archive" || c.midway == "dict")) {
      change_optimizer(c, optimizer, parameters);
    }
    if (step == steps / 2 && c.midway == "swap") {
      write_half(folder.path() / (c.name + ".pt"), *optimizer, parameters);
    }
    set_gradients(parameters, step, c.sparse);
    optimizer->step();
  }
  return result_of(*optimizer, parameters);
}

inline std::string python_line(const Case& c) {
  static const std::map<torch::ScalarType, std::string> names = {
      {torch::kFloat, "float32"},
      {torch::kDouble, "float64"},
      {torch::kHalf, "float16"},
      {torch::kBFloat16, "bfloat16"},
      {torch::kComplexFloat, "complex64"}};
  static const std::map<optim::Kernels, std::string> modes = {
      {optim::Kernels::fused, "fused=True"},
      {optim::Kernels::foreach, "foreach=True"},
      {optim::Kernels::for_loop, "foreach=False"}};
  return c.name + " " + c.optimizer + " " + names.at(c.dtype) + (c.extra.lr ? " 1" : " 0") +
         (c.sparse ? " 1 |" : " 0 |") + c.arguments + (c.arguments.empty() ? "" : ", ") +
         modes.at(c.extra.kernels) + ", maximize=" + (c.extra.maximize ? "True" : "False") + "|" +
         c.of_second;
}

inline torch::Tensor from_hex(const std::string& hex, const torch::Tensor& like) {
  auto tensor = torch::empty_like(like, torch::MemoryFormat::Contiguous);
  REQUIRE(hex.size() == 2 * tensor.nbytes());
  auto* bytes = static_cast<uint8_t*>(tensor.data_ptr());
  for (size_t i = 0; i < tensor.nbytes(); ++i) {
    bytes[i] = static_cast<uint8_t>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
  }
  return tensor;
}

/// Returns whether the two tensors are as close as PyTorch's Python tests require for this type.
inline bool close(const torch::Tensor& a, const torch::Tensor& b) {
  static const std::map<torch::ScalarType, std::pair<double, double>> tolerances = {
      {torch::kDouble, {1e-7, 1e-7}},
      {torch::kHalf, {1e-3, 1e-5}},
      {torch::kBFloat16, {1.6e-2, 1e-5}}};
  const auto found = tolerances.find(a.scalar_type());
  const auto [rtol, atol] = found == tolerances.end() ? std::pair(1.3e-6, 1e-5) : found->second;
  return a.sizes() == b.sizes() && torch::allclose(a, b, rtol, atol);
}

/// Runs the cases in one Python process, which reads the files that `train` left in the folder.
/// Splits each line of the results at the first space and passes it to `check(case name, key,
/// rest)`.
inline void ask_python(
    const TempDir& folder, const std::vector<Case>& cases,
    const std::function<void(const std::string&, const std::string&, const std::string&)>& check) {
  std::string lines;
  for (const auto& c : cases) lines += python_line(c) + "\n";
  folder.write("cases", lines);
  const auto ran = run_program(python_command() + "'" SCONCE_TESTS_DIR "/reference/optim.py' " +
                               folder.path().string());
  INFO(ran.err);
  REQUIRE(ran.exit_code == 0);
  std::ifstream results(folder.path() / "results");
  std::string name;
  for (std::string line; std::getline(results, line);) {
    const auto blank = line.find(' ');
    if (line.starts_with("= ")) {
      name = line.substr(2);
    } else {
      check(name, line.substr(0, blank), line.substr(blank + 1));
    }
  }
}

/// Returns whether the LibTorch kernel may produce different bits in C++ and in Python. With
/// LibTorch 2.11, the fused SGD kernel does so in 16-bit momentum buffers whose length is not a
/// multiple of the vector length, even though both languages call it with equal parameters and
/// gradients, and the resulting parameters are equal. LibTorch 2.15 does not have this difference.
inline bool is_unsure(const Case& c, const std::string& key) {
  const bool is_16_bits = c.dtype == torch::kHalf || c.dtype == torch::kBFloat16;
  return TORCH_VERSION_MINOR < 15 && c.extra.kernels == optim::Kernels::fused && is_16_bits &&
         key.ends_with("momentum_buffer");
}

/// Trains each case here and in Python. Compares the results bit for bit or, for the for-loop
/// kernels with LibTorch before 2.15, within the tolerances of PyTorch's Python tests. Returns the
/// number of tensors compared.
inline int compare_with_python(const std::vector<Case>& cases) {
  const TempDir folder;
  std::map<std::string, Result> ours;
  std::map<std::string, const Case*> by_name;
  for (const auto& c : cases) {
    INFO(python_line(c));
    by_name[c.name] = &c;
    ours[c.name] = train(c, folder);
  }
  int compared = 0;
  ask_python(folder, cases, [&](const auto& name, const auto& key, const auto& rest) {
    INFO(python_line(*by_name.at(name)) << " " << key);
    auto& result = ours.at(name);
    if (key.starts_with("group.")) {
      if (!key.ends_with(".foreach") && !key.ends_with(".fused")) {
        CHECK(result.options[key] == rest);
      }
      result.options.erase(key);
      return;
    }
    REQUIRE(result.tensors.contains(key));
    const auto expected = from_hex(rest, result.tensors[key]);
    if (is_unsure(*by_name.at(name), key)) {
      CHECK(result.tensors[key].sizes() == expected.sizes());
    } else if (by_name.at(name)->extra.kernels == optim::Kernels::for_loop &&
               TORCH_VERSION_MINOR < 15) {
      CHECK(close(result.tensors[key], expected));
    } else {
      CHECK(same_bits(result.tensors[key], expected));
    }
    result.tensors.erase(key);
    ++compared;
  });
  for (const auto& [name, left] : ours) {
    INFO(name);
    CHECK(left.tensors.empty());
    CHECK(left.options.empty());
  }
  return compared;
}

}  // namespace sconce::test
