#include "sconce/vision/transforms.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "support/error_of.hpp"
#include "support/host_reads.hpp"
#include "support/require_gpu.hpp"

using Catch::Matchers::ContainsSubstring;
using sconce::test::error_of;
using sconce::vision::transforms::CenterCrop;
using sconce::vision::transforms::ColorJitter;
using sconce::vision::transforms::Compose;
using sconce::vision::transforms::Normalize;
using sconce::vision::transforms::RandomCrop;
using sconce::vision::transforms::RandomHorizontalFlip;
using sconce::vision::transforms::RandomResizedCrop;
using sconce::vision::transforms::Resize;

namespace {

at::Generator seeded(uint64_t seed) {
  return at::make_generator<at::CPUGeneratorImpl>(seed);
}

const std::map<std::string, torch::ScalarType> type_names = {{"uint8", torch::kByte},
                                                             {"int16", torch::kShort},
                                                             {"float16", torch::kHalf},
                                                             {"float32", torch::kFloat},
                                                             {"float64", torch::kDouble}};

// The same images as in reference/transforms.py.
torch::Tensor sample_images(torch::ScalarType type, at::IntArrayRef shape) {
  const auto values =
      torch::arange(c10::multiply_integers(shape)).mul(73).remainder(251).reshape(shape).to(type);
  return values.is_floating_point() ? values / 256 : values;
}

// One line from reference/transforms.txt, split into words. Lines that describe defaults do not
// contain a type.
struct Case {
  torch::Tensor images;
  std::vector<double> options;
  std::vector<double> expected;
};

std::vector<Case> cases(const std::string& kind) {
  std::ifstream file(std::filesystem::path(SCONCE_TESTS_DIR) / "reference/transforms.txt");
  REQUIRE(file.is_open());
  std::vector<Case> found;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(kind + " ")) continue;
    const auto colon = line.find(" : ");
    REQUIRE(colon != std::string::npos);
    std::istringstream words(line.substr(kind.size() + 1, colon - kind.size() - 1));
    std::istringstream values(line.substr(colon + 3));
    std::string type;
    std::vector<int64_t> shape(4);
    words >> type >> shape[0] >> shape[1] >> shape[2] >> shape[3];
    auto& one = found.emplace_back();
    one.images = sample_images(type_names.at(type), shape);
    one.options.assign(std::istream_iterator<double>(words), {});
    one.expected.assign(std::istream_iterator<double>(values), {});
  }
  REQUIRE(!found.empty());
  return found;
}

int64_t integer(double value) {
  return static_cast<int64_t>(value);
}

void check_near(const torch::Tensor& result, const std::vector<double>& expected, double rtol,
                double atol) {
  const auto values = torch::tensor(expected, torch::kDouble).view_as(result);
  CHECK(torch::allclose(result.to(torch::kDouble), values, rtol, atol));
}

// Compares uint8 values exactly, other integers to within 1 (halves may be rounded either way), and
// floats to within the tolerances of torch.testing in Python.
void check_as_expected(const torch::Tensor& result, const std::vector<double>& expected) {
  REQUIRE(result.numel() == static_cast<int64_t>(expected.size()));
  switch (result.scalar_type()) {
    case torch::kByte:
      return check_near(result, expected, 0, 0);
    case torch::kShort:
      return check_near(result, expected, 0, 1);
    case torch::kHalf:
      return check_near(result, expected, 1e-3, 1e-5);
    case torch::kDouble:
      return check_near(result, expected, 1e-7, 1e-7);
    default:
      return check_near(result, expected, 1.3e-6, 1e-5);
  }
}

const std::vector<double> channel_mean = {0.5, 0.25, 0.125};
const std::vector<double> channel_std = {0.2, 0.3, 0.7};

}  // namespace

TEST_CASE("Resize matches torchvision") {
  for (const auto& [input, options, expected] : cases("resize")) {
    CAPTURE(input.scalar_type(), input.sizes(), options);
    const auto copy = input.clone();
    const auto result = Resize({integer(options[0]), integer(options[1])})(input);
    CHECK(result.scalar_type() == input.scalar_type());
    check_as_expected(result, expected);
    CHECK(torch::equal(input, copy));
  }
}

