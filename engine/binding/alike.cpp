#include "engine/binding/alike.h"

#include "engine/base/words.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace planloom {

namespace {

/// What a row says of how one operator is cut.
struct SaidOfSplit {
    std::int32_t row = -1;
    OperatorMeaning meaning{};
};

/// What is said of an operator, one axis or bound at a time.
std::vector<SaidOfSplit> saidOf(const OperatorBinding &binding)
{
    std::vector<SaidOfSplit> said;
    for (std::size_t a = 0; a < binding.allowed.axes.size(); ++a) {
        said.push_back({binding.axisRows[a], {}});
        said.back().meaning.axes = {binding.allowed.axes[a]};
    }
    for (std::size_t p = 0; p < binding.allowed.parts.size(); ++p) {
        said.push_back({binding.partsRows[p], {}});
        said.back().meaning.parts = {binding.allowed.parts[p]};
    }
    return said;
}

/// What is said of `from`, said of `to`; nothing where it says nothing of it.
std::optional<OperatorMeaning> translated(
    const Graph &graph, OperatorId from, OperatorId to, const OperatorMeaning &meaning)
{
    OperatorMeaning result;
    for (const AxisMeaning &axis : meaning.axes) {
        std::vector<Split> splits;
        for (const Split &split : axis.allowed.members())
            if (auto mine = splitAlike(graph, from, to, split))
                splits.push_back(*std::move(mine));
        result.axes.push_back({axis.axis,
            axis.allowed.isListed() ? Allowed<Split>::oneOf(std::move(splits))
                                    : Allowed<Split>::anythingBut(std::move(splits))});
    }
    for (const PartsMeaning &parts : meaning.parts) {
        PartsMeaning mine = parts;
        if (parts.dimension >= 0) {
            const std::string &name =
                graph.at(from).annotation.dimensions[static_cast<std::size_t>(parts.dimension)].name;
            const auto found = findDimension(graph.at(to).annotation, name);
            if (!found)
                return std::nullopt;
            mine.dimension = *found;
        }
        result.parts.push_back(std::move(mine));
    }
    return result;
}

/// Operators that are cut alike, in sets.
class AlikeSets
{
public:
    explicit AlikeSets(std::size_t count)
        : m_parent(count)
    {
        std::iota(m_parent.begin(), m_parent.end(), 0);
    }
    std::size_t find(std::size_t i)
    {
        while (m_parent[i] != i)
            i = m_parent[i] = m_parent[m_parent[i]];
        return i;
    }
    /// The smallest stands for its set.
    void join(std::size_t a, std::size_t b)
    {
        a = find(a);
        b = find(b);
        m_parent[std::max(a, b)] = std::min(a, b);
    }

private:
    std::vector<std::size_t> m_parent;
};

} // namespace

std::optional<Split> splitAlike(const Graph &graph, OperatorId from, OperatorId to, const Split &split)
{
    Split mine = split;
    if (from == to || split.kind != SplitKind::Dimension)
        return mine;
    const Dimension &dimension =
        graph.at(from).annotation.dimensions[static_cast<std::size_t>(split.dimension)];
    const auto found = findDimension(graph.at(to).annotation, dimension.name);
    if (!found)
        return std::nullopt;
    mine.dimension = *found;
    return mine;
}

void joinAlikes(BoundTable &bound, const ConstraintTable &table)
{
    if (bound.alikes.empty())
        return;
    const Graph &graph = bound.setting.graph();
    AlikeSets sets(graph.operators.size());
    bound.alikeWith.assign(graph.operators.size(), {});
    for (const BoundTable::Pairs &alike : bound.alikes)
        for (std::size_t i = 0; i < alike.sides.first.size(); ++i) {
            sets.join(at(alike.sides.first[i]), at(alike.sides.second[i]));
            for (const OperatorId op : {alike.sides.first[i], alike.sides.second[i]})
                bound.alikeWith[at(op)].row = std::max(bound.alikeWith[at(op)].row, alike.row);
        }
    std::map<std::size_t, std::vector<OperatorId>> members; // by leader
    for (std::size_t i = 0; i < bound.alikeWith.size(); ++i)
        if (bound.alikeWith[i].row >= 0) {
            const std::size_t leader = sets.find(i);
            bound.alikeWith[i].leader = {static_cast<std::int32_t>(leader)};
            members[leader].push_back({static_cast<std::int32_t>(i)});
        }
    for (const auto &[leader, all] : members) {
        std::vector<std::pair<OperatorId, SaidOfSplit>> said;
        for (const OperatorId op : all)
            for (SaidOfSplit &each : saidOf(bound.of(op)))
                if (std::none_of(said.begin(), said.end(), [&](const auto &known) {
                        const auto mine = translated(graph, known.first, op, known.second.meaning);
                        return known.second.row == each.row && mine && mine->axes == each.meaning.axes
                            && mine->parts == each.meaning.parts;
                    }))
                    said.emplace_back(op, std::move(each));
        for (const OperatorId op : all)
            for (const auto &[from, each] : said) {
                if (from == op)
                    continue;
                const auto mine = translated(graph, from, op, each.meaning);
                if (!mine)
                    continue;
                OperatorBinding &binding = bound.bindings[at(op)];
                if (!mine->axes.empty() && mine->axes.front().allowed.isEmpty()) {
                    bound.failBoth(table, bound.alikeWith[at(op)].row, each.row,
                        "cut '" + graph.at(from).name + "' along a dimension that '" + graph.at(op).name
                            + "' does not have, though they are to be cut alike",
                        "switch one of the rows off, or narrow its selector");
                    return;
                }
                const auto clash = join(binding, *mine, each.row, bound.setting.mesh);
                if (!clash)
                    continue;
                const std::string what = std::string(clashWords(clash->aspect)) + " '" + graph.at(from).name
                    + "' and '" + graph.at(op).name + "', which are to be cut alike by "
                    + rowWords(bound.alikeWith[at(op)].row);
                bound.failBoth(table, each.row, clash->other, what,
                    "switch one of the rows off, or narrow its selector");
                bound.fail(bound.alikeWith[at(op)].row,
                    rowWords(each.row) + " and " + rowWords(clash->other) + " " + what,
                    "switch one of the rows off, or narrow its selector");
                return;
            }
    }
}

} // namespace planloom
