#include "engine/conflict/find_conflict.h"

#include "engine/conflict/order_cycle.h"
#include "tests/engine/conflict/conflict_words.h"
#include "tests/engine/conflict/random_rows.h"
#include "tests/engine/table/models.h"
#include "tests/seeds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

namespace planloom {
namespace {

ConflictAnswer answerTo(
    const Model &model, std::int32_t devices, const ConstraintTable &table, std::size_t mostSets = 64)
{
    auto answer = findConflict(model, devices, table, {.limit = kAnyTime, .mostSets = mostSets});
    EXPECT_TRUE(answer) << describe(answer.error());
    return answer ? *std::move(answer) : ConflictAnswer{};
}

TEST(FindConflict, SetsAreThoseThatCannotHoldTogether)
{
    struct Case {
        const char *text;
        std::set<Rows> sets;
    };
    const Case cases[] = {
        {"split name:a : n by 2\n", {}},
        {"split name:a : n by 5\n", {{0}}},
        {"mesh dp=8\n", {{0}}},
        {"mesh dp=2\nmesh tp=2\n", {{0, 1}}},
        {"place name:a : devices 0\nplace name:a : devices 1\nplace name:b : devices 2\n", {{0, 1}}},
        {"place name:a : devices 0\nplace name:a : devices 1\nplace name:a : devices 2\n",
            {{0, 1}, {0, 2}, {1, 2}}},
        {"split name:a : n by 2\nplace name:a : devices 0,1,2\n", {{0, 1}}},
        // The mesh is part of it where another one would do.
        {"mesh tp=2\nsplit name:a : n by 4 over tp\n", {{0, 1}}},
        {"mesh tp=4\nsplit all : batch over tp\nmicro-batches 2\n", {{0, 1, 2}}},
        {"mesh dp=2 tp=2\nsplit name:a : batch over dp\nsplit name:a : batch over tp\nmicro-batches 2\n",
            {{0, 1, 2, 3}}},
        {"mesh dp=2\nplace name:a : dp=2\n", {{0, 1}}},
        {"micro-batches 3\n", {{0}}},
        {"micro-batches 2\norder name:a before name:b of 3\n", {{1}}},
        {"stage name:a : 2\nstage name:r : 1\nstage name:b : 1\n", {{0, 1}, {0, 2}}},
        {"order name:a before name:b\norder name:b before name:a\n", {{1}}},
        {"in-flight 1\nin-flight 2\n", {{0, 1}}},
        {"degree data at most 2\ndegree data at least 4\n", {{0, 1}}},
        {"degree data at most 4\ndegree data at least 2\nsplit name:a : n by 5\n", {{2}}},
        {"schedule 1f1b\nschedule gpipe\nschedule gpipe at 2 micro-batches\n", {{0, 1}}},
        {"zero1 all over dp\n", {{0}}},
        // Rows of a kind that may stand together are no conflict where another row is wrong.
        {"schedule 1f1b at 2 micro-batches\nschedule gpipe at 4 micro-batches\nsplit name:a : n by 5\n",
            {{2}}},
        {"dim x = 8\ndim y = 16\nsplit name:a : n by 5\n", {{0}, {1}, {2}}},
        {"capacity x = 2x\ncapacity y = 2x\nsplit name:a : n by 5\n", {{0}, {1}, {2}}},
    };
    const auto graph = tinyMlp();
    for (const Case &each : cases) {
        const auto table = parseTable(each.text);
        ASSERT_TRUE(table) << each.text << describe(table.error());
        const ConflictAnswer answer = answerTo(graph, 4, *table);
        EXPECT_EQ(setsOf(answer), each.sets) << each.text;
        EXPECT_TRUE(answer.sets.empty() || answer.all) << each.text;
        EXPECT_EQ(answer.corrections, 0) << each.text;
        for (const ConflictSet &set : answer.sets) {
            EXPECT_TRUE(set.minimal) << each.text;
            EXPECT_FALSE(set.reason.message.empty()) << each.text;
        }
    }
}

TEST(FindConflict, PreferencesAndRowsThatAreOffTakeNoPart)
{
    const auto table = parseTable("place name:a : devices 0\noff place name:a : devices 1\n"
                                  "prefer place name:a : devices 2\n");
    ASSERT_TRUE(table) << describe(table.error());
    EXPECT_TRUE(answerTo(tinyMlp(), 4, *table).holds());
}

TEST(FindConflict, StopsAndKeepsItsTime)
{
    const auto table = parseTable("place name:a : devices 0\nplace name:a : devices 1\n");
    ASSERT_TRUE(table);
    std::stop_source stop;
    stop.request_stop();
    const auto stopped = findConflict(tinyMlp(), 4, *table, {}, stop.get_token());
    ASSERT_FALSE(stopped);
    EXPECT_EQ(stopped.error().code, ErrorCode::Cancelled);
    const auto late = findConflict(tinyMlp(), 4, *table, {.limit = std::chrono::milliseconds(0)});
    ASSERT_TRUE(late);
    EXPECT_TRUE(late->timedOut);
    EXPECT_FALSE(late->holds());
    ASSERT_EQ(late->sets.size(), 1u);
    EXPECT_FALSE(late->sets.front().minimal);
    EXPECT_EQ(setsOf(*late), (std::set<Rows>{{0, 1}}));
}

/// Wherever it is stopped, it says so, and does not end the program.
TEST(FindConflict, StopsAnywhere)
{
    const auto table = parseTable("mesh tp=4\nsplit all : batch over tp\nmicro-batches 2\nstage name:a : 2\n"
                                  "stage name:b : 1\norder name:a before name:r\norder name:r before name:a\n"
                                  "place name:a : devices 0\nplace name:a : devices 1\n");
    ASSERT_TRUE(table);
    const auto graph = tinyMlp();
    int stopped = 0;
    for (int i = 0; i < 80; ++i) {
        std::stop_source stop;
        std::thread other([&stop, i] {
            for (std::atomic<int> wait = 0; wait < i * 1500; ++wait) { }
            stop.request_stop();
        });
        const auto answer =
            findConflict(graph, 4, *table, {.limit = kAnyTime, .mostSets = 64}, stop.get_token());
        other.join();
        stopped += answer ? 0 : 1;
        if (!answer) {
            EXPECT_EQ(answer.error().code, ErrorCode::Cancelled);
        }
    }
    EXPECT_GT(stopped, 0);
}

/// Every subset of a table's rows, carried out.
class BruteForce
{
public:
    BruteForce(const GraphSnapshot &graph, std::int32_t devices, const ConstraintTable &table)
        : m_model(graph)
        , m_devices(devices)
        , m_table(table)
        , m_all(1u << table.rows.size())
    {
        m_holds.assign(m_all, false);
        m_plan = planMeaning(m_model, devices, table);
        for (std::uint32_t set = m_all; set-- > 0;) {
            // A set holds if one that contains it does.
            for (std::size_t row = 0; row < table.rows.size() && !m_holds[set]; ++row)
                m_holds[set] = (set >> row & 1) == 0 && m_holds[set | 1u << row];
            if (m_holds[set])
                continue;
            m_holds[set] = carriesOut(set, {});
            if (!m_holds[set] && m_plan.meshRow.valid() && !hasMesh(set))
                m_holds[set] = carriesOut(set, smallestMesh(m_plan.mesh, set));
        }
    }

