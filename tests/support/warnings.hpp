#pragma once

#include <c10/util/Exception.h>

#include <string>
#include <vector>

namespace sconce::test {

/// For the lifetime of the object, collects this thread's warnings instead of printing them to
/// stderr.
class Warnings {
 public:
  const std::vector<std::string>& messages() const { return handler_.messages; }

 private:
  struct Handler : c10::WarningHandler {
    void process(const c10::Warning& warning) override { messages.push_back(warning.msg()); }
    std::vector<std::string> messages;
  };

  Handler handler_;
  c10::WarningUtils::WarningHandlerGuard guard_{&handler_};
};

}  // namespace sconce::test
