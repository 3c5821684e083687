#include "engine/search/partition/partition_problem.h"

#include "engine/graph/operators/catalogue.h"
#include "engine/search/memory/operator_memory.h"
#include "engine/search/partition/choice_ties.h"
#include "engine/search/partition/meeting_tables.h"
#include "engine/table/selector_index.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

namespace planloom {

PartitionProblem::PartitionProblem(const AxisSetting &setting, const ShardGroups &groups)
    : m_setting(setting)
    , m_graph(*setting.model->graph)
    , m_moves(m_setting, groups)
    , m_finder(m_setting, groups)
    , m_weights(m_setting)
{
    const std::size_t count = setting.model->index->forwardCount();
    for (std::size_t i = 0; i < count; ++i) {
        const OperatorId op{static_cast<std::int32_t>(i)};
        m_choices.push_back(&m_finder.of(op));
        if (m_choices.back()->choices.empty() && !m_impossible)
            m_impossible = op;
        const OperatorId backward = m_graph.at(op).mirror;
        m_makesWeightsAlone.push_back(backward && m_finder.makesWeightsAlone(backward));
    }
    findMeetings();
    if (!m_impossible)
        m_ties = choiceTies(m_setting, m_choices, m_finder);
}

PartitionProblem::~PartitionProblem() = default;

std::int64_t PartitionProblem::bytesOf(TensorId tensor, DataType type) const
{
    std::int64_t bytes = elementCount(m_graph.at(tensor).type.shape) * sizeOf(type);
    const BatchInfo &batch = *m_setting.model->batch;
    if (at(tensor) < batch.tensorRole.size() && batch.tensorRole[at(tensor)] == BatchRole::Split)
        bytes /= std::max(1, m_setting.batchCuts);
    return bytes;
}

/// The dimensions of a tensor of one micro-batch that the axes divide, where there are two.
MovedTensor PartitionProblem::cutsOf(TensorId tensor) const
{
    MovedTensor moved;
    const Shape &shape = m_graph.at(tensor).type.shape;
    const BatchInfo &batch = *m_setting.model->batch;
    const auto t = at(tensor);
    for (std::size_t d = 0; d < std::min<std::size_t>(shape.size(), 16) && m_setting.outerParts > 1; ++d) {
        const bool isBatch =
            t < batch.tensorDimension.size() && batch.tensorDimension[t] == static_cast<std::int32_t>(d);
        const std::int64_t size = shape[d] / (isBatch ? std::max(1, m_setting.batchCuts) : 1);
        const auto bitWhere = [&](std::int32_t parts) {
            return static_cast<std::uint16_t>(size > 0 && size % parts == 0 ? 1U << d : 0U);
        };
        moved.innerCuts |= bitWhere(m_setting.parts);
        moved.outerCuts |= bitWhere(m_setting.outerParts);
        moved.bothCuts |= bitWhere(m_setting.shards());
    }
    return moved;
}

MovedTensor PartitionProblem::moved(TensorId tensor, bool gradient) const
{
    MovedTensor moved = cutsOf(tensor);
    moved.bytes = bytesOf(tensor, m_setting.types->carried(gradient ? gradientOf(tensor) : tensor));
    return moved;
}

void PartitionProblem::findMeetings()
{
    const std::size_t count = m_choices.size();
    for (std::size_t t = 0; t < m_graph.tensors.size(); ++t)
        m_storageOf.push_back({static_cast<std::int32_t>(t)});
    for (std::size_t i = 0; i < count; ++i)
        if (const Operator &op = m_graph.operators[i]; isView(op) && op.inputs.front() && op.outputs.front())
            m_storageOf[at(op.outputs.front())] = storageOf(op.inputs.front());
    std::vector<std::int32_t> meetingOf(m_graph.tensors.size(), -1);
    for (std::size_t i = 0; i < count; ++i) {
        const Operator &op = m_graph.operators[i];
        if (isAside(i)) // wherever that is, what it reads and makes costs nothing here
            continue;
        const auto meet = [&](Meeting meeting, const auto &typeOfGradient) {
            const TensorId tensor = meeting.tensor;
            meetingOf[at(tensor)] = static_cast<std::int32_t>(m_meetings.size());
            meeting.bytes = bytesOf(tensor, m_setting.types->carried(tensor));
            if (const TensorId gradient = gradientOf(tensor))
                meeting.gradientBytes = bytesOf(tensor, typeOfGradient(gradient));
            m_meetings.push_back(std::move(meeting));
        };
        for (std::size_t slot = 0; slot < op.outputs.size(); ++slot)
            if (const TensorId tensor = op.outputs[slot])
                meet({.tensor = tensor,
                         .producer = static_cast<std::int32_t>(i),
                         .output = slot,
                         .combination = combinationOf(op.annotation, slot),
                         .cuts = cutsOf(tensor)},
                    [this](TensorId gradient) { return m_setting.types->carried(gradient); });
        for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
            const TensorId tensor = op.inputs[slot];
            if (!tensor)
                continue;
            if (m_graph.at(tensor).role == TensorRole::Weight && meetingOf[at(tensor)] < 0)
                meet({.tensor = tensor},
                    [this](TensorId gradient) { return m_setting.types->reduced(gradient); });
            if (meetingOf[at(tensor)] >= 0)
                m_meetings[at(meetingOf[at(tensor)])].readers.emplace_back(
                    static_cast<std::int32_t>(i), slot);
        }
    }
    std::erase_if(m_meetings, [](const Meeting &meeting) { return meeting.readers.empty(); });
    for (Meeting &meeting : m_meetings) {
        std::set<ShardLayout> layouts;
        for (const auto &[reader, slot] : meeting.readers) {
            bool always = true;
            for (const OperatorChoice &choice : choicesOf(at(reader))) {
                layouts.insert(choice.inputs[slot]);
                always = always && !choice.inputGradients[slot].isAbsent();
            }
            meeting.terms += always ? 1 : 0;
        }
        layouts.erase(kAbsentLayout);
        meeting.layouts.assign(layouts.begin(), layouts.end());
    }
    findLeastBetween();
}

