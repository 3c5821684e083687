#include "engine/search/partition_problem.h"

#include "engine/binding/alike.h"
#include "engine/graph/catalogue.h"
#include "engine/plan/followed_split.h"
#include "engine/plan/part_counts.h"
#include "engine/search/meeting_tables.h"
#include "engine/search/stage_figures.h"
#include "engine/table/selector_index.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

namespace planloom {

PartitionProblem::PartitionProblem(const AxisSetting &setting, const ShardGroups &groups)
    : m_setting(setting)
    , m_graph(*setting.model->graph)
    , m_moves(*setting.costs, groups, setting.parts, setting.outerParts, setting.deviceClass)
    , m_group(groups.inner)
    , m_finder(m_setting)
{
    const std::size_t count = setting.model->index->forwardCount();
    for (std::size_t i = 0; i < count; ++i) {
        const OperatorId op{static_cast<std::int32_t>(i)};
        m_choices.push_back(&m_finder.of(op));
        if (m_choices.back()->choices.empty() && !m_impossible)
            m_impossible = op;
    }
    findWeights();
    findMeetings();
    if (!m_impossible)
        m_ties = findTies();
}

PartitionProblem::~PartitionProblem() = default;

std::int64_t PartitionProblem::bytesOf(TensorId tensor, DataType type) const
{
    const Tensor &own = m_graph.at(tensor);
    std::int64_t bytes = elementCount(own.type.shape) * sizeOf(type);
    const BatchInfo &batch = *m_setting.model->batch;
    const auto t = static_cast<std::size_t>(tensor.index);
    if (t < batch.tensorRole.size() && batch.tensorRole[t] == BatchRole::Split)
        bytes /= std::max(1, m_setting.batchCuts);
    return bytes;
}

/// The dimensions of a tensor of one micro-batch that the axes divide, where there are two.
MovedTensor PartitionProblem::cutsOf(TensorId tensor) const
{
    MovedTensor moved;
    const Shape &shape = m_graph.at(tensor).type.shape;
    const BatchInfo &batch = *m_setting.model->batch;
    const auto t = static_cast<std::size_t>(tensor.index);
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

MovedTensor PartitionProblem::Meeting::forward() const
{
    MovedTensor moved = cuts;
    moved.bytes = bytes;
    moved.combination = combination;
    return moved;
}

MovedTensor PartitionProblem::Meeting::backward() const
{
    MovedTensor moved = cuts;
    moved.bytes = gradientBytes;
    return moved;
}

void PartitionProblem::findMeetings()
{
    const std::size_t count = m_choices.size();
    const std::vector<TensorId> &gradientOf = m_gradientOf;
    for (std::size_t t = 0; t < m_graph.tensors.size(); ++t)
        m_storageOf.push_back({static_cast<std::int32_t>(t)});
    for (std::size_t i = 0; i < count; ++i)
        if (const Operator &op = m_graph.operators[i]; isView(op) && op.inputs.front() && op.outputs.front())
            m_storageOf[static_cast<std::size_t>(op.outputs.front().index)] = storageOf(op.inputs.front());
    std::vector<std::int32_t> meetingOf(m_graph.tensors.size(), -1);
    for (std::size_t i = 0; i < count; ++i) {
        const Operator &op = m_graph.operators[i];
        if (isAside(i)) // wherever that is, what it reads and makes costs nothing here
            continue;
        for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
            const TensorId tensor = op.outputs[slot];
            if (!tensor)
                continue;
            const auto t = static_cast<std::size_t>(tensor.index);
            meetingOf[t] = static_cast<std::int32_t>(m_meetings.size());
            Meeting meeting{.tensor = tensor, .producer = static_cast<std::int32_t>(i), .output = slot};
            meeting.bytes = bytesOf(tensor, m_setting.types->carried(tensor));
            meeting.combination = combinationOf(op.annotation, slot);
            meeting.cuts = cutsOf(tensor);
            if (gradientOf[t])
                meeting.gradientBytes = bytesOf(tensor, m_setting.types->carried(gradientOf[t]));
            m_meetings.push_back(std::move(meeting));
        }
        for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
            const TensorId tensor = op.inputs[slot];
            if (!tensor)
                continue;
            const auto t = static_cast<std::size_t>(tensor.index);
            if (m_graph.tensors[t].role == TensorRole::Weight && meetingOf[t] < 0) {
                meetingOf[t] = static_cast<std::int32_t>(m_meetings.size());
                Meeting meeting{.tensor = tensor};
                meeting.bytes = bytesOf(tensor, m_setting.types->carried(tensor));
                if (gradientOf[t])
                    meeting.gradientBytes = bytesOf(tensor, m_setting.types->reduced(gradientOf[t]));
                m_meetings.push_back(std::move(meeting));
            }
            if (meetingOf[t] >= 0)
                m_meetings[static_cast<std::size_t>(meetingOf[t])].readers.emplace_back(
                    static_cast<std::int32_t>(i), slot);
        }
    }
    std::erase_if(m_meetings, [](const Meeting &meeting) { return meeting.readers.empty(); });
    for (Meeting &meeting : m_meetings) {
        std::set<ShardLayout> layouts;
        for (const auto &[reader, slot] : meeting.readers) {
            bool always = true;
            for (const OperatorChoice &choice : m_choices[static_cast<std::size_t>(reader)]->choices) {
                layouts.insert(choice.inputs[slot]);
                always = always && !choice.inputGradients[slot].isAbsent();
            }
            meeting.terms += always ? 1 : 0;
        }
        layouts.erase(kAbsentLayout);
        meeting.layouts.assign(layouts.begin(), layouts.end());
    }
}

