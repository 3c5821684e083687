#include "engine/search/time/stage_figures.h"

#include "engine/search/memory/operator_memory.h"
#include "engine/table/selector_index.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace planloom {

namespace {

/// Adds up what stages do, one aspect after the other.
class Sums
{
public:
    Sums(const PartitionProblem &problem, const std::vector<std::int32_t> &choice, const OperatorTimes &times,
        const StagePlan &plan)
        : m_problem(problem)
        , m_setting(problem.setting())
        , m_graph(*m_setting.model->graph)
        , m_choice(choice)
        , m_times(times)
        , m_plan(plan)
        , m_stages(static_cast<std::size_t>(plan.stages))
        , m_accumulation(problem.operatorCount(), 0)
    {
    }

    std::vector<StageFigures> take() &&
    {
        addTimes();
        addKept();
        addDeferred();
        addPassing();
        addWeights();
        return std::move(m_stages);
    }

private:
    const OperatorChoice &choiceOf(std::size_t op) const { return m_problem.choiceOf(op, m_choice[op]); }
    StageFigures &stageOf(std::size_t op) { return m_stages[at(m_plan.stageOf[op])]; }
    /// Seconds of the backward pass in which an operator runs again.
    double againSeconds(std::size_t op) const
    {
        return op < m_plan.runsAgain.size() ? m_plan.runsAgain[op] * m_times.forward[op] : 0;
    }

    double apartOf(std::size_t op) const { return apartSeconds(m_problem, op, m_choice[op], m_times); }

    void addTimes()
    {
        for (std::size_t i = 0; i < m_problem.operatorCount(); ++i) {
            StageTime &time = stageOf(i).time;
            time.forward += m_times.forward[i];
            time.backward += m_times.backward[i] + againSeconds(i);
            const double weights = apartOf(i);
            time.weights += weights;
            time.backward -= weights;
            stageOf(i).splitMore += choiceOf(i).splitMore;
        }
    }

    /// What backward passes read again, once for each form it is read in.
    void addKept()
    {
        std::set<std::tuple<std::int32_t, std::int32_t, ShardLayout, bool>>
            seen; // stage, tensor, layout, again
        std::vector<std::map<std::int32_t, std::int64_t>> together(m_stages.size()); // by group
        for (std::size_t i = 0; i < m_problem.operatorCount(); ++i) {
            const Operator &op = m_graph.operators[i];
            const OperatorChoice &choice = choiceOf(i);
            const std::int32_t stage = m_plan.stageOf[i];
            for (std::size_t slot = 0; slot < choice.kept.size(); ++slot) {
                const auto kept = keptPlace(m_problem, i, slot, m_plan);
                const std::int64_t bytes = keptBytes(m_problem, i, choice, slot, kept);
                if (bytes == 0)
                    continue;
                const ShardLayout layout =
                    slot < op.inputs.size() ? choice.inputs[slot] : choice.outputs[slot - op.inputs.size()];
                if (!seen.insert({stage, kept.storage.index, formOf(layout), kept.again}).second)
                    continue;
                if (!kept.again) {
                    m_stages[static_cast<std::size_t>(stage)].keptBytes += bytes;
                    continue;
                }
                const auto maker = m_setting.model->index->uses().producers[at(kept.storage)].front();
                together[static_cast<std::size_t>(stage)][againWith(m_plan, maker.index)] += bytes;
            }
        }
        for (std::size_t s = 0; s < together.size(); ++s) {
            std::int64_t most = 0;
            for (const auto &[group, bytes] : together[s])
                most = std::max(most, bytes);
            m_stages[s].passingBytes += most;
        }
    }

    /// What products that have weights read again to make their gradients, and the gradients of what they
    /// made.
    void addDeferred()
    {
        std::set<std::pair<std::int32_t, TensorId>> seen; // stage, and where it lies
        for (std::size_t i = 0; i < m_problem.operatorCount(); ++i) {
            const OperatorChoice &choice = choiceOf(i);
            if (m_problem.isAside(i) || choice.weightGradients == 0)
                continue;
            const Operator &op = m_graph.operators[i];
            for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
                const TensorId input = op.inputs[slot];
                if (defers(m_problem, i, choice, slot)
                    && seen.emplace(m_plan.stageOf[i], m_problem.storageOf(input)).second)
                    stageOf(i).deferredBytes += m_problem.localBytes(input, choice.inputs[slot]);
            }
            for (std::size_t slot = 0; slot < op.outputs.size(); ++slot)
                if (defersGradient(m_problem, i, slot))
                    stageOf(i).deferredBytes +=
                        m_problem.localBytes(op.outputs[slot], choice.outputGradients[slot]);
        }
    }

