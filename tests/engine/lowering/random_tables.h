#pragma once

#include "engine/graph/dimensions/batch.h"
#include "tests/engine/lowering/random_placement.h"

#include <array>

namespace planloom {

/// Draws a table: how operators are split and placed (random_placement.h), then each kind of row that says
/// more about the plan. A new kind is a `draw` of its own here.
class TableDraw
{
public:
    TableDraw(
        const Graph &graph, std::int32_t devices, std::mt19937 &random, const RandomTableOptions &options)
        : m_graph(graph)
        , m_options(options)
        , m_dice(graph, random)
        , m_lateRandom(random)
        , m_placement(m_dice, devices, options)
        , m_forward(m_dice.forward())
    {
    }

    ConstraintTable draw()
    {
        drawMicroBatches();
        m_placement.draw(m_table);
        drawSchedule();
        drawCoshard();
        drawSlices();
        if (m_options.recompute)
            drawRecompute();
        drawSharding();
        drawUpdates();
        drawSplitBackward();
        if (m_options.orders) {
            drawOrderOfTwo();
            drawOrderOfMany();
            drawOrderOfBlocks();
            drawInFlight();
            drawCommunication();
            drawInterleaving();
        }
        if (m_options.weightVersions)
            drawWeightVersions();
        if (m_options.precisions)
            drawPrecision();
        drawLimit();
        drawAttention();
        drawRing();
        drawOffload();
        drawOverlap();
        drawPreferences();
        drawZigzag();
        drawGroups();
        drawExchangeOfHeads();
        return std::move(m_table);
    }

private:
    void add(Selector selector, Rule rule)
    {
        m_table.rows.push_back(Row{.selector = std::move(selector), .rule = std::move(rule)});
    }

    void drawMicroBatches()
    {
        const std::int64_t most = m_dice.batch().mostMicroBatches;
        if (m_dice.chance(0.4))
            return;
        std::vector<std::int32_t> counts;
        for (std::int32_t m = 2; m <= std::min<std::int64_t>(most, 8); ++m)
            if (most % m == 0)
                counts.push_back(m);
        const bool whole = m_options.wholeBatches && m_dice.chance(0.2);
        if (!whole && counts.empty())
            return;
        const std::int32_t count = whole ? m_dice.number(2, 4) : m_dice.of(counts);
        m_dice.cutBatch(count, whole);
        std::vector<std::int32_t> every{0};
        for (std::int32_t k = 1; k < count && m_options.weightVersions; ++k)
            if (count % k == 0)
                every.push_back(k);
        add(selectAll(), MicroBatchesRule{count, whole, m_dice.of(every)});
    }

    /// One that fits the stages, or sometimes any.
    void drawSchedule()
    {
        using enum ScheduleKind;
        if (m_placement.isBidirectional() && (!m_placement.hasLanes() || m_dice.chance(0.6))) {
            add(selectAll(), ScheduleRule{Chimera});
            return;
        }
        if (m_dice.chance(m_placement.stages().empty() ? 0.5 : 0.2))
            return;
        std::vector<ScheduleKind> fitting{Sequential, GPipe, OneFOneB};
        if (m_placement.isOneStageEach())
            fitting.insert(fitting.end(), {CombinedOneFOneB, ZeroBubbleH1});
        if (m_placement.stagesPerRank() > 1 && m_dice.microBatches() % m_placement.ranks() == 0)
            fitting.insert(fitting.end(), 3, Interleaved);
        add(selectAll(), ScheduleRule{m_dice.chance(0.05) ? m_dice.of(kAllSchedules) : m_dice.of(fitting)});
    }

    /// Regions along what dimensions mean, and single operators along any of theirs: what is summed over,
    /// too.
    void drawCoshard()
    {
        if (!m_dice.chance(0.35))
            return;
        if (m_dice.chance(0.7)) {
            const auto meant = m_dice.meant();
            const auto parts = meant ? m_dice.partsOf(meant->extent) : std::nullopt;
            if (parts)
                add(m_dice.chance(0.4)
                        ? selectAll()
                        : selectSet(m_dice.neighbours(std::max<std::size_t>(m_forward.size() / 2, 1))),
                    CoshardRule{meant->dimension, *parts, m_dice.chance(0.3)});
            return;
        }
        for (const Operator *op : m_forward) {
            if (!m_dice.chance(0.1))
                continue;
            const auto splittable = splittableDimensions(op->annotation);
            if (splittable.empty())
                continue;
            const auto dimension = static_cast<std::size_t>(m_dice.of(splittable));
            if (const auto parts = m_dice.partsOf(m_dice.extentsOf(*op)[dimension]))
                add(selectSet({op->name}),
                    CoshardRule{{.name = op->annotation.dimensions[dimension].name}, *parts});
        }
    }

