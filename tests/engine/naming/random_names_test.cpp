// Names of plans that nobody chose, against what is counted of their decisions in another way: by axes of the
// mesh, by devices that hold a weight, by text.

#include "tests/engine/naming/named_plans.h"

#include "engine/plan/plan_degrees.h"
#include "tests/dice.h"
#include "tests/seeds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <tuple>

namespace planloom {
namespace {

/// What a plan decides in degrees, counted here.
struct Counted {
    std::int64_t data = 1;
    std::int32_t tensor = 1;
    std::int32_t context = 1;
    std::int32_t stages = 1;
    ScheduleKind schedule{};
    std::int32_t microBatches = 1;
    std::int32_t zero = 0;
    std::int64_t shards = 1;
    auto tied() const
    {
        return std::tie(data, tensor, context, stages, schedule, microBatches, zero, shards);
    }
};

/// The most devices that the parts of a product by weights are cut over along an axis of the mesh.
std::int32_t alongAxis(const Plan &plan, const std::string &axis)
{
    std::int32_t most = 1;
    for (std::size_t i = 0; i < plan.decisions.size(); ++i) {
        const Operator &op = plan.graph->operators[i];
        if (op.direction != Direction::Forward || op.kind != OperatorKind::Linear)
            continue;
        for (const Split &split : plan.decisions[i].partition.splits)
            if (split.axis == axis && split.kind == SplitKind::Dimension)
                most = std::max(most, split.parts);
    }
    return most;
}

/// Of a weight whose update is shared out: how many devices read one box of it in the forward pass, for each
/// that writes the same box in the update.
std::int64_t shardsOf(const Plan &plan, const Operator &update, const OperatorDecision &decision)
{
    std::map<IndexMask, std::set<DeviceId>> written;
    for (std::size_t part = 0; part < decision.devices.size(); ++part)
        written[outputView(*plan.graph, update, decision.partition, static_cast<std::int32_t>(part), 0).index]
            .insert(decision.devices[part]);
    std::map<IndexMask, std::set<DeviceId>> read;
    for (std::size_t i = 0; i < plan.decisions.size(); ++i) {
        const Operator &op = plan.graph->operators[i];
        const auto slot = std::find(op.inputs.begin(), op.inputs.end(), update.inputs.front());
        if (op.direction != Direction::Forward || slot == op.inputs.end())
            continue;
        for (std::size_t part = 0; part < plan.decisions[i].devices.size(); ++part)
            read[inputView(*plan.graph, op, plan.decisions[i].partition, static_cast<std::int32_t>(part),
                     static_cast<std::size_t>(slot - op.inputs.begin()))
                     .index]
                .insert(plan.decisions[i].devices[part]);
    }
    std::size_t readers = 0;
    for (const auto &[box, devices] : read)
        readers = std::max(readers, devices.size());
    return static_cast<std::int64_t>(readers / written.begin()->second.size());
}

Counted countedOf(const Plan &plan)
{
    Counted found{.data = degreeOf(plan, Degree::Data),
        .tensor = alongAxis(plan, "tp"),
        .context = alongAxis(plan, "cp"),
        .stages = plan.stageCount,
        .schedule = plan.schedule,
        .microBatches = plan.microBatches};
    if (found.stages == 1)
        found.schedule = {}; // one stage has no order
    for (std::size_t i = 0; i < plan.decisions.size(); ++i)
        if (const OperatorDecision &decision = plan.decisions[i]; decision.sharding.stage > 0) {
            const std::int64_t shards = shardsOf(plan, plan.graph->operators[i], decision);
            if (shards > 1)
                found.zero = std::max(found.zero, decision.sharding.stage);
            found.shards = std::max(found.shards, shards);
        }
    return found;
}

/// The largest number behind `words` in `text`; 1 if they do not stand there.
std::int64_t saidOf(const std::string &text, const std::string &words)
{
    std::int64_t most = 1;
    const std::regex pattern(words + "([0-9]+)");
    for (auto each = std::sregex_iterator(text.begin(), text.end(), pattern); each != std::sregex_iterator();
         ++each)
        most = std::max<std::int64_t>(most, std::stoll((*each)[1].str()));
    return most;
}

/// A table of a person who tries things: a mesh of eight devices, a pipeline or none, and rows against what
/// most operators do.
std::pair<std::string, std::string> drawnTable(Dice &dice)
{
    const std::int64_t dp = std::int64_t{1} << dice.below(3);
    const std::int64_t pp = std::int64_t{1} << dice.below(dp == 4 ? 2 : 3);
    const bool isContext = dice.hits(0.3);
    const std::int64_t rest = 8 / (dp * pp);
    std::string spec = "3d:dp=" + std::to_string(dp) + ",pp=" + std::to_string(pp)
        + (isContext ? ",cp=" : ",tp=") + std::to_string(rest)
        + ",micro-batches=" + std::to_string(std::int64_t{1} << dice.below(2));
    if (pp > 1)
        spec += ",schedule=" + dice.of<std::string>({"1f1b", "gpipe", "zb-h1"});
    if (dice.hits(0.4))
        spec += ",zero=" + std::to_string(1 + dice.below(3));
    if (dice.hits(0.3) && !isContext)
        spec += ",sequence=1";
    if (dice.hits(0.3))
        spec += ",recompute=full";
    std::string rows;
    const std::string layer = std::to_string(dice.below(4));
    if (dice.hits(0.3))
        rows += "replicate name:h." + layer + ".mlp.c_fc : over " + (isContext ? "cp" : "tp") + "\n";
    if (dice.hits(0.2))
        rows += "place kind:LayerNorm & layer:" + layer + " : devices 0\n";
    return {spec, rows};
}

TEST(RandomNames, AreWhatTheDecisionsAre)
{
    const auto model = openModel(
        {"zoo:gpt?layers=4&hidden=32&heads=4&seq=16&vocab=32&batch=8", {}, {}}, {}, KeepContent::No);
    ASSERT_TRUE(model) << describe(model.error());
    constexpr int kWanted = 100;
    std::map<std::string, Counted> named;
    int planned = 0;
    const auto [first, last] = seedsToTry("PLANLOOM_NAME_SEEDS", 400);
    for (std::uint32_t seed = first; seed < last && planned < kWanted; ++seed) {
        Dice dice(seed);
        const auto [spec, rows] = drawnTable(dice);
        SCOPED_TRACE("seed " + std::to_string(seed) + ": " + spec + "\n" + rows);
        const auto answer = plannedFor(*model, spec, rows, 8);
        if (!answer)
            continue; // rows that do not hold together are no plan to be named
        ++planned;
        const Plan &plan = *(*answer)->plan;
        const PlanName name = planNameOf(plan, **model);
        SCOPED_TRACE(name.sentence);
        const Counted counted = countedOf(plan);
        EXPECT_EQ(saidOf(name.sentence, "data parallel "), counted.data);
        EXPECT_EQ(saidOf(name.sentence, "tensor parallel "), counted.tensor);
        EXPECT_EQ(saidOf(name.sentence, "context parallel "), counted.context);
        EXPECT_EQ(saidOf(name.sentence, " over (?=[0-9]+ stages)"), counted.stages);
        EXPECT_EQ(saidOf(name.sentence, "(?:^|, )(?=[0-9]+ micro-batches)"), counted.microBatches);
        EXPECT_EQ(saidOf(name.sentence, "ZeRO-[1-3] on "), counted.shards);
        if (counted.zero > 0) {
            EXPECT_EQ(saidOf(name.sentence, "ZeRO-"), counted.zero);
        }
        EXPECT_EQ(name.sentence.starts_with(titleOf(plan.schedule)), counted.stages > 1);
        EXPECT_LE(name.title.size(), kLongestPlanTitle) << name.title;
        const auto [known, isNew] = named.emplace(name.sentence, counted);
        EXPECT_TRUE(known->second.tied() == counted.tied()) << "two plans of other degrees have this name";
    }
    EXPECT_EQ(planned, kWanted);
    EXPECT_GT(named.size(), 40U);
}

} // namespace
} // namespace planloom
