// Tests the project's conventions by reading its sources.
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
using namespace nlohmann::literals;
using Names = std::set<std::string>;

const fs::path root = fs::path(SCONCE_TESTS_DIR).parent_path();

std::string read(const fs::path& file) {
  std::ifstream in(file);
  REQUIRE(in);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Returns the files in a project folder whose names end with the given suffix, relative to that
// folder.
Names files_below(const fs::path& folder, const std::string& ending) {
  Names names;
  for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
    const std::string name = fs::relative(entry.path(), root / folder).generic_string();
    if (entry.is_regular_file() && name.ends_with(ending)) names.insert(name);
  }
  REQUIRE_FALSE(names.empty());
  return names;
}

// Returns the headers in include/sconce and the headers and sources in src. Each path starts with
// include/sconce or src.
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

// Returns the public and private sconce headers that a file includes, without extensions (for
// example, "vision/idx"). With a different `pattern`, returns the matches of its capture group
// instead.
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

// Returns "vision" for "vision/idx".
std::string folder_of(const std::string& concept_name) {
  return concept_name.substr(0, concept_name.find('/'));
}

// Returns the entries (for example, "vision/idx") in a layer's file list.
Names listed_in(const fs::path& list) {
  return includes(list, "\n  ([a-z_/]+)(?=[\n)])");
}

struct Layer {
  std::string name;
  Names files;     // listed files, such as "vision/idx"
  Names folders;   // in include/sconce, src, and tests; "" for top-level files
  Names includes;  // the other layers whose headers its files may include
};

// Returns the layers in order, as defined by src/CMakeLists.txt and the lists in the folders.
std::vector<Layer> layers() {
  const std::string order = read(root / "CMakeLists.txt");
  std::smatch names;
  REQUIRE(std::regex_search(order, names, std::regex("foreach\\(layer IN ITEMS ([a-z ]+)\\)")));
  std::istringstream folders("core " + names[1].str());
  std::vector<Layer> found;
  for (std::string name; folders >> name;) {
    const fs::path list = root / "src" / (name == "core" ? "" : name) / "CMakeLists.txt";
    Layer layer{name, listed_in(list), {}, {}};
    for (const auto& file : layer.files) {
      layer.folders.insert(file.find('/') == std::string::npos ? "" : folder_of(file));
    }
    for (const auto& below : includes(list, "sconce::([a-z]+)")) {
      for (const auto& known : found) {
        if (known.name != below) continue;
        layer.includes.insert(below);
        layer.includes.insert(known.includes.begin(), known.includes.end());
      }
    }
    found.push_back(layer);
  }
  return found;
}

// Returns the layer of a file such as "include/sconce/data/data_loader.hpp" or
// "src/no_cuda/cuda/memory.cpp". At the top level, any file that no other layer lists belongs to
// the core layer.
const Layer* layer_of(const std::vector<Layer>& all, std::string name) {
  for (const std::string folder : {"include/sconce/", "src/", "no_cuda/"}) {
    if (name.starts_with(folder)) name.erase(0, folder.size());
  }
  const std::string file = fs::path(name).replace_extension().string();
  const std::string folder = name.find('/') == std::string::npos ? "" : folder_of(name);
  for (const auto& layer : all) {
    if (layer.files.contains(file)) return &layer;
  }
  for (const auto& layer : all) {
    if (layer.folders.contains(folder)) return &layer;
  }
  return nullptr;
}

}  // namespace

TEST_CASE(
    "every folder belongs to one layer, and include, src, and tests contain the same folders") {
  std::multiset<std::string> listed;
  for (const auto& layer : layers()) listed.insert(layer.folders.begin(), layer.folders.end());
  listed.erase("");
  const Names folders(listed.begin(), listed.end());
  CHECK(folders.size() == listed.size());
  CHECK(folders.size() >= 12);
  // CONTRIBUTING.md lists the folders that do not have a counterpart in the other trees.
  const Names alone = {"apps",          "build",   "contributing",   "fuzz",
                       "gloo_stand_in", "lessons", "no_cuda",        "reference",
                       "simgpu",        "support", "trainer_scripts"};
  const Names without_public_headers = {"capture", "repr", "state"};
  for (const fs::path tree : {"include/sconce", "src", "tests"}) {
    Names found = without_public_headers;
    for (const auto& entry : fs::directory_iterator(root / tree)) {
      const std::string name = entry.path().filename().string();
      if (entry.is_directory() && !alone.contains(name)) found.insert(name);
    }
    INFO(tree);
    CHECK(found == folders);
  }
}

