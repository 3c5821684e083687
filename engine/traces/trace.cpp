#include "engine/traces/trace.h"

#include "engine/base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

namespace planloom {

const char *nameOf(TraceKind kind)
{
    if (const auto instruction = instructionKindOf(kind); instruction && kind != TraceKind::Compute)
        return nameOf(*instruction);
    switch (kind) {
    case TraceKind::Compute:
        return "compute";
    case TraceKind::Copy:
        return "copy";
    case TraceKind::Barrier:
        return "barrier";
    case TraceKind::Annotation:
        return "annotation";
    case TraceKind::Step:
        return "step";
    case TraceKind::Instruction:
        return "instruction";
    default:
        return "other communication";
    }
}

bool isCommunication(TraceKind kind)
{
    return kind >= TraceKind::AllReduce && kind <= TraceKind::OtherCommunication;
}

std::optional<InstructionKind> instructionKindOf(TraceKind kind)
{
    switch (kind) {
    case TraceKind::Compute:
        return InstructionKind::Kernel;
    case TraceKind::AllReduce:
        return InstructionKind::AllReduce;
    case TraceKind::AllGather:
        return InstructionKind::AllGather;
    case TraceKind::ReduceScatter:
        return InstructionKind::ReduceScatter;
    case TraceKind::AllToAll:
        return InstructionKind::AllToAll;
    case TraceKind::Broadcast:
        return InstructionKind::Broadcast;
    case TraceKind::Send:
        return InstructionKind::Send;
    case TraceKind::Recv:
        return InstructionKind::Recv;
    default:
        return {};
    }
}

TraceKind communicationNamed(std::string_view name)
{
    // What all spellings have in common are the letters.
    std::string letters;
    for (const char c : name.substr(0, 96))
        if (const char lower = lowerCase(c); lower >= 'a' && lower <= 'z')
            letters += lower;
    struct Word {
        std::string_view letters;
        TraceKind kind;
    };
    // "sendrecv" kernels are of either direction, and of all-to-alls that are made of messages.
    static constexpr std::array<Word, 13> kWords{{{"sendrecv", TraceKind::OtherCommunication},
        {"allreduce", TraceKind::AllReduce}, {"reducescatter", TraceKind::ReduceScatter},
        {"allgather", TraceKind::AllGather}, {"alltoall", TraceKind::AllToAll},
        {"broadcast", TraceKind::Broadcast}, {"barrier", TraceKind::Barrier}, {"isend", TraceKind::Send},
        {"irecv", TraceKind::Recv}, {"send", TraceKind::Send}, {"recv", TraceKind::Recv},
        {"dispatch", TraceKind::AllToAll}, {"combine", TraceKind::AllToAll}}};
    for (const Word &word : kWords)
        if (letters.find(word.letters) != std::string::npos)
            return word.kind;
    return TraceKind::OtherCommunication;
}

std::optional<std::uint32_t> stepNumberIn(std::string_view name)
{
    static constexpr std::array<std::string_view, 4> kWords{"profilerstep", "step", "iteration", "iter"};
    const std::size_t letters = std::min(name.find_first_of("#_ :="), name.size());
    const std::string word = lowerCase(name.substr(0, std::min<std::size_t>(letters, 16)));
    if (std::find(kWords.begin(), kWords.end(), word) == kWords.end() || letters == name.size())
        return {};
    const std::string_view digits = trimmed(name.substr(letters + 1));
    std::uint32_t number = 0;
    const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (failure != std::errc{} || end != digits.data() + digits.size() || number == kNoLink)
        return {};
    return number;
}

std::size_t Trace::eventCount() const
{
    std::size_t count = 0;
    for (const RankTrace &rank : ranks)
        count += rank.events.size();
    return count;
}

std::pair<std::int64_t, std::int64_t> extentOf(const RankTrace &trace)
{
    if (trace.events.empty())
        return {0, 0};
    std::int64_t begin = std::numeric_limits<std::int64_t>::max();
    std::int64_t end = std::numeric_limits<std::int64_t>::min();
    for (const TraceEvent &event : trace.events) {
        begin = std::min(begin, event.start);
        end = std::max(end, event.end());
    }
    return {begin, end};
}

} // namespace planloom
