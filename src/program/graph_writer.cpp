#include "program/graph_writer.hpp"

#include <torch/version.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "program/json_names.hpp"

namespace sconce::program::detail {

namespace {

using Json = nlohmann::ordered_json;

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
    for (const auto& call_result : call.results) results.push_back(result(call_result));
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

}  // namespace sconce::program::detail
