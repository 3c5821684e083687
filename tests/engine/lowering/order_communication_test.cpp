// Rows that say when sends, gathers of weights and reductions of gradients run.

#include "engine/lowering/lower.h"
#include "engine/simulate/simulate.h"
#include "engine/table/table_text.h"
#include "engine/verify/verify.h"

#include "tests/engine/gallery/gallery_for_tests.h"
#include "tests/engine/lowering/models_for_tests.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace planloom {
namespace {

constexpr const char *kFourLayers = "zoo:gpt?layers=4&hidden=16&heads=2&seq=8&vocab=24&batch=8";

Result<ExecutionPlan> communicating(const std::string &gallery, std::int32_t devices, const std::string &rows,
    const char *model = kFourLayers)
{
    const auto graph = trainingStep(model);
    TRY(auto table, galleryTable(gallery, graph, devices));
    TRY(const auto added, parseTable(rows));
    table.rows.insert(table.rows.end(), added.rows.begin(), added.rows.end());
    TRY(const auto completion, completePlan(graph, devices, table));
    if (const auto error = firstError(completion))
        return *error;
    TRY(auto plan, lower(completion.plan, *clusterNamed("dgx-a100:" + std::to_string(devices))));
    const auto report = verify(plan);
    EXPECT_TRUE(report && report->ok()) << (report ? report->failure->reason : describe(report.error()));
    EXPECT_TRUE(simulate(plan, *clusterNamed("dgx-a100:" + std::to_string(devices))));
    return plan;
}

ExecutionPlan communicatingWell(const std::string &gallery, std::int32_t devices, const std::string &rows)
{
    auto plan = communicating(gallery, devices, rows);
    EXPECT_TRUE(plan) << describe(plan.error());
    return *std::move(plan);
}

/// Where an instruction that `is` stands first or last in what a device issues, or -1; micro-batch -1 is any.
template<typename Is>
std::int64_t placeOn(
    const ExecutionPlan &plan, std::size_t device, std::int32_t microBatch, bool first, Is is)
{
    std::int64_t place = 0;
    std::int64_t found = -1;
    const DeviceProgram &program = plan.devices[device];
    for (const ScheduleEntry &entry : program.schedule) {
        const Segment &segment = program.segments[static_cast<std::size_t>(entry.segment)];
        const auto end = entry.end < 0 ? segment.instructions.size() : static_cast<std::size_t>(entry.end);
        for (auto i = static_cast<std::size_t>(entry.begin); i < end; ++i, ++place)
            if ((microBatch < 0 || entry.microBatch == microBatch) && (found < 0 || !first)
                && is(segment, segment.instructions[i]))
                found = place;
    }
    return found;
}

auto kernelOf(const ExecutionPlan &plan, std::string name)
{
    return [&plan, name = std::move(name)](const Segment &, const Instruction &instruction) {
        return instruction.kind == InstructionKind::Kernel && plan.graph->at(instruction.op).name == name;
    };
}

/// All-reduces of the gradients of weights whose names begin so.
auto reductionOf(const ExecutionPlan &plan, std::size_t device, std::string prefix)
{
    return
        [&plan, device, prefix = std::move(prefix)](const Segment &segment, const Instruction &instruction) {
            if (segment.kind != SegmentKind::Reduce || instruction.kind != InstructionKind::AllReduce)
                return false;
            const TensorId gradient =
                plan.devices[device].buffers[static_cast<std::size_t>(instruction.inputs[0])].tensor;
            return plan.graph->at(plan.graph->at(gradient).of).name.starts_with(prefix);
        };
}

std::vector<std::pair<std::int32_t, std::int32_t>> computedOn(const ExecutionPlan &plan, std::size_t device)
{
    std::vector<std::pair<std::int32_t, std::int32_t>> order; // segment, micro-batch
    for (const ScheduleEntry &entry : plan.devices[device].schedule) {
        const std::pair next{entry.segment, entry.microBatch};
        if (isPass(plan.devices[device].segments[static_cast<std::size_t>(entry.segment)].kind)
            && (order.empty() || order.back() != next))
            order.push_back(next);
    }
    return order;
}

TEST(CommunicationOrder, SendsWaitForALaterMicroBatch)
{
    const std::string gallery = "pipeline:micro-batches=4,schedule=gpipe";
    const auto isSend = [](const Segment &segment, const Instruction &instruction) {
        return segment.kind == SegmentKind::Transfer && instruction.kind == InstructionKind::Send;
    };
    const ExecutionPlan usual = communicatingWell(gallery, 2, "");
    const ExecutionPlan held = communicatingWell(gallery, 2, "communicate layer:0 sends after layer:0 at +1");
    for (std::int32_t i = 0; i < 3; ++i) {
        const auto next = placeOn(usual, 0, i + 1, false, kernelOf(usual, "h.0.residual_2"));
        ASSERT_GE(next, 0);
        EXPECT_LT(placeOn(usual, 0, i, true, isSend), next);
        EXPECT_GT(placeOn(held, 0, i, true, isSend),
            placeOn(held, 0, i + 1, false, kernelOf(held, "h.0.residual_2")));
    }
    for (std::size_t d = 0; d < 2; ++d)
        EXPECT_EQ(computedOn(usual, d), computedOn(held, d));
    const auto waits = [](const ExecutionPlan &plan) {
        for (const Segment &segment : plan.devices[0].segments)
            for (const Instruction &instruction : segment.instructions)
                if (instruction.kind == InstructionKind::Send)
                    return instruction.waits;
        return false;
    };
    EXPECT_FALSE(waits(usual));
    EXPECT_TRUE(waits(held));
    const Cluster cluster = *clusterNamed("dgx-a100:2");
    EXPECT_GT(simulate(held, cluster)->step, simulate(usual, cluster)->step);
}

TEST(CommunicationOrder, OneMicroBatchsSendAloneIsHeld)
{
    const ExecutionPlan plan = communicatingWell(
        "pipeline:micro-batches=4,schedule=gpipe", 2, "communicate layer:0 sends after layer:0 at +2 of 1");
    const auto isSend = [](const Segment &, const Instruction &instruction) {
        return instruction.kind == InstructionKind::Send;
    };
    EXPECT_GT(
        placeOn(plan, 0, 1, true, isSend), placeOn(plan, 0, 3, false, kernelOf(plan, "h.0.residual_2")));
    EXPECT_LT(placeOn(plan, 0, 0, true, isSend), placeOn(plan, 0, 1, true, kernelOf(plan, "h.0.ln_1")));
}

TEST(CommunicationOrder, ReductionsAreHeldBackAndTurnedAround)
{
    const std::string gallery = "data-parallel:micro-batches=2";
    const auto first = [](const ExecutionPlan &plan, const char *weight) {
        return placeOn(plan, 0, -1, true, reductionOf(plan, 0, weight));
    };
    const auto endOfPass = [](const ExecutionPlan &plan) {
        return placeOn(plan, 0, 1, false, [](const Segment &segment, const Instruction &instruction) {
            return segment.kind == SegmentKind::Backward && instruction.kind == InstructionKind::Kernel;
        });
    };
    // Wide, so that every layer has buckets of its own.
    const char *const model = "zoo:gpt?layers=3&hidden=1024&heads=4&seq=4&vocab=64&batch=4";
    const auto planOf = [&](const std::string &rows) { return communicating(gallery, 2, rows, model); };
    const auto usual = planOf("");
    ASSERT_TRUE(usual);
    ASSERT_LT(first(*usual, "h.2.mlp"), endOfPass(*usual));
    ASSERT_LT(first(*usual, "h.2.mlp"), first(*usual, "h.0.mlp"));
    const auto held = planOf("communicate name:h.2.mlp.c_proj reductions after layer:0 & backward");
    ASSERT_TRUE(held) << describe(held.error());
    EXPECT_GT(first(*held, "h.2.mlp.c_proj"), endOfPass(*held));
    const auto turned =
        planOf("communicate name:h.2.mlp.c_proj reductions after name:h.1.mlp.c_fc reductions");
    ASSERT_TRUE(turned) << describe(turned.error());
    EXPECT_GT(first(*turned, "h.2.mlp.c_proj"), first(*turned, "h.1.mlp.c_fc"));
    EXPECT_EQ(computedOn(*usual, 0), computedOn(*turned, 0));
    for (const Segment &segment : held->devices[0].segments)
        for (const Instruction &instruction : segment.instructions)
            EXPECT_TRUE(instruction.waits || !reductionOf(*held, 0, "h.2.mlp.c_proj")(segment, instruction));
}

TEST(CommunicationOrder, GathersAreAskedForEarlierAndLater)
{
    const std::string gallery = "zero3:micro-batches=2";
    const auto gathered = [](const ExecutionPlan &plan) {
        return placeOn(plan, 0, 0, true, [&](const Segment &segment, const Instruction &instruction) {
            if (segment.kind != SegmentKind::Forward || instruction.kind != InstructionKind::AllGather)
                return false;
            const TensorId weight =
                plan.devices[0].buffers[static_cast<std::size_t>(instruction.outputs[0])].tensor;
            return plan.graph->at(weight).name.starts_with("h.2.");
        });
    };
    const auto place = [](const ExecutionPlan &plan, const char *name) {
        return placeOn(plan, 0, 0, true, kernelOf(plan, name));
    };
    const ExecutionPlan usual = communicatingWell(gallery, 2, "");
    ASSERT_GT(gathered(usual), place(usual, "h.0.residual_2"));
    const ExecutionPlan early = communicatingWell(gallery, 2, "communicate layer:2 gathers before layer:0");
    EXPECT_LT(gathered(early), place(early, "h.0.ln_1"));
    const ExecutionPlan late =
        communicatingWell(gallery, 2, "communicate layer:2 gathers after name:h.1.residual_1");
    EXPECT_GT(gathered(late), place(late, "h.1.residual_1"));
    EXPECT_LT(gathered(usual), place(usual, "h.1.residual_1"));
}

/// Shards of a layer's gradients are on their way while the next layer is computed, and added up behind it.
TEST(CommunicationOrder, WhatIsComputedDoesNotWaitForShards)
{
    for (const char *const gallery : {"zero2:micro-batches=2", "zero3:micro-batches=2"}) {
        SCOPED_TRACE(gallery);
        const ExecutionPlan plan = communicatingWell(gallery, 2, "");
        const auto ofLayer = [&](InstructionKind kind, const std::string &layer) {
            return [&plan, kind, layer](const Segment &segment, const Instruction &instruction) {
                return isBackward(segment.kind) && instruction.kind == kind
                    && plan.graph->at(instruction.op).name.starts_with(layer);
            };
        };
        for (int layer = 1; layer < 4; ++layer) {
            const std::string own = "h." + std::to_string(layer) + ".";
            const std::string next = "h." + std::to_string(layer - 1) + ".";
            const auto begins = placeOn(plan, 0, 0, true, ofLayer(InstructionKind::Kernel, next));
            const auto ends = placeOn(plan, 0, 0, false, ofLayer(InstructionKind::Kernel, next));
            EXPECT_LT(placeOn(plan, 0, 0, false, ofLayer(InstructionKind::ReduceScatter, own)), begins);
            EXPECT_GT(placeOn(plan, 0, 0, true, ofLayer(InstructionKind::Accumulate, own)), ends);
        }
    }
}

TEST(CommunicationOrder, IsRefusedWithItsRow)
{
    struct Case {
        const char *gallery;
        const char *row;
        const char *words;
    };
    const auto apart = communicating(
        "pipeline:micro-batches=4", 4, "communicate layer:0 sends after layer:3 & backward of 2");
    ASSERT_FALSE(apart);
    EXPECT_NE(apart.error().message.find("no device runs both"), std::string::npos)
        << describe(apart.error());
    for (const Case &each :
        {
            Case{"pipeline:micro-batches=4,schedule=1f1b",
                "communicate layer:0 sends after backward & layer:0", "against the data flow"},
            {"data-parallel:micro-batches=2", "communicate layer:0 sends after layer:1", "send nothing"},
            {"single:micro-batches=2", "communicate layer:0 reductions after layer:1", "no gradients"},
            {"data-parallel:micro-batches=2", "communicate layer:0 reductions before forward & layer:0",
                "against the data flow"},
            {"zero3:micro-batches=2", "communicate layer:0 gathers after layer:2", "reads them before"},
            {"pipeline:micro-batches=4", "communicate layer:0 sends after layer:1 of 9", "no micro-batch 9"},
            {"pipeline:micro-batches=4", "communicate layer:0 sends after layer:1 reductions", "not ordered"},
            {"zero3:micro-batches=4", "communicate layer:0 gathers after layer:1 at +1", "every micro-batch"},
        }) {
        const auto plan = communicating(each.gallery, 2, each.row);
        ASSERT_FALSE(plan) << each.row;
        EXPECT_NE(plan.error().message.find(each.words), std::string::npos) << describe(plan.error());
        EXPECT_TRUE(plan.error().where.starts_with("row:")) << plan.error().where;
    }
}

TEST(CommunicationOrder, RandomRowsAreRefusedOrLeaveWhatIsComputedInItsOrder)
{
    std::mt19937 random(17);
    const auto chosen = [&](std::initializer_list<const char *> texts) {
        return std::string(*(texts.begin() + random() % texts.size()));
    };
    int accepted = 0;
    for (int i = 0; i < 120; ++i) {
        const std::string gallery = chosen({"pipeline:micro-batches=4,schedule=1f1b",
            "pipeline:micro-batches=4,schedule=gpipe", "3d:dp=2,tp=1,pp=2,micro-batches=2",
            "zero3:micro-batches=2", "data-parallel:micro-batches=2"});
        const std::int32_t devices = gallery.starts_with("3d") ? 4 : 2;
        const std::string part = chosen({"sends", "sends", "gathers", "reductions"});
        const auto side = [&] {
            return "layer:" + std::to_string(random() % 4) + chosen({"", " & backward", " & forward"});
        };
        const std::string row = "communicate " + side() + " " + part + chosen({" after ", " before "})
            + side() + (part != "gathers" && random() % 4 == 0 ? " " + part : "")
            + (part == "sends" ? chosen({"", " at +1", " at -1"}) : "");
        SCOPED_TRACE(gallery + " | " + row);
        const auto plan = communicating(gallery, devices, row); // verifies and simulates it
        if (!plan) {
            EXPECT_TRUE(plan.error().where.starts_with("row:")) << describe(plan.error());
            continue;
        }
        ++accepted;
        const ExecutionPlan usual = communicatingWell(gallery, devices, "");
        if (part != "gathers") {
            for (std::size_t d = 0; d < usual.devices.size(); ++d)
                EXPECT_EQ(computedOn(*plan, d), computedOn(usual, d));
        }
    }
    EXPECT_GT(accepted, 30);
}

} // namespace
} // namespace planloom
