#include "engine/search/partition/partition_problem.h"

#include "engine/binding/alike.h"
#include "engine/graph/operators/catalogue.h"
#include "engine/plan/followed_split.h"
#include "engine/plan/part_counts.h"
#include "engine/search/memory/turn_units.h"
#include "engine/search/partition/meeting_tables.h"
#include "engine/search/time/stage_figures.h"
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
    , m_moves(*setting.costs, groups, setting.parts, setting.outerParts, setting.deviceClass)
    , m_group(groups.inner)
    , m_finder(m_setting, groups)
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

MovedTensor PartitionProblem::moved(TensorId tensor, bool gradient) const
{
    MovedTensor moved = cutsOf(tensor);
    moved.bytes = bytesOf(tensor, m_setting.types->carried(gradient ? gradientOf(tensor) : tensor));
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
    findLeastBetween();
}

/// What an operator takes hides communication for one tensor only: of those that wait meanwhile, the one that
/// began to first.
void PartitionProblem::findLeastBetween()
{
    const auto leastOf = [this](std::size_t op, const auto &seconds) {
        double least = std::numeric_limits<double>::infinity();
        for (const OperatorChoice &choice : m_choices[op]->choices)
            least = std::min(least, seconds(choice));
        return std::isfinite(least) ? least : 0;
    };
    std::vector<double> forward;
    std::vector<double> backward;
    std::vector<double> accumulations; // behind what makes the gradients
    for (std::size_t i = 0; i < m_choices.size(); ++i) {
        forward.push_back(leastOf(i, [](const OperatorChoice &each) { return each.forward; }));
        accumulations.push_back(
            leastOf(i, [this, i](const OperatorChoice &each) { return accumulationSeconds(i, each); }));
        // Gradients of weights may be made later, in a pass of their own.
        backward.push_back(leastOf(
            i, [this, i](const OperatorChoice &each) { return each.backward - each.weightGradients; }));
    }
    struct Wait {
        std::size_t begin = 0; ///< Operators between making it and its first reader: from,
        std::size_t end = 0; ///< up to.
        Meeting *meeting = nullptr;
    };
    std::vector<Wait> waits; // in the order in which tensors are made
    for (Meeting &meeting : m_meetings)
        if (meeting.producer >= 0)
            waits.push_back({static_cast<std::size_t>(meeting.producer) + 1,
                static_cast<std::size_t>(
                    std::min_element(meeting.readers.begin(), meeting.readers.end())->first),
                &meeting});
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
    if (to == kSummands) // of what is whole: one device has it, the others zeros
        return (from == kWhole ? 0 : collectives.seconds(CollectiveKind::AllGather, tensor.bytes))
            + setting.costs->copy(Bytes{tensor.bytes}, setting.deviceClass);
    if (from == kWhole)
        return setting.costs->copy(Bytes{part}, setting.deviceClass);
    return to == kWhole ? collectives.seconds(CollectiveKind::AllGather, tensor.bytes)
                        : collectives.seconds(CollectiveKind::AllToAll, part);
}

/// What is whole is copied from, where it is; all else is sent.
PartitionProblem::Moving PartitionProblem::movingFrom(ShardLayout from, double seconds) const
{
    const bool isWhole =
        (from.inner == kWhole || m_setting.parts < 2) && (from.outer == kWhole || m_setting.outerParts < 2);
    return isWhole ? Moving{0, seconds} : Moving{seconds, 0};
}

/// What one tensor's readers need, from how it is made.
PartitionProblem::Moving PartitionProblem::moveForward(
    const Meeting &meeting, ShardLayout made, const std::vector<ShardLayout> &read) const
{
    std::set<ShardLayout> wanted;
    for (const ShardLayout layout : read)
        if (!layout.isAbsent() && layout != made)
            wanted.insert(layout);
    if (wanted.empty())
        return {};
    const Moves move = movesOf(meeting.forward());
    const auto moving = [&](ShardLayout from, ShardLayout to) { return movingFrom(from, move(from, to)); };
    Moving best;
    for (const ShardLayout layout : wanted)
        best += moving(made, layout);
    // Once one of them is there, the others can be made of it.
    for (const ShardLayout first : wanted) {
        Moving through = moving(made, first);
        for (const ShardLayout layout : wanted)
            if (layout != first)
                through +=
                    move(first, layout) < move(made, layout) ? moving(first, layout) : moving(made, layout);
        if (through.all() < best.all())
            best = through;
    }
    return best;
}

