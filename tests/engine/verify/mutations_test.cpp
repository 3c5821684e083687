#include "engine/verify/verify.h"

#include "tests/engine/lowering/precise_plans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace planloom {
namespace {

/// One place in a plan.
struct Place {
    std::size_t device = 0;
    std::size_t segment = 0;
    std::size_t instruction = 0;
};

std::vector<Place> placesOf(const ExecutionPlan &plan)
{
    std::vector<Place> places;
    for (std::size_t d = 0; d < plan.devices.size(); ++d)
        for (std::size_t s = 0; s < plan.devices[d].segments.size(); ++s)
            for (std::size_t i = 0; i < plan.devices[d].segments[s].instructions.size(); ++i)
                places.push_back({d, s, i});
    return places;
}

std::vector<Instruction> &listAt(ExecutionPlan &plan, const Place &place)
{
    return plan.devices[place.device].segments.edit()[place.segment].instructions;
}

bool isRejected(const ExecutionPlan &plan)
{
    const auto report = verify(plan);
    return !report || !report->ok();
}

std::string describePlace(const ExecutionPlan &plan, const Place &place)
{
    const Instruction &instruction =
        plan.devices[place.device].segments[place.segment].instructions[place.instruction];
    return std::string(nameOf(instruction.kind)) + " on device " + std::to_string(place.device) + ", segment "
        + std::to_string(place.segment) + ", instruction " + std::to_string(place.instruction);
}

/// The number of mutations tried so far, by kind.
class Mutations : public testing::Test
{
protected:
    static std::vector<ExecutionPlan> plans()
    {
        std::vector<ExecutionPlan> list;
        const GraphSnapshot mlp = trainingStep("zoo:mlp?layers=2&hidden=8&batch=8");
        const GraphSnapshot gpt = trainingStep("zoo:gpt?layers=1&hidden=8&heads=2&seq=4&batch=4&vocab=8");
        list.push_back(galleryPlan(mlp, "data-parallel", 2));
        list.push_back(galleryPlan(mlp, "zero1", 2));
        list.push_back(galleryPlan(gpt, "zero1:micro-batches=2", 2));
        list.push_back(galleryPlan(gpt, "data-parallel", 4));
        list.push_back(galleryPlan(gpt, "tensor-parallel", 2));
        list.push_back(galleryPlan(gpt, "pipeline:schedule=1f1b,micro-batches=2", 2));
        list.push_back(galleryPlan(gpt, "3d:dp=2,tp=2,pp=2,micro-batches=2", 8));
        const GraphSnapshot volumes =
            trainingStep("zoo:cosmoflow?stages=1&width=2&volume=4&channels=1&head=4&batch=2");
        list.push_back(galleryPlan(volumes, "spatial:depth=2,width=2", 4));
        list.push_back(precisePlan(mlp, "zero1", 2, "precision all : bf16"));
        list.push_back(precisePlan(gpt, "3d:dp=2,tp=2,pp=2,micro-batches=2", 8,
            "precision all : fp16 reduction=fp16\nprecision kind:Gelu : storage=fp32"));
        list.push_back(galleryPlan(gpt, "pipeline:schedule=zb-h1,micro-batches=2", 2));
        list.push_back(galleryPlan(gpt, "3d:dp=1,tp=2,pp=1,schedule=combined-1f1b,micro-batches=2", 2));
        list.push_back(precisePlan(gpt, "zero1:micro-batches=2", 2, "weight-versions all : 3"));
        list.push_back(galleryPlan(gpt, "pipedream:micro-batches=4", 2));
        list.push_back(galleryPlan(mlp, "pipedream-2bw:micro-batches=4", 2));
        list.push_back(precisePlan(gpt, "pipeline:schedule=1f1b,micro-batches=2", 2,
            "weight-versions all : 2\nprecision all : bf16"));
        const auto table =
            parseTable("micro-batches 2\nslice all : sequence by 2\nmesh tp=2\nsplit all : heads over tp\n");
        const auto completion = completePlan(gpt, 2, *table);
        EXPECT_TRUE(completion && !firstError(*completion));
        list.push_back(*lower(completion->plan, *clusterNamed("cpu:2")));
        return list;
    }

    void tryOut(const ExecutionPlan &mutant, const std::string &what)
    {
        ++m_tried;
        EXPECT_TRUE(isRejected(mutant)) << what;
    }

