#include "program/graph_reader.hpp"

#include <ATen/core/jit_type.h>
#include <c10/util/Exception.h>
#include <torch/version.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "program/json_node.hpp"
#include "program/refusals.hpp"

namespace sconce::program::detail {

namespace {

// Reads a program.
class Reader {
 public:
  // Every value is defined in the text, so a program contains fewer values than the text has bytes.
  Reader(const ReadJson& json, const std::string& error_prefix, size_t bytes)
      : root_(json, error_prefix), max_values_(bytes) {}

  ParsedProgram read() {
    const int64_t found = root_["version"].integer();
    if (found != version) root_["version"].refuse("version " + std::to_string(version));
    auto& graph = parsed_.graph;
    graph.device = root_["device"].one_of(devices);
    graph.values = root_["values"].index(max_values_);
    for (const auto& size : root_["sizes"].elements()) read_size_name(size);
    read_ports(root_["inputs"], graph.inputs);
    read_ports(root_["outputs"], graph.outputs);
    for (const auto& weight : root_["weights"].elements()) read_weight(weight);
    for (const auto& call : root_["calls"].elements()) graph.calls.push_back(this->call(call));
    read_checksums(root_["crc32"]);
    parsed_.has_example = root_["example"].boolean();
    check_inputs();
    return std::move(parsed_);
  }

 private:
  void read_size_name(const Node& node) {
    const auto name = node["name"].text();
    const int64_t min = node["min"].integer();
    if (min < 0) node["min"].refuse("at least 0");
    auto& sizes = parsed_.graph.sizes;
    if (!size_indices_.emplace(name, sizes.size()).second)
      node.refuse("a unique name for each size");
    sizes.push_back({name, min});
  }

  size_t size_index(const Node& node) const {
    const auto found = size_indices_.find(node.text());
    if (found == size_indices_.end()) node.refuse("a size name");
    return found->second;
  }

  Size size(const Node& node) const {
    if (node.json().is_number()) return Size(node.integer());
    Size size;
    for (const auto& term : node["sum"].elements()) {
      const auto factors = term.elements();
      if (factors.size() == 0) term.refuse("a coefficient followed by size names");
      Size::Term read{factors[0].integer(), {}};
      for (size_t i = 1; i < factors.size(); ++i) read.sizes.push_back(size_index(factors[i]));
      if (read.coefficient != 0) size.terms.push_back(std::move(read));
    }
    return size;
  }

  Port port(const Node& node) const {
    Port port{
        node["name"].text(), node["value"].index(parsed_.graph.values), node["dtype"].dtype(), {}};
    for (const auto& dim : node["shape"].elements()) port.shape.push_back(size(dim));
    return port;
  }

  void read_ports(const Node& node, std::vector<Port>& ports) const {
    std::set<std::string> names;
    for (const auto& element : node.elements()) {
      ports.push_back(port(element));
      if (!names.insert(ports.back().name).second) element["name"].refuse("unique names");
    }
  }

  // Weights and operators are either on the program's device or on the CPU.
  c10::DeviceType device(const Node& node) const {
    const auto device = node.one_of(devices);
    if (device != c10::kCPU && device != parsed_.graph.device)
      node.refuse("the program's device, cpu");
    return device;
  }

  // Each dynamic size must be the size of an input dimension, because runs read the value from that
  // dimension.
  void check_inputs() const {
    std::vector<bool> found(parsed_.graph.sizes.size());
    const auto inputs = root_["inputs"].elements();
    std::vector<bool> taken(parsed_.graph.values);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto& port = parsed_.graph.inputs[i];
      if (taken[port.value]) inputs[i].refuse("a distinct value for each input");
      taken[port.value] = true;
      for (const auto& dim : port.shape) {
        if (dim.constant()) continue;
        const auto& terms = dim.terms;
        const bool is_plain =
            terms.size() == 1 && terms[0].coefficient == 1 && terms[0].sizes.size() == 1;
        if (!is_plain) inputs[i]["shape"].refuse("integers and size names");
        found[terms[0].sizes[0]] = true;
      }
    }
    for (size_t i = 0; i < found.size(); ++i) {
      if (!found[i]) root_["sizes"].elements()[i].refuse("a size used by an input shape");
    }
  }

  void read_weight(const Node& node) {
    parsed_.graph.weights.push_back({.name = node["name"].text(),
                                     .kind = node["kind"].one_of(kinds),
                                     .value = node["value"].index(parsed_.graph.values),
                                     .tensor = {},
                                     .device = device(node["device"])});
    parsed_.tensor_names.push_back(node["tensor"].text());
  }

  void read_checksums(const Node& node) {
    if (!node.json().is_object()) node.refuse("an object");
    for (const auto& [name, checksum] : node.json().items()) {
      parsed_.checksums.emplace(name, Node(checksum, node.place() + " '" + name + "'").text());
    }
  }

  Call call(const Node& node) const {
    const c10::OperatorName name(node["op"].text(), node["overload"].text());
    const auto refusal = file_rejection(name);
    if (!refusal.empty()) {
      node.refuse("operators from the aten namespace that work on tensors", refusal, " (",
                  name.name, ")");
    }
    const auto op = c10::Dispatcher::singleton().findSchema(name);
    if (!op) {
      node.refuse("an operator of LibTorch " TORCH_VERSION, toString(name));
    }
    const Node named(node.json(), node.place() + " " + name.name);
    Call call{*op};
    read_arguments(named, call);
    const auto results = named["results"].elements();
    const auto& returns = op->schema().returns();
    if (results.size() != returns.size()) {
      named["results"].refuse(std::to_string(returns.size()) + " results",
                              std::to_string(results.size()));
    }
    for (size_t i = 0; i < results.size(); ++i) {
      call.results.push_back(result(results[i], *returns[i].real_type()));
    }
    return call;
  }

