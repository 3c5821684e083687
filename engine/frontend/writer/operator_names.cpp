#include "engine/frontend/writer/operator_names.h"

#include <unordered_set>
#include <utility>

namespace planloom {

std::string OperatorNames::unique(const std::string &name)
{
    const std::int32_t count = m_asked[name]++;
    if (count == 0)
        return name;
    std::string candidate;
    for (std::int32_t number = count + 1;; ++number) {
        candidate = name + "_" + std::to_string(number);
        if (m_asked.emplace(candidate, 1).second)
            return candidate;
    }
}

std::string OperatorNames::nameless(const std::string &type)
{
    return type + "_" + std::to_string(m_nameless[type]++);
}

void nameTensors(Graph &graph)
{
    std::unordered_set<std::string> names;
    std::unordered_map<std::string, std::int64_t> last; // number given to the last tensor that wanted a name
    const auto claim = [&](Tensor &tensor, const std::string &wanted) {
        std::string name = wanted;
        while (!names.insert(name).second)
            name = wanted + "#" + std::to_string(++last.emplace(wanted, 1).first->second);
        tensor.name = std::move(name);
    };
    // What the file names keeps its name; values of unrolled and inlined subgraphs and inner values come
    // after.
    for (Tensor &tensor : graph.tensors) {
        if (!tensor.name.empty())
            claim(tensor, tensor.name);
    }
    for (const Operator &op : graph.operators) {
        for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
            Tensor &tensor = graph.at(op.outputs[slot]);
            if (tensor.name.empty())
                claim(tensor, op.name + "_output_" + std::to_string(slot));
        }
    }
    for (Tensor &tensor : graph.tensors) {
        if (tensor.name.empty())
            claim(tensor, "constant");
    }
}

} // namespace planloom
