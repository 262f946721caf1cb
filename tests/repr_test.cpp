#include "sconce/repr.hpp"

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "catch.hpp"
#include "sconce/nn/lazy.hpp"
#include "sconce/nn/transformer.hpp"
#include "support/ask_python.hpp"
#include "support/require_gpu.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::repr;
namespace nn = torch::nn;
namespace ours = sconce::nn;

// The Python script defines the same classes.
namespace models {

struct SimpleNNImpl : nn::Cloneable<SimpleNNImpl> {
  SimpleNNImpl() { reset(); }
  void reset() override {
    register_module("fc1", nn::Linear(3, 10));
    register_module("fc2", nn::Linear(10, 2));
  }
  torch::Tensor forward(const torch::Tensor& x) { return x; }
};
TORCH_MODULE(SimpleNN);

struct Residual : nn::Module {
  Residual() {
    register_module("conv", nn::Conv2d(nn::Conv2dOptions(4, 4, 3).padding(1)));
    register_module("norm", nn::BatchNorm2d(4));
    register_module("inner", SimpleNN());
  }
  torch::Tensor forward(const torch::Tensor& x) { return x; }
};

struct Wide : nn::LinearImpl {
  using nn::LinearImpl::LinearImpl;
};

struct Named : nn::Module {
  using nn::Module::Module;
  torch::Tensor forward(const torch::Tensor& x) { return x; }
};

struct Noted : nn::Module, sconce::ReprOverride {
  explicit Noted(const std::string& text) : extra(text) {}
  std::optional<std::string> extra_repr() const override { return extra; }
  std::string extra;
};

template <typename... T>
struct Generic : nn::Module {};

}  // namespace models

