#include "sconce/program/program.hpp"

#include <c10/util/Exception.h>

#include <algorithm>
#include <thread>

#include "catch.hpp"
#include "program/networks.hpp"
#include "program/program_file.hpp"
#include "sconce/amp/autocast.hpp"
#include "sconce/io/torch_file.hpp"
#include "support/error_of.hpp"
#include "support/same_bytes.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using sconce::StateDict;
using sconce::program::Program;
using sconce::program::record;
using sconce::program::Tensors;
using sconce::test::contents;
using sconce::test::error_of;
using sconce::test::Json;
using sconce::test::same_bytes;
using sconce::test::TempDir;
using sconce::test::with_json;
using sconce::test::with_text;
using sconce::test::write_linear;

namespace {

std::string load_error(const std::filesystem::path& file) {
  return error_of([&] { Program::load(file); });
}

// A change to a program's JSON, and the text expected after the file name in the error message.
struct ChangedFile {
  std::function<void(Json&)> change;
  std::string error;
};

void check_changed(const std::vector<ChangedFile>& changed) {
  const TempDir folder;
  const auto file = write_linear(folder);
  for (const auto& [change, error] : changed) {
    const auto path = with_json(file, change);
    CHECK_THAT(load_error(path),
               StartsWith("sconce::program::Program::load: " + path.string() + ": " + error));
  }
}

// Returns a change that replaces one argument of the linear layer.
ChangedFile other_argument(const std::string& name, const std::string& value,
                           const std::string& error) {
  return {[=](Json& json) { json["calls"][0]["args"][name] = Json::parse(value); },
          "calls[0] aten::addmm: argument '" + name + "'" + error};
}

// Returns a change that replaces the program's second call.
ChangedFile other_call(const std::string& call, const std::string& error) {
  return {[=](Json& json) {
            json["calls"][1] = Json::parse(call);
            json["calls"][1].emplace("overload", "");
            json["calls"][1].emplace("results", Json::array({4}));
          },
          "calls[1]" + error};
}

// Returns a change that replaces the element at a JSON pointer.
ChangedFile field(const std::string& pointer, const std::string& value, const std::string& error) {
  return {[=](Json& json) { json[Json::json_pointer(pointer)] = Json::parse(value); }, error};
}

}  // namespace

TEST_CASE("a loaded program lists its inputs, outputs, device, and metadata") {
  const TempDir folder;
  torch::nn::Linear net(3, 2);
  const auto file = folder.path() / "net.safetensors";
  record(file, net, {{"x", torch::zeros({4, 3})}},
         {.dynamic_shapes = {{"x", 0}},
          .output_names = {"logits"},
          .metadata = {{"classes", "cat,dog"}}});
  const auto program = Program::load(file);
  REQUIRE(program.inputs().size() == 1);
  CHECK(program.inputs()[0].name == "x");
  CHECK(program.inputs()[0].dtype == torch::kFloat);
  CHECK(program.inputs()[0].shape == std::vector<int64_t>{-1, 3});
  REQUIRE(program.outputs().size() == 1);
  CHECK(program.outputs()[0].name == "logits");
  CHECK(program.outputs()[0].shape == std::vector<int64_t>{-1, 2});
  CHECK(program.device() == torch::kCPU);
  CHECK(program.metadata() == std::map<std::string, std::string>{{"classes", "cat,dog"}});
}

TEST_CASE("a program file truncated at any byte is rejected, and the error names the file") {
  const TempDir folder;
  const auto bytes = contents(write_linear(folder, /*save_example=*/true));
  for (size_t size = 0; size < bytes.size(); size += size < 64 ? 1 : 23) {
    const auto file = folder.write("cut.safetensors", bytes.substr(0, size));
    INFO(size << " of " << bytes.size() << " bytes");
    CHECK_THAT(load_error(file),
               ContainsSubstring(file.string() + ": ") && ContainsSubstring("expected "));
  }
}

