#pragma once

#include "engine/graph/graph.h"
#include "engine/graph/operator_files/operator_definition.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace planloom {

/// Numbers values of a kind in order of first appearance.
template<typename Key> class Numbering
{
public:
    std::int32_t of(const Key &key)
    {
        return m_numbers.try_emplace(key, static_cast<std::int32_t>(m_numbers.size())).first->second;
    }

private:
    std::map<Key, std::int32_t> m_numbers{};
};

/// What makes two operators alike when seen alone: kind, attributes but for seeds, definition, types.
class Alikeness
{
public:
    explicit Alikeness(const Graph &graph)
        : m_graph(graph)
    {
    }

    std::int32_t of(const Operator &op)
    {
        Attributes attributes = op.attributes;
        attributes.erase("seed");
        std::vector<std::int32_t> key{static_cast<std::int32_t>(op.kind), attributesNumber(attributes)};
        for (const TensorId id : op.outputs)
            key.push_back(id ? typeNumber(m_graph.at(id).type) : -1);
        return m_operators.of(key);
    }

    std::int32_t typeNumber(const TensorType &type) { return m_types.of({type.dataType, type.shape}); }

private:
    std::int32_t attributesNumber(const Attributes &attributes)
    {
        std::vector<std::pair<std::string, Attribute>> key(attributes.all().begin(), attributes.all().end());
        if (attributes.definition())
            key.emplace_back("definition", toString(attributes.definition()->name));
        return m_attributes.of(key);
    }

    const Graph &m_graph;
    Numbering<std::vector<std::int32_t>> m_operators{};
    Numbering<std::pair<DataType, Shape>> m_types{};
    Numbering<std::vector<std::pair<std::string, Attribute>>> m_attributes{};
};

} // namespace planloom
