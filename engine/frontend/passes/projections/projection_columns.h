#pragma once

#include "engine/graph/graph.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace planloom {

/// What becomes of the columns of a product, on their way to the operators that take them apart: what
/// `partProjections` and `divideProjections` both ask.

constexpr int kMostStepsToCut = 16; ///< Operators between a product and what takes its result apart.

/// True for kinds that make each element of their output from the same element of their input.
bool passesColumns(OperatorKind kind);

/// Where dimension `axis` of `in` is in `out`, a reshape of it: the dimension of the same extent with as many
/// elements before it.
std::optional<std::size_t> keptBy(const Shape &in, const Shape &out, std::size_t axis);

/// Where the elements of dimension `axis` of `in` begin in `out`, a reshape that divides it further.
std::optional<std::size_t> dividedBy(const Shape &in, const Shape &out, std::size_t axis);

/// The pieces that a Split, or a Slice, cuts a dimension of its input into, in the order of its outputs.
struct Cut {
    std::vector<std::int64_t> begins{};
    std::vector<std::int64_t> lengths{};
};

/// How `op` cuts dimension `axis` of its first input, and that one only; none if it does something else.
std::optional<Cut> cutOf(const Graph &graph, const Operator &op, std::size_t axis);

/// A pass over fused projections: who reads a tensor, what the model returns, and what products of one weight
/// agree about. It holds until operators come or go.
class ProjectionPass
{
protected:
    explicit ProjectionPass(Graph &graph);

    static std::size_t index(TensorId id) { return static_cast<std::size_t>(id.index); }
    const std::vector<std::int32_t> &usersOf(TensorId id) const { return m_users[index(id)]; }
    const Operator &at(std::int32_t op) const { return m_graph.operators[static_cast<std::size_t>(op)]; }
    const Shape &shapeOf(TensorId id) const { return m_graph.at(id).type.shape; }
    /// True for products with a weight of two dimensions.
    bool isProjection(const Operator &op) const;
    /// True if nothing but single elements stands beside `columns` among the inputs.
    bool isAlone(const Operator &op, TensorId columns) const;
    /// Leaves out the products whose weight or bias the model returns, or is read by others than products
    /// about which `agree(other, own, whether it is the weight)` holds.
    template<typename Found, typename Agree>
    void keepAgreed(std::map<std::int32_t, Found> &found, const Agree &agree) const
    {
        const auto isWrong = [&](const auto &entry) {
            const Found &own = entry.second;
            const auto isShared = [&](TensorId parameter) {
                const bool weight = parameter == own.weight;
                const auto agrees = [&](std::int32_t user) {
                    const auto other = found.find(user);
                    return other != found.end()
                        && (weight ? other->second.weight : other->second.bias) == parameter
                        && agree(other->second, own, weight);
                };
                return !parameter
                    || (!m_isOutput[index(parameter)]
                        && std::all_of(usersOf(parameter).begin(), usersOf(parameter).end(), agrees));
            };
            return !isShared(own.weight) || !isShared(own.bias);
        };
        while (std::erase_if(found, isWrong) > 0) { }
    }

    Graph &m_graph;
    std::vector<std::vector<std::int32_t>> m_users; ///< By tensor: positions, each once.
    std::vector<bool> m_isOutput; ///< By tensor: of the model.
};

/// Where a Transpose puts dimension `axis` of its input.
std::size_t transposedAxis(const Operator &transpose, std::size_t axis);

} // namespace planloom