TEST_CASE(
    "a program whose JSON is truncated at any point is rejected, and the error reports the "
    "position") {
  const TempDir folder;
  const auto file = write_linear(folder);
  const auto text = sconce::test::program_text(file);
  for (size_t size = 0; size < text.size(); size += 7) {
    const auto cut = with_text(file, text.substr(0, size));
    CHECK_THAT(load_error(cut),
               ContainsSubstring(cut.string() + ": expected a program in JSON format") &&
                   ContainsSubstring("column " + std::to_string(size + 1)));
  }
}

TEST_CASE(
    "a program file with one changed byte produces the same outputs or is rejected with an error "
    "that names the file") {
  const TempDir folder;
  const auto x = torch::ones({2, 2});
  const auto expected = Program::load(write_linear(folder)).run({x})[0];
  const auto bytes = contents(write_linear(folder, /*save_example=*/true));
  for (size_t at = 0; at < bytes.size(); at += at < 16 ? 1 : 11) {
    auto changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    const auto file = folder.write("changed.safetensors", changed);
    INFO("byte " << at << " of " << bytes.size());
    const auto error = load_error(file);
    // A changed byte in the "format" text is not an error, because sconce does not use this text.
    if (error == "nothing was thrown") {
      CHECK(Program::load(file).run({x})[0].equal(expected));
    } else {
      CHECK_THAT(error, ContainsSubstring(file.string()));
    }
  }
}

TEST_CASE("a program with altered weights or operators is reported as damaged") {
  const TempDir folder;
  const auto file = write_linear(folder);
  auto texts = sconce::io::load_safetensors_metadata(file);
  auto tensors = sconce::io::load_safetensors(file, {.mmap = false});
  tensors["bias"].add_(1);
  const auto changed = folder.path() / "changed.safetensors";
  sconce::io::save_safetensors(changed, tensors, texts);
  CHECK_THAT(load_error(changed),
             ContainsSubstring(changed.string() + ": tensor 'bias': expected the CRC-32 ") &&
                 ContainsSubstring("; the file is damaged"));
  auto& text = texts["sconce.program"];
  text.replace(text.find("aten::elu"), 9, "aten::exp");
  sconce::io::save_safetensors(changed, tensors, texts);
  CHECK_THAT(load_error(changed),
             ContainsSubstring(changed.string() + ": expected a program with the CRC-32 ") &&
                 ContainsSubstring("; the file is damaged"));
}

TEST_CASE("Program::load rejects files that are not programs") {
  const TempDir folder;
  const auto file = folder.path() / "file";
  const auto error = [&] { return load_error(file); };
  CHECK_THAT(error(), ContainsSubstring(file.string()) && ContainsSubstring("No such file"));
  sconce::io::save_safetensors(file, {{"weight", torch::zeros(2)}});
  CHECK(error() == "sconce::program::Program::load: " + file.string() +
                       ": expected a program written by sconce::program::record, got a safetensors "
                       "file without the metadata key 'sconce.program'");
  sconce::io::save_torch(file, StateDict{{"weight", torch::zeros(2)}});
  CHECK_THAT(error(), ContainsSubstring(file.string() + ": expected a safetensors file, got "));
  for (const char* bytes : {"", "text", "\x89PNG\r\n\x1a\n        "}) {
    folder.write("file", bytes);
    CHECK_THAT(error(), ContainsSubstring(file.string() + ": expected a "));
  }
  CHECK_THAT(load_error(folder.path()), ContainsSubstring(folder.path().string()));
}

TEST_CASE(
    "a program file with a different format version is rejected, and the error reports both "
    "versions") {
  check_changed(
      {field("/version", "2", "version: expected version 1, got 2"),
       field("/version", "\"1\"", "version: expected a 64-bit integer, got \"1\""),
       {[](Json& json) { json.erase("version"); }, "expected the key 'version', got none"}});
}