namespace {

torch::Tensor X() {
  return torch::ones({2, 3}, torch::requires_grad());
}

std::map<std::string, torch::ScalarType> dtypes_by_name() {
  std::map<std::string, torch::ScalarType> found;
  for (const auto dtype : {torch::kFloat32, torch::kFloat64, torch::kFloat16, torch::kBFloat16,
                           torch::kInt8, torch::kInt16, torch::kInt32, torch::kInt64, torch::kUInt8,
                           torch::kUInt16, torch::kUInt32, torch::kUInt64, torch::kBool}) {
    found[repr(dtype).substr(std::string("torch.").size())] = dtype;
  }
  return found;
}

// Applies the same change as `changed` in reference/repr.py.
torch::Tensor changed(torch::Tensor x, const std::string& how) {
  if (how == "transposed") return x.transpose(0, -1);
  if (how == "strided") return x.slice(0, 0, std::nullopt, 2);
  if (how == "meta") return x.to(torch::kMeta);
  if (how == "requires_grad") return x.requires_grad_();
  if (how == "mul") return x.requires_grad_() * torch::ones({});
  if (how == "view") return x.requires_grad_().view(-1);
  if (how == "expanded") {
    auto sizes = x.sizes().vec();
    sizes.insert(sizes.begin(), 3);
    return x.unsqueeze(0).expand(sizes);
  }
  REQUIRE(how == "plain");
  return x;
}

torch::Tensor in_place() {
  auto x = torch::zeros({4, 3});
  x.slice(0, 0, 2).copy_(X());
  return x;
}

torch::Tensor left_behind() {
  const auto base = torch::ones(2, torch::requires_grad()).clone();
  const torch::NoGradGuard no_grad;
  auto view = base.view(-1);
  view.mul_(2);
  return view;
}

// Returns sconce's text for every non-float expression in reference/repr.py.
std::map<std::string, std::string> our_texts() {
  namespace F = nn::functional;
  const auto x = X();
  const auto conv2d = [] { return nn::Conv2dOptions(4, 8, 3); };
  return {
      {"torch.device('cpu')", repr(torch::Device("cpu"))},
      {"torch.device('cuda')", repr(torch::Device("cuda"))},
      {"torch.device('cuda:1')", repr(torch::Device("cuda:1"))},
      {"torch.device('meta')", repr(torch::Device("meta"))},
      {"torch.float32", repr(torch::kFloat32)},
      {"torch.float64", repr(torch::kFloat64)},
      {"torch.float16", repr(torch::kFloat16)},
      {"torch.bfloat16", repr(torch::kBFloat16)},
      {"torch.int8", repr(torch::kInt8)},
      {"torch.int16", repr(torch::kInt16)},
      {"torch.int32", repr(torch::kInt32)},
      {"torch.int64", repr(torch::kInt64)},
      {"torch.uint8", repr(torch::kUInt8)},
      {"torch.uint16", repr(torch::kUInt16)},
      {"torch.bool", repr(torch::kBool)},
      {"torch.complex64", repr(torch::kComplexFloat)},
      {"torch.Size([])", repr(torch::ones({}).sizes())},
      {"torch.Size([0])", repr(torch::ones({0}).sizes())},
      {"torch.Size([2, 3, 4])", repr({2, 3, 4})},
      {"True", repr(true)},
      {"False", repr(false)},
      {"X.sum()", repr(x.sum())},
      {"X.view(-1)", repr(x.view(-1))},
      {"X.t()", repr(x.t())},
      {"X[0]", repr(x[0])},
      {"X[:, 1:]", repr(x.slice(1, 1))},
      {"X.exp()", repr(x.exp())},
      {"X.clone()", repr(x.clone())},
      {"X.double()", repr(x.to(torch::kFloat64))},
      {"X @ X.t()", repr(torch::mm(x, x.t()))},
      {"X.unsqueeze(1).expand(2, 2, 3)", repr(x.unsqueeze(1).expand({2, 2, 3}))},
      {"torch.cat([X, X])", repr(torch::cat({x, x}))},
      {"torch.relu(X)", repr(torch::relu(x))},
      {"nn.functional.linear(X, X)", repr(F::linear(x, x))},
      {"nn.functional.linear(X, X, torch.ones(2))", repr(F::linear(x, x, torch::ones(2)))},
      {"nn.functional.cross_entropy(X, torch.tensor([0, 1]))",
       repr(F::cross_entropy(x, torch::tensor({0, 1}, torch::kInt64)))},
      {"nn.functional.mse_loss(X, torch.zeros(2, 3))", repr(F::mse_loss(x, torch::zeros({2, 3})))},
      {"nn.functional.conv1d(X, torch.ones(1, 2, 1))", repr(F::conv1d(x, torch::ones({1, 2, 1})))},
      {"in_place()", repr(in_place())},
      {"left_behind()", repr(left_behind())},
      {"nn.Linear(3, 1)", repr(nn::Linear(3, 1))},
      {"nn.Linear(3, 1, bias=False)", repr(nn::Linear(nn::LinearOptions(3, 1).bias(false)))},
      {"nn.Bilinear(2, 3, 4)", repr(nn::Bilinear(2, 3, 4))},
      {"nn.Conv1d(2, 4, 3)", repr(nn::Conv1d(2, 4, 3))},
      {"nn.Conv2d(1, 6, 5, padding=2)", repr(nn::Conv2d(nn::Conv2dOptions(1, 6, 5).padding(2)))},
      {"nn.Conv2d(4, 8, (3, 5), (2, 1), padding=(1, 2), dilation=(1, 2), groups=4, bias=False)",
       repr(nn::Conv2d(nn::Conv2dOptions(4, 8, {3, 5})
                           .stride({2, 1})
                           .padding({1, 2})
                           .dilation({1, 2})
                           .groups(4)
                           .bias(false)))},
      {"nn.Conv2d(4, 8, 3, padding='same', padding_mode='reflect')",
       repr(nn::Conv2d(conv2d().padding(torch::kSame).padding_mode(torch::kReflect)))},
      {"nn.Conv2d(4, 8, 3, padding='valid')", repr(nn::Conv2d(conv2d().padding(torch::kValid)))},
      {"nn.Conv3d(1, 2, 3, stride=2)", repr(nn::Conv3d(nn::Conv3dOptions(1, 2, 3).stride(2)))},
      {"nn.ConvTranspose1d(2, 2, 2)", repr(nn::ConvTranspose1d(2, 2, 2))},
      {"nn.ConvTranspose2d(2, 4, 3, stride=2, padding=1, output_padding=1)",
       repr(nn::ConvTranspose2d(
           nn::ConvTranspose2dOptions(2, 4, 3).stride(2).padding(1).output_padding(1)))},
      {"nn.ConvTranspose3d(2, 2, 2)", repr(nn::ConvTranspose3d(2, 2, 2))},
      {"nn.BatchNorm1d(10)", repr(nn::BatchNorm1d(10))},
      {"nn.BatchNorm2d(6, eps=1e-3, momentum=None, affine=False, track_running_stats=False)",
       repr(nn::BatchNorm2d(nn::BatchNorm2dOptions(6)
                                .eps(1e-3)
                                .momentum(std::nullopt)
                                .affine(false)
                                .track_running_stats(false)))},
      {"nn.BatchNorm3d(4, momentum=0.01)",
       repr(nn::BatchNorm3d(nn::BatchNorm3dOptions(4).momentum(0.01)))},
      {"nn.InstanceNorm1d(3)", repr(nn::InstanceNorm1d(3))},
      {"nn.InstanceNorm2d(3, affine=True)",
       repr(nn::InstanceNorm2d(nn::InstanceNorm2dOptions(3).affine(true)))},
      {"nn.InstanceNorm3d(3)", repr(nn::InstanceNorm3d(3))},
      {"nn.LayerNorm(10)", repr(nn::LayerNorm(nn::LayerNormOptions({10})))},
      {"nn.LayerNorm((3, 4), eps=1e-6, elementwise_affine=False)",
       repr(nn::LayerNorm(nn::LayerNormOptions({3, 4}).eps(1e-6).elementwise_affine(false)))},
      {"nn.GroupNorm(2, 4)", repr(nn::GroupNorm(2, 4))},
      {"nn.GroupNorm(2, 4, affine=False)",
       repr(nn::GroupNorm(nn::GroupNormOptions(2, 4).affine(false)))},
      {"nn.LocalResponseNorm(2)", repr(nn::LocalResponseNorm(2))},
      {"nn.CrossMapLRN2d(2)", repr(nn::CrossMapLRN2d(2))},
      {"nn.Dropout()", repr(nn::Dropout())},
      {"nn.Dropout(0.2, inplace=True)",
       repr(nn::Dropout(nn::DropoutOptions().p(0.2).inplace(true)))},
      {"nn.Dropout2d()", repr(nn::Dropout2d())},
      {"nn.Dropout3d()", repr(nn::Dropout3d())},
      {"nn.AlphaDropout()", repr(nn::AlphaDropout())},
      {"nn.FeatureAlphaDropout()", repr(nn::FeatureAlphaDropout())},
      {"nn.ReLU()", repr(nn::ReLU())},
      {"nn.ReLU(inplace=True)", repr(nn::ReLU(nn::ReLUOptions().inplace(true)))},
      {"nn.ReLU6()", repr(nn::ReLU6())},
      {"nn.LeakyReLU()", repr(nn::LeakyReLU())},
      {"nn.LeakyReLU(0.2, inplace=True)",
       repr(nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2).inplace(true)))},
      {"nn.ELU()", repr(nn::ELU())},
      {"nn.CELU(0.5, True)", repr(nn::CELU(nn::CELUOptions().alpha(0.5).inplace(true)))},
      {"nn.SELU()", repr(nn::SELU())},
      {"nn.GELU()", repr(nn::GELU())},
      {"nn.GELU(approximate='tanh')", repr(nn::GELU(nn::GELUOptions().approximate("tanh")))},
      {"nn.GLU()", repr(nn::GLU())},
      {"nn.SiLU()", repr(nn::SiLU())},
      {"nn.Mish()", repr(nn::Mish())},
      {"nn.Sigmoid()", repr(nn::Sigmoid())},
      {"nn.LogSigmoid()", repr(nn::LogSigmoid())},
      {"nn.Tanh()", repr(nn::Tanh())},
      {"nn.Tanhshrink()", repr(nn::Tanhshrink())},
      {"nn.Softsign()", repr(nn::Softsign())},
      {"nn.Softplus()", repr(nn::Softplus())},
      {"nn.Softmax(dim=1)", repr(nn::Softmax(1))},
      {"nn.Softmin(dim=1)", repr(nn::Softmin(1))},
      {"nn.LogSoftmax(dim=-1)", repr(nn::LogSoftmax(-1))},
      {"nn.Softmax2d()", repr(nn::Softmax2d())},
      {"nn.Hardshrink()", repr(nn::Hardshrink())},
      {"nn.Softshrink()", repr(nn::Softshrink())},
      {"nn.Hardtanh()", repr(nn::Hardtanh())},
      {"nn.RReLU()", repr(nn::RReLU())},
      {"nn.PReLU(3)", repr(nn::PReLU(nn::PReLUOptions().num_parameters(3)))},
      {"nn.Threshold(0.1, 20.0)", repr(nn::Threshold(0.1, 20.0))},
      {"nn.Flatten()", repr(nn::Flatten())},
      {"nn.Flatten(0, 1)", repr(nn::Flatten(nn::FlattenOptions().start_dim(0).end_dim(1)))},
      {"nn.Unflatten(1, (2, 5))", repr(nn::Unflatten(nn::UnflattenOptions(1, {2, 5})))},
      {"nn.Identity()", repr(nn::Identity())},
      {"nn.MaxPool1d(2)", repr(nn::MaxPool1d(2))},
      {"nn.MaxPool2d(2)", repr(nn::MaxPool2d(2))},
      {"nn.MaxPool2d(3, stride=2, padding=1, ceil_mode=True)",
       repr(nn::MaxPool2d(nn::MaxPool2dOptions(3).stride(2).padding(1).ceil_mode(true)))},
      {"nn.MaxPool2d((3, 2), stride=(2, 1))",
       repr(nn::MaxPool2d(nn::MaxPool2dOptions({3, 2}).stride({2, 1})))},
      {"nn.MaxPool3d(2)", repr(nn::MaxPool3d(2))},
      {"nn.AvgPool1d(2)", repr(nn::AvgPool1d(2))},
      {"nn.AvgPool2d(2)", repr(nn::AvgPool2d(2))},
      {"nn.AvgPool2d((3, 2), stride=2)",
       repr(nn::AvgPool2d(nn::AvgPool2dOptions({3, 2}).stride(2)))},
      {"nn.AvgPool3d(2)", repr(nn::AvgPool3d(2))},
      {"nn.AdaptiveAvgPool1d(5)", repr(nn::AdaptiveAvgPool1d(5))},
      {"nn.AdaptiveAvgPool2d(1)", repr(nn::AdaptiveAvgPool2d(1))},
      {"nn.AdaptiveAvgPool2d((None, 7))",
       repr(nn::AdaptiveAvgPool2d(nn::AdaptiveAvgPool2dOptions({std::nullopt, 7})))},
      {"nn.AdaptiveAvgPool3d(2)", repr(nn::AdaptiveAvgPool3d(2))},
      {"nn.AdaptiveMaxPool1d(5)", repr(nn::AdaptiveMaxPool1d(5))},
      {"nn.AdaptiveMaxPool2d((5, 7))",
       repr(nn::AdaptiveMaxPool2d(nn::AdaptiveMaxPool2dOptions({5, 7})))},
      {"nn.AdaptiveMaxPool3d(2)", repr(nn::AdaptiveMaxPool3d(2))},
      {"nn.MaxUnpool1d(2)", repr(nn::MaxUnpool1d(2))},
      {"nn.MaxUnpool2d(2)", repr(nn::MaxUnpool2d(2))},
      {"nn.MaxUnpool3d(2)", repr(nn::MaxUnpool3d(2))},
      {"nn.LPPool1d(2.0, 3)", repr(nn::LPPool1d(2.0, 3))},
      {"nn.LPPool2d(1.2, 3, stride=2)", repr(nn::LPPool2d(nn::LPPool2dOptions(1.2, 3).stride(2)))},
      {"nn.LPPool3d(2.0, 3)", repr(nn::LPPool3d(2.0, 3))},
      {"nn.ReflectionPad1d(2)", repr(nn::ReflectionPad1d(2))},
      {"nn.ReflectionPad2d((1, 2, 3, 4))",
       repr(nn::ReflectionPad2d(nn::ReflectionPad2dOptions({1, 2, 3, 4})))},
      {"nn.ReflectionPad3d(1)", repr(nn::ReflectionPad3d(1))},
      {"nn.ReplicationPad1d(2)", repr(nn::ReplicationPad1d(2))},
      {"nn.ReplicationPad2d(2)", repr(nn::ReplicationPad2d(2))},
      {"nn.ReplicationPad3d(2)", repr(nn::ReplicationPad3d(2))},
      {"nn.ZeroPad1d(2)", repr(nn::ZeroPad1d(2))},
      {"nn.ZeroPad2d(2)", repr(nn::ZeroPad2d(2))},
      {"nn.ZeroPad3d(2)", repr(nn::ZeroPad3d(2))},
      {"nn.ConstantPad1d(2, 3.5)", repr(nn::ConstantPad1d(2, 3.5))},
      {"nn.ConstantPad2d(2, 3.5)", repr(nn::ConstantPad2d(2, 3.5))},
      {"nn.ConstantPad3d(2, 3.5)", repr(nn::ConstantPad3d(2, 3.5))},
      {"nn.Fold((4, 5), 2)", repr(nn::Fold(nn::FoldOptions({4, 5}, 2)))},
      {"nn.Unfold(3, padding=1)", repr(nn::Unfold(nn::UnfoldOptions(3).padding(1)))},
      {"nn.PixelShuffle(2)", repr(nn::PixelShuffle(2))},
      {"nn.PixelUnshuffle(2)", repr(nn::PixelUnshuffle(2))},
      {"nn.Upsample(scale_factor=2, mode='bilinear')",
       repr(nn::Upsample(nn::UpsampleOptions()
                             .scale_factor(std::vector<double>{2, 2})
                             .mode(torch::kBilinear)))},
      {"nn.Upsample(size=(4, 5))",
       repr(nn::Upsample(nn::UpsampleOptions().size(std::vector<int64_t>{4, 5})))},
      {"nn.Embedding(10, 3)", repr(nn::Embedding(10, 3))},
      {"nn.Embedding(10, 3, padding_idx=1, max_norm=1.0, sparse=True)",
       repr(nn::Embedding(nn::EmbeddingOptions(10, 3).padding_idx(1).max_norm(1.0).sparse(true)))},
      {"nn.EmbeddingBag(10, 3, mode='sum')",
       repr(nn::EmbeddingBag(nn::EmbeddingBagOptions(10, 3).mode(torch::kSum)))},
      {"nn.RNN(4, 8)", repr(nn::RNN(4, 8))},
      {"nn.RNN(4, 8, nonlinearity='relu')",
       repr(nn::RNN(nn::RNNOptions(4, 8).nonlinearity(torch::kReLU)))},
      {"nn.LSTM(4, 8, num_layers=2, batch_first=True, dropout=0.5, bidirectional=True)",
       repr(nn::LSTM(nn::LSTMOptions(4, 8)
                         .num_layers(2)
                         .batch_first(true)
                         .dropout(0.5)
                         .bidirectional(true)))},
      {"nn.LSTM(4, 8, bias=False, proj_size=3)",
       repr(nn::LSTM(nn::LSTMOptions(4, 8).bias(false).proj_size(3)))},
      {"nn.GRU(4, 8)", repr(nn::GRU(4, 8))},
      {"nn.RNNCell(4, 8, nonlinearity='relu')",
       repr(nn::RNNCell(nn::RNNCellOptions(4, 8).nonlinearity(torch::kReLU)))},
      {"nn.LSTMCell(4, 8, bias=False)", repr(nn::LSTMCell(nn::LSTMCellOptions(4, 8).bias(false)))},
      {"nn.GRUCell(4, 8)", repr(nn::GRUCell(4, 8))},
      {"nn.CrossEntropyLoss()", repr(nn::CrossEntropyLoss())},
      {"nn.MSELoss()", repr(nn::MSELoss())},
      {"nn.L1Loss()", repr(nn::L1Loss())},
      {"nn.NLLLoss()", repr(nn::NLLLoss())},
      {"nn.BCEWithLogitsLoss()", repr(nn::BCEWithLogitsLoss())},
      {"nn.CosineSimilarity()", repr(nn::CosineSimilarity())},
      {"nn.LazyLinear(1, bias=False)", repr(ours::LazyLinear(ours::LazyLinearOptions(1).bias(false)))},
      {"nn.LazyConv1d(4, 3)", repr(ours::LazyConv1d(ours::LazyConv1dOptions(4, 3)))},
      {"nn.LazyConv2d(64, 3, padding=1)",
       repr(ours::LazyConv2d(ours::LazyConv2dOptions(64, 3).padding(1)))},
      {"nn.LazyConv3d(4, 3, stride=2, bias=False)",
       repr(ours::LazyConv3d(ours::LazyConv3dOptions(4, 3).stride(2).bias(false)))},
      {"nn.LazyBatchNorm1d()", repr(ours::LazyBatchNorm1d())},
      {"nn.LazyBatchNorm2d(affine=False)",
       repr(ours::LazyBatchNorm2d(ours::LazyBatchNorm2dOptions().affine(false)))},
      {"nn.Sequential(nn.LazyLinear(1))", repr(nn::Sequential(ours::LazyLinear(1)))},
      {"nn.Sequential()", repr(nn::Sequential())},
      {"nn.Sequential(nn.Linear(3, 1))", repr(nn::Sequential(nn::Linear(3, 1)))},
      {"nn.Sequential(nn.Flatten(), nn.Linear(4, 2), nn.ReLU(), nn.Dropout(0.5), nn.Linear(2, 2))",
       repr(nn::Sequential(nn::Flatten(), nn::Linear(4, 2), nn::ReLU(), nn::Dropout(0.5),
                           nn::Linear(2, 2)))},
      {"nn.ModuleList()", repr(nn::ModuleList())},
      {"nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2), nn.ReLU(), "
       "nn.Linear(2, 2)])",
       repr(nn::ModuleList(nn::Linear(2, 2), nn::Linear(2, 2), nn::Linear(2, 2), nn::ReLU(),
                           nn::Linear(2, 2)))},
      {"nn.ModuleList([Residual(), Residual()])",
       repr(nn::ModuleList(models::Residual(), models::Residual()))},
      {"nn.ModuleDict({'left': nn.Linear(2, 2), 'right': nn.ReLU()})",
       repr(nn::ModuleDict(std::vector<std::pair<std::string, std::shared_ptr<nn::Module>>>{
           {"left", nn::Linear(2, 2).ptr()}, {"right", nn::ReLU().ptr()}}))},
      {"nn.MultiheadAttention(4, 2)", repr(nn::MultiheadAttention(4, 2))},
      {"nn.TransformerEncoderLayer(4, 2, 8)",
       repr(nn::TransformerEncoderLayer(
           nn::TransformerEncoderLayerOptions(4, 2).dim_feedforward(8)))},
      {"nn.LayerNorm((3, 4), eps=1e-6, bias=False)",
       repr(ours::LayerNorm(ours::LayerNormOptions({3, 4}).eps(1e-6).bias(false)))},
      {"nn.MultiheadAttention(4, 2, bias=False)",
       repr(ours::MultiheadAttention(ours::MultiheadAttentionOptions(4, 2).bias(false)))},
      {"nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, 0.5), 2, nn.LayerNorm(4))",
       repr(ours::TransformerEncoder(
           ours::TransformerEncoderLayer(
               ours::TransformerEncoderLayerOptions(4, 2).dim_feedforward(8).dropout(0.5)),
           2, nn::AnyModule(ours::LayerNorm(4))))},
      {"nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 8), 2)",
       repr(ours::TransformerDecoder(
           ours::TransformerDecoderLayer(
               ours::TransformerDecoderLayerOptions(4, 2).dim_feedforward(8)),
           2))},
      {"SimpleNN()", repr(models::SimpleNN())},
      {"Residual()", repr(models::Residual())},
      {"Wide(2, 3)", repr(models::Wide(2, 3))},
      {"Noted(children=False)", repr(models::Noted("depth=2"))},
      {"Noted(children=True)", [] {
         models::Noted noted("depth=2,\nwidth=3");
         noted.register_module("fc", nn::Linear(1, 2));
         return repr(noted);
       }()},
      {"nn.Sequential(Residual(), SimpleNN(), nn.Sigmoid())",
       repr(nn::Sequential(models::Residual(), models::SimpleNN(), nn::Sigmoid()))},
  };
}

}  // namespace

