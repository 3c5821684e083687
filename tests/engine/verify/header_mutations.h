#pragma once

#include "tests/engine/verify/plan_mutations.h"

namespace planloom {

/// Mutations of the plan's header: counts, devices, groups, partitions, placement, batch, origin.
inline std::vector<Mutation> headerMutations()
{
    using namespace mutations;
    std::vector<Mutation> list;
    const auto add = [&list](const char *name, Edit edit) { list.push_back({name, std::move(edit)}); };
    add("micro-batch count", [](ExecutionPlan &plan, Dice &dice) {
        plan.microBatches =
            dice.coin() ? dice.near(plan.microBatches) : plan.microBatches * (dice.coin() ? 2 : -1);
        return true;
    });
    add("number of units", [](ExecutionPlan &plan, Dice &dice) {
        plan.units.count = dice.near(plan.units.count);
        return true;
    });
    add("places of units", [](ExecutionPlan &plan, Dice &dice) {
        plan.units.inner = dice.near(plan.units.inner);
        return true;
    });
    add("precision of operator", [](ExecutionPlan &plan, Dice &dice) {
        if (plan.precisions.empty())
            plan.precisions.resize(plan.graph->operators.size());
        static constexpr std::array kTypes{DataType::Float32, DataType::BFloat16, DataType::Float16};
        const std::size_t any = dice.below(std::min(plan.precisions.size(), plan.graph->operators.size()));
        Precision precision = plan.precisions[any];
        const Precision before = precision;
        const std::array settings{&precision.compute, &precision.storage, &precision.gradient,
            &precision.reduction, &precision.optimizer};
        if (dice.below(6) == 0)
            precision.lossScale *= 2;
        else
            *dice.of(settings) = dice.of(kTypes);
        // Backward operators work as their forwards do.
        const auto forwardOf = [&](std::size_t o) {
            const Operator &op = plan.graph->operators[o];
            return op.direction == Direction::Backward ? static_cast<std::size_t>(op.mirror.index) : o;
        };
        for (std::size_t o = 0; o < std::min(plan.precisions.size(), plan.graph->operators.size()); ++o)
            if (forwardOf(o) == forwardOf(any))
                plan.precisions[o] = precision;
        return precision != before;
    });
    add("attention of operator", [](ExecutionPlan &plan, Dice &dice) {
        if (plan.attention.empty())
            return false;
        AttentionMode &mode = dice.of(plan.attention);
        mode = mode == AttentionMode::Fused ? AttentionMode::Plain : AttentionMode::Fused;
        return true;
    });
    add("stage count", [](ExecutionPlan &plan, Dice &dice) {
        plan.stageCount = dice.near(plan.stageCount);
        return true;
    });
    add("weight versions", [](ExecutionPlan &plan, Dice &dice) {
        plan.weightVersions.resize(plan.graph->operators.size(), 1);
        if (plan.weightVersions.empty())
            return false;
        const std::size_t op = dice.below(plan.weightVersions.size());
        std::int32_t &versions = plan.weightVersions[op];
        versions = dice.near(versions);
        if (const OperatorId mirror = plan.graph->operators[op].mirror; mirror.valid() && dice.coin())
            plan.weightVersions[static_cast<std::size_t>(mirror.index)] = versions;
        return true;
    });
    add("updates", [](ExecutionPlan &plan, Dice &dice) {
        plan.updates = dice.coin() ? dice.near(plan.updates) : plan.updates * 2;
        return true;
    });
    add("origin", [](ExecutionPlan &plan, Dice &dice) {
        plan.origin[dice.coin() ? "model" : "cluster"] = "another";
        return true;
    });
    add("device deleted", [](ExecutionPlan &plan, Dice &dice) { return eraseOne(plan.devices, dice); });
    add("device repeated", [](ExecutionPlan &plan, Dice &dice) { return repeatOne(plan.devices, dice); });
    add("devices swapped", [](ExecutionPlan &plan, Dice &dice) { return swapTwo(plan.devices, dice); });
    add("group deleted", [](ExecutionPlan &plan, Dice &dice) { return eraseOne(plan.groups, dice); });
    add("groups swapped", [](ExecutionPlan &plan, Dice &dice) { return swapTwo(plan.groups, dice); });
    add("member of group", [](ExecutionPlan &plan, Dice &dice) {
        if (plan.groups.empty())
            return false;
        auto &group = dice.of(plan.groups);
        if (group.empty())
            return false;
        DeviceId &member = dice.of(group);
        member.index =
            dice.coin() ? dice.another(member.index, plan.devices.size()) : dice.near(member.index);
        return true;
    });
    add("members of group", [](ExecutionPlan &plan, Dice &dice) {
        if (plan.groups.empty())
            return false;
        auto &group = dice.of(plan.groups);
        return dice.coin() ? eraseOne(group, dice) : repeatOne(group, dice);
    });
    add("order of group", [](ExecutionPlan &plan, Dice &dice) {
        return !plan.groups.empty() && swapTwo(dice.of(plan.groups), dice);
    });
    add("parts of split", onSplit([](ExecutionPlan &, std::size_t, Split &split, Dice &dice) {
        split.parts = dice.near(split.parts);
        return true;
    }));
    add("parts of split and places",
        onSplit([](ExecutionPlan &plan, std::size_t op, Split &split, Dice &dice) {
            split.parts += dice.coin() ? 1 : -1;
            return fitPlaces(plan, op);
        }));
    add("kind of split", onSplit([](ExecutionPlan &, std::size_t, Split &split, Dice &dice) {
        split.kind = dice.otherKind(split.kind, 3);
        return true;
    }));
    add("dimension of split", onSplit([](ExecutionPlan &plan, std::size_t op, Split &split, Dice &dice) {
        split.dimension = dice.coin()
            ? dice.another(split.dimension, plan.graph->operators[op].annotation.dimensions.size())
            : dice.near(split.dimension);
        return split.kind == SplitKind::Dimension;
    }));
    add("sizes of split", onSplit([](ExecutionPlan &, std::size_t, Split &split, Dice &dice) {
        if (!split.sizes.empty())
            return dice.coin() ? swapTwo(split.sizes, dice) : (split.sizes.clear(), true);
        split.sizes.assign(
            static_cast<std::size_t>(split.parts), 1 + static_cast<std::int64_t>(dice.below(4)));
        return true;
    }));
    for (const SplitOver over : {SplitOver::Slices, SplitOver::Lanes})
        add(over == SplitOver::Lanes ? "split over lanes" : "split over slices",
            onSplit([over](ExecutionPlan &, std::size_t, Split &split, Dice &) {
                split.over = split.over == over ? SplitOver::Devices : over;
                return true;
            }));
    add("axis of split", onSplit([](ExecutionPlan &, std::size_t, Split &split, Dice &) {
        split.axis += "x";
        return true;
    }));
    add("split added",
        onPartition([](ExecutionPlan &plan, std::size_t op, std::vector<Split> &splits, Dice &dice) {
            Split split;
            split.kind = static_cast<SplitKind>(dice.below(3));
            split.parts = 1 + static_cast<std::int32_t>(dice.below(2));
            if (split.kind == SplitKind::Dimension)
                split.dimension = static_cast<std::int32_t>(
                    dice.below(plan.graph->operators[op].annotation.dimensions.size()));
            splits.push_back(split);
            return dice.coin() || fitPlaces(plan, op);
        }));
    add("split deleted",
        onPartition([](ExecutionPlan &plan, std::size_t op, std::vector<Split> &splits, Dice &dice) {
            if (!eraseOne(splits, dice))
                return false;
            return dice.coin() || fitPlaces(plan, op);
        }));
    add("splits swapped",
        onPartition([](ExecutionPlan &, std::size_t, std::vector<Split> &splits, Dice &dice) {
            return swapTwo(splits, dice);
        }));
    add("partitions swapped", [](ExecutionPlan &plan, Dice &dice) { return swapTwo(plan.partitions, dice); });
    add("partition deleted", [](ExecutionPlan &plan, Dice &dice) { return eraseOne(plan.partitions, dice); });
    add("place of part", [](ExecutionPlan &plan, Dice &dice) {
        auto &places = dice.of(plan.placement);
        if (places.empty())
            return false;
        DeviceId &place = dice.of(places);
        place.index = dice.coin() ? dice.another(place.index, plan.devices.size()) : dice.near(place.index);
        return true;
    });
    add("places swapped",
        [](ExecutionPlan &plan, Dice &dice) { return swapTwo(dice.of(plan.placement), dice); });
    add("number of places", [](ExecutionPlan &plan, Dice &dice) {
        auto &places = dice.of(plan.placement);
        return dice.coin() ? eraseOne(places, dice) : repeatOne(places, dice);
    });
    add("size of batch", [](ExecutionPlan &plan, Dice &dice) {
        plan.batch.size = dice.near(plan.batch.size);
        return true;
    });
    add("role of tensor in batch", [](ExecutionPlan &plan, Dice &dice) {
        BatchRole &role = dice.of(plan.batch.tensorRole);
        role = dice.otherKind(role, 5);
        return true;
    });
    add("batch dimension of tensor", [](ExecutionPlan &plan, Dice &dice) {
        std::int32_t &dimension = dice.of(plan.batch.tensorDimension);
        dimension = dice.near(dimension);
        return true;
    });
    add("batch dimension of operator", [](ExecutionPlan &plan, Dice &dice) {
        std::int32_t &dimension = dice.of(plan.batch.operatorDimension);
        dimension = dice.near(dimension);
        return true;
    });
    add("once per step", [](ExecutionPlan &plan, Dice &dice) {
        plan.batch.oncePerStep[dice.below(plan.batch.oncePerStep.size())].flip();
        return true;
    });
    add("most micro-batches", [](ExecutionPlan &plan, Dice &dice) {
        plan.batch.mostMicroBatches = dice.near(plan.batch.mostMicroBatches);
        return true;
    });
    add("whole batches", [](ExecutionPlan &plan, Dice &) {
        plan.batch.wholeBatches = !plan.batch.wholeBatches;
        return true;
    });
    add("batch of the other choice", [](ExecutionPlan &plan, Dice &) {
        plan.batch = plan.batch.wholeBatches ? analyseBatch(*plan.graph) : wholeBatchInfo(*plan.graph);
        return true;
    });
    add("nothing is cut", [](ExecutionPlan &plan, Dice &dice) {
        plan.batch = wholeBatchInfo(*plan.graph);
        plan.batch.wholeBatches = dice.coin();
        return true;
    });
    add("reason of the batch's limit", [](ExecutionPlan &plan, Dice &) {
        plan.batch.limitedBy += "x";
        return true;
    });
    add("length of batch lists", [](ExecutionPlan &plan, Dice &dice) {
        switch (dice.below(3)) {
        case 0:
            return eraseOne(plan.batch.tensorRole, dice);
        case 1:
            return eraseOne(plan.batch.tensorDimension, dice);
        default:
            return eraseOne(plan.batch.operatorDimension, dice);
        }
    });
    return list;
}

/// Mutations of the graph that a plan carries.
inline std::vector<Mutation> graphMutations()
{
    using namespace mutations;
    std::vector<Mutation> list;
    const auto add = [&list](const char *name, Edit edit) { list.push_back({name, std::move(edit)}); };
    add("mark of dimension", onOperator([](Graph &, Operator &op, Dice &dice) {
        if (op.annotation.dimensions.empty())
            return false;
        DimensionMark &mark = dice.of(op.annotation.dimensions).mark;
        mark = dice.otherKind(mark, 3);
        return true;
    }));
    add("size of dimension", onOperator([](Graph &, Operator &op, Dice &dice) {
        if (op.annotation.dimensions.empty())
            return false;
        std::int64_t &size = dice.of(op.annotation.dimensions).size;
        size = dice.near(size);
        return true;
    }));
    add("terms of annotation", onOperator([](Graph &, Operator &op, Dice &dice) {
        auto &slots = dice.coin() ? op.annotation.inputs : op.annotation.outputs;
        return !slots.empty() && swapTwo(dice.of(slots).terms, dice);
    }));
    add("linear inputs", onOperator([](Graph &, Operator &op, Dice &dice) {
        if (!op.annotation.linearInputs.empty() && dice.coin())
            return eraseOne(op.annotation.linearInputs, dice);
        op.annotation.linearInputs.push_back(static_cast<std::int32_t>(dice.below(op.inputs.size())));
        return true;
    }));
    add("direction", onOperator([](Graph &, Operator &op, Dice &dice) {
        op.direction = dice.otherKind(op.direction, 3);
        return true;
    }));
    add("mirror", onOperator([](Graph &graph, Operator &op, Dice &dice) {
        op.mirror.index = dice.another(op.mirror.index, graph.operators.size());
        return true;
    }));
    add("operator's input", onOperator([](Graph &graph, Operator &op, Dice &dice) {
        return rewire(op.inputs, graph.tensors.size(), dice);
    }));
    add("operator's output", onOperator([](Graph &graph, Operator &op, Dice &dice) {
        return rewire(op.outputs, graph.tensors.size(), dice);
    }));
    add("operators swapped",
        onGraph([](Graph &graph, Dice &dice) { return swapTwo(graph.operators, dice); }));
    add("name of operator", onOperator([](Graph &, Operator &op, Dice &) {
        op.name += ".x";
        return true;
    }));
    add("scope", onOperator([](Graph &graph, Operator &op, Dice &dice) {
        op.scope.index = dice.another(op.scope.index, graph.scopes.size());
        return true;
    }));
    add("data type of tensor", onTensor([](Graph &, Tensor &tensor, Dice &dice) {
        tensor.type.dataType = dice.coin() ? DataType::Float64 : DataType::Int64;
        return true;
    }));
    add("shape of tensor", onTensor([](Graph &, Tensor &tensor, Dice &dice) {
        if (tensor.type.shape.empty())
            return false;
        std::int64_t &extent = tensor.type.shape[dice.below(tensor.type.shape.size())];
        extent = dice.near(extent);
        return true;
    }));
    add("role of tensor", onTensor([](Graph &, Tensor &tensor, Dice &dice) {
        tensor.role = dice.otherKind(tensor.role, 6);
        return true;
    }));
    add("what a tensor belongs to", onTensor([](Graph &graph, Tensor &tensor, Dice &dice) {
        tensor.of.index = dice.below(3) == 0 ? -1 : dice.another(tensor.of.index, graph.tensors.size());
        return true;
    }));
    add("name of tensor", onTensor([](Graph &, Tensor &tensor, Dice &) {
        tensor.name += ".x";
        return true;
    }));
    add("loss", onGraph([](Graph &graph, Dice &dice) {
        graph.loss.index = dice.below(4) == 0 ? -1 : dice.another(graph.loss.index, graph.tensors.size());
        return true;
    }));
    add("inputs of graph", onGraph([](Graph &graph, Dice &dice) {
        return dice.coin() ? eraseOne(graph.inputs, dice) : swapTwo(graph.inputs, dice);
    }));
    add("outputs of graph", onGraph([](Graph &graph, Dice &dice) {
        if (dice.coin())
            return eraseOne(graph.outputs, dice);
        graph.outputs.push_back(TensorId{static_cast<std::int32_t>(dice.below(graph.tensors.size()))});
        return true;
    }));
    return list;
}

} // namespace planloom
