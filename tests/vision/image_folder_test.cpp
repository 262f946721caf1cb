#include "sconce/vision/image_folder.hpp"

#include <fstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "sconce/data/data_loader.hpp"
#include "sconce/data/subset.hpp"
#include "sconce/vision/image.hpp"
#include "support/error_of.hpp"
#include "support/temp_dir.hpp"
#include "vision/png.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using sconce::test::error_of;
using sconce::test::TempDir;
using sconce::vision::ImageFolder;
using sconce::vision::ImageReadMode;

namespace {

namespace fs = std::filesystem;

void make_file(const fs::path& file) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary).flush();
}

void make_picture(const fs::path& file, int64_t shade, int64_t width = 5) {
  fs::create_directories(file.parent_path());
  sconce::vision::write_png(torch::full({3, 4, width}, shade, torch::kByte), file);
}

void check_folder_refused(const fs::path& root, const fs::path& named, const std::string& why) {
  CHECK_THAT(error_of([&] { ImageFolder folder(root); }),
             StartsWith("sconce::vision::ImageFolder: " + named.string() + ": ") &&
                 ContainsSubstring(why));
}

}  // namespace

TEST_CASE("is_image_file depends only on the extension") {
  using sconce::vision::is_image_file;
  for (const char* name : {"a.png", "a.jpg", "a.jpeg", "no/such/A.PNG", "a.tar.JpEg", "\xff.jpg"}) {
    CHECK(is_image_file(name));
  }
  for (const char* name : {"", "png", "a.png.gz", "a.png/", "a.pngx", "a.gif", "a_png"}) {
    CHECK_FALSE(is_image_file(name));
  }
}

TEST_CASE("ImageFolder sorts classes and images bytewise by name") {
  const TempDir root;
  for (const char* name : {"b/2.png", "b/10.PNG", "b/x.JpEg", "b/notes.txt", "b/.hidden.png",
                           "B/a.jpg", "\xc3\xa4/\xff\xfe.png", ".git/a.png", "README.png"}) {
    make_file(root.path() / name);
  }
  const ImageFolder folder(root.path());
  CHECK(folder.classes() == std::vector<std::string>{"B", "b", "\xc3\xa4"});
  std::vector<std::string> names;
  for (const auto& sample : folder.samples()) {
    names.push_back(std::to_string(sample.target) + sample.path.filename().string());
  }
  CHECK(names ==
        std::vector<std::string>{"0a.jpg", "110.PNG", "12.png", "1x.JpEg", "2\xff\xfe.png"});
  CHECK(folder.size() == 5);
  CHECK(folder.targets().equal(torch::tensor({0, 1, 1, 1, 2})));
}

TEST_CASE(
    "ImageFolder rejects a folder without classes or images and reports the folder in the error") {
  const TempDir temporary;
  const fs::path root = temporary.path() / "data";
  fs::create_directory(root);
  check_folder_refused(root / "nowhere", root / "nowhere", "cannot read the folder");
  check_folder_refused(root, root, "expected a folder of images for each class, found none");
  make_file(root / "a.png");
  check_folder_refused(root, root, "expected a folder of images for each class, found none");
  check_folder_refused(root / "a.png", root / "a.png", "cannot read the folder");
  make_file(root / "cat/a.png");
  CHECK(ImageFolder(root).classes() == std::vector<std::string>{"cat"});
  fs::create_directory(root / "dog");
  check_folder_refused(root, root / "dog",
                       "expected at least one image (.png, .jpg, .jpeg) in the class folder");
  fs::create_directory(root / "dog/x.png");
  check_folder_refused(root, root / "dog/x.png", "got a folder");
  fs::remove(root / "dog/x.png");
  make_file(root / "dog/a.png");
  CHECK(ImageFolder(root).size() == 2);
}

TEST_CASE("ImageFolder follows a link to a class and rejects cyclic and broken links") {
  const TempDir temporary;
  const fs::path root = temporary.path() / "data";
  const auto refuse = [&](const char* name, const fs::path& target, const std::string& why) {
    fs::create_symlink(target, root / name);
    check_folder_refused(root, root / name, why);
    fs::remove(root / name);
  };
  make_file(root / "cat/a.png");
  make_file(temporary.path() / "elsewhere/b.png");
  fs::create_symlink(temporary.path() / "elsewhere", root / "dog");
  CHECK(ImageFolder(root).classes() == std::vector<std::string>{"cat", "dog"});
  refuse("here", ".", "got a link to a parent folder");
  refuse("above", temporary.path(), "got a link to a parent folder");
  refuse("self", "self", "symbolic links");
  refuse("nothing", "nowhere", "No such file");
  refuse("cat/above", "..", "got a folder");
  refuse("cat/self", "self", "symbolic links");
}

