#include "sconce/amp/autocast.hpp"

#include <ATen/autocast_mode.h>

#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <thread>

#include "catch.hpp"
#include "sconce/devices.hpp"
#include "sconce/repr.hpp"
#include "support/ask_python.hpp"
#include "support/require_gpu.hpp"
#include "support/warnings.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::amp::AutocastGuard;
using sconce::test::Warnings;
namespace autocast = at::autocast;

namespace {

// Returns the current autocast state in the format that reference/autocast.py prints after "= " and
// the note.
std::string autocast_state() {
  std::ostringstream text;
  for (const auto device : {torch::kCPU, torch::kCUDA}) {
    text << " " << autocast::is_autocast_enabled(device) << " "
         << sconce::repr(autocast::get_autocast_dtype(device));
  }
  text << " " << autocast::is_autocast_cache_enabled() << " " << autocast::increment_nesting() - 1;
  autocast::decrement_nesting();
  return text.str();
}

torch::ScalarType dtype_of(const std::string& name) {
  for (const auto dtype : {torch::kBFloat16, torch::kHalf, torch::kFloat, torch::kDouble}) {
    if (sconce::repr(dtype) == name) return dtype;
  }
  FAIL("no dtype " << name);
  return torch::kFloat;
}

using Scopes = std::vector<std::unique_ptr<AutocastGuard>>;

// Runs a command from reference/autocast.py and returns a note that reports whether the command
// warned or failed.
std::string run(std::istringstream command, Scopes& scopes) {
  std::string kind, device, dtype, enabled, cache;
  command >> kind;
  if (kind == "exit") scopes.pop_back();
  if (kind == "dtype" && command >> dtype) {
    autocast::set_autocast_dtype(torch::kCPU, dtype_of(dtype));
  }
  if (kind == "cache" && command >> cache) autocast::set_autocast_cache_enabled(cache == "1");
  if (kind != "enter") return "silent";

  command >> device >> dtype >> enabled >> cache;
  sconce::amp::AutocastOptions options{.enabled = enabled == "1"};
  if (dtype != "-") options.dtype = dtype_of(dtype);
  if (cache != "-") options.cache_enabled = cache == "1";
  const Warnings warnings;
  try {
    scopes.push_back(std::make_unique<AutocastGuard>(torch::Device(device).type(), options));
  } catch (const c10::Error&) {
    return "refused";
  }
  return warnings.messages().empty() ? "silent" : "warned";
}

// Returns all expressions from reference/autocast.py, keyed by their text. The tensor `h` has the
// low-precision type.
std::map<std::string, std::function<torch::Tensor()>> expressions(torch::ScalarType low) {
  namespace F = torch::nn::functional;
  const auto f = torch::ones({3, 3}), d = f.to(torch::kDouble), h = f.to(low);
  const auto i = torch::arange(3), eye = torch::eye(3).to(low);
  const auto b = torch::ones({3, 3, 3}), c = torch::ones({3, 3, 3, 3});
  const auto e = torch::ones({3, 3, 3, 3, 3});
  return {
      {"torch.mm(f, f)", [=] { return torch::mm(f, f); }},
      {"torch.matmul(f, f)", [=] { return torch::matmul(f, f); }},
      {"torch.bmm(b, b)", [=] { return torch::bmm(b, b); }},
      {"torch.addmm(f, f, f)", [=] { return torch::addmm(f, f, f); }},
      {"torch.addbmm(f, b, b)", [=] { return torch::addbmm(f, b, b); }},
      {"torch.baddbmm(b, b, b)", [=] { return torch::baddbmm(b, b, b); }},
      {"torch.einsum('ij,jk->ik', f, f)", [=] { return torch::einsum("ij,jk->ik", {f, f}); }},
      {"torch.linalg.vecdot(f, f)", [=] { return torch::linalg_vecdot(f, f); }},
      {"F.linear(f, f)", [=] { return F::linear(f, f); }},
      {"F.conv1d(b, b)", [=] { return F::conv1d(b, b); }},
      {"F.conv2d(c, c)", [=] { return F::conv2d(c, c); }},
      {"F.conv3d(e, e)", [=] { return F::conv3d(e, e); }},
      {"F.conv_transpose1d(b, b)", [=] { return F::conv_transpose1d(b, b); }},
      {"F.conv_transpose2d(c, c)", [=] { return F::conv_transpose2d(c, c); }},
      {"F.scaled_dot_product_attention(b, b, b)",
       [=] { return torch::scaled_dot_product_attention(b, b, b); }},
      {"F.mse_loss(h, h)", [=] { return F::mse_loss(h, h); }},
      {"F.l1_loss(h, h)", [=] { return F::l1_loss(h, h); }},
      {"F.smooth_l1_loss(h, h)", [=] { return F::smooth_l1_loss(h, h); }},
      {"F.huber_loss(h, h)", [=] { return F::huber_loss(h, h); }},
      {"F.kl_div(h, h, reduction='sum')",
       [=] { return F::kl_div(h, h, F::KLDivFuncOptions().reduction(torch::kSum)); }},
      {"F.soft_margin_loss(h, h)", [=] { return F::soft_margin_loss(h, h); }},
      {"F.binary_cross_entropy(h, h)", [=] { return F::binary_cross_entropy(h, h); }},
      {"F.cosine_embedding_loss(h, h, h[0])", [=] { return F::cosine_embedding_loss(h, h, h[0]); }},
      {"F.triplet_margin_loss(h, h, h)", [=] { return F::triplet_margin_loss(h, h, h); }},
      {"F.multi_margin_loss(h, i)", [=] { return F::multi_margin_loss(h, i); }},
      {"F.nll_loss(h, i)", [=] { return F::nll_loss(h, i); }},
      {"F.avg_pool3d(e.to(h.dtype), 1)",
       [=] { return F::avg_pool3d(e.to(h.dtype()), F::AvgPool3dFuncOptions(1)); }},
      {"torch.cdist(h, h)", [=] { return torch::cdist(h, h); }},
      {"torch.prod(h)", [=] { return torch::prod(h); }},
      {"torch.trace(h)", [=] { return torch::trace(h); }},
      {"torch.polar(h, h)", [=] { return torch::polar(h, h); }},
      {"torch.quantile(h, 0.5)", [=] { return torch::quantile(h, 0.5); }},
      {"torch.linalg.inv(h + torch.eye(3).to(h))", [=] { return torch::linalg_inv(h + eye); }},
      {"torch.fft.fft(h)", [=] { return torch::fft::fft(h); }},
      {"torch.cat([f, h])", [=] { return torch::cat({f, h}); }},
      {"torch.cat([h, f])", [=] { return torch::cat({h, f}); }},
      {"torch.cat([h, h])", [=] { return torch::cat({h, h}); }},
      {"torch.cat([h, h, f])", [=] { return torch::cat({h, h, f}); }},
      {"torch.stack([f, h])", [=] { return torch::stack({f, h}); }},
      {"torch.stack([h, f])", [=] { return torch::stack({h, f}); }},
      {"torch.stack([h, h])", [=] { return torch::stack({h, h}); }},
      {"torch.index_copy(f, 0, i, h)", [=] { return torch::index_copy(f, 0, i, h); }},
      {"torch.index_copy(h, 0, i, f)", [=] { return torch::index_copy(h, 0, i, f); }},
      {"torch.index_copy(h, 0, i, h)", [=] { return torch::index_copy(h, 0, i, h); }},
      {"torch.mv(f, f[0])", [=] { return torch::mv(f, f[0]); }},
      {"torch.linalg.matrix_norm(h)", [=] { return torch::linalg_matrix_norm(h); }},
      {"torch.exp(h)", [=] { return torch::exp(h); }},
      {"torch.relu(h)", [=] { return torch::relu(h); }},
      {"torch.softmax(h, 0)", [=] { return torch::softmax(h, 0); }},
      {"torch.add(f, f)", [=] { return torch::add(f, f); }},
      {"torch.mul(f, h)", [=] { return torch::mul(f, h); }},
      {"torch.sum(h)", [=] { return torch::sum(h); }},
      {"torch.sqrt(f)", [=] { return torch::sqrt(f); }},
      {"F.layer_norm(h, (3,))", [=] { return F::layer_norm(h, F::LayerNormFuncOptions({3})); }},
      {"torch.mm(d, d)", [=] { return torch::mm(d, d); }},
      {"F.mse_loss(d, d)", [=] { return F::mse_loss(d, d); }},
  };
}

// Returns the resident memory of this process in bytes.
int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * 4096;
}

}  // namespace

