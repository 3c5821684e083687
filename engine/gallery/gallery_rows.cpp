#include "engine/gallery/gallery_rows.h"

#include "engine/graph/annotation/partition.h"

#include <algorithm>
#include <map>

namespace planloom {

namespace {

/// "h.*.mlp" of "h.3.mlp": numbers between dots become patterns.
std::string similarName(std::string_view name)
{
    std::string glob;
    while (true) {
        const std::size_t dot = name.find('.');
        const std::string_view part = name.substr(0, dot);
        const bool number = !part.empty()
            && std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
        glob += number ? "*" : globOf(part);
        if (dot == std::string_view::npos)
            return glob;
        glob += '.';
        name.remove_prefix(dot + 1);
    }
}

std::vector<OperatorId> forwardOnly(const Graph &graph, std::vector<OperatorId> operators)
{
    std::erase_if(operators, [&](OperatorId op) { return graph.at(op).direction != Direction::Forward; });
    return operators;
}

Selector namesOf(const Graph &graph, const std::vector<OperatorId> &operators)
{
    if (operators.size() == 1)
        return selectName(globOf(graph.at(operators.front()).name));
    std::vector<std::string> names;
    for (const OperatorId op : operators)
        names.push_back(graph.at(op).name);
    return selectSet(std::move(names));
}

} // namespace

Selector stageSelector(const SelectorIndex &index, const std::vector<OperatorId> &operators)
{
    const Graph &graph = index.graph();
    std::vector<char> open(graph.operators.size(), 0); // wanted and not yet named
    for (const OperatorId op : operators)
        open[static_cast<std::size_t>(op.index)] = 1;
    const std::vector<char> wanted = open;
    std::vector<Selector> parts;

    const std::size_t layerCount = index.layers().scopes.size();
    std::vector<char> wholeLayer(layerCount, 1);
    std::vector<char> scopeWhole(graph.scopes.size(), 1);
    std::vector<std::int32_t> scopeOpen(graph.scopes.size(), 0);
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const Operator &op = graph.operators[i];
        if (op.direction != Direction::Forward)
            continue;
        const std::int32_t layer = index.layerOf({static_cast<std::int32_t>(i)});
        if (layer >= 0 && !wanted[i])
            wholeLayer[static_cast<std::size_t>(layer)] = 0;
    }
    std::vector<char> layerUsed(layerCount, 0);
    for (std::size_t i = 0; i < open.size(); ++i) {
        const std::int32_t layer = index.layerOf({static_cast<std::int32_t>(i)});
        if (open[i] && layer >= 0 && wholeLayer[static_cast<std::size_t>(layer)]) {
            layerUsed[static_cast<std::size_t>(layer)] = 1;
            open[i] = 0;
        }
    }
    for (std::size_t first = 0; first < layerCount; ++first) {
        if (!layerUsed[first])
            continue;
        std::size_t last = first;
        while (last + 1 < layerCount && layerUsed[last + 1])
            ++last;
        parts.push_back(selectLayers(static_cast<std::int32_t>(first), static_cast<std::int32_t>(last)));
        first = last;
    }

    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const Operator &op = graph.operators[i];
        if (op.direction != Direction::Forward || !op.scope.valid())
            continue;
        for (ScopeId s = op.scope; s.valid(); s = graph.at(s).parent) {
            scopeWhole[static_cast<std::size_t>(s.index)] &= wanted[i];
            scopeOpen[static_cast<std::size_t>(s.index)] += open[i];
        }
    }
    std::vector<char> covered(graph.scopes.size(), 0);
    for (std::size_t s = 1; s < graph.scopes.size(); ++s) {
        const ScopeId parent = graph.scopes[s].parent;
        if (parent.valid() && covered[static_cast<std::size_t>(parent.index)]) {
            covered[s] = 1;
        } else if (scopeWhole[s] && scopeOpen[s] > 0) {
            covered[s] = 1;
            parts.push_back(selectIn(index.pathOf({static_cast<std::int32_t>(s)})));
        }
    }
    std::vector<OperatorId> rest;
    for (std::size_t i = 0; i < open.size(); ++i) {
        const ScopeId scope = graph.operators[i].scope;
        if (open[i] && !(scope.valid() && covered[static_cast<std::size_t>(scope.index)]))
            rest.push_back({static_cast<std::int32_t>(i)});
    }
    if (!rest.empty())
        parts.push_back(namesOf(graph, rest));
    return selectAny(std::move(parts));
}

