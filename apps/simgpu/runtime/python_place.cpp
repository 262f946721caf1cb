#include "simgpu/runtime/python_place.hpp"

#include "simgpu/runtime/find_function.hpp"

namespace simgpu {

namespace {

// Python functions that may be missing from the process.
struct Python {
  void* (*this_thread)() = find_function<decltype(this_thread)>("PyGILState_GetThisThreadState");
  int (*ensure)() = find_function<decltype(ensure)>("PyGILState_Ensure");
  void (*release)(int) = find_function<decltype(release)>("PyGILState_Release");
  void* (*frame_of)(void*) = find_function<decltype(frame_of)>("PyThreadState_GetFrame");
  void* (*back)(void*) = find_function<decltype(back)>("PyFrame_GetBack");
  void* (*code_of)(void*) = find_function<decltype(code_of)>("PyFrame_GetCode");
  int (*line_of)(void*) = find_function<decltype(line_of)>("PyFrame_GetLineNumber");
  void* (*attribute)(void*,
                     const char*) = find_function<decltype(attribute)>("PyObject_GetAttrString");
  const char* (*text_of)(void*) = find_function<decltype(text_of)>("PyUnicode_AsUTF8");
  void (*give_back)(void*) = find_function<decltype(give_back)>("Py_DecRef");

  bool is_there() const { return frame_of != nullptr && back != nullptr; }
};

const Python& python() {
  static const auto& functions = *new Python;
  return functions;
}

std::string file_of(void* frame) {
  void* code = python().code_of(frame);
  void* name = python().attribute(code, "co_filename");
  const char* text = name == nullptr ? nullptr : python().text_of(name);
  const std::string file = text == nullptr ? "" : text;
  if (name != nullptr) python().give_back(name);
  python().give_back(code);
  return file;
}

bool is_of_torch(const std::string& file) {
  return file.starts_with("<frozen") || file.find("/site-packages/torch/") != std::string::npos ||
         file.find("/dist-packages/torch/") != std::string::npos;
}

std::string place_of_frames(void* frame) {
  std::string place;
  while (frame != nullptr) {
    const auto file = file_of(frame);
    place = file + ":" + std::to_string(python().line_of(frame));
    void* outer = is_of_torch(file) ? python().back(frame) : nullptr;
    python().give_back(frame);
    frame = outer;
  }
  return place;
}

}  // namespace

std::string python_place() {
  if (!python().is_there()) return "";
  void* thread = python().this_thread();
  if (thread == nullptr) return "";
  const int state = python().ensure();
  const auto place = place_of_frames(python().frame_of(thread));
  python().release(state);
  return place;
}

}  // namespace simgpu
