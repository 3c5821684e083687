#include "engine/design/explain/memory_options.h"

#include "engine/base/ids.h"
#include "engine/gallery/gallery_rows.h"
#include "engine/search/memory/recompute_choice.h"

#include <algorithm>
#include <map>
#include <set>

namespace planloom {

namespace {

std::map<BlockKey, std::int32_t> blocksByKey(const StagePlacement &stages)
{
    std::map<BlockKey, std::int32_t> blocks;
    for (std::size_t b = 0; b < stages.keys.size(); ++b)
        if (stages.keys[b])
            blocks[*stages.keys[b]] = static_cast<std::int32_t>(b);
    return blocks;
}

/// Stages that several lanes or slices have.
std::set<StageId> stagesInParts(const StagePlacement &stages)
{
    std::set<StageId> parts;
    for (const auto &key : stages.keys)
        if (key && (key->slice > 0 || key->lane > 0))
            parts.insert(key->stage);
    return parts;
}

/// As `recomputeChoice`, of what is made for the backward pass and may wait on the host.
std::vector<Row> offloadRows(const Model &model, const ConstraintTable &rows, const std::vector<bool> &among)
{
    const std::size_t count = model.graph->operators.size();
    std::vector<bool> taken(count, false); // by rows
    std::vector<bool> left(count, false);
    bool isLeft = false;
    for (const Row &row : rows.rows) {
        const auto *rule = std::get_if<OffloadRule>(&row.rule);
        if (!rule || !row.enabled || rule->what != OffloadedKind::Activations)
            continue;
        isLeft = isLeft || rule->when == Switched::Chosen;
        for (const OperatorId op : model.index->select(row.selector))
            (rule->when == Switched::Chosen ? left : taken)[at(op)] = true;
    }
    std::vector<OperatorId> operators;
    for (std::size_t o = 0; o < model.index->forwardCount(); ++o)
        if (!taken[o] && (!isLeft || left[o]) && (among.empty() || among[o]))
            operators.push_back({static_cast<std::int32_t>(o)});
    if (operators.empty())
        return {};
    return {Row{
        .selector = stageSelector(*model.index, operators), .rule = OffloadRule{OffloadedKind::Activations}}};
}

} // namespace

Result<std::vector<Row>> savingRows(
    const Model &model, const ConstraintTable &rows, MemorySaving saving, const std::vector<bool> &among)
{
    if (saving == MemorySaving::OffloadActivations)
        return offloadRows(model, rows, among);
    if (!leavesRecomputation(rows) || namesRecomputation(rows))
        return std::vector<Row>{};
    TRY(ConstraintTable made,
        recomputeChoice(model, rows,
            saving == MemorySaving::RecomputeFull ? RecomputeWord::Full : RecomputeWord::Selective, among));
    return std::move(made.rows);
}

std::vector<MemorySaving> offerSavings(
    StagePlacement &stages, const std::vector<LighterStages> &lighter, std::int32_t copyQueue)
{
    std::vector<MemorySaving> savings;
    const auto own = blocksByKey(stages);
    const std::set<StageId> parts = stagesInParts(stages);
    for (const auto &[key, block] : own) {
        if (key.pass != SegmentKind::Forward || parts.count(key.stage) > 0)
            continue;
        BlockKey back = key; // the first of the passes back needs what was not held
        back.pass = SegmentKind::InputGradient;
        if (own.count(back) == 0)
            back.pass = SegmentKind::Backward;
        const auto until = own.find(back);
        if (until == own.end())
            continue;
        const PlacementBlock &forward = stages.placement.blocks[at(block)];
        for (const LighterStages &each : lighter) {
            const auto theirs = blocksByKey(each.stages);
            const auto earlier = theirs.find(key);
            const auto later = theirs.find(back);
            std::int64_t saved = forward.memory;
            for (const std::int32_t device : forward.devices)
                saved = std::min(saved, at(device) < each.saved.size() ? each.saved[at(device)] : 0);
            if (saved < 1 || earlier == theirs.end() || later == theirs.end())
                continue;
            MemoryOption option{.block = block, .until = until->second, .memory = saved};
            if (each.saving == MemorySaving::OffloadActivations) {
                option.kind = OptionKind::Offload;
                option.time = std::max<std::int64_t>(each.copies[at(earlier->second)], 1);
                option.backTime = std::max<std::int64_t>(each.copies[at(later->second)], 1);
                option.queue = option.backQueue = copyQueue;
            } else {
                option.time = std::max<std::int64_t>(each.stages.placement.blocks[at(later->second)].time
                        - stages.placement.blocks[at(until->second)].time,
                    1);
            }
            stages.placement.options.push_back(option);
            savings.push_back(each.saving);
        }
    }
    return savings;
}

Result<std::vector<Row>> rowsOfOptions(const Model &model, const ConstraintTable &rows, const Plan &plan,
    const StagePlacement &stages, const OptionChoices &choices, const std::vector<MemorySaving> &savings)
{
    std::map<MemorySaving, std::set<StageId>> chosen;
    for (std::size_t b = 0; b < choices.size(); ++b)
        if (choices[b] >= 0 && stages.keys[b])
            chosen[savings[at(choices[b])]].insert(stages.keys[b]->stage);
    std::vector<Row> made;
    for (const auto &[saving, those] : chosen) {
        std::vector<bool> among(plan.decisions.size(), false);
        for (std::size_t op = 0; op < among.size(); ++op)
            among[op] = those.count(plan.decisions[op].stage) > 0;
        TRY(std::vector<Row> own, savingRows(model, rows, saving, among));
        std::move(own.begin(), own.end(), std::back_inserter(made));
    }
    return made;
}

} // namespace planloom