TEST_CASE(
    "a program with an invalid field is rejected, and the error reports the field's position") {
  check_changed({
      field("/device", "\"xla\"", R"(device: expected one of cpu, cuda, got "xla")"),
      field("/values", "-1", "values: expected a non-negative number below "),
      field("/values", "18446744073709551615",
            "values: expected a 64-bit integer, got 18446744073709551615"),
      field("/values", "4", "outputs[0] value: expected a non-negative number below 4, got 4"),
      field("/sizes/0/min", "-1", "sizes[0] min: expected at least 0, got -1"),
      field("/sizes/1", R"({"name": "batch", "min": 1})",
            R"(sizes[1]: expected a unique name for each size, got {"min":1,"name":"batch"})"),
      field("/sizes/1", R"({"name": "rows", "min": 1})",
            R"(sizes[1]: expected a size used by an input shape, got {"min":1,"name":"rows"})"),
      field("/sizes", "{}", "sizes: expected a list, got {}"),
      field("/inputs/0/dtype", "\"float33\"",
            R"(inputs[0] dtype: expected a dtype that LibTorch supports, got "float33")"),
      field("/inputs/0/value", "5",
            "inputs[0] value: expected a non-negative number below 5, got 5"),
      field("/inputs/0/shape/1", "1e3",
            "inputs[0] shape[1]: expected a 64-bit integer, got 1000.0"),
      field("/inputs/0/shape/1", R"({"sum": [[2, "batch"]]})",
            "inputs[0] shape: expected integers and size names, got [{"),
      field("/inputs/0/shape/1", R"({"sum": [[1, "rows"]]})",
            R"(inputs[0] shape[1] sum[0][1]: expected a size name, got "rows")"),
      field("/inputs/0/shape/1", R"({"sum": [[]]})",
            "inputs[0] shape[1] sum[0]: expected a coefficient followed by size names, got []"),
      field("/outputs/0/name", "7", "outputs[0] name: expected a string, got 7"),
      field("/outputs/1", R"({"name": "output", "value": 3, "dtype": "float32", "shape": []})",
            R"(outputs[1] name: expected unique names, got "output")"),
      field("/weights/0/kind", "\"gradient\"",
            R"(weights[0] kind: expected one of parameter, buffer, constant, got "gradient")"),
      field("/weights/0/device", "\"cuda\"",
            R"(weights[0] device: expected the program's device, cpu, got "cuda")"),
      field("/weights/0/tensor", "\"other\"",
            "weights[0] 'weight': expected a tensor 'other' in the file, got none"),
      field("/weights/0/value", "2",
            "weights[1] 'bias': expected a single tensor for the value, got 'weight' and 'bias'"),
      field("/weights/0/value", "0",
            "weights 'weight': expected a new value, got 0, which is already an input"),
      {[](Json& json) { json["crc32"].erase("bias"); },
       "crc32: expected a checksum for the tensor 'bias', got none"},
      field("/crc32", "[]", "crc32: expected an object, got []"),
      field("/example", "1", "example: expected true or false, got 1"),
      field("/example", "true",
            "example: expected a tensor 'example.inputs.x' in the file, got none"),
      field("/calls", "null", "calls: expected a list, got null"),
  });
}

TEST_CASE("a program with a forbidden operator is rejected, and the error names the operator") {
  const auto rejected = [](const char* op, const std::string& reason) {
    return other_call(R"({"op": ")" + std::string(op) + R"(", "args": {}})",
                      ": expected operators from the aten namespace that work on tensors, got " +
                          reason + " (" + op + ")");
  };
  const std::string relocates = "a tensor whose memory is replaced";
  check_changed({
      rejected("quantized::linear", "an operator from outside LibTorch"),
      rejected("prim::device", "an operator from outside LibTorch"),
      rejected("aten", "an operator from outside LibTorch"),
      rejected("", "an operator from outside LibTorch"),
      rejected("aten::from_file", "an operator that opens files"),
      rejected("aten::_print", "an operator that prints"),
      rejected("aten::set_", relocates),
      rejected("aten::set_data", relocates),
      rejected("aten::resize_", relocates),
      rejected("aten::_resize_output_", relocates),
      rejected("aten::_sparse_csr_tensor_unsafe", relocates),
      rejected("aten::_reshape_alias", relocates),
      other_call(R"({"op": "aten::no_such", "args": {}})",
                 ": expected an operator of LibTorch " TORCH_VERSION ", got aten::no_such"),
      other_call(R"({"op": "aten::elu", "overload": "other", "args": {}})",
                 ": expected an operator of LibTorch " TORCH_VERSION ", got aten::elu.other"),
      other_call(R"({"op": 3, "args": {}})", " op: expected a string, got 3"),
  });
}