    bool holds() const { return m_holds[m_all - 1]; }
    /// Refused as it is; with any row less it holds.
    bool isMinimal(const Rows &rows) const
    {
        std::uint32_t set = 0;
        for (const std::int32_t row : rows)
            set |= 1u << row;
        bool minimal = !carriesOut(set, {});
        for (const std::int32_t row : rows)
            minimal = minimal && m_holds[set & ~(1u << row)];
        return minimal;
    }
    std::set<Rows> minimalSets() const
    {
        std::set<Rows> sets;
        for (std::uint32_t set = 0; set < m_all; ++set) {
            if (m_holds[set])
                continue;
            Rows rows;
            bool minimal = true;
            for (std::size_t row = 0; row < m_table.rows.size(); ++row) {
                if ((set >> row & 1) == 0)
                    continue;
                rows.push_back(static_cast<std::int32_t>(row));
                minimal = minimal && m_holds[set & ~(1u << row)];
            }
            if (minimal)
                sets.insert(rows);
        }
        return sets;
    }

private:
    bool hasMesh(std::uint32_t set) const
    {
        for (std::size_t row = 0; row < m_table.rows.size(); ++row)
            if ((set >> row & 1) && std::holds_alternative<MeshRule>(m_table.rows[row].rule))
                return true;
        return false;
    }
    std::vector<MeshAxis> smallestMesh(std::vector<MeshAxis> mesh, std::uint32_t set) const
    {
        for (MeshAxis &axis : mesh) {
            axis.size = 1;
            for (std::size_t row = 0; row < m_table.rows.size(); ++row) {
                if ((set >> row & 1) == 0)
                    continue;
                if (const auto *place = std::get_if<OpAssignRule>(&m_table.rows[row].rule))
                    for (const AxisCoordinate &coordinate : place->coordinates)
                        if (coordinate.axis == axis.name)
                            axis.size = std::max(axis.size, coordinate.index + 1);
                if (const auto *split = std::get_if<OpTransRule>(&m_table.rows[row].rule))
                    for (const SplitStep &step : split->steps)
                        if (step.axis == axis.name)
                            axis.size = std::max(axis.size, step.parts);
            }
        }
        return mesh;
    }
    bool carriesOut(std::uint32_t set, std::vector<MeshAxis> mesh) const
    {
        ConstraintTable table;
        for (std::size_t row = 0; row < m_table.rows.size(); ++row) {
            table.rows.push_back(m_table.rows[row]);
            table.rows.back().enabled = (set >> row & 1) != 0;
        }
        if (!mesh.empty())
            table.rows.push_back({.rule = MeshRule{std::move(mesh)}});
        const auto completion = completePlan(m_model, m_devices, table);
        return completion && completion->plan.graph
            && orderCycle(completion->plan, *m_model.index, *batchOf(completion->plan)).empty();
    }

