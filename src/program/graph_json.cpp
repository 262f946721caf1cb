#include "program/graph_json.hpp"

#include <ATen/core/jit_type.h>
#include <c10/util/Exception.h>
#include <torch/version.h>

#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "program/refusals.hpp"
#include "sconce/repr.hpp"

namespace sconce::program::detail {

namespace {

using Json = nlohmann::ordered_json;
using ReadJson = nlohmann::json;  // finds a key faster, for objects with as many as a file can have

constexpr int64_t version = 1;

constexpr std::array<std::pair<const char*, c10::Layout>, 1> layouts = {
    {{"strided", c10::Layout::Strided}}};
constexpr std::array<std::pair<const char*, c10::MemoryFormat>, 4> memory_formats = {
    {{"contiguous_format", c10::MemoryFormat::Contiguous},
     {"preserve_format", c10::MemoryFormat::Preserve},
     {"channels_last", c10::MemoryFormat::ChannelsLast},
     {"channels_last_3d", c10::MemoryFormat::ChannelsLast3d}}};
constexpr std::array<std::pair<const char*, c10::DeviceType>, 2> devices = {
    {{"cpu", c10::kCPU}, {"cuda", c10::kCUDA}}};
constexpr std::array<std::pair<const char*, WeightKind>, 3> kinds = {
    {{"parameter", WeightKind::parameter},
     {"buffer", WeightKind::buffer},
     {"constant", WeightKind::constant}}};

template <class Names, class T>
std::string name_in(const Names& names, T value) {
  for (const auto& [name, named] : names) {
    if (named == value) return name;
  }
  TORCH_CHECK(false, "sconce::program::record: expected a value that programs have, got number ",
              static_cast<int64_t>(value));
}

std::string dtype_name(c10::ScalarType type) {
  return repr(type).substr(std::string("torch.").size());
}

// Writes a program.
class Writer {
 public:
  explicit Writer(const Graph& graph) : graph_(graph) {}

  Json size(const Size& size) const {
    if (const auto constant = size.constant()) return *constant;
    Json terms = Json::array();
    for (const auto& term : size.terms) {
      Json factors = Json::array({term.coefficient});
      for (const size_t index : term.sizes) factors.push_back(graph_.sizes[index].name);
      terms.push_back(std::move(factors));
    }
    return {{"sum", std::move(terms)}};
  }

  Json port(const Port& port) const {
    Json shape = Json::array();
    for (const auto& dim : port.shape) shape.push_back(size(dim));
    return {{"name", port.name},
            {"value", port.value},
            {"dtype", dtype_name(port.dtype)},
            {"shape", std::move(shape)}};
  }

  Json call(const Call& call) const {
    Json arguments = Json::object();
    const auto& parameters = call.op.schema().arguments();
    for (size_t i = 0; i < parameters.size(); ++i) {
      const bool is_none = std::holds_alternative<std::monostate>(call.arguments[i].value);
      const auto& standard = parameters[i].default_value();
      if (is_none && (!standard || standard->isNone())) continue;
      arguments[parameters[i].name()] = argument(call.arguments[i]);
    }
    Json results = Json::array();
    for (const auto& of_call : call.results) results.push_back(result(of_call));
    return {{"op", call.op.schema().name()},
            {"overload", call.op.schema().overload_name()},
            {"args", std::move(arguments)},
            {"results", std::move(results)}};
  }

 private:
  static Json real(double value) {
    if (std::isfinite(value)) return value;
    return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
  }

  Json number(bool value) const { return value; }
  Json number(double value) const { return {{"float", real(value)}}; }
  Json number(c10::complex<double> value) const {
    return {{"complex", Json::array({real(value.real()), real(value.imag())})}};
  }
  Json number(const Size& value) const { return size(value); }

  Json argument(const Argument& argument) const {
    return std::visit([this](const auto& value) { return json(value); }, argument.value);
  }
  Json json(std::monostate) const { return nullptr; }
  Json json(bool value) const { return number(value); }
  Json json(const Size& value) const { return number(value); }
  Json json(double value) const { return number(value); }
  Json json(c10::complex<double> value) const { return number(value); }
  Json json(const std::string& value) const { return value; }
  Json json(ValueId value) const { return {{"value", value.id}}; }
  Json json(const WrappedNumber& wrapped) const {
    return {{"number",
             std::visit([this](const auto& value) { return number(value); }, wrapped.number)}};
  }
  Json json(c10::ScalarType value) const { return {{"dtype", dtype_name(value)}}; }
  Json json(c10::Layout value) const { return {{"layout", name_in(layouts, value)}}; }
  Json json(c10::MemoryFormat value) const {
    return {{"memory_format", name_in(memory_formats, value)}};
  }
  Json json(c10::DeviceType value) const { return {{"device", name_in(devices, value)}}; }
  Json json(const Argument::List& list) const {
    Json elements = Json::array();
    for (const auto& element : list) elements.push_back(argument(element));
    return elements;
  }

