#include "engine/plan/scale_units_rule.h"

#include "engine/graph/dimensions/batch.h"
#include "engine/table/mesh_axes.h"
#include "engine/table/row_setting.h"

#include <algorithm>

namespace planloom {

namespace {

/// What rows say of one axis of the mesh.
class AxisReader
{
public:
    explicit AxisReader(std::string axis)
        : m_axis(std::move(axis))
    {
    }

    /// False where the replicas along the axis are not alike, or a row does not say so simply.
    bool read(const ConstraintTable &table)
    {
        for (std::size_t i = 0; i < table.rows.size(); ++i)
            if (table.rows[i].enabled
                && !std::visit(
                    [&](const auto &rule) {
                        return isAlike(table.rows[i], rule, static_cast<std::int32_t>(i));
                    },
                    table.rows[i].rule))
                return false;
        return m_batchRow >= 0;
    }

    std::int32_t batchRow() const { return m_batchRow; }
    const std::vector<std::int32_t> &shardingRows() const { return m_shardingRows; }

private:
    template<typename RuleType> bool isAlike(const Row &, const RuleType &, std::int32_t) { return true; }

    bool isAlike(const Row &row, const OpTransRule &rule, std::int32_t index)
    {
        const bool speaks = std::any_of(rule.steps.begin(), rule.steps.end(),
            [this](const SplitStep &step) { return step.axis == m_axis; });
        if (!speaks)
            return true;
        if (m_batchRow >= 0 || rule.steps.size() != 1 || !isBatch(rule.steps.front())
            || row.selector.kind != SelectorKind::All || row.preference != 0)
            return false;
        m_batchRow = index;
        return true;
    }
    bool isAlike(const Row &row, const OptimizerShardingRule &rule, std::int32_t index)
    {
        if (rule.chosen)
            return true;
        if (rule.stage == 0)
            return row.preference == 0;
        if (rule.axis.empty() && rule.parts > 0) // of all replicas, whatever they are
            return false;
        if (!rule.axis.empty() && !sharesOver(rule, m_axis))
            return true;
        m_shardingRows.push_back(index);
        return row.preference == 0;
    }
    bool isAlike(const Row &, const OpAssignRule &rule, std::int32_t)
    {
        return rule.devices.empty()
            && std::none_of(rule.coordinates.begin(), rule.coordinates.end(),
                [this](const AxisCoordinate &at) { return at.axis == m_axis; });
    }
    bool isAlike(const Row &, const PartsRule &rule, std::int32_t)
    {
        // Parts of the batch count over all axes.
        return rule.dimension && rule.dimension->kind == DimensionRef::Kind::Meaning
            && rule.dimension->meaning != DimensionMeaning::Batch;
    }
    bool isAlike(const Row &, const SpreadRule &rule, std::int32_t) { return rule.axis != m_axis; }
    bool isAlike(const Row &, const LayoutRule &rule, std::int32_t) { return rule.axis != m_axis; }
    bool isAlike(const Row &, const MicroBatchesRule &rule, std::int32_t) { return !rule.whole; }
    bool isAlike(const Row &, const LanesRule &rule, std::int32_t) { return rule.axis != m_axis; }

