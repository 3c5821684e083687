#include "engine/search/stage_figures.h"

#include "engine/graph/catalogue.h"
#include "engine/table/selector_index.h"

#include <algorithm>
#include <map>
#include <set>

namespace planloom {

namespace {

/// Adds up what stages do, one aspect after the other.
class Sums
{
public:
    Sums(const PartitionProblem &problem, const std::vector<std::int32_t> &choice, const OperatorTimes &times,
        const StagePlan &plan, GroupShape between)
        : m_problem(problem)
        , m_setting(problem.setting())
        , m_graph(*m_setting.model->graph)
        , m_choice(choice)
        , m_times(times)
        , m_plan(plan)
        , m_between(between)
        , m_stages(static_cast<std::size_t>(plan.stages))
    {
    }

    std::vector<StageFigures> take() &&
    {
        addTimes();
        addKept();
        addPassing();
        addSends();
        addWeights();
        return std::move(m_stages);
    }

private:
    const OperatorChoice &choiceOf(std::size_t op) const { return m_problem.choiceOf(op, m_choice[op]); }
    StageFigures &stageOf(std::size_t op) { return m_stages[static_cast<std::size_t>(m_plan.stageOf[op])]; }
    bool isRecomputed(std::size_t op) const { return op < m_plan.recomputed.size() && m_plan.recomputed[op]; }

    void addTimes()
    {
        for (std::size_t i = 0; i < m_problem.operatorCount(); ++i) {
            StageTime &time = stageOf(i).time;
            time.forward += m_times.forward[i];
            time.backward += m_times.backward[i] + (isRecomputed(i) ? m_times.forward[i] : 0);
            // About half of a product's backward pass is the gradient of its weights.
            const Operator &op = m_graph.operators[i];
            const bool weights = std::any_of(op.inputs.begin(), op.inputs.end(),
                [&](TensorId input) { return input && m_graph.at(input).role == TensorRole::Weight; });
            if (weights && categoryOf(op) == OperatorCategory::Product) {
                const double half = choiceOf(i).backward / 2;
                time.weights += half;
                time.backward -= half;
            }
        }
    }

    /// What backward passes read again, once for each form it is read in.
    void addKept()
    {
        std::set<std::tuple<std::int32_t, std::int32_t, AxisLayout>> seen; // stage, tensor, layout
        std::vector<std::map<std::int32_t, std::int64_t>> together(m_stages.size()); // by group
        const auto producerOf = [&](TensorId tensor) {
            const auto &makers =
                m_setting.model->index->uses().producers[static_cast<std::size_t>(tensor.index)];
            return makers.empty() ? -1 : makers.front().index;
        };
        const auto hold = [&](std::size_t reader, TensorId tensor, AxisLayout layout, std::int64_t bytes) {
            const TensorRole role = m_graph.at(tensor).role;
            if (bytes == 0 || (role != TensorRole::Activation && role != TensorRole::Input))
                return;
            const std::int32_t stage = m_plan.stageOf[reader];
            if (!seen.insert({stage, tensor.index, layout}).second)
                return;
            const std::int32_t producer = producerOf(tensor);
            const auto p = static_cast<std::size_t>(producer);
            if (producer >= 0 && isRecomputed(p) && m_plan.stageOf[p] == stage) {
                const std::int32_t group = m_plan.recomputedWith[p];
                together[static_cast<std::size_t>(stage)][group < 0 ? -2 - producer : group] += bytes;
            } else {
                m_stages[static_cast<std::size_t>(stage)].keptBytes += bytes;
            }
        };
        for (std::size_t i = 0; i < m_problem.operatorCount(); ++i) {
            const Operator &op = m_graph.operators[i];
            const OperatorChoice &choice = choiceOf(i);
            for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
                const TensorId tensor = op.inputs[slot];
                if (!tensor)
                    continue;
                std::int64_t bytes = choice.kept[slot];
                if (bytes == 0 && isRecomputed(i) && op.mirror)
                    bytes = localBytes(tensor, choice.inputs[slot]);
                hold(i, tensor, choice.inputs[slot], bytes);
            }
            for (std::size_t slot = 0; slot < op.outputs.size(); ++slot)
                if (op.outputs[slot])
                    hold(i, op.outputs[slot], choice.outputs[slot], choice.kept[op.inputs.size() + slot]);
        }
        for (std::size_t s = 0; s < together.size(); ++s) {
            std::int64_t most = 0;
            for (const auto &[group, bytes] : together[s])
                most = std::max(most, bytes);
            m_stages[s].passingBytes += most;
        }
    }