TEST_CASE("a tensor prints as in Python") {
  CHECK(repr(torch::tensor({1.0F, 2.5F})) == "tensor([1.0000, 2.5000])");
  CHECK(repr(torch::ones({2, 2})) == "tensor([[1., 1.],\n        [1., 1.]])");
  CHECK(repr(torch::tensor(3, torch::kInt32)) == "tensor(3, dtype=torch.int32)");
  CHECK(repr(torch::tensor({int64_t{1}, int64_t{-20}})) == "tensor([  1, -20])");
  CHECK(repr(torch::tensor({true, false})) == "tensor([ True, False])");
  CHECK(repr(torch::tensor({1e-5F, 1.0F})) == "tensor([1.0000e-05, 1.0000e+00])");
  CHECK(repr(torch::tensor({NAN, INFINITY, 1.5F})) == "tensor([   nan,    inf, 1.5000])");
  CHECK(repr(torch::arange(1001)) == "tensor([   0,    1,    2,  ...,  998,  999, 1000])");
  CHECK(repr(torch::ones({1, 1, 2})) == "tensor([[[1., 1.]]])");
}

TEST_CASE("a tensor's repr shows attributes that cannot be inferred from the elements") {
  CHECK(repr(torch::empty({0})) == "tensor([])");
  CHECK(repr(torch::empty({2, 0})) == "tensor([], size=(2, 0))");
  CHECK(repr(torch::empty({0}, torch::kInt64)) == "tensor([], dtype=torch.int64)");
  CHECK(repr(torch::ones({2}, torch::kFloat16)) == "tensor([1., 1.], dtype=torch.float16)");
  CHECK(repr(torch::ones({2}, torch::requires_grad())) == "tensor([1., 1.], requires_grad=True)");
  CHECK(repr(torch::ones({2}, torch::requires_grad()).exp()) ==
        "tensor([2.7183, 2.7183], grad_fn=<ExpBackward0>)");
  CHECK(repr(torch::ones({2}, torch::kMeta)) == "tensor(..., device='meta', size=(2,))");
}

