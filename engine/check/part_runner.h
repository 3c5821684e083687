#pragma once

#include "engine/check/examples.h"
#include "engine/graph/annotation/partition.h"
#include "engine/graph/graph.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace planloom {

class OperatorLibraries;
struct KernelCall;

/// Whole values by tensor index, in each tensor's own data type.
using OperatorValues = std::vector<std::vector<std::byte>>;

/// Number `i` of a tensor's values, and its reverse.
double numberAt(const std::vector<std::byte> &bytes, DataType type, std::int64_t i);
void setNumber(std::vector<std::byte> &bytes, DataType type, std::int64_t i, double value);

/// OperatorValues of an example's inputs and of the gradients of its outputs, drawn with `seed`; all else is
/// empty.
OperatorValues drawValues(const OperatorExample &example, const Graph &graph, std::uint64_t seed);

/// Runs all parts of `op`, each on slices of `values` alone, and puts their outputs together: boxes side by
/// side, summands added. Replicas and parts that overlap must agree.
/// @param run  runs one part in place of `runKernel`; may be empty
/// @return CheckFailed if the parts do not cover an output exactly; errors of the kernel
Result<void> runParts(const Graph &graph, const Operator &op, const Partition &partition,
    OperatorValues &values, const OperatorLibraries *libraries = nullptr,
    const std::function<Result<void>(const KernelCall &)> &run = {});

/// A tensor's values as numbers.
std::vector<double> numbersOf(const Graph &graph, TensorId tensor, const OperatorValues &values);

/// Every partition worth trying on `op`: each splittable identifier in 2 to 4 equal parts and unevenly,
/// replicas, Value splits where its inputs are linear, and pairs of these.
std::vector<Partition> partitionsOf(const Operator &op);

} // namespace planloom
