#include "engine/design/recompute_options.h"

#include "engine/base/ids.h"

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

} // namespace

std::vector<RecomputeWord> offerRecomputation(
    StagePlacement &stages, const std::vector<RecomputedStages> &recomputed)
{
    std::vector<RecomputeWord> words;
    const auto own = blocksByKey(stages);
    const std::set<StageId> parts = stagesInParts(stages);
    for (const auto &[key, block] : own) {
        if (key.pass != Pass::Forward || parts.count(key.stage) > 0)
            continue;
        BlockKey back = key; // the first of the passes back runs what is recomputed
        back.pass = Pass::InputGradient;
        if (own.count(back) == 0)
            back.pass = Pass::Backward;
        const auto until = own.find(back);
        if (until == own.end())
            continue;
        const PlacementBlock &forward = stages.placement.blocks[at(block)];
        for (const RecomputedStages &each : recomputed) {
            const auto theirs = blocksByKey(each.stages);
            const auto later = theirs.find(back);
            std::int64_t saved = forward.memory;
            for (const std::int32_t device : forward.devices)
                saved = std::min(saved, at(device) < each.saved.size() ? each.saved[at(device)] : 0);
            if (saved < 1 || later == theirs.end())
                continue;
            const std::int64_t time = each.stages.placement.blocks[at(later->second)].time
                - stages.placement.blocks[at(until->second)].time;
            MemoryOption option{.block = block,
                .until = until->second,
                .memory = saved,
                .time = std::max<std::int64_t>(time, 1)};
            stages.placement.options.push_back(option);
            words.push_back(each.word);
        }
    }
    return words;
}

Result<std::vector<Row>> rowsOfOptions(const Model &model, const ConstraintTable &rows, const Plan &plan,
    const StagePlacement &stages, const OptionChoices &choices, const std::vector<RecomputeWord> &words)
{
    std::map<RecomputeWord, std::set<StageId>> chosen;
    for (std::size_t b = 0; b < choices.size(); ++b)
        if (choices[b] >= 0 && stages.keys[b])
            chosen[words[at(choices[b])]].insert(stages.keys[b]->stage);
    std::vector<Row> made;
    for (const auto &[word, those] : chosen) {
        std::vector<bool> among(plan.decisions.size(), false);
        for (std::size_t op = 0; op < among.size(); ++op)
            among[op] = those.count(plan.decisions[op].stage) > 0;
        TRY(const ConstraintTable own, recomputeChoice(model, rows, word, among));
        made.insert(made.end(), own.rows.begin(), own.rows.end());
    }
    return made;
}

} // namespace planloom
