#pragma once

#include "engine/graph/annotation/annotation.h"
#include "tests/engine/lowering/table_dice.h"

#include <numeric>

namespace planloom {

/// How wild `randomTable` may be.
struct RandomTableOptions {
    double touched = 0.5; ///< Share of the forward operators that get a split of their own.
    bool recompute = true;
    bool orders = true;
    bool wholeBatches = false; ///< Micro-batches that are batches of their own, which is another step.
    bool precisions = false; ///< Rows of number formats, which change the numbers.
    bool weightVersions = false; ///< Weight versions, updates within the step: they change what is trained.
};

/// Draws where operators run and how they are split: dealt out anyhow, in runs of operators on the same
/// devices, over a mesh, in whole replicas, in stages on lists of devices or on the mesh, in both directions.
/// Splits are along any dimension, even, uneven or nested, replicas, summands.
class RandomPlacement
{
public:
    RandomPlacement(TableDice &dice, std::int32_t devices, const RandomTableOptions &options)
        : m_dice(dice)
        , m_devices(devices)
        , m_options(options)
    {
    }

    void draw(ConstraintTable &table)
    {
        m_table = &table;
        const std::int64_t shape = m_dice.below(20);
        if (shape < 2 && m_devices % 2 == 0)
            drawBidirectional();
        else if (shape < 9 && m_devices > 1)
            drawMesh(shape < 4);
        else if (shape < 12)
            drawStagesOnLists();
        else if (shape < 16)
            drawRuns();
        else
            drawAnyhow();
    }

    /// Splits and devices of one operator, anyhow.
    void drawPlaced(const Operator &op, ConstraintTable &table)
    {
        m_table = &table;
        const std::int64_t parts = drawSplits(op);
        add(selectSet({op.name}), OpAssignRule{.devices = anyDevices(parts)});
    }

    const std::vector<MeshAxis> &axes() const { return m_axes; }
    /// Names of the operators of each stage, where rows give stages.
    const std::vector<std::vector<std::string>> &stages() const { return m_stages; }
    std::int32_t ranks() const { return m_ranks; }
    std::int32_t stagesPerRank() const
    {
        return std::max(static_cast<std::int32_t>(m_stages.size()) / m_ranks, 1);
    }
    bool isBidirectional() const { return m_bidirectional; }
    /// A row asks for lanes.
    bool hasLanes() const { return m_lanes; }
    /// Each device runs one stage.
    bool isOneStageEach() const
    {
        return m_stages.empty() ? !m_axes.empty() || m_devices == 1 : stagesPerRank() == 1;
    }

private:
    void add(Selector selector, Rule rule)
    {
        m_table->rows.push_back(Row{.selector = std::move(selector), .rule = std::move(rule)});
    }

    /// One split of `op` of which `left` is left by identifier; nothing where it can't be.
    std::optional<SplitStep> step(const Operator &op, std::vector<std::int64_t> &left, bool mayBeUneven)
    {
        SplitStep split;
        const auto splittable = splittableDimensions(op.annotation);
        const double kind = static_cast<double>(m_dice.below(100)) / 100;
        if (kind < 0.65 && !splittable.empty()) {
            const auto d = static_cast<std::size_t>(m_dice.of(splittable));
            const auto parts = m_dice.partsOf(left[d]);
            split.dimension.name = op.annotation.dimensions[d].name;
            const bool isWhole = left[d] == op.annotation.dimensions[d].size;
            if (mayBeUneven && isWhole && left[d] >= 3 && (!parts || m_dice.chance(0.25))) {
                const std::int64_t first = 1 + m_dice.below(left[d] - 1);
                split.sizes = {first, left[d] - first};
                split.parts = 2;
                left[d] = 1; // no nested split of uneven parts
                return split;
            }
            if (!parts)
                return std::nullopt;
            split.parts = *parts;
            left[d] /= *parts;
            return split;
        }
        split.parts = 2;
        if (kind < 0.85)
            split.kind = SplitKind::Replicate;
        else if (!op.annotation.linearInputs.empty())
            split.kind = SplitKind::Value;
        else
            return std::nullopt;
        return split;
    }

    /// Splits `op` along some dimensions. @return its parts
    std::int64_t drawSplits(const Operator &op)
    {
        OpTransRule trans;
        std::int64_t parts = 1;
        std::vector<std::int64_t> left = m_dice.extentsOf(op);
        for (int nested = 0; nested < 2 && parts <= 4; ++nested) {
            if (!m_dice.chance(nested == 0 ? 0.8 : 0.3))
                continue;
            auto split = step(op, left, nested == 0);
            if (!split)
                continue;
            parts *= split->parts;
            trans.steps.push_back(*std::move(split));
        }
        if (!trans.steps.empty())
            add(selectSet({op.name}), std::move(trans));
        return parts;
    }

