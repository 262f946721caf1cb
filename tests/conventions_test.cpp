// The habits of this project, tested by reading its sources.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

namespace {

namespace fs = std::filesystem;
using Names = std::set<std::string>;

const fs::path root = fs::path(SCONCE_TESTS_DIR).parent_path();

std::string read(const fs::path& file) {
  std::ifstream in(file);
  REQUIRE(in);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The files below a folder of the project that end so, relative to that folder.
Names files_below(const fs::path& folder, const std::string& ending) {
  Names names;
  for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
    const std::string name = fs::relative(entry.path(), root / folder).generic_string();
    if (entry.is_regular_file() && name.ends_with(ending)) names.insert(name);
  }
  REQUIRE_FALSE(names.empty());
  return names;
}

// The headers below a folder include/sconce, the headers and the sources below src, each with the
// folder before it.
Names library_files() {
  Names names;
  for (const fs::path folder : {"include/sconce", "src"}) {
    for (const char* ending : {".hpp", ".cpp"}) {
      if (folder != "src" && std::string(ending) == ".cpp") continue;
      for (const auto& name : files_below(folder, ending)) names.insert((folder / name).string());
    }
  }
  return names;
}

// What a file includes of sconce, such as "data/idx", private headers too; `pattern` may ask for
// other includes.
Names includes(const fs::path& file,
               const char* pattern = "#include \"(?:sconce/)?([^\"]+)\\.hpp\"") {
  const std::string text = read(file);
  const std::regex expression(pattern);
  Names found;
  for (std::sregex_iterator it(text.begin(), text.end(), expression), end; it != end; ++it) {
    found.insert((*it)[1]);
  }
  return found;
}

std::string without(const std::string& name, const std::string& ending) {
  return name.substr(0, name.size() - ending.size());
}

// "data/idx" is in the room "data"; "devices" is a room of its own.
std::string room_of(const std::string& concept_name) {
  return concept_name.substr(0, concept_name.find('/'));
}

// Which rooms and headers a room may include besides itself: downwards only, and the trainer with
// what goes along, which anybody could write with the public headers, is at the top. A stopwatch
// includes devices because it waits for one; a lazy layer includes repr because it chooses its own
// name. Of the optimizers the scaler knows but the interface by which it steps those that unscale
// by themselves. A process group makes NCCL's backend, whose source needs CUDA's headers; of the
// group only its header is known to those that train or sample by rank. A batch is one of those
// types whose tensors are found. The loop knows none of the callbacks.
bool may_include(const std::string& from, const std::string& to) {
  static const Names everywhere = {"fwd", "devices", "stopwatch", "repr"};
  static const std::map<std::string, Names> further = {
      {"amp", {"state"}},
      {"optim", {"state"}},
      {"report",
       {"amp", "cuda", "data", "distributed", "io", "metrics", "nn", "optim", "state", "trainer",
        "training", "version"}},
      {"trainer", {"amp", "data", "distributed", "metrics", "state"}},
      {"training", {"amp", "cuda", "data", "distributed", "io", "metrics", "nn", "optim", "state"}},
      {"fwd", {}},
      {"version", {}}};
  static const std::set<std::pair<std::string, std::string>> single = {
      {"amp/grad_scaler", "optim/amp_scaling"},
      {"amp/mixed_precision", "backends"},
      {"distributed/process_group", "cuda/nccl"},
      {"nn/distributed_data_parallel", "distributed/process_group"},
      {"nn/distributed_data_parallel", "distributed/gather_bytes"},
      {"data/distributed_sampler", "distributed/process_group"},
      {"data/dataset", "nn/nested_tensors"},
      {"data/item_source", "nn/nested_tensors"},
      {"data/collate", "nn/nested_tensors"},
      {"data/loader", "nn/nested_tensors"},
      {"optim/ema", "nn/can_copy"},
      {"trainer", "cuda/captured_step"},
      {"trainer", "nn/clip_grad"},
      {"trainer", "optim/optimizer"},
      {"trainer", "training/batch"},
      {"trainer", "training/fit_progress"},
      {"trainer", "training/fit_result"},
      {"trainer", "training/mode_guard"},
      {"trainer", "training/model_steps"},
      {"trainer", "training/run_scope"},
      {"trainer", "training/trainer_callback"}};
  if (single.contains({from, to})) return true;
  if (from == "sconce") return true;
  // Of the rooms of the core these are in the layer above.
  static const Names above = {"data/distributed_sampler", "nn/data_parallel",
                              "nn/distributed_data_parallel", "cuda/captured_step", "cuda/nccl"};
  if (room_of(from) == room_of(to)) return from == to || !above.contains(to);
  const auto row = further.find(room_of(from));
  if (row != further.end() && row->second.contains(room_of(to))) return true;
  if (room_of(from) == "repr" || room_of(from) == "io") return to == "fwd";
  if (from == "stopwatch") return to == "fwd" || to == "devices";
  if (room_of(from) == "devices") return to == "fwd";
  return from != "fwd" && from != "version" && everywhere.contains(room_of(to));
}

}  // namespace

