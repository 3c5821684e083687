// Values over the whole batch among values of samples: a plan in micro-batches is that of the model, or there
// is none.

#include "engine/design/make_plan.h"
#include "engine/frontend/training/training.h"
#include "engine/frontend/zoo/graph_builder.h"
#include "engine/runtime/run.h"
#include "engine/runtime/training/check.h"
#include "tests/seeds.h"

#include <gtest/gtest.h>

#include <random>

namespace planloom {
namespace {

constexpr std::int64_t kSamples = 8;

/// Draws losses of eight samples with sums, means, largest values, orders and gathers over all of them.
class LossDrawer
{
public:
    explicit LossDrawer(std::uint32_t seed)
        : m_random(seed)
    {
        const TensorId x = b.input("x", {DataType::Float32, {kSamples, 4}});
        const TensorId a = b.input("a", {DataType::Float32, {kSamples}});
        const TensorId y = b.one(OperatorKind::Linear, {x, b.weight("w", {4, 1})}, {}, "y");
        m_samples = {a, b.reshape(y, {kSamples}, "y_list"), b.one(OperatorKind::Sigmoid, {a}, {}, "share")};
    }

    Result<Graph> draw()
    {
        const std::size_t steps = 3 + m_random() % 5;
        for (std::size_t i = 0; i < steps; ++i)
            m_samples.push_back(next());
        const TensorId last = b.one(OperatorKind::Mul, {m_samples[1], m_samples.back()}, {}, "last");
        const TensorId loss = b.one(OperatorKind::ReduceMean, {last},
            attributesOf({{"axes", std::vector<std::int64_t>{0}}, {"keepdims", 0}, {"count", kSamples}}),
            "loss");
        TRY(const Graph forward, b.finish({loss}, loss));
        return buildTrainingStep(forward);
    }

private:
    TensorId any() { return m_samples[m_random() % m_samples.size()]; }

    /// One number of all samples.
    TensorId whole(TensorId x)
    {
        const OperatorKind kinds[]{OperatorKind::ReduceSum, OperatorKind::ReduceMax, OperatorKind::ReduceMin,
            OperatorKind::ReduceSumSquare, OperatorKind::ReduceMean, OperatorKind::ReduceL1};
        const OperatorKind kind = kinds[m_random() % std::size(kinds)];
        Attributes attributes = attributesOf({{"axes", std::vector<std::int64_t>{0}}, {"keepdims", 0}});
        if (kind == OperatorKind::ReduceMean)
            attributes.set("count", kSamples);
        return b.one(OperatorKind::Tanh, {b.one(kind, {x}, std::move(attributes))});
    }

    TensorId next()
    {
        const TensorId x = any();
        switch (m_random() % 6) {
        case 0:
            return b.one(OperatorKind::Sub, {x, whole(any())});
        case 1: { // a ratio whose denominator is over 1
            const TensorId square = b.one(OperatorKind::Mul, {any(), any()});
            const TensorId least = b.one(OperatorKind::Exp, {whole(square)});
            return b.one(OperatorKind::Div, {x, least});
        }
        case 2: {
            std::vector<std::int64_t> places(kSamples);
            for (std::int64_t &place : places)
                place = static_cast<std::int64_t>(m_random() % kSamples);
            const std::string name = "places" + std::to_string(m_samples.size());
            return b.one(OperatorKind::Gather, {x, b.constant(name, integerData({kSamples}, places))},
                attributesOf({{"axis", 0}}));
        }
        case 3:
            return b.one(OperatorKind::Softmax, {x}, attributesOf({{"axis", 0}}));
        case 4:
            return b.one(OperatorKind::Tanh, {b.one(OperatorKind::Mul, {x, any()})});
        default:
            return b.one(OperatorKind::Tanh, {b.one(OperatorKind::Add, {x, whole(x)})});
        }
    }

    GraphBuilder b{};
    std::mt19937 m_random;
    std::vector<TensorId> m_samples; ///< Values of every sample.
};

Result<PlanAnswerSnapshot> planned(const ModelSnapshot &model, const std::string &rows, int devices)
{
    PlanRequest request;
    request.model = model;
    request.table = TableDocument(rows);
    request.target = {"cpu", {}, devices};
    return planOf(request);
}

TEST(WholeAndParts, InMicroBatchesAndReplicasAreTheModelOrRefused)
{
    RunOptions options;
    options.keepGradients = true;
    options.randomWeights = true;
    int inMicroBatches = 0;
    const auto [first, end] = seedsToTry("PLANLOOM_WHOLE_AND_PARTS", 60);
    for (std::uint32_t seed = first; seed < end; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        auto graph = LossDrawer(seed).draw();
        ASSERT_TRUE(graph) << describe(graph.error());
        OpenedModel opened;
        static_cast<Model &>(opened) = Model(std::make_shared<const Graph>(*std::move(graph)));
        const auto model = std::make_shared<const OpenedModel>(std::move(opened));
        const auto whole = planned(model, "", 1);
        ASSERT_TRUE(whole) << describe(whole.error());
        const auto expected = runOnCpu(*(*whole)->execution, options);
        ASSERT_TRUE(expected) << describe(expected.error());
        for (const auto &[rows, devices] : {std::pair("micro-batches 2", 1), {"micro-batches 4", 1},
                 {"mesh dp=2\nsplit all : batch over dp", 2},
                 {"mesh dp=2\nsplit all : batch over dp\nmicro-batches 2", 2}}) {
            SCOPED_TRACE(rows);
            const auto parts = planned(model, rows, devices);
            if (!parts) {
                EXPECT_NE(parts.error().message, "");
                EXPECT_TRUE(std::string(rows).find("micro-batches") != std::string::npos)
                    << parts.error().message;
                continue;
            }
            EXPECT_TRUE((*parts)->verdict && (*parts)->verdict->ok()) << (*parts)->verdict->failure->reason;
            const auto got = runOnCpu(*(*parts)->execution, options);
            ASSERT_TRUE(got) << describe(got.error());
            const auto check = compareOutcomes(*got, *expected, {.loss = 1e-4});
            ASSERT_TRUE(check) << describe(check.error());
            EXPECT_TRUE(check->ok) << check->worstTensor << ' ' << check->worstError;
            inMicroBatches += (*parts)->execution->microBatches > 1 ? 1 : 0;
        }
    }
    EXPECT_GT(inMicroBatches, 0);
}

} // namespace
} // namespace planloom
