// Counts the memory of the readers of files, and lets each of their allocations fail.
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "catch.hpp"
#include "fuzz/archive.hpp"
#include "sconce/io/safetensors.hpp"
#include "sconce/io/torch_file.hpp"
#include "support/error_of.hpp"
#include "support/temp_dir.hpp"

using namespace std::string_literals;
using Catch::Matchers::ContainsSubstring;
using sconce::StateDict;
using sconce::io::load_safetensors;
using sconce::io::load_torch;
using sconce::test::TempDir;

namespace {

std::atomic<int64_t> live = 0, peak = 0;

// Allocations of this thread until one fails; none fails if it is negative.
thread_local int64_t until_failure = -1;
thread_local int64_t allocations = 0;

// LibTorch's Dict makes its table in a constructor that is noexcept, where a failure would end the
// process. The reader allocates more than that just before, so an allocation fails there instead.
bool is_table_of_dict(size_t size) {
  using Place = ska_ordered::detailv3::sherwood_v3_entry<std::pair<c10::IValue, c10::IValue>>;
  return size == sizeof(Place) || size == 4 * sizeof(Place);
}

}  // namespace

void* operator new(size_t size) {
  if (!is_table_of_dict(size)) {
    ++allocations;
    if (until_failure >= 0 && until_failure-- == 0) throw std::bad_alloc();
  }
  void* memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  const int64_t now = live += static_cast<int64_t>(malloc_usable_size(memory) + sizeof(size_t));
  for (int64_t most = peak; now > most && !peak.compare_exchange_weak(most, now);) {
  }
  return memory;
}

void operator delete(void* memory) noexcept {
  if (memory == nullptr) return;
  live -= static_cast<int64_t>(malloc_usable_size(memory) + sizeof(size_t));
  std::free(memory);
}

void operator delete(void* memory, size_t) noexcept {
  operator delete(memory);
}

namespace {

// Returns the most memory that the function has at one time, beside what there was before.
template <class F>
int64_t peak_of(const F& function) {
  const int64_t before = live;
  peak = before;
  function();
  return peak - before;
}

std::string repeated(const std::string& text, size_t size) {
  std::string all;
  while (all.size() < size) all += text;
  return all;
}

// A pickle whose memo has a function, its arguments, a tensor, and arguments of a parameter.
std::string with_memo() {
  return "ctorch._utils\n_rebuild_tensor_v2\nq\0((U\7storagectorch\nFloatStorage\n"s + "U\1" +
         "0U\3cpuK\4tq\5QK\0("s + repeated("K\1", 2 * 60) + "tq\6h\6\x89" +
         "ccollections\nOrderedDict\nq\7)Rtq\1h\0h\1Rq\2"s +
         "ctorch._utils\n_rebuild_parameter\nq\3(h\2\x88h\7)Rtq\4"s;
}

// State dicts of every kind of value and record.
std::vector<std::string> files_of_torch(const TempDir& folder) {
  const auto any = c10::AnyType::get();
  c10::impl::GenericDict state(any, any);
  c10::impl::GenericList list(any);
  for (const c10::IValue& value :
       {c10::IValue(), c10::IValue(true), c10::IValue(1.5), c10::IValue(int64_t{1} << 40),
        c10::IValue("a text that is too long to be stored inside a string"),
        c10::IValue(c10::ivalue::Tuple::create({1, "text"})),
        c10::IValue(torch::ones({2, 3}).set_requires_grad(true))}) {
    list.push_back(value);
  }
  for (int i = 0; i < 10; ++i) state.insert("weight" + std::to_string(i), torch::ones({i}));
  state.insert("list", list);
  const auto file = (folder.path() / "state.pt").string();
  sconce::io::save_torch(file, state);
  const auto pickle = "\x80\2ccollections\nOrderedDict\n)R}K\1("s + with_memo() +
                      "h\0h\1Rh\3h\4Rtsb."s;  // all of it becomes an attribute
  const auto archive = sconce::test::archive_of(pickle, {std::string(16, 'x')});
  return {file, folder.write("memo.pt", archive).string()};
}

// Lets each allocation of the function fail, one at a time. It throws then, or does without.
template <class F>
void fail_each_allocation(const F& function) {
  function();  // makes what is made once
  allocations = 0;
  function();
  const int64_t count = allocations;
  REQUIRE(count > 20);
  int64_t thrown = 0;
  for (int64_t i = 0; i < count; ++i) {
    until_failure = i;
    try {
      function();
    } catch (const std::exception&) {
      ++thrown;
    }
    until_failure = -1;
  }
  CHECK(thrown > count / 2);
  function();
}

}  // namespace

