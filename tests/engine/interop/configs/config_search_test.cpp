#include "engine/design/fullness.h"
#include "engine/interop/configs/config_request.h"
#include "engine/interop/configs/config_search.h"
#include "engine/interop/configs/write_config.h"
#include "engine/table/table_text.h"
#include "tests/dice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace planloom {
namespace {

const char *const kSearchedModel =
    "zoo:llama?layers=8&hidden=512&heads=8&kv_heads=8&ffn=1024&seq=256&batch=32&vocab=4096";

PlanRequest requestOf(std::int32_t devices, const std::string &rows = {})
{
    static const auto model = openModel({kSearchedModel, {}, {}}, {}, KeepContent::No);
    EXPECT_TRUE(model) << describe(model.error());
    PlanRequest request;
    request.model = *model;
    request.table = TableDocument(rows);
    request.target = {"dgx-h100:" + std::to_string(devices), {}, devices};
    return request;
}

const ConfigFormat &formatOf(const char *name)
{
    const auto format = searchedFormatNamed(name);
    EXPECT_TRUE(format);
    return **format;
}

TEST(ConfigSearch, WhatIsFoundIsSaidWhole)
{
    const PlanRequest request = requestOf(4);
    for (const std::string &name : searchedFormatNames()) {
        SCOPED_TRACE(name);
        const ConfigFormat &format = formatOf(name.c_str());
        const auto found = searchConfigs(format, request, {.mostPlanned = 30});
        ASSERT_TRUE(found) << describe(found.error());
        EXPECT_GT(found->planned, 3);
        EXPECT_GT(found->best.stepSeconds, 0);
        EXPECT_TRUE(found->best.fits());
        for (const Row &row : found->best.request.table.table().rows)
            EXPECT_NE(row.origin, RowOrigin::Text) << print(row); // the next search may replace it
        const auto written = writeConfig(format, found->best.request);
        ASSERT_TRUE(written) << describe(written.error());
        EXPECT_TRUE(written->isWhole) << written->text << found->best.request.table.text();
        PlanRequest timed = found->best.request;
        timed.upTo = PlanGrade::Timed;
        const auto answer = planOf(timed);
        ASSERT_TRUE(answer);
        EXPECT_EQ((*answer)->summary.stepSeconds, found->best.stepSeconds);
        EXPECT_EQ(fullnessOf(**answer), found->best.fullness);
    }
}

/// Plans that Megatron-LM says, drawn at random: the search's is as fast.
TEST(ConfigSearch, NoDrawnPlanIsFaster)
{
    const PlanRequest request = requestOf(8);
    const ConfigFormat &format = formatOf("megatron");
    const auto found = searchConfigs(format, request);
    ASSERT_TRUE(found) << describe(found.error());
    Dice dice(11);
    const auto pick = [&dice](std::initializer_list<std::int64_t> values) {
        return *(values.begin() + dice.below(static_cast<std::int32_t>(values.size())));
    };
    std::int32_t drawn = 0;
    for (int i = 0; i < 150; ++i) {
        const std::int64_t tp = pick({1, 1, 2, 4});
        const std::int64_t pp = pick({1, 1, 2, 4});
        const std::int64_t cp = pick({1, 1, 1, 2});
        if (8 % (tp * pp * cp) != 0)
            continue;
        const std::int64_t dp = 8 / (tp * pp * cp);
        FrameworkConfig config = found->best.config;
        for (const char *field : {"layout", "schedule", "recompute", "recompute_modules", "micro_batch"})
            config.remove(field);
        const std::int64_t micro = pick({1, 2, 4, 8});
        for (const auto &[field, value] : {std::pair("tensor_parallel", tp),
                 std::pair("pipeline_parallel", pp), std::pair("context_parallel", cp),
                 std::pair("data_parallel", dp), std::pair("virtual_pipeline", pp > 1 ? pick({1, 2}) : 1),
                 std::pair("zero", dp > 1 ? pick({0, 1}) : 0), std::pair("micro_batches", micro),
                 std::pair("micro_batch", 32 / dp / micro)})
            config.derive(field, static_cast<double>(value));
        config.derive("sequence_parallel", tp > 1 && pick({0, 1}) == 1);
        if (pick({0, 1}) == 1)
            config.derive("recompute", std::string("full"));
        const auto plan = planOfConfig(config, *request.model);
        ASSERT_TRUE(plan) << describe(plan.error());
        PlanRequest each = request;
        each.gallery = plan->gallery;
        each.table = TableDocument(plan->rows);
        each.upTo = PlanGrade::Timed;
        const auto timed = planOf(each);
        if (!timed || fullnessOf(**timed) > 1)
            continue;
        ++drawn;
        EXPECT_GE((*timed)->summary.stepSeconds, 0.999 * found->best.stepSeconds) << plan->gallery;
    }
    EXPECT_GT(drawn, 60);
}

TEST(ConfigSearch, RowsHold)
{
    const ConfigFormat &format = formatOf("megatron");
    const auto any = searchConfigs(format, requestOf(4), {.mostPlanned = 30});
    ASSERT_TRUE(any) << describe(any.error());
    for (const char *row : {"micro-batches 8", "mesh dp=2 tp=2", "mesh dp=2 pp=2",
             "recompute layer:* per layer", "limit memory 2GiB"}) {
        SCOPED_TRACE(row);
        const auto found = searchConfigs(format, requestOf(4, row), {.mostPlanned = 30});
        ASSERT_TRUE(found) << describe(found.error());
        EXPECT_NE(found->best.request.table.text().find(row), std::string::npos)
            << found->best.request.table.text();
        EXPECT_GE(found->best.stepSeconds, 0.999 * any->best.stepSeconds);
        const auto written = writeConfig(format, found->best.request);
        ASSERT_TRUE(written);
        EXPECT_TRUE(written->isWhole);
    }
    const auto none = searchConfigs(format, requestOf(4, "split-backward layer:0"), {.mostPlanned = 30});
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, ErrorCode::Conflict);
    EXPECT_EQ(none.error().where, "--for");
}

TEST(ConfigSearch, ThePlanAtHandIsACandidate)
{
    const PlanRequest request = requestOf(8);
    const ConfigFormat &format = formatOf("deepspeed");
    const auto best = searchConfigs(format, request);
    ASSERT_TRUE(best);
    const auto again =
        searchConfigs(format, request, {.mostPlanned = 1, .atHand = best->best.request.table.table()});
    ASSERT_TRUE(again);
    EXPECT_EQ(again->best.stepSeconds, best->best.stepSeconds);
    // Rows that decide everything leave one plan: theirs.
    PlanRequest whole = request;
    whole.table = best->best.request.table;
    const auto same = searchConfigs(format, whole);
    ASSERT_TRUE(same) << describe(same.error());
    EXPECT_EQ(same->best.stepSeconds, best->best.stepSeconds);
}

TEST(ConfigSearch, UnknownFormatsAndStops)
{
    const auto unknown = searchedFormatNamed("megatrom");
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().where, "--for");
    EXPECT_NE(unknown.error().advice.find("megatron"), std::string::npos);
    EXPECT_EQ(formatOf("fsdp").name, "accelerate");
    std::stop_source stopped;
    stopped.request_stop();
    const auto none = searchConfigs(formatOf("megatron"), requestOf(2), {}, stopped.get_token());
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, ErrorCode::Cancelled);
}

} // namespace
} // namespace planloom