    std::string m_axis;
    std::int32_t m_batchRow = -1;
    std::vector<std::int32_t> m_shardingRows{};
};

std::int32_t microBatchesOf(const ConstraintTable &table)
{
    for (const Row &row : table.rows)
        if (const auto *rule = std::get_if<MicroBatchesRule>(&row.rule); rule && row.enabled)
            return std::max(rule->count, 1);
    return 1;
}

/// Whether a step over more, smaller micro-batches is the same step.
bool mayBeCut(const Model &model, std::int64_t cuts)
{
    const BatchInfo &batch = *model.batch;
    const Graph &graph = *model.graph;
    if (batch.size % cuts != 0 || cuts > batch.mostMicroBatches
        || std::find(batch.tensorRole.begin(), batch.tensorRole.end(), BatchRole::Local)
            != batch.tensorRole.end())
        return false;
    // A weight's gradient is whole once the units have added theirs up: only optimizers may ask for it.
    const auto isGradient = [&](TensorId tensor) {
        const Tensor &info = graph.at(tensor);
        return info.role == TensorRole::Gradient && info.of && graph.at(info.of).role == TensorRole::Weight;
    };
    for (const TensorId output : graph.outputs)
        if (isGradient(output))
            return false;
    for (const Operator &op : graph.operators)
        for (const TensorId input : op.inputs)
            if (input && op.direction != Direction::Optimizer && isGradient(input))
                return false;
    return true;
}

/// Rows about a degree that counts the axes of `role`, which a unit has not all of.
/// @return nothing where one does not hold on the whole mesh
std::optional<std::vector<std::int32_t>> degreesOver(
    const ConstraintTable &table, const std::vector<MeshAxis> &mesh, AxisRole role)
{
    std::vector<std::int32_t> rows;
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
        const auto *rule = std::get_if<DegreeRule>(&table.rows[i].rule);
        if (!rule || !table.rows[i].enabled || roleOf(rule->degree) != role)
            continue;
        if (!rule->bound.allows(sizeOfRole(mesh, role)))
            return std::nullopt;
        rows.push_back(static_cast<std::int32_t>(i));
    }
    return rows;
}

} // namespace

std::optional<TableInUnits> findUnits(const Model &model, std::int32_t deviceCount,
    const ConstraintTable &table, const std::function<bool(const ScaleUnits &)> &alike)
{
    const auto mesh = std::find_if(table.rows.begin(), table.rows.end(),
        [](const Row &row) { return row.enabled && std::holds_alternative<MeshRule>(row.rule); });
    if (mesh == table.rows.end())
        return std::nullopt;
    const std::vector<MeshAxis> &axes = std::get<MeshRule>(mesh->rule).axes;
    std::int64_t all = 1;
    for (const MeshAxis &axis : axes)
        all *= std::max(axis.size, 1);
    if (all != deviceCount)
        return std::nullopt;
    for (std::size_t a = 0; a < axes.size(); ++a) {
        AxisReader reader(axes[a].name);
        const auto degrees = degreesOver(table, axes, roleOf(axes[a]));
        if (axes[a].size < 2 || !reader.read(table) || !degrees
            || !mayBeCut(model, std::int64_t{microBatchesOf(table)} * axes[a].size))
            continue;
        TableInUnits found;
        found.axis = axes[a].name;
        found.units.count = axes[a].size;
        for (std::size_t inner = a + 1; inner < axes.size(); ++inner)
            found.units.inner *= axes[inner].size;
        if (alike && !alike(found.units))
            continue;
        found.deviceCount = deviceCount / axes[a].size;
        found.batchRow = reader.batchRow();
        found.shardingRows = reader.shardingRows();
        found.table = table;
        auto &rest =
            std::get<MeshRule>(found.table.rows[static_cast<std::size_t>(mesh - table.rows.begin())].rule);
        rest.axes.erase(rest.axes.begin() + static_cast<std::ptrdiff_t>(a));
        if (rest.axes.empty())
            rest.axes.push_back({axes[a].name, 1});
        found.table.rows[static_cast<std::size_t>(found.batchRow)].enabled = false;
        for (const std::int32_t row : *degrees)
            found.table.rows[static_cast<std::size_t>(row)].enabled = false;
        // What is shared along other axes, too, is shared out in each unit first.
        for (const std::int32_t row : found.shardingRows) {
            Row &own = found.table.rows[static_cast<std::size_t>(row)];
            auto &rule = std::get<OptimizerShardingRule>(own.rule);
            rule = withoutAxis(rule, found.axis);
            own.enabled = !rule.axis.empty();
        }
        return found;
    }
    return std::nullopt;
}

} // namespace planloom
