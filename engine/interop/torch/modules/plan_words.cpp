#include "engine/interop/torch/modules/plan_words.h"

#include "engine/graph/operators/attention.h"
#include "engine/interop/torch_schedule.h"
#include "engine/lowering/order/listed_schedule.h"
#include "engine/table/domain.h"
#include "engine/table/table_mesh.h"

#include <algorithm>
#include <set>

namespace planloom {

namespace {

/// Reads one matter after another.
class WordsReader
{
public:
    WordsReader(const PlanAnswer &answer, const WordsSource &source)
        : m_answer(answer)
        , m_source(source)
        , m_plan(source.plan)
        , m_graph(*source.plan.graph)
    {
    }

    Result<ReadWords> run()
    {
        PlanWords &words = m_read.words;
        for (const MeshAxis &axis : m_source.mesh)
            words.axes.push_back({axis.name, axis.size, roleOf(axis.name)});
        words.microBatches = m_plan.microBatches;
        std::vector<Laid> laid;
        for (const WordRole once : {WordRole::Tensor, WordRole::Context, WordRole::Stages, WordRole::Data})
            checkOneAxis(once);
        for (const WordAxis &axis : words.axes)
            if (axis.role == WordRole::Tensor && words.axisOf(WordRole::Tensor) == &axis)
                laid = readTensorWords(m_source, axis.name, m_read);
            else if (axis.role == WordRole::Context)
                readContext(axis);
        if (const WordAxis *const stages = words.axisOf(WordRole::Stages)) {
            readStageWords(m_source, *stages, laid, m_read);
            TRY_VOID(readSchedule());
        }
        readSharding();
        readRecomputation();
        readPrecision();
        return std::move(m_read);
    }

private:
    std::vector<OperatorId> forwards() const
    {
        std::vector<OperatorId> all;
        for (std::size_t o = 0; o < m_source.model.index->forwardCount(); ++o)
            all.push_back(OperatorId{static_cast<std::int32_t>(o)});
        return all;
    }
    void refuse(OperatorId op, const std::string &axis, std::string why)
    {
        m_read.refused.push_back({op, axis, std::move(why)});
    }

    /// What is cut over an axis says what it is for.
    WordRole roleOf(const std::string &axis) const
    {
        const std::shared_ptr<const BatchInfo> batch = batchOf(m_plan);
        bool isCutAtAll = false;
        bool isAllBatch = true;
        bool isSpread = false;
        for (const OperatorId op : forwards()) {
            const Split *const split = m_source.splitOf(op, axis);
            isSpread = isSpread || split != nullptr;
            if (split == nullptr || split->kind != SplitKind::Dimension)
                continue;
            isCutAtAll = true;
            isAllBatch = isAllBatch && split->dimension == batch->operatorDimension[at(op)];
            const auto sequences = attentionAxes(m_graph.at(op));
            if (sequences && (split->dimension == sequences->query || split->dimension == sequences->key))
                return WordRole::Context;
        }
        if (!isSpread)
            return WordRole::Stages;
        return isCutAtAll && isAllBatch ? WordRole::Data : WordRole::Tensor;
    }

    /// Several axes of one role are more than the scripts say.
    void checkOneAxis(WordRole role)
    {
        const WordAxis *first = nullptr;
        for (const WordAxis &axis : m_read.words.axes) {
            if (axis.role != role)
                continue;
            if (first != nullptr)
                for (const OperatorId op : forwards())
                    if (m_source.splitOf(op, axis.name) != nullptr)
                        refuse(op, axis.name, "it is a second axis of the kind of " + first->name);
            first = first == nullptr ? &axis : first;
        }
    }

    /// Sequences are cut wherever they are; attentions see all keys, passed round or gathered.
    void readContext(const WordAxis &axis)
    {
        bool hasRing = false;
        std::set<std::string> inside;
        for (const OperatorId id : forwards()) {
            const Operator &op = m_graph.at(id);
            hasRing = hasRing || m_plan.decisions[at(id)].ringSplit >= 0;
            for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
                if (!op.inputs[slot].valid() || m_graph.at(op.inputs[slot]).role != TensorRole::Buffer)
                    continue;
                const TensorPlacement placement = placementOf(
                    op.annotation, op.annotation.inputs[slot], m_source.splitOf(id, axis.name), false);
                if (placement.kind == TensorPlacement::Kind::Shard)
                    inside.insert(m_graph.at(op.inputs[slot]).name);
            }
        }
        m_read.words.gathersKeys = !hasRing;
        m_read.words.madeInside.assign(inside.begin(), inside.end());
    }

