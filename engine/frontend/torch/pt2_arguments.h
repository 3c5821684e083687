#pragma once

#include "engine/base/result.h"
#include "engine/frontend/torch/aten/aten_arguments.h"
#include "engine/frontend/torch/pt2_frame.h"

#include <string>
#include <vector>

namespace planloom {

/// "/transformer/h.0/attn/linear_3": the path of a node's module, as scopes are made from.
/// @param modules  of the node that calls its graph: those of nodes that have none
std::string pt2PathOf(const Pt2Node &node, const std::vector<std::string> &modules);
/// "torch.ops.aten.linear.default" -> "aten.linear.default"
std::string pt2ShortTarget(const std::string &target);
/// The names of a node's results, those in lists one by one; empty for those that are no tensors.
std::vector<std::string> pt2ResultsOf(const Pt2Node &node);

/// An error in the name of a node.
Error pt2Error(const Pt2Node &node, ErrorCode code, std::string message, std::string advice);

/// What a value of a frame is. @return InvalidInput, in the name of the node that reads it, if nothing makes
/// it
Result<AtenValue> pt2Value(const Pt2Frame &frame, const std::string &name, const Pt2Node &node);
/// What an argument of a node is.
/// @return as `pt2Value`; NotSupported for sizes that are not known before a run, and what cannot be read
Result<AtenValue> pt2Argument(const Pt2Frame &frame, const Pt2Argument &argument, const Pt2Node &node);
/// All arguments of a node by name. @return as `pt2Argument`
Result<AtenArguments> pt2Arguments(const Pt2Frame &frame, const Pt2Node &node);
/// What is in a list; a single value is a list of one. @return as `pt2Argument`
Result<std::vector<AtenValue>> pt2List(
    const Pt2Frame &frame, const Pt2Argument &argument, const Pt2Node &node);
/// The tensors that a node reads, as far as they are there.
std::vector<TensorId> pt2Tensors(const Pt2Frame &frame, const Pt2Node &node);

/// Gives a value of a frame what the node makes. @return InvalidInput if it has been made before
Result<void> pt2SetOnce(Pt2Frame &frame, const std::string &name, AtenValue value, const Pt2Node &node);

} // namespace planloom
