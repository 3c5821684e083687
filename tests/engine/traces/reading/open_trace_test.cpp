#include "engine/traces/reading/open_trace.h"

#include "engine/base/files.h"
#include "engine/traces/nsight/nsight_reader.h"
#include "engine/traces/reading/run_log_reader.h"
#include "engine/traces/reading/trace_index.h"
#include "engine/traces/trace_analysis.h"
#include "tests/engine/traces/reading/files_for_tests.h"
#include "tests/temporary_folder.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <fstream>
#include <random>

namespace planloom {
namespace {

using test::smallKineto;

void write(const std::string &path, const std::string &text)
{
    ASSERT_TRUE(writeFile(path, text));
}

/// A database of these statements.
void writeDatabase(const std::string &path, const std::string &statements)
{
    sqlite3 *database = nullptr;
    ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
    char *message = nullptr;
    EXPECT_EQ(sqlite3_exec(database, statements.c_str(), nullptr, nullptr, &message), SQLITE_OK)
        << (message ? message : "");
    sqlite3_free(message);
    sqlite3_close(database);
}

const std::string kKernelTable =
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId "
    "INTEGER, "
    "contextId INTEGER, streamId INTEGER, correlationId INTEGER, demangledName INTEGER, shortName INTEGER);";
const std::string kSmallNsight = kKernelTable
    + "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, "
      "correlationId INTEGER);"
      "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, textId INTEGER);"
      "INSERT INTO StringIds VALUES (1, 'void gemm<float>()'), (2, 'gemm'), (3, "
      "'ncclDevKernel_AllGather_RING_LL()'), "
      "(4, 'ncclDevKernel_AllGather_RING_LL'), (5, 'forward');"
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1000, 1500, 0, 1, 7, 21, 1, 2), (1600, 1900, 0, 1, 20, "
      "22, 3, 4);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (900, 910, 5, 21);"
      "INSERT INTO NVTX_EVENTS VALUES (800, 2000, 59, 'iteration 7', NULL), (850, 1200, 59, NULL, 5), "
      "(860, NULL, 34, 'mark', NULL);";

/// A folder with two ranks, and where indices of them are kept.
class OpenTrace : public testing::Test
{
protected:
    void SetUp() override
    {
        std::filesystem::create_directory(m_folder.at("run"));
        write(path(0), smallKineto(0));
        write(path(1), smallKineto(1));
        m_options.cache = m_folder.at("cache");
    }
    std::string path(int rank) const { return m_folder.at("run/worker" + std::to_string(rank) + ".json"); }
    Result<Trace> open() const
    {
        TRY(const TraceFiles files, traceFilesOf({m_folder.at("run")}));
        return openTrace(files, m_options);
    }
    std::vector<std::filesystem::path> indices() const { return filesIn(m_options.cache, ".index"); }

    TemporaryFolder m_folder;
    TraceOptions m_options;
};

TEST_F(OpenTrace, ReadsAFolderAndTheSameAgainFromWhatWasKept)
{
    const auto first = open();
    ASSERT_TRUE(first) << describe(first.error());
    ASSERT_EQ(first->ranks.size(), 2U);
    EXPECT_EQ(first->ranks[1].rank, 1);
    EXPECT_EQ(indices().size(), 2U);
    // What the index says is what is read: the file's text is not looked at while size and time are the same.
    const auto time = std::filesystem::last_write_time(path(0));
    std::string other = smallKineto(0);
    other.replace(other.find("gemm"), 4, "GEMM");
    write(path(0), other);
    std::filesystem::last_write_time(path(0), time);
    const auto second = open();
    ASSERT_TRUE(second);
    EXPECT_EQ(second->ranks, first->ranks);
    std::filesystem::last_write_time(path(0), time + std::chrono::seconds(1));
    const auto third = open();
    ASSERT_TRUE(third);
    EXPECT_NE(third->ranks[0], first->ranks[0]) << "it has changed, and is read anew";
    const auto analysis = analyseTrace(*third);
    ASSERT_EQ(analysis->collectives.size(), 1U) << "joined over both ranks";
}

TEST_F(OpenTrace, AnIndexThatWasWrittenOverIsReadAnew)
{
    const auto first = open();
    ASSERT_TRUE(first);
    std::mt19937 random(7);
    for (int i = 0; i < 60; ++i) {
        for (const auto &index : indices()) {
            std::string bytes = *readFile(index);
            switch (i % 3) {
            case 0:
                bytes[random() % bytes.size()] ^= static_cast<char>(1U << (random() % 8));
                break;
            case 1:
                bytes.resize(random() % bytes.size());
                break;
            default:
                bytes.insert(random() % bytes.size(), std::string(1 + random() % 9, '\xff'));
            }
            write(index.string(), bytes);
        }
        const auto again = open();
        ASSERT_TRUE(again) << describe(again.error());
        ASSERT_EQ(again->ranks, first->ranks);
    }
}

TEST_F(OpenTrace, WhatIsNoTraceIsRemarkedInAFolderAndRefusedByName)
{
    write(m_folder.at("run/plan.json"), R"({"version": 7, "devices": []})");
    const auto trace = open();
    ASSERT_TRUE(trace) << describe(trace.error());
    EXPECT_EQ(trace->ranks.size(), 2U);
    ASSERT_EQ(trace->remarks.size(), 1U);
    EXPECT_NE(trace->remarks[0].where.find("plan.json"), std::string::npos);
    const auto files = traceFilesOf({m_folder.at("run/plan.json")});
    ASSERT_TRUE(files);
    const auto named = openTrace(*files, m_options);
    ASSERT_FALSE(named);
    EXPECT_NE(named.error().where.find("plan.json"), std::string::npos);
    EXPECT_FALSE(isTraceFile(m_folder.at("run/plan.json")));
    EXPECT_TRUE(isTraceFile(path(0)));
    EXPECT_EQ(traceFilesOf({m_folder.at("none")}).error().code, ErrorCode::NotFound);
    EXPECT_EQ(traceFilesOf({m_folder.path() / "cache"}).error().code, ErrorCode::InvalidInput)
        << "has no traces";
}

TEST_F(OpenTrace, RanksWithoutANumberGetThatOfTheirFile)
{
    std::string text = smallKineto();
    text.replace(text.find("distributedInfo"), 15, "anotherMember__");
    for (const char *name : {"run/worker0.json", "run/worker1.json"})
        std::filesystem::remove(m_folder.at(name));
    write(m_folder.at("run/trace_rank12.step_3.json"), text);
    write(m_folder.at("run/trace_rank4.step_3.json"), text);
    const auto trace = open();
    ASSERT_TRUE(trace);
    ASSERT_EQ(trace->ranks.size(), 2U);
    EXPECT_EQ(trace->ranks[0].rank, 4);
    EXPECT_EQ(trace->ranks[1].rank, 12);
    write(m_folder.at("run/other.json"), text);
    const auto unnamed = open();
    EXPECT_EQ(unnamed->ranks[2].rank, 2) << "numbers in names count only where all have one";
}

TEST_F(OpenTrace, TwoFilesOfOneRankAreNotBothRead)
{
    write(m_folder.at("run/zz.json"), smallKineto(1));
    const auto trace = open();
    ASSERT_TRUE(trace);
    EXPECT_EQ(trace->ranks.size(), 2U);
    ASSERT_EQ(trace->remarks.size(), 1U);
    EXPECT_NE(trace->remarks[0].text.find("rank 1"), std::string::npos);
}

TEST_F(OpenTrace, StopsWhereItIsAskedTo)
{
    std::stop_source stop;
    stop.request_stop();
    const auto files = traceFilesOf({m_folder.at("run")});
    EXPECT_EQ(openTrace(*files, m_options, stop.get_token()).error().code, ErrorCode::Cancelled);
    EXPECT_EQ(indices().size(), 0U);
}

TEST(TraceIndex, GivesBackWhatWasWritten)
{
    const auto rank = test::readText(smallKineto());
    ASSERT_TRUE(rank);
    const std::string bytes = printTraceIndex({*rank, *rank}, "key");
    const auto read = readTraceIndex(bytes, "key");
    ASSERT_TRUE(read) << describe(read.error());
    EXPECT_EQ(*read, (std::vector<RankTrace>{*rank, *rank}));
    EXPECT_EQ(readTraceIndex(bytes, "another key").error().code, ErrorCode::NotFound);
    RankTrace impossible = *rank;
    impossible.events[0].name = 77;
    EXPECT_NE(
        readTraceIndex(printTraceIndex({impossible}, "key"), "key").error().message.find("what no trace can"),
        std::string::npos)
        << "the checksum is right, and the name is not there";
}

TEST(ReadNsight, ReadsKernelsRangesAndLaunches)
{
    const TemporaryFolder folder;
    writeDatabase(folder.at("a.sqlite"), kSmallNsight);
    const auto rank = readNsight(folder.at("a.sqlite"));
    ASSERT_TRUE(rank) << describe(rank.error());
    EXPECT_TRUE(rank->remarks.empty());
    ASSERT_EQ(rank->events.size(), 4U);
    std::map<std::string, TraceEvent> events;
    for (const TraceEvent &event : rank->events)
        events[rank->nameOfEvent(event)] = event;
    EXPECT_EQ(events["void gemm<float>()"].start, 1000);
    EXPECT_EQ(events["void gemm<float>()"].duration, 500);
    EXPECT_EQ(events["void gemm<float>()"].launch, 900);
    EXPECT_EQ(events["ncclDevKernel_AllGather_RING_LL()"].kind, TraceKind::AllGather);
    EXPECT_EQ(events["iteration 7"].kind, TraceKind::Step);
    EXPECT_EQ(events["forward"].kind, TraceKind::Annotation);
}

/// A database that is refused, or read in part with a remark.
struct HostileDatabase {
    std::string name{};
    std::string statements{};
    std::string expected{};
    bool isRefused = true;
};

void PrintTo(const HostileDatabase &each, std::ostream *stream)
{
    *stream << each.name;
}

class HostileNsight : public testing::TestWithParam<HostileDatabase>
{
};

TEST_P(HostileNsight, IsRefusedOrReadInPart)
{
    const TemporaryFolder folder;
    writeDatabase(folder.at("a.sqlite"), GetParam().statements);
    const auto rank = readNsight(folder.at("a.sqlite"));
    if (GetParam().isRefused) {
        ASSERT_FALSE(rank);
        EXPECT_NE(rank.error().message.find(GetParam().expected), std::string::npos)
            << describe(rank.error());
        EXPECT_NE(rank.error().where.find("a.sqlite"), std::string::npos);
        return;
    }
    ASSERT_TRUE(rank) << describe(rank.error());
    ASSERT_FALSE(rank->remarks.empty());
    EXPECT_NE(rank->remarks[0].text.find(GetParam().expected), std::string::npos) << rank->remarks[0].text;
}
INSTANTIATE_TEST_SUITE_P(All, HostileNsight,
    testing::Values(HostileDatabase{"NoTables", "CREATE TABLE other (x);", "and there is none"},
        HostileDatabase{"AViewInPlaceOfATable",
            "CREATE TABLE t (start INTEGER, end INTEGER, streamId INTEGER); INSERT INTO t VALUES (1, 2, 3);"
            "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + "
            "1 FROM r) "
            "SELECT i AS start, i AS end, 7 AS streamId FROM r;",
            "and there is none"},
        HostileDatabase{"TypesThatLie",
            kKernelTable
                + "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ('soon', x'00ff', 0, 0, 7, 1, 1, 1);",
            "no row of CUPTI_ACTIVITY_KIND_KERNEL"},
        HostileDatabase{"TypesThatLieInSomeRows",
            kSmallNsight + "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1.5, 'x', 0, 0, 7, 1, 1, 1);",
            "is no whole number", false},
        HostileDatabase{"StreamsThatAreTexts",
            kSmallNsight + "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 0, 0, 'seven', 1, 1, 1);",
            "streamId is no whole number", false},
        HostileDatabase{"EndsBeforeItBegins",
            kSmallNsight + "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1900, 1000, 0, 0, 7, 1, 1, 1);",
            "the duration is negative", false},
        HostileDatabase{"TimesOutOfRange",
            kSmallNsight
                + "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (-9223372036854775808, 9223372036854775807, "
                  "0, 0, 7, 1, 1, 1);",
            "out of range", false},
        HostileDatabase{"MissingColumns",
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (a INTEGER); INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL "
            "VALUES (1);",
            "no row of CUPTI_ACTIVITY_KIND_KERNEL"},
        HostileDatabase{"AGeneratedColumnThatRunsForEver",
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, streamId INTEGER GENERATED "
            "ALWAYS AS "
            "(length(zeroblob(900000000))) VIRTUAL); INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2);",
            ""}),
    [](const auto &given) { return given.param.name; });

TEST(ReadNsight, NeverBreaksOnDamagedFiles)
{
    const TemporaryFolder folder;
    writeDatabase(folder.at("a.sqlite"), kSmallNsight);
    const std::string sound = *readFile(folder.at("a.sqlite"));
    std::mt19937 random(20261130);
    int read = 0;
    for (int i = 0; i < 600; ++i) {
        std::string bytes = sound;
        for (unsigned change = 0; change <= random() % 40; ++change)
            bytes[random() % bytes.size()] = static_cast<char>(random());
        if (i % 10 == 0)
            bytes.resize(random() % bytes.size());
        write(folder.at("b.sqlite"), bytes);
        const auto rank = readNsight(folder.at("b.sqlite"));
        if (!rank) {
            ASSERT_NE(rank.error().code, ErrorCode::Internal);
            continue;
        }
        ++read;
        for (const TraceEvent &event : rank->events)
            ASSERT_LT(event.name, rank->names.size());
    }
    EXPECT_GT(read, 40);
}

TEST(ReadRunLog, TakesTheLastStepWithSpansAndRemarksOtherLines)
{
    const std::string text =
        "{\"v\": 1, \"t\": \"hello\", \"devices\": 2}\n"
        "{\"v\": 1, \"t\": \"live\", \"device\": 0, \"step\": [0], \"segment\": [1], \"instruction\": [0], "
        "\"micro_batch\": [0], \"start\": [5], \"duration\": [6]}\n"
        "no event\n"
        "{\"v\": 1, \"t\": \"live\", \"device\": 1, \"step\": [3, 3], \"segment\": [1, 2], \"instruction\": "
        "[4, 5], \"micro_batch\": [0, 1], \"start\": [10, 20], \"duration\": [1, -2]}";
    ASSERT_TRUE(isRunLog(text.substr(0, 64)));
    TraceBytes bytes(sourceOf(text), "log.jsonl");
    const auto ranks = readRunLog(bytes, "log.jsonl");
    ASSERT_TRUE(ranks) << describe(ranks.error());
    ASSERT_EQ(ranks->size(), 1U);
    const RankTrace &rank = ranks->front();
    EXPECT_EQ(rank.rank, 1);
    ASSERT_EQ(rank.events.size(), 1U) << "one has a negative duration";
    EXPECT_EQ(rank.instructions[rank.events[0].link], (TraceInstruction{3, 1, 4, 0}));
    EXPECT_EQ(rank.remarks.size(), 2U);
    TraceBytes none(sourceOf("{\"v\": 1, \"t\": \"hello\"}\n"), "log.jsonl");
    EXPECT_NE(readRunLog(none, "log.jsonl").error().message.find("no spans"), std::string::npos);
}

} // namespace
} // namespace planloom