    Result<void> readSchedule()
    {
        PlanWords &words = m_read.words;
        const bool isPlain = std::all_of(m_plan.inFlight.begin(), m_plan.inFlight.end(),
                                 [](std::int32_t count) { return count == 0; })
            && m_plan.orders.empty() && m_plan.interleaved.empty();
        static const std::map<ScheduleKind, std::string> kClasses{{ScheduleKind::GPipe, "GPipe"},
            {ScheduleKind::OneFOneB, "1F1B"}, {ScheduleKind::Interleaved, "Interleaved1F1B"},
            {ScheduleKind::BreadthFirst, "LoopedBFS"}, {ScheduleKind::ZeroBubbleV, "ZBVZeroBubble"},
            {ScheduleKind::DualPipeV, "DualPipeV"}};
        const auto found = kClasses.find(m_plan.schedule);
        const bool isSingle = words.stages.size() == at(words.axisOf(WordRole::Stages)->size);
        const bool fits = found != kClasses.end()
            && (isSingle
                || (m_plan.schedule != ScheduleKind::GPipe && m_plan.schedule != ScheduleKind::OneFOneB));
        if (isPlain && fits) {
            words.scheduleClass = found->second;
            return {};
        }
        if (m_answer.execution == nullptr)
            return Error{ErrorCode::Internal, "the plan was not lowered", {}, {}};
        auto schedule = torchSchedule(listedScheduleOf(*m_answer.execution));
        if (!schedule)
            refuse(OperatorId{0}, words.axisOf(WordRole::Stages)->name, schedule.error().message);
        else
            words.scheduleCsv = writeTorchSchedule(*schedule);
        return {};
    }

    /// What replicas share, and in which groups it is gathered.
    void readSharding()
    {
        PlanWords &words = m_read.words;
        const OptimizerShardingRule *rule = nullptr;
        for (const Row &row : m_answer.table.table().rows)
            if (const auto *each = std::get_if<OptimizerShardingRule>(&row.rule);
                each != nullptr && row.enabled && each->stage > 0 && rule == nullptr)
                rule = each;
        std::set<std::string> wrapped;
        for (std::size_t o = 0; o < m_graph.operators.size(); ++o) {
            const Operator &op = m_graph.operators[o];
            const OperatorDecision &decision = m_plan.decisions[o];
            const OperatorId id{static_cast<std::int32_t>(o)};
            if (op.direction == Direction::Optimizer && decision.sharding.stage > words.zero) {
                words.zero = decision.sharding.stage;
                words.keepsWeights = decision.sharding.keep;
            }
            if (op.direction != Direction::Forward || m_source.moduleOf(id).empty())
                continue;
            const std::int32_t layer = m_source.model.index->layerOf(id);
            wrapped.insert(layer < 0
                    ? m_source.moduleOf(id)
                    : m_source.model.index->pathOf(m_source.model.index->layers().scopes[at(layer)]));
        }
        if (words.zero > 1)
            words.wrapped.assign(wrapped.begin(), wrapped.end());
        if (words.zero == 0)
            return;
        for (std::size_t o = 0; o < m_graph.operators.size(); ++o) {
            if (m_graph.operators[o].direction != Direction::Optimizer)
                continue;
            const OperatorId id{static_cast<std::int32_t>(o)};
            if (words.zero == 1 && words.axisOf(WordRole::Tensor) != nullptr)
                refuse(id, {}, "ZeroRedundancyOptimizer does not take parameters that are DTensors");
            else if (words.axisOf(WordRole::Data) == nullptr || words.axisOf(WordRole::Context) != nullptr)
                refuse(id, {}, "its states are shared along another axis than that of the batch");
        }
    }

