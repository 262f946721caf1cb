// Tests which functions `record` rejects and which state each rejection leaves behind.

#include <ATen/ThreadLocalState.h>
#include <torch/library.h>

#include <stdexcept>
#include <thread>

#include "catch.hpp"
#include "program/networks.hpp"
#include "program/refusals.hpp"
#include "sconce/distributed/data_parallel.hpp"
#include "support/error_of.hpp"
#include "support/temp_dir.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;
using sconce::StateDict;
using sconce::program::Function;
using sconce::program::Program;
using sconce::program::record;
using sconce::program::RecordOptions;
using sconce::program::Tensors;
using sconce::test::error_of;
using sconce::test::TempDir;
using sconce::test::what_of;

namespace {

torch::Tensor twice(const torch::Tensor& x) {
  return x * 2;
}

TORCH_LIBRARY(sconce_refusals, library) {
  library.def("twice(Tensor x) -> Tensor", &twice);
}

using OneInput = std::function<torch::Tensor(const torch::Tensor&)>;

// Records a function that takes one input with a dynamic first dimension. Returns the error, and
// checks that no file exists afterward.
std::string refusal_of(const OneInput& function, const torch::Tensor& x, RecordOptions options) {
  const TempDir folder;
  const auto file = folder.path() / "net.safetensors";
  const Function all = [&](const Tensors& in) { return Tensors{function(in[0])}; };
  const auto error = error_of([&] { record(file, all, {{"x", x}}, std::move(options)); });
  CHECK(!std::filesystem::exists(file));
  return error;
}

std::string refusal_of(const OneInput& function,
                       const torch::Tensor& x = torch::randn({4, 3}).abs()) {
  return refusal_of(function, x, {.dynamic_shapes = {{"x", 0}}});
}

std::string refusal_with(const StateDict& example, RecordOptions options) {
  const TempDir folder;
  return error_of([&] {
    record(
        folder.path() / "net", [](const Tensors& in) { return Tensors{in[0] + 1}; }, example,
        std::move(options));
  });
}

// A function that `record` rejects, and the full text expected after the call's number in the error
// message.
struct Refused {
  OneInput function;
  std::string error;
};

void check_refused(const std::vector<Refused>& all) {
  for (const auto& [function, error] : all) {
    const auto message = refusal_of(function);
    CHECK_THAT(message, StartsWith("sconce::program::record: calls["));
    CHECK_THAT(message, EndsWith("] " + error));
  }
}

}  // namespace

TEST_CASE("record rejects operators that read values on the host") {
  const std::string expected =
      ": expected operators that return tensors, got an operator that returns a value to the host; "
      "keep the value in a tensor, for example with torch::where instead of a branch";
  check_refused({
      {[](const auto& x) { return x * x.sum().template item<float>(); }, "aten::item" + expected},
      {[](const auto& x) { return x.sum().is_nonzero() ? x : x + 1; },
       "aten::is_nonzero" + expected},
      {[](const auto& x) { return (x > 0).all().template item<bool>() ? x : x + 1; },
       "aten::item" + expected},
      {[](const auto& x) { return torch::equal(x, x + 1) ? x : x + 1; },
       "aten::equal: expected operators that return tensors, got an operator that returns a value "
       "to the host; compare elements with torch::eq, and use sconce::nn attention instead of "
       "LibTorch attention"},
      {[](const auto& x) { return torch::allclose(x, x + 1) ? x : x + 1; },
       "aten::allclose" + expected},
  });
}

