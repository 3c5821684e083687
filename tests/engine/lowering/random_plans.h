#pragma once

#include "engine/hardware/cluster.h"
#include "engine/lowering/lower.h"
#include "engine/plan/complete.h"
#include "engine/table/table_text.h"
#include "tests/engine/lowering/random_tables.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace planloom {

/// What a table is carried out with.
struct RandomCase {
    std::int32_t devices = 1;
    Cluster cluster{};
    UseUnits units = UseUnits::Never;
    ConstraintTable table{};
};

/// Nodes of 1 to 8 devices, at times every second one of another class.
inline Cluster randomCluster(std::int32_t devices, std::mt19937 &random)
{
    Cluster cluster = *clusterNamed("dgx-a100:" + std::to_string(devices));
    cluster.links.devicesPerNode = 1 << random() % 4;
    if (random() % 3 == 0) {
        const Cluster other = *clusterNamed("dgx-h100:1");
        DeviceClass fast{.device = other.device, .links = other.links, .where = {{1, 1, 2}}};
        fast.links.devicesPerNode = cluster.links.devicesPerNode;
        cluster.otherClasses.push_back(std::move(fast));
    }
    return cluster;
}

/// The case of a seed: the same on every machine.
inline RandomCase randomCase(const Graph &graph, std::uint32_t seed, RandomTableOptions options)
{
    std::mt19937 random(seed);
    RandomCase made;
    options.touched *= std::array{0.3, 1.0, 3.0}[random() % 3];
    made.devices = 1 + static_cast<std::int32_t>(random() % 8);
    made.cluster = randomCluster(made.devices, random);
    made.units = random() % 2 == 0 ? UseUnits::WherePossible : UseUnits::Never;
    made.table = randomTable(graph, made.devices, random, options);
    return made;
}

/// A case as far as it goes: refused with a reason, or lowered.
struct RandomOutcome {
    Plan plan{};
    std::optional<ExecutionPlan> lowered{};
    std::string refusedFor{}; ///< The kind of row that cannot hold, or why nothing could be lowered.
};

/// Expects that what is refused is so for a reason that says where, and that nothing breaks.
inline RandomOutcome carryOut(const Model &model, const RandomCase &made)
{
    const Cluster &cluster = made.cluster;
    const auto completion = completePlan(model, made.devices, made.table,
        {.units = made.units,
            .alike = [&cluster](const ScaleUnits &units) { return unitsAlike(cluster, units); }});
    EXPECT_TRUE(completion) << describe(completion.error());
    if (!completion)
        return {};
    if (const auto error = firstError(*completion)) {
        EXPECT_FALSE(error->message.empty());
        EXPECT_FALSE(error->where.empty()) << error->message;
        for (std::size_t r = 0; r < completion->rows.size(); ++r)
            if (completion->rows[r].error)
                return {{}, std::nullopt,
                    std::string("row ") + nameOf(made.table.rows[r].rule) + ": " + error->message};
        return {};
    }
    auto plan = lower(completion->plan, cluster);
    if (!plan) {
        EXPECT_NE(plan.error().code, ErrorCode::Internal) << describe(plan.error());
        EXPECT_FALSE(plan.error().message.empty());
        return {completion->plan, std::nullopt, plan.error().message};
    }
    return {completion->plan, *std::move(plan), {}};
}

/// Whether the splits over axes of the mesh come in its order.
inline bool isNestedAsTheMesh(const ConstraintTable &table, const Partition &partition)
{
    std::size_t least = 0;
    for (const Row &row : table.rows)
        if (const auto *mesh = std::get_if<MeshRule>(&row.rule))
            for (const Split &split : partition.splits)
                if (!split.axis.empty()
                    && meshPosition(mesh->axes, split.axis)
                        < std::exchange(least, meshPosition(mesh->axes, split.axis)))
                    return false;
    return true;
}