  void read_arguments(const Node& node, Call& call) const {
    const auto given = node["args"];
    if (!given.json().is_object()) given.refuse("an object");
    const auto& schema = call.op.schema();
    for (const auto& item : given.json().items()) {
      if (!schema.argumentIndexWithName(item.key())) {
        given.refuse("the operator's argument names", "'", item.key(), "'");
      }
    }
    const auto no_tensor = [](const at::Tensor&) { return Argument(); };
    for (const auto& parameter : schema.arguments()) {
      const auto found = given.json().find(parameter.name());
      if (found != given.json().end()) {
        call.arguments.push_back(
            argument(Node(*found, node.place() + ": argument '" + parameter.name() + "'")));
      } else {
        call.arguments.push_back(argument_of(parameter.default_value().value_or(c10::IValue()),
                                             *parameter.real_type(), no_tensor));
      }
    }
  }

  static double real(const Node& node) {
    const auto& json = node.json();
    if (json.is_number()) return json.get<double>();
    static constexpr std::array<std::pair<const char*, double>, 3> others = {
        {{"inf", std::numeric_limits<double>::infinity()},
         {"-inf", -std::numeric_limits<double>::infinity()},
         {"nan", std::numeric_limits<double>::quiet_NaN()}}};
    return node.one_of(others);
  }

  static c10::complex<double> complex(const Node& node) {
    const auto parts = node.elements();
    if (parts.size() != 2) node.refuse("two numbers");
    return {real(parts[0]), real(parts[1])};
  }

  WrappedNumber wrapped(const Node& node) const {
    const auto& json = node.json();
    if (json.is_boolean()) return {node.boolean()};
    if (json.is_object() && json.contains("float")) return {real(node["float"])};
    if (json.is_object() && json.contains("complex")) return {complex(node["complex"])};
    return {size(node)};
  }

  Argument argument(const Node& node) const {
    const auto& json = node.json();
    if (json.is_null()) return {};
    if (json.is_boolean()) return {node.boolean()};
    if (json.is_number()) return {size(node)};
    if (json.is_string()) return {node.text()};
    if (json.is_array()) {
      Argument::List list;
      list.reserve(json.size());
      for (const auto& element : node.elements()) list.push_back(argument(element));
      return {std::move(list)};
    }
    if (!json.is_object() || json.size() != 1) node.refuse("an argument with exactly one key");
    if (json.contains("sum")) return {size(node)};
    if (json.contains("value")) return {ValueId{node["value"].index(parsed_.graph.values)}};
    if (json.contains("number")) return {wrapped(node["number"])};
    if (json.contains("float")) return {real(node["float"])};
    if (json.contains("complex")) return {complex(node["complex"])};
    if (json.contains("dtype")) return {node["dtype"].dtype()};
    if (json.contains("layout")) return {node["layout"].one_of(layouts)};
    if (json.contains("memory_format")) return {node["memory_format"].one_of(memory_formats)};
    if (json.contains("device")) return {device(node["device"])};
    node.refuse("a supported kind of argument");
  }

  Argument result(const Node& node, const c10::Type& type) const {
    if (node.json().is_null()) return {};
    if (type.kind() == c10::TypeKind::TensorType)
      return {ValueId{node.index(parsed_.graph.values)}};
    if (!type.isSubtypeOf(*c10::ListType::ofTensors()))
      node.refuse("null for a result of type " + type.str());
    Argument::List list;
    for (const auto& element : node.elements())
      list.push_back(result(element, *c10::TensorType::get()));
    return {std::move(list)};
  }

  Node root_;
  size_t max_values_;
  std::map<std::string, size_t> size_indices_ = {};
  ParsedProgram parsed_ = {};
};

// Owns a JSON value and destroys it without allocating memory. The destructor of nlohmann's class
// first copies nested values to a list, and terminates the process if there is not enough memory
// for the list.
class ParsedJson {
 public:
  explicit ParsedJson(const std::string& text) : json_(ReadJson::parse(text)) {}
  ~ParsedJson() { release(json_); }
  ParsedJson(const ParsedJson&) = delete;
  ParsedJson& operator=(const ParsedJson&) = delete;

  const ReadJson& json() const { return json_; }

 private:
  // Accesses the containers directly, because member functions of nlohmann's class may throw.
  static void release(ReadJson& json) {
    if (auto* const list = json.get_ptr<ReadJson::array_t*>()) {
      for (auto& element : *list) release(element);
      list->clear();
    } else if (auto* const object = json.get_ptr<ReadJson::object_t*>()) {
      for (auto& [key, element] : *object) release(element);
      object->clear();
    }
  }

  ReadJson json_;
};

// Rejects text that is nested more deeply than any valid program, because the reader is recursive.
void check_depth(const std::string& text, const std::string& error_prefix) {
  constexpr int most = 32;
  int depth = 0;
  bool in_text = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_text && c == '\\') {
      ++i;
    } else if (c == '"') {
      in_text = !in_text;
    } else if (!in_text) {
      depth += (c == '[' || c == '{') - (c == ']' || c == '}');
      TORCH_CHECK(depth <= most, error_prefix, "expected a program nested at most ", most,
                  " levels deep, got deeper nesting at byte ", i);
    }
  }
}

}  // namespace

ParsedProgram parse_program(const std::string& text, const std::string& error_prefix) {
  check_depth(text, error_prefix);
  try {
    const ParsedJson parsed(text);
    return Reader(parsed.json(), error_prefix, text.size()).read();
  } catch (const nlohmann::json::exception& error) {
    TORCH_CHECK(false, error_prefix, "expected a program in JSON format: ", error.what());
  }
}

}  // namespace sconce::program::detail
