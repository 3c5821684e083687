// Figures are what the engine's rooms say of the same plan when they are asked directly.

#include "engine/lesson/plan_figures.h"

#include "engine/lowering/order/in_flight.h"
#include "engine/naming/plan_name.h"
#include "engine/table/kinds/order/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace planloom {
namespace {

constexpr const char *kModel = "zoo:gpt?layers=4&hidden=64&heads=4&seq=32&vocab=64&batch=8";

PlanAnswerSnapshot verifiedPlan(
    const std::string &cluster, const std::string &gallery, const std::string &rows = {})
{
    PlanRequest request;
    const auto model = openModel({kModel, {}, {}}, {}, KeepContent::No);
    EXPECT_TRUE(model) << describe(model.error());
    if (!model)
        return nullptr;
    request.model = *model;
    request.gallery = gallery;
    request.table = TableDocument(rows);
    request.target = {cluster, {}, 4};
    const auto answer = answerOf(request);
    EXPECT_TRUE(answer) << describe(answer.error());
    return answer ? *answer : nullptr;
}

FigureValue figureOf(PlanFigures &figures, const std::string &text)
{
    const auto expression = expressionFromText(text);
    EXPECT_TRUE(expression) << text << ": " << describe(expression.error());
    const auto value =
        expression->valueOf([&figures](const FigureName &name) { return figures.valueOf(name); });
    EXPECT_TRUE(value) << text << ": " << describe(value.error());
    return value ? *value : FigureValue{.number = std::nan("")};
}

double numberOf(PlanFigures &figures, const std::string &text)
{
    return figureOf(figures, text).number;
}

std::string errorOf(PlanFigures &figures, const std::string &text)
{
    const auto expression = expressionFromText(text);
    EXPECT_TRUE(expression) << text;
    const auto value =
        expression->valueOf([&figures](const FigureName &name) { return figures.valueOf(name); });
    EXPECT_FALSE(value) << text;
    return value ? std::string() : value.error().message;
}

struct FiguresCase {
    const char *cluster;
    const char *gallery;
};

class FiguresOfPlans : public testing::TestWithParam<FiguresCase>
{
};

TEST_P(FiguresOfPlans, AreThoseOfTheEngine)
{
    const PlanAnswerSnapshot answer = verifiedPlan(GetParam().cluster, GetParam().gallery);
    ASSERT_TRUE(answer && answer->timeline) << describe(answer->firstError().value_or(Error{}));
    PlanFigures figures(answer);
    const Timeline &timeline = *answer->timeline;
    const TimelineSummary &summary = answer->summary;
    const auto step = static_cast<double>(timeline.step.count());
    EXPECT_EQ(numberOf(figures, "step"), step);
    EXPECT_EQ(numberOf(figures, "bubble"), bubbleRatio(timeline));
    const StepParts parts = partsOf(*answer->execution, timeline);
    for (std::size_t part = 0; part < kStepPartCount; ++part)
        EXPECT_EQ(numberOf(figures, nameOf(static_cast<StepPart>(part))),
            static_cast<double>(parts[static_cast<StepPart>(part)]));
    EXPECT_EQ(
        numberOf(figures, "compute + exposed communication + idle + recompute + optimizer + other"), step);

    const auto whole = statisticsOf(*answer->execution, timeline, wholeOf(timeline));
    const auto devices = static_cast<double>(timeline.busy.size());
    EXPECT_NEAR(
        numberOf(figures, "communication"), static_cast<double>(whole->total.communication) / devices, 1e-3);
    const double hidden = numberOf(figures, "hidden communication");
    EXPECT_GE(hidden, 0);
    EXPECT_GE(numberOf(figures, "communication") - hidden,
        static_cast<double>(whole->total.exposed) / devices - 1e-3)
        << "what two queues communicate at once counts for both";

    const auto ranks = memoryOfRanks(*answer->execution, timeline, answer->cluster);
    EXPECT_EQ(numberOf(figures, "peak"), static_cast<double>(summary.largestPeak.count));
    for (std::size_t d = 0; d < ranks.size(); ++d) {
        const std::string of = " of device " + std::to_string(d);
        EXPECT_EQ(numberOf(figures, "peak" + of), static_cast<double>(timeline.memory[d].peak.count));
        EXPECT_EQ(numberOf(figures, "busy" + of), static_cast<double>(timeline.busy[d].count()));
        EXPECT_EQ(numberOf(figures, "busy" + of + " + waits" + of), step);
        EXPECT_EQ(numberOf(figures, "parameters" + of),
            static_cast<double>(ranks[d].held[static_cast<std::size_t>(HeldAs::Parameters)]));
        EXPECT_EQ(numberOf(figures,
                      "parameters" + of + " + gradients" + of + " + states" + of + " + activations" + of
                          + " + workspace" + of + " + buffers" + of),
            static_cast<double>(ranks[d].peak));
    }
    EXPECT_EQ(numberOf(figures, "sent"), static_cast<double>(summary.sent.count));
    std::int64_t messages = 0;
    for (const KindTraffic &each : summary.kinds) {
        EXPECT_EQ(numberOf(figures, std::string("sent by ") + nameOf(each.kind)),
            static_cast<double>(each.bytes.count));
        messages += each.count;
    }
    EXPECT_EQ(numberOf(figures, "messages"), static_cast<double>(messages));
    EXPECT_EQ(numberOf(figures, "memory"), leastMemory(answer->cluster));
    EXPECT_NEAR(numberOf(figures, "tokens per second"), 8 * 32 / (step * 1e-9), 1e-3);

    const PlanShape shape = shapeOf(*answer->plan, *answer->model->index);
    EXPECT_EQ(numberOf(figures, "devices"), 4);
    EXPECT_EQ(numberOf(figures, "stages"), shape.stages);
    EXPECT_EQ(numberOf(figures, "data parallel"), shape.data);
    EXPECT_EQ(numberOf(figures, "tensor parallel"), shape.main.tensor);
    EXPECT_EQ(numberOf(figures, "context parallel"), shape.main.sequence);
    EXPECT_EQ(numberOf(figures, "micro-batches"), answer->plan->microBatches);
    EXPECT_EQ(numberOf(figures, "recomputed"), static_cast<double>(shape.recomputed.size()));
    EXPECT_EQ(numberOf(figures, "sequence parallel") != 0, shape.sequenceParallel);
    EXPECT_EQ(figureOf(figures, "schedule").word, nameOf(answer->plan->schedule));
    EXPECT_EQ(figureOf(figures, "name").word, planNameOf(*answer->plan, *answer->model).title);
    EXPECT_EQ(numberOf(figures, "weights"), static_cast<double>(answer->model->parameters));
    EXPECT_EQ(numberOf(figures, "verified"), 1);
    EXPECT_EQ(numberOf(figures, "planned"), 1);
    EXPECT_EQ(numberOf(figures, "fits"), 1);
    EXPECT_EQ(numberOf(figures, "conflicts"), 0);
    EXPECT_EQ(numberOf(figures, "rows"), static_cast<double>(answer->table.table().rows.size()));

    const auto largest = std::max_element(parts.nanoseconds.begin(), parts.nanoseconds.end());
    EXPECT_EQ(figureOf(figures, "largest part").word,
        nameOf(static_cast<StepPart>(largest - parts.nanoseconds.begin())));
    const auto inFlight = mostInFlight(*answer->execution);
    const auto steady = steadyStateOf(*answer->execution, timeline);
    for (const StagePhases &stage : steady ? steady->stages : std::vector<StagePhases>{}) {
        const std::string of = " of stage " + std::to_string(stage.stage.index);
        EXPECT_EQ(numberOf(figures, "warm-up" + of), stage.warmUp);
        EXPECT_EQ(numberOf(figures, "in flight" + of), inFlight[static_cast<std::size_t>(stage.stage.index)]);
        EXPECT_LE(numberOf(figures, "peak" + of), numberOf(figures, "peak"));
        EXPECT_GT(numberOf(figures, "peak" + of), 0);
    }
}

INSTANTIATE_TEST_SUITE_P(Lesson, FiguresOfPlans,
    testing::Values(FiguresCase{"dgx-a100", "gpipe"}, FiguresCase{"dgx-a100", "tensor-parallel:sequence=1"},
        FiguresCase{"dgx-a100", "zero3"}, FiguresCase{"dgx-h100", "1f1b:recompute=1"},
        FiguresCase{"dgx-h100", "3d:dp=2,tp=2,pp=1"}, FiguresCase{"dgx-h100", "data-parallel"}));

TEST(PlanFigures, KnowWhatSelectorsAndRowsMean)
{
    const PlanAnswerSnapshot answer = verifiedPlan(
        "dgx-a100", {}, "mesh tp=4\nsplit kind:Linear : out0.-1 by 4 over tp\noff schedule 1f1b\n");
    ASSERT_TRUE(answer && answer->plan) << describe(answer->firstError().value_or(Error{}));
    PlanFigures figures(answer);
    EXPECT_EQ(numberOf(figures, "parts of kind:Linear"), 4);
    EXPECT_EQ(numberOf(figures, "devices of kind:Linear & layer:0"), 4);
    EXPECT_EQ(numberOf(figures, "rows"), 2) << "those that are on";
    EXPECT_EQ(numberOf(figures, "rows with \"split\""), 1);
    EXPECT_EQ(errorOf(figures, "parts of name:nobody"), "no operator is name:nobody");
}

TEST(PlanFigures, SayWhatThereIsNot)
{
    PlanFigures figures(verifiedPlan("dgx-a100", "gpipe"));
    EXPECT_EQ(errorOf(figures, "peak of device 4"), "there is no device 4");
    EXPECT_EQ(errorOf(figures, "busy of device 9"), "there is no device 9");
    EXPECT_EQ(errorOf(figures, "peak of stage 4"), "there is no stage 4");
    EXPECT_EQ(errorOf(figures, "in flight of stage 7"), "there is no stage 7");
    EXPECT_EQ(errorOf(figures, "warm-up of stage 7"), "there is no stage 7 that runs both ways");
    EXPECT_EQ(errorOf(figures, "bound"), "nothing was searched: there is no bound");
    EXPECT_EQ(errorOf(figures, "measured"), "the plan has not run yet");
    PlanFigures run(verifiedPlan("dgx-a100", "gpipe"), LessonRun{0.25, true});
    EXPECT_EQ(numberOf(run, "measured"), 250e6);
    EXPECT_EQ(numberOf(run, "run"), 1);
}

TEST(PlanFigures, WithoutAPlanSayWhyThereIsNone)
{
    const PlanAnswerSnapshot answer =
        verifiedPlan("dgx-a100", {}, "mesh tp=4\nplace all : devices 0\nplace all : devices 1\n");
    ASSERT_TRUE(answer && !answer->plan);
    PlanFigures figures(answer);
    EXPECT_EQ(numberOf(figures, "planned"), 0);
    EXPECT_EQ(numberOf(figures, "verified"), 0);
    EXPECT_EQ(numberOf(figures, "rows"), 3);
    EXPECT_EQ(numberOf(figures, "conflicts"), static_cast<double>(answer->conflicts.size()));
    EXPECT_GT(answer->conflicts.size(), 0U);
    EXPECT_EQ(errorOf(figures, "step"), "there is no plan: " + answer->firstError()->message);
    EXPECT_EQ(errorOf(figures, "fits"), errorOf(figures, "stages"));
}

TEST(PlanFigures, CountALimitOfARowAsMemoryThatIsNotThere)
{
    PlanFigures figures(verifiedPlan("dgx-a100", "gpipe", "limit memory 1KiB\n"));
    EXPECT_EQ(numberOf(figures, "planned"), 1);
    EXPECT_EQ(numberOf(figures, "fits"), 0);
}

} // namespace
} // namespace planloom