TEST_CASE("Resize computes integer images in floating point and rounds the result") {
  const auto input = sample_images(torch::kShort, {2, 3, 9, 8});
  const Resize resize({5, 11});
  CHECK(torch::equal(resize(input), resize(input.to(torch::kFloat)).round().to(torch::kShort)));
}

TEST_CASE("Resize returns images of the target size unchanged and accepts an empty batch") {
  const auto input = sample_images(torch::kByte, {2, 1, 4, 5});
  CHECK(Resize({4, 5})(input).is_same(input));
  for (const auto type : {torch::kByte, torch::kFloat, torch::kHalf}) {
    const auto none = Resize({4, 6})(torch::empty({0, 3, 8, 8}, type));
    CHECK(none.sizes() == std::vector<int64_t>{0, 3, 4, 6});
    CHECK(none.scalar_type() == type);
  }
}

TEST_CASE("Resize accepts images in any memory format") {
  const auto input = sample_images(torch::kByte, {2, 3, 9, 8});
  const Resize resize({4, 5});
  CHECK(torch::equal(resize(input.contiguous(at::MemoryFormat::ChannelsLast)), resize(input)));
  CHECK(torch::equal(resize(input.transpose(2, 3)), resize(input.transpose(2, 3).contiguous())));
}

TEST_CASE("Resize rejects a size below 1 and images that it cannot scale") {
  CHECK(error_of([] { Resize({0, 4}); }) ==
        "sconce::vision::transforms::Resize: expected height and width to be at least 1, got 0 and "
        "4");
  const Resize resize({4, 4});
  CHECK(error_of([&] { resize({}); }) ==
        "sconce::vision::transforms::Resize: expected images, got an undefined tensor");
  CHECK(error_of([&] { resize(torch::zeros({8, 8})); }) ==
        "sconce::vision::transforms::Resize: expected images of shape (N, C, H, W) or (C, H, W), "
        "got shape [8, 8]");
  CHECK_THAT(error_of([&] { resize(torch::zeros({1, 1, 0, 8})); }),
             ContainsSubstring("with at least one pixel, got shape [1, 1, 0, 8]"));
  CHECK_THAT(error_of([&] { resize(torch::zeros({1, 1, 8, 8}, torch::kBool)); }),
             ContainsSubstring("a floating-point or integer type, got Bool"));
}

TEST_CASE("Normalize matches torchvision") {
  for (const auto& [input, options, expected] : cases("normalize")) {
    CAPTURE(input.scalar_type(), input.sizes());
    const auto copy = input.clone();
    const auto channels = input.size(1);
    const auto result = Normalize({channel_mean.begin(), channel_mean.begin() + channels},
                                  {channel_std.begin(), channel_std.begin() + channels})(input);
    CHECK(result.scalar_type() == input.scalar_type());
    check_as_expected(result, expected);
    CHECK(torch::equal(input, copy));
  }
}

TEST_CASE("Normalize rejects mismatched means, standard deviations, and images") {
  CHECK(error_of([] { Normalize({}, {}); }) ==
        "sconce::vision::transforms::Normalize: expected mean and std to contain the same nonzero "
        "number of values, got "
        "0 and 0");
  CHECK_THAT(error_of([] { Normalize({0, 0}, {1}); }), ContainsSubstring("got 2 and 1"));
  CHECK_THAT(error_of([] { Normalize({0, 0}, {1, 0}); }),
             ContainsSubstring("expected nonzero std values"));
  const Normalize normalize({0, 0, 0}, {1, 1, 1});
  CHECK_THAT(error_of([&] { normalize({}); }), ContainsSubstring("undefined"));
  CHECK_THAT(error_of([&] { normalize(torch::zeros({2, 2})); }),
             ContainsSubstring("got shape [2, 2]"));
  CHECK(
      error_of([&] { normalize(torch::zeros({1, 3, 2, 2}, torch::kByte)); }) ==
      "sconce::vision::transforms::Normalize: expected images of a floating-point type, got Byte");
  CHECK(error_of([&] { normalize(torch::zeros({1, 1, 2, 2})); }) ==
        "sconce::vision::transforms::Normalize: expected images of 3 channels (the number of "
        "values in mean), got 1");
}

