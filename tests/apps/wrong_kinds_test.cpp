// Checks that each reader reports the file and the problem when it reads a complete or truncated
// file of the wrong kind.
#include <caffe2/serialize/inline_container.h>
#include <torch/nn/modules/linear.h>
#include <torch/serialize.h>

#include <functional>
#include <map>
#include <random>
#include <regex>
#include <set>

#include "apps/run_example.hpp"
#include "apps/run_train.hpp"
#include "catch.hpp"
#include "sconce/io/csv.hpp"
#include "sconce/io/safetensors.hpp"
#include "sconce/io/torch_file.hpp"
#include "sconce/nn/state_dict.hpp"
#include "sconce/training/checkpoint.hpp"
#include "sconce/vision/idx.hpp"
#include "sconce/vision/image.hpp"
#include "support/check_refused.hpp"
#include "support/error_of.hpp"
#include "support/temp_dir.hpp"
#include "train/model_file.hpp"
#include "train/saved_run.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::test::contents;
using sconce::test::error_of;
using sconce::test::names_in;
using sconce::test::TempDir;

namespace {

namespace fs = std::filesystem;
namespace io = sconce::io;

constexpr auto file_name = "checkpoint-000001-00000000.pt";

torch::nn::Linear net_of_kinds() {
  return torch::nn::Linear(3, 2);
}

// Returns an archive in the format that Python's compiler creates from a program, but without
// machine code.
std::string package() {
  std::string bytes;
  {
    caffe2::serialize::PyTorchStreamWriter archive([&](const void* data, size_t size) {
      bytes.append(static_cast<const char*>(data), size);
      return size;
    });
    archive.writeRecord("archive_format", "pt2", 3);
    archive.writeRecord("data/aotinductor/model/model.so", "code", 4);
    archive.writeEndOfFile();
  }
  return bytes;
}

// Returns the bytes of one file of each kind.
std::map<std::string, std::string> files_by_kind() {
  const TempDir folder;
  const auto file = [&](const std::string& name) { return folder.path() / name; };
  auto net = net_of_kinds();
  const auto state = sconce::nn::state_dict(*net);
  const sconce::NamedStates parts = {{"model", *net}};
  sconce::Checkpoint(folder.path()).save(parts, {.epoch = 1});
  io::save_torch(file("state.pt"), state);
  io::save_safetensors(file("plain.safetensors"), state);
  const train::Task task{.shape = {1, 2, 2}, .mean = {0}, .std = {1}, .classes = {"a", "b"}};
  io::save_safetensors(file("model.safetensors"),
                       sconce::nn::state_dict(*train::make_model("linear", task.shape, 2)),
                       train::model_metadata("linear", task));
  torch::save(net, file("script.ts").string());
  sconce::vision::write_png(torch::zeros({3, 4, 5}, torch::kByte), file("picture.png"));
  using std::string_literals::operator""s;
  return {{"checkpoint", contents(file(file_name))},
          {"state dict", contents(file("state.pt"))},
          {"safetensors", contents(file("plain.safetensors"))},
          {"model", contents(file("model.safetensors"))},
          {"TorchScript", contents(file("script.ts"))},
          {"package", package()},
          {"picture", contents(file("picture.png"))},
          {"IDX", "\0\0\x08\1\0\0\0\4\5\6\7\x08"s},
          {"CSV", "rooms,price\n3,2.5\n4,3.5\n"},
          {"pickle", "\x80\2}q\1."},
          {"gzip", "\x1f\x8b\x08\0\0\0\0\0\0\3\3\0\0\0\0\0\0\0\0\0"s},
          {"Git LFS", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 7\n"},
          {"HTML", "<!DOCTYPE html>\n<html><body>Not found</body></html>\n"},
          {"nothing", ""}};
}

struct Reader {
  std::function<void(const fs::path&)> read;
  std::set<std::string> kinds;  // the kinds of files that it reads
  std::string names;            // words in its errors: the kind, or a key or position in the file
};

std::map<std::string, Reader> readers() {
  const std::string torch_names = "zip archive|archive written|zip directory|tensors, got|'\\w+'";
  const std::string safetensors_names = "safetensors file|header|metadata";
  return {
      {"checkpoint",
       {[](const fs::path& path) {
          auto net = net_of_kinds();
          const sconce::NamedStates parts = {{"model", *net}};
          sconce::Checkpoint(path.parent_path(), {.resume = true}).load(parts);
        },
        {"checkpoint"},
        torch_names}},
      {"saved run", {[](const fs::path& path) { train::read_saved_run(path); }, {}, torch_names}},
      {"state dict",
       {[](const fs::path& path) { io::load_torch_state_dict(path); },
        {"state dict"},
        torch_names}},
      {"safetensors",
       {[](const fs::path& path) { io::load_safetensors(path); },
        {"safetensors", "model"},
        safetensors_names}},
      {"model",
       {[](const fs::path& path) { train::load_model(path); }, {"model"}, safetensors_names}},
      {"--weights",
       {[](const fs::path& path) { train::load_pretrained(path, "lenet"); },
        {"state dict", "safetensors", "model"},
        torch_names + '|' + safetensors_names}},
      {"CSV",
       {[](const fs::path& path) { io::read_csv(path, {.target = "price"}); },
        {"CSV"},
        "line \\d+|names|'price'"}},
      {"IDX",
       {[](const fs::path& path) { sconce::vision::read_idx(path); },
        {"IDX"},
        "magic number|dimensions|type|payload|gzip stream"}},
      {"picture",
       {[](const fs::path& path) { sconce::vision::read_image(path); },
        {"picture"},
        "PNG or JPEG|PNG|JPEG"}}};
}

}  // namespace

TEST_CASE(
    "each of 500 files of the wrong kind is rejected with an error that names the file and its "
    "kind") {
  const auto kinds = files_by_kind();
  const auto all = readers();
  std::mt19937 random(1);
  const auto any_of = [&](const auto& items) {
    return *std::next(items.begin(), static_cast<int64_t>(random() % items.size()));
  };
  for (int i = 0; i < 500; ++i) {
    const auto& [name, reader] = *std::next(all.begin(), i % std::ssize(all));
    auto [kind, bytes] = any_of(kinds);
    const bool is_right = reader.kinds.contains(kind);
    if (is_right || random() % 2 == 0) bytes.resize(random() % (bytes.size() + (is_right ? 0 : 1)));
    const TempDir folder;
    const fs::path file = folder.write(file_name, bytes);
    const std::string error = error_of([&, read = reader.read] { read(file); });
    INFO(name << " given " << bytes.size() << " bytes of " << kind << ": " << error);
    CHECK_THAT(error, ContainsSubstring(file.string()));
    CHECK(std::regex_search(std::regex_replace(error, std::regex("checkpoint-\\S*"), ""),
                            std::regex(reader.names)));
    CHECK_THAT(error, !ContainsSubstring("INTERNAL ASSERT") && !ContainsSubstring("report a bug"));
    CHECK(names_in(folder.path()) == std::vector<std::string>{file_name});
    CHECK(contents(file) == bytes);
  }
}

TEST_CASE(
    "programs reject a file of the wrong kind with an error that names the file, and write "
    "nothing") {
  const TempDir folder;
  for (const auto& [kind, bytes] : files_by_kind()) folder.write(kind, bytes);
  const auto names = names_in(folder.path());
  const auto check = [&](const sconce::test::RunResult& ran, const std::string& file) {
    sconce::test::check_refused(ran, 1, file);
    CHECK_THAT(ran.err,
               !ContainsSubstring("INTERNAL ASSERT") && !ContainsSubstring("report a bug"));
    CHECK(names_in(folder.path()) == names);
  };
  const std::string at = folder.path().string() + "/", out = " --out " + at + "out/run";
  const std::string flags = "--model linear --device cpu" + out;
  check(sconce::test::run_train(flags + " --weights " + at + "picture"), at + "picture");
  check(sconce::test::run_train("--target price --data " + at + "picture --device cpu" + out),
        at + "picture");
  check(sconce::test::run_example(folder.path(), "serving_script package in out"), "(package)");
  check(sconce::test::run_example(folder.path(), "serving_package picture in out"), "(picture)");
}
