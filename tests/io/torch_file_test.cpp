#include "sconce/io/torch_file.hpp"

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>

#include "catch.hpp"
#include "fuzz/archive.hpp"
#include "sconce/amp/grad_scaler.hpp"
#include "sconce/devices.hpp"
#include "sconce/nn/state_dict.hpp"
#include "support/ask_python.hpp"
#include "support/colliding_names.hpp"
#include "support/error_of.hpp"
#include "support/peak_memory.hpp"
#include "support/require_gpu.hpp"
#include "support/sanitized.hpp"
#include "support/temp_dir.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::StateDict;
using sconce::io::as_ivalue;
using sconce::io::as_state_dict;
using sconce::io::load_torch;
using sconce::io::load_torch_state_dict;
using sconce::io::save_torch;
using sconce::test::contents;
using sconce::test::error_of;
using sconce::test::TempDir;

namespace {

namespace fs = std::filesystem;

using Dict = c10::impl::GenericDict;
using List = c10::impl::GenericList;

Dict dict() {
  return Dict(c10::AnyType::get(), c10::AnyType::get());
}

List list() {
  return List(c10::AnyType::get());
}

c10::IValue entry(const c10::IValue& dict, const c10::IValue& key) {
  return dict.toGenericDict().at(key);
}

// Returns a list that contains a value of each kind. The values are small enough for the tests to
// flip every bit in a saved file.
c10::IValue something() {
  const auto shared = torch::arange(6.F).reshape({2, 3});
  Dict state = dict();
  state.insert("weight", shared);
  state.insert("row", shared[1].set_requires_grad(true));
  state.insert("count", torch::tensor(7));
  List items = list();
  items.push_back(c10::IValue());
  items.push_back(true);
  items.push_back(-2.5);
  Dict all = dict();
  all.insert("state", state);
  all.insert(3, items);
  all.insert("pair", c10::ivalue::Tuple::create({int64_t{1} << 40, "text"}));
  return all;
}

bool same(const c10::IValue& a, const c10::IValue& b);

bool same_tensors(const torch::Tensor& a, const torch::Tensor& b) {
  return a.dtype() == b.dtype() && a.sizes() == b.sizes() && a.strides() == b.strides() &&
         a.requires_grad() == b.requires_grad() && torch::equal(a, b);
}

bool same_items(c10::ArrayRef<c10::IValue> a, c10::ArrayRef<c10::IValue> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
}

bool same(const c10::IValue& a, const c10::IValue& b) {
  if (a.tagKind() != b.tagKind()) return false;
  if (a.isTensor()) return same_tensors(a.toTensor(), b.toTensor());
  if (a.isTuple()) return same_items(a.toTupleRef().elements(), b.toTupleRef().elements());
  if (a.isList()) return same_items(a.toListRef(), b.toListRef());
  if (!a.isGenericDict()) return a == b;
  const auto x = a.toGenericDict(), y = b.toGenericDict();
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const auto& i, const auto& j) {
    return i.key() == j.key() && same(i.value(), j.value());
  });
}

std::string refusal(const fs::path& file) {
  return error_of([&] { load_torch(file); });
}

}  // namespace

TEST_CASE("load_torch reads Python's state dicts, and save_torch writes them back unchanged",
          "[python]") {
  const TempDir folder;
  int cases = 0;
  sconce::test::ask_python(folder, "torch_file.py", "generate") >> cases;
  REQUIRE(cases == 500);
  for (int i = 0; i < cases; ++i) {
    const auto file = folder.path() / "generate.d" / std::to_string(i);
    INFO(file);
    const auto loaded = load_torch(file.string() + ".pt");
    save_torch(file.string() + ".back.pt", loaded);
    if (i % 10 > 0) continue;
    const auto state = loaded.toGenericDict().at("scaler");
    sconce::amp::GradScaler scaler({.device = torch::kCPU, .init_scale = 1});
    scaler.load_state_dict(state);
    CHECK(c10::str(scaler.state_dict()) == c10::str(state));
  }
  std::stringstream differing;
  differing << sconce::test::ask_python(folder, "torch_file.py", "compare").rdbuf();
  CHECK(differing.str() == "");
}

