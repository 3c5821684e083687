#include "engine/verify/content.h"

#include "engine/base/words.h"

#include <algorithm>

namespace planloom {

namespace {

std::int64_t volumeOf(const IndexMask &box)
{
    std::int64_t volume = 1;
    for (const Range &range : box.ranges)
        volume *= range.size();
    return volume;
}

} // namespace

bool alike(const Content &a, const Content &b)
{
    return a.tensor == b.tensor && a.staleness == b.staleness && a.valuePart == b.valuePart;
}

bool sharedAlike(const Content &a, const Content &b)
{
    return a.share == b.share && a.shardDimension == b.shardDimension && a.shardEnd == b.shardEnd;
}

IndexMask ofAllUnits(const Content &content)
{
    IndexMask box = *content.box;
    box.ranges[static_cast<std::size_t>(content.shardDimension)].end = content.shardEnd;
    return box;
}

std::string RuleContext::nameOfTensor(TensorId tensor) const
{
    return tensor ? "'" + plan.graph->at(tensor).name + "'" : "no tensor";
}

std::string RuleContext::textOf(const Content &content) const
{
    std::string text = nameOfTensor(content.tensor) + " " + toString(*content.box);
    if (!content.summands->empty()) {
        text += " summands";
        for (const std::int32_t summand : *content.summands)
            text += " " + std::to_string(summand);
    }
    if (!content.valuePart.complete())
        text += " part " + std::to_string(content.valuePart.index) + "/"
            + std::to_string(content.valuePart.count);
    if (content.unweighed)
        text += " unweighed";
    if (content.staleness != 0)
        text += " of " + counted(content.staleness, "update") + " ago";
    if (content.share == UnitShare::Partial)
        text += " of one unit alone";
    if (content.share == UnitShare::Shard)
        text += " as a unit's share of dimension " + std::to_string(content.shardDimension);
    return text;
}

BatchRole RuleContext::roleOf(TensorId tensor) const
{
    return plan.batch.tensorRole[static_cast<std::size_t>(tensor.index)];
}

bool RuleContext::moves(TensorId tensor) const
{
    return batchCuts(plan) > 1 && plan.batch.tensorDimension[static_cast<std::size_t>(tensor.index)] >= 0;
}

bool RuleContext::differs(TensorId tensor) const
{
    return roleOf(tensor) == BatchRole::Summand || roleOf(tensor) == BatchRole::Local;
}

bool RuleContext::stays(const Content &content) const
{
    return content.persistent && !moves(content.tensor) && !differs(content.tensor);
}

std::optional<SummandSet> unionOf(const std::vector<const SummandSet *> &sets, std::int32_t count)
{
    SummandSet all;
    for (const auto *set : sets) {
        if (set->empty())
            return std::nullopt; // a complete value and anything else would count twice
        all.insert(all.end(), set->begin(), set->end());
    }
    std::sort(all.begin(), all.end());
    if (std::adjacent_find(all.begin(), all.end()) != all.end())
        return std::nullopt;
    if (!all.empty() && (all.front() < 0 || all.back() >= count))
        return std::nullopt;
    if (static_cast<std::int32_t>(all.size()) == count)
        all.clear();
    return all;
}

bool tiles(const std::vector<const IndexMask *> &boxes, const IndexMask &whole)
{
    std::int64_t volume = 0;
    for (std::size_t i = 0; i < boxes.size(); ++i) {
        if (!contains(whole, *boxes[i]))
            return false;
        volume += volumeOf(*boxes[i]);
        for (std::size_t j = 0; j < i; ++j)
            if (const auto both = intersection(*boxes[i], *boxes[j]); both && volumeOf(*both) > 0)
                return false;
    }
    return volume == volumeOf(whole);
}

} // namespace planloom