TEST_CASE("a file includes only headers from its own layer and from the layers it links to") {
  const auto all = layers();
  REQUIRE(all.size() == 9);
  size_t seen = 0;
  for (const auto& name : library_files()) {
    // The LibTorch headers include the stand-ins for the Gloo headers, and sconce.hpp does not
    // belong to any layer.
    if (name.starts_with("src/gloo_stand_in/") || name == "include/sconce/sconce.hpp") continue;
    const Layer* layer = layer_of(all, name);
    INFO(name);
    REQUIRE(layer != nullptr);
    for (const auto& to : includes(root / name)) {
      const Layer* included = layer_of(all, to);
      INFO("includes " << to << ".hpp");
      REQUIRE(included != nullptr);
      CHECK((included == layer || layer->includes.contains(included->name)));
      ++seen;
    }
  }
  CHECK(seen > 300);
}

TEST_CASE("a program includes only public headers and its own headers") {
  size_t seen = 0;
  for (const char* ending : {".hpp", ".cpp"}) {
    for (const auto& name : files_below("apps", ending)) {
      for (const auto& to : includes(root / "apps" / name, "#include [\"<]([^>\"]+\\.hpp)[\">]")) {
        if (to.starts_with("nlohmann/") || to.starts_with("CLI/")) continue;
        INFO("apps/" << name << " includes " << to);
        if (to.starts_with("sconce/")) {
          CHECK(to.find("/detail/") == to.npos);
        } else {
          const fs::path folder = (root / "apps" / name).parent_path();
          CHECK((fs::exists(folder / to) || fs::exists(root / "apps" / to)));
        }
        ++seen;
      }
    }
  }
  CHECK(seen > 100);
}