TEST_CASE(
    "load_torch rejects a file that is not a state dict archive, names the file in the error, and "
    "executes no code",
    "[python]") {
  const TempDir folder;
  auto lines = sconce::test::ask_python(folder, "torch_file.py", "refusals");
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const auto name = line.substr(0, line.find('\t'));
    const auto file = folder.path() / "refusals.d" / name;
    INFO(name);
    CHECK_THAT(refusal(file), ContainsSubstring(line.substr(line.find('\t') + 1)));
    if (!name.starts_with("good"))
      CHECK_THAT(refusal(file), ContainsSubstring(file.string() + ": "));
  }
  CHECK(count > 80);
  CHECK_FALSE(fs::exists("ran"));
}

TEST_CASE("load_torch immediately rejects a path that is not a regular file") {
  const TempDir folder;
  const auto fifo = folder.path() / "fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  CHECK_THAT(refusal(fifo), ContainsSubstring("expected a regular file"));
  CHECK_THAT(refusal(folder.path()), ContainsSubstring("expected a regular file"));
  CHECK_THAT(refusal(folder.path() / "none"), ContainsSubstring("No such file"));
}

TEST_CASE(
    "saving and loading preserves values and tensors, and tensors that shared storage still share "
    "it") {
  const TempDir folder;
  const auto file = folder.path() / "file";
  save_torch(file, something());
  const auto loaded = load_torch(file);
  CHECK(same(loaded, something()));
  const auto weight = entry(entry(loaded, "state"), "weight").toTensor();
  CHECK(entry(entry(loaded, "state"), "row").toTensor().is_alias_of(weight));
  CHECK(entry(entry(loaded, "state"), "row").toTensor().storage_offset() == 3);
}

TEST_CASE(
    "load_torch_state_dict loads a saved module's state dict and rejects files that contain "
    "anything else") {
  const TempDir folder;
  const torch::nn::Linear from(3, 2);
  torch::nn::Linear to(3, 2);
  const auto file = folder.path() / "file";
  save_torch(file, sconce::nn::state_dict(*from));
  sconce::nn::load_state_dict(*to, load_torch_state_dict(file));
  CHECK(torch::equal(from->weight, to->weight));
  CHECK(same(as_ivalue(as_state_dict(load_torch(file))), load_torch(file)));
  save_torch(file, something());
  CHECK_THAT(error_of([&] { load_torch_state_dict(file); }),
             ContainsSubstring("load_torch_state_dict: " + file.string() +
                               ": ['state']: expected a tensor, got a dict"));
  CHECK_THAT(error_of([] { as_state_dict(something()); }),
             ContainsSubstring("as_state_dict: ['state']: expected a tensor, got a dict"));
  CHECK_THAT(error_of([] { as_state_dict(3); }),
             ContainsSubstring("expected a dict of tensors, got an int"));
  Dict numbered = dict();
  numbered.insert(3, torch::ones({1}));
  CHECK_THAT(error_of([&] { as_state_dict(numbered); }),
             ContainsSubstring("keys of type str, got 3"));
}