/// What an operator takes hides communication for one tensor only: of those that wait meanwhile, the one that
/// began to first.
void PartitionProblem::findLeastBetween()
{
    std::vector<double> forward;
    std::vector<double> backward;
    std::vector<double> accumulations; // behind what makes the gradients
    for (std::size_t i = 0; i < m_choices.size(); ++i) {
        forward.push_back(leastOf(i, [](const OperatorChoice &each) { return each.forward; }));
        accumulations.push_back(
            leastOf(i, [this, i](const OperatorChoice &each) { return accumulationSeconds(i, each); }));
        // Gradients of weights may be made later, in a pass of their own.
        backward.push_back(
            leastOf(i, [](const OperatorChoice &each) { return each.backward - each.weightGradients; }));
    }
    struct Wait {
        std::size_t begin = 0; ///< Operators between making it and its first reader: from,
        std::size_t end = 0; ///< up to.
        Meeting *meeting = nullptr;
    };
    std::vector<Wait> waits; // in the order in which tensors are made
    for (Meeting &meeting : m_meetings)
        if (meeting.producer >= 0)
            waits.push_back({at(meeting.producer) + 1, at(meeting.firstReader()), &meeting});
    for (const Wait &wait : waits)
        for (std::size_t i = wait.begin; i < wait.end; ++i)
            wait.meeting->beforeRead += std::exchange(forward[i], 0);
    std::stable_sort(waits.begin(), waits.end(), [](const Wait &a, const Wait &b) { return a.end > b.end; });
    for (const Wait &wait : waits) {
        wait.meeting->beforeReadBack += std::exchange(accumulations[wait.end], 0);
        for (std::size_t i = wait.end; i-- > wait.begin;)
            wait.meeting->beforeReadBack +=
                std::exchange(backward[i], 0) + std::exchange(accumulations[i], 0);
    }
}

std::int64_t PartitionProblem::localBytes(TensorId tensor, ShardLayout layout) const
{
    return bytesOf(tensor, m_setting.types->carried(tensor)) / m_setting.partsOf(layout);
}

std::optional<std::vector<std::int32_t>> PartitionProblem::choiceFor(
    const std::vector<Split> &splits, const std::vector<Split> &outer) const
{
    const auto cutsAs = [](const Split &own, const Split &asked) {
        return own.kind == asked.kind
            && (asked.kind == SplitKind::Replicate
                || (own.dimension == asked.dimension && own.sizes == asked.sizes));
    };
    std::vector<std::int32_t> choice;
    for (std::size_t i = 0; i < m_choices.size(); ++i) {
        const auto &own = choicesOf(i);
        if (isAside(i)) {
            choice.push_back(0);
            continue;
        }
        const auto found = std::find_if(own.begin(), own.end(), [&](const OperatorChoice &each) {
            return cutsAs(each.split, splits[i]) && (outer.empty() || cutsAs(each.outer, outer[i]));
        });
        if (found == own.end())
            return std::nullopt;
        choice.push_back(static_cast<std::int32_t>(found - own.begin()));
    }
    return choice;
}

bool PartitionProblem::isDecided() const
{
    return std::all_of(m_choices.begin(), m_choices.end(),
        [](const OperatorChoices *each) { return each->choices.size() == 1; });
}

double PartitionProblem::leastForwardSeconds(const std::vector<std::int32_t> &runs) const
{
    double seconds = 0;
    for (std::size_t i = 0; i < m_choices.size(); ++i)
        if (runs[i] > 0)
            seconds += runs[i] * leastOf(i, [](const OperatorChoice &each) { return each.forward; });
    return seconds;
}

double PartitionProblem::leastKernelSeconds() const
{
    double seconds = 0;
    for (std::size_t i = 0; i < m_choices.size(); ++i)
        seconds += leastOf(i, [](const OperatorChoice &each) { return each.forward + each.backward; });
    return seconds;
}