std::vector<Selector> selectorsByName(const SelectorIndex &index, const std::vector<OperatorId> &operators)
{
    const Graph &graph = index.graph();
    std::map<std::string, std::vector<OperatorId>> similar;
    std::vector<std::string> order;
    for (const OperatorId op : operators) {
        const std::string glob = similarName(graph.at(op).name);
        auto &group = similar[glob];
        if (group.empty())
            order.push_back(glob);
        group.push_back(op);
    }
    std::vector<Selector> selectors;
    std::vector<OperatorId> rest;
    for (const std::string &glob : order) {
        const auto &group = similar[glob];
        Selector selector = selectName(glob);
        if (forwardOnly(graph, index.select(selector)) == group)
            selectors.push_back(std::move(selector));
        else
            rest.insert(rest.end(), group.begin(), group.end());
    }
    if (!rest.empty()) {
        std::sort(rest.begin(), rest.end());
        selectors.push_back(namesOf(graph, rest));
    }
    return selectors;
}

Row templateRow(Selector selector, Rule rule, std::string note)
{
    return {.enabled = true,
        .selector = std::move(selector),
        .rule = std::move(rule),
        .origin = RowOrigin::Template,
        .note = std::move(note)};
}

std::vector<Row> withUnevenParts(
    const Model &model, Row row, const std::function<std::int32_t(const std::string &)> &sizeOf)
{
    auto *rule = std::get_if<OpTransRule>(&row.rule);
    if (rule == nullptr)
        return {std::move(row)};
    const auto step = std::find_if(rule->steps.begin(), rule->steps.end(), [](const SplitStep &each) {
        return each.kind == SplitKind::Dimension && each.dimension.kind == DimensionRef::Kind::Meaning
            && each.dimension.meaning == DimensionMeaning::Vocabulary && each.sizes.empty()
            && !each.axis.empty();
    });
    if (step == rule->steps.end())
        return {std::move(row)};
    const SelectorIndex &index = *model.index;
    std::map<std::vector<std::int64_t>, std::vector<OperatorId>> bySizes;
    for (const OperatorId op : forwardOnly(index.graph(), index.select(row.selector)))
        if (const auto meant = findMeant(index.dimensions(), index.graph(), op, DimensionMeaning::Vocabulary);
            meant.identifier >= 0)
            bySizes[roundedShares(meant.extent, sizeOf(step->axis))].push_back(op);
    if (bySizes.size() == 1)
        step->sizes = bySizes.begin()->first;
    if (bySizes.size() < 2)
        return {std::move(row)};
    std::vector<Row> rows;
    for (const auto &[sizes, operators] : bySizes) {
        step->sizes = sizes;
        for (Selector &selector : selectorsByName(index, operators)) {
            row.selector = std::move(selector);
            rows.push_back(row);
        }
    }
    return rows;
}

bool appendWhere(const SelectorIndex &index, const Selector &among, const Rule &rule,
    const std::function<bool(OperatorId)> &passedBy, const std::function<bool(OperatorId)> &takes,
    ConstraintTable &table)
{
    std::vector<OperatorId> able;
    bool all = true;
    for (const OperatorId op : index.select(among)) {
        if (index.graph().at(op).direction != Direction::Forward || passedBy(op))
            continue;
        if (takes(op))
            able.push_back(op);
        else
            all = false;
    }
    if (able.empty())
        return false;
    if (all)
        table.rows.push_back(templateRow(among, rule));
    else
        for (Selector &selector : selectorsByName(index, able))
            table.rows.push_back(templateRow(std::move(selector), rule));
    return true;
}

MeaningSplit::MeaningSplit(const RowSetting &setting, DimensionMeaning meaning, std::string axis)
    : m_setting(setting)
    , m_step{.kind = SplitKind::Dimension,
          .dimension = {.kind = DimensionRef::Kind::Meaning, .meaning = meaning},
          .parts = 0,
          .sizes = {},
          .axis = std::move(axis)}
{
}

bool MeaningSplit::isWithout(OperatorId op) const
{
    const auto split = splitOf(m_setting, op, m_step);
    return split && split->parts == 0;
}

bool MeaningSplit::divides(OperatorId op) const
{
    const auto split = splitOf(m_setting, op, m_step);
    return split && split->parts > 1 && checkPartition(m_setting.graph().at(op), {{*split}});
}

bool appendMeaningSplit(const MeaningSplit &split, const Selector &among, ConstraintTable &table)
{
    return appendWhere(
        split.setting().index(), among, OpTransRule{{split.step()}},
        [&](OperatorId op) { return split.isWithout(op); }, [&](OperatorId op) { return split.divides(op); },
        table);
}

std::vector<bool> weightless(const SelectorIndex &index)
{
    const Graph &graph = index.graph();
    std::vector<bool> without(graph.operators.size(), false);
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const Operator &op = graph.operators[i];
        if (op.direction != Direction::Forward)
            continue;
        bool none = true;
        for (const TensorId input : op.inputs) {
            if (!input.valid())
                continue;
            none = none && graph.at(input).role != TensorRole::Weight;
            for (const OperatorId maker : index.uses().producers[static_cast<std::size_t>(input.index)])
                none = none && without[static_cast<std::size_t>(maker.index)];
        }
        without[i] = none;
    }
    return without;
}

} // namespace planloom
