#include "engine/graph/attention.h"

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

AttentionReach attentionReach(const Attributes &attributes)
{
    return {attributes.integer("causal") != 0, attributes.integer("offset"), attributes.integer("window")};
}

} // namespace planloom