TEST_CASE("a tensor's repr omits the default dtype, even after set_default_dtype") {
  const auto ours = torch::get_default_dtype();
  torch::set_default_dtype(torch::scalarTypeToTypeMeta(torch::kFloat64));
  const auto of_double = repr(torch::ones({1}, torch::kFloat64));
  const auto of_float = repr(torch::ones({1}, torch::kFloat32));
  torch::set_default_dtype(ours);
  CHECK(of_double == "tensor([1.])");
  CHECK(of_float == "tensor([1.], dtype=torch.float32)");
}

TEST_CASE("a GPU tensor's repr shows the device", "[gpu]") {
  sconce::test::require_gpu();
  CHECK(repr(torch::ones({2}, torch::kCUDA)) == "tensor([1., 1.], device='cuda:0')");
  CHECK(repr(torch::arange(2000, torch::kCUDA)) ==
        "tensor([   0,    1,    2,  ..., 1997, 1998, 1999], device='cuda:0')");
}

TEST_CASE("repr rejects undefined, complex, sparse, quantized, and nested tensors") {
  CHECK_THROWS_WITH(repr(torch::Tensor()),
                    ContainsSubstring("sconce::repr: expected a defined tensor"));
  CHECK_THROWS_WITH(repr(torch::ones({2}, torch::kComplexFloat)),
                    ContainsSubstring("got a tensor of ComplexFloat"));
  CHECK_THROWS_WITH(repr(torch::eye(2).to_sparse()), ContainsSubstring("got one of layout Sparse"));
  CHECK_THROWS_WITH(repr(torch::quantize_per_tensor(torch::ones({2}), 0.1, 0, torch::kQInt8)),
                    ContainsSubstring("got a tensor of QInt8"));
  CHECK_THROWS_WITH(repr(at::_nested_tensor_from_tensor_list({torch::ones({2}), torch::ones({1})})),
                    ContainsSubstring("got a nested one"));
}