    /// The most gradients that one backward operator reads and makes: no pass keeps them.
    void addPassing()
    {
        std::vector<std::int64_t> most(m_stages.size(), 0);
        for (std::size_t i = 0; i < m_problem.operatorCount(); ++i) {
            auto &own = most[at(m_plan.stageOf[i])];
            own = std::max(own, passingBytes(m_problem, i, choiceOf(i)));
        }
        for (std::size_t s = 0; s < most.size(); ++s)
            m_stages[s].passingBytes += most[s];
    }

    using FirstReaders = std::vector<std::pair<std::int32_t, OperatorId>>; ///< By stage, ascending.

    /// Weights belong to the stage that reads them first; tied ones to all that do.
    void addWeights()
    {
        const Uses &uses = m_setting.model->index->uses();
        std::vector<GatheredWeights> gathered(m_stages.size());
        std::vector<std::vector<Read>> read(m_stages.size()); // trained weights
        FirstReaders readBy;
        for (std::size_t t = 0; t < m_graph.tensors.size(); ++t) {
            const TensorId weight{static_cast<std::int32_t>(t)};
            const TensorRole role = m_graph.tensors[t].role;
            if (role != TensorRole::Weight && role != TensorRole::Buffer)
                continue;
            readBy.clear();
            for (const OperatorId reader : uses.consumers[t])
                if (const auto r = at(reader); r < m_problem.operatorCount() && !m_problem.isAside(r)
                    && std::none_of(readBy.begin(), readBy.end(),
                        [&](const auto &each) { return each.first == m_plan.stageOf[r]; }))
                    readBy.emplace_back(m_plan.stageOf[r], reader);
            std::sort(readBy.begin(), readBy.end());
            // Its gradient is complete once those placed apart have made theirs, too.
            for (auto &[s, first] : readBy)
                for (const OperatorId reader : uses.consumers[t])
                    if (reader < first && m_plan.stageOf[at(reader)] == s)
                        first = reader;
            const double share = m_problem.shareOf(weight, m_choice);
            const auto elements = static_cast<std::int64_t>(
                static_cast<double>(elementCount(m_graph.tensors[t].type.shape)) * share);
            for (const auto &[s, reader] : readBy) {
                const WeightPiece piece = addWeight(s, weight, elements, share);
                gathered[static_cast<std::size_t>(s)].add(
                    reader, m_setting.model->index->layerOf(reader), static_cast<double>(piece.modelBytes));
                if (piece.reducedBytes == 0)
                    continue;
                read[static_cast<std::size_t>(s)].push_back({reader, piece, readBy.size() > 1});
                if (readBy.size() > 1 && s == readBy.front().first)
                    addShared(m_stages[static_cast<std::size_t>(s)], readBy, piece);
            }
        }
        putInOrder(read);
        for (std::size_t s = 0; s < m_stages.size(); ++s)
            m_stages[s].gatheredBytes = static_cast<std::int64_t>(gathered[s].most());
    }

    struct Read {
        OperatorId reader{};
        WeightPiece piece{};
        bool isShared = false; ///< With other stages.
    };

    static void addShared(StageFigures &stage, const FirstReaders &readBy, const WeightPiece &piece)
    {
        SharedWeight shared{.reducedBytes = piece.reducedBytes, .sums = piece.sums, .update = piece.update};
        for (const auto &[s, reader] : readBy)
            shared.stages.push_back(s);
        stage.shared.push_back(std::move(shared));
    }

