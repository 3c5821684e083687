#include "engine/graph/operator_files/operator_definition.h"

#include <algorithm>
#include <tuple>

namespace planloom {

namespace {

std::int32_t placeOf(const std::vector<DefinedTensor> &tensors, std::string_view name)
{
    const auto found = std::find_if(
        tensors.begin(), tensors.end(), [&](const DefinedTensor &tensor) { return tensor.name == name; });
    return found == tensors.end() ? -1 : static_cast<std::int32_t>(found - tensors.begin());
}

auto comparable(const OperatorDefinition &d)
{
    return std::tie(d.name, d.alsoNamed, d.inputs, d.outputs, d.saved, d.attributes, d.annotation, d.linear,
        d.sizes, d.shapes, d.flops, d.backwardFlops, d.matrixUnits, d.workspace, d.body, d.derivative,
        d.library, d.torch);
}

} // namespace

std::string toString(const DefinedName &name)
{
    return name.domain.empty() ? name.type : name.domain + "::" + name.type;
}

bool operator==(const DefinedDerivative &a, const DefinedDerivative &b)
{
    return a.way == b.way && a.operatorName == b.operatorName && a.reads == b.reads && a.makes == b.makes
        && (a.definition == b.definition || (a.definition && b.definition && *a.definition == *b.definition));
}

bool operator==(const OperatorDefinition &a, const OperatorDefinition &b)
{
    return comparable(a) == comparable(b);
}

Result<void> OperatorDefinitions::add(std::shared_ptr<const OperatorDefinition> definition)
{
    std::vector<DefinedName> names{definition->name};
    names.insert(names.end(), definition->alsoNamed.begin(), definition->alsoNamed.end());
    for (const DefinedName &name : names) {
        const auto found = m_byName.find(name);
        if (found == m_byName.end())
            continue;
        const OperatorDefinition &other = *m_all[found->second];
        if (other == *definition)
            return {}; // said twice, in the same words
        return Error{ErrorCode::InvalidInput,
            "the operator " + toString(name) + " is defined here and in " + other.file + ", line "
                + std::to_string(other.line) + ", otherwise",
            "keep one of the two", definition->file + ":" + std::to_string(definition->line) + ":1"};
    }
    for (const DefinedName &name : names)
        m_byName.emplace(name, m_all.size());
    m_all.push_back(std::move(definition));
    return {};
}

std::shared_ptr<const OperatorDefinition> OperatorDefinitions::find(
    const std::string &domain, const std::string &type) const
{
    const auto found = m_byName.find({domain, type});
    return found == m_byName.end() ? nullptr : m_all[found->second];
}

std::int32_t inputNamed(const OperatorDefinition &definition, std::string_view name)
{
    return placeOf(definition.inputs, name);
}

std::int32_t resultNamed(const OperatorDefinition &definition, std::string_view name)
{
    const std::int32_t output = placeOf(definition.outputs, name);
    if (output >= 0)
        return output;
    const std::int32_t saved = placeOf(definition.saved, name);
    return saved < 0 ? -1 : static_cast<std::int32_t>(definition.outputs.size()) + saved;
}

} // namespace planloom