PartitionProblem::Moving PartitionProblem::moveBackward(
    const Meeting &meeting, const std::vector<ShardLayout> &made, ShardLayout read) const
{
    if (meeting.gradientBytes == 0 || read.isAbsent())
        return {};
    std::set<ShardLayout> forms;
    int terms = 0;
    for (const ShardLayout layout : made)
        if (!layout.isAbsent()) {
            forms.insert(layout);
            ++terms;
        }
    Moving all;
    const Moves move = movesOf(meeting.backward());
    for (const ShardLayout form : forms)
        all += movingFrom(form, move(form, read));
    if (terms > 1 && !m_setting.batchAlone) { // they are added up where they meet
        const std::int64_t bytes =
            meeting.gradientBytes / (forms.size() == 1 ? m_setting.partsOf(*forms.begin()) : 1);
        all.copied += m_setting.costs->copy(Bytes{bytes * (terms + 1) / 2}, m_setting.deviceClass);
    }
    return all;
}

/// What readers through windows exchange at the rims of even pieces. What is whole everywhere has it all.
PartitionProblem::Moving PartitionProblem::haloForward(
    const Meeting &meeting, std::size_t reader, const OperatorChoice &choice, ShardLayout made) const
{
    const std::size_t slot = meeting.readers[reader].second;
    if (choice.halos.empty() || (made.isWhole() && made != choice.inputs[slot]))
        return {};
    return {choice.halos[slot].sent, choice.halos[slot].copied};
}

PartitionProblem::Moving PartitionProblem::haloBackward(
    const Meeting &meeting, std::size_t reader, const OperatorChoice &choice) const
{
    const std::size_t slot = meeting.readers[reader].second;
    if (choice.gradientHalos.empty() || meeting.gradientBytes == 0)
        return {};
    return {choice.gradientHalos[slot].sent, choice.gradientHalos[slot].copied};
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
    if (producer) {
        double seconds = 0;
        if (passes != Passes::Backward) {
            const ShardLayout made = producer->outputs[meeting.output];
            Moving moving = moveForward(meeting, made, read);
            for (std::size_t r = 0; r < readers.size(); ++r)
                moving += haloForward(meeting, r, *readers[r], made);
            seconds += moving.exposed(meeting.beforeRead);
        }
        if (passes != Passes::Forward) {
            Moving moving = moveBackward(meeting, gradients, producer->outputGradients[meeting.output]);
            for (std::size_t r = 0; r < readers.size(); ++r)
                moving += haloBackward(meeting, r, *readers[r]);
            seconds += moving.exposed(meeting.beforeReadBack);
        }
        return seconds;
    }
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
        const Moving halo = haloForward(meeting, reader, choice, made);
        seconds += Moving{least + halo.sent, halo.copied}.exposed(meeting.beforeRead);
    }
    if (passes != Passes::Forward && !gradient.isAbsent()) {
        Moving moving = moveBackward(meeting, {gradient}, producer->outputGradients[meeting.output]);
        moving += haloBackward(meeting, reader, choice);
        seconds += moving.exposed(meeting.beforeReadBack);
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
    if (stage.held.deferred > 0 && choice.weightGradients > 0)
        bytes += stage.held.deferred * deferredBytes(op, choice, held.deferrers);
    return bytes;
}

double PartitionProblem::heldSeconds(
    std::size_t op, const OperatorChoice &choice, const HeldPricing &held) const
{
    const HeldPricing::Stage &stage = held.stages[static_cast<std::size_t>(held.plan->stageOf[op])];
    // What can take turns passes less.
    const bool isWhole = !held.plan->units || held.plan->units->unitOf[op] < 0;
    if (isWhole && std::isfinite(stage.mostPassing)
        && static_cast<double>(passingBytes(op, choice)) > stage.mostPassing)
        return std::numeric_limits<double>::infinity();
    return stage.secondsPerByte > 0 ? stage.secondsPerByte * heldBytes(op, choice, held) : 0;
}