TEST_CASE("record rejects operators whose output shapes depend on values") {
  const std::string expected =
      ": expected results whose shapes depend only on input shapes, got a result whose shape "
      "depends on values; keep all elements and use a mask, for example with torch::where";
  check_refused({
      {[](const auto& x) { return x.nonzero(); }, "aten::nonzero" + expected},
      {[](const auto& x) { return x.masked_select(x > 0.5); }, "aten::masked_select" + expected},
      {[](const auto& x) { return x.index({x > 0.5}); }, "aten::index" + expected},
      {[](const auto& x) { return std::get<0>(at::_unique2(x)); }, "aten::_unique2" + expected},
      {[](const auto& x) { return torch::one_hot(x.to(torch::kLong)); },
       "aten::one_hot" + expected},
      {[](const auto& x) { return x.sum(1).to(torch::kLong).bincount(); },
       "aten::bincount" + expected},
      {[](const auto& x) { return x.repeat_interleave(torch::ones(x.size(0), torch::kLong), 0); },
       "aten::repeat_interleave" + expected},
      {[](const auto& x) {
         const auto packed = torch::nn::utils::rnn::pack_padded_sequence(
             x.unsqueeze(2), torch::full({x.size(0)}, 3, torch::kLong), true);
         return packed.data();
       },
       "aten::_pack_padded_sequence" + expected},
  });
}

TEST_CASE("record rejects functions that draw random numbers") {
  const std::string expected =
      ": expected no random numbers, got an operator that generates random numbers; call eval() on "
      "the network, run lazy layers once before recording, or pass the random numbers as an input";
  auto generator = at::make_generator<at::CPUGeneratorImpl>(1);
  check_refused({
      {[](const auto& x) { return torch::dropout(x, 0.5, true); }, "aten::dropout" + expected},
      {[](const auto& x) { return x + torch::rand({3}); }, "aten::rand" + expected},
      {[](const auto& x) { return x + torch::randn_like(x); }, "aten::randn_like" + expected},
      {[](const auto& x) { return x + torch::bernoulli(x.clamp(0, 1)); },
       "aten::bernoulli" + expected},
      {[](const auto& x) { return torch::zeros_like(x).normal_() + x; },
       "aten::normal_" + expected},
      {[](const auto& x) { return x.index_select(0, torch::randperm(x.size(0))); },
       "aten::randperm" + expected},
      {[=](const auto& x) { return x + torch::rand({3}, generator, torch::kFloat); },
       "aten::rand" + expected},
  });
}

TEST_CASE("record rejects changes to inputs, weights, and tensors created before the call") {
  const std::string expected =
      ": expected a function that writes only to its own tensors, got a write to ";
  const std::string advice =
      "; call eval() on the network, or clone the tensor before writing to it";
  auto outside = torch::zeros(3);
  check_refused({
      {[](auto x) { return x.add_(1); }, "aten::add_" + expected + "the input 'x'" + advice},
      {[](auto x) { return x.view({-1}).mul_(2); },
       "aten::mul_" + expected + "the input 'x'" + advice},
      {[=](const auto& x) { return outside.add_(1) + x; },
       "aten::add_" + expected + "a tensor created on the host" + advice},
  });
  const torch::nn::Linear net(3, 3);
  const auto error = refusal_of(
      [&](const auto& x) {
        auto weight = net->weight.detach();
        weight.mul_(1);
        return x.mm(weight);
      },
      torch::randn({2, 3}), {.module = net.ptr()});
  CHECK_THAT(error, EndsWith("aten::mul_" + expected + "the weight 'weight'" + advice));
}

TEST_CASE("record rejects BatchNorm in training mode and restores its running statistics") {
  for (const bool counts : {true, false}) {
    torch::nn::BatchNorm1d norm(torch::nn::BatchNormOptions(3));
    if (!counts) {
      norm->num_batches_tracked.reset();
      norm->named_buffers();
    }
    norm->running_mean.fill_(0.25);
    const TempDir folder;
    const auto error = error_of([&] {
      record(folder.path() / "net", norm, {{"x", torch::randn({4, 3})}},
             {.dynamic_shapes = {{"x", 0}}});
    });
    CHECK_THAT(error, ContainsSubstring("call eval() on the network"));
    CHECK(norm->running_mean.equal(torch::full(3, 0.25)));
    CHECK(norm->running_var.equal(torch::ones(3)));
    if (counts) CHECK(norm->num_batches_tracked.item<int64_t>() == 0);
  }
}