    /// Weights that are read at nearly the same time count as one: they are gathered when the last of them
    /// is, and reduced when the last is complete.
    /// @param read  by stage
    void putInOrder(std::vector<std::vector<Read>> &read)
    {
        struct Before { // what a stage's operators until then take
            std::size_t next = 0; // weight
            double forward = 0;
            double backward = 0;
            double apart = 0;
        };
        for (std::vector<Read> &own : read)
            std::stable_sort(
                own.begin(), own.end(), [](const Read &a, const Read &b) { return a.reader < b.reader; });
        std::vector<Before> all(m_stages.size());
        std::vector<double> accumulated(m_stages.size(), 0);
        std::vector<double> accumulatedApart(m_stages.size(), 0);
        const auto isApart = [this](std::size_t op) { return apartOf(op) > 0; };
        for (std::size_t i = 0; i < m_problem.operatorCount(); ++i) {
            const auto s = at(m_plan.stageOf[i]);
            accumulated[s] += m_accumulation[i];
            accumulatedApart[s] += isApart(i) ? m_accumulation[i] : 0;
        }
        for (std::size_t i = 0; i < m_problem.operatorCount(); ++i) {
            const auto s = at(m_plan.stageOf[i]);
            Before &before = all[s];
            const double weights = apartOf(i);
            for (; before.next < read[s].size()
                 && read[s][before.next].reader.index == static_cast<std::int32_t>(i);
                 ++before.next)
                putBehind(m_stages[s], read[s][before.next],
                    {before.forward, before.backward, weights > 0 ? before.apart : -1, accumulated[s],
                        accumulatedApart[s]});
            before.forward += m_times.forward[i];
            before.backward += m_times.backward[i] + againSeconds(i) + m_accumulation[i];
            before.apart += isApart(i) ? weights + m_accumulation[i] : 0;
        }
    }

    struct Behind { ///< Seconds.
        double forward = 0; ///< Of the stage's operators before the reader,
        double backward = 0; ///< likewise,
        double apart =
            0; ///< of what they do for weights alone: -1 where the reader's are made by no product.
        double accumulated = 0; ///< Of all that the stage adds up in a pass,
        double accumulatedApart = 0; ///< and of that which products make.
    };
    void putBehind(StageFigures &stage, const Read &read, const Behind &before) const
    {
        const auto &[forward, backward, apart, accumulated, accumulatedApart] = before;
        constexpr double kSteps = 512; // of a pass
        const auto part = [](double of, double whole) {
            return whole > 0 ? std::clamp(of / whole, 0.0, 1.0) : 0;
        };
        const double rest = stage.time.forward - forward;
        const auto layerOf = [this](
                                 std::int32_t op) { return m_setting.model->index->layerOf(OperatorId{op}); };
        if (stage.inOrder.empty() || stage.inOrder.back().rest - rest > stage.time.forward / kSteps
            || layerOf(stage.inOrder.back().reader) != layerOf(read.reader.index)
            || (layerOf(read.reader.index) < 0 && stage.inOrder.back().reader != read.reader.index))
            stage.inOrder.push_back({.reader = read.reader.index,
                .left = part(backward, stage.time.backward + stage.time.weights + accumulated),
                .leftApart = 1,
                .rest = rest});
        StageWeights &own = stage.inOrder.back();
        own.lastReader = read.reader.index;
        // What is no product makes gradients of its weights before those of products are begun.
        if (apart >= 0)
            own.leftApart = std::min(own.leftApart, part(apart, stage.time.weights + accumulatedApart));
        const std::size_t form = indexOf(read.piece.sums);
        if (!read.isShared) {
            own.reducedBytes[form] += read.piece.reducedBytes;
            own.ownModelBytes[form] += read.piece.modelBytes;
            if (read.piece.reducedBytes > 0)
                own.gradients.push_back({read.piece.sums, read.piece.reducedBytes, read.piece.update});
        }
        own.modelBytes[form] += read.piece.modelBytes;
    }

