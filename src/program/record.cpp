#include "sconce/program/record.hpp"

#include "check_path.hpp"
#include "program/program_file.hpp"
#include "program/recording.hpp"

namespace sconce::program {

void detail::record(const std::filesystem::path& path, const Function& function,
                    const torch::nn::Module* module, const StateDict& example,
                    const RecordOptions& options) {
  constexpr const char* caller = "sconce::program::record";
  check_path(path, caller);
  write_program(path, Recording(function, module, example, options).record(),
                std::string(caller) + ": ");
}

}  // namespace sconce::program