TEST_CASE("record rejects sparse and quantized tensors") {
  check_refused({
      {[](const auto& x) { return x.to_sparse(); },
       "aten::to_sparse: expected dense tensors, got a sparse or quantized tensor; call to_dense() "
       "or "
       "dequantize() first"},
      {[](const auto& x) { return torch::quantize_per_tensor(x, 0.1, 0, torch::kQInt8); },
       "aten::quantize_per_tensor: expected dense tensors, got a sparse or quantized tensor; call "
       "to_dense() or dequantize() first"},
  });
}

TEST_CASE("record rejects operators defined outside LibTorch") {
  check_refused({{[](const auto& x) {
                    static const auto op =
                        c10::Dispatcher::singleton()
                            .findSchemaOrThrow("sconce_refusals::twice", "")
                            .template typed<torch::Tensor(const torch::Tensor&)>();
                    return op.call(x);
                  },
                  "sconce_refusals::twice: expected operators from the aten namespace (also "
                  "available in Python), got an operator from outside LibTorch; implement the "
                  "operation with LibTorch's operators, or pass its result as an input"}});
}

TEST_CASE("record rejects operators that replace a tensor's memory") {
  check_refused(
      {{[](auto x) { return x.clone().resize_({2, 3}); },
        "aten::resize_: expected tensors that keep their memory, got an operator that replaces a "
        "tensor's memory; create a new tensor instead of resizing an existing tensor"}});
}

TEST_CASE("record rejects collectives") {
  const auto op = c10::Dispatcher::singleton().findSchema({"c10d::allreduce_", ""});
  if (!op) SKIP("LibTorch was built without torch.distributed");
  const auto error = error_of([&] {
    sconce::program::detail::check_call({"calls[0] c10d::allreduce_", *op, torch::kCPU}, {});
  });
  CHECK(error ==
        "sconce::program::record: calls[0] c10d::allreduce_: expected operators that run in a "
        "single process, got a collective; "
        "record the network without DistributedDataParallel");
}

TEST_CASE("record rejects integers that are not multilinear polynomials of the dynamic sizes") {
  const std::string expected =
      ": expected a multilinear polynomial in the dynamic sizes with integer coefficients, got a "
      "different "
      "integer";
  CHECK_THAT(refusal_of([](const auto& x) { return x.narrow(0, 0, x.size(0) / 2); }),
             ContainsSubstring("aten::narrow: argument 'length' at batch = 11" + expected));
  CHECK_THAT(
      refusal_of([](const auto& x) { return x.sum() + torch::zeros(x.size(0) * x.size(0)); }),
      ContainsSubstring("aten::zeros: argument 'size' at batch = 11" + expected));
  CHECK_THAT(refusal_of([](const auto& x) { return x * (x.size(0) * x.size(0)); }),
             ContainsSubstring("aten::mul: argument 'other' at batch = 11" + expected));
}

TEST_CASE("record rejects non-integer values computed from a dynamic size") {
  CHECK_THAT(
      refusal_of([](const auto& x) { return x * (1.0 / static_cast<double>(x.size(0))); }),
      ContainsSubstring(
          "aten::mul: argument 'other': expected the same value for all sizes, or an integer"));
  CHECK_THAT(
      refusal_of([](const auto& x) {
        return x.sum(0).expand(std::vector<int64_t>(static_cast<size_t>(x.size(0)), 3));
      }),
      ContainsSubstring("the function returns different tensors at batch = 4 and batch = 5"));
}

