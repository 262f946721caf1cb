#include "train/command_line.hpp"

#include "fuzz/target.hpp"

using sconce::test::expect;

// Each input line is one sconce-train command-line argument.
SCONCE_FUZZ_TARGET(command_line)(const uint8_t* data, size_t size) {
  std::vector<std::string> words = {"sconce-train"};
  const std::string_view input = sconce::test::text(data, size);
  for (size_t begin = 0; begin < input.size();) {
    const size_t end = std::min(input.find('\n', begin), input.size());
    words.emplace_back(input.substr(begin, end - begin));
    begin = end + 1;
  }
  std::vector<const char*> argv;
  for (const auto& word : words) argv.push_back(word.c_str());
  try {
    const auto line = train::parse_command_line(static_cast<int>(argv.size()), argv.data());
    if (!line.help.empty()) return 0;
    expect(line.epochs >= 1 && line.batch_size >= 1 && line.accumulate >= 1,
           "no work is asked for");
    expect(line.test_fraction > 0 && line.test_fraction < 1, "a part of the pictures has none");
    expect(line.timeout > 0 && line.workers >= 0 && line.clip >= 0, "a number is out of its range");
  } catch (const train::UsageError& error) {
    const std::string_view message = error.what();
    expect(!message.empty() && message.find('\n') == message.npos, "the message is not one line");
  }
  return 0;
}