TEST_CASE("save_torch stores shared storage and repeated tensors only once") {
  const TempDir folder;
  const auto big = torch::zeros({1000, 100});
  List views = list();
  for (int i = 0; i < 5; ++i) views.push_back(big[i]);
  views.push_back(big);
  views.push_back(big);
  save_torch(folder.path() / "file", views);
  CHECK(fs::file_size(folder.path() / "file") < 410'000);
  const auto loaded = load_torch(folder.path() / "file").toListRef().vec();
  loaded[0].toTensor().fill_(1);
  CHECK(loaded[5].toTensor().sum().item<int>() == 100);
  CHECK(loaded[5].toTensor().is_same(loaded[6].toTensor()));
}

TEST_CASE(
    "tensors whose dtypes have no storage class in Python still share memory after they are "
    "loaded") {
  const TempDir folder;
  const auto bytes = torch::arange(8, torch::kByte);
  List views = list();
  views.push_back(bytes);
  views.push_back(bytes.view(torch::kFloat8_e5m2));
  views.push_back(bytes.view(torch::kUInt16));
  save_torch(folder.path() / "file", views);
  const auto loaded = load_torch(folder.path() / "file").toListRef().vec();
  const auto first = loaded[0].toTensor();
  CHECK(torch::equal(first, bytes));
  for (size_t i = 1; i < 3; ++i) {
    const auto view = loaded[i].toTensor();
    CHECK(view.scalar_type() == views.get(i).toTensor().scalar_type());
    CHECK(view.is_alias_of(first));
    CHECK(torch::equal(view.view(torch::kByte), bytes));
  }
}

TEST_CASE("tensors with no elements keep their dtypes when they are saved") {
  const TempDir folder;
  const auto empty = torch::ones({0, 3});
  List views = list();
  views.push_back(empty);
  views.push_back(empty.view(torch::kInt));
  save_torch(folder.path() / "file", views);
  const auto loaded = load_torch(folder.path() / "file").toListRef().vec();
  CHECK(same_tensors(loaded[0].toTensor(), empty));
  CHECK(same_tensors(loaded[1].toTensor(), empty.view(torch::kInt)));
}

TEST_CASE("containers that are referenced many times remain small in the file and in memory") {
  const TempDir folder;
  c10::IValue value = list();
  for (int i = 0; i < 60; ++i) {  // 2^60 values if every reference were a copy
    List twice = list();
    twice.push_back(value);
    twice.push_back(value);
    value = twice;
  }
  save_torch(folder.path() / "file", value);
  const auto loaded = load_torch(folder.path() / "file").toListRef().vec();
  CHECK(loaded[0].is(loaded[1]));
}

TEST_CASE("save_torch rejects values that Python could not load and keeps the earlier file") {
  const TempDir folder;
  const auto file = folder.write("file", "kept");
  const auto refuse = [&](const c10::IValue& value) {
    List items = list();
    items.push_back(value);
    Dict state = dict();
    state.insert("state", items);
    return error_of([&] { save_torch(file, state); });
  };
  const auto place = "sconce::io::save_torch: " + file.string() + ": ['state'][0]: expected ";
  const auto dense = "a strided tensor with data";
  CHECK_THAT(refuse(torch::eye(2).to_sparse()), ContainsSubstring(place + dense));
  CHECK_THAT(refuse(torch::ones({2}, torch::kMeta)), ContainsSubstring(place + dense));
  CHECK_THAT(refuse(torch::_efficientzerotensor({2})), ContainsSubstring(place + dense));
  CHECK_THAT(refuse(torch::Tensor()), ContainsSubstring(place + "a tensor, got an undefined one"));
  CHECK_THAT(refuse(torch::quantize_per_tensor(torch::ones({2}), 1, 0, torch::kQInt8)),
             ContainsSubstring(place + "a tensor type that save_torch supports, got QInt8"));
  CHECK_THAT(refuse(c10::IValue(c10::complex<double>(1, 2))), ContainsSubstring("got Complex"));
  CHECK_THAT(refuse("\xff"), ContainsSubstring(place + "a str of valid UTF-8"));
  const auto freed = torch::ones({2});
  freed.storage().unsafeGetStorageImpl()->set_nbytes(0);
  CHECK_THAT(refuse(freed), ContainsSubstring(place + "a tensor that fits in its storage"));
  c10::Dict<double, int64_t> by_float;
  by_float.insert(0.5, 1);
  CHECK_THAT(refuse(by_float), ContainsSubstring(place + "a dict with str or int keys, got Dou"));
  const auto number = torch::ones({2});
  CHECK_THAT(refuse(c10::ivalue::Tuple::create({number, number.view(torch::kInt)})),
             ContainsSubstring("[1]: expected tensors that share memory to have the same type"));
  List own = list();
  own.push_back(own);
  CHECK_THAT(refuse(own), ContainsSubstring("[0]: expected containers without cycles"));
  own.clear();
  c10::IValue deep = list();
  for (int i = 0; i < 1000; ++i) deep = c10::ivalue::Tuple::create({deep});
  CHECK_THAT(refuse(deep), ContainsSubstring("containers nested at most 1000 levels deep"));
  CHECK(contents(file) == "kept");
  CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 1);
}