    std::int64_t localBytes(TensorId tensor, AxisLayout layout) const
    {
        const auto t = static_cast<std::size_t>(tensor.index);
        std::int64_t bytes =
            elementCount(m_graph.at(tensor).type.shape) * sizeOf(m_setting.types->carried(tensor));
        const BatchInfo &batch = *m_setting.model->batch;
        if (t < batch.tensorRole.size() && batch.tensorRole[t] == BatchRole::Split)
            bytes /= std::max(1, m_setting.batchCuts);
        return layout >= cutAlong(0) ? bytes / m_setting.parts : bytes;
    }

    /// The largest operands and results of one backward operator, which no pass keeps.
    void addPassing()
    {
        std::vector<std::int64_t> most(m_stages.size(), 0);
        for (std::size_t i = 0; i < m_problem.operatorCount(); ++i) {
            const Operator &op = m_graph.operators[i];
            const OperatorChoice &choice = choiceOf(i);
            std::int64_t bytes = 0;
            for (std::size_t slot = 0; slot < op.inputs.size(); ++slot)
                if (op.inputs[slot] && choice.inputGradients[slot] != kAbsent
                    && m_graph.at(op.inputs[slot]).role == TensorRole::Activation)
                    bytes += localBytes(op.inputs[slot], choice.inputGradients[slot]);
            for (std::size_t slot = 0; slot < op.outputs.size(); ++slot)
                if (op.outputs[slot])
                    bytes += localBytes(op.outputs[slot], choice.outputs[slot]);
            auto &own = most[static_cast<std::size_t>(m_plan.stageOf[i])];
            own = std::max(own, bytes);
        }
        for (std::size_t s = 0; s < most.size(); ++s)
            m_stages[s].passingBytes += most[s];
    }

    void addSends()
    {
        if (m_plan.stages < 2)
            return;
        std::vector<std::int64_t> forward(m_stages.size(), 0);
        std::vector<std::int64_t> backward(m_stages.size(), 0);
        for (const PartitionProblem::Meeting &meeting : m_problem.meetings()) {
            if (meeting.producer < 0)
                continue;
            const auto p = static_cast<std::size_t>(meeting.producer);
            const std::int32_t from = m_plan.stageOf[p];
            std::int32_t to = from;
            for (const auto &[reader, slot] : meeting.readers)
                to = std::max(to, m_plan.stageOf[static_cast<std::size_t>(reader)]);
            const std::int64_t share = choiceOf(p).outputs[meeting.output] == kWhole ? 1 : m_setting.parts;
            for (std::int32_t s = from; s < to; ++s) {
                forward[static_cast<std::size_t>(s)] += meeting.bytes / share;
                backward[static_cast<std::size_t>(s) + 1] += meeting.gradientBytes / share;
            }
        }
        const auto seconds = [&](std::int64_t bytes) {
            return bytes == 0
                ? 0
                : m_setting.costs->collective(CollectiveKind::SendRecv, Bytes{bytes}, m_between);
        };
        for (std::size_t s = 0; s < m_stages.size(); ++s) {
            m_stages[s].time.sendForward = seconds(forward[s]);
            m_stages[s].time.sendBackward = seconds(backward[s]);
        }
    }