TEST_CASE(
    "reading and saving weights throws at each allocation that fails, and never ends the process") {
  const TempDir folder;
  for (const auto& file : files_of_torch(folder)) {
    fail_each_allocation([&] { load_torch(file); });
    const auto value = load_torch(file);
    fail_each_allocation([&] { sconce::io::save_torch(folder.path() / "again.pt", value); });
  }
  StateDict state;
  for (int i = 0; i < 5; ++i) state.insert("weight" + std::to_string(i), torch::ones({i}));
  const auto weights = folder.path() / "weights";
  sconce::io::save_safetensors(weights, state, {{"format", "pt"}});
  fail_each_allocation([&] { load_safetensors(weights); });
  fail_each_allocation([&] { sconce::io::save_safetensors(folder.path() / "again", state); });
  fail_each_allocation([&] { load_safetensors(weights, {.mmap = false}); });
  sconce::io::save_torch(folder.path() / "state", state);
  fail_each_allocation([&] { sconce::io::load_torch_state_dict(folder.path() / "state"); });
}

TEST_CASE("no value of a pickle takes more memory than 14 times its bytes and 48 MiB") {
  const TempDir folder;
  const std::string memo = with_memo();
  const std::vector<std::string> values = {"N",
                                           "]",
                                           "}",
                                           ")\x85",
                                           "(",
                                           "U\0"s,
                                           "U\x10" + std::string(16, 'x'),
                                           "h\5"s,
                                           "h\5Q"s,
                                           "h\0h\1R"s,
                                           "h\3h\4R"s,
                                           "h\7)R"s,
                                           "NN\x86",
                                           "NNN\x87",
                                           "(t",
                                           "(NNNNt",
                                           "ctorch\nint8\n",
                                           "]Na",
                                           "](NNNNNe",
                                           "}K\1Ns",
                                           "}(K\1NK\2NK\3Nu"};
  const auto check = [&](const std::string& pickle) {
    const auto archive = sconce::test::archive_of("\x80\2" + pickle, {std::string(16, 'x')});
    const auto file = folder.write("file", archive);
    const auto size = static_cast<int64_t>(archive.size());
    std::string error;
    CHECK(peak_of([&] { error = sconce::test::error_of([&] { load_torch(file); }); }) <=
          14 * size + (int64_t{48} << 20));
    CHECK_THAT(error, ContainsSubstring("max_expansion") ||
                          ContainsSubstring("expected 1 more bytes, found 0"));
  };
  for (const auto& value : values) {
    INFO(value);
    for (const size_t size : {100'000, 500'000}) check(memo + repeated(value, size));
  }
  const auto number = [](uint32_t i) { return std::string(reinterpret_cast<const char*>(&i), 4); };
  std::string numbers = "]", keys = "}", batches = "]", kept = "]N";
  for (uint32_t i = 0; i < 200'000; ++i) {
    numbers += "Na";
    keys += "J" + number(i) + "Ns";
    batches += "(NNNNNNNNNNe";
    kept += "r" + number(i);
  }
  for (const auto& pickle : {numbers, keys, batches, kept}) check(pickle);
}

TEST_CASE("no header of a safetensors file takes more memory than 16 times its bytes and 64 MB") {
  const TempDir folder;
  for (const int count : {1'000, 50'000}) {
    for (const bool is_empty : {true, false}) {
      std::string header = "{";
      for (int i = 0; i < count; ++i) {
        const auto from = std::to_string(is_empty ? 0 : i),
                   to = std::to_string(is_empty ? 0 : i + 1);
        header += (i > 0 ? ",\"" : "\"") + std::to_string(i) + R"(":{"dtype":"U8","shape":[)" +
                  (is_empty ? "0" : "1") + R"(],"data_offsets":[)" + from + "," + to + "]}";
      }
      header += "}";
      const uint64_t length = header.size();
      const auto bytes = std::string(reinterpret_cast<const char*>(&length), 8) + header +
                         std::string(is_empty ? 0 : static_cast<size_t>(count), 'x');
      const auto file = folder.write("file", bytes);
      for (const bool mmap : {true, false}) {
        INFO(count << " tensors, empty: " << is_empty << ", mapped: " << mmap);
        const auto q = peak_of([&] { load_safetensors(file, {.mmap = mmap}); });
        CHECK(q <= static_cast<int64_t>(16 * bytes.size()) + 64'000'000);
      }
    }
  }
}
