#include "engine/plan/complete.h"
#include "tests/engine/table/models.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace planloom {
namespace {

/// What rows come to without a search.
class RowKinds : public testing::Test
{
protected:
    void complete(std::string_view rows, GraphSnapshot graph = tinyMlp(), std::int32_t devices = 4)
    {
        const auto table = parseTable(rows);
        ASSERT_TRUE(table) << describe(table.error());
        m_graph = std::move(graph);
        auto completion = completePlan(Model(m_graph), devices, *table);
        ASSERT_TRUE(completion) << describe(completion.error());
        m_completion = *std::move(completion);
    }
    std::string error() const
    {
        const auto first = firstError(m_completion);
        return first ? first->message : std::string{};
    }
    /// Rows with an error, from 1.
    std::vector<std::size_t> wrong() const
    {
        std::vector<std::size_t> rows;
        for (std::size_t i = 0; i < m_completion.rows.size(); ++i)
            if (m_completion.rows[i].error)
                rows.push_back(i + 1);
        return rows;
    }
    const OperatorDecision &of(std::string_view name) const
    {
        return m_completion.plan.decisions[at(operatorNamed(*m_graph, name))];
    }
    std::int64_t parts(std::string_view name, std::string_view dimension) const
    {
        const Operator &op = m_graph->at(operatorNamed(*m_graph, name));
        return partsOf(of(name).partition.splits, *findDimension(op.annotation, std::string(dimension)));
    }