TEST_CASE("devices, dtypes, sizes, bools, and floats print as in Python") {
  CHECK(repr(torch::Device("cuda:0")) == "device(type='cuda', index=0)");
  CHECK(repr(torch::Device("cpu")) == "device(type='cpu')");
  CHECK(repr(torch::kFloat32) == "torch.float32");
  CHECK(repr(torch::zeros({2, 3}).sizes()) == "torch.Size([2, 3])");
  CHECK(repr(true) == "True");
  CHECK(repr(1e-5) == "1e-05");
  CHECK(repr(0.1F) == "0.10000000149011612");
}

TEST_CASE("repr does not compile for integers and pointers") {
  const auto printable = [](auto value) { return requires { repr(value); }; };
  STATIC_CHECK(printable(true));
  STATIC_CHECK(printable(1.5F));
  STATIC_CHECK_FALSE(printable(1));
  STATIC_CHECK_FALSE(printable(int64_t{1}));
  STATIC_CHECK_FALSE(printable("text"));
}

TEST_CASE("a vector prints as a Python list and a tuple as a Python tuple") {
  using torch::Device;
  CHECK(repr(std::vector<Device>{}) == "[]");
  CHECK(repr(std::vector{Device("cuda:1"), Device("cpu")}) ==
        "[device(type='cuda', index=1), device(type='cpu')]");
  CHECK(repr(std::vector<std::vector<double>>{{0.5}, {}}) == "[[0.5], []]");
  CHECK(repr(std::vector<int64_t>{2, 3}) == "torch.Size([2, 3])");
  CHECK(repr(std::tuple{true}) == "(True,)");
  CHECK(repr(std::tuple{Device("cpu"), 0.5, std::vector{torch::kFloat}}) ==
        "(device(type='cpu'), 0.5, [torch.float32])");
}