    std::vector<DeviceId> anyDevices(std::int64_t count)
    {
        std::vector<DeviceId> devices;
        for (std::int64_t i = 0; i < count; ++i)
            devices.push_back(m_dice.device(m_devices));
        return devices;
    }

    /// As many of `devices` as `parts` parts can be dealt out to.
    static std::vector<DeviceId> fitting(std::vector<DeviceId> devices, std::int64_t parts)
    {
        const auto count = [&] { return static_cast<std::int64_t>(devices.size()); };
        while (count() > 1 && parts % count() != 0 && count() % parts != 0)
            devices.pop_back();
        return devices;
    }

    /// Some operators, each with splits and devices of its own.
    void drawAnyhow()
    {
        for (const Operator *op : m_dice.forward())
            if (m_dice.chance(m_options.touched))
                drawPlaced(*op, *m_table);
    }

    /// Runs of operators share a set of devices.
    void drawRuns()
    {
        std::vector<DeviceId> run;
        for (const Operator *op : m_dice.forward()) {
            if (run.empty() || m_dice.chance(0.1))
                run = anyDevices(1 + m_dice.below(m_devices));
            if (!m_dice.chance(m_options.touched))
                continue;
            const std::int64_t parts = drawSplits(*op);
            add(selectSet({op->name}),
                OpAssignRule{.devices = m_dice.chance(0.3) ? anyDevices(parts) : fitting(run, parts)});
        }
    }

    /// Stages of consecutive operators, `perRank` on each of `ranks` ranks.
    void cutStages(std::int32_t ranks, std::int32_t perRank)
    {
        m_ranks = ranks;
        const auto &forward = m_dice.forward();
        const auto count = static_cast<std::size_t>(ranks * perRank);
        if (forward.size() < count)
            return;
        std::vector<std::size_t> cuts(forward.size() - 1);
        std::iota(cuts.begin(), cuts.end(), std::size_t{1});
        while (cuts.size() > count - 1)
            cuts.erase(cuts.begin() + m_dice.below(static_cast<std::int64_t>(cuts.size())));
        cuts.push_back(forward.size());
        std::size_t begin = 0;
        for (const std::size_t end : cuts) {
            auto &stage = m_stages.emplace_back();
            for (; begin < end; ++begin)
                stage.push_back(forward[begin]->name);
        }
    }

    void drawStagesOnLists()
    {
        const std::int32_t ranks = m_dice.number(1, std::min(m_devices, 4));
        cutStages(ranks, perRank(ranks));
        const auto batch = m_dice.meant(DimensionMeaning::Batch);
        if (m_devices / ranks % 2 == 0 && batch && batch->extent % 2 == 0 && m_dice.chance(0.6)) {
            add(selectAll(), LanesRule{});
            m_lanes = true;
        }
        std::size_t op = 0;
        for (std::size_t s = 0; s < m_stages.size(); ++s) {
            add(selectSet(m_stages[s]), StageRule{static_cast<std::int32_t>(s)});
            const std::int32_t each = m_devices / m_ranks;
            std::vector<DeviceId> rank;
            for (std::int32_t d = 0; d < each; ++d)
                rank.push_back({static_cast<std::int32_t>(s) % m_ranks * each + d});
            std::vector<std::string> whole;
            for (const std::string &name : m_stages[s]) {
                const Operator &own = *m_dice.forward()[op++];
                if (!m_dice.chance(m_options.touched)) {
                    whole.push_back(name);
                    continue;
                }
                add(selectSet({name}),
                    OpAssignRule{.devices = m_lanes ? rank : fitting(rank, drawSplits(own))});
            }
            if (!whole.empty())
                add(selectSet(std::move(whole)), OpAssignRule{.devices = rank});
        }
    }

    /// Both halves of each micro-batch, in opposite directions.
    void drawBidirectional()
    {
        const auto batch = m_dice.meant(DimensionMeaning::Batch);
        cutStages(m_devices, 1);
        if (!batch || m_stages.empty()) {
            m_stages.clear();
            m_ranks = 1;
            return drawAnyhow();
        }
        m_bidirectional = true;
        if (batch->extent % 2 == 0 && m_dice.chance(0.7)) {
            add(selectAll(), LanesRule{});
            m_lanes = true;
        } else {
            SplitStep halves{.dimension = batch->dimension};
            halves.parts = 2;
            add(selectAll(), OpTransRule{{halves}});
        }
        for (std::int32_t s = 0; s < m_devices; ++s) {
            const Selector stage = selectSet(m_stages[static_cast<std::size_t>(s)]);
            add(stage, OpAssignRule{.devices = {{s}, {m_devices - 1 - s}}});
            add(stage, StageRule{s});
        }
    }

