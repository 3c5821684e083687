#include "engine/lowering/program/program_builder.h"

#include "engine/graph/graph.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

TEST(ProgramBuilder, NoMarkPartsWhatIsLaunchedTogether)
{
    const TensorType type{DataType::Float32, {4, 6}};
    Graph graph;
    const DeviceId device{0};
    ProgramBuilder builder(1);
    const std::int32_t block = builder.addBlock(SegmentKind::Backward, StageId{0}, 0);
    const auto value = [&] {
        graph.tensors.push_back({.name = "t", .type = type});
        return builder.addBuffer(device,
            {.tensor = TensorId{static_cast<std::int32_t>(graph.tensors.size()) - 1},
                .index = wholeMask(type.shape)});
    };
    std::int32_t last = value();
    std::vector<std::int32_t> marks;
    // Element by element, each of what the one before made: one launch; then a sum, which is another.
    for (const OperatorKind kind :
        {OperatorKind::Relu, OperatorKind::Sigmoid, OperatorKind::Tanh, OperatorKind::ReduceSum}) {
        const OperatorId op{static_cast<std::int32_t>(graph.operators.size())};
        graph.operators.push_back({.name = nameOf(kind), .kind = kind});
        const std::int32_t made = value();
        builder.emit(
            device, block, {.kind = InstructionKind::Kernel, .op = op, .inputs = {last}, .outputs = {made}});
        last = made;
        marks.push_back(builder.mark(block));
    }
    builder.join(graph, CollectiveOverlap::None);
    builder.sharedBufferDependencies();
    MaterializedPlan plan;
    builder.finish(plan);
    const auto &instructions = plan.programs.devices[0].segments[0].instructions;
    ASSERT_EQ(instructions.size(), 4u);
    std::vector<bool> joined;
    for (const Instruction &instruction : instructions)
        joined.push_back(instruction.joined);
    EXPECT_EQ(joined, (std::vector{false, true, true, false}));
    std::vector<std::int32_t> places;
    for (const std::int32_t mark : marks)
        places.push_back(plan.marks[static_cast<std::size_t>(mark)].at(device.index));
    EXPECT_EQ(places, (std::vector<std::int32_t>{3, 3, 3, 4}));
}

} // namespace
} // namespace planloom