    /// Along the sequence: of all, or of most operators.
    void drawSlices()
    {
        if (!m_dice.chance(0.06))
            return;
        auto names = m_dice.some(0.9);
        add(names.empty() || m_dice.chance(0.6) ? selectAll() : selectSet(std::move(names)),
            SliceRule{{.kind = DimensionRef::Kind::Meaning, .meaning = DimensionMeaning::Sequence},
                m_dice.chance(0.7) ? 2 : 4});
    }

    /// Two blocks of a stage, or of every stage, side by side.
    void drawInterleaving()
    {
        if (m_dice.microBatches() < 2 || !m_dice.chance(0.1))
            return;
        InterleaveRule rule;
        rule.microBatchOffset = m_dice.number(-1, 1);
        if (m_placement.hasLanes() && m_dice.chance(0.5)) {
            rule.lane = m_dice.number(-1, 1);
            rule.secondLane = m_dice.number(-1, 1);
        }
        add(selectAll(), rule);
    }

    void drawRecompute()
    {
        if (!m_dice.chance(0.4))
            return;
        auto names = m_dice.some(0.3);
        if (!names.empty())
            add(selectSet(std::move(names)), RecomputeRule{static_cast<RecomputePer>(m_dice.below(3))});
    }

    OptimizerShardingRule anySharding()
    {
        OptimizerShardingRule sharding{.stage = m_dice.number(1, 3)};
        if (sharding.stage == 3) {
            sharding.keep = m_dice.chance(0.5);
            sharding.prefetch = m_dice.number(0, 2);
        }
        if (!m_placement.axes().empty() && m_dice.chance(0.6)) {
            sharding.axis = m_dice.of(m_placement.axes()).name;
        } else if (m_dice.chance(0.15))
            sharding.parts = m_dice.number(2, 3);
        return sharding;
    }
    void drawSharding()
    {
        if (!m_dice.chance(0.4))
            return;
        if (m_dice.chance(0.7) || m_forward.size() < 2) {
            add(m_dice.chance(0.5) ? selectAll() : Selector{.kind = SelectorKind::Weight, .text = "*"},
                anySharding());
            return;
        }
        std::vector<std::string> updates; // those of two halves of the weights, each its own
        for (const Operator &op : m_graph.operators)
            if (op.direction == Direction::Optimizer)
                updates.push_back(op.name);
        if (updates.size() < 2)
            return;
        const auto middle = updates.begin() + m_dice.number(1, static_cast<std::int32_t>(updates.size()) - 1);
        add(selectSet({updates.begin(), middle}), anySharding());
        if (m_dice.chance(0.7))
            add(selectSet({middle, updates.end()}), anySharding());
    }

    /// Splits and places of single updates, which are otherwise as the optimizer rule makes them.
    void drawUpdates()
    {
        if (!m_dice.chance(0.1))
            return;
        for (const Operator &op : m_graph.operators)
            if (op.direction == Direction::Optimizer && m_dice.chance(0.1))
                m_placement.drawPlaced(op, m_table);
    }

    void drawSplitBackward()
    {
        if (m_dice.chance(0.3))
            add(m_dice.selector(), SplitBackwardRule{});
    }

    /// One operator before another, mostly one that stands behind it in the graph.
    void drawOrderOfTwo()
    {
        if (!m_dice.chance(0.3))
            return;
        const bool ofSteps = m_dice.chance(0.05); // what runs once per step, and mostly cannot be moved
        const bool anyDirection = m_dice.chance(0.3);
        std::vector<std::string> names;
        for (const Operator &op : m_graph.operators)
            if ((ofSteps || !m_dice.isOncePerStep(op))
                && (anyDirection || op.direction == Direction::Forward))
                names.push_back(op.name);
        if (names.size() < 2)
            return;
        auto a = static_cast<std::size_t>(m_dice.below(static_cast<std::int64_t>(names.size())));
        auto b = static_cast<std::size_t>(m_dice.below(static_cast<std::int64_t>(names.size())));
        if (a > b && m_dice.chance(0.6))
            std::swap(a, b);
        OpOrderRule order{selectSet({names[b]})};
        if (m_dice.microBatches() > 1 && m_dice.chance(0.3)) { // of one micro-batch
            order.microBatchOffset = m_dice.number(0, 1);
            order.microBatch = m_dice.number(0, m_dice.microBatches() - order.microBatchOffset - 1);
        } else {
            order.microBatchOffset = m_dice.number(-1, 1);
        }
        if (a != b)
            add(selectSet({names[a]}), order);
    }

