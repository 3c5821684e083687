#include "widgets/inspector/sharding.h"
#include "widgets/inspector/sharding_view.h"

#include "engine/frontend/training/training.h"
#include "engine/frontend/zoo/zoo.h"
#include "engine/hardware/cluster.h"
#include "engine/lowering/lower.h"
#include "engine/plan/complete.h"
#include "engine/table/table_text.h"
#include "tests/engine/gallery/gallery_for_tests.h"

#include <gtest/gtest.h>

#include <set>

namespace planloom {
namespace {

struct Planned {
    std::shared_ptr<const Graph> graph{};
    Plan plan{};
    ExecutionPlan execution{};

    OperatorId named(const std::string &name) const
    {
        for (std::size_t i = 0; i < graph->operators.size(); ++i)
            if (graph->operators[i].name == name)
                return OperatorId{static_cast<std::int32_t>(i)};
        ADD_FAILURE() << "no operator " << name;
        return {};
    }
};

Planned planned(const char *model, const std::string &rows, std::int32_t devices)
{
    Planned result;
    auto forward = buildZooModel(model);
    EXPECT_TRUE(forward);
    result.graph = std::make_shared<const Graph>(*buildTrainingStep(*forward, {}));
    const auto table = parseTable(rows);
    EXPECT_TRUE(table) << describe(table.error());
    auto completion = completePlan(result.graph, devices, *table);
    EXPECT_TRUE(completion);
    EXPECT_FALSE(firstError(*completion)) << firstError(*completion)->message;
    result.plan = completion->plan;
    auto lowered = lower(result.plan, *clusterNamed("cpu:" + std::to_string(devices)));
    EXPECT_TRUE(lowered) << describe(lowered.error());
    result.execution = *std::move(lowered);
    return result;
}

constexpr const char *kNarrowModel = "zoo:mlp?layers=2&hidden=16&batch=8";

/// The first product of the model.
OperatorId firstProduct(const Planned &planned)
{
    for (std::size_t i = 0; i < planned.graph->operators.size(); ++i)
        if (planned.graph->operators[i].kind == OperatorKind::Linear)
            return OperatorId{static_cast<std::int32_t>(i)};
    ADD_FAILURE();
    return {};
}

/// Elements of all complete cells, each once, and of all summands, are the tensor's.
void expectCovers(const ShardedTensor &tensor, const Shape &shape)
{
    std::map<std::int32_t, std::int64_t> bySummand;
    std::set<std::pair<IndexMask, ValueMask>> seen;
    for (const ShardCell &cell : tensor.cells) {
        EXPECT_TRUE(seen.emplace(cell.index, cell.value).second) << "each cell once";
        EXPECT_FALSE(cell.devices.empty());
        bySummand[cell.value.index] += elementCount(shapeOf(cell.index));
    }
    EXPECT_EQ(tensor.leftOut, 0);
    for (const auto &[summand, elements] : bySummand)
        EXPECT_GE(elements, elementCount(shape)) << "summand " << summand;
}

TEST(Sharding, AReducedSplitLeavesSummandsOnEveryDevice)
{
    const Planned plan =
        planned(kNarrowModel, "split kind:Linear : in0.-1 by 2\nplace all : devices 0,1\n", 2);
    const auto pictures = shardingOf(plan.plan, &plan.execution, firstProduct(plan));
    const auto output =
        std::find_if(pictures.begin(), pictures.end(), [](const auto &p) { return p.output; });
    ASSERT_NE(output, pictures.end());
    ASSERT_TRUE(output->before);
    EXPECT_EQ(output->before->valueParts, 2);
    EXPECT_TRUE(output->before->cutDimensions.empty());
    ASSERT_EQ(output->before->cells.size(), 2U);
    EXPECT_EQ(output->before->cells[0].value, (ValueMask{0, 2}));
    EXPECT_EQ(output->before->cells[1].devices, (std::vector<DeviceId>{{1}}));
    EXPECT_EQ(wordsOf(output->before->cells[1], output->shape).find("summand 2 of 2 on device 1")
            != std::string::npos,
        true)
        << wordsOf(output->before->cells[1], output->shape);
    ASSERT_FALSE(output->joins.empty()) << "something joins the summands";
}

TEST(Sharding, EveryTensorOfEveryOperatorIsCovered)
{
    for (const char *gallery :
        {"single", "data-parallel", "tensor-parallel", "pipeline", "zero1", "3d:dp=2,tp=2,pp=1"}) {
        SCOPED_TRACE(gallery);
        auto forward = buildZooModel("zoo:gpt?layers=2&hidden=32&heads=4&seq=16&vocab=64&batch=8");
        ASSERT_TRUE(forward);
        const auto graph = std::make_shared<const Graph>(*buildTrainingStep(*forward, {}));
        const auto rows = galleryTable(gallery, graph, 4);
        ASSERT_TRUE(rows) << describe(rows.error());
        const Planned plan =
            planned("zoo:gpt?layers=2&hidden=32&heads=4&seq=16&vocab=64&batch=8", print(*rows), 4);
        for (std::size_t i = 0; i < plan.graph->operators.size(); ++i) {
            const OperatorId id{static_cast<std::int32_t>(i)};
            SCOPED_TRACE(plan.graph->operators[i].name);
            for (const ShardingPicture &picture : shardingOf(plan.plan, &plan.execution, id)) {
                if (picture.before && plan.graph->at(picture.tensor).role != TensorRole::Gradient)
                    expectCovers(*picture.before, picture.shape);
                for (const ShardingJoin &join : picture.joins) {
                    EXPECT_GT(join.count, 0);
                    EXPECT_GT(join.bytes.count, 0);
                }
                if (picture.before && picture.after && picture.output && *picture.before == *picture.after
                    && plan.graph->operators[i].direction == Direction::Forward
                    && picture.before->valueParts == 1
                    && plan.graph->at(picture.tensor).role == TensorRole::Activation) {
                    // Made as used by everyone: the first consumer at least needs nothing moved.
                    EXPECT_TRUE(picture.after);
                }
            }
        }
    }
}

TEST(Sharding, ShapesSayHowFilesKnowThem)
{
    ShardingPicture picture;
    picture.shape = {4, 2, 3};
    EXPECT_EQ(shapeInWords(picture), "4 × 2 × 3");
    picture.fileShape = {4, 6};
    EXPECT_EQ(shapeInWords(picture), "4 × 2 × 3, in files 4 × 6");
    picture.filePart = FilePart{"qkv.weight", {4, 12}, 1, 6};
    EXPECT_EQ(shapeInWords(picture), "4 × 2 × 3, in files 4 × 6:12");
}

TEST(Sharding, UnknownOperatorsHaveNoPicture)
{
    const Planned plan = planned(kNarrowModel, "place all : devices 0\n", 1);
    EXPECT_TRUE(shardingOf(plan.plan, nullptr, OperatorId{}).empty());
    EXPECT_TRUE(shardingOf(plan.plan, nullptr, OperatorId{99999}).empty());
}

ShardedTensor boxes(const Shape &shape, const std::vector<std::int64_t> &parts, std::int32_t values)
{
    ShardedTensor tensor;
    std::vector<std::int64_t> at(shape.size(), 0);
    tensor.valueParts = values;
    for (;;) {
        for (std::int32_t v = 0; v < values; ++v) {
            ShardCell cell;
            for (std::size_t d = 0; d < shape.size(); ++d) {
                const std::int64_t size = shape[d] / parts[d];
                cell.index.ranges.push_back({at[d] * size, (at[d] + 1) * size});
            }
            cell.value = {v, values};
            cell.devices = {DeviceId{static_cast<std::int32_t>(tensor.cells.size())}};
            tensor.cells.push_back(cell);
        }
        std::size_t d = shape.size();
        while (d > 0 && ++at[d - 1] == parts[d - 1])
            at[--d] = 0;
        if (d == 0)
            break;
    }
    for (std::size_t d = 0; d < shape.size(); ++d)
        if (parts[d] > 1)
            tensor.cutDimensions.push_back(static_cast<std::int32_t>(d));
    return tensor;
}

TEST(ShardFaces, LieInsideAndDoNotOverlapWithinALayer)
{
    const QRectF area(10, 20, 200, 120);
    for (const auto &parts :
        {std::vector<std::int64_t>{1, 1, 1}, {1, 1, 4}, {1, 2, 4}, {4, 2, 4}, {8, 8, 8}}) {
        for (const std::int32_t values : {1, 2, 4}) {
            const Shape shape{8, 16, 32};
            const ShardedTensor tensor = boxes(shape, parts, values);
            const auto faces = facesOf(tensor, shape, area);
            EXPECT_EQ(faces.size(), tensor.cells.size()) << "three dimensions and summands all have a face";
            for (std::size_t i = 0; i < faces.size(); ++i) {
                EXPECT_TRUE(area.adjusted(-1e-6, -1e-6, 1e-6, 1e-6).contains(faces[i].rect));
                EXPECT_GT(faces[i].rect.width() * faces[i].rect.height(), 0);
                for (std::size_t j = i + 1; j < faces.size(); ++j) {
                    const QRectF common = faces[i].rect.intersected(faces[j].rect);
                    EXPECT_FALSE(
                        faces[i].layer == faces[j].layer && common.width() > 1e-6 && common.height() > 1e-6);
                    EXPECT_GE(faces[i].layer, faces[j].layer) << "the nearest is painted last";
                }
            }
        }
    }
}

} // namespace
} // namespace planloom
