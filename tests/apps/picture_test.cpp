#include "train/picture.hpp"

#include <cstdlib>

#include "catch.hpp"
#include "support/png.hpp"
#include "support/temp_dir.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using sconce::test::contents;
using sconce::test::TempDir;
using train::read_picture;
using train::read_picture_header;

namespace {

namespace fs = std::filesystem;

const fs::path pictures = SCONCE_TESTS_DIR "/reference/pictures";

// The pictures of a folder in the formats that the program was built with.
std::vector<fs::path> pictures_in(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string suffix = entry.path().extension();
    if ((suffix == ".png" && train::has_libpng()) || (suffix == ".jpg" && train::has_libjpeg())) {
      found.push_back(entry.path());
    }
  }
  return found;
}

// Checks that a picture has the pixels that Pillow read. JPEG pixels may differ by 2, as they do
// between versions of libjpeg-turbo.
void check_pixels(fs::path file) {
  INFO(file.string());
  const auto picture = read_picture(file);
  const auto size = read_picture_header(file);
  REQUIRE(picture.sizes() == torch::IntArrayRef{3, size.height, size.width});
  REQUIRE(picture.dtype() == torch::kByte);
  const bool is_png = file.extension() == ".png";
  std::string bytes = contents(file.replace_extension(".rgb"));
  REQUIRE(static_cast<int64_t>(bytes.size()) == picture.numel());
  const auto expected = torch::from_blob(bytes.data(), {size.height, size.width, 3}, torch::kByte);
  const auto apart = (picture.permute({1, 2, 0}).to(torch::kInt) - expected.to(torch::kInt)).abs();
  CHECK(apart.max().item<int>() <= (is_png ? 0 : 2));
}

// The text of the error that rejects the file, or nothing if it is read.
std::string refusal(const fs::path& file, int64_t max_pixels = train::max_picture_pixels) {
  try {
    read_picture(file, max_pixels);
  } catch (const train::PictureError& error) {
    return error.what();
  }
  return "";
}

// The first bytes of a grey PNG of that size.
std::string first_bytes(int64_t width, int64_t height) {
  return sconce::test::png_header(1, height, width) + std::string(4, '\0') + "IDAT";
}

void check_no_picture(const fs::path& file, const std::string& why) {
  CHECK_THAT(refusal(file), StartsWith(file.string() + ": ") && ContainsSubstring(why));
  CHECK_THROWS_AS(read_picture_header(file), train::PictureError);
}

}  // namespace

TEST_CASE("pictures have the pixels that Pillow reads") {
  const auto files = pictures_in(pictures);
  for (const auto& file : files) check_pixels(file);
  CHECK(files.size() == (train::has_libpng() ? 24U : 0U) + (train::has_libjpeg() ? 10U : 0U));
}

TEST_CASE("pictures of a folder of one's own have the pixels that Pillow reads", "[.][pictures]") {
  const char* folder = std::getenv("SCONCE_PICTURES");
  if (folder == nullptr) SKIP("takes a folder that pictures.py wrote: SCONCE_PICTURES=FOLDER");
  for (const auto& file : pictures_in(folder)) check_pixels(file);
}

TEST_CASE("a picture that ends anywhere before its end is refused by name") {
  const TempDir folder;
  for (const auto& whole : pictures_in(pictures)) {
    const fs::path file = folder.path() / whole.filename();
    fs::copy_file(whole, file);
    for (auto length = fs::file_size(file); length-- > 0;) {
      fs::resize_file(file, length);
      const std::string why = refusal(file);
      if (why.starts_with(file.string() + ": ")) continue;
      FAIL_CHECK(file.filename().string() << " of " << length << " bytes: " << why);
      break;
    }
  }
}

TEST_CASE("a picture with any bit changed is read or refused") {
  const TempDir folder;
  for (const auto& whole : pictures_in(pictures)) {
    const std::string bytes = contents(whole);
    for (size_t i = 0; i < bytes.size(); i += 3) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ (1 << i % 8));
      CHECK_NOTHROW(refusal(folder.write("changed", changed), 1 << 16));
    }
  }
}

