#pragma once

#include <string>
#include <vector>

#include "program/dynamic_sizes.hpp"
#include "program/graph.hpp"
#include "program/merge_traces.hpp"
#include "program/operator_observer.hpp"
#include "program/prepared_program.hpp"
#include "sconce/program/record.hpp"

namespace sconce::program::detail {

/// Records a function at several sizes and merges the recordings.
class Recording {
 public:
  /// @throw c10::Error if the example or the options are invalid.
  Recording(const Function& function, const torch::nn::Module* module, const StateDict& example,
            const RecordOptions& options);

  /// Compares the program with the function, and then returns it.
  /// @throw c10::Error if the function contains operations that a program cannot contain.
  Graph record();

 private:
  Tensors run(const Tensors& inputs) const;
  Tensors run_at(const std::vector<int64_t>& sizes, const Tensors& inputs) const;
  TraceAt trace(const std::vector<int64_t>& sizes);
  std::vector<TraceAt> trace_corners();
  Graph merge(const std::vector<TraceAt>& corners) const;
  void check(const Graph& graph, const TraceAt& other) const;
  int64_t smallest(const PreparedProgram& program, size_t size) const;
  void set_ports(Graph& graph, const std::vector<TraceAt>& corners) const;
  void check_shapes(const Graph& graph, const TraceAt& other) const;
  void add_example(Graph& graph) const;
  void compare_outputs(const PreparedProgram& program) const;

  const Function& function_;
  const StateDict& example_;
  const RecordOptions& options_;
  DynamicSizes sizes_;
  std::vector<Weight> weights_;
  // torch.export treats the sizes in take_along_dim as constants.
  OperatorNames opened_ = {{"aten::take_along_dim", ""}};
};

}  // namespace sconce::program::detail