  Json result(const Argument& result) const {
    if (const auto* value = std::get_if<ValueId>(&result.value)) return value->id;
    const auto* list = std::get_if<Argument::List>(&result.value);
    if (list == nullptr) return nullptr;
    Json elements = Json::array();
    for (const auto& element : *list) elements.push_back(this->result(element));
    return elements;
  }

  const Graph& graph_;
};

class Elements;

// A value of the JSON with its place, such as "calls[3] args 'weight'".
class Node {
 public:
  Node(const ReadJson& json, std::string place) : json_(json), place_(std::move(place)) {}

  template <class... Got>
  [[noreturn]] void refuse(const std::string& expected, const Got&... got) const {
    TORCH_CHECK(false, place_, is_root() ? "" : ": ", "expected ", expected, ", got ", got...);
  }
  [[noreturn]] void refuse(const std::string& expected) const {
    std::string text = json_.dump(-1, ' ', false, ReadJson::error_handler_t::replace);
    if (text.size() > 60) text = text.substr(0, 60) + "...";
    refuse(expected, text);
  }

  const ReadJson& json() const { return json_; }
  const std::string& place() const { return place_; }

  Node operator[](const char* key) const {
    if (!json_.is_object()) refuse("an object");
    const auto found = json_.find(key);
    if (found == json_.end()) refuse(std::string("the key '") + key + "'", "none");
    return {*found, place_ + (is_root() ? "" : " ") + key};
  }

  std::string text() const {
    if (!json_.is_string()) refuse("a text");
    return json_.get<std::string>();
  }

  int64_t integer() const {
    const bool fits =
        json_.is_number_integer() && (!json_.is_number_unsigned() ||
                                      json_.get<uint64_t>() <= std::numeric_limits<int64_t>::max());
    if (!fits) refuse("an integer of 64 bits");
    return json_.get<int64_t>();
  }

  size_t index(size_t end) const {
    const int64_t value = integer();
    if (value < 0 || static_cast<size_t>(value) >= end) {
      refuse("a number from 0 to below " + std::to_string(end));
    }
    return static_cast<size_t>(value);
  }

  bool boolean() const {
    if (!json_.is_boolean()) refuse("true or false");
    return json_.get<bool>();
  }

  Elements elements() const;

  template <class Names>
  auto one_of(const Names& names) const {
    const std::string given = text();
    std::string all;
    for (const auto& [name, value] : names) {
      if (name == given) return value;
      all += (all.empty() ? "" : ", ") + std::string(name);
    }
    refuse("one of " + all);
  }

  c10::ScalarType dtype() const {
    const std::string name = text();
    for (int i = 0; i < static_cast<int>(c10::ScalarType::NumOptions); ++i) {
      const auto type = static_cast<c10::ScalarType>(i);
      if (type != c10::ScalarType::Undefined && dtype_name(type) == name) return type;
    }
    refuse("a dtype that LibTorch has");
  }

 private:
  bool is_root() const { return place_.ends_with(": "); }

  const ReadJson& json_;
  std::string place_;
};

// The elements of a list. Each is made when it is needed, because a list can be as long as the
// file.
class Elements {
 public:
  class Iterator {
   public:
    Iterator(const Elements& list, size_t index) : list_(list), index_(index) {}

    Node operator*() const { return list_[index_]; }
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return index_ != other.index_; }

   private:
    const Elements& list_;
    size_t index_;
  };

  Elements(const ReadJson& json, std::string place) : json_(json), place_(std::move(place)) {}

  size_t size() const { return json_.size(); }
  Node operator[](size_t i) const { return {json_[i], place_ + "[" + std::to_string(i) + "]"}; }
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size()}; }

 private:
  const ReadJson& json_;
  std::string place_;
};

Elements Node::elements() const {
  if (!json_.is_array()) refuse("a list");
  return {json_, place_};
}

// Reads a program.
class Reader {
 public:
  // Each value is defined in the text, which has more bytes than values therefore.
  Reader(const ReadJson& json, const std::string& who, size_t bytes)
      : root_(json, who), most_values_(bytes) {}

  ParsedProgram read() {
    const int64_t found = root_["version"].integer();
    if (found != version) root_["version"].refuse("version " + std::to_string(version));
    auto& graph = parsed_.graph;
    graph.device = root_["device"].one_of(devices);
    graph.values = root_["values"].index(most_values_);
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
      node.refuse("another name for each size");
    sizes.push_back({name, min});
  }

  size_t size_index(const Node& node) const {
    const auto found = size_indices_.find(node.text());
    if (found == size_indices_.end()) node.refuse("the name of a size");
    return found->second;
  }

  Size size(const Node& node) const {
    if (node.json().is_number()) return Size(node.integer());
    Size size;
    for (const auto& term : node["sum"].elements()) {
      const auto factors = term.elements();
      if (factors.size() == 0) term.refuse("a coefficient and names of sizes");
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
      if (!names.insert(ports.back().name).second) element["name"].refuse("names that differ");
    }
  }

