#pragma once

#include "engine/base/result.h"
#include "engine/frontend/torch/aten/aten_arguments.h"
#include "engine/frontend/torch/pt2_frame.h"

#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace planloom {

/// True for targets that compute with sizes, not tensors: "_operator.mul", "math.ceil", "torch.sym_max".
bool isPt2Arithmetic(std::string_view target);

/// Computes one. Integers stay integers as in Python.
/// @return nothing for what is not known here, for arguments that are no numbers, and for a division by 0
std::optional<AtenValue> computePt2Number(std::string_view target, const std::vector<AtenValue> &arguments);

/// Imports the nodes of a program that make numbers: sizes, and what is computed from them.
class Pt2Numbers
{
public:
    explicit Pt2Numbers(GraphWriter &writer)
        : m_writer(writer)
    {
    }

    /// Gives the frame the number that a node makes.
    /// @return false for nodes that make no numbers; NotSupported for numbers that are not known before a run
    Result<bool> import(const Pt2Node &node, Pt2Frame &frame);
    /// True if a number among the node's arguments comes from a size that data choose; sizes in lists are
    /// shapes.
    bool readsChosenSize(const Pt2Node &node) const;

private:
    bool hasChosenRows(const Pt2Node &node, const std::vector<AtenValue> &arguments) const;

    GraphWriter &m_writer;
    std::unordered_set<std::string> m_chosenSizes{}; ///< Numbers that come from sizes which data choose.
};

} // namespace planloom