TEST_CASE(
    "a program with an invalid operator argument is rejected, and the error names the argument") {
  check_changed({
      {[](Json& json) { json["calls"][0]["args"]["wieght"] = nullptr; },
       "calls[0] aten::addmm args: expected the operator's argument names, got 'wieght'"},
      {[](Json& json) { json["calls"][0]["args"].erase("mat2"); },
       "calls[0] aten::addmm: argument 'mat2': expected Tensor, got None"},
      {[](Json& json) { json["calls"][0]["args"] = Json::array(); },
       "calls[0] aten::addmm args: expected an object, got []"},
      other_argument("mat2", "true", ": expected Tensor, got a boolean"),
      other_argument("mat2", "7", ": expected Tensor, got an integer"),
      other_argument("mat2", R"({"float": 0.5})", ": expected Tensor, got a float"),
      other_argument("mat2", R"({"complex": [1, "inf"]})",
                     ": expected Tensor, got a complex number"),
      other_argument("mat2", "\"text\"", ": expected Tensor, got a string"),
      other_argument("mat2", R"({"dtype": "int64"})", ": expected Tensor, got a dtype"),
      other_argument("mat2", R"({"layout": "strided"})", ": expected Tensor, got a layout"),
      other_argument("mat2", R"({"memory_format": "channels_last"})",
                     ": expected Tensor, got a memory format"),
      other_argument("mat2", R"({"device": "cpu"})", ": expected Tensor, got a device"),
      other_argument("mat2", R"([{"value": 1}])", ": expected Tensor, got a list"),
      other_argument("mat2", R"({"device": "cuda"})",
                     " device: expected the program's device, cpu, got \"cuda\""),
      other_argument("mat2", R"({"layout": "sparse_coo"})",
                     " layout: expected one of strided, got \"sparse_coo\""),
      other_argument("mat2", R"({"memory_format": 1})", " memory_format: expected a string, got 1"),
      other_argument("mat2", R"({"value": 9})",
                     " value: expected a non-negative number below 5, got 9"),
      other_argument("mat2", R"({"value": 1, "number": 1})",
                     R"(: expected an argument with exactly one key, got {"number":1,"value":1})"),
      other_argument("mat2", R"({"tensor": 1})",
                     R"(: expected a supported kind of argument, got {"tensor":1})"),
      other_argument("mat2", R"({"float": "big"})",
                     R"( float: expected one of inf, -inf, nan, got "big")"),
      other_argument("mat2", R"({"complex": [1]})", " complex: expected two numbers, got [1]"),
      other_argument("mat2", R"({"number": "text"})", R"( number: expected an object, got "text")"),
      other_argument("mat2", R"({"sum": [[1, "rows"]]})",
                     R"( sum[0][1]: expected a size name, got "rows")"),
  });
}

