#include "engine/search/stages/stages_by_end.h"

#include "engine/binding/stage_numbers.h"
#include "tests/dice.h"
#include "tests/engine/table/models.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>

namespace planloom {
namespace {

/// When the last stage ends, as `stagesEndingEarly` says it.
double lastEnd(
    const std::vector<StagedSeconds> &links, const std::vector<std::size_t> &begins, double microBatches)
{
    double last = 0;
    for (std::size_t s = 0; s < begins.size(); ++s) {
        const std::size_t end = s + 1 < begins.size() ? begins[s + 1] : links.size();
        double way = 0; // of one micro-batch, until this stage has done all of it
        double own = 0;
        for (std::size_t i = 0; i < links.size(); ++i) {
            const StagedSeconds &each = links[i];
            const bool isOwn = i >= begins[s] && i < end;
            way +=
                each.forward + (i >= begins[s] ? each.backward : 0) + (isOwn ? each.apart + each.update : 0);
            own += isOwn        ? microBatches * (each.forward + each.backward + each.apart) + each.update
                : i < begins[s] ? each.forward
                                : 0;
        }
        last = std::max({last, way, own});
    }
    return last;
}

TEST(StagesByEnd, NoOtherCutsEndEarlier)
{
    Dice dice(20261130);
    for (int round = 0; round < 60; ++round) {
        const SelectorIndex index(
            zooTraining("zoo:mlp?layers=" + std::to_string(1 + dice.below(4)) + "&hidden=8&batch=4"));
        const auto isFree = freeOperators(index, std::vector<bool>(index.graph().operators.size()), true);
        const bool betweenLayers = dice.hits(0.5);
        std::vector<StagedSeconds> seconds;
        std::vector<StagedSeconds> links;
        std::vector<std::size_t> operators;
        std::vector<bool> mayBegin;
        for (std::size_t i = 0; i < index.forwardCount(); ++i) {
            const auto drawn = [&] { return dice.hits(0.2) ? 0.0 : static_cast<double>(dice.below(100)); };
            seconds.push_back({drawn(), drawn(), drawn(), drawn()});
            if (isFree[i])
                continue;
            mayBegin.push_back(!operators.empty()
                && (!betweenLayers
                    || index.layerOf({static_cast<std::int32_t>(operators.back())})
                        != index.layerOf({static_cast<std::int32_t>(i)})));
            operators.push_back(i);
            links.push_back(seconds.back());
        }
        const auto stages = static_cast<std::int32_t>(2 + dice.below(3));
        const auto microBatches = static_cast<std::int32_t>(1 + dice.below(6));
        double best = std::numeric_limits<double>::infinity();
        std::vector<std::size_t> begins{0};
        const std::function<void(std::size_t)> tryFrom = [&](std::size_t next) {
            if (static_cast<std::int32_t>(begins.size()) == stages) {
                best = std::min(best, lastEnd(links, begins, microBatches));
                return;
            }
            for (std::size_t p = next; p < links.size(); ++p) {
                if (!mayBegin[p])
                    continue;
                begins.push_back(p);
                tryFrom(p + 1);
                begins.pop_back();
            }
        };
        tryFrom(1);
        const auto stageOf = stagesEndingEarly(index, stages, seconds, microBatches, betweenLayers);
        ASSERT_EQ(stageOf.empty(), best == std::numeric_limits<double>::infinity());
        if (stageOf.empty())
            continue;
        std::vector<std::size_t> found;
        for (std::size_t p = 0; p < operators.size(); ++p) {
            const auto stage = static_cast<std::size_t>(stageOf[operators[p]]);
            ASSERT_LE(stage, found.size());
            if (stage < found.size())
                continue;
            EXPECT_TRUE(p == 0 || mayBegin[p]);
            found.push_back(p);
        }
        ASSERT_EQ(static_cast<std::int32_t>(found.size()), stages);
        EXPECT_NEAR(lastEnd(links, found, microBatches), best, 1e-4 * best + 1e-9);
    }
}

} // namespace
} // namespace planloom