    /// Weights belong to the stage that reads them first; tied ones to all that do.
    void addWeights()
    {
        const Uses &uses = m_setting.model->index->uses();
        std::vector<std::int32_t> optimizerOf(m_graph.tensors.size(), -1);
        std::vector<TensorId> gradientOf(m_graph.tensors.size());
        for (std::size_t i = m_problem.operatorCount(); i < m_graph.operators.size(); ++i)
            if (m_graph.operators[i].direction == Direction::Optimizer)
                for (const TensorId input : m_graph.operators[i].inputs)
                    if (input && m_graph.at(input).role == TensorRole::Weight)
                        optimizerOf[static_cast<std::size_t>(input.index)] = static_cast<std::int32_t>(i);
        for (std::size_t t = 0; t < m_graph.tensors.size(); ++t)
            if (m_graph.tensors[t].role == TensorRole::Gradient && m_graph.tensors[t].of)
                gradientOf[static_cast<std::size_t>(m_graph.tensors[t].of.index)] = {
                    static_cast<std::int32_t>(t)};
        std::map<std::pair<std::int64_t, std::int32_t>, double> updates; // of what is alike
        std::vector<std::set<std::int32_t>> layers(m_stages.size());
        for (std::size_t t = 0; t < m_graph.tensors.size(); ++t) {
            const TensorId weight{static_cast<std::int32_t>(t)};
            const TensorRole role = m_graph.tensors[t].role;
            if (role != TensorRole::Weight && role != TensorRole::Buffer)
                continue;
            std::set<std::int32_t> stages;
            for (const OperatorId reader : uses.consumers[t])
                if (static_cast<std::size_t>(reader.index) < m_problem.operatorCount()) {
                    const std::int32_t stage = m_plan.stageOf[static_cast<std::size_t>(reader.index)];
                    stages.insert(stage);
                    layers[static_cast<std::size_t>(stage)].insert(m_setting.model->index->layerOf(reader));
                }
            if (stages.empty())
                continue;
            const double share = m_problem.shareOf(weight, m_choice);
            const auto elements = static_cast<std::int64_t>(
                static_cast<double>(elementCount(m_graph.tensors[t].type.shape)) * share);
            for (const std::int32_t s : stages)
                addWeight(m_stages[static_cast<std::size_t>(s)], weight, elements, gradientOf[t],
                    optimizerOf[t], share, updates);
        }
        for (std::size_t s = 0; s < m_stages.size(); ++s)
            m_stages[s].layers = static_cast<std::int32_t>(layers[s].size());
    }

    void addWeight(StageFigures &stage, TensorId weight, std::int64_t elements, TensorId gradient,
        std::int32_t optimizer, double share,
        std::map<std::pair<std::int64_t, std::int32_t>, double> &updates)
    {
        const StorageTypes &types = *m_setting.types;
        const DataType carried = types.carried(weight);
        const bool master = types.isMaster(weight, carried);
        (master ? stage.stateBytes : stage.modelBytes) += elements * sizeOf(carried);
        if (master)
            for (const DataType type : {DataType::BFloat16, DataType::Float16, DataType::Float32})
                if (type != carried && types.isReadByModel(weight, type)) {
                    stage.modelBytes += elements * sizeOf(type);
                    stage.update +=
                        m_setting.costs->copy(
                            Bytes{elements * (sizeOf(type) + sizeOf(carried)) / 2}, m_setting.deviceClass)
                        - m_setting.costs->copy(Bytes{}, m_setting.deviceClass);
                }
        WeightPiece piece{.elements = elements, .count = 1};
        piece.modelBytes = master ? elements * 2 : elements * sizeOf(carried);
        if (gradient) {
            stage.gradientBytes += elements * sizeOf(types.accumulated(gradient));
            piece.reducedBytes = elements * sizeOf(types.reduced(gradient));
            addGradients(stage, weight, elements, gradient, piece);
        }
        const auto alike =
            std::find_if(stage.weights.begin(), stage.weights.end(), [&](const WeightPiece &each) {
                return each.elements == piece.elements && each.reducedBytes == piece.reducedBytes
                    && each.overShards == piece.overShards;
            });
        if (alike == stage.weights.end())
            stage.weights.push_back(piece);
        else
            ++alike->count;
        if (optimizer < 0)
            return;
        const Operator &op = m_graph.operators[static_cast<std::size_t>(optimizer)];
        for (const TensorId input : op.inputs)
            if (input && m_graph.at(input).role == TensorRole::OptimizerState
                && elementCount(m_graph.at(input).type.shape) == elementCount(m_graph.at(weight).type.shape))
                stage.stateBytes += elements * sizeOf(types.carried(input));
        const auto [known, fresh] = updates.try_emplace(
            {elementCount(m_graph.at(weight).type.shape), static_cast<std::int32_t>(op.kind)});
        if (fresh) {
            const OperatorId id{optimizer};
            std::vector<TensorType> inputs(op.inputs.size());
            std::vector<TensorType> outputs(op.outputs.size());
            for (std::size_t slot = 0; slot < inputs.size(); ++slot)
                if (op.inputs[slot])
                    inputs[slot] = {types.read(id, slot), m_graph.at(op.inputs[slot]).type.shape};
            for (std::size_t slot = 0; slot < outputs.size(); ++slot)
                if (op.outputs[slot])
                    outputs[slot] = {types.made(id, slot), m_graph.at(op.outputs[slot]).type.shape};
            known->second = m_setting.costs->kernel({op, inputs, outputs, computeTypeOf(inputs, outputs),
                true, {}, AttentionMode::Fused, m_setting.deviceClass});
        }
        stage.update += known->second * share;
    }