    int m_tried = 0;
};

TEST_F(Mutations, OfAnyOneInstructionAreRejected)
{
    // Every place in turn, or one in a few: PLANLOOM_MUTATIONS asks for all.
    const std::size_t stride = std::getenv("PLANLOOM_MUTATIONS") ? 1 : 5;
    std::size_t number = 0;
    for (const ExecutionPlan &plan : plans()) {
        ASSERT_FALSE(isRejected(plan));
        for (const Place &place : placesOf(plan)) {
            if (number++ % stride != 0)
                continue;
            const Instruction &original =
                plan.devices[place.device].segments[place.segment].instructions[place.instruction];
            const std::string where = describePlace(plan, place);
            {
                ExecutionPlan mutant = plan;
                auto &list = listAt(mutant, place);
                list.erase(list.begin() + static_cast<std::ptrdiff_t>(place.instruction));
                tryOut(mutant, "deleted: " + where);
            }
            {
                ExecutionPlan mutant = plan;
                auto &list = listAt(mutant, place);
                list.insert(list.begin() + static_cast<std::ptrdiff_t>(place.instruction), original);
                tryOut(mutant, "duplicated: " + where);
            }
            // The next instruction that depends on this one, swapped with it.
            {
                const auto &list = plan.devices[place.device].segments[place.segment].instructions;
                for (std::size_t j = place.instruction + 1; j < list.size(); ++j) {
                    const bool reads =
                        std::any_of(list[j].inputs.begin(), list[j].inputs.end(), [&](std::int32_t b) {
                            return b >= 0
                                && std::find(original.outputs.begin(), original.outputs.end(), b)
                                != original.outputs.end();
                        });
                    // Adding to an accumulator commutes.
                    if (!reads || original.kind == InstructionKind::Accumulate)
                        continue;
                    ExecutionPlan mutant = plan;
                    std::swap(listAt(mutant, place)[place.instruction], listAt(mutant, place)[j]);
                    tryOut(mutant, "swapped with instruction " + std::to_string(j) + ": " + where);
                    break;
                }
            }
            if (original.peer && plan.devices.size() > 2) {
                ExecutionPlan mutant = plan;
                std::int32_t &peer = listAt(mutant, place)[place.instruction].peer.index;
                do
                    peer = (peer + 1) % static_cast<std::int32_t>(plan.devices.size());
                while (peer == static_cast<std::int32_t>(place.device));
                tryOut(mutant, "peer changed: " + where);
            }
            if (original.group >= 0) {
                ExecutionPlan mutant = plan;
                std::vector<DeviceId> members = plan.groups[static_cast<std::size_t>(original.group)];
                members.pop_back();
                mutant.groups.push_back(members);
                listAt(mutant, place)[place.instruction].group =
                    static_cast<std::int32_t>(mutant.groups.size()) - 1;
                tryOut(mutant, "group changed: " + where);
            }
            if (original.kind == InstructionKind::Kernel) {
                ExecutionPlan mutant = plan;
                listAt(mutant, place)[place.instruction].op.index =
                    (original.op.index + 1) % static_cast<std::int32_t>(plan.graph->operators.size());
                tryOut(mutant, "operator changed: " + where);
            }
            for (const bool output : {false, true}) {
                const auto &list = output ? original.outputs : original.inputs;
                if (list.empty() || list[0] < 0)
                    continue;
                // The tensor, or the mask, of a buffer it names.
                ExecutionPlan mutant = plan;
                BufferInfo &buffer =
                    mutant.devices[place.device].buffers.edit()[static_cast<std::size_t>(list[0])];
                auto &buffers = mutant.devices[place.device].buffers;
                BufferInfo changed = buffer;
                if (!changed.index.ranges.empty() && changed.index.ranges[0].size() > 1)
                    --changed.index.ranges[0].end;
                else
                    changed.tensor.index =
                        (changed.tensor.index + 1) % static_cast<std::int32_t>(plan.graph->tensors.size());
                if (changed.index.ranges.size() != plan.graph->at(changed.tensor).type.shape.size())
                    continue;
                buffers.push_back(changed);
                auto &names = output ? listAt(mutant, place)[place.instruction].outputs
                                     : listAt(mutant, place)[place.instruction].inputs;
                names[0] = static_cast<std::int32_t>(buffers.size()) - 1;
                tryOut(mutant, std::string(output ? "output" : "input") + " mask changed: " + where);
                // Its type.
                for (const DataType type : {DataType::Float32, DataType::BFloat16, DataType::Float16}) {
                    ExecutionPlan retyped = plan;
                    BufferInfo &own =
                        retyped.devices[place.device].buffers.edit()[static_cast<std::size_t>(list[0])];
                    if (std::exchange(own.dataType, type) == type)
                        continue;
                    tryOut(retyped,
                        std::string(output ? "output" : "input") + " of type " + nameOf(type) + ": " + where);
                }
                // Another buffer altogether.
                ExecutionPlan other = plan;
                auto &others = output ? listAt(other, place)[place.instruction].outputs
                                      : listAt(other, place)[place.instruction].inputs;
                others[0] =
                    (others[0] + 1) % static_cast<std::int32_t>(plan.devices[place.device].buffers.size());
                const BufferInfo &from =
                    plan.devices[place.device].buffers[static_cast<std::size_t>(list[0])];
                const BufferInfo &to =
                    plan.devices[place.device].buffers[static_cast<std::size_t>(others[0])];
                if (!(from == to))
                    tryOut(other, std::string(output ? "output" : "input") + " buffer changed: " + where);
            }
        }
        // Micro-batches in the schedules.
        for (std::size_t d = 0; d < plan.devices.size(); ++d)
            for (std::size_t e = 0; e < plan.devices[d].schedule.size() && plan.microBatches > 1; ++e) {
                ExecutionPlan mutant = plan;
                std::int32_t &microBatch = mutant.devices[d].schedule[e].microBatch;
                microBatch = (microBatch + 1) % plan.microBatches;
                const Segment &segment =
                    plan.devices[d].segments[static_cast<std::size_t>(plan.devices[d].schedule[e].segment)];
                if (segment.instructions.empty())
                    continue;
                tryOut(mutant,
                    "micro-batch of schedule entry " + std::to_string(e) + " on device " + std::to_string(d));
            }
    }
    EXPECT_GE(m_tried, 10000 / static_cast<int>(stride));
}

} // namespace
} // namespace planloom
