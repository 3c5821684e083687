#pragma once

#include "engine/base/result.h"
#include "engine/frontend/writer/graph_writer.h"
#include "engine/graph/graph.h"

#include <string>
#include <vector>

namespace planloom {

/// A value that a model returns.
struct ReturnedValue {
    std::string name{}; ///< As the file calls it.
    TensorId tensor{};
    bool isLoss = false; ///< The file says that it is trained on.
};

/// What a model returns, and how its loss is found where nobody names one (`ImportOptions::lossOutput`): by
/// what the file says, else by the name "loss", else, with `onlyScalarIsLoss`, as its only floating number.
struct ReturnedValues {
    std::vector<ReturnedValue> values{};
    bool onlyScalarIsLoss = false;
    /// The file returns one value alone, which is the loss if it has a single element, whatever its shape.
    bool isSingle = false;
};

/// Completes a graph of any format: its outputs, each made by an operator of its own and named as in the
/// file, its loss, notes and names. Outputs without elements are left out, with a note; of equal ones the
/// first stays.
///
/// @param notes  what the format's importer has to say, behind what it said so far
/// @param place  of errors
/// @return InvalidInput for a model that returns nothing with elements, or whose loss is no floating scalar;
///   NotFound if it has no output of the wanted name; NotSupported where rows that data choose are what it
///   is for
Result<Graph> finishImport(GraphWriter &writer, const ReturnedValues &returned,
    const std::vector<std::string> &notes, const std::string &place);

} // namespace planloom
