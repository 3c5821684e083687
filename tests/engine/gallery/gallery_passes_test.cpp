#include "engine/gallery/gallery_passes.h"
#include "engine/plan/complete.h"
#include "tests/engine/gallery/gallery_for_tests.h"
#include "tests/engine/table/models.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace planloom {
namespace {

constexpr const char *kTwice = "zoo:evoformer?layers=4&msa=8&pair=8&single=8&seqs=4&residues=4&heads=2&pair_"
                               "heads=2&head_width=4&triangle=8"
                               "&batch=4&recycles=1";

TEST(GalleryPasses, AreFoundByTheWeightsThatTheyShare)
{
    const auto graph = zooTraining(kTwice);
    const SelectorIndex index(graph);
    const auto passes = findPasses(index);
    ASSERT_TRUE(passes);
    EXPECT_EQ(passes->count, 2);
    for (std::size_t i = 0; i < graph->operators.size(); ++i) {
        const Operator &op = graph->operators[i];
        if (op.direction != Direction::Forward || op.name.find("recycling") != std::string::npos)
            continue;
        // What feeds a pass belongs to it, whatever its name.
        const bool isFirst = op.name.starts_with("recycle.0.blocks");
        if (isFirst || op.name.starts_with("blocks.")) {
            EXPECT_EQ(passes->passOf[i], isFirst ? 0 : 1) << op.name;
        }
        if (isFirst && op.kind == OperatorKind::Linear) {
            EXPECT_EQ(graph->at(passes->likeOf[i]).name, op.name.substr(std::string("recycle.0.").size()));
        }
    }
    EXPECT_FALSE(findPasses(SelectorIndex(tinyGpt())));
}

TEST(GalleryPasses, GoThroughTheSameStages)
{
    const auto graph = zooTraining(kTwice);
    const auto table = galleryTable("3f1b", graph, 2);
    ASSERT_TRUE(table) << describe(table.error());
    const auto completion = completePlan(graph, 2, *table);
    ASSERT_TRUE(completion && completion->plan.graph);
    const Plan &plan = completion->plan;
    EXPECT_EQ(plan.stageCount, 4);
    // Every weight is in one place.
    std::map<TensorId, std::set<DeviceId>> devicesOf;
    for (std::size_t i = 0; i < graph->operators.size(); ++i)
        if (graph->operators[i].direction == Direction::Forward)
            for (const TensorId input : graph->operators[i].inputs)
                if (input && graph->at(input).role == TensorRole::Weight)
                    devicesOf[input].insert(
                        plan.decisions[i].devices.begin(), plan.decisions[i].devices.end());
    std::set<DeviceId> used;
    for (const auto &[weight, devices] : devicesOf) {
        EXPECT_EQ(devices.size(), 1u) << graph->at(weight).name;
        used.insert(devices.begin(), devices.end());
    }
    EXPECT_EQ(used.size(), 2u);
    const auto refused = galleryTable("3f1b", tinyGpt(), 2);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("several times"), std::string::npos);
}

} // namespace
} // namespace planloom
