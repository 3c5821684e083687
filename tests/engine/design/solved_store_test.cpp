#include "engine/design/solved_store.h"

#include "engine/base/digest.h"
#include "engine/base/files.h"
#include "engine/design/live_solver.h"
#include "engine/design/make_plan.h"
#include "engine/table/table_text.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <random>

namespace planloom {
namespace {

namespace fs = std::filesystem;

constexpr const char *kSolvedModel = "zoo:gpt?layers=2&hidden=64&heads=4&seq=16&vocab=128&batch=8";

class Solved : public testing::Test
{
protected:
    void SetUp() override
    {
        auto opened = openModel({kSolvedModel, {}, {}});
        ASSERT_TRUE(opened) << describe(opened.error());
        m_model = *opened;
        m_folder = fs::path(testing::TempDir()) / ("solved-" + std::to_string(std::random_device{}()));
    }
    void TearDown() override { fs::remove_all(m_folder); }

    PlanRequest request(const std::string &rows, bool search) const
    {
        PlanRequest request;
        request.model = m_model;
        request.table = TableDocument(rows);
        request.target = {"dgx-h100", {}, 4};
        request.search = search;
        request.solved = m_store;
        request.upTo = PlanGrade::Timed;
        return request;
    }
    PlanAnswerSnapshot answer(const PlanRequest &request) const
    {
        auto answered = answerOf(request);
        EXPECT_TRUE(answered);
        return answered ? *answered : nullptr;
    }
    std::vector<fs::path> files() const
    {
        std::vector<fs::path> found;
        for (const auto &entry : fs::directory_iterator(m_folder))
            found.push_back(entry.path());
        return found;
    }
    /// As another program would come to the folder.
    void reopen() { m_store = std::make_shared<SolvedStore>(m_folder); }

