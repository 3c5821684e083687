#pragma once

#include "engine/plan/complete.h"
#include "engine/table/table.h"

#include <cstdint>
#include <random>

namespace planloom {

/// How wild `randomTable` may be.
struct RandomTableOptions {
    double touched = 0.5; ///< Share of the forward operators that get a split and a place of their own.
    bool recompute = true;
    bool orders = true;
    bool precisions = false; ///< Rows of number formats, which change the numbers.
};

/// A table of arbitrary rows for `graph` on `devices` devices: splits along any dimension (even, uneven,
/// nested, replicas, summands), any placement with several parts per device, micro-batches, schedules,
/// recomputation, sharded optimizers, orders. Most tables are accepted; the rest must be refused with a
/// reason.
inline ConstraintTable randomTable(
    const Graph &graph, std::int32_t devices, std::mt19937 &random, const RandomTableOptions &options = {})
{
    const auto below = [&random](std::int64_t n) {
        return std::uniform_int_distribution<std::int64_t>(0, std::max<std::int64_t>(n - 1, 0))(random);
    };
    const auto chance = [&random](double p) { return std::bernoulli_distribution(p)(random); };
    ConstraintTable table;
    const auto add = [&table](Selector selector, Rule rule) {
        table.rows.push_back(Row{.selector = std::move(selector), .rule = std::move(rule)});
    };

    std::vector<const Operator *> forward;
    for (const Operator &op : graph.operators)
        if (op.direction == Direction::Forward)
            forward.push_back(&op);
    std::int32_t microBatches = 1;
    const std::int64_t most = analyseBatch(graph).mostMicroBatches;
    if (most > 1 && chance(0.4)) {
        std::vector<std::int32_t> counts;
        for (std::int32_t m = 2; m <= std::min<std::int64_t>(most, 8); ++m)
            if (most % m == 0)
                counts.push_back(m);
        if (!counts.empty()) {
            microBatches = counts[static_cast<std::size_t>(below(static_cast<std::int64_t>(counts.size())))];
            add(selectAll(), MicroBatchesRule{microBatches});
        }
    }
    if (chance(0.5))
        add(selectAll(),
            ScheduleRule{chance(0.1) ? ScheduleKind::ZeroBubbleH1
                    : chance(0.1)    ? ScheduleKind::CombinedOneFOneB
                                     : static_cast<ScheduleKind>(below(3))});

    // Either devices are dealt out anyhow, or contiguous runs of operators share a set of devices.
    const bool anyhow = chance(0.5);
    std::vector<DeviceId> run;
    for (const Operator *op : forward) {
        if (run.empty() || anyhow || chance(0.1)) {
            run.clear();
            const std::int64_t count = 1 + below(devices);
            for (std::int64_t i = 0; i < count; ++i)
                run.push_back(DeviceId{static_cast<std::int32_t>(below(devices))});
        }
        if (!chance(options.touched))
            continue;
        OpTransRule trans;
        std::int64_t parts = 1;
        std::vector<std::int64_t> left;
        for (const Dimension &dimension : op->annotation.dimensions)
            left.push_back(dimension.size);
        const auto splittable = splittableDimensions(op->annotation);
        for (int step = 0; step < 2 && parts <= 4; ++step) {
            if (!chance(step == 0 ? 0.8 : 0.3))
                continue;
            SplitStep split;
            const double kind = std::uniform_real_distribution<double>(0, 1)(random);
            if (kind < 0.65 && !splittable.empty()) {
                const auto d = static_cast<std::size_t>(splittable[static_cast<std::size_t>(
                    below(static_cast<std::int64_t>(splittable.size())))]);
                std::vector<std::int32_t> counts;
                for (std::int32_t k = 2; k <= 4; ++k)
                    if (left[d] % k == 0)
                        counts.push_back(k);
                split.dimension.name = op->annotation.dimensions[d].name;
                if (left[d] >= 3 && step == 0 && (counts.empty() || chance(0.25))) {
                    const std::int64_t first = 1 + below(left[d] - 1);
                    split.sizes = {first, left[d] - first};
                    split.parts = 2;
                    left[d] = 1; // no nested split of uneven parts
                } else if (!counts.empty()) {
                    split.parts =
                        counts[static_cast<std::size_t>(below(static_cast<std::int64_t>(counts.size())))];
                    left[d] /= split.parts;
                } else {
                    continue;
                }
            } else if (kind < 0.85) {
                split.kind = SplitKind::Replicate;
                split.parts = 2;
            } else if (!op->annotation.linearInputs.empty()) {
                split.kind = SplitKind::Value;
                split.parts = 2;
            } else {
                continue;
            }
            parts *= split.parts;
            trans.steps.push_back(std::move(split));
        }
        const Selector self = selectSet({op->name});
        if (!trans.steps.empty())
            add(self, trans);
        std::vector<DeviceId> places = run;
        if (anyhow || chance(0.3)) {
            places.clear();
            for (std::int64_t i = 0; i < parts; ++i)
                places.push_back(DeviceId{static_cast<std::int32_t>(below(devices))});
        } else {
            while (static_cast<std::int64_t>(places.size()) > 1
                && parts % static_cast<std::int64_t>(places.size()) != 0
                && static_cast<std::int64_t>(places.size()) % parts != 0)
                places.pop_back();
        }
        add(self, OpAssignRule{.devices = std::move(places)});
    }
    if (chance(0.15)) { // slices along the sequence: of all, or of some operators
        std::vector<std::string> names;
        for (const Operator *op : forward)
            if (chance(0.9))
                names.push_back(op->name);
        add(names.empty() || chance(0.6) ? selectAll() : selectSet(std::move(names)),
            SliceRule{{.kind = DimensionRef::Kind::Meaning, .meaning = DimensionMeaning::Sequence},
                chance(0.7) ? 2 : 4});
    }
    if (options.recompute && chance(0.4)) {
        std::vector<std::string> names;
        for (const Operator *op : forward)
            if (chance(0.3))
                names.push_back(op->name);
        if (!names.empty())
            add(selectSet(std::move(names)), RecomputeRule{static_cast<RecomputePer>(below(3))});
    }
    if (chance(0.4)) {
        OptimizerShardingRule sharding{.stage = 1 + static_cast<std::int32_t>(below(3))};
        if (sharding.stage == 3) {
            sharding.keep = chance(0.5);
            sharding.prefetch = static_cast<std::int32_t>(below(3));
        }
        add(selectAll(), sharding);
    }
    if (chance(0.3)) { // everywhere, or of some operators
        std::vector<std::string> names;
        for (const Operator *op : forward)
            if (chance(0.5))
                names.push_back(op->name);
        add(names.empty() || chance(0.5) ? selectAll() : selectSet(std::move(names)), SplitBackwardRule{});
    }
    if (options.orders && chance(0.3) && forward.size() > 2) {
        const auto a = below(static_cast<std::int64_t>(forward.size()));
        const auto b = below(static_cast<std::int64_t>(forward.size()));
        OpOrderRule order{selectSet({forward[static_cast<std::size_t>(b)]->name})};
        if (microBatches > 1 && chance(0.3)) { // of one micro-batch
            order.microBatchOffset = static_cast<std::int32_t>(below(2));
            order.microBatch = static_cast<std::int32_t>(below(microBatches - order.microBatchOffset));
        } else {
            order.microBatchOffset = static_cast<std::int32_t>(below(3)) - 1;
        }
        if (a != b)
            add(selectSet({forward[static_cast<std::size_t>(a)]->name}), order);
    }
    if (options.orders && chance(0.2) && forward.size() > 4) {
        // A few before a few others, behind them in the graph: all with all.
        std::vector<std::string> first;
        std::vector<std::string> second;
        for (std::size_t i = 0; i < forward.size(); ++i)
            if (chance(0.4) && forward[i]->name.rfind("loss.", 0) != 0) // which may run once per step, first
                (i < forward.size() / 2 ? first : second).push_back(forward[i]->name);
        if (!first.empty() && !second.empty())
            add(selectSet(std::move(first)), OpOrderRule{selectSet(std::move(second))});
    }
    if (options.orders && chance(0.3))
        add(selectAll(), InFlightRule{1 + static_cast<std::int32_t>(below(3)), chance(0.7) ? -1 : 0});
    if (options.precisions) {
        if (chance(0.8))
            add(selectAll(),
                PrecisionRule{.preset = kAllPrecisionPresets[static_cast<std::size_t>(
                                  below(static_cast<std::int64_t>(kAllPrecisionPresets.size())))]});
        constexpr std::array kTypes{DataType::Float32, DataType::BFloat16, DataType::Float16};
        const auto type = [&] { return kTypes[static_cast<std::size_t>(below(3))]; };
        if (chance(0.4))
            add(selectAll(), PrecisionRule{.gradient = type(), .reduction = type(), .optimizer = type()});
        std::array<std::vector<std::string>, 3> names;
        for (const Operator *op : forward)
            if (chance(0.4))
                names[static_cast<std::size_t>(below(3))].push_back(op->name);
        for (std::size_t i = 0; i < names.size(); ++i)
            if (!names[i].empty())
                add(selectSet(std::move(names[i])), PrecisionRule{.storage = kTypes[i]});
    }
    if (chance(0.1))
        add(selectAll(), LimitRule{LimitRule::Kind::Memory, 1 + below(1 << 30)});
    if (chance(0.3))
        add(selectAll(), AttentionRule{chance(0.8) ? AttentionMode::Plain : AttentionMode::Fused});
    if (chance(0.25))
        add(selectAll(), OffloadRule{OffloadedKind::States});
    if (chance(0.25)) {
        std::vector<std::string> names;
        for (const Operator *op : forward)
            if (chance(0.5))
                names.push_back(op->name);
        if (!names.empty())
            add(selectSet(std::move(names)), OffloadRule{OffloadedKind::Activations});
    }
    return table;
}

} // namespace planloom
