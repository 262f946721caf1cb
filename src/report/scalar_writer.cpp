#include "sconce/report/scalar_writer.hpp"

#include <c10/util/Exception.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <utility>

#include "host_call.hpp"
#include "io/folder_names.hpp"
#include "io/utf8.hpp"
#include "report/append_file.hpp"
#include "repr/format.hpp"
#include "sconce/io/atomic_file.hpp"

namespace sconce {

namespace fs = std::filesystem;

namespace {

constexpr auto caller = "sconce::ScalarWriter";
const std::string csv_header = "step,epoch,tag,value,wall_time\n";

std::string csv_line(const ScalarEvent& scalar) {
  std::string tag = scalar.tag;
  if (tag.find_first_of(",\"") != tag.npos) {
    for (size_t i = 0; (i = tag.find('"', i)) != tag.npos; i += 2) tag.insert(i, 1, '"');
    tag = '"' + tag + '"';
  }
  return std::to_string(scalar.step) + ',' + std::to_string(scalar.epoch) + ',' + tag + ',' +
         shortest_text(scalar.value) + ',' + shortest_text(scalar.wall_time) + '\n';
}

// Returns the step and epoch in a line, or std::nullopt if the line does not contain a scalar.
std::optional<std::pair<int64_t, int64_t>> csv_place(const std::string& line) {
  int64_t step = 0;
  int64_t epoch = 0;
  const char* end = line.data() + line.size();
  const auto first = std::from_chars(line.data(), end, step);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != ',') return {};
  const auto second = std::from_chars(first.ptr + 1, end, epoch);
  if (second.ec != std::errc() || second.ptr == end || *second.ptr != ',') return {};
  return {{step, epoch}};
}

// Returns the name of a file written by an earlier run, or an empty string if there is none.
std::string earlier_file(const fs::path& folder) {
  std::error_code error;
  for (const auto& name : detail::folder_names(folder, error)) {
    if (name == "scalars.csv" || name.starts_with("events.out.tfevents.")) return name;
  }
  return {};
}

}  // namespace

// The file scalars.csv.
class ScalarWriter::Csv {
 public:
  // Checks the folder before an event file is created, because an event file would hide another
  // run's scalars.
  Csv(const fs::path& folder, const std::optional<int64_t>& resume_step)
      : path_(folder / "scalars.csv"), file_(path_, caller) {
    if (resume_step) {
      resume(*resume_step);
    } else {
      check_new(folder);
    }
  }

  void add(const std::string& line) { pending_ += line; }

  void flush() {
    if (kept_) {
      io::write_file(path_, *kept_, caller);
      kept_.reset();
    }
    if (pending_.empty()) return;
    file_.append(pending_);
    pending_.clear();
  }

 private:
  static void check_new(const fs::path& folder) {
    const std::string earlier = earlier_file(folder);
    TORCH_CHECK(earlier.empty(), caller, ": ", folder.string(),
                ": expected a folder without scalars for a new run, got a folder with ", earlier,
                ": choose another folder, or resume the run in this folder");
  }

  // Keeps the lines up to and including the given step.
  void resume(int64_t last_step) {
    std::error_code error;
    if (!fs::exists(path_, error)) return;
    const std::string text = io::read_file(path_, caller);
    if (csv_header.starts_with(text)) {  // only the header, or part of it
      kept_ = std::string();
      return;
    }
    TORCH_CHECK(text.starts_with(csv_header), caller, ": ", path_.string(),
                ": expected a file that begins with ", csv_header.substr(0, csv_header.size() - 1),
                ", got different contents");
    pending_.clear();
    std::string kept = kept_lines(text, last_step);
    if (kept != text) kept_ = std::move(kept);
  }

  // Returns the header and all complete lines up to and including the given step. A truncated last
  // line is omitted.
  std::string kept_lines(const std::string& text, int64_t last_step) const {
    std::string kept = csv_header;
    int64_t number = 1;
    size_t begin = csv_header.size();
    for (size_t end; (end = text.find('\n', begin)) != text.npos; begin = end + 1) {
      const std::string line = text.substr(begin, end - begin);
      const auto place = csv_place(line);
      ++number;
      TORCH_CHECK(place, caller, ": ", path_.string(), ":", number,
                  ": expected a line in the scalar format, got an invalid line");
      const auto [step, epoch] = *place;
      TORCH_CHECK(
          last_step > 0 || epoch <= 1, caller, ": ", path_.string(),
          ": expected no scalars after epoch 1 (the run starts over), got scalars from epoch ",
          epoch, ": choose another folder, or delete this folder");
      if (step <= last_step) kept += line + '\n';
    }
    return kept;
  }

  fs::path path_;
  AppendFile file_;
  std::optional<std::string> kept_ = {};  // replaces the file's contents at the next flush
  std::string pending_ = csv_header;
};

ScalarWriter::ScalarWriter(fs::path folder, const ScalarFilesOptions& options)
    : folder_(std::move(folder)),
      csv_(std::make_unique<Csv>(folder_, options.resume_step)),
      events_(folder_, {.purge_step = options.resume_step ? std::optional(*options.resume_step + 1)
                                                          : std::nullopt}) {}

ScalarWriter::~ScalarWriter() {
  try {
    flush();
  } catch (const std::exception&) {  // a destructor must not throw
  }
}

void ScalarWriter::add(const ScalarEvent& scalar) {
  detail::check_not_capturing("sconce::ScalarWriter::add");
  const auto is_control = [](unsigned char byte) { return byte < 32 || byte == 127; };
  TORCH_CHECK(
      io::is_utf8(scalar.tag) && std::none_of(scalar.tag.begin(), scalar.tag.end(), is_control),
      caller, "::add: expected a tag in UTF-8 without control characters, got an invalid tag");
  csv_->add(csv_line(scalar));
  events_.add_scalar(scalar.tag, scalar.value, scalar.step, {.walltime = scalar.wall_time});
}

void ScalarWriter::flush() {
  detail::check_not_capturing("sconce::ScalarWriter::flush");
  std::error_code error;
  fs::create_directories(folder_, error);
  TORCH_CHECK(!error, caller, ": ", folder_.string(),
              ": cannot create the folder: ", error.message());
  std::exception_ptr first;
  const auto attempt = [&first](auto& file) {
    try {
      file.flush();
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  };
  attempt(*csv_);
  attempt(events_);
  if (first) std::rethrow_exception(first);
}

}  // namespace sconce