  // Weights and operators are on the program's device or on the CPU.
  c10::DeviceType device(const Node& node) const {
    const auto device = node.one_of(devices);
    if (device != c10::kCPU && device != parsed_.graph.device)
      node.refuse("the program's device, cpu");
    return device;
  }

  // A run finds each dynamic size in a dimension of an input.
  void check_inputs() const {
    std::vector<bool> found(parsed_.graph.sizes.size());
    const auto inputs = root_["inputs"].elements();
    std::vector<bool> taken(parsed_.graph.values);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto& port = parsed_.graph.inputs[i];
      if (taken[port.value]) inputs[i].refuse("another value for each input");
      taken[port.value] = true;
      for (const auto& dim : port.shape) {
        if (dim.constant()) continue;
        const auto& terms = dim.terms;
        const bool is_plain =
            terms.size() == 1 && terms[0].coefficient == 1 && terms[0].sizes.size() == 1;
        if (!is_plain) inputs[i]["shape"].refuse("integers and names of sizes");
        found[terms[0].sizes[0]] = true;
      }
    }
    for (size_t i = 0; i < found.size(); ++i) {
      if (!found[i]) root_["sizes"].elements()[i].refuse("a size of an input");
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
    const auto refusal = refusal_of_file(name);
    if (!refusal.empty()) {
      node.refuse("operators of the namespace aten on tensors", refusal, " (", name.name, ")");
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
        given.refuse("the names of the operator's arguments", "'", item.key(), "'");
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
    if (!json.is_object() || json.size() != 1) node.refuse("an argument with one key");
    if (json.contains("sum")) return {size(node)};
    if (json.contains("value")) return {ValueId{node["value"].index(parsed_.graph.values)}};
    if (json.contains("number")) return {wrapped(node["number"])};
    if (json.contains("float")) return {real(node["float"])};
    if (json.contains("complex")) return {complex(node["complex"])};
    if (json.contains("dtype")) return {node["dtype"].dtype()};
    if (json.contains("layout")) return {node["layout"].one_of(layouts)};
    if (json.contains("memory_format")) return {node["memory_format"].one_of(memory_formats)};
    if (json.contains("device")) return {device(node["device"])};
    node.refuse("an argument of a kind that programs have");
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
  size_t most_values_;
  std::map<std::string, size_t> size_indices_ = {};
  ParsedProgram parsed_ = {};
};

// JSON that is released without memory. The destructor of nlohmann's class copies nested values to
// a list first, and ends the process if there is no memory for it.
class ParsedJson {
 public:
  explicit ParsedJson(const std::string& text) : json_(ReadJson::parse(text)) {}
  ~ParsedJson() { release(json_); }
  ParsedJson(const ParsedJson&) = delete;
  ParsedJson& operator=(const ParsedJson&) = delete;

  const ReadJson& json() const { return json_; }

 private:
  static void release(ReadJson& json) {
    if (!json.is_structured()) return;
    for (auto& element : json) release(element);
    json.clear();
  }

  ReadJson json_;
};

// Refuses text that nests deeper than programs do, since reading it is recursive.
void check_depth(const std::string& text, const std::string& who) {
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
      TORCH_CHECK(depth <= most, who, "expected a program that nests at most ", most,
                  " deep, got more at byte ", i);
    }
  }
}

}  // namespace

std::string json_of(const Graph& graph, const std::map<size_t, std::string>& tensor_names,
                    const Checksums& checksums) {
  const Writer writer(graph);
  Json json = {{"version", version},
               {"torch", TORCH_VERSION},
               {"device", name_in(devices, graph.device)},
               {"sizes", Json::array()},
               {"inputs", Json::array()},
               {"outputs", Json::array()},
               {"weights", Json::array()},
               {"crc32", checksums},
               {"example", !graph.example_inputs.empty()},
               {"values", graph.values},
               {"calls", Json::array()}};
  for (const auto& size : graph.sizes) {
    json["sizes"].push_back({{"name", size.name}, {"min", size.min}});
  }
  for (const auto& port : graph.inputs) json["inputs"].push_back(writer.port(port));
  for (const auto& port : graph.outputs) json["outputs"].push_back(writer.port(port));
  for (const auto& weight : graph.weights) {
    json["weights"].push_back({{"name", weight.name},
                               {"value", weight.value},
                               {"kind", name_in(kinds, weight.kind)},
                               {"tensor", tensor_names.at(weight.value)},
                               {"device", name_in(devices, weight.device)}});
  }
  for (const auto& call : graph.calls) json["calls"].push_back(writer.call(call));
  return json.dump();
}

ParsedProgram parse_program(const std::string& text, const std::string& who) {
  check_depth(text, who);
  try {
    const ParsedJson parsed(text);
    return Reader(parsed.json(), who, text.size()).read();
  } catch (const nlohmann::json::exception& error) {
    TORCH_CHECK(false, who, "expected the JSON of a program: ", error.what());
  }
}

}  // namespace sconce::program::detail