TEST_CASE("a program rejects operator arguments whose values do not have the declared type") {
  const auto call = [](const std::string& op, const std::string& args, const std::string& error,
                       const std::string& overload = "") {
    return other_call(
        R"({"op": "aten::)" + op + R"(", "overload": ")" + overload + R"(", "args": )" + args + "}",
        " aten::" + op + ": argument " + error);
  };
  check_changed({
      call("flatten", R"({"self": {"value": 3}, "start_dim": {"float": 1}})",
           "'start_dim': expected int, got a float", "using_ints"),
      call("flatten", R"({"self": {"value": 3}, "start_dim": true})",
           "'start_dim': expected int, got a boolean", "using_ints"),
      call("softmax", R"({"self": {"value": 3}, "dim": null})", "'dim': expected int, got None",
           "int"),
      call("dropout", R"({"input": {"value": 3}, "p": 1, "train": false})",
           "'p': expected float, got an integer"),
      call("dropout", R"({"input": {"value": 3}, "p": {"float": 0.5}, "train": 0})",
           "'train': expected bool, got an integer"),
      call("elu", R"({"self": {"value": 3}, "alpha": {"value": 3}})",
           "'alpha': expected Scalar, got a tensor"),
      call("gelu", R"({"self": {"value": 3}, "approximate": 1})",
           "'approximate': expected str, got an integer"),
      call("reshape", R"({"self": {"value": 3}, "shape": [[1]]})",
           "'shape': expected SymInt, got a list"),
      call("reshape", R"({"self": {"value": 3}, "shape": [null]})",
           "'shape': expected SymInt, got None"),
      call("cat", R"({"tensors": [1]})", "'tensors': expected Tensor, got an integer"),
      call("cat", R"({"tensors": {"value": 3}})", "'tensors': expected Tensor[], got a tensor"),
      call("ones", R"({"size": [2], "dtype": "float32"})",
           "'dtype': expected ScalarType?, got a string"),
      call("ones", R"({"size": [2], "layout": {"dtype": "float32"}})",
           "'layout': expected Layout?, got a dtype"),
      call("ones", R"({"size": [2], "device": {"layout": "strided"}})",
           "'device': expected Device?, got a layout"),
      call("clone", R"({"self": {"value": 3}, "memory_format": {"device": "cpu"}})",
           "'memory_format': expected MemoryFormat?, got a device"),
      call("bernoulli", R"({"self": {"value": 3}, "generator": 1})",
           "'generator': expected Generator?, got an integer"),
  });
}

TEST_CASE(
    "a program with invalid value indices is rejected, and the error identifies the operator "
    "call") {
  check_changed({
      {[](Json& json) { json["calls"][0]["args"]["mat1"] = Json::parse(R"({"value": 4})"); },
       "calls[0] aten::addmm: expected values that are defined before the call, got 4"},
      field("/calls/1/results/0", "3", "calls[1] aten::elu: expected a new value, got 3 again"),
      field("/calls/1/results/0", "0", "calls[1] aten::elu: expected a new value, got 0 again"),
      field("/calls/1/results", "[]", "calls[1] aten::elu results: expected 1 results, got 0"),
      field("/calls/1/results", "[4, 4]", "calls[1] aten::elu results: expected 1 results, got 2"),
      field("/calls/1/results/0", "[4]",
            "calls[1] aten::elu results[0]: expected a 64-bit integer, got [4]"),
      field("/calls/1/results/0", "null", "outputs 'output': expected a defined value, got 4"),
      other_call(R"({"op": "aten::chunk", "args": {"self": {"value": 3}, "chunks": 2}})",
                 " aten::chunk results[0]: expected a list, got 4"),
      other_call(R"({"op": "aten::is_nonzero", "args": {"self": {"value": 3}}})",
                 " aten::is_nonzero results[0]: expected null for a result of type bool, got 4"),
  });
}

TEST_CASE("a program with out-of-range numbers is rejected, and the error reports their position") {
  check_changed({
      other_call(R"({"op": "aten::narrow", "args": {"self": {"value": 3}, "dim": 0, "start": 0,
                     "length": {"sum": [[9223372036854775807, "batch", "batch"]]}}})",
                 " aten::narrow: argument 'length': expected a size that fits in 64 bits, got a "
                 "larger one"),
      other_call(R"({"op": "aten::narrow", "args": {"self": {"value": 3}, "dim": 0, "start": 0,
                     "length": 18446744073709551616}})",
                 " aten::narrow: argument 'length': expected a 64-bit integer, got "
                 "1.8446744073709552e+19"),
  });
  const TempDir folder;
  const auto file = write_linear(folder);
  const auto text = sconce::test::program_text(file);
  CHECK_THAT(
      load_error(with_text(file, std::string(100000, '['))),
      ContainsSubstring(
          "expected a program nested at most 32 levels deep, got deeper nesting at byte 32"));
  CHECK_THAT(load_error(with_text(file, "{\"version\": 1e999}")),
             ContainsSubstring("expected a program in JSON format") &&
                 ContainsSubstring("number overflow"));
  CHECK_THAT(load_error(with_text(file, "[]")), ContainsSubstring("expected an object, got []"));
}