    ModelSnapshot m_model{};
    fs::path m_folder{};
    std::shared_ptr<SolvedStore> m_store = std::make_shared<SolvedStore>();
};

TEST_F(Solved, KeepsTheGroupsOfUnequalStages)
{
    SearchResult found;
    found.configurations = 1;
    found.best.seconds = found.best.simulatedSeconds = found.bound = 1;
    found.best.configuration.ranks = 2;
    found.best.configuration.schedule = ScheduleKind::OneFOneB;
    found.best.configuration.groups = {{0, 2, 2}, {4, 1, 1}};
    found.seen = {found.best};
    const auto read = solvedOf(solvedText(found));
    ASSERT_TRUE(read) << describe(read.error());
    EXPECT_EQ(read->best.configuration, found.best.configuration);
}

TEST_F(Solved, AnotherProgramKnowsWhatWasSearched)
{
    reopen();
    const auto first = answer(request("micro-batches 2\n", true));
    ASSERT_TRUE(first->search);
    ASSERT_EQ(files().size(), 1u);
    reopen();
    int improved = 0;
    PlanRequest again = request("micro-batches 2\n", true);
    again.onBetter = [&](const SearchResult &) { ++improved; };
    const auto second = answer(again);
    ASSERT_TRUE(second->search);
    EXPECT_EQ(improved, 1);
    EXPECT_EQ(second->table.text(), first->table.text());
    EXPECT_EQ(second->search->bound, first->search->bound);
    EXPECT_EQ(second->search->searchSeconds, first->search->searchSeconds); // it was not searched
    EXPECT_EQ(second->search->course, first->search->course);
    EXPECT_EQ(second->summary.stepSeconds, first->summary.stepSeconds);
    // The order of rows, and those that are off, mean nothing; another row does.
    const auto keyOf = [&](const std::string &rows) {
        return m_store->keyOf(*m_model, first->cluster, 4, PrecisionPreset::Float32, *parseTable(rows));
    };
    EXPECT_EQ(
        keyOf("mesh dp=4\nmicro-batches 2\n"), keyOf("micro-batches 2\noff recompute all\nmesh dp=4\n"));
    EXPECT_NE(keyOf("mesh dp=4\n"), keyOf("mesh dp=2\n"));
}

TEST_F(Solved, ATableWithTheRowsOfASearchSaysHowGoodItIs)
{
    const auto searched = answer(request("", true));
    ASSERT_TRUE(searched->search);
    const auto opened = answer(request(searched->table.text(), false));
    ASSERT_TRUE(opened->search);
    EXPECT_EQ(opened->search->gap(), searched->search->gap());
    EXPECT_EQ(opened->searchedRow, -1);
    // With a row of a person's changed, or one of the search's gone, nothing is known.
    EXPECT_FALSE(answer(request("micro-batches 4\n" + searched->table.text(), false))->search);
    EXPECT_FALSE(answer(request("", false))->search);
}

TEST_F(Solved, WhatDoesNotComeOutAsRememberedIsSearchedAgain)
{
    reopen();
    const auto first = answer(request("", true));
    ASSERT_TRUE(first->search);
    // As if it had been found with other costs.
    SearchResult other = *first->search;
    other.best.simulatedSeconds *= 0.5;
    ASSERT_TRUE(writeFile(files().front(), solvedText(other)));
    reopen();
    const auto second = answer(request("", true));
    ASSERT_TRUE(second->search);
    EXPECT_EQ(second->summary.stepSeconds, first->summary.stepSeconds);
    EXPECT_EQ(second->search->best.simulatedSeconds, second->summary.stepSeconds);
    // Rows that bind to nothing here, and rows that contradict the person's.
    for (const char *rows :
        {"split name:nowhere : batch by 2 @solver\nmesh dp=3 @solver\n", "micro-batches 3 @solver\n"}) {
        other = *first->search;
        auto table = parseTable(rows);
        ASSERT_TRUE(table) << describe(table.error());
        other.rows = *table;
        ASSERT_TRUE(writeFile(files().front(), solvedText(other)));
        reopen();
        const auto third = answer(request("", true));
        ASSERT_TRUE(third->search);
        EXPECT_EQ(third->errorCount(), 0u);
        EXPECT_EQ(third->summary.stepSeconds, first->summary.stepSeconds);
    }
}

TEST_F(Solved, DamagedFilesAreTakenAwayAndNothingElse)
{
    reopen();
    const auto first = answer(request("", true));
    ASSERT_TRUE(first->search);
    const fs::path file = files().front();
    const std::string key = file.stem().string();
    const std::string whole = *readFile(file);
    ASSERT_TRUE(solvedOf(whole));
    const auto signedText = [](const std::string &body) {
        return "planloom-solved-2 " + sha256(body) + "\n" + body;
    };
    const std::string body = whole.substr(whole.find('\n') + 1);
    const auto with = [&](const std::string &from, const std::string &to) {
        std::string changed = body;
        const std::size_t at = changed.find(from);
        EXPECT_NE(at, std::string::npos) << from;
        return signedText(changed.replace(at, from.size(), to));
    };
    std::vector<std::string> damaged{"", "\n", "planloom-solved-2\n{}", whole.substr(0, whole.size() / 2),
        whole + "x", signedText(""), signedText("[]"), signedText("{}"), signedText(R"({"best":1})"),
        signedText(std::string(100'000, '[')), with("\"bound\":", "\"bound\":-"),
        with("\"bound\":", "\"bound\":1e300,\"old\":"), with("\"bound\":", "\"bound\":\"1\",\"old\":"),
        with("\"replicas\":", "\"replicas\":1e18,\"old\":"), with("\"schedule\":\"", "\"schedule\":\"no "),
        with("\"recompute\":\"", "\"recompute\":\"no "), with("\"course\":", "\"course\":[[1,2]],\"old\":"),
        with("\"course\":", "\"course\":[[1,null,2]],\"old\":"), with("\"rows\":\"", "\"rows\":\"nonsense "),
        with("\"seen\":", "\"seen\":[7],\"old\":")};
    std::mt19937 random(7);
    for (int i = 0; i < 200; ++i) { // and any byte
        std::string changed = whole;
        changed[random() % changed.size()] ^= static_cast<char>(1 + random() % 255);
        damaged.push_back(std::move(changed));
    }
    for (const std::string &text : damaged) {
        SCOPED_TRACE(text.substr(0, 200));
        EXPECT_FALSE(solvedOf(text));
        ASSERT_TRUE(writeFile(file, text));
        reopen();
        EXPECT_FALSE(m_store->find(key));
        EXPECT_FALSE(fs::exists(file));
    }
    // A folder that cannot be written keeps nothing and breaks nothing.
    m_store = std::make_shared<SolvedStore>(fs::path("/proc/no-such-place"));
    EXPECT_TRUE(answer(request("", true))->search);
    EXPECT_TRUE(answer(request("", true))->search);
}

TEST_F(Solved, TheBetterOfTwoIsKept)
{
    const auto first = answer(request("", true));
    ASSERT_TRUE(first->search);
    reopen();
    SearchResult worse = *first->search;
    worse.best.simulatedSeconds *= 2;
    m_store->remember("one", *first->search);
    m_store->remember("one", worse);
    EXPECT_EQ(m_store->find("one")->best.simulatedSeconds, first->search->best.simulatedSeconds);
    m_store->forget("one");
    m_store->remember("one", worse);
    m_store->remember("one", *first->search);
    reopen();
    EXPECT_EQ(m_store->find("one")->best.simulatedSeconds, first->search->best.simulatedSeconds);
}

/// Hears what a solver says.
struct Hearing {
    std::mutex mutex{};
    std::condition_variable changed{};
    std::vector<LiveGrade> grades{};
    std::shared_ptr<const PlanAnswer> last{};

    LiveSolver::Report report()
    {
        return [this](const LiveReport &news) {
            const std::lock_guard lock(mutex);
            grades.push_back(news.grade);
            if (news.answer)
                last = std::make_shared<const PlanAnswer>(*news.answer);
            changed.notify_all();
        };
    }
    template<typename Holds> void wait(Holds holds)
    {
        std::unique_lock lock(mutex);
        changed.wait(lock, holds);
    }
    bool has(LiveGrade grade) const { return std::find(grades.begin(), grades.end(), grade) != grades.end(); }
};

TEST_F(Solved, ASearchThatIsSettledKeepsTheBestSoFarAndIsNotRemembered)
{
    reopen();
    Hearing hearing;
    LiveSolver solver;
    const auto hear = hearing.report();
    // It is told that it is enough as soon as it has a plan, on its own thread: before it goes on.
    solver.solve(request("", true), [&](const LiveReport &news) {
        if (news.grade == LiveGrade::Better)
            solver.settle();
        hear(news);
    });
    hearing.wait([&] { return hearing.has(LiveGrade::Final); });
    ASSERT_TRUE(hearing.last->search);
    EXPECT_TRUE(hearing.last->isTimed());
    EXPECT_EQ(hearing.last->errorCount(), 0u);
    EXPECT_FALSE(fs::exists(m_folder));
    // Before it has one there is none: the rows stay as they are, and are planned.
    Hearing second;
    const auto hearSecond = second.report();
    solver.solve(request("# mine\n", true), [&](const LiveReport &news) {
        if (news.grade == LiveGrade::Checked)
            solver.settle();
        hearSecond(news);
    });
    second.wait([&] { return second.has(LiveGrade::Final); });
    EXPECT_FALSE(second.last->search);
    ASSERT_TRUE(second.last->searchProblem);
    EXPECT_EQ(second.last->searchProblem->code, ErrorCode::Cancelled);
    EXPECT_EQ(second.last->table.text(), "# mine\n");
    EXPECT_TRUE(second.last->isTimed());
}

} // namespace
} // namespace planloom
