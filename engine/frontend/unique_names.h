#pragma once

#include "engine/graph/graph.h"

#include <string>
#include <unordered_set>

namespace planloom {

/// Names in use, so that what is added to a graph gets names that the model does not have already.
class UniqueNames
{
public:
    static UniqueNames ofTensors(const Graph &graph) { return UniqueNames(graph.tensors); }
    static UniqueNames ofOperators(const Graph &graph) { return UniqueNames(graph.operators); }

    /// `name`, or "<name>_<number>" where that is taken.
    std::string take(const std::string &name)
    {
        std::string unique = name;
        for (int number = 1; !m_names.insert(unique).second; ++number)
            unique = name + "_" + std::to_string(number);
        return unique;
    }

private:
    template<typename Named> explicit UniqueNames(const std::vector<Named> &items)
    {
        m_names.reserve(2 * items.size());
        for (const Named &item : items)
            m_names.insert(item.name);
    }

    std::unordered_set<std::string> m_names{};
};

} // namespace planloom