TEST_CASE(
    "a program rejects mismatched inputs before running any operator, and the error names the "
    "inputs") {
  const TempDir folder;
  const auto file = folder.path() / "net.safetensors";
  const auto function = [](const Tensors& in) {
    return Tensors{in[0].add(1).mm(in[1].to(torch::kFloat))};
  };
  record(file, function,
         {{"x", torch::randn({4, 3})}, {"index", torch::ones({3, 5}, torch::kLong)}},
         {.dynamic_shapes = {{"x", 0}, {"x", 1, "width"}, {"index", 0, "width"}}});
  const auto program = Program::load(file);
  const auto index = torch::ones({3, 5}, torch::kLong);
  const auto run = [&](const torch::Tensor& x, const torch::Tensor& other) {
    return [=] { program.run({x, other}); };
  };
  const auto x = torch::randn({2, 3});
  const std::string who = "sconce::program::Program::run: ";
  const std::vector<std::pair<std::function<void()>, std::string>> refused = {
      {[&] { program.run({}); }, who + "expected 2 inputs, got 0"},
      {[&] { program.run({x, index, x}); }, who + "expected 2 inputs, got 3"},
      {run({}, index), who + "input 'x': expected a tensor, got an undefined one"},
      {run(x, {}), who + "input 'index': expected a tensor, got an undefined one"},
      {run(x.to(torch::kDouble), index),
       who + "input 'x': expected torch.float32, got torch.float64"},
      {run(x, index.to(torch::kInt)), who + "input 'index': expected torch.int64, got torch.int32"},
      {run(x.to(torch::kMeta), index),
       who + "input 'x': expected a tensor on cpu, got one on meta"},
      {run(x.to_sparse(), index), who + "input 'x': expected a dense tensor, got a sparse tensor"},
      {run(torch::zeros(3), index),
       who + "input 'x': expected the shape (batch, width), got torch.Size([3])"},
      {run(x, torch::ones({3, 4}, torch::kLong)),
       who + "input 'index': expected the shape (width, 5), got torch.Size([3, 4])"},
      {run(x, torch::ones({2, 5}, torch::kLong)),
       who + "input 'index': expected width = 3 as before, got 2"},
      {run(torch::zeros({0, 3}), index), who + "input 'x': expected batch to be at least 1, got 0"},
      {run(at::_nested_tensor_from_tensor_list({x}), index),
       who + "input 'x': expected a dense tensor, got a nested tensor"},
  };
  for (const auto& [call, error] : refused) CHECK(error_of(call) == error);
  CHECK(program.run({x, index})[0].sizes() == torch::IntArrayRef({2, 5}));
}

TEST_CASE("a program checks all inputs before running its first operator") {
  const TempDir folder;
  const auto file = folder.path() / "net.safetensors";
  record(file, [](const Tensors& in) { return Tensors{in[0] + 1, in[1] + 1}; },
         {{"x", torch::zeros(2)}, {"y", torch::zeros(2)}});
  // The program modifies its first input in place. The `record` function never writes programs that
  // modify their inputs.
  const auto changes = with_json(file, [](Json& json) { json["calls"][0]["op"] = "aten::add_"; });
  const auto program = Program::load(changes);
  const auto x = torch::zeros(2);
  CHECK_THROWS_AS(program.run({x, torch::zeros(3)}), c10::Error);
  CHECK(x.equal(torch::zeros(2)));
  program.run({x, torch::zeros(2)});
  CHECK(x.equal(torch::ones(2)));
}

TEST_CASE("if an operator in a program throws, the error identifies the operator call") {
  const TempDir folder;
  const auto file = write_linear(folder);
  const auto program = Program::load(with_json(file, [](Json& json) {
    json["calls"][0]["args"]["mat2"] = Json::parse(R"({"value": 2})");
    json["calls"][0]["args"]["self"] = Json::parse(R"({"value": 1})");
  }));
  CHECK_THAT(error_of([&] { program.run({torch::zeros({2, 2})}); }),
             ContainsSubstring("sconce::program::Program::run: calls[0] aten::addmm"));
  // The length is 2e18 times the batch size, so a batch of five rows overflows int64_t.
  const auto huge = Program::load(with_json(file, [](Json& json) {
    json["calls"][1] =
        Json::parse(R"({"op": "aten::narrow", "overload": "", "results": [4], "args": {
      "self": {"value": 3}, "dim": 0, "start": 0, "length": {"sum": [[2000000000000000000, "batch"]]}}})");
  }));
  CHECK_THAT(error_of([&] { huge.run({torch::zeros({5, 2})}); }),
             ContainsSubstring("expected a size that fits in 64 bits") &&
                 ContainsSubstring("calls[1] aten::narrow"));
}

