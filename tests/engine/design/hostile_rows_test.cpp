// Rows as nobody should write them, of every kind: an answer, not a crash, that says what was found, where,
// and what comes nearest.

#include "engine/base/place.h"
#include "engine/design/make_plan.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace planloom {
namespace {

struct HostileRow {
    const char *text;
    const char *said; ///< A part of what is said of it.
};

constexpr HostileRow kHostile[] = {
    // words that are none, with the one that was meant
    {"plase all : devices 0", "did you mean 'place'?"},
    {"splitt all : batch by 2", "did you mean 'split'?"},
    {"zero4 all over dp", "did you mean 'zero"},
    {"schedule gpip", "did you mean 'gpipe'?"},
    {"schedule 1f2b", "did you mean '1f1b'?"},
    {"limit trafic 2GiB", "did you mean 'traffic'?"},
    {"degree tensr at most 2", "did you mean 'tensor'?"},
    {"parts all : batch at lest 2", "did you mean 'least'?"},
    {"split all : bach by 2", "did you mean 'batch'?"},
    {"overlap tensr", "did you mean 'tensor'?"},
    {"interleave forwrd 0 before backward 0", "did you mean 'forward'?"},
    // rows that name nothing
    {"split name:nothing : batch by 2", "no operator is called 'nothing'"},
    {"split kind:Liner : batch by 2", "no operator kind 'Liner'"},
    {"split layer:99 : batch by 2", "has 2 layers"},
    {"split all : batch over dq", "no mesh with an axis 'dq'"},
    {"place all : devices 99", "no device 99"},
    {"place all : pp=0", "no mesh to place on"},
    {"alike layer:0 as name:nothing", "no operator is called 'nothing'"},
    {"alike layer:0 as layer:7", "has 2 layers"},
    {"follow name:nothing", "no operator is called 'nothing'"},
    {"spread layer:0 : over pq", "no mesh with an axis 'pq'"},
    {"together layer:0 with layer:9", "has 2 layers"},
    {"recompute name:x per layer", "no operator is called 'x'"},
    {"unroll nothing", "no recurrence"},
    // rows that contradict the model, or themselves
    {"split all : batch by 3", "cannot cut"},
    {"parts all : batch one of 3 5 7", "cannot be cut into equal parts"},
    {"micro-batches 3", "do not divide"},
    {"apart layer:0 from layer:0", "apart from itself"},
    {"order layer:0 before layer:0", "before itself"},
    {"order layer:1 before layer:0", "the data flow runs the other way"},
    {"mesh dp=2 dp=2", "two axes"},
    {"mesh dp=65536 tp=65536", "4294967296 devices"},
    {"stage layer:0 : 9 of 4", "above that of the stage"},
    {"schedule order \"0F0 0B0 / 1F0\"", "block 1F0"},
    // numbers out of range
    {"split all : batch by 99999999999999999999", "expected a number of parts"},
    {"split all : batch by 4294967298", "between 1 and 16777216"},
    {"split all : batch by -1", "between 1 and 16777216"},
    {"split all : batch by 0", "between 1 and 16777216"},
    {"mesh dp=0", "between 1 and 16777216"},
    {"mesh dp=99999999999", "between 1 and 16777216"},
    {"micro-batches 99999999999", "between 1 and 16777216"},
    {"in-flight 0", "between 1 and 16777216"},
    {"stage layer:0 : 1 of 99999999999", "between 2 and 16777216"},
    {"limit memory 99999999999999TiB", "at most 1024TiB"},
    {"limit memory -1GiB", "expected an amount of memory"},
    {"limit traffic 1", "expected an amount of traffic"},
    {"limit traffic 2GiB per node", "expected 'link'"},
    {"limit traffic 2GiB on", "expected a level of links"},
    {"limit memory 2GiB per link", "expected"},
    {"degree tensor at most 0", "between 1 and 16777216"},
    {"parts all : batch at most 99999999999", "between 1 and 16777216"},
    {"place all : devices 0-99999999999", "expected a device number"},
    // text that ends too early, or does not end
    {"follow", "expected a selector"},
    {"place all : devices", "expected a device number"},
    {"together layer:0 with", "expected a selector"},
    {"degree tensor one of", "expected a number of parts"},
    {"recompute layer:0 per", "expected selection, layer or operator"},
    {"communicate all", "expected sends, gathers or reductions"},
    {"split \"all : batch by 2", "expected"},
    {"\"unclosed", "expected a row"},
    {"@solver", "expected a row"},
    {"off", "expected a row"},
    {"off off mesh dp=2", "expected a row"},
};

class HostileRows : public testing::Test
{
protected:
    static void SetUpTestSuite()
    {
        const auto opened =
            openModel({"zoo:gpt?layers=2&hidden=64&heads=4&seq=16&vocab=128&batch=8", {}, {}});
        ASSERT_TRUE(opened);
        s_model = *opened;
    }
    static void TearDownTestSuite() { s_model.reset(); }