TEST_CASE("record rejects functions whose number of operator calls depends on a dynamic size") {
  const auto error = refusal_of([](const auto& x) {
    auto sum = torch::zeros(3);
    for (int64_t i = 0; i < x.size(0); ++i) sum = sum + x[i];
    return sum;
  });
  CHECK_THAT(
      error,
      StartsWith(
          "sconce::program::record: expected the same operators for all sizes, but calls[") &&
          EndsWith(
              "; replace loops and branches that depend on sizes with operators on whole tensors"));
}

TEST_CASE("record detects values that the host reads from a tensor's memory") {
  const OneInput reads = [](const auto& x) { return x * x.template data_ptr<float>()[0]; };
  CHECK_THAT(refusal_of(reads), ContainsSubstring("expected the same value for all sizes"));
  CHECK_THAT(refusal_of(reads, torch::rand({4, 3}) + 1, {}),
             ContainsSubstring(
                 "output 'output': expected the program to match the function for other inputs"));
  const OneInput copies = [](const auto& x) {
    return torch::from_blob(x.data_ptr(), {3}).clone() + x;
  };
  CHECK_THAT(refusal_of(copies, torch::rand({4, 3}) + 1, {}), ContainsSubstring("expected "));
}

TEST_CASE("record detects functions that keep state between calls") {
  int64_t calls = 0;
  CHECK_THAT(refusal_of([&](const auto& x) { return x + 0.5 * static_cast<double>(++calls); }),
             ContainsSubstring("expected the same value for all sizes"));
  torch::Tensor sum = torch::zeros(3);
  CHECK_THAT(refusal_of([&](const auto& x) {
               sum = sum + x.sum(0);
               return sum * 1;
             }),
             ContainsSubstring("expected host-created tensors to be the same for all inputs"));
}

TEST_CASE("record rejects operators that run in other threads") {
  const auto in_thread = [](const std::function<void()>& f) { std::thread(f).join(); };
  // The new thread uses the caller's thread-local state, as do the threads that autograd and
  // LibTorch create.
  CHECK_THAT(
      refusal_of([&](const auto& x) {
        torch::Tensor y;
        const at::ThreadLocalState state;
        in_thread([&] {
          const at::ThreadLocalStateGuard guard(state);
          y = x + 1;
        });
        return y * 2;
      }),
      ContainsSubstring(
          "expected operators in the thread that calls record, got operators in another thread; "
          "run the whole computation in one thread, and record the network without DataParallel"));
  CHECK_THAT(refusal_of([&](const auto& x) {
               torch::Tensor y;
               in_thread([&] { y = x + 1; });
               return y * 2;
             }),
             ContainsSubstring("expected host-created tensors to be the same for all inputs"));
}

TEST_CASE("record rejects DataParallel, and its replicas remain usable") {
  torch::nn::Linear net(3, 2);
  sconce::nn::DataParallel replicas(net, {.device_ids = {torch::kCPU, torch::kCPU}});
  const auto x = torch::randn({4, 3});
  CHECK_THAT(refusal_of([&](const auto& in) { return replicas.forward(in); }, x),
             ContainsSubstring("record the network without DataParallel"));
  CHECK(torch::allclose(replicas.forward(x), net->forward(x)));
}

TEST_CASE("record rejects invalid examples") {
  const auto x = torch::zeros({2, 3});
  const std::string who = "sconce::program::record: ";
  CHECK(refusal_with(StateDict(), {}) ==
        who + "expected an example with at least one input, got none");
  CHECK(refusal_with({{"x", torch::Tensor()}}, {}) ==
        who + "example 'x': expected a tensor, got an undefined one");
  CHECK(refusal_with({{"x", x.to_sparse()}}, {}) ==
        who + "example 'x': expected a dense tensor, got a sparse or quantized tensor");
  CHECK(refusal_with({{"x", x.to(torch::kMeta)}}, {}) ==
        who + "expected an example on the CPU or a GPU, got an example on meta");
  CHECK(refusal_with({{"x", x}, {"y", x.to(torch::kMeta)}}, {}) ==
        who +
            "example 'y': expected a tensor on cpu (the device of the first tensor), got a tensor "
            "on meta");
  CHECK(refusal_with({{"x", at::_nested_tensor_from_tensor_list({x})}}, {}) ==
        who + "example 'x': expected a dense tensor, got a nested tensor");
  for (const char* name : {"", "1x", "a b", "x.y", "é"}) {
    CHECK(refusal_with({{name, x}}, {}) ==
          who + "expected identifiers as names of inputs, got '" + name + "'");
  }
}