double PartitionProblem::Moves::operator()(ShardLayout fromBoth, ShardLayout toBoth) const
{
    if (table)
        return table->seconds(fromBoth, toBoth);
    const AxisSetting &setting = problem.m_setting;
    const AxisCollectives &collectives = problem.m_moves.overInner();
    const AxisLayout from = fromBoth.inner;
    const AxisLayout to = toBoth.inner;
    if (from == to || setting.parts < 2 || tensor.bytes == 0)
        return 0;
    const std::int64_t part = tensor.bytes / setting.parts;
    if (from == kSummands) {
        const CollectiveKind kind = to == kWhole ? CollectiveKind::AllReduce : CollectiveKind::ReduceScatter;
        return tensor.combination == Combination::Sum
            ? collectives.seconds(kind, tensor.bytes)
            : reductionSeconds(
                *setting.costs, kind, Bytes{tensor.bytes}, problem.m_group, onceWeighed(tensor.combination));
    }
    if (to == kSummands)
        return 0; // a summand of what is whole: one device has it, the others nothing
    if (from == kWhole)
        return setting.costs->copy(Bytes{part}, setting.deviceClass);
    return to == kWhole ? collectives.seconds(CollectiveKind::AllGather, tensor.bytes)
                        : collectives.seconds(CollectiveKind::AllToAll, part);
}

/// What one tensor's readers need, from how it is made.
double PartitionProblem::forwardSeconds(
    const Meeting &meeting, ShardLayout made, const std::vector<ShardLayout> &read) const
{
    std::set<ShardLayout> wanted;
    for (const ShardLayout layout : read)
        if (!layout.isAbsent() && layout != made)
            wanted.insert(layout);
    if (wanted.empty())
        return 0;
    const Moves move = movesOf(meeting.forward());
    double direct = 0;
    for (const ShardLayout layout : wanted)
        direct += move(made, layout);
    double best = direct;
    // Once one of them is there, the others can be made of it.
    for (const ShardLayout first : wanted) {
        double through = move(made, first);
        for (const ShardLayout layout : wanted)
            if (layout != first)
                through += std::min(move(first, layout), move(made, layout));
        best = std::min(best, through);
    }
    return best;
}

double PartitionProblem::backwardSeconds(
    const Meeting &meeting, const std::vector<ShardLayout> &made, ShardLayout read) const
{
    if (meeting.gradientBytes == 0 || read.isAbsent())
        return 0;
    std::set<ShardLayout> forms;
    int terms = 0;
    for (const ShardLayout layout : made)
        if (!layout.isAbsent()) {
            forms.insert(layout);
            ++terms;
        }
    double seconds = 0;
    const Moves move = movesOf(meeting.backward());
    for (const ShardLayout form : forms)
        seconds += move(form, read);
    if (terms > 1 && !m_setting.batchAlone) { // they are added up where they meet
        const std::int64_t bytes =
            meeting.gradientBytes / (forms.size() == 1 ? m_setting.partsOf(*forms.begin()) : 1);
        seconds += m_setting.costs->copy(Bytes{bytes * (terms + 1) / 2}, m_setting.deviceClass);
    }
    return seconds;
}