TEST_CASE("a module prints itself and its children") {
  CHECK(repr(nn::Sequential(nn::Linear(3, 1), nn::ReLU())) ==
        "Sequential(\n"
        "  (0): Linear(in_features=3, out_features=1, bias=True)\n"
        "  (1): ReLU()\n"
        ")");
  CHECK(repr(models::Generic<models::Generic<int>, models::Wide>()) == "Generic()");
  struct InFunction : nn::Module {};
  CHECK(repr(InFunction()) == "InFunction()");
  CHECK_THROWS_WITH(repr(nn::Linear(nullptr)), ContainsSubstring("empty ModuleHolder"));
  CHECK_THROWS_WITH(repr(nn::ParameterList()), ContainsSubstring("ParameterListImpl"));
}

TEST_CASE("a name passed to Module's constructor prints unchanged") {
  for (const std::string name :
       {"EncoderImpl", "my::net", "gate->", "pair<a, b>", "::", "Impl", ""}) {
    CHECK(repr(nn::Module(name)) == name + "()");
    CHECK(repr(nn::Sequential(std::make_shared<models::Named>(name))) ==
          "Sequential(\n  (0): " + name + "()\n)");
  }
}

TEST_CASE("a module can customize its printed name and extra text") {
  sconce::nn::LazyLinear layer(1);
  CHECK(repr(layer) == "LazyLinear(in_features=0, out_features=1, bias=True)");
  layer->forward(torch::ones({2, 3}));
  CHECK(repr(layer) == "Linear(in_features=3, out_features=1, bias=True)");
  CHECK(repr(models::Noted("depth=2")) == "Noted(depth=2)");
}

