// Every template of pipeline schedules: proven, run on CPU devices, and compared with the model on one
// device.

#include "engine/gallery/gallery.h"
#include "engine/lowering/lower.h"
#include "engine/runtime/training/check.h"
#include "engine/schedule/schedule.h"
#include "engine/verify/verify.h"

#include "tests/engine/runtime/like_the_model.h"

#include <gtest/gtest.h>

#include <cctype>
#include <ostream>
#include <string>
#include <tuple>

namespace planloom {
namespace {

constexpr std::int32_t kFourStages = 4; ///< One layer each.

struct ModelOfFour {
    const char *name;
    const char *spec;
    const char *rows = ""; ///< Whatever the schedule.
};

std::ostream &operator<<(std::ostream &out, const ModelOfFour &model)
{
    return out << model.name;
}

constexpr ModelOfFour kModelsOfFour[] = {{"gpt", "zoo:gpt?layers=4&hidden=16&heads=4&seq=8&batch=8&vocab=24"},
    {"t5", "zoo:t5?layers=2&hidden=16&heads=4&src=8&tgt=4&batch=8&vocab=24",
        "place name:decoder.embed_tokens : devices 0\n"}, // of stage 0: it would follow its reader
    {"evoformer",
        "zoo:evoformer?layers=4&msa=8&pair=8&single=6&seqs=3&residues=4&heads=2&pair_heads=2&head_width=4&"
        "batch=8"}};

/// Rows that put the stages where a template wants them.
std::string rowsOfTemplate(ScheduleKind kind, std::int32_t microBatches)
{
    std::vector<std::string> places;
    switch (kind) {
    case ScheduleKind::Interleaved:
    case ScheduleKind::BreadthFirst:
    case ScheduleKind::Recycling:
        places = {"0", "1", "0", "1"};
        break;
    case ScheduleKind::Hanayo:
    case ScheduleKind::ZeroBubbleV:
    case ScheduleKind::VHalf:
    case ScheduleKind::VMin:
    case ScheduleKind::DualPipeV:
        places = {"0", "1", "1", "0"};
        break;
    case ScheduleKind::OneFOneBPlus:
        places = {"0,1,2", "0", "1", "2"};
        break;
    case ScheduleKind::Sequential:
        places = {"0", "0", "0", "0"};
        break;
    default:
        places = {"0", "1", "2", "3"};
    }
    std::string rows = "micro-batches " + std::to_string(microBatches) + "\nschedule " + nameOf(kind) + "\n";
    for (std::int32_t s = 0; s < kFourStages; ++s) {
        const std::string layer = "layer:" + std::to_string(s) + " : ";
        rows += "stage " + layer + std::to_string(s) + "\nplace " + layer + "devices "
            + places[static_cast<std::size_t>(s)] + "\n";
    }
    return rows;
}

class TemplatesRun : public testing::TestWithParam<std::tuple<ModelOfFour, ScheduleKind>>
{
};

TEST_P(TemplatesRun, LikeTheModelOnOneDevice)
{
    const auto &[model, kind] = GetParam();
    const GraphSnapshot graph = trainingStep(model.spec);
    if (kind == ScheduleKind::Chimera || kind == ScheduleKind::DualPipe) {
        auto table = galleryTable("bidirectional:micro-batches=4", graph, kFourStages);
        ASSERT_TRUE(table) << describe(table.error());
        for (Row &row : table->rows)
            if (auto *rule = std::get_if<ScheduleRule>(&row.rule))
                rule->kind = kind;
        const auto completion = completePlan(graph, kFourStages, *table);
        ASSERT_TRUE(completion && !firstError(*completion));
        const auto plan = lower(completion->plan, *clusterNamed("cpu:4"));
        ASSERT_TRUE(plan) << describe(plan.error());
        expectLikeTheModel(graph, *plan);
        return;
    }
    const auto plan = loweredRows(graph, (model.rows + rowsOfTemplate(kind, 4)).c_str(), kFourStages);
    ASSERT_TRUE(plan) << describe(plan.error());
    expectLikeTheModel(graph, *plan);
}

INSTANTIATE_TEST_SUITE_P(All, TemplatesRun,
    testing::Combine(testing::ValuesIn(kModelsOfFour), testing::ValuesIn(kAllSchedules)),
    [](const auto &info) {
        std::string name = std::string(std::get<0>(info.param).name) + "_" + nameOf(std::get<1>(info.param));
        for (char &letter : name)
            letter = std::isalnum(static_cast<unsigned char>(letter)) != 0 ? letter : '_';
        return name;
    });

/// A listed schedule runs as the template that it was listed from, and one that cannot run says where it
/// stops.
TEST(ListedSchedule, RunsLikeTheModelOrSaysWhereItStops)
{
    const GraphSnapshot graph = trainingStep(kModelsOfFour[0].spec);
    const std::string places =
        "micro-batches 2\nstage layer:1 : 1\nstage layer:2 : 1\nstage layer:3 : 1\n"
        "place layer:0 : devices 0\nplace layer:1 : devices 1\nplace layer:2 : devices 1\n"
        "place layer:3 : devices 1\n";
    for (const char *order : {"0F0 0F1 0B0 0B1 / 1F0 1B0 1F1 1B1", "0F1 0F0 0B1 0B0 / 1F1 1F0 1B1 1B0",
             "0F0 0F1 0I0 0W0 0I1 0W1 / 1F0 1I0 1F1 1W0 1I1 1W1", "1F0 1F1"}) {
        SCOPED_TRACE(order);
        const auto plan = loweredRows(graph, (places + "schedule order \"" + order + "\"").c_str(), 2);
        ASSERT_TRUE(plan) << describe(plan.error());
        expectLikeTheModel(graph, *plan);
    }
    const auto messageOf = [&](const char *order) {
        const auto plan = loweredRows(graph, (places + "schedule order \"" + order + "\"").c_str(), 2);
        return plan ? std::string{} : plan.error().message;
    };
    EXPECT_EQ(messageOf("0B0 0F0 / 1F0 1B0"),
        "the listed schedule stops: its ranks wait for one another before 0B0, 1F0");
    EXPECT_EQ(messageOf("0F0 0F7"), "the listed schedule has block 0F7, which the plan has not");
    EXPECT_EQ(messageOf("0F0 0F0"), "the listed schedule has block 0F0 twice");
    EXPECT_EQ(messageOf("0F0 5B0"), "the listed schedule has block 5B0, which the plan has not");
}

} // namespace
} // namespace planloom