TEST_CASE("RandomCrop matches torchvision's pad and crop at the same positions") {
  for (const auto& [input, options, expected] : cases("crop")) {
    CAPTURE(input.sizes(), options);
    const RandomCrop crop(
        {integer(options[0]), integer(options[1])},
        {integer(options[2]), integer(options[3]), integer(options[4]), integer(options[5])});
    const auto seed = static_cast<uint64_t>(options[6]);
    const auto result = crop(input, seeded(seed));
    check_as_expected(result, expected);
    CHECK(torch::equal(crop(input, seeded(seed)), result));
  }
}

TEST_CASE("RandomCrop draws each image's position independently and can draw every position") {
  // Each pixel's value is its index, so a one-pixel crop reveals the crop position.
  const auto input = torch::arange(12).reshape({1, 1, 3, 4}).expand({1000, 1, 3, 4});
  const auto places = RandomCrop({1, 1})(input, seeded(0)).flatten();
  CHECK(std::get<0>(torch::_unique2(places)).equal(torch::arange(12)));
  const auto counts = places.bincount();
  CHECK(counts.min().item<int64_t>() > 40);  // 83 on average; the seed is fixed
}

TEST_CASE("RandomCrop accepts a single padding value for all sides and accepts empty batches") {
  const auto input = sample_images(torch::kFloat, {6, 2, 4, 4});
  CHECK(torch::equal(RandomCrop({4, 4}, 2)(input, seeded(5)),
                     RandomCrop({4, 4}, {2, 2, 2, 2})(input, seeded(5))));
  const auto none = RandomCrop({3, 2}, 1)(input.narrow(0, 0, 0), seeded(5));
  CHECK(none.sizes() == std::vector<int64_t>{0, 2, 3, 2});
  const auto no_channel = RandomCrop({3, 2}, 1)(input.narrow(1, 0, 0), seeded(5));
  CHECK(no_channel.sizes() == std::vector<int64_t>{6, 0, 3, 2});
}

TEST_CASE("RandomCrop accepts a slice of a batch and images in any memory format") {
  const auto input = sample_images(torch::kFloat, {9, 3, 6, 5});
  for (const int64_t padding : {0, 1}) {
    const RandomCrop crop({4, 3}, padding);
    CHECK(torch::equal(crop(input.narrow(0, 4, 3), seeded(2)),
                       crop(input.narrow(0, 4, 3).clone(), seeded(2))));
    CHECK(torch::equal(crop(input.contiguous(at::MemoryFormat::ChannelsLast), seeded(2)),
                       crop(input, seeded(2))));
    CHECK(torch::equal(crop(input.transpose(2, 3), seeded(2)),
                       crop(input.transpose(2, 3).contiguous(), seeded(2))));
  }
}

TEST_CASE("RandomCrop returns a copy even if only one position is possible") {
  const auto input = sample_images(torch::kFloat, {3, 1, 4, 4});
  const auto result = RandomCrop({4, 4})(input, seeded(1));
  CHECK(torch::equal(result, input));
  CHECK_FALSE(result.is_alias_of(input));
}

TEST_CASE("RandomCrop rejects invalid sizes and an undefined generator") {
  CHECK(error_of([] { RandomCrop({4, -1}); }) ==
        "sconce::vision::transforms::RandomCrop: expected height and width to be at least 1, got 4 "
        "and -1");
  CHECK(error_of([] { RandomCrop({4, 4}, {0, 1, -2, 0}); }) ==
        "sconce::vision::transforms::RandomCrop: expected padding to be non-negative, got [0, 1, "
        "-2, 0]");
  const RandomCrop crop({5, 4}, {0, 1, 0, 0});
  const auto input = torch::zeros({2, 1, 3, 4});
  CHECK(error_of([&] { crop(input, seeded(0)); }) ==
        "sconce::vision::transforms::RandomCrop: expected images of at least 5 x 4 pixels "
        "including padding, got "
        "4 x 4");
  CHECK_THAT(error_of([&] { crop(torch::zeros({2, 1, 4, 3}), seeded(0)); }),
             ContainsSubstring("got 5 x 3"));
  CHECK_THAT(error_of([&] { crop({}, seeded(0)); }), ContainsSubstring("undefined tensor"));
  CHECK_THAT(error_of([&] { crop(torch::zeros({5, 5}), seeded(0)); }),
             ContainsSubstring("got shape [5, 5]"));
  CHECK(error_of([&] { crop(torch::zeros({2, 1, 4, 4}), {}); }) ==
        "sconce::vision::transforms::RandomCrop: expected a CPU generator, got an undefined one");
}