bool PartitionProblem::defers(std::size_t op, const OperatorChoice &choice, std::size_t slot) const
{
    const TensorId input = m_graph.operators[op].inputs[slot];
    return input && m_graph.at(input).role == TensorRole::Activation && choice.weightGradients > 0
        && (!makesWeightsAlone(op) || choice.kept[slot] > 0);
}

bool PartitionProblem::defersGradient(std::size_t op, std::size_t slot) const
{
    const TensorId output = m_graph.operators[op].outputs[slot];
    if (!output || !gradientOf(output))
        return false;
    if (!makesWeightsAlone(op))
        return true;
    // That pass makes it itself if all do that read what it is the gradient of.
    const auto &readers = m_setting.model->index->uses().consumers[at(output)];
    return std::any_of(readers.begin(), readers.end(), [this](OperatorId reader) {
        const auto r = static_cast<std::size_t>(reader.index);
        return r < operatorCount() && !makesWeightsAlone(r);
    });
}

double PartitionProblem::deferredBytes(
    std::size_t op, const OperatorChoice &choice, const std::vector<std::int32_t> &deferrers) const
{
    const Operator &own = m_graph.operators[op];
    double bytes = 0;
    for (std::size_t slot = 0; slot < own.inputs.size(); ++slot)
        if (defers(op, choice, slot))
            bytes += static_cast<double>(localBytes(own.inputs[slot], choice.inputs[slot]))
                / std::max(1, deferrers[at(storageOf(own.inputs[slot]))]);
    for (std::size_t slot = 0; slot < own.outputs.size(); ++slot)
        if (defersGradient(op, slot))
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
                [&](const OperatorChoice &choice) { return choice.weightGradients > 0; }))
            continue;
        const std::vector<TensorId> &inputs = m_graph.operators[i].inputs;
        for (std::size_t slot = 0; slot < inputs.size(); ++slot)
            if (std::any_of(m_choices[i]->choices.begin(), m_choices[i]->choices.end(),
                    [&](const OperatorChoice &choice) { return defers(i, choice, slot); }))
                ++deferrers[at(storageOf(inputs[slot]))];
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

