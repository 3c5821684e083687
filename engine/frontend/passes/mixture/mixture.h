#pragma once

#include "engine/frontend/passes/mixture/chosen_rows.h"
#include "engine/graph/graph.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace planloom {

/// What a value is to a mixture of experts whose rows pick their weights (route_experts.h).
enum class MixturePart : std::uint8_t {
    Outside,
    PerRow, ///< [n ..]
    Picked, ///< [n ..], made of weights that each row picked.
};

/// One mixture: the operators from the first pick to the last product with what was picked.
struct Mixture {
    TensorId choice{}; ///< The expert of each row.
    std::int64_t rows = 0;
    std::int64_t experts = 0;
    std::size_t first = 0; ///< Position of the first pick.
    std::vector<std::size_t> members{}; ///< Positions, in order.
};

/// Finds mixtures in a forward graph by data flow. What it knows of the graph is for those who rewrite them,
/// too; it holds until the graph changes.
class MixtureFinder
{
public:
    explicit MixtureFinder(const Graph &graph);

    /// What an operator picks weights by, [n], each row a set of them; invalid if it does not.
    TensorId choiceOf(const Operator &op) const;
    /// The mixture whose first pick stands at `position`, if there is one. O(operators).
    std::optional<Mixture> mixtureAt(std::size_t position);
    /// What a value is to the mixture that was found last.
    MixturePart partOf(TensorId id) const { return m_parts[at(id)]; }
    /// Of how many experts each token chooses, if the choice is a TopK's; 1 else.
    std::int64_t choicesPerToken(TensorId choice) const;
    /// The operator that makes a value; null if none does.
    const Operator *makerOf(TensorId id) const;
    /// Positions of the operators that read a value.
    const std::vector<std::size_t> &usersOf(TensorId id) const { return m_users[at(id)]; }
    bool isOutput(TensorId id) const { return m_isOutput[at(id)]; }

private:
    static std::size_t at(TensorId id) { return static_cast<std::size_t>(id.index); }
    const Shape &shapeOf(TensorId id) const { return m_graph.at(id).type.shape; }
    bool worksByRow(const Operator &op, const Mixture &mixture) const;

    const Graph &m_graph;
    std::vector<OperatorId> m_producers{};
    std::vector<std::vector<std::size_t>> m_users{};
    std::vector<bool> m_fed{};
    std::vector<bool> m_isOutput{};
    std::vector<MixturePart> m_parts{}; ///< By tensor, of the mixture at hand.
};

} // namespace planloom
