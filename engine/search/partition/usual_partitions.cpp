#include "engine/search/partition/usual_partitions.h"

#include "engine/gallery/gallery_rows.h"
#include "engine/gallery/gallery_tensor_parallel.h"
#include "engine/plan/complete.h"

#include <algorithm>
#include <optional>

namespace planloom {

namespace {

std::optional<UsualPartition> completed(
    const Model &model, const std::string &axis, std::int32_t parts, const ConstraintTable &table)
{
    const auto completion = completePlan(model, parts, table);
    if (!completion || firstError(*completion))
        return std::nullopt;
    UsualPartition partition;
    for (std::size_t i = 0; i < model.index->forwardCount(); ++i) {
        const std::vector<Split> &splits = completion->plan.decisions[i].partition.splits;
        const auto own = std::find_if(
            splits.begin(), splits.end(), [&](const Split &split) { return split.axis == axis; });
        partition.push_back(
            own == splits.end() ? Split{.kind = SplitKind::Replicate, .parts = parts, .axis = axis} : *own);
    }
    return partition;
}

} // namespace

Result<std::vector<UsualPartition>> usualPartitions(
    const Model &model, const std::string &axis, std::int32_t parts, const std::stop_token &stop)
{
    std::vector<UsualPartition> partitions;
    if (parts < 2)
        return partitions;
    ConstraintTable table;
    table.rows.push_back(templateRow({}, MeshRule{{{axis, parts}}}));
    // Heads in uneven parts are no choice of an operator (ChoiceFinder), vocabularies are.
    constexpr UnevenParts kUneven = UnevenParts::Vocabularies;
    if (!appendTensorParallel(model, parts, axis, parts, table, kUneven))
        return partitions;
    if (auto partition = completed(model, axis, parts, table))
        partitions.push_back(*std::move(partition));
    if (stop.stop_requested())
        return cancelled();
    if (appendSequenceParallel(model, parts, axis, parts, table, kUneven))
        if (auto partition = completed(model, axis, parts, table))
            partitions.push_back(*std::move(partition));
    for (UsualPartition &partition : usualAround(model, axis, parts))
        partitions.push_back(std::move(partition));
    return partitions;
}

std::vector<UsualPartition> usualAround(const Model &model, const std::string &axis, std::int32_t parts)
{
    ConstraintTable mesh;
    mesh.rows.push_back(templateRow({}, MeshRule{{{axis, parts}}}));
    const RowSetting setting{model, parts, {{axis, parts}}};
    const MeaningSplit sequence(setting, DimensionMeaning::Sequence, axis);
    const MeaningSplit heads(setting, DimensionMeaning::Heads, axis);
    const Selector attentions{.kind = SelectorKind::Kind, .text = nameOf(OperatorKind::Attention)};
    const Selector others{.kind = SelectorKind::Not, .children = {attentions}};
    std::vector<UsualPartition> partitions;
    const auto add = [&](const ConstraintTable &table) {
        if (auto partition = completed(model, axis, parts, table))
            partitions.push_back(*std::move(partition));
    };
    if (ConstraintTable table = mesh; appendMeaningSplit(sequence, {}, table))
        add(table);
    if (ConstraintTable table = mesh;
        appendMeaningSplit(heads, attentions, table) && appendMeaningSplit(sequence, others, table))
        add(table);
    return partitions;
}

} // namespace planloom