TEST_CASE("record rejects invalid options") {
  const StateDict x = {{"x", torch::zeros({2, 3})}};
  const StateDict two = {{"x", torch::zeros({2, 3})}, {"y", torch::zeros({4, 3, 5, 6})}};
  const std::string who = "sconce::program::record: ";
  CHECK(refusal_with(x, {.dynamic_shapes = {{"z", 0}}}) ==
        who + "dynamic_shapes: expected an input name, got 'z'");
  CHECK(refusal_with(x, {.dynamic_shapes = {{"x", 2}}}) ==
        who + "dynamic_shapes: expected a dimension of 'x' from 0 to 1, got 2");
  CHECK(refusal_with(x, {.dynamic_shapes = {{"x", -1}}}) ==
        who + "dynamic_shapes: expected a dimension of 'x' from 0 to 1, got -1");
  CHECK(refusal_with({{"x", torch::tensor(1.0)}}, {.dynamic_shapes = {{"x", 0}}}) ==
        who +
            "dynamic_shapes: expected an input with at least one dimension, got dimension 0 of the "
            "0-dim "
            "tensor 'x'");
  CHECK(refusal_with(x, {.dynamic_shapes = {{"x", 0, "a size"}}}) ==
        who + "expected identifiers as names of dynamic sizes, got 'a size'");
  CHECK(refusal_with(x, {.dynamic_shapes = {{"x", 0}, {"x", 0, "rows"}}}) ==
        who +
            "dynamic_shapes: expected a single size name for dimension 0 of 'x', got 'batch' and "
            "'rows'");
  CHECK(refusal_with({{"x", torch::zeros({0, 3})}}, {.dynamic_shapes = {{"x", 0}}}) ==
        who + "dynamic_shapes: expected a nonzero example size in dimension 0 of 'x', got 0");
  CHECK(refusal_with(two, {.dynamic_shapes = {{"x", 0}, {"y", 0}}}) ==
        who +
            "dynamic_shapes: expected batch = 2 in 'y' as before, got 4; use different names for "
            "different sizes");
  CHECK(
      refusal_with(
          two, {.dynamic_shapes = {{"y", 0, "a"}, {"y", 1, "b"}, {"y", 2, "c"}, {"y", 3, "d"}}}) ==
      who + "dynamic_shapes: expected at most 3 sizes, got 4");
  CHECK(refusal_with(x, {.output_names = {"a", "b"}}) ==
        who + "output_names: expected 1 names, got 2");
  CHECK(
      refusal_with(x, {.output_names = {"x"}}) ==
      who +
          "output_names: expected unique names, got 'x' twice; output names must also differ from "
          "input names");
  CHECK(refusal_with(x, {.output_names = {"a.b"}}) ==
        who + "expected identifiers as names of outputs, got 'a.b'");
  CHECK(
      refusal_with({{"output", torch::zeros(2)}}, {}) ==
      who +
          "output_names: expected unique names, got 'output' twice; output names must also differ "
          "from input names");
}