TEST_CASE("a PNG with changed pixels is refused for its checksum") {
  if (!train::has_libpng()) SKIP("built without libpng");
  const TempDir folder;
  std::string bytes = contents(pictures / "rgb-8.png");
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  const auto file = folder.write("changed.png", bytes);
  CHECK_THAT(refusal(file), StartsWith(file.string() + ": damaged PNG: "));
  CHECK(read_picture_header(file).width == 19);
}

TEST_CASE("a file that is no picture is refused by its content, not its name") {
  const TempDir folder;
  check_no_picture(folder.write("empty.png", ""), "expected a PNG or JPEG picture");
  check_no_picture(folder.write("text.jpg", "GIF89a, or so"), "expected a PNG or JPEG picture");
  check_no_picture(folder.path() / "nowhere.png", "no such file");
  check_no_picture(folder.path(), "got a folder");
  fs::create_symlink("circle.png", folder.path() / "circle.png");
  check_no_picture(folder.path() / "circle.png", "symbolic links");
  check_no_picture("/dev/null", "expected a regular file");
  if (!train::has_libpng()) return;
  fs::copy_file(pictures / "rgb-8.png", folder.path() / "a.jpg");
  CHECK(refusal(folder.path() / "a.jpg").empty());
  fs::copy_file(pictures / "rgb-8.png", folder.path() / "\xff\xfe.png");
  CHECK(refusal(folder.path() / "\xff\xfe.png").empty());
}

TEST_CASE("a picture that is too large is refused by its header") {
  const TempDir folder;
  if (train::has_libpng()) {
    check_no_picture(folder.write("a.png", first_bytes(60000, 60000)),
                     "60000 x 60000 pixels are more than the 89478485");
    check_no_picture(folder.write("b.png", first_bytes(0x7fffffff, 0x7fffffff)), "are more than");
    check_no_picture(folder.write("c.png", first_bytes(89478486, 1)), "are more than");
    CHECK(read_picture_header(folder.write("d.png", first_bytes(89478485, 1))).height == 1);
    check_no_picture(folder.write("e.png", first_bytes(0, 1)), "damaged PNG");
  }
  if (train::has_libjpeg()) {
    std::string bytes = contents(pictures / "grey.jpg");
    const auto size = bytes.find(std::string("\0\x0b\0\x13", 4));
    REQUIRE(size != std::string::npos);
    bytes.replace(size, 4, "\xea\x60\xea\x60");
    check_no_picture(folder.write("a.jpg", bytes), "60000 x 60000 pixels are more than");
  }
  CHECK_THROWS_AS(read_picture(pictures / "rgb-8.png", 19 * 11 - 1), std::runtime_error);
}

TEST_CASE("a program without a library of pictures names the package to install") {
  const auto error = [](const char* name) -> std::string {
    try {
      read_picture(pictures / name);
    } catch (const std::runtime_error& refused) {
      return refused.what();
    }
    return "";
  };
  const auto named = [](const char* package) { return ContainsSubstring(package); };
  if (!train::has_libpng()) CHECK_THAT(error("rgb-8.png"), named("apt install libpng-dev"));
  if (!train::has_libjpeg()) CHECK_THAT(error("grey.jpg"), named("apt install libjpeg-dev"));
  if (train::has_libpng() && train::has_libjpeg()) SKIP("built with both");
}

TEST_CASE("a picture becomes grey and small as Pillow and torchvision make it") {
  auto rgb = torch::tensor({255, 0, 10, 0, 255, 20, 255, 255, 30}, torch::kByte).view({3, 1, 3});
  // The values of Image.convert('L') for (255, 0, 255), (0, 255, 255), (10, 20, 30).
  CHECK(train::rgb_to_grey(rgb).equal(torch::tensor({105, 179, 18}, torch::kByte).view({1, 1, 3})));
  const auto ramp = torch::arange(64, torch::kByte).view({1, 4, 16}).expand({3, 4, 16});
  const auto small = train::resize_picture(ramp, {2, 4});
  // From torch.nn.functional.interpolate(ramp[None], [2, 4], mode="bilinear", antialias=True).
  CHECK(small[0].equal(torch::tensor({{13, 17, 21, 24}, {39, 43, 47, 50}}, torch::kByte)));
  CHECK(train::resize_picture(ramp, {4, 16}).is_contiguous());
}