TEST_CASE("every include between the rooms is allowed") {
  for (const auto& name : library_files()) {
    // Of gloo's stand-ins LibTorch's headers take what they need.
    if (name.starts_with("src/gloo_stand_in/")) continue;
    std::string from = without(name, name.substr(name.size() - 4));
    from = from.substr(from.starts_with("src/") ? 4 : std::string("include/sconce/").size());
    if (from.starts_with("no_cuda/")) from = from.substr(3);
    for (const auto& to : includes(root / name)) {
      INFO(name << " includes " << to << ".hpp");
      CHECK(may_include(from, to));
    }
  }
}

TEST_CASE("the table of allowed includes refuses what the design forbids") {
  CHECK_FALSE(may_include("devices", "trainer"));
  CHECK_FALSE(may_include("trainer", "training/checkpoint"));
  CHECK_FALSE(may_include("trainer", "optim/ema"));
  CHECK_FALSE(may_include("data/idx", "nn/clip_grad"));
  CHECK_FALSE(may_include("nn/clip_grad", "trainer"));
  CHECK_FALSE(may_include("metrics/metric", "trainer"));
  CHECK_FALSE(may_include("fwd", "devices"));
  CHECK_FALSE(may_include("repr", "devices"));
  CHECK_FALSE(may_include("devices", "repr"));
  CHECK_FALSE(may_include("amp/grad_scaler", "optim/sgd"));
  CHECK_FALSE(may_include("amp/autocast", "optim/amp_scaling"));
  CHECK_FALSE(may_include("nn/lazy", "distributed/process_group"));
  CHECK_FALSE(may_include("distributed/process_group", "nn/lazy"));
  CHECK_FALSE(may_include("io/safetensors", "nn/lazy"));
  CHECK_FALSE(may_include("io/pickle_reader", "state/state_visitor"));
  CHECK_FALSE(may_include("data/batches", "data/distributed_sampler"));
  CHECK_FALSE(may_include("nn/lazy", "nn/distributed_data_parallel"));
  CHECK(may_include("amp/grad_scaler", "optim/amp_scaling"));
  CHECK(may_include("nn/distributed_data_parallel", "distributed/process_group"));
  CHECK(may_include("nn/clip_grad", "repr"));
  CHECK(may_include("trainer", "nn/clip_grad"));
  CHECK(may_include("data/idx", "devices"));
}

namespace {

// All headers of the project that a file includes, directly or through others, private ones too.
Names all_includes(const fs::path& file, Names found = {}) {
  for (const auto& name : includes(file, "#include \"([^\"]+)\"")) {
    for (const fs::path folder : {"include", "src"}) {
      if (fs::exists(root / folder / name) && found.insert(name).second) {
        found = all_includes(root / folder / name, found);
      }
    }
  }
  return found;
}

}  // namespace

TEST_CASE("the training loop knows none of the parts that go along with it") {
  const Names found = all_includes(root / "src/trainer.cpp");
  REQUIRE(found.contains("sconce/training/trainer_callback.hpp"));
  REQUIRE(found.contains("training/fit_progress.hpp"));
  for (const char* part : {"checkpoint", "model_checkpoint", "early_stopping", "epoch_lines",
                           "lr_scheduling", "weight_averaging"}) {
    INFO(part);
    CHECK(fs::exists(root / "include/sconce/training" / (std::string(part) + ".hpp")));
    CHECK_FALSE(found.contains("sconce/training/" + std::string(part) + ".hpp"));
  }
  for (const char* part : {"optim/ema", "optim/lr_scheduler", "optim/lr_scheduler_base",
                           "nn/data_parallel", "nn/distributed_data_parallel"}) {
    INFO(part);
    CHECK(fs::exists(root / "include/sconce" / (std::string(part) + ".hpp")));
    CHECK_FALSE(found.contains("sconce/" + std::string(part) + ".hpp"));
  }
  // The one cast is to the optimizers that have a state.
  CHECK(includes(root / "src/trainer.cpp", "_cast<([^>]*(Callback|Scheduler|Checkpoint)[^>]*)>")
            .empty());
}

