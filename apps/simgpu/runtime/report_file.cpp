#include "simgpu/runtime/report_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace simgpu {

namespace {

// A file contains one line for each report. Each report line starts with a prefix that no other
// line contains, followed by the process ID.
using Lines = std::vector<std::string>;

constexpr const char* json_begin = R"({"process":)";
constexpr const char* xml_begin = R"(<testcase classname="process )";

bool is_xml(const std::string& file) {
  return file.ends_with(".xml");
}

// A lock that is held while the file is being replaced. The lock is on the folder, because a lock
// on the file would not cover its replacement.
class FolderLock {
 public:
  explicit FolderLock(const std::string& file)
      : folder_(open(folder_of(file).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (folder_ >= 0) flock(folder_, LOCK_EX);
  }
  ~FolderLock() {
    if (folder_ >= 0) close(folder_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  static std::string folder_of(const std::string& file) {
    const auto end = file.rfind('/');
    return end == std::string::npos ? "." : file.substr(0, end + 1);
  }

  int folder_;
};

std::string escape(const std::string& text) {
  std::string escaped;
  for (const char letter : text) {
    switch (letter) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += static_cast<unsigned char>(letter) < ' ' ? ' ' : letter;
    }
  }
  return escaped;
}

std::string json_line(int process, const Report& report) {
  nlohmann::ordered_json line{
      {"process", process}, {"text", report.text}, {"count", report.count}, {"ignored", nullptr}};
  if (!report.reason.empty()) line["ignored"] = report.reason;
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string xml_line(int process, const Report& report) {
  const auto verdict = report.reason.empty()
                           ? "<failure message=\"" + std::to_string(report.count) + " times\"/>"
                           : "<skipped message=\"" + escape(report.reason) + "\"/>";
  return xml_begin + std::to_string(process) + "\" name=\"" + escape(report.text) + "\">" +
         verdict + "</testcase>";
}

Lines lines_of_others(const std::string& file, int process) {
  const std::string begin = is_xml(file) ? xml_begin : json_begin;
  const std::string own = begin + std::to_string(process) + (is_xml(file) ? '"' : ',');
  Lines others;
  std::ifstream written(file);
  for (std::string line; std::getline(written, line);) {
    if (line.ends_with(',')) line.pop_back();
    if (line.starts_with(begin) && !line.starts_with(own)) others.push_back(line);
  }
  return others;
}

long count_with(const Lines& lines, const std::string& part) {
  return std::count_if(lines.begin(), lines.end(), [&](const std::string& line) {
    return line.find(part) != std::string::npos;
  });
}

std::string xml_of(const Lines& lines) {
  std::string text =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"simulated GPUs\"";
  text += " tests=\"" + std::to_string(lines.size()) + "\" failures=\"" +
          std::to_string(count_with(lines, "><failure ")) + "\" skipped=\"" +
          std::to_string(count_with(lines, "><skipped ")) + "\">\n";
  for (const auto& line : lines) text += line + "\n";
  return text + "</testsuite>\n";
}

std::string json_of(const Lines& lines) {
  std::string text = "{\"reports\": [";
  for (size_t i = 0; i < lines.size(); ++i) text += (i == 0 ? "\n" : ",\n") + lines[i];
  return text + "\n]}\n";
}

void replace(const std::string& file, const Lines& lines) {
  const std::string part = file + ".part";
  std::ofstream written(part, std::ios::trunc);
  written << (is_xml(file) ? xml_of(lines) : json_of(lines));
  written.close();
  if (!written || std::rename(part.c_str(), file.c_str()) != 0) {
    throw std::runtime_error("cannot write " + file);
  }
}

}  // namespace

void start_report_file(const std::string& file) {
  replace(file, {});
}

void put_reports(const std::string& file, int process, const std::vector<Report>& reports) {
  const FolderLock lock(file);
  auto lines = lines_of_others(file, process);
  for (const auto& report : reports) {
    lines.push_back(is_xml(file) ? xml_line(process, report) : json_line(process, report));
  }
  replace(file, lines);
}

}  // namespace simgpu