TEST_CASE("RandomHorizontalFlip matches torchvision applied to one image at a time") {
  for (const auto& [input, options, expected] : cases("flip")) {
    CAPTURE(options);
    const auto copy = input.clone();
    const RandomHorizontalFlip flip(options[0]);
    const auto result = flip(input, seeded(static_cast<uint64_t>(options[1])));
    check_as_expected(result, expected);
    CHECK(torch::equal(input, copy));
    CHECK_FALSE(result.is_alias_of(input));
  }
  const auto input = sample_images(torch::kFloat, {40, 1, 2, 3});
  CHECK(torch::equal(RandomHorizontalFlip()(input, seeded(3)),
                     RandomHorizontalFlip(0.5)(input, seeded(3))));  // torchvision's default
}

TEST_CASE("RandomHorizontalFlip rejects a probability below 0 or above 1") {
  for (const double p : {-0.1, 1.1, std::numeric_limits<double>::quiet_NaN()}) {
    CHECK_THAT(error_of([&] { RandomHorizontalFlip{p}; }),
               ContainsSubstring("sconce::vision::transforms::RandomHorizontalFlip: expected p to "
                                 "be from 0 to 1, got "));
  }
  const RandomHorizontalFlip flip;
  CHECK_THAT(error_of([&] { flip({}, seeded(0)); }), ContainsSubstring("undefined tensor"));
  CHECK_THAT(error_of([&] { flip(torch::zeros({2, 2}), seeded(0)); }),
             ContainsSubstring("got shape [2, 2]"));
  CHECK_THAT(error_of([&] { flip(torch::zeros({1, 1, 2, 2}), {}); }),
             ContainsSubstring("expected a CPU generator"));
}

TEST_CASE("CenterCrop matches torchvision") {
  for (const auto& [input, options, expected] : cases("center")) {
    CAPTURE(input.scalar_type(), input.sizes(), options);
    const auto copy = input.clone();
    check_as_expected(CenterCrop({integer(options[0]), integer(options[1])})(input), expected);
    CHECK(torch::equal(input, copy));
  }
  CHECK(CenterCrop({3, 2})(torch::zeros({0, 3, 8, 8})).sizes() == std::vector<int64_t>{0, 3, 3, 2});
  CHECK_THAT(error_of([] { CenterCrop({0, 4}); }),
             ContainsSubstring("CenterCrop: expected height and width to be at least 1"));
  CHECK_THAT(error_of([] { CenterCrop({4, 4})(torch::Tensor()); }),
             ContainsSubstring("CenterCrop: expected images, got an undefined tensor"));
}

TEST_CASE("RandomResizedCrop matches torchvision applied to one image at a time") {
  for (const auto& [input, options, expected] : cases("box")) {
    CAPTURE(input.scalar_type(), input.sizes(), options);
    const RandomResizedCrop crop({integer(options[0]), integer(options[1])},
                                 {options[2], options[3]}, {options[4], options[5]});
    const auto copy = input.clone();
    check_as_expected(crop(input, seeded(static_cast<uint64_t>(options[6]))), expected);
    CHECK(torch::equal(input, copy));
  }
  const auto boxes = cases("box");
  const auto& [input, options, expected] = boxes.front();  // uses torchvision's defaults
  check_as_expected(RandomResizedCrop({5, 6})(input, seeded(0)), expected);
}

