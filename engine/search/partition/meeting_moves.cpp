#include "engine/search/partition/meeting_moves.h"

#include <limits>
#include <set>

namespace planloom {

MovedTensor Meeting::forward() const
{
    MovedTensor moved = cuts;
    moved.bytes = bytes;
    moved.combination = combination;
    return moved;
}

MovedTensor Meeting::backward() const
{
    MovedTensor moved = cuts;
    moved.bytes = gradientBytes;
    return moved;
}

std::vector<std::int32_t> Meeting::scope() const
{
    std::set<std::int32_t> scope;
    for (const auto &[reader, slot] : readers)
        scope.insert(reader);
    if (producer >= 0)
        scope.insert(producer);
    return {scope.begin(), scope.end()};
}

MeetingMoves::MeetingMoves(const AxisSetting &setting, const ShardGroups &groups)
    : m_setting(setting)
    , m_moves(*setting.costs, groups, setting.parts, setting.outerParts, setting.deviceClass)
    , m_group(groups.inner)
{
}

double MeetingMoves::Hops::operator()(ShardLayout fromBoth, ShardLayout toBoth) const
{
    if (table)
        return table->seconds(fromBoth, toBoth);
    const AxisSetting &setting = moves.m_setting;
    const AxisCollectives &collectives = moves.m_moves.overInner();
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
                *setting.costs, kind, Bytes{tensor.bytes}, moves.m_group, onceWeighed(tensor.combination));
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
Moving MeetingMoves::Hops::moving(ShardLayout from, ShardLayout to) const
{
    const AxisSetting &setting = moves.m_setting;
    const bool isWhole =
        (from.inner == kWhole || setting.parts < 2) && (from.outer == kWhole || setting.outerParts < 2);
    const double seconds = (*this)(from, to);
    return isWhole ? Moving{0, seconds} : Moving{seconds, 0};
}

Moving MeetingMoves::forward(
    const Meeting &meeting, const Readers &readers, const OperatorChoice &producer) const
{
    const ShardLayout made = producer.outputs[meeting.output];
    std::set<ShardLayout> wanted;
    for (std::size_t r = 0; r < readers.size(); ++r)
        if (const ShardLayout layout = readers[r]->inputs[meeting.readers[r].second];
            !layout.isAbsent() && layout != made)
            wanted.insert(layout);
    Moving best;
    const Hops hops = hopsOf(meeting.forward());
    for (const ShardLayout layout : wanted)
        best += hops.moving(made, layout);
    // Once one of them is there, the others can be made of it.
    for (const ShardLayout first : wanted) {
        Moving through = hops.moving(made, first);
        for (const ShardLayout layout : wanted)
            if (layout != first)
                through += hops.moving(hops(first, layout) < hops(made, layout) ? first : made, layout);
        if (through.all() < best.all())
            best = through;
    }
    for (std::size_t r = 0; r < readers.size(); ++r)
        best += haloForward(meeting, r, *readers[r], made);
    return best;
}

Moving MeetingMoves::backward(
    const Meeting &meeting, const Readers &readers, const OperatorChoice &producer) const
{
    std::vector<ShardLayout> gradients;
    for (std::size_t r = 0; r < readers.size(); ++r)
        gradients.push_back(readers[r]->inputGradients[meeting.readers[r].second]);
    Moving all = addedUp(meeting, gradients, producer.outputGradients[meeting.output]);
    for (std::size_t r = 0; r < readers.size(); ++r)
        all += haloBackward(meeting, r, *readers[r]);
    return all;
}

Moving MeetingMoves::addedUp(
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
    const Hops hops = hopsOf(meeting.backward());
    for (const ShardLayout form : forms)
        all += hops.moving(form, read);
    if (terms > 1 && !m_setting.batchAlone) { // they are added up where they meet
        const std::int64_t bytes =
            meeting.gradientBytes / (forms.size() == 1 ? m_setting.partsOf(*forms.begin()) : 1);
        all.copied += m_setting.costs->copy(Bytes{bytes * (terms + 1) / 2}, m_setting.deviceClass);
    }
    return all;
}

/// What readers through windows exchange at the rims of even pieces. What is whole everywhere has it all.
Moving MeetingMoves::haloForward(
    const Meeting &meeting, std::size_t reader, const OperatorChoice &choice, ShardLayout made) const
{
    const std::size_t slot = meeting.readers[reader].second;
    if (choice.halos.empty() || (made.isWhole() && made != choice.inputs[slot]))
        return {};
    return {choice.halos[slot].sent, choice.halos[slot].copied};
}

Moving MeetingMoves::haloBackward(
    const Meeting &meeting, std::size_t reader, const OperatorChoice &choice) const
{
    const std::size_t slot = meeting.readers[reader].second;
    if (choice.gradientHalos.empty() || meeting.gradientBytes == 0)
        return {};
    return {choice.gradientHalos[slot].sent, choice.gradientHalos[slot].copied};
}

double MeetingMoves::seconds(const Meeting &meeting, const Readers &readers, const OperatorChoice *producer,
    CountedPasses passes) const
{
    if (producer)
        return (passes == CountedPasses::Backward
                       ? 0
                       : forward(meeting, readers, *producer).exposed(meeting.beforeRead))
            + (passes == CountedPasses::Forward
                    ? 0
                    : backward(meeting, readers, *producer).exposed(meeting.beforeReadBack));
    // A weight lies as its readers want it, all of them alike, and so do its gradients: else it would be held
    // twice, and summands of whole and of cut boxes added up piece by piece.
    std::set<ShardLayout> read;
    std::set<ShardLayout> forms;
    for (std::size_t r = 0; r < readers.size(); ++r) {
        read.insert(readers[r]->inputs[meeting.readers[r].second]);
        forms.insert(readers[r]->inputGradients[meeting.readers[r].second]);
    }
    forms.erase(kAbsentLayout);
    return read.size() < 2 && forms.size() < 2 ? 0 : std::numeric_limits<double>::infinity();
}

double MeetingMoves::shareSeconds(const Meeting &meeting, std::size_t reader, const OperatorChoice &choice,
    const OperatorChoice *producer, CountedPasses passes) const
{
    if (!producer)
        return 0;
    const std::size_t slot = meeting.readers[reader].second;
    const ShardLayout read = choice.inputs[slot];
    const ShardLayout gradient = choice.inputGradients[slot];
    double seconds = 0;
    if (passes != CountedPasses::Backward && !read.isAbsent()) {
        const ShardLayout made = producer->outputs[meeting.output];
        const Hops hops = hopsOf(meeting.forward());
        double least = hops(made, read);
        for (const ShardLayout on : meeting.layouts)
            least = std::min(least, hops(made, on) + hops(on, read));
        const Moving halo = haloForward(meeting, reader, choice, made);
        seconds += Moving{least + halo.sent, halo.copied}.exposed(meeting.beforeRead);
    }
    if (passes != CountedPasses::Forward && !gradient.isAbsent()) {
        Moving moving = addedUp(meeting, {gradient}, producer->outputGradients[meeting.output]);
        moving += haloBackward(meeting, reader, choice);
        seconds += moving.exposed(meeting.beforeReadBack);
        // As if all others were added up in the same form.
        if (meeting.gradientBytes > 0 && !producer->outputGradients[meeting.output].isAbsent()
            && meeting.terms > 1)
            seconds += m_setting.costs->copy(
                Bytes{meeting.gradientBytes / m_setting.partsOf(gradient) * (meeting.terms + 1) / 2},
                m_setting.deviceClass);
    }
    return seconds / static_cast<double>(meeting.readers.size());
}

} // namespace planloom
