#pragma once

#include "engine/base/result.h"
#include "engine/graph/graph.h"

#include <string>
#include <vector>

namespace planloom {

/// A value an example operator takes.
struct ExampleInput {
    TensorType type{};
    bool present = true;
    double low = -1; ///< OperatorValues are drawn from [low, high); integers from low to high - 1.
    double high = 1;
    std::vector<double> values{}; ///< Given values in place of drawn ones.
};

/// One operator to be tried out, whole and in parts.
struct OperatorExample {
    std::string name{};
    OperatorKind kind = OperatorKind::Unknown;
    Attributes attributes{};
    std::vector<ExampleInput> inputs{};
    std::vector<TensorType> outputs{}; ///< Declared where they cannot be inferred.
    bool optimizer = false;
};

/// At least one small example of every kind but Custom and Unknown, computing with `real` (Float32 or
/// Float64).
std::vector<OperatorExample> examplesOfEveryKind(DataType real);

/// An example as a graph: the forward (or optimizer) operator with its annotation at index 0, and its
/// backward operator at index 1 if it is differentiable.
Result<Graph> graphOf(const OperatorExample &example);

} // namespace planloom