TEST_CASE("RandomResizedCrop rejects invalid bounds and images that it cannot crop") {
  using Bounds = std::array<double, 2>;
  for (const auto& bounds : {Bounds{0, 1}, Bounds{1, 0.5}, Bounds{-1, 1}}) {
    CHECK_THAT(error_of([&] { RandomResizedCrop({4, 4}, bounds); }),
               ContainsSubstring("RandomResizedCrop: expected increasing scale bounds above 0"));
    CHECK_THAT(error_of([&] { RandomResizedCrop({4, 4}, {0.1, 1}, bounds); }),
               ContainsSubstring("RandomResizedCrop: expected increasing ratio bounds above 0"));
  }
  const RandomResizedCrop crop({4, 5});
  CHECK(crop(torch::zeros({0, 3, 8, 8}), seeded(0)).sizes() == std::vector<int64_t>{0, 3, 4, 5});
  CHECK_THAT(error_of([&] { crop(torch::zeros({1, 3, 0, 8}), seeded(0)); }),
             ContainsSubstring("with at least one pixel, got shape [1, 3, 0, 8]"));
  CHECK_THAT(error_of([&] { crop(torch::zeros({1, 3, 8, 8}), {}); }),
             ContainsSubstring("expected a CPU generator"));
}

TEST_CASE("ColorJitter matches torchvision applied to one image at a time") {
  for (const auto& [input, options, expected] : cases("jitter")) {
    CAPTURE(input.scalar_type(), input.sizes(), options);
    const ColorJitter jitter({.brightness = options[0],
                              .contrast = options[1],
                              .saturation = options[2],
                              .hue = options[3]});
    const auto copy = input.clone();
    const auto result = jitter(input, seeded(static_cast<uint64_t>(options[4])));
    CHECK(result.scalar_type() == input.scalar_type());
    // On another processor, a mean may be rounded differently and fall on the other side of an
    // integer.
    if (input.scalar_type() == torch::kByte) {
      check_near(result, expected, 0, 1);
    } else {
      check_near(result, expected, 1e-5, 1e-5);
    }
    CHECK(torch::equal(input, copy));
    CHECK_FALSE(result.is_alias_of(input));
  }
}

TEST_CASE(
    "ColorJitter rejects out-of-range options and images that are neither grayscale nor RGB") {
  for (const double wrong : {-0.1, std::numeric_limits<double>::infinity()}) {
    CHECK_THAT(error_of([&] { ColorJitter({.brightness = wrong}); }),
               ContainsSubstring("ColorJitter: expected a brightness of 0 to "));
    CHECK_THAT(error_of([&] { ColorJitter({.contrast = wrong}); }),
               ContainsSubstring("expected a contrast"));
    CHECK_THAT(error_of([&] { ColorJitter({.saturation = wrong}); }),
               ContainsSubstring("expected a saturation"));
  }
  CHECK_THAT(error_of([] { ColorJitter({.hue = 0.6}); }),
             ContainsSubstring("expected a hue of 0 to 0.5, got 0.6"));
  const ColorJitter jitter({.hue = 0.5});
  CHECK_THAT(error_of([&] { jitter(torch::zeros({1, 2, 4, 4}), seeded(0)); }),
             ContainsSubstring("1 or 3 channels, got 2"));
  CHECK_THAT(error_of([&] { jitter(torch::zeros({1, 3, 4, 4}, torch::kInt), seeded(0)); }),
             ContainsSubstring("uint8 or a floating-point type, got Int"));
  CHECK_THAT(error_of([&] { jitter(torch::zeros({1, 3, 4, 4}), {}); }),
             ContainsSubstring("expected a CPU generator"));
}

TEST_CASE("transforming a single image gives the same result as transforming a batch of one") {
  const auto image = sample_images(torch::kByte, {3, 9, 8, 1}).squeeze(3);
  const Compose random(RandomResizedCrop({7, 7}), RandomCrop({6, 6}, 1), RandomHorizontalFlip(),
                       ColorJitter({.brightness = 0.5, .hue = 0.1}));
  const auto to_float = [](const torch::Tensor& given) { return given.to(torch::kFloat); };
  const Compose all(Resize({10, 9}), CenterCrop({8, 8}), random, to_float,
                    Normalize(channel_mean, channel_std));
  const auto one = all(image, seeded(6));
  CHECK(one.sizes() == std::vector<int64_t>{3, 6, 6});
  CHECK(one.equal(all(image.unsqueeze(0), seeded(6)).squeeze(0)));
}

