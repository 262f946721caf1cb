// Counts the memory that the file readers allocate, and makes each allocation in the readers fail
// in turn.
#include <zlib.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "catch.hpp"
#include "fuzz/archive.hpp"
#include "sconce/io/csv.hpp"
#include "sconce/io/safetensors.hpp"
#include "sconce/io/torch_file.hpp"
#include "sconce/program/program.hpp"
#include "support/allocations.hpp"
#include "support/error_of.hpp"
#include "support/repeated.hpp"
#include "support/temp_dir.hpp"
#include "support/thread_seconds.hpp"

using namespace std::string_literals;
using Catch::Matchers::ContainsSubstring;
using sconce::StateDict;
using sconce::io::load_safetensors;
using sconce::io::load_torch;
using sconce::test::bytes_of;
using sconce::test::fail_each_allocation;
using sconce::test::peak_of;
using sconce::test::repeated;
using sconce::test::TempDir;
using sconce::test::thread_seconds;

namespace {

// Returns a pickle whose memo contains a function, the function's arguments, a tensor, and the
// arguments of a parameter.
std::string with_memo() {
  return "ctorch._utils\n_rebuild_tensor_v2\nq\0((U\7storagectorch\nFloatStorage\n"s + "U\1" +
         "0U\3cpuK\4tq\5QK\0("s + repeated("K\1", 2 * 60) + "tq\6h\6\x89" +
         "ccollections\nOrderedDict\nq\7)Rtq\1h\0h\1Rq\2"s +
         "ctorch._utils\n_rebuild_parameter\nq\3(h\2\x88h\7)Rtq\4"s;
}

// Returns files that contain state dicts with every kind of value and record.
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

}  // namespace