double PartitionProblem::meetingSeconds(const Meeting &meeting,
    const std::vector<const OperatorChoice *> &readers, const OperatorChoice *producer, Passes passes) const
{
    std::vector<ShardLayout> read;
    std::vector<ShardLayout> gradients;
    for (std::size_t r = 0; r < readers.size(); ++r) {
        read.push_back(readers[r]->inputs[meeting.readers[r].second]);
        gradients.push_back(readers[r]->inputGradients[meeting.readers[r].second]);
    }
    if (producer)
        return (passes == Passes::Backward ? 0
                                           : forwardSeconds(meeting, producer->outputs[meeting.output], read))
            + (passes == Passes::Forward
                    ? 0
                    : backwardSeconds(meeting, gradients, producer->outputGradients[meeting.output]));
    // A weight lies as its readers want it, all of them alike, and so do its gradients: else it would be held
    // twice, and summands of whole and of cut boxes added up piece by piece.
    std::set<ShardLayout> forms(gradients.begin(), gradients.end());
    forms.erase(kAbsentLayout);
    const bool alike =
        std::all_of(read.begin(), read.end(), [&](ShardLayout each) { return each == read.front(); });
    return alike && forms.size() < 2 ? 0 : std::numeric_limits<double>::infinity();
}

double PartitionProblem::shareSeconds(const Meeting &meeting, std::size_t reader,
    const OperatorChoice &choice, const OperatorChoice *producer, Passes passes) const
{
    const std::size_t slot = meeting.readers[reader].second;
    const ShardLayout read = choice.inputs[slot];
    const ShardLayout gradient = choice.inputGradients[slot];
    double seconds = 0;
    if (!producer)
        return 0;
    if (passes != Passes::Backward && !read.isAbsent()) {
        const ShardLayout made = producer->outputs[meeting.output];
        const Moves move = movesOf(meeting.forward());
        double least = move(made, read);
        for (const ShardLayout on : meeting.layouts)
            least = std::min(least, move(made, on) + move(on, read));
        seconds += least;
    }
    if (passes != Passes::Forward && !gradient.isAbsent()) {
        seconds += backwardSeconds(meeting, {gradient}, producer->outputGradients[meeting.output]);
        if (meeting.gradientBytes > 0 && !producer->outputGradients[meeting.output].isAbsent()) {
            // As if all others were added up in the same form.
            const std::int64_t bytes = meeting.gradientBytes / m_setting.partsOf(gradient);
            if (meeting.terms > 1)
                seconds +=
                    m_setting.costs->copy(Bytes{bytes * (meeting.terms + 1) / 2}, m_setting.deviceClass);
        }
    }
    return seconds / static_cast<double>(meeting.readers.size());
}

double PartitionProblem::heldBytes(
    std::size_t op, const OperatorChoice &choice, const HeldPricing &held) const
{
    const Operator &own = m_graph.operators[op];
    const std::vector<std::int32_t> &stageOf = held.plan->stageOf;
    const HeldPricing::Stage &stage = held.stages[static_cast<std::size_t>(stageOf[op])];
    double bytes = 0;
    for (std::size_t slot = 0; slot < own.inputs.size(); ++slot) {
        const TensorId tensor = own.inputs[slot];
        if (!tensor || m_graph.at(tensor).role == TensorRole::Activation || choice.inputs[slot].isAbsent())
            continue;
        const WeightBytes &whole = bytesOf(tensor);
        if (whole.all() == 0)
            continue;
        const std::int32_t readers = std::max(1, m_readers[at(tensor)]);
        const auto accumulation = accumulationOf(op, slot, choice);
        // Of several readers one may have it summed over axes, and then states are cut over them.
        const double states = readers > 1
            ? *std::min_element(held.states.begin(), held.states.end())
            : held.states[indexOf(accumulation ? accumulation->sums : ShardAxes::None)];
        const auto here = held.readers.find({tensor, stageOf[op]});
        bytes += (static_cast<double>(whole.model) * held.model + static_cast<double>(whole.state) * states
                     + static_cast<double>(whole.gradient) * stage.held.gradients)
            / m_setting.partsOf(choice.inputs[slot]) / (here == held.readers.end() ? readers : here->second);
    }
    for (std::size_t slot = 0; slot < choice.kept.size(); ++slot)
        if (const KeptPlace place = keptPlace(op, slot, *held.plan); place.storage && !place.again)
            if (const std::int64_t kept = keptBytes(op, choice, slot, place); kept > 0)
                bytes +=
                    stage.held.microBatches * static_cast<double>(kept) / held.keepers[at(place.storage)];
    if (stage.held.deferred > 0 && !isAside(op) && weightGradientSeconds(op, choice) > 0)
        bytes += stage.held.deferred * deferredBytes(op, choice, held.deferrers);
    return bytes;
}

