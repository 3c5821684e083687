#include "engine/search/stages/stage_rows.h"

#include "engine/binding/stage_numbers.h"
#include "tests/dice.h"
#include "tests/engine/table/models.h"

#include <gtest/gtest.h>

#include <string>

namespace planloom {
namespace {

/// By forward operator, as `stagesWithin` returns them.
std::vector<std::int32_t> freeStages(const SelectorIndex &index, const StageMeasure &measure)
{
    std::vector<std::int32_t> stageOf(index.forwardCount(), 0);
    const auto found = pipelineStages(index, static_cast<std::int32_t>(measure.kindOfStage.size()), measure);
    EXPECT_TRUE(found) << describe(found.error());
    for (std::size_t s = 0; s < found->size(); ++s)
        for (const OperatorId op : (*found)[s])
            stageOf[at(op)] = static_cast<std::int32_t>(s);
    return stageOf;
}

StageMeasure randomMeasure(Dice &dice, const SelectorIndex &index)
{
    StageMeasure measure;
    const std::int64_t kinds = dice.hits(0.3) ? 2 : 1;
    const bool isAlike = dice.hits(0.5); // many ties
    for (std::int64_t kind = 0; kind < kinds; ++kind) {
        auto &own = measure.ofKind.emplace_back();
        for (std::size_t i = 0; i < index.graph().operators.size(); ++i)
            own.push_back(isAlike ? 1000 * (kind + 1) : 1 + dice.below(100'000));
    }
    for (std::int64_t s = 2 + dice.below(5); s > 0; --s)
        measure.kindOfStage.push_back(static_cast<std::size_t>(dice.below(kinds)));
    return measure;
}

TEST(StageRows, RepeatingWhatWouldBeAnywayChangesNothing)
{
    Dice dice(20261129);
    for (const std::string model :
        {"zoo:gpt?layers=6&hidden=64&heads=4&seq=16&vocab=64&batch=4", "zoo:mlp?layers=9&hidden=32&batch=8",
            "zoo:moe?layers=3&hidden=32&heads=2&experts=4&seq=8&batch=8", "zoo:t5"}) {
        const SelectorIndex index(zooTraining(model));
        for (int round = 0; round < 40; ++round) {
            const StageMeasure measure = randomMeasure(dice, index);
            const auto stageOf = freeStages(index, measure);
            StageRows rows;
            rows.byRow.assign(index.forwardCount(), -1);
            const double share = dice.of({0.0, 0.02, 0.5});
            // An operator without weights stands where it is first read: a row for it makes it a link of its
            // own.
            const auto isFree = freeOperators(index, std::vector<bool>(index.graph().operators.size()), true);
            for (std::size_t i = 0; i < stageOf.size(); ++i)
                if (!isFree[i] && dice.hits(share))
                    rows.byRow[i] = stageOf[i];
            const auto within =
                stagesWithin(index, static_cast<std::int32_t>(measure.kindOfStage.size()), measure, rows);
            ASSERT_TRUE(within) << describe(within.error());
            EXPECT_EQ(*within, stageOf) << model << " round " << round;
        }
    }
}

TEST(StageRows, StagesAreAsRowsSay)
{
    Dice dice(7);
    const SelectorIndex index(zooTraining("zoo:gpt?layers=6&hidden=64&heads=4&seq=16&vocab=64&batch=4"));
    for (int round = 0; round < 200; ++round) {
        const StageMeasure measure = randomMeasure(dice, index);
        const auto stages = static_cast<std::int32_t>(measure.kindOfStage.size());
        StageRows rows;
        rows.byRow.assign(index.forwardCount(), -1);
        // In order along the chain, so that there may be such stages.
        std::int32_t stage = 0;
        for (std::int32_t &own : rows.byRow)
            if (dice.hits(0.01)) {
                stage = std::min<std::int32_t>(stages - 1, stage + static_cast<std::int32_t>(dice.below(2)));
                own = stage;
            }
        const auto within = stagesWithin(index, stages, measure, rows);
        if (!within)
            continue; // more stages before a row than operators
        std::int32_t before = 0;
        for (std::size_t i = 0; i < rows.byRow.size(); ++i) {
            if (rows.byRow[i] >= 0) {
                EXPECT_EQ((*within)[i], rows.byRow[i]);
            }
            before = std::max(before, (*within)[i]);
        }
        EXPECT_EQ(before, stages - 1);
    }
}

} // namespace
} // namespace planloom
