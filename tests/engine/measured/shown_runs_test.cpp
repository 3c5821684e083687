#include "engine/measured/measured_file.h"
#include "engine/measured/predicted_run.h"
#include "planloom_paths.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace planloom {
namespace {

constexpr std::int64_t kFewDevices = 8; ///< Whose plans are made in a moment.
constexpr int kRowsOfAFile = 2;

/// What the window shows of measured runs is what the engine says today.
/// Else: bash tests/bench/measured_runs.sh FILE...
TEST(ShownRuns, ArePredictedSo)
{
    int files = 0;
    for (const auto &entry : std::filesystem::directory_iterator(
             std::filesystem::path(PLANLOOM_SOURCE_DIR) / "resources" / "runs")) {
        const auto file = readMeasuredFile(entry.path());
        ASSERT_TRUE(file) << describe(file.error());
        ++files;
        int rows = 0;
        for (const MeasuredRun &run : file->runs) {
            const auto shown = run.number("predicted_seconds");
            if (!shown || run.count("devices") > kFewDevices || rows == kRowsOfAFile)
                continue;
            ++rows;
            const auto predicted = predict(run);
            ASSERT_TRUE(predicted) << entry.path() << ": " << describe(predicted.error());
            EXPECT_NEAR(predicted->seconds, *shown, 1e-6 * *shown)
                << entry.path().filename() << " " << run.text("model");
            EXPECT_EQ(run.text("framework"), run.framework());
            EXPECT_EQ(run.number("measured_seconds"), run.seconds());
        }
    }
    EXPECT_GE(files, 5);
}

} // namespace
} // namespace planloom
