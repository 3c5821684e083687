#include "engine/interop/torch/modules/plan_words.h"

#include "engine/graph/operators/attention.h"
#include "engine/table/table_mesh.h"

#include <algorithm>

namespace planloom {

namespace {

Row rowOf(Selector selector, Rule rule)
{
    Row row;
    row.selector = std::move(selector);
    row.rule = std::move(rule);
    return row;
}

SplitStep stepOver(const std::string &axis)
{
    SplitStep step;
    step.axis = axis;
    return step;
}

/// Gathers operators by what is done with them, so that a row says it of many.
class RowsMaker
{
public:
    RowsMaker(const ReadWords &read, const PlanAnswer &answer)
        : m_words(read.words)
        , m_plan(*answer.plan)
        , m_graph(*answer.plan->graph)
        , m_mesh(meshOf(answer.table.table()))
    {
        for (const Refusal &refusal : read.refused)
            m_refused.insert({refusal.op, refusal.axis});
    }

    ConstraintTable make()
    {
        if (!m_mesh.empty())
            m_table.rows.push_back(rowOf(selectAll(), MeshRule{m_mesh}));
        if (m_words.microBatches > 1)
            m_table.rows.push_back(rowOf(selectAll(), MicroBatchesRule{.count = m_words.microBatches}));
        for (const WordAxis &axis : m_words.axes)
            if (axis.role == WordRole::Data)
                splitAll(axis.name, DimensionMeaning::Batch);
            else if (axis.role == WordRole::Context)
                addContext(axis.name);
            else if (axis.role == WordRole::Tensor)
                addTensor(axis.name);
            else
                addStages(axis.name);
        if (m_words.zero > 0)
            if (const WordAxis *const data = m_words.axisOf(WordRole::Data))
                m_table.rows.push_back(rowOf(parsed("weight:*"),
                    OptimizerShardingRule{
                        .stage = m_words.zero, .axis = data->name, .keep = m_words.keepsWeights}));
        for (const std::string &module : m_words.recomputed)
            m_table.rows.push_back(rowOf(selectIn(module), RecomputeRule{}));
        if (m_words.tensorFloat32 || !m_words.autocast.empty())
            m_table.rows.push_back(rowOf(selectAll(),
                PrecisionRule{.preset = m_words.tensorFloat32 ? PrecisionPreset::TensorFloat32
                                                              : PrecisionPreset::BFloat16}));
        return std::move(m_table);
    }

private:
    static Selector parsed(std::string_view text)
    {
        auto selector = parseSelector(text);
        return selector ? *std::move(selector) : selectAll();
    }

    void splitAll(const std::string &axis, DimensionMeaning meaning)
    {
        SplitStep step = stepOver(axis);
        step.dimension = {.kind = DimensionRef::Kind::Meaning, .meaning = meaning};
        m_table.rows.push_back(rowOf(selectAll(), OpTransRule{{step}}));
    }

    void addContext(const std::string &axis)
    {
        splitAll(axis, DimensionMeaning::Sequence);
        if (!m_words.gathersKeys)
            m_table.rows.push_back(rowOf(parsed("kind:Attention"), RingRule{axis}));
    }

    /// Of each operator whether and along what it is cut, as follows from the styles around it.
    void addTensor(const std::string &axis)
    {
        std::map<std::string, std::vector<std::string>> cut;
        std::vector<std::string> whole;
        std::int32_t parts = 1;
        for (const Operator &op : m_graph.operators) {
            const OperatorId id{static_cast<std::int32_t>(&op - m_graph.operators.data())};
            if (op.direction != Direction::Forward || m_refused.contains({id, axis}))
                continue;
            for (const Split &split : m_plan.decisions[at(id)].partition.splits) {
                if (split.axis != axis)
                    continue;
                parts = split.parts;
                if (split.kind == SplitKind::Dimension)
                    cut[op.annotation.dimensions[at(split.dimension)].name].push_back(op.name);
                else if (split.kind == SplitKind::Replicate)
                    whole.push_back(op.name);
            }
        }
        for (auto &[name, ops] : cut) {
            SplitStep step = stepOver(axis);
            step.dimension = {.kind = DimensionRef::Kind::Identifier, .name = name};
            m_table.rows.push_back(rowOf(selectSet(std::move(ops)), OpTransRule{{step}}));
        }
        if (whole.empty())
            return;
        SplitStep step = stepOver(axis);
        step.kind = SplitKind::Replicate;
        step.parts = parts;
        m_table.rows.push_back(rowOf(selectSet(std::move(whole)), OpTransRule{{step}}));
    }

    void addStages(const std::string &axis)
    {
        std::vector<std::vector<std::string>> ops(m_words.stages.size());
        for (const Operator &op : m_graph.operators) {
            const OperatorId id{static_cast<std::int32_t>(&op - m_graph.operators.data())};
            const std::int32_t stage = m_plan.decisions[at(id)].stage.index;
            if (op.direction == Direction::Forward && stage >= 0 && at(stage) < ops.size())
                ops[at(stage)].push_back(op.name);
        }
        for (std::size_t s = 0; s < ops.size(); ++s) {
            if (ops[s].empty())
                continue;
            m_table.rows.push_back(
                rowOf(selectSet(ops[s]), OpAssignRule{.coordinates = {{axis, m_words.stages[s].rank}}}));
            m_table.rows.push_back(
                rowOf(selectSet(ops[s]), StageRule{.index = static_cast<std::int32_t>(s)}));
        }
        ScheduleRule schedule;
        schedule.kind = m_plan.schedule;
        schedule.order = m_plan.order;
        m_table.rows.push_back(rowOf(selectAll(), std::move(schedule)));
        for (std::size_t s = 0; s < m_plan.inFlight.size(); ++s)
            if (m_plan.inFlight[s] > 0 && !m_words.scheduleCsv.empty())
                m_table.rows.push_back(rowOf(selectAll(),
                    InFlightRule{.count = m_plan.inFlight[s], .stage = static_cast<std::int32_t>(s)}));
    }

    const PlanWords &m_words;
    const Plan &m_plan;
    const Graph &m_graph;
    std::vector<MeshAxis> m_mesh{};
    std::set<std::pair<OperatorId, std::string>> m_refused{};
    ConstraintTable m_table{};
};

} // namespace

ConstraintTable rowsOfWords(const ReadWords &read, const PlanAnswer &answer)
{
    return RowsMaker(read, answer).make();
}

} // namespace planloom