    WeightPiece addWeight(std::int32_t s, TensorId weight, std::int64_t elements, double share)
    {
        StageFigures &stage = m_stages[static_cast<std::size_t>(s)];
        const StorageTypes &types = *m_setting.types;
        const WeightBytes &whole = m_problem.weights().bytesOf(weight);
        const auto part = [&](std::int64_t bytes) {
            return static_cast<std::int64_t>(static_cast<double>(bytes) * share);
        };
        WeightPiece piece{.elements = elements, .count = 1};
        piece.modelBytes = part(whole.model);
        stage.modelBytes += part(whole.model);
        piece.stateBytes = part(whole.state);
        piece.update = m_problem.weights().updateSeconds(weight) * share;
        stage.gradientBytes += part(whole.gradient);
        if (const TensorId gradient = m_problem.gradientOf(weight)) {
            piece.reducedBytes = elements * sizeOf(types.reduced(gradient));
            const std::int64_t made = elements * sizeOf(types.carried(gradient));
            stage.madeBytes = std::max(stage.madeBytes, made);
            stage.castBytes = std::max(
                stage.castBytes, types.reduced(gradient) == types.carried(gradient) ? 0 : piece.reducedBytes);
            addGradients(s, weight, piece);
        }
        const auto alike =
            std::find_if(stage.weights.begin(), stage.weights.end(), [&](const WeightPiece &each) {
                return each.elements == piece.elements && each.modelBytes == piece.modelBytes
                    && each.reducedBytes == piece.reducedBytes && each.sums == piece.sums
                    && each.stateBytes == piece.stateBytes;
            });
        if (alike == stage.weights.end())
            stage.weights.push_back(piece);
        else
            ++alike->count;
        return piece;
    }