/// What is particular about a plan that was carried out, as words: for counting.
inline std::set<std::string> traitsOf(const RandomCase &made, const RandomOutcome &outcome)
{
    std::set<std::string> traits;
    for (const Row &row : made.table.rows) {
        if (!row.enabled)
            continue;
        traits.insert("row " + std::string(nameOf(row.rule)));
        if (row.preference > 0)
            traits.insert("preference");
        if (const auto *sharding = std::get_if<OptimizerShardingRule>(&row.rule)) {
            if (!sharding->axis.empty())
                traits.insert("zero over an axis");
            if (!sharding->moreAxes.empty())
                traits.insert("zero over several axes");
            if (sharding->parts > 0)
                traits.insert("zero by a number");
        }
    }
    const Plan &plan = outcome.plan;
    const ExecutionPlan &lowered = *outcome.lowered;
    if (plan.microBatches > 1)
        traits.insert(std::string("schedule ") + nameOf(plan.schedule));
    if (plan.units.count > 1)
        traits.insert("units");
    if (plan.wholeBatches)
        traits.insert("whole batches");
    if (!made.cluster.otherClasses.empty() && made.devices > 1)
        traits.insert("device classes");
    std::map<DeviceId, std::set<std::int32_t>> stages;
    std::map<std::int32_t, std::set<std::string>> ofRegion; // what else acts on a region's operators
    for (std::size_t o = 0; o < plan.decisions.size(); ++o) {
        const OperatorDecision &decision = plan.decisions[o];
        const Operator &op = plan.graph->operators[o];
        if (op.direction == Direction::Optimizer) {
            if (decision.sharding.stage > 0)
                traits.insert("sharding stage " + std::to_string(decision.sharding.stage));
            if (decision.sharding.stage == 3)
                traits.insert(decision.sharding.keep ? "sharding keeps" : "sharding gathers again");
            if (decision.offloaded)
                traits.insert("offloaded states");
            continue;
        }
        for (const DeviceId device : decision.devices)
            stages[device].insert(decision.stage.index);
        if (decision.offloaded)
            traits.insert("offloaded activations");
        if (op.direction == Direction::Forward && decision.splitBackward)
            traits.insert("split backward");
        if (!isNestedAsTheMesh(made.table, decision.partition))
            traits.insert("axes nested otherwise than in the mesh");
        if (decision.coshardRegion < 0 || op.direction != Direction::Forward)
            continue;
        traits.insert("coshard region");
        for (std::size_t slot = 0; slot < op.outputs.size(); ++slot)
            if (op.outputs[slot] && outputView(*plan.graph, op, decision.partition, 0, slot).value.count > 1)
                traits.insert("coshard region by value");
    }
    for (const auto &[device, own] : stages)
        if (own.size() > 1)
            traits.insert("several stages on a device");
    for (const DeviceProgram &device : lowered.devices) {
        for (const Segment &segment : device.segments)
            for (const Instruction &instruction : segment.instructions) {
                traits.insert(std::string("instruction ") + nameOf(instruction.kind));
                if (instruction.joined)
                    traits.insert("joined");
                if (instruction.overlaps)
                    traits.insert("overlaps");
                if (instruction.waits)
                    traits.insert("waits");
                if (instruction.acrossUnits)
                    traits.insert("across units");
            }
        for (const ScheduleEntry &entry : device.schedule)
            if (entry.begin > 0)
                traits.insert("slices of entries");
    }
    return traits;
}

/// How many plans had each trait.
class TraitCount
{
public:
    void refused(const std::string &reason)
    {
        ++m_refused;
        ++m_reasons[reason];
    }
    void add(const std::set<std::string> &traits)
    {
        ++m_accepted;
        for (const std::string &trait : traits)
            ++m_count[trait];
    }
    int accepted() const { return m_accepted; }
    int refusedCount() const { return m_refused; }
    int of(const std::string &trait) const
    {
        const auto found = m_count.find(trait);
        return found == m_count.end() ? 0 : found->second;
    }
    void print(const char *title) const
    {
        std::printf("%s: %d carried out, %d refused\n", title, m_accepted, m_refused);
        for (const auto &[trait, count] : m_count)
            std::printf("    %-32s %d\n", trait.c_str(), count);
        for (const auto &[reason, count] : m_reasons)
            std::printf("    refused: %4d %s\n", count, reason.c_str());
    }

private:
    int m_accepted = 0;
    int m_refused = 0;
    std::map<std::string, int> m_count{};
    std::map<std::string, int> m_reasons{};
};

} // namespace planloom