TEST_CASE("record rejects functions that return no tensors") {
  const auto error = [](const Function& function) {
    const TempDir folder;
    return error_of([&] { record(folder.path() / "net", function, {{"x", torch::zeros(2)}}); });
  };
  CHECK(error({}) == "sconce::program::record: expected a function, got an empty std::function");
  CHECK(error([](const Tensors&) { return Tensors(); }) ==
        "sconce::program::record: expected a function that returns tensors, got none");
  CHECK(error([](const Tensors&) { return Tensors(1); }) ==
        "sconce::program::record: output 0: expected a tensor, got an undefined one");
  torch::nn::Linear net(3, 2);
  const TempDir folder;
  const auto x = torch::zeros({2, 3});
  CHECK(error_of([&] { record(folder.path() / "net", net, {{"x", x}, {"y", x}}); }) ==
        "sconce::program::record: expected a model whose forward takes 2 tensors, the number of "
        "tensors in the example; alternatively, record a function that calls it");
}

TEST_CASE("record reports unwritable paths and weight names that are already in use") {
  const TempDir folder;
  torch::nn::Linear net(3, 2);
  const StateDict example = {{"x", torch::zeros({2, 3})}};
  const auto missing = folder.path() / "missing" / "net";
  CHECK_THAT(error_of([&] { record(missing, net, example); }), ContainsSubstring(missing.string()));
  CHECK_THAT(error_of([&] { record(std::string("a\0b", 3), net, example); }),
             ContainsSubstring("NUL"));
  struct Constants : torch::nn::Module {
    Constants() {
      register_module("constants", torch::nn::ParameterList());
      named_children()["constants"]->as<torch::nn::ParameterList>()->append(torch::ones(3));
    }
  };
  const auto module = std::make_shared<Constants>();
  const auto outside = torch::ones(3);
  const Function function = [&](const Tensors& in) {
    return Tensors{in[0] * module->parameters()[0] + outside};
  };
  CHECK_THAT(
      error_of([&] { record(folder.path() / "net", function, example, {.module = module}); }),
      ContainsSubstring("expected no weight named 'constants.0'"));
}

TEST_CASE("record rejects nested recordings") {
  const TempDir folder;
  const auto error = refusal_of([&](const auto& x) {
    record(folder.path() / "inner", [](const Tensors& in) { return Tensors{in[0] + 1}; },
           {{"x", x}});
    return x + 1;
  });
  CHECK_THAT(error, EndsWith("sconce::program::record: expected no active recording in this "
                             "thread, got a nested call"));
}

TEST_CASE("exceptions in a recorded function reach the caller, and the thread can record again") {
  const TempDir folder;
  const auto file = folder.path() / "net";
  const StateDict example = {{"x", torch::ones({2, 3})}};
  const Function throws = [](const Tensors& in) -> Tensors {
    in[0].add(1);
    throw std::runtime_error("the function's own");
  };
  CHECK(what_of([&] { record(file, throws, example); }) == "the function's own");
  const Function mismatch = [](const Tensors& in) { return Tensors{in[0].mm(in[0])}; };
  CHECK_THAT(error_of([&] { record(file, mismatch, example); }),
             ContainsSubstring("cannot be multiplied"));
  CHECK_THAT(
      error_of([&] {
        record(file, [](const Tensors& in) { return Tensors{torch::rand_like(in[0])}; }, example);
      }),
      ContainsSubstring("random numbers"));
  CHECK(torch::GradMode::is_enabled());
  record(file, [](const Tensors& in) { return Tensors{in[0] + 1}; }, example);
  CHECK(Program::load(file).run({torch::zeros({2, 3})})[0].equal(torch::ones({2, 3})));
}

TEST_CASE("a function that throws for a single row is recorded for two or more rows") {
  const TempDir folder;
  const auto file = folder.path() / "net";
  record(file,
         [](const Tensors& in) {
           if (in[0].size(0) < 2) throw std::invalid_argument("expected two rows");
           return Tensors{in[0] + 1};
         },
         {{"x", torch::ones({2, 3})}}, {.dynamic_shapes = {{"x", 0}}});
  CHECK_THAT(error_of([&] { Program::load(file).run({torch::zeros({1, 3})}); }),
             ContainsSubstring("input 'x': expected batch to be at least 2, got 1"));
}