namespace {

struct Layer {
  std::string name;
  Names files;  // public headers and sources, as "include/sconce/devices.hpp"
};

// The six layers as CMakeLists.txt lists them, from left to right.
std::vector<Layer> layers() {
  const std::string text = read(root / "CMakeLists.txt");
  const std::regex call("sconce_add_layer\\((\\w+)([^)]*)\\)");
  const std::regex file("\\S+\\.(hpp|cpp)");
  std::vector<Layer> found;
  for (std::sregex_iterator it(text.begin(), text.end(), call), end; it != end; ++it) {
    auto& layer = found.emplace_back(Layer{(*it)[1], {}});
    const std::string files = (*it)[2];
    for (std::sregex_iterator f(files.begin(), files.end(), file); f != end; ++f) {
      const std::string name = f->str();
      const std::string path = std::regex_replace(name, std::regex("\\$\\{\\w+\\}"), "cuda");
      layer.files.insert((name.ends_with(".hpp") ? "include/sconce/" : "src/") + path);
    }
  }
  return found;
}

// What the files of a layer include, directly or through others, and they themselves.
Names with_includes(const Layer& layer) {
  Names all = layer.files;
  for (const auto& name : layer.files) {
    for (const auto& header : all_includes(root / name)) {
      all.insert((header.starts_with("sconce/") ? "include/" : "src/") + header);
    }
  }
  return all;
}

}  // namespace

TEST_CASE("a layer includes no public header of another but of those to its left") {
  const auto all = layers();
  REQUIRE(all.size() == 6);
  const std::set<std::pair<std::string, std::string>> apart = {{"distributed", "data"},
                                                               {"io", "distributed"}};
  for (size_t i = 0; i < all.size(); ++i) {
    const Names included = with_includes(all[i]);
    for (size_t k = 0; k < all.size(); ++k) {
      const bool may = k < i && !apart.contains({all[i].name, all[k].name});
      for (const auto& header : all[k].files) {
        if (may || k == i || !header.starts_with("include/")) continue;
        INFO(all[i].name << " includes " << header << " of " << all[k].name);
        CHECK_FALSE(included.contains(header));
      }
    }
  }
}

TEST_CASE("a user of one layer has few lines to take in") {
  Names counted;
  for (const auto& layer : layers()) {
    std::ptrdiff_t lines = 0;
    for (const auto& name : with_includes(layer)) {
      if (!counted.insert(name).second) continue;
      const std::string text = read(root / name);
      lines += std::count(text.begin(), text.end(), '\n');
    }
    INFO(layer.name);
    CHECK(lines > 100);
    CHECK(lines <= (layer.name == "core" ? 7000 : 4000));
  }
}

TEST_CASE("every source and public header is in one layer") {
  std::multiset<std::string> listed;
  for (const auto& layer : layers()) listed.insert(layer.files.begin(), layer.files.end());
  for (const auto& name : library_files()) {
    if (name.starts_with("src/no_cuda/")) continue;
    if (name.starts_with("src/") && name.ends_with(".hpp")) continue;
    INFO(name);
    CHECK(listed.count(name) == 1);
  }
}

TEST_CASE("every source has a header and a test of the same path, if its header is not private") {
  for (const auto& name : files_below("src", ".cpp")) {
    const std::string path = without(name, ".cpp");
    if (name.starts_with("no_cuda/") || fs::exists(root / "src" / (path + ".hpp"))) continue;
    INFO("src/" << name);
    CHECK(fs::exists(root / "include/sconce" / (path + ".hpp")));
    CHECK(fs::exists(root / "tests" / (path + "_test.cpp")));
  }
}

// Then a compilation of each source alone, as of a package test, proves that these headers stand
// alone, and .ci/run compiles the others.
TEST_CASE("a source includes its public header first") {
  for (const auto& name : files_below("src", ".cpp")) {
    std::string header = without(name, ".cpp") + ".hpp";
    if (header.starts_with("no_cuda/")) header.erase(0, 3);
    if (!fs::exists(root / "include/sconce" / header)) continue;
    const std::string text = read(root / "src" / name);
    const auto first = text.find("#include ");
    INFO("src/" << name);
    CHECK(text.substr(first).starts_with("#include \"sconce/" + header + "\"\n"));
  }
}