TEST_CASE("under autocast, each operation runs in the same dtype as in Python", "[python]") {
  const sconce::test::TempDir folder;
  auto file = sconce::test::ask_python(folder, "autocast.py", "dtypes");
  std::map<std::string, int> seen;
  for (std::string low, expected, source; file >> low >> expected && std::getline(file, source);) {
    source.erase(0, 1);
    INFO(low << " " << source);
    const auto known = expressions(dtype_of(low));
    REQUIRE(known.contains(source));
    const AutocastGuard guard(torch::kCPU, {.dtype = dtype_of(low)});
    std::string result = "refused";
    try {
      result = sconce::repr(known.at(source)().scalar_type());
    } catch (const c10::Error&) {
    }
    CHECK(result == expected);
    ++seen[source];
  }
  CHECK(seen.size() == expressions(torch::kHalf).size());
  for (const auto& [source, count] : seen) CHECK(count == 2);
}

TEST_CASE("in 200 scripts, the autocast state matches Python's after every scope entry and exit",
          "[python]") {
  const sconce::test::TempDir folder;
  auto file = sconce::test::ask_python(folder, "autocast.py", "scopes");
  const std::string before = autocast_state();
  const auto dtype = autocast::get_autocast_dtype(torch::kCPU);
  int lines = 0;
  Scopes scopes;
  for (std::string command, expected; std::getline(file, command) && std::getline(file, expected);
       ++lines) {
    INFO(lines << " " << command);
    const auto note = run(std::istringstream(command.substr(2)), scopes);
    REQUIRE("= " + note + autocast_state() == expected);
  }
  CHECK(lines > 2000);
  CHECK(scopes.empty());
  autocast::set_autocast_dtype(torch::kCPU, dtype);
  autocast::set_autocast_cache_enabled(true);
  CHECK(autocast_state() == before);
}