double PartitionProblem::costOf(
    const PartitionPricing &pricing, const std::vector<std::int32_t> &choice) const
{
    double seconds = 0;
    for (std::size_t i = 0; i < m_choices.size(); ++i)
        seconds += ownSeconds(i, choiceOf(i, choice[i]), pricing);
    for (const Meeting &meeting : m_meetings)
        seconds += m_moves.seconds(meeting, readersOf(meeting, choice), producerOf(meeting, choice));
    CostNetwork tied;
    for (const OperatorChoices *each : m_choices)
        tied.domains.push_back(static_cast<std::int32_t>(each->choices.size()));
    tied.factors = m_ties;
    return seconds + planloom::costOf(tied, choice);
}

/// What an operator costs itself, its weights included.
double PartitionProblem::ownSeconds(
    std::size_t op, const OperatorChoice &choice, const PartitionPricing &pricing) const
{
    const Operator &own = m_graph.operators[op];
    if (pricing.withoutWeights)
        return choice.forward + choice.backward - choice.weightGradients + choice.splitMore;
    const double once = 1.0 / std::max(1, m_setting.microBatches);
    const double reduced = pricing.reductions * (pricing.everyMicroBatch ? 1 : once);
    const double hidden = pricing.everyMicroBatch ? 1 : std::min(1.0, once * pricing.hiddenBehind);
    double seconds = choice.forward + choice.backward * (1 - pricing.reductions * hidden);
    for (std::size_t slot = 0; slot < own.inputs.size(); ++slot) {
        const TensorId weight = own.inputs[slot];
        if (!weight || m_graph.at(weight).role != TensorRole::Weight || choice.inputs[slot].isAbsent())
            continue;
        const double readers = std::max(1, m_weights.readersOf(weight));
        const double share = 1.0 / m_setting.partsOf(choice.inputs[slot]) / readers;
        const auto accumulation = accumulationOf(op, slot, choice);
        const std::size_t sums = indexOf(accumulation ? accumulation->sums : ShardAxes::None);
        seconds += m_weights.updateSeconds(weight) * share * once * pricing.updates[sums];
        if (!accumulation)
            continue;
        if (pricing.accumulates)
            seconds += accumulation->first * once + accumulation->more * (1 - once)
                - pricing.reductions * hidden * std::max(accumulation->first, accumulation->more);
        else // cast where they are made: a part of the pass that hides reductions
            seconds += accumulation->cast * (1 - pricing.reductions);
        if (!pricing.everyMicroBatch || !pricing.mayShare || readers < 2)
            seconds += reduced * m_weights.secondsOf(weight, pricing.reduced[sums], share, readers);
        seconds += once * m_weights.secondsOf(weight, pricing.behind[sums], share, readers);
    }
    if (pricing.held)
        seconds += heldSeconds(*this, op, choice, *pricing.held);
    return seconds;
}

MeetingTables &PartitionProblem::tables() const
{
    if (!m_tables)
        m_tables = std::make_unique<MeetingTables>(*this);
    return *m_tables;
}

CostNetwork PartitionProblem::networkOf(
    const std::function<double(std::size_t, const OperatorChoice &)> &costOf) const
{
    CostNetwork network;
    std::map<std::pair<std::int32_t, std::vector<double>>, CostTable> tables; // by kind
    for (std::size_t i = 0; i < m_choices.size(); ++i) {
        network.domains.push_back(static_cast<std::int32_t>(choiceCount(i)));
        std::vector<double> costs;
        for (const OperatorChoice &choice : choicesOf(i))
            costs.push_back(costOf(i, choice));
        CostTable &table = tables[{kindOf(i), costs}];
        if (!table)
            table = std::make_shared<const std::vector<double>>(std::move(costs));
        network.factors.push_back({{static_cast<std::int32_t>(i)}, table});
    }
    return network;
}

CostNetwork PartitionProblem::network(const PartitionPricing &pricing) const
{
    CostNetwork network = networkOf(
        [&](std::size_t op, const OperatorChoice &choice) { return ownSeconds(op, choice, pricing); });
    for (std::size_t m = 0; m < m_meetings.size(); ++m) {
        const std::int32_t producer = m_meetings[m].producer;
        const bool isApart = pricing.withoutWeights && producer >= 0 && makesWeightsAlone(at(producer));
        const std::vector<CostFactor> &factors =
            tables().of(m, isApart ? CountedPasses::Forward : CountedPasses::Both);
        network.factors.insert(network.factors.end(), factors.begin(), factors.end());
    }
    network.factors.insert(network.factors.end(), m_ties.begin(), m_ties.end());
    return network;
}

MeetingMoves::Readers PartitionProblem::readersOf(
    const Meeting &meeting, const std::vector<std::int32_t> &choice) const
{
    MeetingMoves::Readers readers;
    for (const auto &[reader, slot] : meeting.readers)
        readers.push_back(&choiceOf(at(reader), choice[at(reader)]));
    return readers;
}

std::vector<double> PartitionProblem::sharesOf(const std::vector<std::int32_t> &choice) const
{
    std::vector<double> shares(m_graph.tensors.size(), 1);
    for (const Meeting &meeting : m_meetings)
        if (const OperatorChoice *producer = producerOf(meeting, choice))
            shares[at(meeting.tensor)] = 1.0 / m_setting.partsOf(producer->outputs[meeting.output]);
    return shares;
}

} // namespace planloom
