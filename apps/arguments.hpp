#pragma once

#include <torch/version.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "fail.hpp"
#include "sconce/version.hpp"

namespace apps {

/// Returns the number of insertions, deletions, replacements, and swaps of neighboring letters
/// needed to turn one word into the other.
inline size_t edit_distance(const std::string& from, const std::string& to) {
  std::vector<std::vector<size_t>> of(from.size() + 1, std::vector<size_t>(to.size() + 1));
  for (size_t i = 0; i <= from.size(); ++i) {
    for (size_t j = 0; j <= to.size(); ++j) {
      if (i == 0 || j == 0) {
        of[i][j] = i + j;
        continue;
      }
      const size_t replaced = of[i - 1][j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1);
      of[i][j] = std::min({replaced, of[i - 1][j] + 1, of[i][j - 1] + 1});
      const bool may_swap = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
      if (may_swap) of[i][j] = std::min(of[i][j], of[i - 2][j - 2] + 1);
    }
  }
  return of[from.size()][to.size()];
}

/// Returns the program's flag that is most similar to the unknown flag. Neither flag includes its
/// leading dashes. Returns an empty string if more than a third of the letters differ for every
/// flag.
inline std::string nearest_flag(const CLI::App& app, const std::string& unknown) {
  std::string nearest;
  size_t least = std::max<size_t>(unknown.size() / 3, 1) + 1;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      const size_t distance = edit_distance(unknown, name);
      if (distance >= least) continue;
      least = distance;
      nearest = name;
    }
  }
  return nearest;
}

/// Returns the error for arguments that neither the program nor its subcommand recognizes, or an
/// empty string if there are none. The error names the first unknown flag, or the first unknown
/// word if every flag is known.
inline std::string unknown_argument(const CLI::App& app) {
  const auto commands = app.get_subcommands();
  std::vector<std::string> unknown = app.remaining(/*recurse=*/true);
  std::erase(unknown, "--");
  const auto is_flag = [](const std::string& word) { return word.size() > 1 && word[0] == '-'; };
  const auto found = std::find_if(unknown.begin(), unknown.end(), is_flag);
  if (found == unknown.end()) {
    return unknown.empty() ? "" : "'" + unknown.front() + "': unknown argument";
  }
  const std::string flag = found->substr(0, found->find('='));
  const std::string nearest =
      nearest_flag(commands.empty() ? app : *commands.front(),
                   flag.substr(std::min(flag.find_first_not_of('-'), flag.size())));
  return flag + ": unknown flag" + (nearest.empty() ? "" : "; did you mean --" + nearest + "?");
}

/// Parses a program's arguments. Returns the text to print if the arguments include --help or
/// --version, and an empty string otherwise.
/// @throw UsageError
inline std::string parse_arguments(CLI::App& app, int argc, const char* const* argv) {
  const auto version = [&app] {
    return app.get_name() + " " + std::to_string(SCONCE_VERSION_MAJOR) + "." +
           std::to_string(SCONCE_VERSION_MINOR) + "." + std::to_string(SCONCE_VERSION_PATCH) +
           SCONCE_VERSION_SUFFIX + ", LibTorch " + TORCH_VERSION + "\n";
  };
  app.set_version_flag("--version", version(), "Print the versions of sconce and LibTorch and exit")
      ->group("Options");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    const auto commands = app.get_subcommands();
    return (commands.empty() ? app : *commands.front()).help();
  } catch (const CLI::CallForVersion&) {
    return version();
  } catch (const CLI::ParseError& error) {
    const std::string unknown = unknown_argument(app);
    const std::string what = unknown.empty() ? error.what() : unknown;
    throw UsageError(what.substr(0, what.find('\n')) + " (--help lists the flags)");
  }
  return {};
}

}  // namespace apps