double PartitionProblem::heldSeconds(
    std::size_t op, const OperatorChoice &choice, const HeldPricing &held) const
{
    const HeldPricing::Stage &stage = held.stages[static_cast<std::size_t>(held.plan->stageOf[op])];
    if (std::isfinite(stage.mostPassing) && static_cast<double>(passingBytes(op, choice)) > stage.mostPassing)
        return std::numeric_limits<double>::infinity();
    return stage.secondsPerByte > 0 ? stage.secondsPerByte * heldBytes(op, choice, held) : 0;
}

double PartitionProblem::deferredBytes(
    std::size_t op, const OperatorChoice &choice, const std::vector<std::int32_t> &deferrers) const
{
    const Operator &own = m_graph.operators[op];
    double bytes = 0;
    for (std::size_t slot = 0; slot < own.inputs.size(); ++slot)
        if (const TensorId input = own.inputs[slot];
            input && m_graph.at(input).role == TensorRole::Activation)
            bytes += static_cast<double>(localBytes(input, choice.inputs[slot]))
                / std::max(1, deferrers[at(storageOf(input))]);
    for (std::size_t slot = 0; slot < own.outputs.size(); ++slot)
        if (own.outputs[slot] && gradientOf(own.outputs[slot]))
            bytes += static_cast<double>(localBytes(own.outputs[slot], choice.outputGradients[slot]));
    return bytes;
}

PartitionProblem::KeptPlace PartitionProblem::keptPlace(
    std::size_t op, std::size_t slot, const StagePlan &plan) const
{
    const Operator &own = m_graph.operators[op];
    const bool isInput = slot < own.inputs.size();
    const TensorId tensor = isInput ? own.inputs[slot] : own.outputs[slot - own.inputs.size()];
    if (!tensor || isAside(op))
        return {};
    KeptPlace place{storageOf(tensor)};
    const TensorRole role = m_graph.at(place.storage).role;
    if (role != TensorRole::Activation && role != TensorRole::Input)
        return {};
    place.isReadAgain = isInput && plan.recomputed[op] && own.mirror;
    const auto &makers = m_setting.model->index->uses().producers[at(place.storage)];
    if (makers.empty())
        return place;
    const std::size_t maker = at(makers.front());
    // What runs again with others starts from what those before it made in the forward pass.
    const bool isBeginning = plan.recomputed[op]
        && (plan.recomputedWith[op] < 0 ? op != maker
                                        : plan.recomputedWith[op] != plan.recomputedWith[maker]);
    place.again = plan.recomputed[maker] && !isBeginning
        && (plan.stageOf.empty() || plan.stageOf[maker] == plan.stageOf[op]);
    return place;
}

std::int64_t PartitionProblem::keptBytes(
    std::size_t op, const OperatorChoice &choice, std::size_t slot, const KeptPlace &place) const
{
    if (!place.storage || choice.kept[slot] > 0 || !place.isReadAgain)
        return place.storage ? choice.kept[slot] : 0;
    return localBytes(m_graph.operators[op].inputs[slot], choice.inputs[slot]);
}

std::vector<PartitionProblem::KeptPlace> PartitionProblem::keptPlaces(
    std::size_t op, const StagePlan &plan) const
{
    std::vector<KeptPlace> places;
    const auto &choices = m_choices[op]->choices;
    for (std::size_t slot = 0; slot < choices.front().kept.size(); ++slot) {
        KeptPlace place = keptPlace(op, slot, plan);
        const bool isKept = place.storage && !place.again
            && (place.isReadAgain
                || std::any_of(choices.begin(), choices.end(),
                    [&](const OperatorChoice &each) { return each.kept[slot] > 0; }));
        places.push_back(isKept ? place : KeptPlace{});
    }
    return places;
}

std::vector<std::int32_t> PartitionProblem::keepersOf(const StagePlan &plan) const
{
    std::vector<std::int32_t> keepers(m_graph.tensors.size(), 0);
    for (std::size_t i = 0; i < m_choices.size(); ++i)
        for (const KeptPlace &place : keptPlaces(i, plan))
            if (place.storage)
                ++keepers[at(place.storage)];
    return keepers;
}