    static PlanAnswer answer(const std::string &rows, bool search = false, bool explains = false)
    {
        PlanRequest request;
        request.model = s_model;
        request.table = TableDocument(rows);
        request.target = {"dgx-h100", {}, 8};
        request.upTo = PlanGrade::Lowered;
        request.search = search;
        request.explains = explains;
        const auto answered = answerOf(request);
        EXPECT_TRUE(answered);
        return answered ? **answered : PlanAnswer{};
    }

    /// All that is said of rows: errors with their advice, warnings.
    static std::vector<Error> said(const PlanAnswer &answer)
    {
        std::vector<Error> all = answer.textErrors;
        if (answer.error)
            all.push_back(*answer.error);
        for (const RowLine &row : answer.rows) {
            if (row.report.error)
                all.push_back(*row.report.error);
            if (!row.report.warning.empty())
                all.push_back({ErrorCode::InvalidInput, row.report.warning, {}, {}});
        }
        return all;
    }

    static inline ModelSnapshot s_model{};
};

TEST_F(HostileRows, OfEveryKindSayWhatIsWrongAndWhatComesNearest)
{
    for (const HostileRow &row : kHostile) {
        SCOPED_TRACE(row.text);
        const auto errors = said(answer(std::string(row.text) + "\n"));
        ASSERT_FALSE(errors.empty());
        const std::string text = errors.front().message + " (" + errors.front().advice + ")";
        EXPECT_NE(text.find(row.said), std::string::npos) << text;
    }
}

TEST_F(HostileRows, DoNotHideOthersAndDoNotStopTheSearch)
{
    std::string all;
    for (const HostileRow &row : kHostile)
        all += std::string(row.text) + "\n";
    const auto errors = said(answer(all, true, true));
    EXPECT_GT(errors.size(), std::size(kHostile) / 2);
    for (const HostileRow &row : kHostile) {
        SCOPED_TRACE(row.text);
        (void)said(answer(std::string(row.text) + "\n", true));
    }
}

TEST_F(HostileRows, CirclesOfAlikeAndFollowEnd)
{
    for (const char *rows :
        {"alike layer:0 as layer:1\nalike layer:1 as layer:0\n", "alike layer:0 as layer:0\n", "follow all\n",
            "follow layer:0\nalike layer:0 as layer:1\nfollow layer:1\n",
            "together layer:0 with layer:1\ntogether layer:1 with layer:0\n",
            "alike layer:0 as layer:1\nfollow layer:1\nsplit layer:0 : batch by 2\n"}) {
        SCOPED_TRACE(rows);
        const PlanAnswer answered = answer(rows);
        EXPECT_TRUE(answered.execution || !said(answered).empty());
        (void)answer(rows, true);
    }
    // These contradict each other: both rows are named.
    const PlanAnswer torn =
        answer("together layer:0 with layer:1\napart layer:0 from layer:1\n", false, true);
    EXPECT_FALSE(torn.conflicts.empty());
}

TEST_F(HostileRows, AnyBytesAreAnswered)
{
    std::mt19937 random(1);
    const std::string letters = "splitaceby:over dp=0123456789,.*?![]{}|&@#\"\\'-+\t\r\x01\xff";
    for (int i = 0; i < 300; ++i) {
        std::string rows;
        if (i % 2 == 0) { // a row that was one, with letters changed
            rows = kHostile[random() % std::size(kHostile)].text;
            for (int changes = 0; changes < 3; ++changes)
                rows[random() % rows.size()] = letters[random() % letters.size()];
        } else {
            for (std::size_t length = random() % 200; length > 0; --length)
                rows += letters[random() % letters.size()];
        }
        SCOPED_TRACE(rows);
        const PlanAnswer answered = answer(rows + "\n");
        EXPECT_TRUE(answered.execution || !said(answered).empty());
    }
}

} // namespace
} // namespace planloom