TEST_CASE("every test file belongs to a header, but for this one and those of the programs") {
  for (const auto& name : files_below("tests", "_test.cpp")) {
    if (name == "conventions_test.cpp" || name.starts_with("apps/")) continue;
    INFO("tests/" << name);
    const std::string header = without(name, "_test.cpp") + ".hpp";
    CHECK((fs::exists(root / "include/sconce" / header) || fs::exists(root / "src" / header)));
  }
}

TEST_CASE("src/no_cuda has each source of src/cuda that needs CUDA's headers, and no other") {
  Names needing;
  for (const auto& name : files_below("src/cuda", ".cpp")) {
    const auto found = includes(root / "src/cuda" / name,
                                "#include <((?:cuda|nccl|ATen/cuda/|"
                                "c10/cuda/|torch/csrc/cuda/|"
                                "torch/csrc/distributed/)[^>]*)>");
    if (!found.empty()) needing.insert(name);
  }
  CHECK(needing == files_below("src/no_cuda", ".cpp"));
}

TEST_CASE("sconce.hpp includes every public header") {
  Names headers;
  for (const auto& name : files_below("include/sconce", ".hpp")) {
    headers.insert(without(name, ".hpp"));
  }
  headers.erase("sconce");
  CHECK(includes(root / "include/sconce/sconce.hpp") == headers);
}

TEST_CASE(
    "nobody includes Catch2 but the one test header, and this file, which needs no LibTorch") {
  const Names allowed = {"catch.hpp", "conventions_test.cpp"};
  for (const fs::path folder : {"include", "src", "apps", "tests"}) {
    for (const char* ending : {".hpp", ".cpp"}) {
      if (folder == "include" && std::string(ending) == ".cpp") continue;
      if (folder == "src" && std::string(ending) == ".hpp") continue;
      for (const auto& name : files_below(folder, ending)) {
        // The project under tests/build/dependencies tries each dependency without sconce.
        if (folder == "tests" && (allowed.contains(name) || name.starts_with("build/"))) continue;
        INFO(folder << "/" << name);
        CHECK(includes(root / folder / name, "#include <(catch2/[^>]+)>").empty());
      }
    }
  }
}

TEST_CASE("the library neither prints, nor exits, nor asks by #if") {
  const std::regex forbidden(
      "std::c(out|err|log)\\b(?!\\.rdbuf\\(\\))|\\b[fv]*printf\\(|\\bf?puts\\(|\\bperror\\(|"
      "\\b(_|quick_)?exit\\(|\\b(abort|terminate)\\(|#\\s*if");
  for (const auto& name : library_files()) {
    std::istringstream lines(read(root / name));
    for (std::string line; std::getline(lines, line);) {
      if (line.find("//") != std::string::npos) line.resize(line.find("//"));
      INFO(name << ": " << line);
      CHECK_FALSE(std::regex_search(line, forbidden));
    }
  }
}

TEST_CASE("a header stays below 250 lines and begins with #pragma once") {
  for (const auto& name : files_below("include/sconce", ".hpp")) {
    const std::string text = read(root / "include/sconce" / name);
    INFO(name);
    CHECK(std::count(text.begin(), text.end(), '\n') <= 250);
    CHECK(text.starts_with("#pragma once\n"));
  }
}

TEST_CASE("the page on installation names every workflow preset, and no other") {
  const auto presets = nlohmann::json::parse(read(root / "CMakePresets.json"));
  Names defined;
  for (const auto& preset : presets.at("workflowPresets")) defined.insert(preset.at("name"));
  CHECK(includes(root / "docs/installation.md", "cmake --workflow --preset ([a-z-]+)") == defined);
}

TEST_CASE("the page on hardening has a row for each sanitizer's preset and each fuzzer") {
  const std::string page = read(root / "docs/hardening.md");
  const auto presets = nlohmann::json::parse(read(root / "CMakePresets.json"));
  Names rows;
  for (const auto& preset : presets.at("workflowPresets")) {
    const std::string name = preset.at("name");
    if (name.ends_with("san")) rows.insert("| `cmake --workflow --preset " + name + "` |");
  }
  for (const auto& name : files_below("tests/fuzz", "_fuzz.cpp")) {
    rows.insert("| `" + name.substr(0, name.size() - std::string("_fuzz.cpp").size()) + "` |");
  }
  CHECK(rows.size() >= 8);
  for (const auto& row : rows) {
    INFO(row);
    CHECK(page.find(row) != std::string::npos);
  }
}