std::map<std::pair<TensorId, std::int32_t>, std::int32_t> PartitionProblem::readersByStage(
    const StagePlan &plan) const
{
    std::map<std::pair<TensorId, std::int32_t>, std::int32_t> readers;
    std::map<TensorId, std::set<std::int32_t>> stages;
    for (std::size_t i = 0; i < m_choices.size(); ++i)
        for (const TensorId input : m_graph.operators[i].inputs)
            if (input && !isAside(i) && bytesOf(input).all() > 0) {
                ++readers[{input, plan.stageOf[i]}];
                stages[input].insert(plan.stageOf[i]);
            }
    std::erase_if(readers, [&](const auto &each) { return stages.at(each.first.first).size() < 2; });
    return readers;
}

std::int64_t PartitionProblem::passingBytes(std::size_t op, const OperatorChoice &choice) const
{
    const Operator &own = m_graph.operators[op];
    if (isView(own) || isAside(op))
        return 0;
    std::int64_t bytes = 0;
    for (std::size_t slot = 0; slot < own.inputs.size(); ++slot)
        if (own.inputs[slot] && !choice.inputGradients[slot].isAbsent()
            && m_graph.at(own.inputs[slot]).role == TensorRole::Activation)
            bytes += localBytes(own.inputs[slot], choice.inputGradients[slot]);
    for (std::size_t slot = 0; slot < own.outputs.size(); ++slot)
        if (own.outputs[slot] && gradientOf(own.outputs[slot]))
            bytes += localBytes(own.outputs[slot], choice.outputGradients[slot]);
    return bytes;
}

std::vector<std::int32_t> PartitionProblem::deferrers() const
{
    std::vector<std::int32_t> deferrers(m_graph.tensors.size(), 0);
    for (std::size_t i = 0; i < m_choices.size(); ++i) {
        if (isAside(i)
            || std::none_of(m_choices[i]->choices.begin(), m_choices[i]->choices.end(),
                [&](const OperatorChoice &choice) { return weightGradientSeconds(i, choice) > 0; }))
            continue;
        for (const TensorId input : m_graph.operators[i].inputs)
            if (input && m_graph.at(input).role == TensorRole::Activation)
                ++deferrers[at(storageOf(input))];
    }
    return deferrers;
}