TEST_CASE("ImageFolder accepts only UTF-8 class names without control characters") {
  const TempDir temporary;
  const auto list_with = [&](const std::string& name) {
    const fs::path root = temporary.path() / std::to_string(name.size());
    make_file(root / "a/a.png");
    make_file(root / name / "a.png");
    const std::string error = error_of([&] { ImageFolder folder(root); });
    fs::remove_all(root);
    return error;
  };
  for (const char* good : {"b", "\x7e", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x90\xb1", "b c"}) {
    CHECK(list_with(good) == "nothing was thrown");
  }
  for (const char* bad :
       {"\xff", "\xc3", "\xc3(", "\xe2\x82", "\xc0\xaf", "\xed\xa0\x80", "b\nc", "\xf5\x80\x80\x80",
        "\xf4\x90\x80\x80", "\xe0\x80\x80", "\x7f", "\xc2\x85", "\x80"}) {
    CHECK_THAT(list_with(bad), ContainsSubstring(bad) && ContainsSubstring("name in UTF-8"));
  }
}

TEST_CASE("an ImageFolder item contains the transformed image and its class") {
  if (!sconce::vision::has_libpng()) SKIP("built without libpng");
  const TempDir root;
  make_picture(root.path() / "cat/a.png", 7);
  make_picture(root.path() / "dog/a.png", 9, 6);
  const ImageFolder plain(root.path());
  const auto dog = plain.get(1);
  CHECK(dog.data.equal(torch::full({3, 4, 6}, 9, torch::kByte)));
  CHECK(dog.target.equal(torch::tensor(1)));
  const auto corner = [](const torch::Tensor& picture) {
    return picture.slice(1, 0, 2).slice(2, 0, 2).to(torch::kFloat);
  };
  const ImageFolder small(root.path(), {.transform = sconce::vision::transforms::Compose(corner),
                                        .mode = ImageReadMode::gray});
  CHECK(small.get(0).data.equal(torch::full({1, 2, 2}, 7.F)));
  for (const auto& batch : sconce::data::DataLoader(small, {.batch_size = 2, .num_workers = 2})) {
    CHECK(batch.data.sizes() == torch::IntArrayRef{2, 1, 2, 2});
    CHECK(batch.target.equal(torch::tensor({0, 1})));
  }
  const ImageFolder limited(root.path(), {.limits = {.max_pixels = 20}});
  CHECK(limited.get(0).data.defined());
  CHECK_THAT(error_of([&] { limited.get(1); }), ContainsSubstring("at most 20 pixels"));
  for (const int64_t index : {-1, 2}) {
    CHECK_THAT(error_of([&] { small.get(index); }),
               StartsWith("sconce::vision::ImageFolder: expected an index from 0 to 1, got "));
  }
}

TEST_CASE("random transforms in ImageFolder depend on the item rather than on the worker") {
  if (!sconce::vision::has_libpng()) SKIP("built without libpng");
  const TempDir root;
  for (int i = 0; i < 6; ++i) make_picture(root.path() / "a" / (std::to_string(i) + ".png"), i);
  const auto noisy = [](const torch::Tensor& picture, const at::Generator& generator) {
    return picture.to(torch::kFloat) + torch::rand({1}, generator);
  };
  const ImageFolder folder(root.path(), {.transform = sconce::vision::transforms::Compose(noisy)});
  const auto all_of = [](const auto& loader) {
    std::vector<torch::Tensor> batches;
    for (const auto& batch : loader) batches.push_back(batch.data);
    return torch::cat(batches);
  };
  const auto items = all_of(sconce::data::DataLoader(folder, {.batch_size = 2, .num_workers = 0}));
  CHECK(std::get<0>(torch::_unique(items.frac())).numel() == 6);
  CHECK(items.equal(all_of(sconce::data::DataLoader(folder, {.batch_size = 2, .num_workers = 2}))));
  const sconce::data::Subset two(folder, {3, 4});
  CHECK(all_of(sconce::data::DataLoader(two, {.batch_size = 2})).sizes() ==
        torch::IntArrayRef{2, 3, 4, 5});
}

TEST_CASE("ImageFolder reports the name of an unreadable image when the image is read") {
  const TempDir root;
  make_file(root.path() / "a/a.png");
  const ImageFolder folder(root.path());
  CHECK_THAT(error_of([&] { folder.get(0); }),
             StartsWith("sconce::vision::read_image: " + (root.path() / "a/a.png").string()));
}