TEST_CASE("an exception ends an autocast scope and restores the previous state") {
  const std::string before = autocast_state();
  const auto weight = torch::ones({3, 3}, torch::requires_grad());
  try {
    const AutocastGuard outer(torch::kCPU);
    const AutocastGuard inner(torch::kCPU, {.dtype = torch::kHalf, .cache_enabled = true});
    torch::mm(weight, weight);
    throw std::runtime_error("in the scope");
  } catch (const std::runtime_error&) {
  }
  CHECK(autocast_state() == before);
  CHECK(torch::mm(weight, weight).scalar_type() == torch::kFloat);
}

TEST_CASE("inside an autocast scope, operations in a disabled nested scope run in float32") {
  const auto x = torch::ones({3, 3});
  const AutocastGuard outer(torch::kCPU);
  CHECK(torch::mm(x, x).scalar_type() == torch::kBFloat16);
  {
    const AutocastGuard inner(torch::kCPU, {.enabled = false});
    CHECK(torch::mm(x, x).scalar_type() == torch::kFloat);
  }
  CHECK(torch::mm(x, x).scalar_type() == torch::kBFloat16);
}

TEST_CASE("an autocast scope affects only its own thread and cannot be copied") {
  STATIC_CHECK_FALSE(std::is_copy_constructible_v<AutocastGuard>);
  STATIC_CHECK_FALSE(std::is_copy_assignable_v<AutocastGuard>);
  const std::string before = autocast_state();
  const AutocastGuard guard(torch::kCPU, {.dtype = torch::kHalf, .cache_enabled = false});
  std::string in_thread;
  std::thread([&] { in_thread = autocast_state(); }).join();
  CHECK(in_thread == before);
  CHECK(autocast_state() != before);
}

TEST_CASE("autocast caches a parameter's cast until the outermost scope ends") {
  const auto weight = torch::ones({2, 2}, torch::requires_grad());
  const auto product_after_change = [&](sconce::amp::AutocastOptions options) {
    const AutocastGuard outer(torch::kCPU, options);
    {
      const AutocastGuard inner(torch::kCPU, options);
      torch::mm(weight, weight);
    }
    weight.detach().mul_(2);
    return torch::mm(weight, weight).sum().item<double>() / weight.sum().item<double>();
  };
  // With caching, the product uses the value that the weight had before the change.
  CHECK(product_after_change({.cache_enabled = true}) == 1.0);
  CHECK(product_after_change({.cache_enabled = false}) == 8.0);
  CHECK(product_after_change({}) == 4.0);
}