TEST_CASE("2400 generated tensors print as in Python", "[python]") {
  const sconce::test::TempDir folder;
  auto file = sconce::test::ask_python(folder, "repr.py", "tensors");
  const auto dtypes = dtypes_by_name();
  int count = 0;
  for (std::string line; std::getline(file, line); ++count) {
    std::istringstream head(line);
    std::string dtype;
    std::string how;
    size_t rank = 0;
    head >> dtype >> how >> rank;
    std::vector<int64_t> sizes(rank);
    for (auto& size : sizes) head >> size;
    size_t bytes = 0;
    size_t length = 0;
    head >> bytes >> length;
    REQUIRE(head);
    const auto tensor = torch::empty(sizes, dtypes.at(dtype));
    REQUIRE(tensor.nbytes() == bytes);
    file.read(static_cast<char*>(tensor.data_ptr()), static_cast<std::streamsize>(bytes));
    std::string text(length, '\0');
    file.read(text.data(), static_cast<std::streamsize>(length));
    INFO(line);
    REQUIRE(repr(changed(tensor, how)) == text);
  }
  CHECK(count == 2400);
}

TEST_CASE("besides the generated tensors, every value in repr.py prints as in Python", "[python]") {
  const sconce::test::TempDir folder;
  auto file = sconce::test::ask_python(folder, "repr.py", "texts");
  std::map<std::string, std::string> theirs;
  std::string* text = nullptr;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("== ")) {
      text = &theirs[line.substr(3)];
    } else {
      REQUIRE(text != nullptr);
      *text += (text->empty() ? "" : "\n") + line;
    }
  }
  auto ours = our_texts();
  for (const auto& [source, expected] : theirs) {
    INFO(source);
    if (source.starts_with("float ")) {
      CHECK(repr(std::strtod(source.c_str() + 6, nullptr)) == expected);
    } else {
      CHECK(ours[source] == expected);
      ours.erase(source);
    }
  }
  CHECK(theirs.size() > 400);
  for (const auto& [source, unasked] : ours) FAIL_CHECK("not in repr.py: " + source);
}
