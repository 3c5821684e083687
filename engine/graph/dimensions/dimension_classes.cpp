#include "engine/graph/dimensions/dimension_classes.h"

#include "engine/graph/dimensions/dimension_meaning.h"

#include <algorithm>
#include <array>

namespace planloom {

namespace {

constexpr std::array<const char *, kDimensionMeaningCount> kMeaningNames{"unknown", "batch", "sequence",
    "heads", "head-size", "hidden", "feed-forward", "projection", "vocabulary", "classes", "positions",
    "expert", "channels", "height", "width", "depth", "window", "features"};

/// Numbers the classes in the order in which they are met, their factors behind them.
class Numbering
{
public:
    Numbering(DimensionFlow &flow, DimensionNamer &namer)
        : m_flow(flow)
        , m_namer(namer)
        , m_number(flow.unifier.size())
    {
    }

    DimensionClassId of(DimensionUnifier::Node node)
    {
        node = m_flow.unifier.find(node);
        if (node < 0)
            return {};
        const auto known = m_number[static_cast<std::size_t>(node)];
        if (known)
            return known;
        const DimensionClassId id{static_cast<std::int32_t>(m_result.classes.size())};
        m_number[static_cast<std::size_t>(node)] = id;
        m_result.classes.push_back({.meaning = m_namer.meaningOf(node),
            .extent = m_flow.unifier.extentOf(node),
            .piece = m_namer.isPiece(node)});
        std::vector<DimensionClassId> factors;
        for (const DimensionUnifier::Node factor : std::vector(m_flow.unifier.factorsOf(node)))
            factors.push_back(of(factor));
        DimensionClass &made = m_result.classes[static_cast<std::size_t>(id.index)];
        made.factors = std::move(factors);
        made.name = nameFor(made, m_namer.isKey(node));
        return id;
    }

    DimensionClasses &result() { return m_result; }

private:
    std::string nameFor(const DimensionClass &itself, bool key) const
    {
        if (itself.meaning != DimensionMeaning::Unknown)
            return (key ? "key " : "") + std::string(nameOf(itself.meaning));
        std::string name;
        bool known = false;
        for (const DimensionClassId factor : itself.factors) {
            const DimensionClass &part = m_result.at(factor);
            known = known || !part.name.empty();
            name +=
                (name.empty() ? "(" : " ") + (part.name.empty() ? std::to_string(part.extent) : part.name);
        }
        return known ? name + ")" : "";
    }

    DimensionFlow &m_flow;
    DimensionNamer &m_namer;
    std::vector<DimensionClassId> m_number;
    DimensionClasses m_result;
};

} // namespace

const char *nameOf(DimensionMeaning meaning)
{
    return kMeaningNames[static_cast<std::size_t>(meaning)];
}

std::optional<DimensionMeaning> dimensionMeaningNamed(std::string_view name)
{
    for (int i = 1; i < kDimensionMeaningCount; ++i) {
        if (name == kMeaningNames[static_cast<std::size_t>(i)])
            return static_cast<DimensionMeaning>(i);
    }
    return std::nullopt;
}

DimensionClasses analyseDimensions(const Graph &graph)
{
    DimensionFlow flow(graph);
    DimensionNamer namer(flow);
    Numbering numbering(flow, namer);
    DimensionClasses &result = numbering.result();
    result.ofTensor.resize(graph.tensors.size());
    for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
        for (const DimensionUnifier::Node node : flow.tensors[i])
            result.ofTensor[i].push_back(numbering.of(node));
    }
    result.ofOperator.resize(graph.operators.size());
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const Operator &op = graph.operators[i];
        const OperatorId id{static_cast<std::int32_t>(i)};
        for (std::size_t d = 0; d < op.annotation.dimensions.size(); ++d) {
            const DimensionClassId mine = numbering.of(flow.of(id, static_cast<std::int32_t>(d)));
            result.ofOperator[i].push_back(mine);
            if (mine && op.direction == Direction::Forward)
                ++result.classes[static_cast<std::size_t>(mine.index)].operators;
        }
    }
    return std::move(result);
}

DimensionClassId leadingWith(const DimensionClasses &classes, DimensionClassId id, DimensionMeaning meaning)
{
    while (id && classes.at(id).meaning != meaning) {
        const DimensionClass &itself = classes.at(id);
        id = itself.factors.empty() ? DimensionClassId{} : itself.factors.front();
    }
    return id;
}

MeantDimension findMeant(
    const DimensionClasses &classes, const Graph &graph, OperatorId id, DimensionMeaning meaning)
{
    const Operator &op = graph.at(id);
    const auto &mine = classes.ofOperator[static_cast<std::size_t>(id.index)];
    MeantDimension found;
    for (const auto *side : {&op.annotation.outputs, &op.annotation.inputs}) {
        for (const TensorTerms &terms : *side) {
            for (const Term &term : terms.terms) {
                for (const std::int32_t factor : term.factors) {
                    const auto leading =
                        leadingWith(classes, mine[static_cast<std::size_t>(factor)], meaning);
                    if (!leading)
                        continue;
                    if (op.annotation.dimensions[static_cast<std::size_t>(factor)].mark
                        == DimensionMark::Frozen) {
                        found.frozen = true;
                        continue;
                    }
                    return {factor, classes.at(leading).extent, false, classes.at(leading).piece};
                }
            }
        }
    }
    return found;
}

std::string displayName(const DimensionClasses &classes, OperatorId op, std::int32_t identifier)
{
    const auto &mine = classes.ofOperator[static_cast<std::size_t>(op.index)];
    const auto at = static_cast<std::size_t>(identifier);
    return at < mine.size() && mine[at] ? classes.at(mine[at]).name : std::string{};
}

} // namespace planloom
