#pragma once

#include "engine/frontend/passes/mixture/mixture.h"
#include "engine/frontend/unique_names.h"
#include "engine/graph/capacity.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace planloom {

/// Writes a mixture anew, by expert. Nothing of the graph changes unless all of it can be written.
class MixtureWriter
{
public:
    /// @param finder  that found the mixture in `graph` as it is
    /// @param groups  of rows, each with room of its own
    MixtureWriter(Graph &graph, const MixtureFinder &finder, const Mixture &mixture, std::int64_t groups)
        : m_graph(graph)
        , m_finder(finder)
        , m_mixture(mixture)
        , m_groups(groups)
        , m_tensorNames(UniqueNames::ofTensors(graph))
        , m_operatorNames(UniqueNames::ofOperators(graph))
    {
    }

    /// The name of the operator that will find the places.
    std::string placesName() const { return m_graph.operators[m_mixture.first].name + "_places"; }
    /// @return false if something in the mixture cannot be written by expert
    bool write(const Capacity &capacity);
    /// Puts what was written in the place of what was there.
    void commit();

private:
    const Shape &shapeOf(TensorId id) const { return typeOf(id).shape; }
    const TensorType &typeOf(TensorId id) const
    {
        const auto at = static_cast<std::size_t>(id.index);
        return at < m_graph.tensors.size() ? m_graph.tensors[at].type
                                           : m_made[at - m_graph.tensors.size()].type;
    }
    TensorId add(const Operator &like, const std::string &suffix, OperatorKind kind, Attributes attributes,
        std::vector<TensorId> inputs, std::vector<TensorType> declared = {});
    TensorId constant(std::shared_ptr<const TensorData> data);
    void findPlaces(const Capacity &capacity);
    TensorId byExpert(TensorId id, const Operator &reader);
    TensorId picked(TensorId id) const;
    TensorId placesIn(TensorId x, TensorId &of);
    bool copyPicked(const Operator &op);
    bool copyPerRow(const Operator &op);
    bool writeProduct(const Operator &op);
    bool shiftAttributes(const Operator &op, Attributes &attributes) const;
    TensorType slotType(TensorId id) const;
    TensorId reshaped(TensorId id, const Operator &like, Shape shape, const std::string &suffix);

    Graph &m_graph;
    const MixtureFinder &m_finder;
    const Mixture &m_mixture;
    std::int64_t m_groups;
    UniqueNames m_tensorNames;
    UniqueNames m_operatorNames;
    std::vector<Tensor> m_made{};
    std::vector<Operator> m_operators{};
    std::map<TensorId, TensorId> m_byExpert{}; ///< [n ..] as [e c ..].
    std::map<TensorId, TensorId> m_weights{}; ///< Picked [n ..] as [e ..].
    std::map<std::int64_t, TensorId> m_placesOver{}; ///< Places of tokens that have so many rows, [e c].
    std::int64_t m_capacity = 0; ///< Of one expert, all samples together.
    bool m_fits = true;
};

} // namespace planloom
