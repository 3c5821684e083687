#include "widgets/main/fuzzy_match.h"
#include "widgets/main/locator_search.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace planloom {
namespace {

ModelSnapshot model()
{
    static const ModelSnapshot kModel =
        *openModel({"zoo:gpt?layers=3&hidden=32&heads=2&seq=8&vocab=64&batch=4", {}, {}}, {});
    return kModel;
}

PlanUpdateSnapshot planOfRows(const std::string &rows)
{
    PlanRequest request;
    request.model = model();
    request.table = TableDocument(rows);
    request.target = {"dgx-a100", {}, 2};
    PlanUpdateSnapshot last;
    makeUpdates(request, {}, {}, [&last](PlanUpdateSnapshot update) { last = std::move(update); });
    return last;
}

LocatorSources sources()
{
    LocatorSources sources;
    sources.commands = {{"solve.now", "Solve Now", "Solve", "F5", true, -1},
        {"solve.stop", "Stop", "Solve", "Shift+F5", false, -1},
        {"view.dag", "DAG", "View", "Ctrl+1", true, 0}, {"plan.split", "Split…", "Plan", "T", true, -1}};
    sources.model = model();
    sources.plan = planOfRows("mesh dp=2\nsplit all : batch over dp\n");
    auto context = std::make_shared<GestureContext>();
    context->model = *model();
    context->document = TableDocument("# a note\nmesh dp=2\nsplit all : batch over dp\n");
    context->plan = sources.plan->plan;
    context->cluster = sources.plan->cluster;
    context->deviceCount = 2;
    context->mesh = {{"dp", 2}};
    sources.context = context;
    sources.deviceCount = 2;
    return sources;
}

std::vector<LocatorEntry> found(const QString &text, bool commandsOnly = false)
{
    LocatorSources all = sources();
    all.commandsOnly = commandsOnly;
    return searchLocator(all, text, {}).entries;
}

std::vector<QString> titles(const std::vector<LocatorEntry> &entries)
{
    std::vector<QString> titles;
    for (const LocatorEntry &entry : entries)
        titles.push_back(entry.title);
    return titles;
}

TEST(FuzzyMatch, PrefersWholeWordsAndBeginnings)
{
    EXPECT_EQ(fuzzyScore(u"xyz", u"solve now"), 0);
    EXPECT_GT(fuzzyScore(u"", u"anything"), 0);
    EXPECT_GT(fuzzyScore(u"solve", u"solve now"), fuzzyScore(u"solve", u"stop to resolve"));
    EXPECT_GT(fuzzyScore(u"sn", u"solve now"), 0);
    EXPECT_EQ(fuzzyScore(u"sn", u"axsxxxnx"), 0); // letters strewn anywhere
    EXPECT_GT(fuzzyScore(u"now solve", u"solve now"), 0); // words in any order
    EXPECT_EQ(fuzzyScore(u"solve later", u"solve now"), 0); // every word is needed
    EXPECT_GT(fuzzyScore(u"h.1", u"h.1.mlp"), fuzzyScore(u"h.1", u"h.11.attn.c_attn.long"));
}

TEST(LocatorSearch, CommandsByLettersAndTheLatestFirst)
{
    EXPECT_EQ(titles(found("", true)).front(), QStringLiteral("DAG")); // used last
    EXPECT_EQ(titles(found("solve", true)).front(), QStringLiteral("Solve Now"));
    const auto stop = found("> stop");
    ASSERT_FALSE(stop.empty());
    EXPECT_FALSE(stop.front().enabled);
    EXPECT_TRUE(stop.front().detail.contains("not possible now"));
    EXPECT_EQ(found("split", true).front().keys, QStringLiteral("T"));
    EXPECT_FALSE(found("qqqq", true).front().enabled); // says that there is none
}

TEST(LocatorSearch, OperatorsByName)
{
    const auto entries = found("@ h.1.mlp");
    ASSERT_FALSE(entries.empty());
    for (const LocatorEntry &entry : entries) {
        EXPECT_EQ(entry.kind, LocatorKind::Operator);
        EXPECT_EQ(entry.title.toStdString(), model()->graph->at(entry.op).name);
    }
    EXPECT_TRUE(entries.front().title.contains("h.1.mlp"));
    EXPECT_LE(entries.size(), kMostLocatorEntries);
    EXPECT_TRUE(found("@").empty()); // nothing asked for yet
}

TEST(LocatorSearch, RowsDevicesAndTimes)
{
    const auto rows = found("#");
    ASSERT_EQ(rows.size(), 2U);
    EXPECT_EQ(rows[0].title, QStringLiteral("mesh dp=2"));
    EXPECT_EQ(rows[0].line, 1); // the note before it is no row
    const auto second = found("# 2");
    ASSERT_FALSE(second.empty());
    EXPECT_EQ(second.front().line, 2);
    const auto device = found("d 1");
    ASSERT_EQ(device.size(), 1U);
    EXPECT_EQ(device.front().device, DeviceId{1});
    EXPECT_TRUE(device.front().detail.contains("peak"));
    const auto time = found(": 1us");
    ASSERT_EQ(time.size(), 1U);
    EXPECT_EQ(time.front().nanoseconds, 1000);
    EXPECT_TRUE(time.front().enabled);
    EXPECT_FALSE(found(": 1000 s").front().enabled); // behind the step's end
    EXPECT_TRUE(found(": soon").empty());
}

TEST(LocatorSearch, TimesHaveUnits)
{
    EXPECT_EQ(timeFromText("12.5 ms"), 12.5e6);
    EXPECT_EQ(timeFromText("3"), 3e6);
    EXPECT_EQ(timeFromText("800us"), 8e5);
    EXPECT_EQ(timeFromText("2 s"), 2e9);
    EXPECT_FALSE(timeFromText("ms"));
    EXPECT_FALSE(timeFromText("3 h"));
}

TEST(LocatorSearch, ARowTypedInFullIsOfferedToBeWritten)
{
    const auto entries = found("place layer:0 : devices 1", true);
    ASSERT_FALSE(entries.empty());
    ASSERT_EQ(entries.front().kind, LocatorKind::Write);
    EXPECT_TRUE(entries.front().enabled) << entries.front().detail.toStdString();
    EXPECT_TRUE(entries.front().proposal->accepted());
    EXPECT_TRUE(entries.front().title.contains("layer:0"));
    const auto refused = found("split bogus_name : batch by 2", true);
    ASSERT_FALSE(refused.empty());
    EXPECT_EQ(refused.front().kind, LocatorKind::Write);
    EXPECT_FALSE(refused.front().enabled);
    EXPECT_FALSE(refused.front().detail.isEmpty()); // says why
    // One word is a command yet.
    EXPECT_NE(found("split", true).front().kind, LocatorKind::Write);
}

TEST(LocatorSearch, RowsOfEveryKindAreOfferedToBeWritten)
{
    for (const char *row :
        {"mesh dp=2", "micro-batches 2", "split all : batch by 2", "replicate layer:0 : by 2",
            "coshard layer:0 : n by 2", "stage layer:1 : 0", "schedule sequential", "recompute layer:0",
            "zero1 all", "precision all : bf16", "attention layer:0 : plain", "overlap tensor", "in-flight 2",
            "limit memory 40GiB", "off split all : batch by 2", "prefer 2 split layer:0 : batch by 2"}) {
        const auto entries = found(row, true);
        ASSERT_FALSE(entries.empty()) << row;
        EXPECT_EQ(entries.front().kind, LocatorKind::Write) << row;
    }
}

TEST(LocatorSearch, ARowToBeWrittenSaysWhichRowItReplaces)
{
    const auto entries = found("mesh tp=2", true);
    ASSERT_FALSE(entries.empty());
    EXPECT_EQ(entries.front().detail, QStringLiteral("mesh tp=2 · replaces row 2"));
    EXPECT_EQ(found("degree data at most 2", true).front().detail, QStringLiteral("degree data at most 2"));
}

TEST(LocatorSearch, CommandsAreFoundByTheirMenus)
{
    LocatorSources all = sources();
    all.commandsOnly = true;
    all.commands.push_back({"file.exportPicture", "Picture…", "File", "", true, -1, "File Export"});
    EXPECT_EQ(titles(searchLocator(all, "export picture", {}).entries).front(), QStringLiteral("Picture…"));
}

TEST(LocatorSearch, SaysThatNothingIsCalledSo)
{
    const auto entries = found("frobnicate", true);
    ASSERT_EQ(entries.size(), 1U);
    EXPECT_FALSE(entries.front().enabled);
    EXPECT_EQ(entries.front().title, QStringLiteral("Nothing is called \"frobnicate\""));
}

TEST(LocatorSearch, SelectorsSelect)
{
    const auto entries = found("= layer:1");
    ASSERT_EQ(entries.size(), 1U);
    EXPECT_EQ(entries.front().kind, LocatorKind::Select);
    EXPECT_FALSE(entries.front().operators.empty());
    for (const OperatorId op : entries.front().operators)
        EXPECT_EQ(model()->index->layerOf(op), 1);
    EXPECT_FALSE(found("= layer:99").front().enabled);
    EXPECT_FALSE(found("= (").front().enabled);
}

TEST(LocatorSearch, StopsWhenAsked)
{
    std::stop_source stop;
    stop.request_stop();
    EXPECT_TRUE(searchLocator(sources(), "@ mlp", stop.get_token()).entries.empty());
}

} // namespace
} // namespace planloom
