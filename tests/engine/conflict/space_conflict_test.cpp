// Rows that leave a search no plan.
#include "engine/conflict/order_cycle.h"
#include "engine/hardware/cluster.h"
#include "engine/plan/plan_degrees.h"
#include "engine/search/solver.h"
#include "engine/search/space_probe.h"
#include "tests/engine/conflict/conflict_words.h"
#include "tests/engine/table/models.h"
#include "tests/seeds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace planloom {
namespace {

/// A model on a cluster, where what rows leave open is searched.
class Searched
{
public:
    Searched(GraphSnapshot graph, std::int32_t devices, const std::string &rows)
        : m_model(std::move(graph))
        , m_cluster(*clusterNamed("dgx-h100:" + std::to_string(devices)))
        , m_probe(m_model, m_cluster, devices, costModelOf(m_cluster), PrecisionPreset::Float32)
    {
        const auto parsed = parseTable(rows);
        EXPECT_TRUE(parsed) << rows << describe(parsed.error());
        m_table = parsed ? *parsed : ConstraintTable{};
    }

    ConflictAnswer conflicts() const
    {
        const auto answer = findConflict(m_model, m_cluster.deviceCount, m_table,
            {.space = question(), .limit = kAnyTime, .mostSets = 64});
        EXPECT_TRUE(answer) << describe(answer.error());
        EXPECT_FALSE(answer->timedOut);
        EXPECT_EQ(answer->corrections, 0);
        return *answer;
    }
    std::vector<std::vector<WayOut>> waysOf(const ConflictAnswer &answer) const
    {
        auto ways = waysOut(
            m_model, m_cluster.deviceCount, m_table, answer.sets, {.space = question(), .limit = kAnyTime});
        EXPECT_TRUE(ways) << describe(ways.error());
        return *std::move(ways);
    }

    ConstraintTable only(const Rows &rows) const
    {
        ConstraintTable table = m_table;
        for (std::size_t i = 0; i < table.rows.size(); ++i)
            table.rows[i].enabled =
                std::binary_search(rows.begin(), rows.end(), static_cast<std::int32_t>(i));
        return table;
    }
    /// The search finds a plan, or there is one that keeps to the rows without it.
    bool hasPlan(const ConstraintTable &table) const
    {
        const auto [known, isNew] = m_known.try_emplace(print(table), false);
        if (!isNew)
            return known->second;
        const auto completion = completePlan(m_model, m_cluster.deviceCount, table);
        const bool isCompleted = completion && completion->plan.graph
            && orderCycle(completion->plan, *m_model.index, *batchOf(completion->plan)).empty();
        SearchOptions options;
        options.mostSeconds = 1000;
        options.mostSimulated = 1;
        return known->second = (isCompleted && brokenDegrees(completion->plan, table).empty())
            || searchPlan(m_model, m_cluster, m_cluster.deviceCount, table, costModelOf(m_cluster), options)
                   .has_value();
    }
    /// A set holds if it does, or with further rows of the table.
    bool holds(const Rows &rows) const
    {
        std::uint32_t set = 0;
        for (const std::int32_t row : rows)
            set |= 1U << row;
        for (std::uint32_t more = 0; more < 1U << m_table.rows.size(); ++more) {
            if ((more & set) != set)
                continue;
            Rows all;
            for (std::size_t row = 0; row < m_table.rows.size(); ++row)
                if (more >> row & 1U)
                    all.push_back(static_cast<std::int32_t>(row));
            ConstraintTable table = only(all);
            if (hasPlan(table))
                return true;
            // Without the mesh and degrees it may have any, also one that the search does not look at.
            if (std::none_of(table.rows.begin(), table.rows.end(), [](const Row &row) {
                    return row.enabled
                        && (std::holds_alternative<DegreeRule>(row.rule)
                            || std::holds_alternative<MeshRule>(row.rule));
                })) {
                table.rows.push_back({.rule = MeshRule{{{"dp", 1}, {"pp", 1}, {"tp", 1}}}});
                if (hasPlan(table))
                    return true;
            }
        }
        return false;
    }
    bool isMinimal(const ConflictSet &set) const
    {
        Rows rows;
        for (const RowId row : set.rows)
            rows.push_back(row.index);
        bool minimal = !hasPlan(only(rows));
        for (const std::int32_t row : rows) {
            Rows fewer = rows;
            std::erase(fewer, row);
            minimal = minimal && holds(fewer);
        }
        return minimal;
    }

