// Tests writing and reading files from several threads at the same time.

#include <string>

#include "catch.hpp"
#include "sconce/io/atomic_file.hpp"
#include "sconce/io/csv.hpp"
#include "sconce/io/safetensors.hpp"
#include "sconce/io/torch_file.hpp"
#include "sconce/training/checkpoint.hpp"
#include "support/at_once.hpp"
#include "support/error_of.hpp"
#include "support/temp_dir.hpp"

using sconce::test::check_at_once;

TEST_CASE(
    "four threads concurrently replace and read the same file, and every read returns a complete "
    "file") {
  namespace io = sconce::io;
  const sconce::test::TempDir folder;
  const auto tensors = folder.path() / "net.safetensors", archive = folder.path() / "net.pt";
  const auto text = folder.path() / "text";
  sconce::StateDict state;
  state.insert("weight", torch::arange(1000));
  const auto is_state = [&](const sconce::StateDict& read) {
    return torch::equal(read["weight"], state["weight"]);
  };
  check_at_once({
      {"safetensors",
       [&] {
         io::save_safetensors(tensors, state);
         return is_state(io::load_safetensors(tensors));
       }},
      {"torch file",
       [&] {
         io::save_torch(archive, state);
         return io::is_torch_file(archive) && is_state(io::load_torch_state_dict(archive));
       }},
      {"AtomicFile",
       [&] {
         io::write_file(text, std::string(1000, 'a'), "test");
         return io::read_file(text, "test").size() == 1000;
       }},
  });
  CHECK(sconce::test::names_in(folder.path()).size() == 3);  // no incomplete files remain
}

TEST_CASE("four threads read the same table concurrently") {
  const sconce::test::TempDir folder;
  const auto file = folder.write("table.csv", "rooms,roof\n1,slate\n2,tile\n");
  check_at_once({{"read_csv", [&] {
                    const auto table = sconce::io::read_csv(file);
                    return table.features.size() == 3 && table.data.size(0) == 2;
                  }}});
}

TEST_CASE(
    "while one Checkpoint is writing to a folder, another thread's Checkpoint for that folder is "
    "rejected") {
  const sconce::test::TempDir folder;
  sconce::Checkpoint first(folder.path());
  first.lock();
  check_at_once({{"Checkpoint", [&] {
                    sconce::Checkpoint second(folder.path());
                    const auto text = sconce::test::error_of([&] { second.lock(); });
                    return text.find("another Checkpoint") != std::string::npos;
                  }}});
  check_at_once({{"latest", [&] { return first.latest().empty() && first.best().empty(); }}});
}
