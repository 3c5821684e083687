// Every plan of the gallery that applies to a model: twice the same bits, on one thread and on three. The
// short form has one model; PLANLOOM_WHOLE_GALLERY=1 takes all small ones of the model set, too.

#include "engine/gallery/gallery.h"
#include "engine/runtime/run.h"
#include "engine/table/table_text.h"

#include "tests/engine/gallery/gallery_for_tests.h"
#include "tests/engine/lowering/models_for_tests.h"
#include "tests/engine/runtime/model_files.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace planloom {
namespace {

std::vector<std::string> modelsForBits()
{
    std::vector<std::string> models{"zoo:gpt?layers=4&hidden=32&heads=4&seq=16&batch=8&vocab=64&dropout=0.1"};
    if (std::getenv("PLANLOOM_WHOLE_GALLERY"))
        for (const char *file : {"gpt2_tiny", "bert_tiny", "bert_tiny_opset17", "t5_tiny", "swin_tiny",
                 "evoformer_tiny", "resnet50_tiny"})
            models.emplace_back(file);
    return models;
}

struct Bits {
    std::vector<double> losses{};
    NamedArrays weights{};
};

Result<Bits> bitsOf(const ExecutionPlan &plan, std::int32_t threads)
{
    RunOptions options;
    options.steps = 2;
    options.randomWeights = true;
    options.keepGradients = true;
    options.threads = threads;
    TRY(auto outcome, runOnCpu(plan, options));
    return Bits{std::move(outcome.losses), std::move(outcome.weights)};
}

TEST(EveryPlan, OfTheGalleryMakesTheSameBitsTwice)
{
    constexpr std::int32_t kGalleryDevices = 4;
    int ran = 0;
    int passedBy = 0;
    for (const std::string &model : modelsForBits()) {
        const GraphSnapshot graph = trainingStepOf(model, OperatorKind::AdamWStep);
        if (!graph)
            continue; // the model set is not beside this checkout
        for (const GalleryEntry &entry : builtInGallery().entries) {
            SCOPED_TRACE(model + " under " + entry.name);
            const auto table = galleryTable(entry.name, graph, kGalleryDevices);
            const auto plan = table ? loweredRows(graph, print(*table), kGalleryDevices)
                                    : Result<ExecutionPlan>{table.error()};
            if (!plan) { // does not apply, and says why
                EXPECT_NE(plan.error().code, ErrorCode::Internal) << describe(plan.error());
                ++passedBy;
                continue;
            }
            const auto once = bitsOf(*plan, 1);
            const auto again = bitsOf(*plan, 3);
            ASSERT_TRUE(once) << describe(once.error());
            ASSERT_TRUE(again) << describe(again.error());
            ++ran;
            EXPECT_EQ(once->losses, again->losses);
            ASSERT_EQ(once->weights.size(), again->weights.size());
            for (const auto &[name, array] : once->weights)
                EXPECT_TRUE(array.bytes == again->weights.at(name).bytes) << name;
        }
    }
    EXPECT_GT(ran, 5);
    std::printf("%d plans ran, %d do not apply\n", ran, passedBy);
}

} // namespace
} // namespace planloom
