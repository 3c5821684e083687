#include "widgets/design/engine_job.h"

#include <gtest/gtest.h>

#include <fstream>

namespace planloom {
namespace {

constexpr const char *kSmall = "zoo:mlp?layers=2&hidden=32&batch=8";

ModelSnapshot smallModel()
{
    auto model = openModel({kSmall, {}, {}}, {});
    EXPECT_TRUE(model) << model.error().message;
    return *model;
}

std::vector<PlanUpdateSnapshot> plan(const PlanRequest &request, std::stop_token stop = {})
{
    std::vector<PlanUpdateSnapshot> updates;
    makePlan(request, stop, [&](PlanUpdateSnapshot update) { updates.push_back(std::move(update)); });
    return updates;
}

PlanRequest requestFor(std::string text, std::string gallery = {})
{
    PlanRequest request;
    request.revision = 7;
    request.model = smallModel();
    request.tableText = std::move(text);
    request.gallery = std::move(gallery);
    request.cluster = "dgx-a100";
    request.deviceCount = 2;
    return request;
}

TEST(OpenModel, MakesATrainingStepOfAZooModel)
{
    const ModelSnapshot model = smallModel();
    EXPECT_EQ(model->name, "mlp");
    EXPECT_TRUE(model->graph->loss.valid());
    EXPECT_GT(static_cast<std::int64_t>(model->graph->operators.size()), model->forwardOperators);
    EXPECT_TRUE(model->remark.empty());
    // 784 x 32 + 32 and 32 x 10 + 10.
    EXPECT_EQ(model->parameters, 784 * 32 + 32 + 32 * 10 + 10);
}

TEST(OpenModel, SaysWhatIsWrongWithAFile)
{
    const auto missing = openModel({"/no/such/model.onnx", {}, {}}, {});
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, ErrorCode::NotFound);
    EXPECT_FALSE(openModel({"zoo:nonsense", {}, {}}, {}));
    const auto rubbish = openModel({"rubbish.onnx", std::string(200, '\xff'), {}}, {});
    ASSERT_FALSE(rubbish);
    EXPECT_EQ(rubbish.error().code, ErrorCode::InvalidInput);
    EXPECT_FALSE(openModel({"a.onnx", "x", {{"dim.batch", "many"}}}, {}));
}

TEST(MakePlan, ComesInGradesAndEndsVerified)
{
    const auto updates = plan(requestFor("mesh dp=2\nsplit all : batch over dp\n"));
    ASSERT_EQ(updates.size(), 5u);
    for (std::size_t i = 0; i < updates.size(); ++i) {
        EXPECT_EQ(updates[i]->revision, 7u);
        EXPECT_EQ(updates[i]->scene != nullptr, updates[i]->grade >= PlanGrade::Simulated);
        if (updates[i]->isTimed()) { // figures come first and stay as they are
            EXPECT_EQ(updates[i]->summary, updates.back()->summary);
        }
        EXPECT_EQ(updates[i]->grade, static_cast<PlanGrade>(i));
        EXPECT_EQ(updates[i]->final, i + 1 == updates.size());
        EXPECT_FALSE(updates[i]->error) << describe(*updates[i]->error);
    }
    const PlanUpdate &last = *updates.back();
    ASSERT_TRUE(last.verdict);
    EXPECT_TRUE(last.verdict->ok()) << last.verdict->failure->reason;
    EXPECT_GT(last.summary.stepSeconds, 0);
    EXPECT_EQ(last.summary, summaryOf(*last.scene->timeline));
    EXPECT_EQ(last.scene->lanes.size(), 2u);
    // The times of operators add up to the busy time of kernels.
    std::int64_t sum = 0;
    for (const std::int64_t time : last.operatorNanoseconds)
        sum += time;
    std::int64_t busy = 0;
    for (const Nanoseconds time : last.scene->timeline->busy)
        busy += time.count();
    EXPECT_GT(sum, 0);
    EXPECT_LE(sum, busy);
}

TEST(MakePlan, GivesTheRowsOfAGalleryPlan)
{
    const auto updates = plan(requestFor("nonsense", "data-parallel"));
    ASSERT_FALSE(updates.empty());
    EXPECT_NE(updates.back()->tableText.find("batch over dp"), std::string::npos);
    EXPECT_EQ(updates.back()->grade, PlanGrade::Verified);
}

TEST(MakePlan, ReportsLinesAndRowsInErrorAndMakesNoPlan)
{
    const auto updates = plan(requestFor("# note\nmesh dp=2\n\nsplit all batch\nsplit all : batch over nowhere\n"));
    ASSERT_EQ(updates.size(), 1u);
    const PlanUpdate &update = *updates.front();
    EXPECT_TRUE(update.final);
    EXPECT_EQ(update.errorCount(), 2u);
    EXPECT_EQ(update.plan, nullptr);
    ASSERT_EQ(update.textErrors.size(), 1u);
    EXPECT_EQ(textPlaceOf(update.textErrors[0])->line, 4);
    ASSERT_EQ(update.rows.size(), 2u);
    EXPECT_EQ(update.rows[0].line, 1);
    EXPECT_EQ(update.rows[1].line, 4);
    EXPECT_TRUE(update.rows[1].report.error);
}

TEST(MakePlan, SaysWhyThereIsNone)
{
    PlanRequest request = requestFor("");
    request.cluster = "no-such-cluster";
    const auto updates = plan(request);
    ASSERT_EQ(updates.size(), 1u);
    ASSERT_TRUE(updates[0]->error);
    EXPECT_EQ(updates[0]->error->code, ErrorCode::NotFound);
    EXPECT_TRUE(updates[0]->final);
    const auto gallery = plan(requestFor("", "3d:dp=3,tp=1,pp=1"));
    ASSERT_EQ(gallery.size(), 1u);
    EXPECT_TRUE(gallery[0]->error);
}

TEST(MakePlan, StaysSilentOnceStopped)
{
    std::stop_source stop;
    stop.request_stop();
    EXPECT_TRUE(plan(requestFor("mesh dp=2\n"), stop.get_token()).empty());
}

TEST(LinesOfRows, SkipsNotesEmptyLinesAndErrors)
{
    const std::string text = "# a\n\n  mesh dp=2  # b\nwrong\n\t# c\nschedule 1f1b";
    Error error;
    error.where = "line:4:1";
    EXPECT_EQ(linesOfRows(text, {error}), (std::vector<std::int32_t>{2, 5}));
    EXPECT_TRUE(linesOfRows("", {}).empty());
}

TEST(TextPlaceOf, ReadsLineAndColumn)
{
    Error error;
    error.where = "line:12:7";
    EXPECT_EQ(textPlaceOf(error)->line, 12);
    EXPECT_EQ(textPlaceOf(error)->column, 7);
    error.where = "row:3/rule";
    EXPECT_FALSE(textPlaceOf(error));
}

} // namespace
} // namespace planloom