    const ConstraintTable &table() const { return m_table; }

private:
    SpaceQuestion question() const
    {
        return {.holds = [this](const ConstraintTable &rows,
                             const auto &isOver) { return m_probe.findsPlan(rows, isOver); },
            .valuesOf = [this](Degree degree) { return m_probe.valuesOf(degree); }};
    }

    Model m_model;
    Cluster m_cluster{};
    SpaceProbe m_probe;
    ConstraintTable m_table{};
    mutable std::map<std::string, bool> m_known{};
};

TEST(SpaceConflict, SetsAreThoseThatLeaveNoPlan)
{
    struct Case {
        const char *text;
        std::set<Rows> sets;
        std::set<std::string> ways; ///< Of the first set.
    };
    const Case cases[] = {
        {"degree data exactly 2\ndegree pipeline exactly 2\n", {}, {}},
        {"degree data exactly 4\nzero1 all\ndegree pipeline exactly 2\n", {{0, 2}},
            {"0: degree data exactly 2", "0 off", "2: degree pipeline exactly 1", "2 off"}},
        {"degree micro-batches at least 64\n", {{0}}, {"0: degree micro-batches at least 8", "0 off"}},
        {"degree stages at most 1\nrecompute all\ndegree pipeline at least 2\nprecision all : bf16\n",
            {{0, 2}}, {"0: degree stages at most 2", "0 off", "2: degree pipeline at least 1", "2 off"}},
        {"degree data exactly 4\ndegree tensor at least 2\ndegree pipeline at least 2\n", {{0, 1}, {0, 2}},
            {}},
        {"degree micro-batches exactly 8\ndegree data exactly 2\n", {{0, 1}}, {}}, // of 8 samples
        // What the default would break alone is no conflict.
        {"degree tensor exactly 4\nparts name:a : n exactly 2\n", {{0, 1}}, {}},
        {"parts name:a : n exactly 2\n", {}, {}},
        {"split all : batch over dp\n", {}, {}},
        // A plan that is there without a search keeps to it.
        {"degree data exactly 4\nsplit all : batch by 4\n", {}, {}},
    };
    for (const Case &each : cases) {
        const Searched searched(tinyMlp(8), 4, each.text);
        const ConflictAnswer answer = searched.conflicts();
        SCOPED_TRACE(each.text);
        EXPECT_EQ(setsOf(answer), each.sets);
        EXPECT_EQ(answer.sets.empty(), searched.hasPlan(searched.table()));
        const auto ways = searched.waysOf(answer);
        if (!each.ways.empty() && !ways.empty()) {
            std::set<std::string> words;
            for (std::string word : wordsOf(ways.front())) { // "exactly 4" is printed so
                for (std::size_t at = 0; (at = word.find("one of", at)) != std::string::npos;)
                    word.replace(at, 6, "exactly");
                words.insert(word);
            }
            EXPECT_EQ(words, each.ways);
        }
        for (const ConflictSet &set : answer.sets) {
            EXPECT_TRUE(set.minimal);
            EXPECT_TRUE(searched.isMinimal(set));
            EXPECT_FALSE(set.reason.message.empty());
        }
        for (const auto &ofSet : ways)
            for (const WayOut &way : ofSet)
                EXPECT_EQ(way.holds, searched.hasPlan(applied(searched.table(), way)))
                    << wordsOf({way}).front();
    }
}

/// Two rows of a degree among others of a larger model, on as many devices as are written as units.
TEST(SpaceConflict, IsFoundAmongOthersOnManyDevices)
{
    std::string text = "zero1 all\nprecision all : bf16\nlimit memory 60GiB\n";
    for (int layer = 0; layer < 4; ++layer)
        text += "recompute layer:" + std::to_string(layer) + "\n";
    text += "degree tensor at least 8\ndegree stages at most 2\nschedule 1f1b\ndegree data exactly 8\n";
    const Searched searched(
        zooTraining("zoo:gpt?layers=4&hidden=64&heads=8&seq=32&vocab=128&batch=32"), 32, text);
    const ConflictAnswer answer = searched.conflicts();
    EXPECT_EQ(setsOf(answer), (std::set<Rows>{{7, 10}}));
    EXPECT_LT(answer.completions, 60);
    const auto ways = searched.waysOf(answer);
    ASSERT_EQ(ways.size(), 1U);
    EXPECT_EQ(ways.front().size(), 4U);
    for (const WayOut &way : ways.front()) {
        EXPECT_TRUE(way.holds);
        EXPECT_TRUE(searched.hasPlan(applied(searched.table(), way))) << wordsOf({way}).front();
    }
}

/// Where time is over no set is called minimal, and no way out one that holds.
TEST(SpaceConflict, SaysNothingOfWhatItHadNoTimeFor)
{
    const Model model(tinyMlp(8));
    const auto table = parseTable("degree data exactly 4\ndegree pipeline exactly 4\n");
    ASSERT_TRUE(table);
    const SpaceQuestion never{.holds = [](const ConstraintTable &, const auto &isOver) -> Result<void> {
        EXPECT_TRUE(isOver());
        return cancelled();
    }};
    const auto answer =
        findConflict(model, 4, *table, {.space = never, .limit = std::chrono::milliseconds(0)});
    ASSERT_TRUE(answer);
    EXPECT_TRUE(answer->sets.empty());
    EXPECT_FALSE(answer->holds());
    const auto ways = waysOut(
        model, 4, *table, {{.rows = {{0}, {1}}}}, {.space = never, .limit = std::chrono::milliseconds(0)});
    ASSERT_TRUE(ways);
    EXPECT_TRUE(ways->front().empty());
}

/// A few rows about what a search chooses, drawn so that they often leave it nothing.
std::string randomRows(std::uint32_t seed)
{
    std::mt19937 random(seed);
    const auto of = [&](const std::vector<std::string> &words) { return words[random() % words.size()]; };
    const auto bound = [&] {
        return of({" at most 1", " at most 2", " at least 2", " at least 4", " one of 2 4", " exactly 1",
            " exactly 2", " exactly 3", " exactly 4", " exactly 8"});
    };
    const auto name = [&] { return "name:" + of({"a", "r", "b"}); };
    std::string text;
    for (std::uint32_t i = 2 + random() % 3; i > 0; --i) {
        switch (random() % 14) {
        case 0:
            text += "parts " + of({name(), "all"}) + " : " + of({"n", "k", "batch", "in all"}) + bound();
            break;
        case 1:
            text += "split " + of({name(), "all"}) + " : " + of({"n", "batch"}) + " over " + of({"dp", "tp"});
            break;
        case 2:
            text += "stage " + name() + " : " + of({"0", "1", "2"});
            break;
        case 3:
            text += of({"micro-batches 2", "micro-batches 8", "schedule gpipe", "schedule interleaved"});
            break;
        case 4:
            text += of({"mesh dp=2 tp=2", "mesh pp=2", "mesh tp=4"});
            break;
        case 5:
            text += of({"recompute all", "zero2 all", "replicate " + name() + " : over tp"});
            break;
        default:
            text += "degree " + of({"data", "tensor", "pipeline", "stages", "micro-batches"}) + bound();
        }
        text += "\n";
    }
    return text;
}

/// Whatever is called a conflict is one, minimal, for the search and without it; whatever is not holds; and
/// ways out that are said to hold do.
TEST(SpaceConflict, OnRandomTablesItAgreesWithTheSearch)
{
    const auto [first, end] = seedsToTry("PLANLOOM_RANDOM_SPACES", 60);
    int conflicts = 0;
    int together = 0;
    int ways = 0;
    for (std::uint32_t seed = first; seed < end; ++seed) {
        const std::string text = randomRows(seed);
        SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text);
        const Searched searched(tinyMlp(8), 4, text);
        const ConflictAnswer answer = searched.conflicts();
        EXPECT_EQ(answer.sets.empty(), searched.hasPlan(searched.table()));
        conflicts += answer.sets.empty() ? 0 : 1;
        for (const ConflictSet &set : answer.sets) {
            EXPECT_TRUE(set.minimal);
            EXPECT_TRUE(searched.isMinimal(set))
                << testing::PrintToString(setsOf(answer)) << set.reason.message;
            together += set.rows.size() > 1 ? 1 : 0;
        }
        for (const auto &each : searched.waysOf(answer))
            for (const WayOut &way : each)
                if (way.holds) {
                    ++ways;
                    EXPECT_TRUE(searched.hasPlan(applied(searched.table(), way))) << wordsOf({way}).front();
                }
    }
    std::printf("%d conflicts, %d of several rows, %d ways out\n", conflicts, together, ways);
    if (const auto tables = static_cast<int>(end - first); tables >= 60) {
        EXPECT_GT(conflicts, tables / 4);
        EXPECT_LT(conflicts, tables * 9 / 10);
        EXPECT_GT(together, tables / 6);
        EXPECT_GT(ways, tables / 2);
    }
}

} // namespace
} // namespace planloom