    /// Groups have to be modules.
    void readRecomputation()
    {
        std::map<std::int32_t, std::set<OperatorId>> groups;
        for (const OperatorId op : forwards())
            if (m_plan.decisions[at(op)].recomputeGroup >= 0)
                groups[m_plan.decisions[at(op)].recomputeGroup].insert(op);
        for (const auto &[group, members] : groups) {
            const std::string module = moduleOfAll(members);
            if (module.empty())
                refuse(*members.begin(), {}, "what is computed again is not one module");
            else if (splitsBackward(m_plan.schedule))
                refuse(*members.begin(), {},
                    "PyTorch does not recompute where gradients of weights have a pass of their own");
            else
                m_read.words.recomputed.push_back(module);
        }
    }

    /// The module that has just these operators; empty if none does.
    std::string moduleOfAll(const std::set<OperatorId> &members) const
    {
        for (ScopeId scope = m_graph.at(*members.begin()).scope; scope.valid() && scope.index > 0;
             scope = m_graph.at(scope).parent) {
            const std::string path = m_source.model.index->pathOf(scope);
            std::size_t inside = 0;
            bool areAll = true;
            for (const OperatorId op : forwards())
                if ((m_source.model.index->pathOf(m_graph.at(op).scope) + ".").starts_with(path + ".")) {
                    ++inside;
                    areAll = areAll && members.contains(op);
                }
            if (areAll && inside == members.size())
                return path;
        }
        return {};
    }

    void readPrecision()
    {
        if (forwards().empty())
            return;
        const Precision first = m_plan.decisions.front().precision;
        for (const OperatorId op : forwards())
            if (m_plan.decisions[at(op)].precision != first)
                return refuse(op, {}, "its precision is another than that of other operators");
        if (first == precisionOf(PrecisionPreset::BFloat16))
            m_read.words.autocast = "bfloat16";
        else if (first == precisionOf(PrecisionPreset::TensorFloat32))
            m_read.words.tensorFloat32 = true;
        else if (first != Precision{})
            refuse(OperatorId{0}, {}, "the scripts have words for fp32, tf32 and bf16 (autocast)");
    }

    const PlanAnswer &m_answer;
    const WordsSource &m_source;
    const Plan &m_plan;
    const Graph &m_graph;
    ReadWords m_read{};
};

} // namespace

const WordAxis *PlanWords::axisOf(WordRole role) const
{
    const auto found =
        std::find_if(axes.begin(), axes.end(), [role](const WordAxis &axis) { return axis.role == role; });
    return found == axes.end() ? nullptr : &*found;
}

std::string WordsSource::moduleOf(OperatorId op) const
{
    const Graph &graph = *plan.graph;
    const Operator &each = graph.at(op);
    std::string module;
    for (const TensorId input : each.inputs)
        if (module.empty() && input.valid() && graph.at(input).role == TensorRole::Weight) {
            const std::string &name = nameInFiles(graph.at(input));
            const std::size_t dot = name.rfind('.');
            module = dot == std::string::npos ? name : name.substr(0, dot);
        }
    // A weight that two modules share has the name that it has in the first.
    const bool isShared =
        classes.empty() ? model.index->findOperator(module).valid() : classes.contains(each.name);
    return module.empty() || !isShared ? module : each.name;
}

const Split *WordsSource::splitOf(OperatorId op, const std::string &axis) const
{
    for (const Split &split : plan.decisions[at(op)].partition.splits)
        if (split.axis == axis)
            return &split;
    return nullptr;
}

std::int32_t WordsSource::sizeOfAxis(const std::string &axis) const
{
    const MeshAxis *const found = findAxis(mesh, axis);
    return found == nullptr ? 1 : found->size;
}

Result<ReadWords> readPlanWords(const PlanAnswer &answer, const OpenedModel &model)
{
    WordsSource source{.plan = *answer.plan, .model = model};
    TRY(source.classes, moduleClassesOf(model.source.source, model.source.content));
    for (const MeshAxis &axis : meshOf(answer.table.table()))
        if (axis.size > 1)
            source.mesh.push_back(axis);
    return WordsReader(answer, source).run();
}

} // namespace planloom
