#include "report/visible_gpus.hpp"

#include "catch.hpp"

using sconce::Environment;
using sconce::visible_gpus;
using Places = std::vector<size_t>;

namespace {

Environment three_gpus() {
  Environment facts;
  facts.driver.gpus = {{.name = "A", .uuid = "GPU-aa1", .bus_id = "00000000:0A:00.0"},
                       {.name = "A", .uuid = "GPU-ab2", .bus_id = "00000000:1B:00.0"},
                       {.name = "A", .uuid = "GPU-bc3", .bus_id = "00000001:1B:00.0"}};
  return facts;
}

Environment with_visible(const std::string& list) {
  Environment facts = three_gpus();
  facts.visible_devices = list;
  return facts;
}

std::vector<int> indexes(Environment facts) {
  sconce::number_gpus(facts);
  std::vector<int> found;
  for (const auto& gpu : facts.driver.gpus) found.push_back(gpu.index.value_or(-1));
  return found;
}

}  // namespace

TEST_CASE("CUDA_VISIBLE_DEVICES is read up to the first number or UUID that matches no GPU") {
  CHECK(visible_gpus(three_gpus()) == Places{0, 1, 2});
  CHECK(visible_gpus(with_visible("2,0")) == Places{2, 0});
  CHECK(visible_gpus(with_visible(" 1 , 2")) == Places{1, 2});
  CHECK(visible_gpus(with_visible("GPU-bc3,GPU-aa1")) == Places{2, 0});
  CHECK(visible_gpus(with_visible("GPU-b")) == Places{2});
  CHECK(visible_gpus(with_visible("1,3,0")) == Places{1});
  CHECK(visible_gpus(with_visible("1,-1,0")) == Places{1});
  CHECK(visible_gpus(with_visible("1,none,0")) == Places{1});
}

TEST_CASE("CUDA_VISIBLE_DEVICES can hide all GPUs") {
  for (const char* list : {"", "-1", "3", "GPU-a", "GPU-x", "no", "0,0", ",0"}) {
    INFO(list);
    CHECK(visible_gpus(with_visible(list)).empty());
  }
}

TEST_CASE("each GPU has the same index as in CUDA") {
  CHECK(indexes(three_gpus()) == std::vector<int>{0, 1, 2});
  CHECK(indexes(with_visible("2,0")) == std::vector<int>{1, -1, 0});
  CHECK(indexes(with_visible("-1")) == std::vector<int>{-1, -1, -1});
}

TEST_CASE(
    "if CUDA's bus IDs are available, they determine the GPU numbering, regardless of the "
    "environment variables") {
  Environment facts = with_visible("0,1,2");
  facts.torch.gpu_buses = {"0001:1b:00.0", "0000:0a:00.0"};
  CHECK(indexes(facts) == std::vector<int>{1, -1, 0});
}

TEST_CASE("GPUs of different models are not numbered if CUDA lists the fastest GPU first") {
  Environment facts = three_gpus();
  facts.driver.gpus[2].name = "B";
  CHECK(indexes(facts) == std::vector<int>{-1, -1, -1});
  facts.device_order = "PCI_BUS_ID";
  CHECK(indexes(facts) == std::vector<int>{0, 1, 2});
  facts.visible_devices = "GPU-bc3";
  CHECK(indexes(facts) == std::vector<int>{-1, -1, 0});
}