    /// What it takes to add the gradients of one weight up, by each operator that makes some.
    void addGradients(
        StageFigures &stage, TensorId weight, std::int64_t elements, TensorId gradient, WeightPiece &piece)
    {
        const CostModel &costs = *m_setting.costs;
        const auto copy = [&](std::int64_t moved) {
            return costs.copy(Bytes{moved / 2}, m_setting.deviceClass);
        };
        const double launch = copy(0);
        const std::int64_t out = elements * sizeOf(m_setting.types->accumulated(gradient));
        const Uses &uses = m_setting.model->index->uses();
        bool first = true;
        for (const OperatorId reader : uses.consumers[static_cast<std::size_t>(weight.index)]) {
            const auto r = static_cast<std::size_t>(reader.index);
            if (r >= m_problem.operatorCount())
                continue;
            const Operator &op = m_graph.operators[r];
            for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
                const AxisLayout form = choiceOf(r).inputGradients[slot];
                if (op.inputs[slot] != weight || form == kAbsent)
                    continue;
                piece.overShards = piece.overShards || (form == kSummands && m_setting.parts > 1);
                std::size_t made = 0;
                const Operator &backward = m_graph.at(op.mirror);
                while (made + 1 < backward.outputs.size() && made != slot)
                    ++made;
                const std::int64_t in = elements * sizeOf(m_setting.types->made(op.mirror, made));
                const bool joins = categoryOf(op) == OperatorCategory::Product;
                const double more =
                    joins ? copy(std::max<std::int64_t>(0, 2 * out - in)) - launch : copy(in + 2 * out);
                stage.accumulation += more;
                stage.firstAccumulation += !first ? more
                    : joins                       ? copy(std::max<std::int64_t>(0, out - in)) - launch
                                                  : copy(in + out);
                stage.castGradients += in == out ? 0 : copy(in + out);
                first = false;
            }
        }
    }

    const PartitionProblem &m_problem;
    const AxisSetting &m_setting;
    const Graph &m_graph;
    const std::vector<std::int32_t> &m_choice;
    const OperatorTimes &m_times;
    const StagePlan &m_plan;
    GroupShape m_between{};
    std::vector<StageFigures> m_stages;
};

} // namespace

std::vector<StageFigures> stageFigures(const PartitionProblem &problem,
    const std::vector<std::int32_t> &choice, const OperatorTimes &times, const StagePlan &plan,
    GroupShape between)
{
    return Sums(problem, choice, times, plan, between).take();
}

} // namespace planloom
