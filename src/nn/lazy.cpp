#include "sconce/nn/lazy.hpp"

#include <c10/core/InferenceMode.h>
#include <torch/nn/init.h>
#include <torch/serialize/archive.h>

#include <cmath>
#include <typeinfo>
#include <variant>

#include "nn/keep_generator.hpp"
#include "sconce/nn/lazy_conv_transpose.hpp"

namespace sconce::nn {

namespace {

using Shape = std::vector<int64_t>;
using torch::nn::BatchNormOptions;
using torch::nn::LinearOptions;
template <size_t D>
using ConvOptions = torch::nn::detail::ConvNdOptions<D>;

// Returns the option that stores the number of input features, which a lazy layer infers. The value
// is 0 while the layer is uninitialized.
template <class Options>
auto& features_in(Options& options) {
  if constexpr (requires { options.in_features(); }) {
    return options.in_features();
  } else if constexpr (requires { options.in_channels(); }) {
    return options.in_channels();
  } else {
    return options.num_features();
  }
}

// Returns options for constructing the real layer before its size is known. These options make the
// layer small but preserve the options from which the constructor computes values only once, such
// as convolution padding.
LinearOptions blank(const LinearOptions& options, const KeepGenerator& = {}) {
  TORCH_CHECK(options.out_features() >= 0,
              "sconce::nn::LazyLinear: expected out_features to be at least 0, got ",
              options.out_features());
  return LinearOptions(1, 0).bias(false);
}

// The options for a regular or transposed convolution.
template <size_t D>
struct BlankConv {
  template <class Options>
  Options as() const {
    return Options(1, 1, options.kernel_size())
        .stride(options.stride())
        .dilation(options.dilation())
        .bias(false);
  }
  operator torch::nn::ConvOptions<D>() const {
    return as<torch::nn::ConvOptions<D>>().padding(options.padding());
  }
  operator torch::nn::ConvTransposeOptions<D>() const {
    return as<torch::nn::ConvTransposeOptions<D>>();
  }