    /// A few before a few others, behind them in the graph: all with all.
    void drawOrderOfMany()
    {
        if (!m_dice.chance(0.2) || m_forward.size() < 5)
            return;
        std::vector<std::string> first;
        std::vector<std::string> second;
        for (std::size_t i = 0; i < m_forward.size(); ++i)
            if (m_dice.chance(0.4) && !m_dice.isOncePerStep(*m_forward[i]))
                (i < m_forward.size() / 2 ? first : second).push_back(m_forward[i]->name);
        if (!first.empty() && !second.empty())
            add(selectSet(std::move(first)), OpOrderRule{selectSet(std::move(second))});
    }

    /// One pass of a stage before one of another, or of a later micro-batch.
    void drawOrderOfBlocks()
    {
        if (m_placement.stages().empty() || !m_dice.chance(0.25))
            return;
        const auto block = [&] {
            Selector both{.kind = SelectorKind::And};
            both.children = {selectSet(m_dice.of(m_placement.stages())),
                selectDirection(m_dice.chance(0.5) ? Direction::Forward : Direction::Backward)};
            return both;
        };
        const Selector first = block();
        OpOrderRule order{block()};
        order.microBatchOffset = m_dice.number(-1, m_dice.microBatches() - 1);
        if (m_dice.microBatches() > 1 && order.microBatchOffset >= 0 && m_dice.chance(0.6))
            order.microBatch = m_dice.number(0, m_dice.microBatches() - order.microBatchOffset - 1);
        if (m_placement.hasLanes() && m_dice.chance(0.7)) {
            order.part.lane = m_dice.number(-1, 1);
            order.secondPart.lane = m_dice.number(-1, 1);
        }
        add(first, order);
    }

    void drawInFlight()
    {
        if (!m_dice.chance(0.3))
            return;
        const auto stages = static_cast<std::int32_t>(m_placement.stages().size());
        add(selectAll(),
            InFlightRule{
                m_dice.number(1, 3), m_dice.chance(0.7) ? -1 : m_dice.number(0, std::max(stages - 1, 0))});
    }

    void drawPrecision()
    {
        if (m_dice.chance(0.8))
            add(selectAll(), PrecisionRule{.preset = m_dice.of(kAllPrecisionPresets)});
        constexpr std::array kTypes{DataType::Float32, DataType::BFloat16, DataType::Float16};
        if (m_dice.chance(0.4))
            add(selectAll(),
                PrecisionRule{.gradient = m_dice.of(kTypes),
                    .reduction = m_dice.of(kTypes),
                    .optimizer = m_dice.of(kTypes)});
        std::array<std::vector<std::string>, 3> names;
        for (const Operator *op : m_forward)
            if (m_dice.chance(0.4))
                names[static_cast<std::size_t>(m_dice.below(3))].push_back(op->name);
        for (std::size_t i = 0; i < names.size(); ++i)
            if (!names[i].empty())
                add(selectSet(std::move(names[i])), PrecisionRule{.storage = kTypes[i]});
    }

    void drawLimit()
    {
        if (m_dice.chance(0.1))
            add(selectAll(), LimitRule{LimitRule::Kind::Memory, 1 + m_dice.below(1 << 30)});
    }

    void drawAttention()
    {
        if (m_dice.chance(0.3))
            add(m_dice.selector(),
                AttentionRule{m_dice.chance(0.8) ? AttentionMode::Plain : AttentionMode::Fused});
    }

    /// Attentions over an axis of the mesh along whose sequences they are cut.
    void drawRing()
    {
        if (m_placement.axes().empty() || !m_dice.chance(0.1))
            return;
        const std::string axis = m_dice.of(m_placement.axes()).name;
        const Selector attentions{.kind = SelectorKind::Kind, .text = "Attention"};
        if (m_dice.chance(0.7))
            add(attentions,
                OpTransRule{{{.kind = SplitKind::Dimension,
                    .dimension = {.kind = DimensionRef::Kind::Meaning, .meaning = DimensionMeaning::Sequence},
                    .parts = 0,
                    .sizes = {},
                    .axis = axis}}});
        add(attentions, RingRule{axis});
    }

    /// The whole sequence over an axis, its first and last part on one device.
    void drawZigzag()
    {
        if (m_placement.axes().empty() || !m_late.chance(0.1))
            return;
        add(selectAll(),
            OpTransRule{{{.kind = SplitKind::Dimension,
                .dimension = {.kind = DimensionRef::Kind::Meaning, .meaning = DimensionMeaning::Sequence},
                .parts = 0,
                .sizes = {},
                .axis = m_late.of(m_placement.axes()).name,
                .zigzag = true}}});
    }