    Model m_model;
    PlanMeaning m_plan{};
    std::int32_t m_devices = 1;
    const ConstraintTable &m_table;
    std::uint32_t m_all = 1;
    std::vector<bool> m_holds{};
};

std::string textOf(const std::set<Rows> &sets)
{
    std::string text;
    for (const Rows &rows : sets) {
        text += "{";
        for (const std::int32_t row : rows)
            text += " " + std::to_string(row);
        text += " } ";
    }
    return text;
}

/// Rows of all kinds, drawn: what holds, and the minimal sets, are those of trying every subset.
TEST(FindConflict, OnRandomTablesItAgreesWithTryingEverySubset)
{
    const std::vector<GraphSnapshot> graphs{
        tinyMlp(), tinyMlp(6, 8), zooTraining("zoo:gpt?layers=1&hidden=16&heads=2&seq=8&vocab=32&batch=4")};
    constexpr std::int32_t kDevices = 4;
    const auto [firstSeed, behindLast] = seedsToTry("PLANLOOM_RANDOM_CONFLICTS", 240);
    int conflicts = 0;
    int others = 0;
    int largest = 0;
    for (std::uint32_t seed = firstSeed; seed < behindLast; ++seed) {
        const GraphSnapshot &graph = graphs[seed % 8 == 7 ? 2 : seed % 2];
        const std::string text = RandomRows(*graph, kDevices, seed).draw(seed % 8 == 7 ? 3 : 5);
        const auto table = parseTable(text);
        ASSERT_TRUE(table) << text << describe(table.error());
        const BruteForce brute(graph, kDevices, *table);
        const ConflictAnswer answer = answerTo(graph, kDevices, *table);
        SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text);
        EXPECT_EQ(answer.holds(), brute.holds());
        const auto found = setsOf(answer);
        const auto expected = brute.minimalSets();
        EXPECT_EQ(answer.corrections, 0);
        for (const Rows &rows : found)
            EXPECT_TRUE(brute.isMinimal(rows)) << textOf({rows});
        // Which further rows let a set hold is searched for, not enumerated: rarely one is missed.
        if (found != expected)
            ++others;
        conflicts += brute.holds() ? 0 : 1;
        for (const Rows &rows : expected)
            largest = std::max(largest, static_cast<int>(rows.size()));
    }
    std::printf("%d conflicts, %d with other sets, %d rows at most\n", conflicts, others, largest);
    const auto seeds = static_cast<int>(behindLast - firstSeed);
    EXPECT_LE(others, std::max(2, seeds / 100));
    if (seeds < 200)
        return;
    EXPECT_GT(conflicts, seeds * 2 / 5);
    EXPECT_LT(conflicts, seeds * 98 / 100);
    EXPECT_GE(largest, 3);
}

} // namespace
} // namespace planloom