    /// Axes whose product is the number of devices, or sometimes less.
    void drawAxes()
    {
        static constexpr std::array kNames{"x", "y", "z"};
        std::int32_t left = m_dice.chance(0.9) ? m_devices : m_dice.number(2, m_devices);
        while (left > 1 && m_axes.size() < 3) {
            std::vector<std::int32_t> sizes;
            for (std::int32_t k = 2; k <= left; ++k)
                if (left % k == 0 && (m_axes.size() < 2 || k == left))
                    sizes.push_back(k);
            m_axes.push_back({kNames[m_axes.size()], m_dice.of(sizes)});
            left /= m_axes.back().size;
        }
        add(selectAll(), MeshRule{m_axes});
    }

    /// @param replicas  along one of the axes, as far as the batch can be cut so
    void drawMesh(bool replicas)
    {
        drawAxes();
        const auto count = static_cast<std::int64_t>(m_axes.size());
        const std::int64_t stageAxis = m_dice.chance(0.35) ? m_dice.below(count) : -1;
        const std::int64_t replicaAxis = replicas ? m_dice.below(count) : -1;
        for (std::size_t a = 0; a < m_axes.size(); ++a) {
            if (static_cast<std::int64_t>(a) == replicaAxis && drawReplicas(m_axes[a]))
                continue;
            if (static_cast<std::int64_t>(a) == stageAxis)
                drawStagesOver(m_axes[a]);
            else if (m_dice.chance(0.35) && drawLanesOver(m_axes[a]))
                continue;
            else
                drawSplitsOver(m_axes[a]);
        }
    }

    bool drawLanesOver(const MeshAxis &axis)
    {
        const auto batch = m_dice.meant(DimensionMeaning::Batch);
        if (!batch || batch->extent % axis.size != 0 || m_lanes)
            return false;
        m_lanes = true;
        add(selectAll(), LanesRule{.axis = axis.name});
        return true;
    }

    bool drawReplicas(const MeshAxis &axis)
    {
        const auto batch = m_dice.meant(DimensionMeaning::Batch);
        if (!batch || batch->extent % axis.size != 0)
            return false;
        SplitStep split{.dimension = batch->dimension};
        split.axis = axis.name;
        add(selectAll(), OpTransRule{{std::move(split)}});
        return true;
    }

    /// Stages on a rank: as a rule only where an interleaved schedule can run them.
    std::int32_t perRank(std::int32_t ranks)
    {
        return m_dice.chance(m_dice.microBatches() % ranks == 0 ? 0.4 : 0.1) ? 2 : 1;
    }

    void drawStagesOver(const MeshAxis &axis)
    {
        cutStages(axis.size, perRank(axis.size));
        for (std::size_t s = 0; s < m_stages.size(); ++s) {
            const auto number = static_cast<std::int32_t>(s);
            add(selectSet(m_stages[s]), OpAssignRule{.coordinates = {{axis.name, number % axis.size}}});
            add(selectSet(m_stages[s]), StageRule{number});
        }
    }

    /// The batch, what else means something, or operator by operator.
    void drawSplitsOver(const MeshAxis &axis)
    {
        const double kind = static_cast<double>(m_dice.below(100)) / 100;
        const auto meant = kind < 0.4 ? m_dice.meant(DimensionMeaning::Batch)
            : kind < 0.8              ? m_dice.meant()
                                      : std::nullopt;
        if (meant && (meant->extent % axis.size == 0 || m_dice.chance(0.1))) {
            SplitStep split{.dimension = meant->dimension};
            split.axis = axis.name;
            add(m_dice.chance(0.7) ? selectAll() : m_dice.selector(), OpTransRule{{std::move(split)}});
            return;
        }
        for (const Operator *op : m_dice.forward()) {
            if (!m_dice.chance(m_options.touched))
                continue;
            std::vector<std::int64_t> left = m_dice.extentsOf(*op);
            for (std::int64_t &extent : left)
                extent = extent % axis.size == 0 ? extent : 0;
            auto split = step(*op, left, false);
            if (!split)
                continue;
            split->parts = 0; // as the axis is long
            split->axis = axis.name;
            add(selectSet({op->name}), OpTransRule{{*std::move(split)}});
        }
    }

    TableDice &m_dice;
    std::int32_t m_devices;
    const RandomTableOptions &m_options;
    ConstraintTable *m_table = nullptr;
    std::vector<MeshAxis> m_axes{};
    std::vector<std::vector<std::string>> m_stages{};
    std::int32_t m_ranks = 1;
    bool m_bidirectional = false;
    bool m_lanes = false;
};

} // namespace planloom
