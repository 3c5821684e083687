#pragma once

#include "engine/graph/graph.h"

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace planloom {

/// The modules of a model and, in them, its forward operators, in order of first appearance; all, or those a
/// word leads to. Immutable: made on a worker, shown by an OutlineModel.
struct OutlineTree {
    struct Node {
        std::int32_t parent = -1; ///< -1 for the root, which is not shown.
        std::int32_t row = 0; ///< Among the parent's children.
        std::int32_t operators = 0; ///< In it, for modules.
        std::int32_t childrenBegin = 0; ///< Into `children`.
        std::int32_t childrenEnd = 0;
        ScopeId scope{}; ///< Of modules.
        OperatorId op{}; ///< Of operators.
    };

    GraphSnapshot graph{};
    std::string filter{}; ///< What had to be in the name or kind of an operator, or in the name of a module
                          ///< around it.
    std::vector<Node> nodes{}; ///< 0 is the root.
    std::vector<std::int32_t> children{}; ///< Nodes, by parent.
    std::vector<std::int32_t> nodeOfOperator{}; ///< -1 if not shown.
};

using OutlineTreeSnapshot = std::shared_ptr<const OutlineTree>;

/// @param filter  upper and lower case are the same; empty for all
/// @return null if `stop` was asked for
/// O(operators + scopes).
OutlineTreeSnapshot makeOutlineTree(
    const GraphSnapshot &graph, const std::string &filter = {}, std::stop_token stop = {});

} // namespace planloom
