#include "sconce/io/safetensors.hpp"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules.h>
#include <torch/optim/sgd.h>

#include <numeric>

#include "catch.hpp"
#include "io/safetensors_header.hpp"
#include "sconce/io/torch_file.hpp"
#include "sconce/nn/state_dict.hpp"
#include "support/ask_python.hpp"
#include "support/colliding_names.hpp"
#include "support/error_of.hpp"
#include "support/peak_memory.hpp"
#include "support/require_gpu.hpp"
#include "support/same_bytes.hpp"
#include "support/temp_dir.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::StateDict;
using sconce::io::load_safetensors;
using sconce::io::load_safetensors_metadata;
using sconce::io::save_safetensors;
using sconce::test::ask_python;
using sconce::test::contents;
using sconce::test::error_of;
using sconce::test::same_bytes;
using sconce::test::TempDir;

namespace {

namespace fs = std::filesystem;

std::string with_length(const std::string& header, const std::string& data = "") {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + data;
}

// Returns tensors of every type that both the format and LibTorch support, including 0-dimensional,
// empty, and strided tensors.
StateDict everything() {
  StateDict state;
  for (const char* name :
       {"BOOL",        "F4",          "U8",  "I8",  "F8_E5M2", "F8_E4M3", "F8_E8M0",
        "F8_E4M3FNUZ", "F8_E5M2FNUZ", "I16", "U16", "F16",     "BF16",    "I32",
        "U32",         "F32",         "C64", "F64", "I64",     "U64"}) {
    const auto* type = sconce::io::find_type(std::string_view(name));
    REQUIRE(type != nullptr);
    const auto bytes =
        torch::randint(0, type->type == torch::kBool ? 2 : 256,
                       {6, static_cast<int64_t>(c10::elementSize(type->type))}, torch::kByte);
    const auto tensor = bytes.flatten().view(type->type).reshape({2, 3});
    const std::string key = std::string("layer.") + name;
    state.insert(key, tensor);
    state.insert(key + ".empty", tensor.narrow(0, 0, 0));
    if (type->bits < 8) continue;
    state.insert(key + ".number", tensor[1][2]);
    state.insert(key + ".strided", tensor.t());
  }
  return state;
}

std::string refusal(const TempDir& folder, const std::string& bytes) {
  const auto file = folder.write("file", bytes);
  const std::string error = error_of([&] { load_safetensors(file); });
  CHECK_THAT(error, ContainsSubstring("sconce::io::load_safetensors: " + file.string() + ": "));
  return error;
}

std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

}  // namespace

TEST_CASE(
    "save_safetensors and load_safetensors preserve tensors bit for bit, with and without mmap") {
  const TempDir folder;
  const auto file = folder.path() / "file";
  const auto saved = everything();
  save_safetensors(file, saved, {{"format", "pt"}, {"say", "\"hé\"\n"}});
  for (const bool mmap : {true, false}) {
    const auto loaded = load_safetensors(file, {.mmap = mmap});
    CHECK(loaded.size() == saved.size());
    for (const auto& item : saved) {
      INFO(item.key());
      REQUIRE(loaded.contains(item.key()));
      CHECK(same_bytes(loaded[item.key()], item.value()));
    }
  }
  CHECK(load_safetensors_metadata(file) ==
        sconce::io::Metadata{{"format", "pt"}, {"say", "\"hé\"\n"}});
}

namespace {

std::vector<std::pair<void*, size_t>> random_ranges;  // ranges with random-access advice

}  // namespace

// The linker substitutes this function for the C library's madvise.
extern "C" int madvise(void* start, size_t size, int advice) noexcept {
  if (advice == MADV_RANDOM) random_ranges.emplace_back(start, size);
  return reinterpret_cast<decltype(madvise)*>(dlsym(RTLD_NEXT, "madvise"))(start, size, advice);
}

