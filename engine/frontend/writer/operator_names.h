#pragma once

#include "engine/graph/graph.h"

#include <cstdint>
#include <string>
#include <unordered_map>

namespace planloom {

/// Names of operators in the making, each given once.
class OperatorNames
{
public:
    /// `name`, or "name_2" and so on where it is taken.
    std::string unique(const std::string &name);
    /// "Add_17": a name for a node that has none.
    std::string nameless(const std::string &type);

private:
    std::unordered_map<std::string, std::int32_t> m_asked{}; ///< How often each was asked for.
    std::unordered_map<std::string, std::int32_t> m_nameless{}; ///< By type.
};

/// Names all tensors of a graph: those that have a name keep it ("name#2" where several have one), outputs
/// of operators are called as their operator, and what is left is a "constant". O(tensors).
void nameTensors(Graph &graph);

} // namespace planloom