  const ConvOptions<D>& options;
};

template <size_t D>
BlankConv<D> blank(const ConvOptions<D>& options, const KeepGenerator& = {}) {
  const char* name =
      options.transposed() ? "sconce::nn::LazyConvTranspose" : "sconce::nn::LazyConv";
  TORCH_CHECK(options.out_channels() > 0 && options.groups() > 0 &&
                  options.out_channels() % options.groups() == 0,
              name, D,
              "d: expected positive out_channels divisible by positive groups, got out_channels ",
              options.out_channels(), " and groups ", options.groups());
  TORCH_CHECK(!options.transposed() ||
                  std::holds_alternative<torch::enumtype::kZeros>(options.padding_mode()),
              name, D, "d: expected padding_mode kZeros, got a different mode");
  return {options};
}

BatchNormOptions blank(const BatchNormOptions& options, const KeepGenerator& = {}) {
  return BatchNormOptions(options).num_features(0);
}

// Checks the dimensions of an input, with the same error messages as the real layers, and returns
// the number of input features.
int64_t features_of(const LinearOptions&, const torch::Tensor& input) {
  TORCH_CHECK(input.dim() > 0,
              "both arguments to matmul need to be at least 1D, but they are 0D and 2D");
  return input.size(-1);
}

template <size_t D>
int64_t features_of(const ConvOptions<D>& options, const torch::Tensor& input) {
  constexpr auto dim = static_cast<int64_t>(D);
  TORCH_CHECK(input.dim() == dim + 1 || input.dim() == dim + 2, "Expected ", dim + 1,
              "D (unbatched) or ", dim + 2, "D (batched) input to conv",
              options.transposed() ? "_transpose" : "", dim,
              "d, but got input of size: ", input.sizes());
  const int64_t channels = input.size(-dim - 1);
  TORCH_CHECK(channels % options.groups() == 0, "in_channels must be divisible by groups, but ",
              channels, " is not by ", options.groups());
  return channels;
}

int64_t features_of(const BatchNormOptions&, const torch::Tensor& input) {
  return input.size(1);
}

Shape weight_shape(const LinearOptions& options) {
  return {options.out_features(), options.in_features()};
}

template <size_t D>
Shape weight_shape(const ConvOptions<D>& options) {
  const int64_t in = options.in_channels(), out = options.out_channels();
  Shape shape =
      options.transposed() ? Shape{in, out / options.groups()} : Shape{out, in / options.groups()};
  shape.insert(shape.end(), options.kernel_size()->begin(), options.kernel_size()->end());
  return shape;
}

Shape weight_shape(const BatchNormOptions& options) {
  return {options.num_features()};
}

template <class Options>
Shape shape_of(const std::string& name, Options options, int64_t features) {
  features_in(options) = features;
  Shape shape = weight_shape(options);
  if (name == "weight") return shape;
  if constexpr (requires { options.out_channels(); }) return {options.out_channels()};
  return {shape.front()};  // one entry per output
}

// Infers a layer's number of input features from one of its tensors, or returns 0 if the tensor is
// incompatible with the layer.
template <class Options>
int64_t features_of(const torch::Tensor& tensor, const Options& options) {
  const auto dim = static_cast<int64_t>(weight_shape(options).size());
  if (!tensor.defined() || tensor.dim() != dim) return 0;
  if constexpr (requires { options.groups(); }) {
    if (!options.transposed()) return tensor.size(1) * options.groups();
    return tensor.size(0) % options.groups() == 0 ? tensor.size(0) : 0;
  }
  return tensor.size(dim - 1);  // the last of (out, in), or the only dimension
}

// Draws the same random numbers, in the same order, as the constructors of Linear and the
// convolutions.
template <class Options>
void initialize(const Options&, StateDict& tensors) {
  torch::nn::init::kaiming_uniform_(tensors["weight"], std::sqrt(5));
  if (!tensors.contains("bias")) return;
  const auto fan_in =
      std::get<0>(torch::nn::init::_calculate_fan_in_and_fan_out(tensors["weight"]));
  const double bound = 1 / std::sqrt(fan_in);
  torch::nn::init::uniform_(tensors["bias"], -bound, bound);
}

void initialize(const BatchNormOptions&, StateDict& tensors) {
  for (auto& item : tensors) {
    item.value().fill_(item.key() == "weight" || item.key() == "running_var" ? 1 : 0);
  }
}

// Returns the tensors whose shapes are not known yet.
StateDict placeholders(const torch::nn::Module& module) {
  StateDict found;
  for (const auto& all : {module.named_parameters(false), module.named_buffers(false)}) {
    for (const auto& item : all) {
      if (item.value().defined() && item.value().sizes() == at::IntArrayRef{0}) {
        found.insert(item.key(), item.value());
      }
    }
  }
  return found;
}

bool is_uninitialized_layer(const torch::nn::Module& module) {
  const auto* layer = dynamic_cast<const LazyLayer*>(&module);
  return layer != nullptr && !layer->is_initialized();
}

[[noreturn]] void refuse(const std::string& caller, const std::string& path,
                         const torch::nn::Module& layer) {
  TORCH_CHECK(false, caller, ": expected an initialized layer, but ",
              path.empty() ? "" : "'" + path + "', ", layer,
              " is uninitialized; to initialize the layer, run forward once or load a full state");
}

// Returns the options shared by both kinds of lazy convolutions.
template <size_t D, class Options>
ConvOptions<D> conv_options(const Options& options) {
  return ConvOptions<D>(0, options.out_channels(), options.kernel_size())
      .stride(options.stride())
      .padding(options.padding())
      .dilation(options.dilation())
      .groups(options.groups())
      .bias(options.bias())
      .padding_mode(options.padding_mode());
}

}  // namespace

LazyLinearOptions::operator LinearOptions() const {
  return LinearOptions(0, out_features_).bias(bias_);
}

template <size_t D>
LazyConvOptions<D>::operator ConvOptions<D>() const {
  return conv_options<D>(*this);
}

template <size_t D>
LazyConvTransposeOptions<D>::operator ConvOptions<D>() const {
  return conv_options<D>(*this).transposed(true).output_padding(output_padding_);
}

LazyBatchNormOptions::operator BatchNormOptions() const {
  return BatchNormOptions(0).eps(eps_).momentum(momentum_).affine(affine_).track_running_stats(
      track_running_stats_);
}

// The KeepGenerator is a temporary in this initializer, so it outlives Base's constructor.
template <class Derived, class Base, class LazyOptions>
LazyModule<Derived, Base, LazyOptions>::LazyModule(const Options& real_options)
    : Base(blank(real_options)) {
  this->options = real_options;
  if constexpr (requires { real_options.bias(); }) {  // BatchNorm does not need placeholders
    this->parameters_.clear();
    this->weight = this->register_parameter("weight", torch::empty({0}));
    this->bias = real_options.bias() ? this->register_parameter("bias", torch::empty({0}))
                                     : this->register_parameter("bias", {}, false);
  }
}

template <class Derived, class Base, class LazyOptions>
torch::Tensor LazyModule<Derived, Base, LazyOptions>::forward(const torch::Tensor& input) {
  initialize_for(input);
  return Base::forward(input);
}

template <class Derived, class Base, class LazyOptions>
void LazyModule<Derived, Base, LazyOptions>::initialize_for(const torch::Tensor& input) {
  if (features_in(this->options) != 0) return;
  if constexpr (requires { this->_check_input_dim(input); }) this->_check_input_dim(input);
  materialize(features_of(this->options, input), nullptr);
}

template <class Derived, class Base, class LazyOptions>
void LazyModule<Derived, Base, LazyOptions>::materialize(int64_t features, const FindTensor& find) {
  TORCH_CHECK(features > 0, "sconce::nn::", layer_name(),
              ": expected an input with at least one feature, got none");
  const c10::InferenceMode trainable(false);  // also enables grad mode, so it comes first
  const torch::NoGradGuard no_grad;
  const StateDict empty = placeholders(*this);
  StateDict real;
  for (const auto& item : empty) {
    const Shape shape = shape_of(item.key(), this->options, features);
    auto& tensor = real.insert(item.key(), torch::empty(shape, item.value().options()));
    if (find) tensor.copy_(find(item.key()));
  }
  if (!find) initialize(this->options, real);
  for (const auto& item : empty) item.value().set_data(real[item.key()]);
  features_in(this->options) = features;
}

template <class Derived, class Base, class LazyOptions>
bool LazyModule<Derived, Base, LazyOptions>::materialize_from(const FindTensor& find) {
  if (is_initialized()) return true;
  const StateDict empty = placeholders(*this);
  const int64_t features = features_of(find(empty.front().key()), this->options);
  if (features == 0) return false;
  for (const auto& item : empty) {
    const auto tensor = find(item.key());
    if (!tensor.defined()) return false;
    if (tensor.sizes() != shape_of(item.key(), this->options, features)) return false;
  }
  materialize(features, find);
  return true;
}

template <class Derived, class Base, class LazyOptions>
void LazyModule<Derived, Base, LazyOptions>::reset_parameters() {
  if (features_in(this->options) != 0) Base::reset_parameters();
}

template <class Derived, class Base, class LazyOptions>
std::shared_ptr<torch::nn::Module> LazyModule<Derived, Base, LazyOptions>::clone(
    const std::optional<torch::Device>& device) const {
  const torch::NoGradGuard no_grad;
  const std::shared_ptr<Derived> copy(new Derived(this->options));
  const auto fill = [&](StateDict to, const StateDict& from) {
    for (const auto& item : from) {
      const auto& tensor = item.value();
      if (!tensor.defined()) continue;
      to[item.key()].set_data(device && *device != tensor.device() ? tensor.to(*device)
                                                                   : tensor.clone());
      to[item.key()].set_requires_grad(tensor.requires_grad());
    }
  };
  fill(copy->named_parameters(false), this->named_parameters(false));
  fill(copy->named_buffers(false), this->named_buffers(false));
  copy->train(this->is_training());
  return copy;
}

template <class Derived, class Base, class LazyOptions>
void LazyModule<Derived, Base, LazyOptions>::save(torch::serialize::OutputArchive& archive) const {
  if (!is_initialized()) refuse("sconce::nn::" + layer_name() + "::save", "", *this);
  Base::save(archive);
}

template <class Derived, class Base, class LazyOptions>
void LazyModule<Derived, Base, LazyOptions>::load(torch::serialize::InputArchive& archive) {
  const auto find = [&](const std::string& name) {
    torch::Tensor tensor;
    archive.try_read(name, tensor, /*is_buffer=*/name.starts_with("running_"));
    return tensor;
  };
  TORCH_CHECK(materialize_from(find), "sconce::nn::", layer_name(),
              "::load: expected an archive with tensors that match ", *this,
              ", got an archive with missing tensors or different shapes");
  Base::load(archive);
}

template <class Derived, class Base, class LazyOptions>
void LazyModule<Derived, Base, LazyOptions>::pretty_print(std::ostream& stream) const {
  if (features_in(this->options) != 0) return Base::pretty_print(stream);
  stream << repr(*this);
}

template <class Derived, class Base, class LazyOptions>
bool LazyModule<Derived, Base, LazyOptions>::is_initialized() const {
  return features_in(this->options) != 0 || placeholders(*this).is_empty();
}

template <class Derived, class Base, class LazyOptions>
std::string LazyModule<Derived, Base, LazyOptions>::layer_name() const {
  std::string name = c10::demangle(typeid(Base).name());  // torch::nn::LinearImpl
  name = name.substr(name.rfind(':') + 1);
  name.resize(name.size() - std::string("Impl").size());
  return (features_in(this->options) == 0 ? "Lazy" : "") + name;
}

template <class Derived, class Base, class LazyOptions>
int64_t LazyModule<Derived, Base, LazyOptions>::features(const char* accessor) const {
  const int64_t features = features_in(this->options);
  if (features == 0) refuse("sconce::nn::" + layer_name() + "::" + accessor, "", *this);
  return features;
}

template class LazyModule<LazyLinearImpl, torch::nn::LinearImpl, LazyLinearOptions>;
template class LazyModule<LazyConv1dImpl, torch::nn::Conv1dImpl, LazyConv1dOptions>;
template class LazyModule<LazyConv2dImpl, torch::nn::Conv2dImpl, LazyConv2dOptions>;
template class LazyModule<LazyConv3dImpl, torch::nn::Conv3dImpl, LazyConv3dOptions>;
template class LazyModule<LazyBatchNorm1dImpl, torch::nn::BatchNorm1dImpl, LazyBatchNorm1dOptions>;
template class LazyModule<LazyBatchNorm2dImpl, torch::nn::BatchNorm2dImpl, LazyBatchNorm2dOptions>;
template class LazyModule<LazyBatchNorm3dImpl, torch::nn::BatchNorm3dImpl, LazyBatchNorm3dOptions>;
template class LazyModule<LazyConvTranspose1dImpl, torch::nn::ConvTranspose1dImpl,
                          LazyConvTranspose1dOptions>;
template class LazyModule<LazyConvTranspose2dImpl, torch::nn::ConvTranspose2dImpl,
                          LazyConvTranspose2dOptions>;
template class LazyModule<LazyConvTranspose3dImpl, torch::nn::ConvTranspose3dImpl,
                          LazyConvTranspose3dOptions>;
template struct LazyConvTransposeOptions<1>;
template struct LazyConvTransposeOptions<2>;
template struct LazyConvTransposeOptions<3>;
template struct LazyConvOptions<1>;
template struct LazyConvOptions<2>;
template struct LazyConvOptions<3>;

bool has_uninitialized_params(const torch::nn::Module& module) {
  bool found = false;
  module.apply([&](const torch::nn::Module& part) { found |= is_uninitialized_layer(part); });
  return found;
}

void check_initialized(const torch::nn::Module& module, const char* caller) {
  module.apply([&](const std::string& path, const torch::nn::Module& part) {
    if (is_uninitialized_layer(part)) refuse(caller, path, part);
  });
}

void materialize_from(torch::nn::Module& module, const StateDict& state) {
  module.apply([&](const std::string& path, torch::nn::Module& part) {
    auto* layer = dynamic_cast<LazyLayer*>(&part);
    if (layer == nullptr) return;
    layer->materialize_from([&](const std::string& name) {
      const auto* tensor = state.find(path.empty() ? name : path + "." + name);
      return tensor == nullptr ? torch::Tensor() : *tensor;
    });
  });
}

}  // namespace sconce::nn