namespace {

// Returns all headers of the project that a file includes directly or indirectly, including private
// headers.
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

TEST_CASE(
    "the training loop does not include headers of individual callbacks, schedulers, or parallel "
    "wrappers") {
  const Names found = all_includes(root / "src/training/fit_loop.cpp");
  REQUIRE(found.contains("sconce/training/trainer_callback.hpp"));
  REQUIRE(found.contains("training/fit_progress.hpp"));
  for (const char* part : {"checkpoint", "model_checkpoint", "early_stopping", "epoch_logger",
                           "lr_scheduling", "weight_averaging"}) {
    INFO(part);
    CHECK(fs::exists(root / "include/sconce/training" / (std::string(part) + ".hpp")));
    CHECK_FALSE(found.contains("sconce/training/" + std::string(part) + ".hpp"));
  }
  for (const char* part : {"optim/ema", "optim/lr_scheduler", "optim/lr_scheduler_base",
                           "distributed/data_parallel", "distributed/distributed_data_parallel"}) {
    INFO(part);
    CHECK(fs::exists(root / "include/sconce" / (std::string(part) + ".hpp")));
    CHECK_FALSE(found.contains("sconce/" + std::string(part) + ".hpp"));
  }
  // The casts in fit_loop.cpp may target stateful optimizers, but not callbacks, schedulers, or
  // checkpoints.
  CHECK(includes(root / "src/training/fit_loop.cpp",
                 "_cast<([^>]*(Callback|Scheduler|Checkpoint)[^>]*)>")
            .empty());
}

TEST_CASE("every source and public header is in its layer's file list") {
  std::multiset<std::string> listed;
  for (const auto& name : files_below("src", "CMakeLists.txt")) {
    for (const auto& file : listed_in(root / "src" / name)) listed.insert(file);
  }
  for (const auto& name : library_files()) {
    const bool is_private = name.starts_with("src/") && name.ends_with(".hpp");
    if (is_private || name.starts_with("src/no_cuda/") || name.ends_with("/sconce.hpp")) continue;
    const auto start = name.starts_with("src/") ? 4 : std::string("include/sconce/").size();
    INFO(name);
    CHECK(listed.count(name.substr(start, name.size() - start - 4)) == 1);
  }
}

TEST_CASE(
    "every source without a private header has a public header and a test with the same path") {
  for (const auto& name : files_below("src", ".cpp")) {
    const std::string path = without(name, ".cpp");
    if (name.starts_with("no_cuda/") || fs::exists(root / "src" / (path + ".hpp"))) continue;
    // For example, vision/no_png.cpp is built instead of vision/png.cpp.
    if (fs::path(name).filename().string().starts_with("no_")) continue;
    INFO("src/" << name);
    CHECK(fs::exists(root / "include/sconce" / (path + ".hpp")));
    CHECK(fs::exists(root / "tests" / (path + "_test.cpp")));
  }
}

// Because each source includes its public header first, the package test that compiles each source
// separately also checks that the public headers are self-contained. .ci/run compiles the other
// headers.
TEST_CASE("every source file includes its own public header first") {
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

TEST_CASE("every test file outside apps, except conventions_test.cpp, corresponds to a header") {
  for (const auto& name : files_below("tests", "_test.cpp")) {
    if (name == "conventions_test.cpp" || name.starts_with("apps/")) continue;
    INFO("tests/" << name);
    const std::string header = without(name, "_test.cpp") + ".hpp";
    CHECK((fs::exists(root / "include/sconce" / header) || fs::exists(root / "src" / header)));
  }
}

namespace {

// Returns the test sources. A long name is split into adjacent string literals on several lines.
std::string test_sources() {
  static const std::regex split("\"\\s*\n\\s*\"");
  std::string sources;
  for (const auto& name : files_below("tests", ".cpp")) {
    sources += std::regex_replace(read(root / "tests" / name), split, "");
  }
  return sources;
}

// Returns the lines of a file with comments removed.
std::vector<std::string> lines_of(const fs::path& file) {
  std::istringstream text(read(file));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) {
    if (!line.starts_with('#')) lines.push_back(line);
  }
  return lines;
}

}  // namespace

TEST_CASE("every comparison listed in comparisons.txt has a test case") {
  const std::string sources = test_sources();
  const auto comparisons = lines_of(root / "tests/comparisons.txt");
  CHECK(comparisons.size() >= 57);
  for (const auto& name : comparisons) {
    INFO(name);
    CHECK(sources.find('"' + name + '"') != std::string::npos);
  }
}

TEST_CASE("renamed_tests.txt maps every test name in gpu_results.xml to a test case") {
  std::map<std::string, std::string> renamed;
  for (const auto& line : lines_of(root / "tests/renamed_tests.txt")) {
    renamed[line.substr(0, line.find('\t'))] = line.substr(line.find('\t') + 1);
  }
  const std::string sources = test_sources();
  const auto recorded = includes(root / "docs/gpu_results.xml", "<testcase name=\"([^\"]+)\"");
  CHECK(recorded.size() > 70);
  for (auto name : recorded) {
    name = std::regex_replace(name, std::regex("&apos;"), "'");
    if (renamed.contains(name)) name = renamed[name];
    INFO(name);
    CHECK(sources.find('"' + name + '"') != std::string::npos);
  }
}

TEST_CASE(
    "src/no_cuda contains a counterpart of every source that includes CUDA headers, and no other "
    "sources") {
  Names needing;
  for (const auto& name : files_below("src", ".cpp")) {
    const auto found = includes(root / "src" / name,
                                "#include <((?:cuda|nccl|ATen/cuda/|c10/cuda/|torch/csrc/cuda/|"
                                "torch/csrc/distributed/c10d/ProcessGroupNCCL)[^>]*)>");
    if (!found.empty() && !name.starts_with("no_cuda/")) needing.insert(name);
  }
  CHECK(needing == files_below("src/no_cuda", ".cpp"));
}

TEST_CASE("sconce.hpp includes every public header and no internal header") {
  Names headers;
  for (const auto& name : files_below("include/sconce", ".hpp")) {
    headers.insert(without(name, ".hpp"));
  }
  headers.erase("sconce");
  std::erase_if(headers, [](const auto& name) { return name.find("/detail/") != name.npos; });
  CHECK(includes(root / "include/sconce/sconce.hpp") == headers);
}

TEST_CASE("only tests/catch.hpp and conventions_test.cpp include Catch2") {
  const Names allowed = {"catch.hpp", "conventions_test.cpp"};
  for (const fs::path folder : {"include", "src", "apps", "tests"}) {
    for (const char* ending : {".hpp", ".cpp"}) {
      if (folder == "include" && std::string(ending) == ".cpp") continue;
      if (folder == "src" && std::string(ending) == ".hpp") continue;
      for (const auto& name : files_below(folder, ending)) {
        // The project in tests/build/dependencies uses each dependency without sconce.
        if (folder == "tests" && (allowed.contains(name) || name.starts_with("build/"))) continue;
        INFO(folder << "/" << name);
        CHECK(includes(root / folder / name, "#include <(catch2/[^>]+)>").empty());
      }
    }
  }
}

TEST_CASE("the library never prints, terminates the process, or uses #if") {
  const std::regex forbidden(
      "std::c(out|err|log)\\b(?!\\.rdbuf\\(\\))|\\b[fv]*printf\\(|\\bf?puts\\(|\\bperror\\(|"
      "\\b(_|quick_)?exit\\(|\\b(abort|terminate)\\(|#\\s*if");
  for (const auto& name : library_files()) {
    std::istringstream lines(read(root / name));
    for (std::string line; std::getline(lines, line);) {
      if (line.find("//") != std::string::npos) line.resize(line.find("//"));
      // ProcessGroupNCCL::abort() aborts the collectives but does not terminate the process.
      if (line == "        ProcessGroupNCCL::abort();") continue;
      INFO(name << ": " << line);
      CHECK_FALSE(std::regex_search(line, forbidden));
    }
  }
}

TEST_CASE("the library never formats fractions with printf, whose output depends on the locale") {
  const std::regex fraction("%[-+#0]*[0-9*]*(\\.[0-9*]+)?[aefgAEFG]");
  CHECK(std::regex_search("loss %.3f", fraction));
  for (const auto& file : library_files()) {
    INFO(file);
    CHECK_FALSE(std::regex_search(read(root / file), fraction));
  }
}

TEST_CASE("every public header begins with #pragma once and has at most 250 lines") {
  for (const auto& name : files_below("include/sconce", ".hpp")) {
    const std::string text = read(root / "include/sconce" / name);
    INFO(name);
    CHECK(std::count(text.begin(), text.end(), '\n') <= 250);
    CHECK(text.starts_with("#pragma once\n"));
  }
}

TEST_CASE("the installation page lists exactly the workflow presets that exist") {
  const auto presets = nlohmann::json::parse(read(root / "CMakePresets.json"));
  Names defined;
  for (const auto& preset : presets.at("workflowPresets")) defined.insert(preset.at("name"));
  CHECK(includes(root / "docs/installation.md", "cmake --workflow --preset ([a-z-]+)") == defined);
}

namespace {

// Returns the preset with the given kind and name.
nlohmann::json preset_of(const char* kind, const std::string& name) {
  const auto presets = nlohmann::json::parse(read(root / "CMakePresets.json"));
  for (const auto& preset : presets.at(kind)) {
    if (preset.at("name") == name) return preset;
  }
  FAIL(kind << " has no preset " << name);
  return {};
}

}  // namespace

TEST_CASE(
    "a preset that lists its targets builds every test program that the preset does not exclude") {
  // These presets do not build the apps, so the test ignores everything in tests/CMakeLists.txt
  // from if(SCONCE_BUILD_APPS) onward.
  std::string added = read(root / "tests/CMakeLists.txt");
  added.resize(added.find("if(SCONCE_BUILD_APPS)"));
  const std::regex call("sconce_add_test_program\\((test-[a-z-]+)");
  for (const char* name : {"oldest", "asan"}) {
    const Names built = preset_of("buildPresets", name).at("targets");
    const auto filter =
        preset_of("testPresets", name).value("/filter/exclude/name"_json_pointer, "^$");
    for (std::sregex_iterator it(added.begin(), added.end(), call), end; it != end; ++it) {
      const std::string program = (*it)[1];
      // test-conventions has the label "project", which every preset excludes. test-io-memory is
      // not built with sanitizers.
      if (program == "test-conventions" || program == "test-io-memory") continue;
      INFO(name << ": " << program);
      CHECK((built.contains(program) || std::regex_search(program, std::regex(filter))));
    }
  }
}

TEST_CASE(
    "the installation page builds the preset that it installs, and that preset compiles with -O3") {
  const auto presets = nlohmann::json::parse(read(root / "CMakePresets.json"));
  const auto page = root / "docs/installation.md";
  const auto built = includes(page, "cmake --workflow --preset ([a-z-]+)\n");
  const auto installed = includes(page, "cmake --install build/([a-z-]+)");
  REQUIRE(installed.size() == 1);
  const auto& name = *installed.begin();
  CHECK(built.contains(name));
  for (const auto& preset : presets.at("configurePresets")) {
    if (preset.at("name") != name) continue;
    CHECK(preset.at("cacheVariables").at("CMAKE_CXX_FLAGS_RELEASE") == "-O3 -DNDEBUG");
  }
}

namespace {

// Returns the paths of the user documentation pages, relative to the project, excluding the site
// files.
Names pages() {
  Names names = {"README.md",       "CHANGELOG.md", "CODE_OF_CONDUCT.md",
                 "CONTRIBUTING.md", "SECURITY.md",  "SUPPORT.md"};
  for (const auto& name : files_below("docs", ".md")) {
    if (name.find('/') == std::string::npos) names.insert("docs/" + name);
  }
  return names;
}

}  // namespace

TEST_CASE("every relative link in a page points to an existing file") {
  for (const auto& page : pages()) {
    for (const auto& link :
         includes(root / page, "\\]\\((?!https?:)([^)#\\s]+)(?:#[^)\\s]*)?\\)")) {
      INFO(page << ": " << link);
      CHECK(fs::exists((root / page).parent_path() / link));
    }
  }
}

TEST_CASE("the task index links to every page") {
  const std::string text = read(root / "docs/README.md");
  for (const auto& page : pages()) {
    if (page == "README.md" || page == "docs/README.md") continue;
    INFO(page);
    const std::string link = page.starts_with("docs/") ? page.substr(5) : "../" + page;
    CHECK(text.find("(" + link) != std::string::npos);
  }
}