std::int64_t PartitionProblem::localBytes(TensorId tensor, ShardLayout layout) const
{
    std::int64_t bytes =
        elementCount(m_graph.at(tensor).type.shape) * sizeOf(m_setting.types->carried(tensor));
    const BatchInfo &batch = *m_setting.model->batch;
    if (at(tensor) < batch.tensorRole.size() && batch.tensorRole[at(tensor)] == BatchRole::Split)
        bytes /= std::max(1, m_setting.batchCuts);
    return bytes / m_setting.partsOf(layout);
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
        const auto &own = m_choices[i]->choices;
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

std::vector<double> PartitionProblem::leastKeptBytes(const StagePlan &plan) const
{
    std::vector<std::vector<KeptPlace>> places;
    std::vector<std::int32_t> keepers(m_graph.tensors.size(), 0);
    for (std::size_t i = 0; i < m_choices.size(); ++i)
        for (const KeptPlace &place : places.emplace_back(keptPlaces(i, plan)))
            if (place.storage)
                ++keepers[at(place.storage)];
    std::vector<double> bytes;
    for (std::size_t i = 0; i < m_choices.size(); ++i) {
        double least = std::numeric_limits<double>::infinity();
        for (const OperatorChoice &choice : m_choices[i]->choices) {
            double own = 0;
            for (std::size_t slot = 0; slot < places[i].size(); ++slot)
                if (const KeptPlace &place = places[i][slot]; place.storage)
                    own +=
                        static_cast<double>(keptBytes(i, choice, slot, place)) / keepers[at(place.storage)];
            least = std::min(least, own);
        }
        bytes.push_back(std::isfinite(least) ? least : 0);
    }
    return bytes;
}

double PartitionProblem::leastForwardSeconds(const std::vector<bool> &operators) const
{
    double seconds = 0;
    for (std::size_t i = 0; i < m_choices.size(); ++i) {
        double least = std::numeric_limits<double>::infinity();
        for (const OperatorChoice &choice : m_choices[i]->choices)
            least = std::min(least, choice.forward);
        seconds += operators[i] && std::isfinite(least) ? least : 0;
    }
    return seconds;
}

double PartitionProblem::leastKernelSeconds() const
{
    double seconds = 0;
    for (const OperatorChoices *each : m_choices) {
        double least = std::numeric_limits<double>::infinity();
        for (const OperatorChoice &choice : each->choices)
            least = std::min(least, choice.forward + choice.backward);
        seconds += std::isfinite(least) ? least : 0;
    }
    return seconds;
}

double PartitionProblem::costOf(
    const PartitionPricing &pricing, const std::vector<std::int32_t> &choice) const
{
    double seconds = 0;
    for (std::size_t i = 0; i < m_choices.size(); ++i)
        seconds += ownSeconds(i, choiceOf(i, choice[i]), pricing);
    for (const Meeting &meeting : m_meetings) {
        std::vector<const OperatorChoice *> readers;
        for (const auto &[reader, slot] : meeting.readers)
            readers.push_back(
                &choiceOf(static_cast<std::size_t>(reader), choice[static_cast<std::size_t>(reader)]));
        const auto p = static_cast<std::size_t>(std::max(meeting.producer, 0));
        seconds += meetingSeconds(meeting, readers, meeting.producer < 0 ? nullptr : &choiceOf(p, choice[p]));
    }
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
        return choice.forward + choice.backward - weightGradientSeconds(op, choice);
    const double once = 1.0 / std::max(1, m_setting.plan->microBatches);
    const double reduced = pricing.reductions * (pricing.everyMicroBatch ? 1 : once);
    const double hidden = pricing.everyMicroBatch ? 1 : std::min(1.0, once * pricing.hiddenBehind);
    double seconds = choice.forward + choice.backward * (1 - pricing.reductions * hidden);
    for (std::size_t slot = 0; slot < own.inputs.size(); ++slot) {
        const TensorId weight = own.inputs[slot];
        if (!weight || m_graph.at(weight).role != TensorRole::Weight || choice.inputs[slot].isAbsent())
            continue;
        const auto w = static_cast<std::size_t>(weight.index);
        const double share = 1.0 / m_setting.partsOf(choice.inputs[slot]) / std::max(1, m_readers[w]);
        const auto accumulation = accumulationOf(op, slot, choice);
        const std::size_t sums = indexOf(accumulation ? accumulation->sums : ShardAxes::None);
        seconds += m_updates[w] * share * once * pricing.updates[sums];
        if (!accumulation)
            continue;
        if (pricing.accumulates)
            seconds += accumulation->first * once + accumulation->more * (1 - once)
                - pricing.reductions * hidden * std::max(accumulation->first, accumulation->more);
        else // cast where they are made: a part of the pass that hides reductions
            seconds += accumulation->cast * (1 - pricing.reductions);
        const double readers = std::max(1, m_readers[w]);
        seconds += reduced * secondsOf(weight, pricing.reduced[sums], share, readers)
            + once * secondsOf(weight, pricing.behind[sums], share, readers);
        if (m_largest[w])
            seconds += (1 - pricing.reductions) * secondsOf(weight, pricing.inLayer[sums], share, readers);
    }
    if (pricing.held)
        seconds += heldSeconds(op, choice, *pricing.held);
    return seconds;
}

/// Operators that rows have cut alike, or follow their producers: whatever else is free.
std::vector<CostFactor> PartitionProblem::findTies() const
{
    std::vector<CostFactor> ties;
    if (!m_setting.bound)
        return ties;
    const auto sameCut = [](const Split &a, const Split &b) {
        return a.kind == b.kind
            && (a.kind != SplitKind::Dimension || (a.dimension == b.dimension && a.sizes == b.sizes));
    };
    std::map<std::vector<std::int64_t>, CostTable> known; // of operators that are alike
    const auto tie = [&](OperatorId first, OperatorId second, std::vector<std::int64_t> key, auto holds) {
        key.push_back(m_choices[at(first)]->kind);
        key.push_back(m_choices[at(second)]->kind);
        CostTable &table = known[std::move(key)];
        if (!table) {
            std::vector<double> costs;
            for (const OperatorChoice &one : m_choices[at(first)]->choices)
                for (const OperatorChoice &other : m_choices[at(second)]->choices)
                    costs.push_back(holds(one, other) ? 0 : std::numeric_limits<double>::infinity());
            table = std::make_shared<const std::vector<double>>(std::move(costs));
        }
        ties.push_back({{first.index, second.index}, table});
    };
    for (std::size_t i = 0; i < m_choices.size(); ++i) {
        const OperatorId op{static_cast<std::int32_t>(i)};
        if (isAside(i))
            continue;
        if (const OperatorId first = m_setting.bound->alikeOf(op).leader;
            first && first != op && !isAside(at(first)))
            tie(first, op, {-1}, [&](const OperatorChoice &one, const OperatorChoice &other) {
                const auto isAlike = [&](const Split &theirs, const Split &own) {
                    const auto mine = splitAlike(m_graph, first, op, theirs);
                    return mine && sameCut(*mine, own);
                };
                return isAlike(one.split, other.split)
                    && (m_setting.outerParts < 2 || isAlike(one.outer, other.outer));
            });
        if (!m_setting.bound->of(op).allowed.follows)
            continue;
        const Leader leader = leaderOf(*m_setting.model->index, op);
        if (leader.op && leader.op < op && !isAside(at(leader.op)))
            tie(leader.op, op,
                {static_cast<std::int64_t>(leader.output), static_cast<std::int64_t>(leader.input)},
                [&](const OperatorChoice &one, const OperatorChoice &other) {
                    std::vector<Split> all = m_finder.otherSplits(op);
                    const auto follows = [&](const Split &theirs, const Split &own) {
                        const auto mine = followed(m_graph, leader, m_graph.at(op), theirs, all);
                        all.push_back(mine.value_or(own));
                        const bool can = mine && checkPartition(m_graph.at(op), {all})
                            && leavesBatchWhole(m_graph.at(op), m_setting.model->batch->operatorDimension[i],
                                m_setting.batchCuts / m_setting.replicas, all);
                        all.back() = own;
                        return can ? sameCut(*mine, own) : own.kind == SplitKind::Replicate;
                    };
                    return (m_setting.outerParts < 2 || follows(one.outer, other.outer))
                        && follows(one.split, other.split);
                });
    }
    return ties;
}

std::vector<double> PartitionProblem::sharesOf(const std::vector<std::int32_t> &choice) const
{
    std::vector<double> shares(m_graph.tensors.size(), 1);
    for (const Meeting &meeting : m_meetings)
        if (meeting.producer >= 0) {
            const auto p = static_cast<std::size_t>(meeting.producer);
            shares[static_cast<std::size_t>(meeting.tensor.index)] =
                1.0 / m_setting.partsOf(choiceOf(p, choice[p]).outputs[meeting.output]);
        }
    return shares;
}

OperatorTimes PartitionProblem::timesOf(
    const std::vector<std::int32_t> &choice, const std::vector<double> &shares) const
{
    OperatorTimes times;
    for (std::size_t i = 0; i < m_choices.size(); ++i) {
        const OperatorChoice &own = choiceOf(i, choice[i]);
        times.forward.push_back(own.forward);
        times.backward.push_back(own.backward);
    }
    for (Meeting meeting : m_meetings) {
        if (!shares.empty()) {
            const double share = shares[static_cast<std::size_t>(meeting.tensor.index)];
            meeting.bytes = static_cast<std::int64_t>(static_cast<double>(meeting.bytes) * share);
            meeting.gradientBytes =
                static_cast<std::int64_t>(static_cast<double>(meeting.gradientBytes) * share);
        }
        std::vector<ShardLayout> read;
        std::vector<ShardLayout> gradients;
        std::int32_t first = std::numeric_limits<std::int32_t>::max();
        for (const auto &[reader, slot] : meeting.readers) {
            const OperatorChoice &own =
                choiceOf(static_cast<std::size_t>(reader), choice[static_cast<std::size_t>(reader)]);
            read.push_back(own.inputs[slot]);
            gradients.push_back(own.inputGradients[slot]);
            first = std::min(first, reader);
        }
        if (meeting.producer < 0)
            continue;
        const auto p = static_cast<std::size_t>(meeting.producer);
        const OperatorChoice &producer = choiceOf(p, choice[p]);
        const double forward = forwardSeconds(meeting, producer.outputs[meeting.output], read);
        const double backward = backwardSeconds(meeting, gradients, producer.outputGradients[meeting.output]);
        times.forward[static_cast<std::size_t>(first)] += forward;
        times.backward[p] += backward;
        times.communication += forward + backward;
    }
    return times;
}

} // namespace planloom