TEST_CASE(
    "random_access requires mmap and a CPU device, and advises the operating system to expect "
    "random reads") {
  const TempDir folder;
  const auto file = folder.path() / "file";
  StateDict state;
  state.insert("x", torch::arange(10'000).view({1000, 10}));
  save_safetensors(file, state);
  random_ranges.clear();
  load_safetensors(file);
  CHECK(random_ranges.empty());
  const auto x = load_safetensors(file, {.random_access = true})["x"];
  REQUIRE(random_ranges.size() == 1);
  const auto* start = static_cast<const char*>(random_ranges[0].first);
  const auto* first = static_cast<const char*>(x.const_data_ptr());
  CHECK(start < first);
  CHECK(first + x.nbytes() <= start + random_ranges[0].second);
  const auto rows = torch::randperm(1000);
  CHECK(torch::equal(x.index_select(0, rows), state["x"].index_select(0, rows)));
  CHECK_THAT(
      error_of([&] { load_safetensors(file, {.mmap = false, .random_access = true}); }),
      ContainsSubstring("expected mmap on the CPU when random_access is set, got mmap = false"));
  CHECK_THAT(
      error_of([&] { load_safetensors(file, {.device = torch::kMeta, .random_access = true}); }),
      ContainsSubstring("expected mmap on the CPU when random_access is set, got device meta"));
}

TEST_CASE("a conjugate or negative view is saved with its resolved values") {
  const TempDir folder;
  const auto x = torch::randn({3, 2}, torch::kComplexFloat);
  StateDict state;
  state.insert("conj", x.conj());
  state.insert("neg", torch::imag(x.conj()));
  save_safetensors(folder.path() / "file", state);
  const auto loaded = load_safetensors(folder.path() / "file");
  CHECK(torch::equal(loaded["conj"], state["conj"].resolve_conj()));
  CHECK(torch::equal(loaded["neg"], state["neg"].resolve_neg()));
}

TEST_CASE(
    "a mapped tensor remains valid after its file is replaced, and changes to the tensor stay "
    "private") {
  const TempDir folder;
  const auto file = folder.path() / "file";
  StateDict state;
  state.insert("x", torch::arange(4.));
  save_safetensors(file, state);
  const std::string before = contents(file);
  auto x = load_safetensors(file)["x"];
  x.add_(1);
  CHECK(contents(file) == before);
  save_safetensors(file, everything());
  CHECK(torch::equal(x, torch::arange(4.) + 1));
}

TEST_CASE("load_safetensors reads files with no tensors and files with unaligned data") {
  const TempDir folder;
  CHECK(load_safetensors(folder.write("none", with_length("{}"))).is_empty());
  const std::string header =
      R"({"b":)" + entry("U8", "[1]", "[0,1]") + R"(,"a":)" + entry("F32", "[1]", "[1,5]") + "}";
  const float value = 1.5F;
  const auto file = folder.write(
      "odd", with_length(header, "\7" + std::string(reinterpret_cast<const char*>(&value), 4)));
  const auto loaded = load_safetensors(file);
  CHECK(loaded["b"].item<int>() == 7);
  CHECK(loaded["a"].item<float>() == 1.5F);
}

TEST_CASE("load_safetensors skips null metadata and unknown fields, as in Python") {
  const TempDir folder;
  const auto null = folder.write("null", with_length(R"({"__metadata__":null})"));
  CHECK(load_safetensors(null).is_empty());
  CHECK(load_safetensors_metadata(null).empty());
  for (const char* value : {"1", "-1.5", "null", "true", R"("text")", "[]",
                            R"([{"dtype":[1]},[2]])", R"({"shape":{"a":[]},"b":1})"}) {
    INFO(value);
    std::string header = R"({"a":{"new":)";
    header.append(value).append(R"(,"dtype":"U8","shape":[2],"newer":)").append(value);
    header += R"(,"data_offsets":[0,2]},"b":)" + entry("U8", "[1]", "[2,3]") + "}";
    const auto loaded = load_safetensors(folder.write("file", with_length(header, "\5\6\7")));
    CHECK(loaded.size() == 2);
    CHECK(torch::equal(loaded["a"], torch::tensor({5, 6}, torch::kByte)));
    CHECK(loaded["b"].item<int>() == 7);
  }
}

TEST_CASE("load_safetensors reports the actual format of a file that is not a safetensors file") {
  const TempDir folder;
  const auto expect = [&](const std::string& bytes, const char* kind) {
    CHECK_THAT(refusal(folder, bytes),
               ContainsSubstring(std::string("expected a safetensors file, got ") + kind));
  };
  sconce::io::save_torch(folder.path() / "archive", c10::IValue(1));
  expect(contents(folder.path() / "archive"), "a zip archive, as written by torch.save");
  expect("\x80\2}q\1.", "a pickle, as written by torch.save before torch 1.6");
  expect("\x1f\x8b\b rest of it", "a gzip file");
  expect("version https://git-lfs.github.com/spec/v1\noid sha256:0", "a Git LFS pointer");
  expect("<!DOCTYPE html>\n<html>", "an HTML page");
  expect("\n <HTML lang=\"en\">", "an HTML page");
  expect("\xef\xbb\xbf<html>", "an HTML page");
  expect(R"({"error":"Repository not found"})", "a JSON text");
}

TEST_CASE("names crafted to collide in a hash table are rejected before they are inserted") {
  const TempDir folder;
  const auto names = sconce::test::names_of_one_bucket(500);
  std::string header = "{";
  StateDict state;
  for (const auto& name : names) {
    header += (header.size() > 1 ? ",\"" : "\"") + name + "\":" + entry("U8", "[0]", "[0,0]");
    state.insert(name.substr(1), torch::ones({1}));
  }
  const char* cause = "expected names with different hashes";
  CHECK_THAT(refusal(folder, with_length(header + "}")), ContainsSubstring(cause));
  // Removing a prefix can change which names collide, so the names are checked again afterward.
  torch::nn::Linear module(1, 1);
  const auto rename = [](const std::string& name) { return "n" + name; };
  CHECK_THAT(error_of([&] {
               sconce::nn::load_state_dict(*module, state, {.strict = false, .rename = rename});
             }),
             ContainsSubstring(cause));
}

TEST_CASE("load_safetensors rejects files that violate the format's rules and reports the reason") {
  const TempDir folder;
  const auto with = [&](const std::string& header, const std::string& data = "") {
    return refusal(folder, with_length(header, data));
  };
  const std::string four(4, '\0');
  const std::string good = R"("a":)" + entry("F32", "[1]", "[0,4]");
  CHECK_THAT(refusal(folder, ""),
             ContainsSubstring("expected a safetensors file of at least 8 bytes, found 0"));
  CHECK_THAT(refusal(folder, "1234567"), ContainsSubstring("found 7"));
  CHECK_THAT(refusal(folder, std::string(8, '\xff')), ContainsSubstring("at most 100000000"));
  CHECK_THAT(refusal(folder, with_length("{}").substr(0, 9)), ContainsSubstring("a file of 9"));
  CHECK_THAT(with(""), ContainsSubstring("begins with {"));
  CHECK_THAT(with(" {}"), ContainsSubstring("begins with {"));
  CHECK_THAT(with("{"), ContainsSubstring("expected JSON at byte"));
  CHECK_THAT(with("{}x"), ContainsSubstring("expected JSON at byte"));
  CHECK_THAT(with("{\"\xff\":1}"), ContainsSubstring("expected JSON at byte"));
  CHECK_THAT(with("{\"a\":1}"), ContainsSubstring("'a': expected an object, got 1"));
  CHECK_THAT(with("{\"a\":{}}"), ContainsSubstring("'a': expected dtype, shape, and data_offsets"));
  CHECK_THAT(with("{" + good + "," + good + "}", four),
             ContainsSubstring("'a': expected unique tensor names"));
  CHECK_THAT(with(R"({"a":{"dtype":"F32","dtype":"F32"}})"),
             ContainsSubstring("expected dtype once"));
  CHECK_THAT(with(R"({"a":{"more":1}})"),
             ContainsSubstring("'a': expected dtype, shape, and data_offsets, got 0 of them"));
  CHECK_THAT(with(R"({"a":null})"), ContainsSubstring("'a': expected an object, got null"));
  CHECK_THAT(with(R"({"__metadata__":{"a":null}})"), ContainsSubstring("expected texts, got null"));
  CHECK_THAT(with(R"({"__metadata__":{"a":1}})"), ContainsSubstring("expected texts, got 1"));
  CHECK_THAT(with(R"({"__metadata__":{"a":"1","a":"2"}})"),
             ContainsSubstring("unique metadata keys, got 'a' twice"));
  for (const char* number : {"-1", "1.0", "1e2", "true", "null", "\"1\"", "[1]", "{}",
                             "9223372036854775808", "99999999999999999999"}) {
    INFO(number);
    std::string shape = "[";
    shape.append(number).append("]");
    CHECK_THAT(with("{\"a\":" + entry("F32", shape, "[0,4]") + "}", four),
               ContainsSubstring("'a': expected "));
  }
  CHECK_THAT(with("{\"a\":" + entry("F6_E2M3", "[4]", "[0,3]") + "}", "abc"),
             ContainsSubstring("'a': expected a dtype that LibTorch supports, got 'F6_E2M3'"));
  CHECK_THAT(with("{\"a\":" + entry("F4", "[3]", "[0,1]") + "}", "a"), ContainsSubstring("even"));
  CHECK_THAT(with("{\"a\":" + entry("F32", "[1]", "[0]") + "}", four),
             ContainsSubstring("two data_offsets"));
  CHECK_THAT(with("{\"a\":" + entry("F32", "[1]", "[4,0]") + "}", four),
             ContainsSubstring("'a': expected data_offsets"));
  CHECK_THAT(with("{\"a\":" + entry("F32", "[1]", "[1,5]") + "}", four + "x"),
             ContainsSubstring("'a': expected data_offsets to begin at 0"));
  CHECK_THAT(with("{" + good + ",\"b\":" + entry("F32", "[1]", "[2,6]") + "}", four + "xx"),
             ContainsSubstring("'b': expected data_offsets to begin at 4"));
  CHECK_THAT(with("{" + good + "}", four + "x"),
             ContainsSubstring("expected 4 bytes after the header, found 5"));
  CHECK_THAT(with("{" + good + "}", "abc"),
             ContainsSubstring("'a': expected data_offsets to be at most 3"));
  CHECK_THAT(with("{\"a\":" + entry("F32", "[2]", "[0,4]") + "}", four),
             ContainsSubstring("'a': expected 8 bytes"));
  for (const char* shape : {"[4611686018427387904,4]", "[4294967296,4294967296]",
                            "[0,9223372036854775807,9223372036854775807]"}) {
    CHECK_THAT(with("{\"a\":" + entry("F32", shape, "[0,0]") + "}"),
               ContainsSubstring("fits in 64 bits"));
  }
}

TEST_CASE("load_safetensors immediately rejects a path that is not a regular file") {
  const TempDir folder;
  const auto fifo = folder.path() / "fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  CHECK_THROWS_WITH(load_safetensors(fifo), ContainsSubstring("expected a regular file"));
  CHECK_THROWS_WITH(load_safetensors(folder.path()), ContainsSubstring("expected a regular file"));
  CHECK_THROWS_WITH(load_safetensors(folder.path() / "none"), ContainsSubstring("No such file"));
  folder.write("file", "");
  CHECK_THROWS_WITH(load_safetensors(folder.path() / std::string("file\0b", 6)),
                    ContainsSubstring("file: expected a path without NUL bytes"));
}

TEST_CASE("rejecting a safetensors file allocates no memory based on the sizes in its header",
          "[alone]") {
  const TempDir folder;
  const std::string bytes(1 << 20, ' ');
  load_safetensors(folder.write("good", with_length("{}" + bytes)));
  const double before = sconce::test::peak_memory();
  for (const char* shape : {"[4294967296,1024]", "[1099511627776]", "[1048576,1048576,4]"}) {
    for (const char* offsets : {"[0,4398046511104]", "[0,4]", "[4398046511104,4398046511108]"}) {
      refusal(folder, with_length("{\"a\":" + entry("F32", shape, offsets) + "}", bytes));
    }
  }
  for (const uint64_t length : {uint64_t{99'999'999}, uint64_t{1} << 40, ~uint64_t{0}}) {
    refusal(folder, std::string(reinterpret_cast<const char*>(&length), 8) + bytes);
  }
  refusal(folder, with_length(std::string(1 << 20, '{')));
  refusal(folder, with_length("{\"a\":" + std::string(1 << 20, '[')));
  CHECK(sconce::test::peak_memory() - before < 64);
}

TEST_CASE(
    "truncated safetensors files are rejected, and files with flipped header bits are rejected or "
    "read as in Python",
    "[python]") {
  const TempDir folder;
  const auto file = folder.path() / "file";
  StateDict state;
  state.insert("fc.weight", torch::arange(6.F).reshape({2, 3}));
  state.insert("fc.bias", torch::arange(2));
  save_safetensors(file, state);
  const std::string good = contents(file);
  for (size_t size = 0; size < good.size(); ++size) {
    refusal(folder, good.substr(0, size));
  }
  const size_t header = good.size() - 6 * 4 - 2 * 8;
  const auto flips = folder.path() / "flips";
  fs::create_directory(flips);
  int read = 0;
  for (size_t bit = 0; bit < header * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    const auto flipped = folder.write("flips/" + std::to_string(bit), bad);
    try {
      save_safetensors(flipped.string() + ".again", load_safetensors(flipped));
      ++read;
    } catch (const c10::Error&) {
    }
  }
  REQUIRE(read > 100);  // files with different names or types may still be valid
  std::string line;
  std::getline(ask_python(folder, "safetensors_files.py", "flipped"), line);
  CHECK(line == std::to_string(read) + " equal");
}

TEST_CASE(
    "save_safetensors rejects values that the format cannot store and keeps the earlier file") {
  const TempDir folder;
  const auto file = folder.write("file", "kept");
  const auto refuse = [&](const std::string& name, const torch::Tensor& tensor) -> std::string {
    StateDict state;
    state.insert(name, tensor);
    return error_of([&] { save_safetensors(file, state); });
  };
  CHECK_THAT(refuse("a", torch::ones({2}, torch::kComplexDouble)),
             ContainsSubstring("'a': expected a type that the format supports, got ComplexDouble"));
  CHECK_THAT(refuse("a", torch::eye(2).to_sparse()), ContainsSubstring("strided"));
  CHECK_THAT(refuse("a", torch::Tensor()), ContainsSubstring("strided"));
  CHECK_THAT(refuse("a", torch::ones({2}, torch::kMeta)), ContainsSubstring("strided"));
  CHECK_THAT(refuse("a", torch::zeros({1}, torch::kByte).view(c10::kFloat4_e2m1fn_x2)[0]),
             ContainsSubstring("'a': expected at least one dimension for a packed 4-bit dtype"));
  CHECK_THAT(refuse("__metadata__", torch::ones({2})),
             ContainsSubstring("a different tensor name, got a name"));
  CHECK_THAT(refuse("\xff", torch::ones({2})), ContainsSubstring("UTF-8"));
  CHECK(contents(file) == "kept");
  CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 1);
}

TEST_CASE(
    "loading and saving 500 safetensors files from Python reproduces them bit for bit, and views "
    "are saved as in Python",
    "[python]") {
  const TempDir folder;
  ask_python(folder, "safetensors_files.py", "made");
  fs::create_directory(folder.path() / "again");
  fs::create_directory(folder.path() / "more");
  for (int i = 0; i < 500; ++i) {
    const std::string name = std::to_string(i);
    const auto made = folder.path() / "made" / name;
    auto state = load_safetensors(made, {.mmap = i % 2 == 0});
    const auto metadata = load_safetensors_metadata(made);
    save_safetensors(folder.path() / "again" / name, state, metadata);
    for (const auto& item : StateDict(state)) {
      state.insert(item.key() + " twice", item.value());
      if (item.value().dim() > 1) {
        std::vector<int64_t> reversed(static_cast<size_t>(item.value().dim()));
        std::iota(reversed.rbegin(), reversed.rend(), 0);
        state.insert(item.key() + " turned", item.value().permute(reversed));
      }
    }
    save_safetensors(folder.path() / "more" / name, state, metadata);
  }
  std::string line;
  std::getline(ask_python(folder, "safetensors_files.py", "compared"), line);
  CHECK(line == "500 equal");
}

namespace {

torch::nn::Sequential small_model() {
  namespace nn = torch::nn;
  return nn::Sequential(nn::Conv2d(1, 4, 3), nn::BatchNorm2d(4), nn::ReLU(), nn::Flatten(),
                        nn::Linear(144, 10));
}

}  // namespace

TEST_CASE("a model trained in Python produces the same outputs in C++", "[python]") {
  const TempDir folder;
  ask_python(folder, "safetensors_files.py", "trained");
  const auto state = load_safetensors(folder.path() / "trained");
  auto net = small_model();
  const auto report = sconce::nn::load_state_dict(*net, state, {.strict = false});
  CHECK(report.missing_keys.empty());
  CHECK(report.unexpected_keys.size() == 2);  // x and y
  net->eval();
  const torch::NoGradGuard no_grad;
  CHECK(torch::equal(net->forward(state["x"]), state["y"]));
}

TEST_CASE("a model trained in C++ produces the same outputs in Python", "[python]") {
  const TempDir folder;
  torch::manual_seed(2);
  auto net = small_model();
  const auto x = torch::randn({32, 1, 8, 8});
  const auto y = torch::randint(10, {32});
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  for (int step = 0; step < 5; ++step) {
    optimizer.zero_grad();
    torch::nn::functional::cross_entropy(net->forward(x), y).backward();
    optimizer.step();
  }
  net->eval();
  auto state = sconce::nn::state_dict(*net);
  state.insert("x", x);
  state.insert("y", net->forward(x));
  save_safetensors(folder.path() / "from_cpp", state);
  std::string line;
  std::getline(ask_python(folder, "safetensors_files.py", "answered"), line);
  CHECK(line == "1 equal");
}

TEST_CASE("on a GPU, tensors saved to a safetensors file are loaded back onto the GPU", "[gpu]") {
  sconce::test::require_gpu();
  const TempDir folder;
  const auto file = folder.path() / "file";
  StateDict state;
  state.insert("x", torch::arange(12.F, torch::kCUDA).reshape({3, 4}).t());
  save_safetensors(file, state);
  const auto loaded = load_safetensors(file, {.device = torch::Device("cuda:0")})["x"];
  CHECK(loaded.device() == torch::Device("cuda:0"));
  CHECK(torch::equal(loaded, state["x"]));
}