TEST_CASE("save_torch reports the path and the cause of a failed write and keeps the earlier file",
          "[alone]") {
  const TempDir folder;
  const auto file = folder.write("file", "kept");
  List items = list();
  for (int i = 0; i < 5; ++i) items.push_back(torch::zeros({1000}));
  rlimit before = {};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto limit_files_to = [&](rlim_t size) {
    const rlimit limit = {size, before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
  };
  ::signal(SIGXFSZ, SIG_IGN);
  for (const rlim_t size : {0, 100, 5000, 15000, 21000, 22000}) {
    limit_files_to(size);
    const auto error = error_of([&] { save_torch(file, items); });
    limit_files_to(before.rlim_cur);
    INFO(size);
    CHECK_THAT(error, ContainsSubstring("save_torch: " + file.string() +
                                        ": cannot write it: File "
                                        "too large"));
    CHECK(contents(file) == "kept");
  }
  CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 1);
}

TEST_CASE(
    "loading a truncated torch file throws, and loading a file with a flipped bit either throws or "
    "returns the original values",
    "[alone]") {
  const TempDir folder;
  const auto file = folder.path() / "file";
  save_torch(file, something());
  const std::string good = contents(file);
  load_torch(file);
  const double memory = sconce::test::peak_memory();
  for (size_t size = 0; size < good.size(); ++size) {
    folder.write("file", good.substr(0, size));
    REQUIRE(refusal(file) != "nothing was thrown");
  }
  const auto expected = something();
  int harmless = 0;
  folder.write("file", good);
  std::fstream bytes(file, std::ios::binary | std::ios::in | std::ios::out);
  const auto put = [&](size_t at, int byte) {
    bytes.seekp(static_cast<std::streamoff>(at)).put(static_cast<char>(byte)).flush();
  };
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    put(bit / 8, good[bit / 8] ^ (1 << (bit % 8)));
    try {
      const auto loaded = load_torch(file);
      ++harmless;
      INFO("bit " << bit % 8 << " of byte " << bit / 8);
      REQUIRE(same(loaded, expected));
    } catch (const c10::Error&) {
    }
    put(bit / 8, good[bit / 8]);
  }
  CHECK(harmless > 0);  // damaged padding goes undetected
  CHECK(sconce::test::peak_memory() - memory < 64);
  CHECK(same(load_torch(file), expected));
}

TEST_CASE("each of 2,000 flipped bits in a file's tensor data causes an error") {
  const TempDir folder;
  const auto file = folder.path() / "file";
  const auto numbers = torch::arange(5000.F);
  save_torch(file, numbers);
  std::string bytes = contents(file);
  const std::string own(static_cast<const char*>(numbers.const_data_ptr()), numbers.nbytes());
  const size_t begin = bytes.find(own);
  REQUIRE(begin != std::string::npos);
  torch::manual_seed(0);
  const auto bits = torch::randint(static_cast<int64_t>(own.size()) * 8, {2000}, torch::kLong);
  for (int64_t i = 0; i < bits.numel(); ++i) {
    const auto bit = static_cast<size_t>(bits[i].item<int64_t>());
    auto flipped = bytes;
    flipped[begin + bit / 8] = static_cast<char>(flipped[begin + bit / 8] ^ (1 << (bit % 8)));
    folder.write("file", flipped);
    INFO("bit " << bit);
    REQUIRE_THAT(refusal(file), ContainsSubstring("/data/0': expected the checksum"));
  }
}

TEST_CASE(
    "load_torch rejects an archive that contains a comment, and the error mentions the comment") {
  const TempDir folder;
  const auto file = folder.path() / "file";
  save_torch(file, something());
  std::string bytes = contents(file);
  bytes[bytes.size() - 2] = 5;
  folder.write("file", bytes + "hello");
  CHECK(refusal(file) ==
        "sconce::io::load_torch: " + file.string() +
            ": expected a zip archive without a comment, got a comment of 5 bytes");
  folder.write("file", bytes + "hell");
  CHECK_THAT(refusal(file), ContainsSubstring("the file is cut short or damaged"));
}

