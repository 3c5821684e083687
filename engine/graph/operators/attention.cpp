#include "engine/graph/operators/attention.h"

#include "engine/graph/annotation/annotation.h"

#include <algorithm>

namespace planloom {

const char *nameOf(AttentionMode mode)
{
    return mode == AttentionMode::Plain ? "plain" : "fused";
}

std::optional<AttentionMode> attentionModeNamed(std::string_view name)
{
    for (const AttentionMode mode : {AttentionMode::Fused, AttentionMode::Plain}) {
        if (name == nameOf(mode))
            return mode;
    }
    return std::nullopt;
}

std::int32_t probabilitiesOutput(const Operator &op)
{
    const bool has = op.kind == OperatorKind::Attention && op.direction == Direction::Forward;
    return has && op.outputs.size() == 3 ? 2 : -1;
}

std::int32_t probabilitiesInput(const Operator &op)
{
    const bool has = op.kind == OperatorKind::Attention && op.direction == Direction::Backward;
    // The forward's outputs stand last, and among them the probabilities.
    return has && op.inputs.size() == op.outputs.size() + 6 ? static_cast<std::int32_t>(op.inputs.size()) - 1
                                                            : -1;
}

std::optional<AttentionAxes> attentionAxes(const Operator &op)
{
    if (op.kind != OperatorKind::Attention)
        return std::nullopt;
    const auto query = findDimension(op.annotation, "s");
    const auto key = findDimension(op.annotation, "t");
    return query && key ? std::optional(AttentionAxes{*query, *key}) : std::nullopt;
}

Range AttentionReach::keysOf(std::int64_t query, std::int64_t keys) const
{
    const std::int64_t own = query + offset;
    Range range{0, keys};
    if (causal)
        range.end = std::min(range.end, own + 1);
    if (window > 0) {
        range.begin = std::max(range.begin, own - window + 1);
        range.end = std::min(range.end, own + window);
    }
    range.end = std::max(range.end, std::int64_t{0});
    range.begin = std::min(range.begin, range.end);
    return range;
}

bool AttentionReach::mayMeet(Range queries, Range keys, std::int64_t all) const
{
    if (queries.size() < 1 || keys.size() < 1)
        return false;
    // What queries see moves along with them.
    const std::int64_t begin = keysOf(queries.begin, all).begin;
    const std::int64_t end = keysOf(queries.end - 1, all).end;
    return std::max(begin, keys.begin) < std::min(end, keys.end);
}

double AttentionReach::meanKeys(double keys) const
{
    const auto limit = static_cast<double>(window);
    if (!causal)
        return window > 0 ? std::min(keys, 2 * limit - 1) : keys;
    // The mean of min(x, window) for x from `first` to `keys`.
    const double first = std::clamp(static_cast<double>(offset), 0.0, keys);
    if (window == 0 || limit >= keys)
        return (first + keys) / 2;
    if (limit <= first)
        return limit;
    return ((limit * limit - first * first) / 2 + limit * (keys - limit)) / (keys - first);
}

double AttentionReach::meanKeys(Range queries, Range keys) const
{
    const auto count = static_cast<double>(queries.size());
    const auto all = static_cast<double>(keys.size());
    if (count <= 0 || (!causal && window == 0))
        return all;
    // The integral of the keys up to x that there are, over x up to `end`; both counted from the first key.
    const auto upTo = [all](double end) {
        return end <= 0 ? 0 : end <= all ? end * end / 2 : all * all / 2 + all * (end - all);
    };
    const auto between = [&](double begin) { return upTo(begin + count) - upTo(begin); };
    const auto own = static_cast<double>(queries.begin + offset - keys.begin);
    const auto limit = static_cast<double>(window);
    double seen = causal ? between(own) : window > 0 ? between(own + limit - 0.5) : all * count;
    if (window > 0)
        seen -= between(causal ? own - limit : own - limit + 0.5);
    return seen / count;
}

AttentionReach attentionReach(const Attributes &attributes)
{
    return {attributes.integer("causal") != 0, attributes.integer("offset"), attributes.integer("window")};
}

AttentionSequences attentionSequences(const Operator &op)
{
    if (op.kind != OperatorKind::Attention)
        return {};
    // A backward annotation has the gradients of outputs before the inputs, and as many outputs behind them.
    const auto &inputs = op.annotation.inputs;
    const std::size_t first = op.direction == Direction::Backward ? 3 : 0;
    const auto sequenceOf = [&](std::size_t slot) {
        if (slot >= inputs.size() || inputs[slot].terms.size() < 2)
            return -1;
        const auto &terms = inputs[slot].terms;
        return splittableFactor(op.annotation, terms[terms.size() - 2]).value_or(-1);
    };
    return {sequenceOf(first), sequenceOf(first + 1)};
}

bool seesNothing(const Operator &op, const std::vector<Range> &ranges)
{
    const AttentionSequences sequences = attentionSequences(op);
    if (!sequences.areSplittable())
        return false;
    const auto keys = static_cast<std::size_t>(sequences.keys);
    return !attentionReach(op.attributes)
                .mayMeet(ranges[static_cast<std::size_t>(sequences.queries)], ranges[keys],
                    op.annotation.dimensions[keys].size);
}

} // namespace planloom