TEST_CASE("Compose matches torchvision") {
  for (const auto& [input, options, expected] : cases("compose")) {
    check_as_expected(Compose(Resize({5, 4}), Normalize(channel_mean, channel_std))(input),
                      expected);
  }
}

TEST_CASE("Compose passes its generator to the random transforms in order") {
  const auto input = sample_images(torch::kByte, {8, 1, 6, 6});
  const auto to_float = [](const torch::Tensor& given) { return given.to(torch::kFloat) / 255; };
  const auto noise = [](torch::Tensor given, at::Generator draws) {
    return given + torch::rand(given.sizes(), draws);
  };
  Compose augment(RandomCrop({4, 4}, 1), to_float, RandomHorizontalFlip(), noise);
  const auto draws = seeded(4);
  auto expected = to_float(RandomCrop({4, 4}, 1)(input, draws));
  expected = noise(RandomHorizontalFlip()(expected, draws), draws);
  CHECK(torch::equal(augment(input, seeded(4)), expected));
  CHECK_FALSE(torch::equal(augment(input, seeded(5)), expected));

  const Compose copy(augment);
  augment.push_back(Normalize({0.5}, {0.5}));
  CHECK(torch::equal(copy(input, seeded(4)), expected));
  CHECK(torch::equal(augment(input, seeded(4)), Normalize({0.5}, {0.5})(expected)));
  const Compose within(augment, Resize({2, 2}));
  CHECK(torch::equal(within(input, seeded(4)), Resize({2, 2})(augment(input, seeded(4)))));
  CHECK_THAT(error_of([&] { augment(input); }), ContainsSubstring("expected a CPU generator"));
}

TEST_CASE("an empty Compose returns its input unchanged, and transforms can be added at run time") {
  Compose compose;
  const auto input = sample_images(torch::kByte, {2, 1, 4, 4});
  CHECK(compose(input).is_same(input));
  compose.push_back(Resize({2, 2}));
  CHECK(torch::equal(compose(input), Resize({2, 2})(input)));
}

TEST_CASE("transforms do not use the global generator or perform host reads") {
  const Compose augment(RandomCrop({5, 5}, 1), RandomHorizontalFlip(), Resize({4, 4}),
                        Normalize({0.5}, {0.5}));
  const auto input = sample_images(torch::kFloat, {8, 1, 6, 6});
  const auto draws = seeded(1);
  torch::manual_seed(5);
  const auto next = torch::rand({4});
  torch::manual_seed(5);
  const sconce::test::HostReads reads;
  augment(input, draws);
  CHECK(reads.count() == 0);
  CHECK(torch::equal(torch::rand({4}), next));
}

TEST_CASE("deterministic transforms work on any device") {
  const Compose scale(Resize({4, 4}), Normalize({0.5}, {0.5}));
  const auto result = scale(torch::empty({2, 1, 6, 6}, torch::kMeta));
  CHECK(result.is_meta());
  CHECK(result.sizes() == std::vector<int64_t>{2, 1, 4, 4});
}

TEST_CASE("on a GPU, random transforms make the same choices as on the CPU", "[gpu]") {
  sconce::test::require_gpu();
  const auto bytes = sample_images(torch::kByte, {16, 3, 12, 10});
  const Compose augment(RandomCrop({9, 9}, {1, 2, 0, 1}), RandomHorizontalFlip());
  const auto on_gpu = bytes.cuda();
  torch::Tensor result;
  {
    const sconce::test::HostReads reads;
    result = augment(on_gpu, seeded(6));
    CHECK(reads.count() == 0);
  }
  CHECK(result.is_cuda());
  const auto expected = augment(bytes, seeded(6));
  CHECK(torch::equal(result.cpu(), expected));

  const auto differences =
      Resize({5, 14})(result).cpu().to(torch::kShort) - Resize({5, 14})(expected).to(torch::kShort);
  CHECK(differences.abs().max().item<int64_t>() <= 1);
  const Compose scale(Resize({5, 14}), Normalize(channel_mean, channel_std));
  const auto floats = expected.to(torch::kFloat) / 255;
  CHECK(torch::allclose(scale(floats.cuda()).cpu(), scale(floats), 1.3e-6, 1e-5));
}
