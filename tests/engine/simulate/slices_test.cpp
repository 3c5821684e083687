// Pipelines in slices against counts by hand (TeraPipe, arXiv:2102.07988).

#include "engine/simulate/simulate.h"

#include "tests/engine/lowering/models_for_tests.h"
#include "tests/engine/lowering/sliced_models.h"
#include "tests/engine/simulate/plans_for_tests.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

/// A product takes 1 us for each row of its input, twice that backward; all else takes no time.
CostModel rowCosts()
{
    CostModel costs = test::unitCosts();
    costs.kernel = [](const KernelQuery &query) {
        if (query.op.kind != OperatorKind::MatMul)
            return 0.0;
        const Shape &rows =
            query.op.direction == Direction::Forward ? query.outputs[0].shape : query.inputs[0].shape;
        return static_cast<double>(elementCount(rows)) / 4 * 1e-6
            * (query.op.direction == Direction::Forward ? 1 : 2);
    };
    return costs;
}

TEST(SlicedPipeline, OfGPipeHasTheBubbleOfFinerMicroBatches)
{
    for (const std::int32_t p : {1, 2, 4})
        for (const std::int32_t m : {1, 2, 4})
            for (const std::int32_t n : {1, 2, 8}) {
                SCOPED_TRACE(
                    testing::Message() << p << " stages, " << m << " micro-batches, " << n << " slices");
                const GraphSnapshot graph = sequenceMlp(p, 4, 8);
                const std::string by = std::to_string(n);
                const auto plan = loweredRows(graph,
                    stageRowsOf(p) + "micro-batches " + std::to_string(m)
                        + "\nschedule gpipe\nslice all : out0.1 by " + by + "\nslice name:loss : in0.1 by "
                        + by,
                    p);
                ASSERT_TRUE(plan) << describe(plan.error());
                const auto timeline = simulate(*plan, test::clusterOf(*plan), rowCosts());
                ASSERT_TRUE(timeline) << describe(timeline.error());
                const std::int64_t slice = 32 / (m * n) * 1000; // forward, in ns
                EXPECT_EQ(timeline->step.count(), (m * n + p - 1) * 3 * slice);
                EXPECT_DOUBLE_EQ(bubbleRatio(*timeline), (p - 1.0) / (m * n + p - 1.0));
            }
}

} // namespace
} // namespace planloom
