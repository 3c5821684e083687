#include "engine/binding/bound_table.h"
#include "engine/plan/default_rule.h"
#include "tests/engine/table/models.h"

#include <gtest/gtest.h>

#include <memory>

namespace planloom {
namespace {

BoundTable bound(const GraphSnapshot &graph, std::int32_t devices, std::string_view text)
{
    const auto table = parseTable(text);
    EXPECT_TRUE(table) << describe(table.error());
    return bindTable(graph, devices, *table);
}

Split over(const char *axis, std::int32_t dimension, std::int32_t parts = 2)
{
    return {.kind = SplitKind::Dimension, .dimension = dimension, .parts = parts, .axis = axis};
}

OperatorMeaning axisMeaning(const char *axis, Allowed<Split> allowed)
{
    OperatorMeaning meaning;
    meaning.axes.push_back({axis, std::move(allowed)});
    return meaning;
}

const std::vector<MeshAxis> kMesh{{"dp", 2}, {"tp", 2}};

TEST(BoundTable, AnExactRowIsASetWithOneMember)
{
    const auto graph = tinyMlp();
    const BoundTable table =
        bound(graph, 4, "mesh dp=2 tp=2\nsplit name:a : n over tp\nplace name:b : dp=1\n");
    EXPECT_FALSE(table.failed);
    const OperatorBinding &a = table.of(operatorNamed(*graph, "a"));
    ASSERT_EQ(a.allowed.axes.size(), 1u);
    EXPECT_EQ(a.allowed.axes.front().axis, "tp");
    ASSERT_NE(a.allowed.axes.front().allowed.exact(), nullptr);
    EXPECT_EQ(a.axisRows, std::vector<std::int32_t>{1});
    const OperatorBinding &b = table.of(operatorNamed(*graph, "b"));
    ASSERT_TRUE(b.allowed.place && b.allowed.place->exact());
    EXPECT_EQ(b.allowed.place->exact()->devices, (std::vector<DeviceId>{{2}, {3}}));
    EXPECT_EQ(b.rowOf(Aspect::Place), 2);
}

TEST(BoundTable, RowsThatPlaceOnTheSameDevicesAgree)
{
    // Two ways to say device 0, and two to say devices 2 and 3.
    const auto graph = tinyMlp();
    for (const char *text : {"mesh pp=2\nplace all : pp=0\nplace name:a : devices 0\n",
             "mesh pp=2\nplace name:a : devices 0\nplace all : pp=0\n",
             "mesh dp=2 tp=2\nplace all : dp=1\nplace name:a : devices 2,3\n"}) {
        const BoundTable table = bound(graph, 4, text);
        EXPECT_FALSE(table.failed) << text << describe(*table.reports.back().error);
        // The part of the mesh stays, so that splits over its axes go on.
        EXPECT_TRUE(table.of(operatorNamed(*graph, "a")).allowed.place->exact()->onMesh) << text;
    }
    const BoundTable apart = bound(graph, 4, "mesh pp=2\nplace all : pp=0\nplace name:a : devices 1\n");
    EXPECT_TRUE(apart.failed);
    EXPECT_EQ(apart.reports[2].error->code, ErrorCode::Conflict);
    EXPECT_EQ(apart.reports[1].error->code, ErrorCode::Conflict);
    // Another order of the same devices is another place: parts are dealt out in order.
    EXPECT_TRUE(bound(graph, 4, "mesh dp=2\nplace all : mesh\nplace name:a : devices 1,0\n").failed);
}

TEST(BoundTable, TheFirstMeshThatHoldsCounts)
{
    const auto graph = tinyMlp();
    const BoundTable two = bound(graph, 4, "mesh dp=4\nmesh tp=2\n");
    EXPECT_EQ(two.plan.mesh, (std::vector<MeshAxis>{{"dp", 4}}));
    EXPECT_TRUE(two.reports[1].error);
    EXPECT_FALSE(two.reports[0].error);
    const BoundTable off = bound(graph, 4, "off mesh dp=4\nmesh tp=2\n");
    EXPECT_EQ(off.plan.mesh, (std::vector<MeshAxis>{{"tp", 2}}));
    EXPECT_FALSE(off.failed);
    const auto table = parseTable("mesh dp=4\nmesh tp=2\n");
    ASSERT_TRUE(table);
    EXPECT_EQ(settingOf(graph, 4, *table).mesh, two.plan.mesh);
}

/// Whatever the order of the rows.
TEST(BoundTable, DegreesHoldAgainstWhatOtherRowsGive)
{
    const Model model(tinyMlp(4));
    const auto failed = [&](const char *rows) {
        const BoundTable bound = bindTable(model, 4, *parseTable(rows));
        return std::count_if(bound.reports.begin(), bound.reports.end(),
            [](const RowReport &report) { return report.error.has_value(); });
    };
    EXPECT_EQ(failed("mesh dp=2 tp=2\ndegree tensor at most 2\ndegree data one of 2 4\n"), 0);
    EXPECT_EQ(failed("degree pipeline at most 1\nmesh dp=2 tp=2\n"), 0);
    EXPECT_EQ(failed("mesh dp=2 tp=2\ndegree tensor at least 4\n"), 1);
    EXPECT_EQ(failed("degree pipeline at least 2\nmesh dp=2 tp=2\n"), 1);
    EXPECT_EQ(failed("micro-batches 2\ndegree micro-batches one of 1 4\n"), 1);
    EXPECT_EQ(failed("degree micro-batches at most 1\nmicro-batches 2\n"), 1);
    EXPECT_EQ(failed("degree data at most 2\ndegree data at least 4\n"), 1);
    EXPECT_EQ(failed("degree data at most 4\ndegree data at least 2\ndegree data one of 1 3\n"), 0);
    EXPECT_EQ(failed("degree data at most 4\ndegree data at least 2\ndegree data one of 1 8\n"), 1);
}

TEST(Join, IntersectsSetsAndNamesTheRowItClashesWith)
{
    OperatorBinding binding;
    const Split m = over("tp", 0);
    const Split n = over("tp", 1);
    const Split k = over("tp", 2);
    EXPECT_FALSE(join(binding, axisMeaning("tp", Allowed<Split>::oneOf({m, n, k})), 3, kMesh));
    EXPECT_FALSE(join(binding, axisMeaning("tp", Allowed<Split>::anythingBut({m})), 4, kMesh));
    ASSERT_EQ(binding.allowed.axes.size(), 1u);
    EXPECT_EQ(binding.allowed.axes.front().allowed.members(), (std::vector<Split>{n, k}));
    // Another axis composes, in the order of the mesh.
    EXPECT_FALSE(join(binding, axisMeaning("dp", Allowed<Split>::only(over("dp", 0))), 5, kMesh));
    EXPECT_EQ(binding.allowed.axes.front().axis, "dp");
    EXPECT_EQ(binding.axisRows, (std::vector<std::int32_t>{5, 3}));
    const OperatorBinding before = binding;
    const auto clash = join(binding, axisMeaning("tp", Allowed<Split>::only(m)), 6, kMesh);
    ASSERT_TRUE(clash);
    EXPECT_EQ(clash->aspect, Aspect::Split);
    EXPECT_EQ(clash->other, 3);
    EXPECT_EQ(binding.allowed.axes, before.allowed.axes);
    // Who speaks of what one device has says all there is.
    OperatorMeaning within;
    within.within = Allowed<std::vector<Split>>::only({over("", 0)});
    EXPECT_TRUE(join(binding, within, 7, kMesh));
    OperatorMeaning stages;
    stages.stage = Allowed<std::int32_t>::oneOf({0, 1});
    EXPECT_FALSE(join(binding, stages, 8, kMesh));
    stages.stage = Allowed<std::int32_t>::anythingBut({0});
    EXPECT_FALSE(join(binding, stages, 9, kMesh));
    EXPECT_EQ(*binding.allowed.stage.exact(), 1);
    stages.stage = Allowed<std::int32_t>::only(0);
    ASSERT_TRUE(join(binding, stages, 10, kMesh));
    EXPECT_EQ(join(binding, stages, 10, kMesh)->other, 9);
}

TEST(Join, KeepsTheLastRowOfEachAspectAndBlamesIt)
{
    const auto saying = [](auto OperatorMeaning::*member, auto value) {
        OperatorMeaning meaning;
        meaning.*member = std::move(value);
        return meaning;
    };
    const auto parts = [](std::int32_t count) {
        return Allowed<Split>::only({.kind = SplitKind::Dimension, .parts = count});
    };
    using Meaning = OperatorMeaning;
    struct Case {
        Aspect aspect;
        OperatorMeaning said;
        OperatorMeaning clash;
    };
    const Case cases[] = {
        {Aspect::Coshard, saying(&Meaning::coshard, parts(2)), saying(&Meaning::coshard, parts(4))},
        {Aspect::CoshardKeeps, saying(&Meaning::coshardKeeps, true), saying(&Meaning::coshardKeeps, false)},
        {Aspect::Ring, saying(&Meaning::ring, "cp"), saying(&Meaning::ring, "sp")},
        {Aspect::Slices, saying(&Meaning::slices, parts(2)), saying(&Meaning::slices, parts(4))},
        {Aspect::Lanes, saying(&Meaning::lanes, LanesRule{2, {}}), saying(&Meaning::lanes, LanesRule{4, {}})},
        {Aspect::Recompute, saying(&Meaning::recompute, RecomputeRule{.when = Switched::Never}),
            saying(&Meaning::recompute, RecomputeRule{})},
        {Aspect::Sharding, saying(&Meaning::sharding, OptimizerShardingRule{1}),
            saying(&Meaning::sharding, OptimizerShardingRule{2})},
        {Aspect::Attention, saying(&Meaning::attention, AttentionMode::Plain),
            saying(&Meaning::attention, AttentionMode::Fused)},
        {Aspect::WeightVersions, saying(&Meaning::weightVersions, 2), saying(&Meaning::weightVersions, 3)},
        {Aspect::Offload, saying(&Meaning::offloaded, true), saying(&Meaning::offloaded, false)},
    };
    for (const Case &each : cases) {
        SCOPED_TRACE(clashWords(each.aspect));
        OperatorBinding binding;
        EXPECT_FALSE(join(binding, each.said, 3, kMesh));
        EXPECT_FALSE(join(binding, each.said, 5, kMesh));
        for (std::size_t i = 0; i < kAspectCount; ++i) {
            const auto aspect = static_cast<Aspect>(i);
            EXPECT_EQ(binding.rowOf(aspect), aspect == each.aspect ? 5 : -1) << i;
        }
        const auto clash = join(binding, each.clash, 6, kMesh);
        ASSERT_TRUE(clash);
        EXPECT_EQ(clash->aspect, each.aspect);
        EXPECT_EQ(clash->other, 5);
        EXPECT_EQ(binding.rowOf(each.aspect), 5);
    }
    // A group is recomputed as one: even equal rows clash. Others of whom two ask the same do not.
    OperatorBinding binding;
    EXPECT_FALSE(join(binding, saying(&Meaning::recompute, RecomputeRule{}), 0, kMesh));
    EXPECT_TRUE(join(binding, saying(&Meaning::recompute, RecomputeRule{}), 1, kMesh));
    EXPECT_FALSE(join(binding, saying(&Meaning::follows, true), 2, kMesh));
    EXPECT_FALSE(join(binding, saying(&Meaning::splitBackward, true), 3, kMesh));
    EXPECT_EQ(binding.rowOf(Aspect::Follow), 2);
    EXPECT_EQ(binding.rowOf(Aspect::SplitBackward), 3);
}

TEST(Aspects, AreAllButTwoOnTheList)
{
    std::vector<Aspect> listed;
    anyAspect([&](const auto &entry) {
        listed.push_back(entry.aspect);
        return false;
    });
    EXPECT_EQ(listed.size(), kAspectCount - 2); // Split and Parts
    EXPECT_TRUE(std::is_sorted(listed.begin(), listed.end()));
    EXPECT_EQ(std::adjacent_find(listed.begin(), listed.end()), listed.end());
}

/// Narrows what rows allow of one operator before the default rule decides: as a kind of row that is a set
/// would.
class Narrowing : public Decider
{
public:
    Narrowing(OperatorId op, OperatorMeaning meaning)
        : m_op(op)
        , m_meaning(std::move(meaning))
    {
    }
    void decide(PlanDraft &draft) const override
    {
        EXPECT_FALSE(join(draft.bound.bindings[static_cast<std::size_t>(m_op.index)], m_meaning, 0,
            draft.bound.setting.mesh));
        defaultDecider().decide(draft);
    }

private:
    OperatorId m_op;
    OperatorMeaning m_meaning;
};

TEST(Decider, TakesThePreferredMemberThatIsLegal)
{
    const auto graph = tinyMlp(4, 12);
    const OperatorId a = operatorNamed(*graph, "a");
    const Annotation &annotation = graph->at(a).annotation;
    const auto dimension = [&](const char *name) { return *findDimension(annotation, name); };
    const auto table = parseTable("mesh tp=8\n");
    ASSERT_TRUE(table);
    // 12 does not divide by 8, the 8 of k does.
    const Narrowing wide(a,
        axisMeaning(
            "tp", Allowed<Split>::oneOf({over("tp", dimension("n"), 8), over("tp", dimension("k"), 8)})));
    const auto completion = completePlan(graph, 8, *table, {.decider = &wide});
    ASSERT_TRUE(completion);
    ASSERT_FALSE(firstError(*completion)) << describe(*firstError(*completion));
    EXPECT_EQ(decisionText(completion->plan, "a"), "k+:8 @ 0,1,2,3,4,5,6,7 stage 0");
}

TEST(Decider, KeepsToWhatIsExcluded)
{
    const auto graph = tinyMlp(4, 12);
    const OperatorId r = operatorNamed(*graph, "r");
    const auto table = parseTable("mesh tp=2\nsplit name:a : n over tp\n");
    ASSERT_TRUE(table);
    const auto plain = completePlan(graph, 2, *table);
    ASSERT_TRUE(plain && plain->plan.graph);
    const Partition followed = plain->plan.decisions[static_cast<std::size_t>(r.index)].partition;
    ASSERT_EQ(followed.splits.size(), 1u);
    ASSERT_EQ(followed.splits.front().kind, SplitKind::Dimension);
    // It follows `a` unless it may not; then it is replicated, unless it may not be that either.
    const Split whole{.kind = SplitKind::Replicate, .parts = 2, .axis = "tp"};
    const Narrowing apart(r, axisMeaning("tp", Allowed<Split>::anythingBut({followed.splits.front()})));
    const auto replicated = completePlan(graph, 2, *table, {.decider = &apart});
    ASSERT_TRUE(replicated && replicated->plan.graph);
    EXPECT_EQ(replicated->plan.decisions[static_cast<std::size_t>(r.index)].partition.splits,
        std::vector<Split>{whole});
    const Narrowing neither(
        r, axisMeaning("tp", Allowed<Split>::anythingBut({followed.splits.front(), whole})));
    const auto refused = completePlan(graph, 2, *table, {.decider = &neither});
    ASSERT_TRUE(refused);
    EXPECT_TRUE(firstError(*refused));
}

} // namespace
} // namespace planloom