    /// Replicas along further axes share as one group.
    void drawGroups()
    {
        for (Row &row : m_table.rows)
            if (auto *sharding = std::get_if<OptimizerShardingRule>(&row.rule);
                sharding && !sharding->axis.empty())
                for (const MeshAxis &axis : m_placement.axes())
                    if (axis.name != sharding->axis && m_late.chance(0.4))
                        sharding->moreAxes.push_back(axis.name);
    }

    /// Heads of attentions over an axis along which the sequence is cut elsewhere; over another one, where
    /// there is one, the products before them may be cut by heads.
    void drawExchangeOfHeads()
    {
        const auto &axes = m_placement.axes();
        if (axes.empty() || !m_late.chance(0.1))
            return;
        const std::string axis = m_late.of(axes).name;
        const std::string other = m_late.of(axes).name;
        const Selector attentions{.kind = SelectorKind::Kind, .text = "Attention"};
        const auto over = [](DimensionMeaning meaning, const std::string &along) {
            return OpTransRule{{{.kind = SplitKind::Dimension,
                .dimension = {.kind = DimensionRef::Kind::Meaning, .meaning = meaning},
                .parts = 0,
                .sizes = {},
                .axis = along}}};
        };
        const Selector others{.kind = SelectorKind::Not, .children = {attentions}};
        add(attentions, over(DimensionMeaning::Heads, axis));
        add(others, over(DimensionMeaning::Sequence, axis));
        if (other != axis)
            add(others, over(DimensionMeaning::Heads, other));
    }

    void drawWeightVersions()
    {
        if (!m_dice.chance(0.8))
            return;
        if (m_dice.chance(0.3)) {
            add(selectAll(), WeightVersionsRule{m_dice.number(1, 4)});
            return;
        }
        std::array<std::vector<std::string>, 2> names;
        for (const Operator *op : m_forward)
            if (const std::int64_t group = m_dice.below(3); group < 2)
                names[static_cast<std::size_t>(group)].push_back(op->name);
        for (std::vector<std::string> &some : names)
            if (!some.empty())
                add(selectSet(std::move(some)), WeightVersionsRule{m_dice.number(1, 4)});
    }

    /// What some operators communicate, after or before what another one computes.
    void drawCommunication()
    {
        if (!m_dice.chance(0.1))
            return;
        CommunicateRule rule;
        rule.part = m_dice.of(
            std::array{CommunicationPart::Sends, CommunicationPart::Reductions, CommunicationPart::Gathers});
        rule.before = m_dice.chance(0.3);
        const auto ofDirection = [&](Selector selector) {
            if (m_dice.chance(0.5))
                return selector;
            return Selector{.kind = SelectorKind::And,
                .children = {std::move(selector),
                    {.kind = SelectorKind::Direction, .direction = Direction::Backward}}};
        };
        rule.second = ofDirection(selectSet(m_dice.neighbours(3)));
        add(ofDirection(selectSet(m_dice.neighbours(3))), std::move(rule));
    }

    void drawOffload()
    {
        for (const OffloadedKind what : {OffloadedKind::States, OffloadedKind::Activations})
            if (m_dice.chance(0.25))
                add(m_dice.selector(), OffloadRule{what});
    }

    void drawOverlap()
    {
        if (m_dice.chance(0.25))
            add(selectAll(),
                OverlapRule{m_dice.chance(0.8) ? CollectiveOverlap::Tensor : CollectiveOverlap::None});
    }

    /// Rows that hold where they can, and rows that are switched off.
    void drawPreferences()
    {
        if (!m_dice.chance(0.15))
            return;
        for (Row &row : m_table.rows) {
            if (m_dice.chance(0.1))
                row.enabled = false;
            else if (m_dice.chance(0.15))
                row.preference = m_dice.number(1, 9);
        }
    }

    const Graph &m_graph;
    const RandomTableOptions &m_options;
    TableDice m_dice;
    std::mt19937 m_lateRandom; ///< What is drawn last leaves the rest as it would be.
    TableDice m_late{m_graph, m_lateRandom};
    RandomPlacement m_placement;
    const std::vector<const Operator *> &m_forward;
    ConstraintTable m_table{};
};

/// A table of arbitrary rows for `graph` on `devices` devices. Most tables are accepted; the rest must be
/// refused with a reason.
inline ConstraintTable randomTable(
    const Graph &graph, std::int32_t devices, std::mt19937 &random, const RandomTableOptions &options = {})
{
    return TableDraw(graph, devices, random, options).draw();
}

} // namespace planloom