TEST_CASE("1,000 autocast scopes do not leak memory") {
  const auto x = torch::ones({1, 256});
  const auto step = [&] {
    const auto weight = torch::ones({256, 256}, torch::requires_grad());
    const AutocastGuard guard(torch::kCPU);
    torch::mm(x, weight);
  };
  for (int i = 0; i < 20; ++i) step();
  const int64_t before = resident_bytes();
  for (int i = 0; i < 1000; ++i) step();
  CHECK(resident_bytes() - before < 32 << 20);  // cached casts would use 131 MB
}

TEST_CASE(
    "as in Python, autocast rejects an unsupported dtype or device, or disables itself with a "
    "warning") {
  const Warnings warnings;
  const auto x = torch::ones({3, 3});
  {
    const AutocastGuard guard(torch::kCPU, {.dtype = torch::kDouble});
    CHECK(torch::mm(x, x).scalar_type() == torch::kFloat);
    CHECK(autocast::get_autocast_dtype(torch::kCPU) == torch::kDouble);
  }
  REQUIRE(warnings.messages().size() == 1);
  CHECK_THAT(warnings.messages()[0],
             ContainsSubstring("sconce::amp::AutocastGuard: on cpu autocast supports BFloat16 and "
                               "Half, got Double. Disabling autocast."));
  {
    const AutocastGuard silent(torch::kCPU, {.dtype = torch::kDouble, .enabled = false});
  }
  CHECK(warnings.messages().size() == 1);
  {
    const AutocastGuard guard(torch::kCUDA);
  }
  if (sconce::num_gpus() == 0) {
    REQUIRE(warnings.messages().size() == 2);
    CHECK_THAT(warnings.messages()[1], ContainsSubstring("CUDA is not available"));
  } else {
    CHECK(warnings.messages().size() == 1);
  }
  CHECK_THROWS_WITH(
      AutocastGuard(torch::kMeta),
      ContainsSubstring(
          "sconce::amp::AutocastGuard: expected a device type that autocast supports, got meta"));
}

TEST_CASE("on a GPU, autocast runs each operation in the dtype specified by its operator list",
          "[gpu]") {
  sconce::test::require_gpu();
  const auto f = torch::ones({8, 8}, torch::kCUDA), c = torch::ones({8, 8, 8, 8}, torch::kCUDA);
  for (const auto low : {torch::kHalf, torch::kBFloat16}) {
    const auto h = f.to(low);
    const AutocastGuard guard(torch::kCUDA, {.dtype = low});
    for (const auto& result : {torch::mm(f, f), torch::matmul(f, f), torch::addmm(f, f, f),
                               torch::linear(f, f), torch::conv2d(c, c), torch::mv(f, f[0])}) {
      CHECK(result.scalar_type() == low);
    }
    for (const auto& result : {torch::exp(h), torch::log(h), torch::pow(h, 2), torch::sum(h),
                               torch::softmax(h, 0), torch::mse_loss(h, h), torch::rsqrt(h),
                               torch::layer_norm(h, {8}), torch::cumsum(h, 0), torch::prod(h)}) {
      CHECK(result.scalar_type() == torch::kFloat);
    }
    CHECK(torch::addcmul(f, h, h).scalar_type() == torch::kFloat);
    CHECK(torch::addcmul(h, h, h).scalar_type() == low);
    CHECK(torch::atan2(h, f).scalar_type() == torch::kFloat);
    CHECK(torch::relu(h).scalar_type() == low);
    CHECK(torch::mm(f.cpu(), f.cpu()).scalar_type() == torch::kFloat);
  }
  const AutocastGuard guard(torch::kCUDA);
  CHECK(torch::mm(f, f).scalar_type() == torch::kHalf);
  const AutocastGuard inner(torch::kCUDA, {.enabled = false});
  CHECK(torch::mm(f, f).scalar_type() == torch::kFloat);
}