double PartitionProblem::leastForwardSeconds(const std::vector<std::int32_t> &runs) const
{
    double seconds = 0;
    for (std::size_t i = 0; i < m_choices.size(); ++i) {
        double least = std::numeric_limits<double>::infinity();
        for (const OperatorChoice &choice : m_choices[i]->choices)
            least = std::min(least, choice.forward);
        seconds += runs[i] > 0 && std::isfinite(least) ? runs[i] * least : 0;
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
        return choice.forward + choice.backward - choice.weightGradients + choice.splitMore;
    const double once = 1.0 / std::max(1, m_setting.microBatches);
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
        if (!pricing.everyMicroBatch || !pricing.mayShare || m_readers[w] < 2)
            seconds += reduced * secondsOf(weight, pricing.reduced[sums], share, readers);
        seconds += once * secondsOf(weight, pricing.behind[sums], share, readers);
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

namespace {

/// What a pass waits for, operator by operator, as its two queues run: what is computed, and communication in
/// the order in which it is read, each beside the other.
class TwoQueues
{
public:
    explicit TwoQueues(std::size_t operators)
        : m_end(operators, 0)
    {
    }

    /// That `by` made, and the next operator reads.
    void send(std::size_t by, double seconds)
    {
        m_sent = std::max(m_sent, m_end[by]) + seconds;
        m_arrives = std::max(m_arrives, m_sent);
    }
    /// The next operator. @param behind  seconds that it computes when all is made that others wait for
    /// @return seconds that it waits
    double run(std::size_t op, double seconds, double behind = 0)
    {
        const double waits = std::max(0.0, m_arrives - m_computed);
        m_end[op] = m_computed + waits + seconds;
        m_computed = m_end[op] + behind;
        m_arrives = 0;
        return waits;
    }

private:
    std::vector<double> m_end; ///< By operator.
    double m_computed = 0;
    double m_sent = 0;
    double m_arrives = 0; ///< All that the next operator reads.
};

} // namespace

OperatorTimes PartitionProblem::timesOf(
    const std::vector<std::int32_t> &choice, const std::vector<double> &shares) const
{
    OperatorTimes times;
    for (std::size_t i = 0; i < m_choices.size(); ++i) {
        const OperatorChoice &own = choiceOf(i, choice[i]);
        times.forward.push_back(own.forward);
        times.backward.push_back(own.backward);
    }
    std::vector<double> waitsForward(m_choices.size(), 0); // for communication, at least as bounds count it
    std::vector<double> waitsBackward(m_choices.size(), 0);
    using Sent = std::vector<std::pair<std::size_t, double>>; // by whom made, seconds
    std::vector<Sent> sent(m_choices.size()); // by who reads it
    std::vector<Sent> sentBack(m_choices.size());
    for (Meeting meeting : m_meetings) {
        if (!shares.empty()) {
            const double share = shares[static_cast<std::size_t>(meeting.tensor.index)];
            meeting.bytes = static_cast<std::int64_t>(static_cast<double>(meeting.bytes) * share);
            meeting.gradientBytes =
                static_cast<std::int64_t>(static_cast<double>(meeting.gradientBytes) * share);
        }
        if (meeting.producer < 0)
            continue;
        std::vector<const OperatorChoice *> readers;
        std::int32_t first = std::numeric_limits<std::int32_t>::max();
        for (const auto &[reader, slot] : meeting.readers) {
            readers.push_back(
                &choiceOf(static_cast<std::size_t>(reader), choice[static_cast<std::size_t>(reader)]));
            first = std::min(first, reader);
        }
        const auto p = static_cast<std::size_t>(meeting.producer);
        const OperatorChoice &producer = choiceOf(p, choice[p]);
        std::vector<ShardLayout> read;
        std::vector<ShardLayout> gradients;
        for (std::size_t r = 0; r < readers.size(); ++r) {
            read.push_back(readers[r]->inputs[meeting.readers[r].second]);
            gradients.push_back(readers[r]->inputGradients[meeting.readers[r].second]);
        }
        const auto f = static_cast<std::size_t>(first);
        const ShardLayout made = producer.outputs[meeting.output];
        Moving ahead = moveForward(meeting, made, read);
        Moving back = moveBackward(meeting, gradients, producer.outputGradients[meeting.output]);
        for (std::size_t r = 0; r < readers.size(); ++r) {
            ahead += haloForward(meeting, r, *readers[r], made);
            back += haloBackward(meeting, r, *readers[r]);
        }
        times.forward[f] += ahead.copied;
        times.backward[p] += back.copied;
        waitsForward[f] += std::max(0.0, ahead.sent - meeting.beforeRead);
        waitsBackward[p] += std::max(0.0, back.sent - meeting.beforeReadBack);
        times.communication += ahead.copied + back.copied;
        if (ahead.sent > 0)
            sent[f].emplace_back(p, ahead.sent);
        if (back.sent > 0)
            sentBack[p].emplace_back(f, back.sent);
    }
    // What is read first is sent first: it holds up what was made before and could be on its way.
    TwoQueues ahead(m_choices.size());
    for (std::size_t i = 0; i < m_choices.size(); ++i) {
        for (const auto &[by, seconds] : sent[i])
            ahead.send(by, seconds);
        waitsForward[i] = std::max(waitsForward[i], ahead.run(i, times.forward[i]));
    }
    TwoQueues back(m_choices.size());
    for (std::size_t i = m_choices.size(); i-- > 0;) {
        for (const auto &[by, seconds] : sentBack[i])
            back.send(by, seconds);
        waitsBackward[i] = std::max(
            waitsBackward[i], back.run(i, times.backward[i], accumulationSeconds(i, choiceOf(i, choice[i]))));
    }
    for (std::size_t i = 0; i < m_choices.size(); ++i) {
        times.forward[i] += waitsForward[i];
        times.backward[i] += waitsBackward[i];
        times.communication += waitsForward[i] + waitsBackward[i];
    }
    return times;
}

} // namespace planloom