TEST_CASE("load_torch reads a file with many tiny values only if max_expansion is large enough") {
  using namespace std::string_literals;
  const TempDir folder;
  std::string pickle = "\x80\2](";
  for (int i = 0; i < 200'000; ++i) pickle += "}";
  const auto file = folder.write("file", sconce::test::archive_of(pickle + "e.", {}));
  CHECK_THAT(refusal(file),
             ContainsSubstring("'archive/data.pkl': expected a file that needs at most ") &&
                 ContainsSubstring(" (50331648 and max_expansion = 12 bytes for each byte of the "
                                   "file), got a file that needs more"));
  CHECK(load_torch(file, {.max_expansion = 1000}).toListRef().size() == 200'000);
  CHECK(load_torch(file, {.max_expansion = ~uint64_t{0}}).toListRef().size() == 200'000);
}

TEST_CASE("load_torch_state_dict rejects names crafted to collide in a hash table") {
  const TempDir folder;
  Dict state = dict();
  for (const auto& name : sconce::test::names_of_one_bucket(500))
    state.insert(name, torch::ones(1));
  save_torch(folder.path() / "file", state);
  CHECK_THAT(error_of([&] { load_torch_state_dict(folder.path() / "file"); }),
             ContainsSubstring("expected names with different hashes"));
  CHECK(load_torch(folder.path() / "file").toGenericDict().size() == 500);
}

TEST_CASE("load_torch reads a file without checksums unless checksums are required") {
  const TempDir folder;
  const auto file = folder.path() / "file";
  save_torch(file, something());
  folder.write("file", sconce::test::without_checksums(file));
  CHECK(same(load_torch(file), something()));
  CHECK_THAT(error_of([&] { load_torch(file, {.require_checksums = true}); }),
             ContainsSubstring(file.string() + ": expected an archive with checksums"));
}

TEST_CASE("load_torch frees unused, self-referential, and deeply nested values in a pickle",
          "[alone]") {
  using namespace std::string_literals;
  const TempDir folder;
  const std::string text = "X\xa0\x86\1\0"s + std::string(100'000, 'x');
  const std::string list_of_itself = "]q\0(h\0"s + text + "e",
                    dict_of_itself = "}q\0K\1h\0sK\2"s + text + "s";
  const std::string deep = ")" + std::string(100'000, '\x85');
  const auto read = [&](const std::string& pickle) {
    folder.write("file", sconce::test::archive_of("\x80\2" + pickle + ".", {}));
    return refusal(folder.path() / "file");
  };
  const auto beside = [](const std::string& attribute) {
    return "ccollections\nOrderedDict\n)R}K\1" + attribute + "sb";
  };
  double before = 0;
  for (int i = 0; i < sconce::test::rounds(1000, 50); ++i) {
    if (i == 10) before = sconce::test::peak_memory();
    REQUIRE_THAT(read(list_of_itself), ContainsSubstring("containers without cycles, got a list"));
    REQUIRE_THAT(read(dict_of_itself), ContainsSubstring("containers without cycles, got a dict"));
    REQUIRE(read(beside(list_of_itself)) == "nothing was thrown");
    if (i % 100 == 0) {
      REQUIRE(read(beside(deep)) == "nothing was thrown");
      REQUIRE_THAT(read(deep), ContainsSubstring("at most 1000 levels deep"));
    }
  }
  CHECK(sconce::test::peak_memory() - before < 64);
}

TEST_CASE(
    "on a GPU, saved tensors are loaded back onto the GPU, and tensors that shared storage still "
    "share it",
    "[gpu]") {
  sconce::test::require_gpu();
  const TempDir folder;
  const auto weight = torch::arange(6.F, torch::kCUDA).reshape({2, 3});
  List items = list();
  items.push_back(weight.t());
  items.push_back(weight[1]);
  save_torch(folder.path() / "file", items);
  const auto here = load_torch(folder.path() / "file").toListRef().vec();
  CHECK(same_tensors(here[0].toTensor(), weight.cpu().t()));
  const auto there = load_torch(folder.path() / "file", {.device = torch::kCUDA}).toListRef().vec();
  CHECK(same_tensors(there[0].toTensor(), weight.t()));
  CHECK(there[1].toTensor().is_alias_of(there[0].toTensor()));
}