TEST_CASE(
    "if any allocation fails, loading or saving weights throws and does not terminate the "
    "process") {
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

namespace {

// Pickled values of only a few bytes each, including values that use the pickle memo.
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

std::string number(uint32_t i) {
  return std::string(reinterpret_cast<const char*>(&i), 4);
}

// Returns a pickled string with the given number of letters. The pickle memoizes the string.
std::string long_text(uint32_t letters) {
  return "X" + number(letters) + std::string(letters, 'k') + "q\7";
}

// Doubles the size of a file three times, and checks that reading it allocates at most 2.5 times as
// many bytes each time. For a manual check, SCONCE_GROWTH_BYTES sets the size of the first file,
// and the CPU time is printed.
void check_growth(const std::string& name, const std::function<std::string(size_t)>& make,
                  const std::function<void(const std::filesystem::path&)>& read) {
  const TempDir folder;
  const char* chosen = std::getenv("SCONCE_GROWTH_BYTES");
  const size_t first = chosen != nullptr ? std::stoul(chosen) : 10'000;
  int64_t before = 0;
  for (size_t size = first; size <= 8 * first; size *= 2) {
    const auto file = folder.write("file", make(size));
    read(file);  // triggers one-time allocations
    const double begin = thread_seconds();
    const auto bytes = bytes_of([&] { read(file); });
    INFO(name << ": " << size);
    if (chosen != nullptr) WARN(bytes << " bytes, " << thread_seconds() - begin << " s");
    if (before > 0) CHECK(static_cast<double>(bytes) <= 2.5 * static_cast<double>(before));
    before = bytes;
  }
}

}  // namespace

TEST_CASE(
    "doubling the length of a pickle increases the number of bytes allocated to read it by at most "
    "a factor of 2.5") {
  const auto check = [](const std::string& name, const auto& pickle) {
    check_growth(
        name,
        [&](size_t size) {
          return sconce::test::archive_of("\x80\2" + pickle(size) + ".", {std::string(16, 'x')});
        },
        [](const auto& file) { load_torch(file, {.max_expansion = 1'000'000}); });
  };
  for (const auto& value : {"N", "]", "}", ")\x85", "NN\x86", "}K\1Ns", "]Na"}) {
    check(value, [&](size_t size) { return "](" + repeated(value, size) + "e"; });
  }
  check("tensors", [](size_t size) {  // all of it becomes an attribute, which is dropped
    return "ccollections\nOrderedDict\n)R}K\1(" + with_memo() + "](" + repeated("h\0h\1R"s, size) +
           "etsb";
  });
  const auto count = [](size_t size, size_t each) { return static_cast<uint32_t>(size / each); };
  check("keys", [&](size_t size) {
    std::string keys = "}";
    for (uint32_t i = 0; i < count(size, 7); ++i) keys += "J" + number(i) + "Ns";
    return keys;
  });
  check("entries of the memo", [&](size_t size) {
    std::string kept = "N";
    for (uint32_t i = 0; i < count(size, 5); ++i) kept += "r" + number(i);
    return kept;
  });
  check("a long text from the memo", [&](size_t size) {
    return "](" + long_text(count(size, 2)) + repeated("h\7", size / 2) + "e";
  });
}

// Without the max_expansion limit, reading an n-byte file would take O(n^2) time.
TEST_CASE("a long key in the pickle memo counts toward max_expansion each time it is used") {
  const TempDir folder;
  for (const std::string& use : {"}h\7Ns"s, "}h\7j\7\0\0\0s"s, "}(h\7Nh\7Nh\7Nu"s}) {
    const auto read = [&](size_t uses) {
      const auto pickle =
          "\x80\2]("s + long_text(100'000) + repeated(use, uses * use.size()) + "e.";
      const auto file = folder.write("file", sconce::test::archive_of(pickle, {}));
      return sconce::test::error_of([&] { load_torch(file); });
    };
    INFO(use);
    CHECK(read(100) == "nothing was thrown");
    CHECK_THAT(read(1'000), ContainsSubstring("max_expansion"));
  }
}

TEST_CASE("a long string referenced repeatedly through the pickle memo is saved only once") {
  const TempDir folder;
  const auto pickle = "\x80\2]("s + long_text(100'000) + repeated("h\7", 20'000) + "e.";
  const auto file = folder.write("file", sconce::test::archive_of(pickle, {}));
  const auto value = load_torch(file);
  const auto again = folder.path() / "again";
  CHECK(bytes_of([&] { sconce::io::save_torch(again, value); }) < 16'000'000);
  CHECK(std::filesystem::file_size(again) < 2 * std::filesystem::file_size(file));
}

TEST_CASE(
    "doubling the length of a table or header increases the number of bytes allocated to read it "
    "by at most a factor of 2.5") {
  const auto check_table = [](const std::string& name, const auto& text,
                              const sconce::io::CsvOptions& options = {}) {
    check_growth(name, text, [&](const auto& file) {
      sconce::test::error_of([&] { sconce::io::read_csv(file, options); });
    });
  };
  const auto list = [](const std::string& begin, size_t size, const std::string& end) {
    std::string all;
    for (size_t i = 0; all.size() < size; ++i) all += begin + std::to_string(i) + end;
    return all;
  };
  const sconce::io::CsvOptions large = {.max_categories = 1 << 20, .max_bytes = int64_t{1} << 34};
  check_table("commas", [](size_t size) { return std::string(size, ','); });
  check_table("rows", [](size_t size) { return "a,b\n" + repeated("1,2\n", size); });
  check_table(
      "columns",
      [&](size_t size) {
        const std::string names = list("c", size, ",");
        const auto columns = static_cast<size_t>(std::count(names.begin(), names.end(), ','));
        return names + "c\n" + repeated("1,", 2 * columns) + "1";
      },
      large);
  check_table("quotes", [](size_t size) { return "a\n\"" + std::string(size, '"') + "\"\n"; });
  check_table("bad rows", [](size_t size) { return "a,b\n1,2" + repeated("\n3", size); });
  const auto check_header = [](const std::string& name, const auto& header) {
    check_growth(
        name,
        [&](size_t size) {
          const std::string text = header(size);
          const uint64_t length = text.size();
          return std::string(reinterpret_cast<const char*>(&length), 8) + text;
        },
        [](const auto& file) { load_safetensors(file); });
  };
  check_header("tensors", [&](size_t size) {
    const std::string all =
        list("\"", size, R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)");
    return "{" + all.substr(0, all.size() - 1) + "}";
  });
  check_header("metadata", [&](size_t size) {
    const std::string all = list("\"", size, R"(":"x",)");
    return R"({"__metadata__":{)" + all.substr(0, all.size() - 1) + "}}";
  });
}

TEST_CASE("loading any pickle uses at most 48 MiB of memory plus 14 times the pickle size") {
  const TempDir folder;
  const std::string memo = with_memo();
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
  std::string numbers = "]", keys = "}", batches = "]", kept = "]N";
  for (uint32_t i = 0; i < 200'000; ++i) {
    numbers += "Na";
    keys += "J" + number(i) + "Ns";
    batches += "(NNNNNNNNNNe";
    kept += "r" + number(i);
  }
  for (const auto& pickle : {numbers, keys, batches, kept}) check(pickle);
}

TEST_CASE(
    "loading any safetensors header uses at most 64 MB of memory plus 16 times the header size") {
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

TEST_CASE("loading a program uses at most 64 MB of memory plus 64 times the file size") {
  const TempDir folder;
  const auto file = folder.path() / "net";
  const auto check = [&](const std::string& json) {
    const auto* bytes = reinterpret_cast<const Bytef*>(json.data());
    char checksum[9];
    std::snprintf(checksum, sizeof(checksum), "%08lx", crc32_z(0, bytes, json.size()));
    sconce::io::save_safetensors(file, sconce::StateDict(),
                                 {{"sconce.program", json}, {"sconce.program.crc32", checksum}});
    const auto size = static_cast<int64_t>(std::filesystem::file_size(file));
    const auto peak =
        peak_of([&] { sconce::test::error_of([&] { sconce::program::Program::load(file); }); });
    INFO(json.substr(0, 400) << "..., " << size << " bytes, "
                             << static_cast<double>(peak) / static_cast<double>(size));
    CHECK(peak <= 64 * size + 64'000'000);
  };
  const auto list = [](const std::string& element) {
    return "[" + element + repeated("," + element, 1'000'000) + "]";
  };
  const auto program = [](const std::string& calls, const std::string& values = "2") {
    return R"({"version": 1, "device": "cpu", "sizes": [], "weights": [], "crc32": {}, "example": false,
               "inputs": [{"name": "x", "value": 0, "dtype": "float32", "shape": [2]}],
               "outputs": [{"name": "y", "value": 1, "dtype": "float32", "shape": [2]}],
               "values": )" +
           values + R"(, "calls": [)" + calls + "]}";
  };
  const auto call = [](const std::string& op, const std::string& args) {
    return R"({"op": "aten::)" + op + R"(", "overload": "", "args": {"self": {"value": 0}, )" +
           args + R"(}, "results": [1]})";
  };
  for (const char* element : {"0", "[]", "{}", "null", "\"\"", "{\"value\":0}", "{\"sum\":[]}"}) {
    check(program(call("reshape", "\"shape\": " + list(element))));
  }
  check(program(call("tanh", "\"other\": 0"), "1" + repeated(" ", 1'000'000)));
  check("{\"sizes\":" + list("{}") + "}");
}