TEST_CASE(
    "a program throws if an operator returns a different number of tensors than the program "
    "specifies") {
  const TempDir folder;
  const auto file = write_linear(folder);
  // The program expects one result from the call instead of two, an error that is detected only at
  // run time.
  const auto program = Program::load(with_json(file, [](Json& json) {
    json["calls"][1] =
        Json::parse(R"({"op": "aten::chunk", "overload": "", "results": [[4]], "args": {
      "self": {"value": 3}, "chunks": 2}})");
  }));
  CHECK_THAT(
      error_of([&] { program.run({torch::zeros({2, 2})}); }),
      ContainsSubstring("expected 1 tensors, got 2") && ContainsSubstring("calls[1] aten::chunk"));
}

TEST_CASE("a program runs without gradients or autocast, regardless of the caller's modes") {
  const TempDir folder;
  const auto program = Program::load(write_linear(folder));
  const auto x = torch::ones({3, 2});
  const auto expected = program.run({x})[0];
  const auto with_gradient = program.run({x.clone().requires_grad_()})[0];
  CHECK_FALSE(with_gradient.requires_grad());
  CHECK(same_bytes(with_gradient, expected));
  {
    const sconce::amp::AutocastGuard autocast(torch::kCPU);
    CHECK(same_bytes(program.run({x})[0], expected));
  }
  const c10::InferenceMode inference;
  CHECK(same_bytes(program.run({x * 1})[0], expected));
}

TEST_CASE("a GPU program is rejected on a machine without a GPU") {
  if (torch::cuda::is_available()) SKIP("there is a GPU");
  const TempDir folder;
  const auto file = with_json(write_linear(folder), [](Json& json) { json["device"] = "cuda"; });
  CHECK_THAT(load_error(file),
             StartsWith("sconce::program::Program::load: " + file.string() + ": expected"));
  CHECK(Program::load(file, {.device = torch::kCPU}).run({torch::ones({1, 2})})[0].is_cpu());
}

TEST_CASE("Program::load places a program on the device specified in the options") {
  const TempDir folder;
  const auto file = write_linear(folder);
  CHECK(Program::load(file, {.device = torch::kCPU}).device() == torch::kCPU);
  CHECK_THAT(error_of([&] { Program::load(file, {.device = torch::kMeta}); }),
             ContainsSubstring(file.string()));
}

TEST_CASE(
    "four threads that run the same program concurrently get the same outputs as one thread, bit "
    "for bit") {
  const TempDir folder;
  for (const auto& network : sconce::test::networks()) {
    if (network.name == "resnet18") continue;  // slow
    INFO(network.name);
    const auto file = folder.path() / "net.safetensors";
    record(file, network.forward, network.example(2), network.options());
    const auto program = Program::load(file);
    constexpr size_t count = 4;
    std::vector<Tensors> inputs, expected, outputs(count);
    for (size_t i = 0; i < count; ++i) {
      inputs.push_back(network.example(static_cast<int64_t>(2 * i + 1)).values());
      expected.push_back(program.run(inputs.back()));
    }
    std::vector<std::thread> threads;
    for (size_t i = 0; i < count; ++i) {
      threads.emplace_back([&, i] {
        for (int turn = 0; turn < 5; ++turn) outputs[i] = program.run(inputs[i]);
      });
    }
    for (auto& thread : threads) thread.join();
    for (size_t i = 0; i < count; ++i) {
      REQUIRE(outputs[i].size() == expected[i].size());
      for (size_t j = 0; j < outputs[i].size(); ++j)
        CHECK(same_bytes(outputs[i][j], expected[i][j]));
    }
  }
}