    GraphSnapshot m_graph{};
    Completion m_completion{};
};

TEST_F(RowKinds, PartsCutWhatIsLeftOpen)
{
    complete("mesh dp=2 tp=2\nparts name:a : n at least 2\nparts name:b : in all exactly 4\n");
    ASSERT_EQ(error(), "");
    EXPECT_EQ(parts("a", "n"), 2); // no more than it takes
    EXPECT_EQ(partsOf(of("b").partition.splits, -1), 4);
    EXPECT_EQ(of("a").rows, std::vector<RowId>{{1}});
    complete("parts name:a : n exactly 2\n"); // on devices that are no mesh, too
    ASSERT_EQ(error(), "");
    EXPECT_EQ(parts("a", "n"), 2);
    EXPECT_EQ(of("a").devices.size(), 4u);
}

TEST_F(RowKinds, PartsKeepDefaultsFromCuttingMore)
{
    // r would follow a over both axes.
    const std::string rows = "mesh dp=2 tp=2\nsplit name:a : n over dp then n over tp\n";
    complete(rows);
    const Annotation &annotation = m_graph->at(operatorNamed(*m_graph, "r")).annotation;
    const std::string name =
        annotation.dimensions[static_cast<std::size_t>(of("r").partition.splits[0].dimension)].name;
    EXPECT_EQ(parts("r", name), 4);
    complete(rows + "parts name:r : " + name + " at most 2\n");
    ASSERT_EQ(error(), "");
    EXPECT_EQ(parts("r", name), 2);
    EXPECT_EQ(of("r").partition.splits[0].kind, SplitKind::Dimension); // the outer axis stays
    complete(rows + "parts all : batch at most 1\n");
    EXPECT_EQ(error(), "");
}

TEST_F(RowKinds, PartsThatCannotBeAreRefusedWithTheNearest)
{
    complete("parts name:a : n one of 5 7\n"); // of 12
    EXPECT_EQ(wrong(), std::vector<std::size_t>{1});
    EXPECT_NE(error().find("12 along n"), std::string::npos) << error();
    EXPECT_EQ(firstError(m_completion)->advice, "the nearest number of parts is 4");
    complete("parts name:a : q at most 2\n");
    EXPECT_NE(error().find("nothing selected has a dimension q"), std::string::npos) << error();
    complete("mesh tp=4\nsplit name:a : n over tp\nparts name:a : n at most 2\n");
    EXPECT_EQ(wrong(), (std::vector<std::size_t>{2, 3}));
    complete("parts name:a : n at most 2\nparts name:a : n at least 3\n");
    EXPECT_EQ(wrong(), (std::vector<std::size_t>{1, 2}));
    complete("mesh tp=2\nparts name:a : n at least 3\n");
    EXPECT_EQ(wrong(), std::vector<std::size_t>{2}); // an axis of two cannot
    complete("degree sequence at most 1\nmesh tp=4\nsplit all : sequence over tp\n", tinyGpt());
    EXPECT_FALSE(wrong().empty());
}

TEST_F(RowKinds, AlikeCutsAreThoseOfTheOther)
{
    complete("mesh tp=4\nsplit name:b : k over tp\nalike name:a as name:b\n");
    ASSERT_EQ(error(), "");
    EXPECT_EQ(parts("a", "k"), 4);
    complete("mesh tp=4\nsplit name:b : k over tp\nsplit name:a : n over tp\nalike name:a as name:b\n");
    EXPECT_EQ(wrong(), (std::vector<std::size_t>{2, 3, 4}));
    // Where no row speaks, the second does as the first does by default.
    complete("mesh tp=2\nsplit name:sum : d0 over tp\nalike name:b as name:a\nalike name:a as name:b\n");
    ASSERT_EQ(error(), ""); // a circle says nothing else
    EXPECT_EQ(of("a").partition, of("b").partition);
    complete("parts name:a : n exactly 4\nalike name:b as name:a\n", tinyMlp(4, 12));
    EXPECT_FALSE(wrong().empty()); // b has 6 along n
    complete("alike name:a | name:b | name:r as name:a | name:b\n");
    EXPECT_NE(error().find("one by one"), std::string::npos) << error();
}

TEST_F(RowKinds, LayersAreCutAsTheFirst)
{
    complete("mesh tp=2\nalike layer:1 as layer:0\nsplit layer:0 & kind:Linear : n over tp\n", tinyGpt());
    ASSERT_EQ(error(), "");
    const Model model(m_graph);
    const auto first = model.index->select(*parseSelector("layer:0 & forward"));
    const auto second = model.index->select(*parseSelector("layer:1 & forward"));
    ASSERT_EQ(first.size(), second.size());
    for (std::size_t i = 0; i < first.size(); ++i)
        EXPECT_EQ(m_completion.plan.decisions[at(first[i])].partition,
            m_completion.plan.decisions[at(second[i])].partition)
            << m_graph->at(first[i]).name;
}

TEST_F(RowKinds, FollowersAreCutAsTheirProducer)
{
    complete("mesh dp=2 tp=2\nsplit all : batch over dp\nsplit name:a : n over tp\nfollow name:r\n");
    ASSERT_EQ(error(), "");
    EXPECT_EQ(of("r").partition.splits.back().kind, SplitKind::Dimension);
    complete("mesh tp=2\nsplit name:a : n over tp\nfollow name:r\nreplicate name:r : over tp\n");
    EXPECT_EQ(wrong(), (std::vector<std::size_t>{3, 4}));
    // Of summands no elementwise operator can be made: it has them added up.
    complete("mesh tp=2\nsplit name:a : k over tp\nfollow name:r\n");
    ASSERT_EQ(error(), "");
    EXPECT_EQ(of("r").partition.splits.back().kind, SplitKind::Replicate);
}

TEST_F(RowKinds, SpreadsAreConsecutiveAndBalanced)
{
    complete("mesh pp=2\nspread layer:* & forward : over pp by count\n", tinyGpt(), 2);
    ASSERT_EQ(error(), "");
    const Model model(m_graph);
    std::vector<std::int32_t> devices;
    for (const OperatorId op : model.index->select(*parseSelector("layer:* & forward")))
        devices.push_back(m_completion.plan.decisions[at(op)].devices.front().index);
    EXPECT_TRUE(std::is_sorted(devices.begin(), devices.end()));
    const auto second = std::count(devices.begin(), devices.end(), 1);
    EXPECT_NEAR(static_cast<double>(second), static_cast<double>(devices.size()) / 2, 0.5);
    complete("mesh pp=4\nspread name:a | name:r | name:b : over pp\n"); // fewer than places
    ASSERT_EQ(error(), "");
    EXPECT_NE(of("a").devices, of("b").devices);
    complete("mesh pp=4\nspread all : over dp\n");
    EXPECT_EQ(error(), "the mesh has no axis 'dp'");
    EXPECT_NE(firstError(m_completion)->advice.find("pp"), std::string::npos);
}

TEST_F(RowKinds, SharingIsKeptAndRefused)
{
    complete("mesh pp=2\nplace name:a : pp=0\nplace name:b : pp=1\ntogether name:r with name:b\n");
    ASSERT_EQ(error(), "");
    EXPECT_EQ(of("r").devices, of("b").devices);
    complete("mesh pp=2\nplace name:a : pp=0\nplace name:b : pp=1\ntogether name:a with name:b\n");
    EXPECT_EQ(wrong(), (std::vector<std::size_t>{3, 4}));
    complete("mesh pp=2\nplace name:a : pp=0\nplace name:b : pp=1\napart name:a from name:b\n");
    EXPECT_EQ(error(), "");
    complete("mesh pp=2\nplace name:a : pp=0\napart name:a from name:b\n");
    EXPECT_EQ(wrong(), (std::vector<std::size_t>{2, 3}));
    complete("apart name:a from name:b\n");
    EXPECT_NE(error().find("both run on device"), std::string::npos) << error();
    complete("apart name:a from name:a | name:b\n");
    EXPECT_EQ(error(), "operator 'a' cannot run apart from itself");
}

TEST_F(RowKinds, StagesAreCounted)
{
    const std::string stages = "mesh pp=2\nplace name:a : pp=0\nplace name:b : pp=1\nstage name:b : 1\n";
    complete(stages + "stage name:a : 0 of 2\n");
    EXPECT_EQ(error(), "");
    complete(stages + "stage name:a : 0 of 3\n");
    EXPECT_EQ(error(), "the plan has 2 stages, and the row says 3");
    complete(stages + "stage name:a : 0 of 3\nstage name:r : 0 of 2\n");
    EXPECT_EQ(wrong(), (std::vector<std::size_t>{5, 6}));
    EXPECT_FALSE(parseRow("stage name:a : 2 of 2"));
}

TEST_F(RowKinds, SwitchesSayNever)
{
    complete("recompute name:a\nrecompute name:r never\n");
    ASSERT_EQ(error(), "");
    EXPECT_GE(of("a").recomputeGroup, 0);
    EXPECT_LT(of("r").recomputeGroup, 0);
    complete("recompute name:a | name:r\nrecompute name:r never\n");
    EXPECT_EQ(wrong(), (std::vector<std::size_t>{1, 2}));
    complete("recompute name:r never\nrecompute name:r never\nrecompute name:r solver\n");
    EXPECT_EQ(error(), "");
    complete("offload name:a : activations\noffload name:r : activations never\n");
    ASSERT_EQ(error(), "");
    EXPECT_TRUE(of("a").offloaded);
    EXPECT_FALSE(of("r").offloaded);
    complete("offload name:a | name:r : activations\noffload name:r : activations never\n");
    EXPECT_EQ(wrong(), (std::vector<std::size_t>{1, 2}));
    complete("offload name:r : activations never\noffload name:r : activations solver\n");
    EXPECT_EQ(error(), "");
    complete("mesh dp=4\nsplit all : batch over dp\nzero1 weight:w1\nzero0 weight:w2\n");
    ASSERT_EQ(error(), "");
    std::set<std::int32_t> sharded;
    for (std::size_t i = 0; i < m_graph->operators.size(); ++i)
        if (m_graph->operators[i].direction == Direction::Optimizer)
            sharded.insert(m_completion.plan.decisions[i].sharding.stage);
    EXPECT_EQ(sharded, (std::set<std::int32_t>{0, 1}));
    complete("zero0 all\nzero1 all\n");
    EXPECT_EQ(wrong(), (std::vector<std::size_t>{1, 2}));
}

} // namespace
} // namespace planloom
