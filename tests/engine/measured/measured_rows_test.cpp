#include "engine/measured/measured_rows.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

TEST(MeasuredRows, AreThoseOfTheBench)
{
    const auto rows = measuredRows(R"([
        {"file": "a.json", "row": 1, "model": "LLaMA", "device": "H100", "devices": 8, "framework": "megatron",
         "predicted_seconds": 1.1, "measured_seconds": 1.0, "predicted_peak_bytes": 60e9,
         "measured_peak_bytes": 75e9, "skipped": null, "as": null},
        {"file": "a.json", "row": 2, "model": "GPT", "device": "X", "devices": null, "predicted_seconds": null,
         "measured_seconds": 2, "skipped": "no profile"},
        {"file": "b", "model": "GPT", "device": "B200", "devices": 4, "predicted_seconds": 1,
         "measured_seconds": 2, "as": "fp8 in place of nvfp4"}])");
    ASSERT_TRUE(rows) << describe(rows.error());
    const std::vector<MeasuredRow> expected{
        {"a", "LLaMA", "H100", 8, "megatron", 1.1, 1.0, 60e9, 75e9, {}, {}},
        {"a", "GPT", "X", 0, {}, {}, 2.0, {}, {}, "no profile", {}},
        {"b", "GPT", "B200", 4, {}, 1.0, 2.0, {}, {}, {}, "fp8 in place of nvfp4"}};
    EXPECT_EQ(*rows, expected);
    EXPECT_DOUBLE_EQ(*expected[0].stepError(), 1.1 - 1);
    EXPECT_DOUBLE_EQ(*expected[0].peakError(), -0.2);
    EXPECT_FALSE(expected[1].stepError());
    EXPECT_FALSE(expected[2].stepError()); // another format is another run
}

TEST(MeasuredRows, ThatAreWrongAreRefusedWithTheirPlace)
{
    struct Case {
        const char *text;
        const char *where;
    };
    const Case cases[] = {{"", "/"}, {"{}", "/"}, {"[1]", "/0/"}, {R"([{}, {"model": 3}])", "/1/model"},
        {R"([{"predicted_seconds": "1"}])", "/0/predicted_seconds"},
        {R"([{"measured_seconds": -1}])", "/0/measured_seconds"}};
    for (const Case &each : cases) {
        const auto rows = measuredRows(each.text);
        ASSERT_FALSE(rows) << each.text;
        EXPECT_EQ(rows.error().where, each.where) << each.text;
    }
}

TEST(MeasuredRows, AreSummedUpByMedianAndWorst)
{
    EXPECT_EQ(summaryOf(std::vector<double>{}), ErrorSummary{});
    EXPECT_EQ(summaryOf(std::vector<double>{-0.3, 0.1, 0.2}), (ErrorSummary{3, 0.2, 0.3}));
    EXPECT_EQ(summaryOf(std::vector<double>{-0.5, 0.25, 0.75, 0.125}), (ErrorSummary{4, 0.375, 0.75}));
    EXPECT_EQ(summaryOf(std::vector<double>{0.25, -0.5}), (ErrorSummary{2, 0.375, 0.5}));
}

} // namespace
} // namespace planloom