    /// What it takes to add the gradients of one weight up, by each operator of a stage that makes some.
    void addGradients(std::int32_t s, TensorId weight, WeightPiece &piece)
    {
        StageFigures &stage = m_stages[static_cast<std::size_t>(s)];
        const double once = 1.0 / std::max(1, m_setting.microBatches);
        bool first = true;
        for (const OperatorId reader : m_setting.model->index->uses().consumers[at(weight)]) {
            const auto r = at(reader);
            if (r >= m_problem.operatorCount())
                continue;
            for (std::size_t slot = 0; slot < m_graph.operators[r].inputs.size(); ++slot) {
                if (m_graph.operators[r].inputs[slot] != weight)
                    continue;
                const auto own = m_problem.accumulationOf(r, slot, choiceOf(r));
                if (!own)
                    continue;
                piece.sums = together(piece.sums, own->sums);
                if (m_plan.stageOf[r] != s)
                    continue;
                const double begins = first ? own->first : own->more;
                const bool isApart = apartOf(r) > 0;
                StageFigures::Accumulation &accumulation = isApart ? stage.accumulation : stage.withInputs;
                accumulation.more += own->more;
                accumulation.first += begins;
                accumulation.cast += own->cast;
                m_accumulation[r] += begins * once + own->more * (1 - once);
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
    std::vector<StageFigures> m_stages;
    /// By operator: seconds of a pass, in the mean, in which gradients of its weights are added up.
    std::vector<double> m_accumulation;
};

} // namespace

void GatheredWeights::add(OperatorId reader, std::int32_t layer, double bytes)
{
    Layer &own = m_layers[layer < 0 ? -2 - reader.index : layer];
    own.first = own.first ? std::min(own.first, reader) : reader;
    own.bytes += bytes;
}

double GatheredWeights::most() const
{
    std::vector<std::pair<OperatorId, double>> order;
    for (const auto &[layer, own] : m_layers)
        order.emplace_back(own.first, own.bytes);
    std::sort(order.begin(), order.end());
    double most = 0;
    for (std::size_t i = 0; i < order.size(); ++i)
        most = std::max(most, order[i].second + (i > 0 ? order[i - 1].second : 0));
    return most;
}

std::vector<StageLink> stageLinks(const PartitionProblem &problem, const StagePlan &plan,
    const std::function<std::int64_t(const Meeting &)> &parts, const PassedBefore &before)
{
    std::map<std::pair<std::int32_t, std::int32_t>, StageLink> links;
    for (std::size_t m = 0; m < problem.meetings().size(); ++m) {
        const Meeting &meeting = problem.meetings()[m];
        if (meeting.producer < 0)
            continue;
        const auto p = at(meeting.producer);
        const std::int32_t from = plan.stageOf[p];
        std::map<std::int32_t, std::int32_t> readBy; // first reader by stage
        for (const auto &[reader, slot] : meeting.readers)
            if (const std::int32_t to = plan.stageOf[static_cast<std::size_t>(reader)]; to > from) {
                const auto [own, fresh] = readBy.try_emplace(to, reader);
                own->second = std::min(own->second, reader);
            }
        if (readBy.empty())
            continue;
        const std::int64_t share = parts(meeting);
        std::vector<std::int32_t> earlier;
        for (const auto &[to, reader] : readBy) {
            StageLink &link = links[{from, to}];
            link.from = from;
            link.to = to;
            if (meeting.bytes > 0)
                link.forward.push_back({meeting.bytes / share, m, reader,
                    before.forward[static_cast<std::size_t>(reader)], earlier});
            if (meeting.gradientBytes > 0)
                link.backward.push_back(
                    {meeting.gradientBytes / share, m, meeting.producer, before.backward[p], {}});
            earlier.push_back(to);
        }
    }
    for (std::int32_t s = 0; plan.isChain && s + 1 < plan.stages; ++s) {
        StageLink &link = links[{s, s + 1}];
        link.from = s;
        link.to = s + 1;
        link.isChain = true;
    }
    std::vector<StageLink> all;
    for (auto &[ends, link] : links) {
        const auto readFirst = [](const StageLink::Sent &a, const StageLink::Sent &b) {
            return a.reader < b.reader;
        };
        std::stable_sort(link.forward.begin(), link.forward.end(), readFirst);
        std::stable_sort(link.backward.rbegin(), link.backward.rend(), readFirst);
        all.push_back(std::move(link));
    }
    return all;
}

SentAhead sentAhead(const std::vector<StageLink::Sent> &sent, const std::vector<double> &seconds)
{
    SentAhead ahead;
    double all = 0;
    for (std::size_t i = 0; i < sent.size(); ++i) {
        all += seconds[i];
        if (seconds[i] > 0 && all - sent[i].before > ahead.seconds)
            ahead = {all - sent[i].before, static_cast<std::int32_t>(i)};
    }
    return ahead;
}

namespace {

/// What is dropped is computed again before the backward pass of its group begins.
PassedBefore passedBefore(const PartitionProblem &problem, const StagePlan &plan,
    const std::vector<std::int32_t> &choice, const OperatorTimes &times)
{
    const std::size_t count = times.forward.size();
    std::map<std::pair<std::int32_t, std::int32_t>, double> again; // by stage and group
    for (std::size_t i = 0; i < std::min(count, plan.runsAgain.size()); ++i)
        if (plan.runsAgain[i] > 0)
            again[{plan.stageOf[i], againWith(plan, static_cast<std::int32_t>(i))}] +=
                plan.runsAgain[i] * times.forward[i];
    PassedBefore before{std::vector<double>(count), std::vector<double>(count)};
    std::vector<double> passed(static_cast<std::size_t>(plan.stages), 0);
    for (std::size_t i = 0; i < count; ++i) {
        double &own = passed[at(plan.stageOf[i])];
        before.forward[i] = own;
        own += times.forward[i];
    }
    passed.assign(passed.size(), 0);
    for (std::size_t i = count; i-- > 0;) {
        double &own = passed[at(plan.stageOf[i])];
        if (i < plan.runsAgain.size() && plan.runsAgain[i] > 0)
            own += std::exchange(again[{plan.stageOf[i], againWith(plan, static_cast<std::int32_t>(i))}], 0);
        before.backward[i] = own;
        if (!problem.makesWeightsAlone(i))
            own += times.backward[i] - problem.choiceOf(i, choice[i]).weightGradients;
    }
    return before;
}

} // namespace

std::vector<StageLink> stageLinks(const PartitionProblem &problem, const StagePlan &plan,
    const std::vector<std::int32_t> &choice, const OperatorTimes &times)
{
    return stageLinks(
        problem, plan,
        [&](const Meeting &meeting) {
            const auto p = at(meeting.producer);
            return partsSent(problem, problem.choiceOf(p, choice[p]).outputs[meeting.output]);
        },
        passedBefore(problem, plan, choice, times));
}

std::int64_t partsSent(const PartitionProblem &problem, ShardLayout layout)
{
    const AxisSetting &setting = problem.setting();
    return std::int64_t{layout.inner == kWhole ? 1 : setting.parts}
    * (layout.outer == kWhole ? 1 : setting.outerParts);
}

std::vector<StageFigures> stageFigures(const PartitionProblem &problem,
    const std::vector<std::int32_t> &choice, const OperatorTimes &times, const StagePlan &plan)
{
    return Sums(problem, choice, times, plan).take();
}

} // namespace planloom
