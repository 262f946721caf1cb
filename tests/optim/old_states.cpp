// Resumes training with optimizers saved by an older version of the library.
#include <filesystem>

#include "catch.hpp"
#include "reference/checkpoints_of_f48842a/runs.hpp"
#include "sconce/io/torch_file.hpp"
#include "support/recorded_numbers.hpp"

namespace {

using namespace sconce::test::of_f48842a;

// Runs the remaining training steps and returns all resulting values.
template <class Load>
torch::Tensor resume(const Run& run, const c10::List<torch::Tensor>& values, const Load& load) {
  const auto parameters = make_parameters();
  for (size_t i = 0; i < parameters.size(); ++i) parameters[i].detach().copy_(values.get(i));
  const auto optimizer = make_optimizer(run, parameters);
  load(*optimizer);
  step(run, *optimizer, parameters, saved_after, all_steps);
  return all_numbers(*optimizer, parameters);
}

void check_end(const torch::Tensor& numbers, const torch::Tensor& expected, bool bit_for_bit) {
  if (bit_for_bit) {
    CHECK(numbers.equal(expected));
  } else {
    CHECK(torch::allclose(numbers, expected, 1.3e-6, 1e-5));
  }
}

}  // namespace

TEST_CASE("a run continues bit for bit from a state dict or archive saved by commit f48842a") {
  const std::filesystem::path folder = SCONCE_TESTS_DIR "/reference/checkpoints_of_f48842a";
  const bool rounds_as_recorded = sconce::test::rounds_as_recorded();
  for (const auto& [name, of_optimizer] : runs()) {
    const auto all = sconce::io::load_torch(folder / name / "runs.pt").toGenericDict();
    CHECK(all.size() == of_optimizer.size());
    for (const auto& run : of_optimizer) {
      INFO(name << " " << run.name);
      // SGD takes no square root, and fused kernels do not call LibTorch's.
      const bool bit_for_bit = name == "SGD" || run.name == "fused"
                                   ? sconce::test::is_recorded_version()
                                   : rounds_as_recorded;
      const auto saved = all.at(run.name).toGenericDict();
      c10::List<torch::Tensor> values;
      for (const c10::IValue& value : saved.at("parameters").toListRef()) {
        values.push_back(value.toTensor());
      }
      const auto expected = saved.at("end").toTensor();
      check_end(resume(run, values,
                       [&](auto& optimizer) { optimizer.load_state_dict(saved.at("state")); }),
                expected, bit_for_bit);
      if (!saved.contains("archive")) continue;
      const auto bytes = saved.at("archive").toTensor();
      check_end(resume(run, values,
                       [&](auto& optimizer) {
                         std::istringstream archive(std::string(
                             static_cast<const char*>(bytes.data_ptr()), bytes.nbytes()));
                         torch::load(optimizer, archive);
                       }),
                expected, bit_for_bit);
    }
  }
}
