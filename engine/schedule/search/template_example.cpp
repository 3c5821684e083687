#include "engine/schedule/search/template_example.h"

#include "engine/base/ids.h"
#include "engine/schedule/schedule_templates.h"

#include <algorithm>

namespace planloom {

namespace {

constexpr std::int32_t kRanks = 4;
constexpr std::int32_t kMicroBatches = 8;

/// Placements from the most particular to the plainest: a template that takes several is itself on the first.
std::vector<ScheduleSetting> settings()
{
    const ScheduleSetting base{.rankCount = kRanks, .microBatches = kMicroBatches};
    ScheduleSetting lanes = base;
    ScheduleSetting wave = base;
    ScheduleSetting dealt = base;
    ScheduleSetting wide = base;
    ScheduleSetting each = base;
    for (std::int32_t s = 0; s < kRanks; ++s) {
        lanes.rankOf.push_back(s);
        lanes.laneRanks.push_back({s, kRanks - 1 - s});
        each.rankOf.push_back(s);
    }
    lanes.microBatches = kMicroBatches / 2; // of every lane
    for (std::int32_t s = 0; s < 2 * kRanks; ++s)
        wave.rankOf.push_back(std::min(s, 2 * kRanks - 1 - s));
    for (std::int32_t s = 0; s < 3 * kRanks; ++s)
        dealt.rankOf.push_back(s % kRanks);
    wide.rankOf = each.rankOf;
    wide.rankOf.insert(wide.rankOf.begin(), -1);
    wide.wide.assign(wide.rankOf.size(), false);
    wide.wide.front() = true;
    ScheduleSetting alone{.rankOf = {0}, .rankCount = 1, .microBatches = kMicroBatches / 2};
    return {lanes, wave, dealt, wide, each, alone};
}

/// Stages whose passes take as long where there are several on a rank.
Result<TemplateExample> exampleIn(ScheduleKind kind, const ScheduleSetting &setting)
{
    TRY(const Schedule schedule, makeSchedule(kind, setting));
    StageBlocks block{.forward = 2, .backward = 4, .weights = 2};
    if (splitsBackward(kind))
        block.backward = 2;
    else
        block.weights = 0;
    block.hasBackward = false;
    std::vector<StageBlocks> stages(setting.rankOf.size(), block);
    for (const auto &rank : schedule.ranks)
        for (const ScheduledBlock &each : rank)
            if (each.block.pass != SegmentKind::Forward) // 3F1B leaves out some
                stages[at(each.block.stage)].hasBackward = true;
    TemplateExample example{.setting = setting};
    example.stages = placementOf(setting, stages, splitsBackward(kind));
    TRY(example.starts, playSchedule(example.stages, schedule, setting.microBatches));
    return example;
}

} // namespace

Result<TemplateExample> exampleOf(ScheduleKind kind)
{
    Error last;
    for (const ScheduleSetting &setting : settings()) {
        auto example = exampleIn(kind, setting);
        if (example)
            return example;
        last = std::move(example).error();
    }
    return last;
}

} // namespace planloom
