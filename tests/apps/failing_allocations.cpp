// Makes each allocation fail in turn while sconce-train weights are being read.
#include "catch.hpp"
#include "sconce/io/safetensors.hpp"
#include "sconce/nn/state_dict.hpp"
#include "support/allocations.hpp"
#include "support/temp_dir.hpp"
#include "train/model_file.hpp"

TEST_CASE(
    "if any allocation fails, reading a model file throws and does not terminate the process") {
  const sconce::test::TempDir folder;
  const auto file = folder.path() / "model.safetensors";
  const train::Task task = {
      .shape = {1, 4, 4}, .mean = {0.5}, .std = {0.25}, .classes = {"a cat", "a dog"}};
  const auto network = train::make_model("linear", task.shape, task.outputs());
  sconce::io::save_safetensors(file, sconce::nn::state_dict(*network),
                               train::model_metadata("linear", task));
  sconce::test::fail_each_allocation([&] { train::load_model(file); });
  sconce::test::fail_each_allocation([&] { train::load_pretrained(file, "linear"); });
}