namespace {

// The pages for users, relative to the project; those in folders of docs/ are about other pages.
Names pages(bool folders) {
  Names names = {"README.md", "CONTRIBUTING.md", "SECURITY.md"};
  for (const auto& name : files_below("docs", ".md")) {
    if (folders || name.find('/') == std::string::npos) names.insert("docs/" + name);
  }
  return names;
}

// The text in one line: without line breaks, and without the marks of comments and of quotes.
std::string in_one_line(const std::string& text) {
  static const std::regex space("\\s*\n\\s*(///?<?|>)?\\s*|\\s+");
  return std::regex_replace(text, space, " ");
}

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(' ');
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

// The regular expressions of tests/riddles.txt.
std::vector<std::regex> riddles() {
  std::vector<std::regex> found;
  std::istringstream lines(read(root / "tests/riddles.txt"));
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.front() != '#') found.emplace_back(line, std::regex::icase);
  }
  return found;
}

// The first riddle of a text, with the words around it; empty without one.
std::string riddle_in(const std::string& text) {
  static const auto all = riddles();
  const std::string line = in_one_line(text);
  for (const auto& riddle : all) {
    std::smatch match;
    if (!std::regex_search(line, match, riddle)) continue;
    const auto at = static_cast<size_t>(match.position());
    const auto from = at < 40 ? 0 : at - 40;
    return line.substr(from, at - from + match.str().size() + 40);
  }
  return "";
}

}  // namespace

TEST_CASE("each of ten questions about a page is answered by a sentence of the page") {
  const auto names = files_below("docs/questions", ".md");
  CHECK(names.size() >= 5);
  for (const auto& name : names) {
    const std::string page = in_one_line(read(root / "docs" / name));
    const std::string text = read(root / "docs/questions" / name);
    const std::regex answer("\n## [^\n]+\\?\n\n((?:> [^\n]*\n)+)");
    size_t answers = 0;
    for (std::sregex_iterator it(text.begin(), text.end(), answer), end; it != end; ++it) {
      ++answers;
      const std::string sentence = trimmed(in_one_line("\n" + (*it)[1].str()));
      INFO(name << ": " << sentence);
      CHECK(page.find(sentence) != std::string::npos);
    }
    INFO(name);
    CHECK(answers == 10);
  }
}

TEST_CASE("no sentence of the list of riddles is in what people read") {
  Names names = {"README.md", "CONTRIBUTING.md", "SECURITY.md"};
  for (const std::string folder : {"docs", "include", "src", "apps"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string ending = entry.path().extension().string();
      if (!Names{".md", ".hpp", ".cpp", ".py"}.contains(ending)) continue;
      names.insert(fs::relative(entry.path(), root).generic_string());
    }
  }
  CHECK(names.size() > 200);
  for (const auto& name : names) {
    const std::string riddle = riddle_in(read(root / name));
    INFO(name << ": " << riddle);
    CHECK(riddle.empty());
  }
}

TEST_CASE("the list of riddles has the sentences that began it") {
  for (const char* sentence :
       {"What Python's PyTorch has around training on GPUs and C++ lacks",
        "  ///< epochs without improvement\n  ///< that are borne",
        "expected what another rank could not do", "so many of the latest are kept",
        "names a tensor that stands under several names once, by the first",
        "/// Returns what\n/// came out", "whatever devices and of whatever types they are",
        "The module's name of each of the state's"}) {
    INFO(sentence);
    CHECK_FALSE(riddle_in(sentence).empty());
  }
  CHECK(riddle_in("Number of epochs without improvement before stopping.").empty());
}

TEST_CASE("every link of a page within the project leads to a file") {
  for (const auto& page : pages(true)) {
    for (const auto& link : includes(root / page, "\\]\\((?!https?:)([^)#]+)[^)]*\\)")) {
      INFO(page << ": " << link);
      CHECK(fs::exists((root / page).parent_path() / link));
    }
  }
}

TEST_CASE("the README has at most 150 lines and names every page") {
  const std::string text = read(root / "README.md");
  CHECK(std::count(text.begin(), text.end(), '\n') <= 150);
  for (const auto& page : pages(false)) {
    INFO(page);
    CHECK((page == "README.md" || text.find("(" + page) != std::string::npos));
  }
}
