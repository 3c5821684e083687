#include "tests/engine/cuda/fake_nccl.h"

#include "engine/runtime/communication/collective_work.h"
#include "engine/runtime/devices/box_copy.h"

#include <algorithm>
#include <cstring>

namespace planloom {

namespace {

DataType typeOf(NcclType type)
{
    switch (type) {
    case NcclType::Int8:
        return DataType::Int8;
    case NcclType::UInt8:
        return DataType::UInt8;
    case NcclType::Int32:
        return DataType::Int32;
    case NcclType::Int64:
        return DataType::Int64;
    case NcclType::Float16:
        return DataType::Float16;
    case NcclType::Float32:
        return DataType::Float32;
    case NcclType::Float64:
        return DataType::Float64;
    case NcclType::BFloat16:
        return DataType::BFloat16;
    }
    return DataType::Int8;
}

constexpr NcclStatus kInvalidUsage = 5;

} // namespace

std::string FakeNcclNet::misuse() const
{
    const std::lock_guard lock{m_mutex};
    return m_misuse;
}

std::size_t FakeNcclNet::live() const
{
    const std::lock_guard lock{m_mutex};
    return m_comms.size();
}

int FakeNcclNet::aborted() const
{
    const std::lock_guard lock{m_mutex};
    return m_aborted;
}

int FakeNcclNet::registered() const
{
    const std::lock_guard lock{m_mutex};
    return m_registered;
}

void FakeNcclNet::blame(const std::string &what)
{
    if (m_misuse.empty())
        m_misuse = what;
}

/// By the CPU's collectives, into memory of its own first: what is read is written by others.
void FakeNcclNet::carryOut(const std::vector<Part> &parts)
{
    std::vector<CollectiveCall> calls;
    std::vector<std::vector<std::byte>> results;
    const auto ranks = static_cast<std::int64_t>(parts.size());
    for (const Part &part : parts) {
        CollectiveCall call;
        call.kind = part.kind;
        call.dimension = 0;
        call.combination = part.combination;
        const auto count = static_cast<std::int64_t>(part.count);
        const bool scatters = part.kind == InstructionKind::ReduceScatter;
        const bool gathers = part.kind == InstructionKind::AllGather;
        call.in = {static_cast<std::byte *>(const_cast<void *>(part.from)), part.type,
            {scatters ? ranks * count : count}};
        const std::int64_t made = gathers ? ranks * count : count;
        results.emplace_back(static_cast<std::size_t>(made * sizeOf(part.type)));
        call.out = {results.back().data(), part.type, {made}};
        calls.push_back(call);
    }
    for (std::size_t k = 0; k < calls.size(); ++k)
        memberPart(calls, k);
    for (std::size_t k = 0; k < calls.size(); ++k)
        std::memcpy(parts[k].to, results[k].data(), results[k].size());
}

NcclStatus FakeNccl::called()
{
    return ++m_net.m_called > m_net.failAfter && m_net.failAfter >= 0 ? m_net.failure : kNcclSuccess;
}

NcclStatus FakeNccl::version(std::int32_t &version)
{
    version = m_net.version;
    return kNcclSuccess;
}

NcclStatus FakeNccl::uniqueId(NcclId &id)
{
    std::strcpy(id.bytes, "the fake's");
    return kNcclSuccess;
}

NcclStatus FakeNccl::initRank(NcclComm *comm, std::int32_t ranks, const NcclId &id, std::int32_t rank)
{
    const std::lock_guard lock{m_net.m_mutex};
    if (m_net.initFails)
        return m_net.failure;
    if (const NcclStatus status = called(); status != kNcclSuccess)
        return status;
    if (std::strcmp(id.bytes, "the fake's") != 0)
        m_net.blame("rank " + std::to_string(rank) + " has another id");
    auto *const made = new FakeNcclNet::Comm;
    made->rank = made->worldRank = rank;
    made->ranks = ranks;
    made->busy = 3;
    made->awaited = {0, -1};
    m_net.m_comms.insert(made);
    ++m_net.m_came;
    *comm = made;
    return kNcclInProgress;
}

NcclStatus FakeNccl::split(NcclComm comm, std::int32_t color, std::int32_t key, NcclComm *made)
{
    const std::lock_guard lock{m_net.m_mutex};
    if (const NcclStatus status = called(); status != kNcclSuccess)
        return status;
    auto &parent = *static_cast<FakeNcclNet::Comm *>(comm);
    const std::pair at{parent.id, parent.splits};
    FakeNcclNet::Split &split = m_net.m_splits[at];
    split.keys.resize(static_cast<std::size_t>(parent.ranks), {kNcclNoColor, 0});
    split.keys[static_cast<std::size_t>(parent.rank)] = {color, key};
    ++split.arrived;
    if (color != kNcclNoColor && !split.ids.contains(color))
        split.ids[color] = m_net.m_ids++;
    parent.awaited = {parent.id, parent.splits++};
    parent.made = made;
    parent.busy = 2;
    return kNcclInProgress;
}

NcclStatus FakeNccl::asyncError(NcclComm comm, NcclStatus &state)
{
    const std::lock_guard lock{m_net.m_mutex};
    auto &of = *static_cast<FakeNcclNet::Comm *>(comm);
    state = kNcclInProgress;
    if (m_net.asyncAfter >= 0 && m_net.m_operations >= m_net.asyncAfter)
        state = m_net.failure;
    if (m_net.failAfter >= 0 && m_net.m_called > m_net.failAfter)
        state = m_net.failure;
    if (state != kNcclInProgress)
        return kNcclSuccess;
    if (of.awaited.first >= 0) {
        if (of.awaited.second < 0) {
            if (m_net.m_came < static_cast<std::size_t>(of.ranks))
                return kNcclSuccess;
        } else {
            const FakeNcclNet::Split &split = m_net.m_splits[of.awaited];
            if (split.arrived < static_cast<std::size_t>(of.ranks))
                return kNcclSuccess;
            const auto [color, key] = split.keys[static_cast<std::size_t>(of.rank)];
            if (color != kNcclNoColor) {
                auto *const child = new FakeNcclNet::Comm;
                child->id = split.ids.at(color);
                child->split = static_cast<int>(of.awaited.second);
                child->worldRank = of.worldRank;
                child->busy = 2;
                child->ranks = 0;
                for (const auto &[theirs, place] : split.keys) {
                    child->ranks += theirs == color ? 1 : 0;
                    child->rank += theirs == color && place < key ? 1 : 0;
                }
                m_net.m_comms.insert(child);
                *of.made = child;
            }
        }
        of.awaited.first = -1;
    }
    state = --of.busy > 0 ? kNcclInProgress : kNcclSuccess;
    return kNcclSuccess;
}

NcclStatus FakeNccl::allocate(void **memory, std::size_t bytes)
{
    return m_cuda.allocate(memory, bytes);
}

NcclStatus FakeNccl::release(void *memory)
{
    {
        const std::lock_guard lock{m_net.m_mutex};
        for (const auto &[comm, registered] : m_net.m_registrations)
            if (registered == memory)
                m_net.blame("memory is released that is still registered");
    }
    return m_cuda.release(memory);
}

NcclStatus FakeNccl::registerMemory(NcclComm comm, void *memory, std::size_t, void **handle)
{
    const std::lock_guard lock{m_net.m_mutex};
    if (const NcclStatus status = called(); status != kNcclSuccess)
        return status;
    if (!m_net.m_registrations.emplace(static_cast<FakeNcclNet::Comm *>(comm), memory).second)
        m_net.blame("memory is registered twice");
    ++m_net.m_registered;
    *handle = memory;
    return kNcclSuccess;
}

NcclStatus FakeNccl::deregister(NcclComm comm, void *handle)
{
    const std::lock_guard lock{m_net.m_mutex};
    if (m_net.m_registrations.erase({static_cast<FakeNcclNet::Comm *>(comm), handle}) == 0)
        m_net.blame("memory is deregistered that was not registered");
    return called();
}

NcclStatus FakeNccl::finalize(NcclComm comm)
{
    const std::lock_guard lock{m_net.m_mutex};
    for (const auto &[of, memory] : m_net.m_registrations)
        if (of == comm)
            m_net.blame("a communicator ends with which memory is registered");
    static_cast<FakeNcclNet::Comm *>(comm)->busy = 2;
    const NcclStatus status = called();
    return status == kNcclSuccess ? kNcclInProgress : status;
}

NcclStatus FakeNccl::destroy(NcclComm comm)
{
    const std::lock_guard lock{m_net.m_mutex};
    auto *const of = static_cast<FakeNcclNet::Comm *>(comm);
    std::erase_if(m_net.m_registrations, [of](const auto &each) { return each.first == of; });
    if (m_net.m_comms.erase(of) == 0)
        m_net.blame("a communicator is destroyed twice");
    else
        delete of;
    return kNcclSuccess;
}

NcclStatus FakeNccl::abort(NcclComm comm)
{
    {
        const std::lock_guard lock{m_net.m_mutex};
        m_net.m_broken.insert(static_cast<FakeNcclNet::Comm *>(comm)->id);
        ++m_net.m_aborted;
    }
    return destroy(comm);
}

NcclStatus FakeNccl::put(FakeNcclNet::Comm &comm, void *stream, std::function<bool()> tryIt)
{
    const int capture = m_cuda.captureOf(stream);
    std::shared_ptr<Captured> graph;
    if (capture != 0) {
        if (!m_captured || m_captured->number != capture)
            m_captured = std::make_shared<Captured>(Captured{capture});
        graph = m_captured;
    }
    // Those of a graph get their numbers each time that it runs, when the first one's turn has come.
    const std::int64_t own = graph ? graph->operations++ : m_issued++;
    m_cuda.put(stream, [this, of = &comm, id = comm.id, own, graph, tryIt = std::move(tryIt)] {
        const std::lock_guard lock{m_net.m_mutex};
        if (!m_net.m_comms.contains(of)) // aborted here
            return true;
        if (graph && own == 0 && m_ended == m_issued) {
            graph->first = m_issued;
            m_issued += graph->operations;
        }
        const std::int64_t number = graph ? graph->first + own : own;
        if (m_net.m_broken.contains(id) || number != m_ended
            || (m_net.stuckAfter >= 0 && m_net.m_operations >= m_net.stuckAfter) || !tryIt())
            return false;
        ++m_ended;
        ++m_net.m_operations;
        return true;
    });
    return kNcclSuccess;
}

NcclStatus FakeNccl::collective(FakeNcclNet::Part part, NcclComm comm, void *stream)
{
    auto &of = *static_cast<FakeNcclNet::Comm *>(comm);
    std::pair<int, std::int64_t> at;
    {
        const std::lock_guard lock{m_net.m_mutex};
        if (const NcclStatus status = called(); status != kNcclSuccess)
            return status;
        if (m_depth > 0 || !m_net.m_comms.contains(&of) || of.busy > 0) {
            m_net.blame("a collective in a group, or of a communicator that is not ready");
            return kInvalidUsage;
        }
        part.what = std::string{nameOf(part.kind)} + " " + std::to_string(part.count);
        m_net.calls[{of.split, of.worldRank}].push_back(part.what);
        part.what += std::string{" "} + nameOf(part.type) + " " + nameOf(part.combination);
        // Of a graph, it is known once it runs which of the communicator's operations it is.
        at = {of.id, m_cuda.captureOf(stream) != 0 ? -1 : of.operations++};
    }
    return put(of, stream,
        [this, comm = &of, at, part = std::move(part), rank = of.rank, ranks = of.ranks,
            here = false]() mutable {
            if (at.second < 0)
                at.second = comm->operations++;
            FakeNcclNet::Meeting &meeting = m_net.m_meetings[at];
            meeting.parts.resize(static_cast<std::size_t>(ranks));
            if (!std::exchange(here, true)) {
                meeting.parts[static_cast<std::size_t>(rank)] = part;
                ++meeting.arrived;
            }
            if (meeting.arrived < meeting.parts.size())
                return false;
            if (!meeting.done) {
                for (const FakeNcclNet::Part &other : meeting.parts)
                    if (other.what != part.what) {
                        m_net.blame(part.what + " meets " + other.what);
                        return false; // nobody knows what would happen
                    }
                FakeNcclNet::carryOut(meeting.parts);
                meeting.done = true;
            }
            return true;
        });
}

NcclStatus FakeNccl::groupStart()
{
    ++m_depth;
    return kNcclSuccess;
}

NcclStatus FakeNccl::groupEnd()
{
    if (--m_depth > 0)
        return kNcclSuccess;
    return launch(std::exchange(m_group, {}));
}

NcclStatus FakeNccl::exchange(Exchange exchange)
{
    {
        const std::lock_guard lock{m_net.m_mutex};
        if (const NcclStatus status = called(); status != kNcclSuccess)
            return status;
    }
    m_group.push_back(std::move(exchange));
    return m_depth > 0 ? kNcclSuccess : launch(std::exchange(m_group, {}));
}

NcclStatus FakeNccl::launch(std::vector<Exchange> exchanges)
{
    if (exchanges.empty())
        return kNcclSuccess;
    auto &of = *static_cast<FakeNcclNet::Comm *>(exchanges.front().comm);
    const bool grouped = exchanges.size() > 1;
    {
        const std::lock_guard lock{m_net.m_mutex};
        for (const Exchange &each : exchanges)
            if (each.comm != exchanges.front().comm || each.stream != exchanges.front().stream
                || each.peer < 0 || each.peer >= of.ranks || each.peer == of.rank
                || !m_net.m_comms.contains(&of))
                m_net.blame("a group of several communicators or streams, or a peer that is none");
        m_net.exchangeStreams[{of.split, of.worldRank}].insert(exchanges.front().stream);
        std::vector<std::string> &calls = m_net.calls[{of.split, of.worldRank}];
        if (grouped || of.split >= 0)
            calls.push_back("exchange");
        else
            calls.push_back((exchanges.front().sends ? "send to " : "receive from ")
                + std::to_string(exchanges.front().peer) + " " + std::to_string(exchanges.front().bytes));
    }
    void *const stream = exchanges.front().stream;
    return put(of, stream, [this, exchanges = std::move(exchanges), id = of.id, rank = of.rank]() mutable {
        bool all = true;
        for (Exchange &each : exchanges) {
            if (each.done)
                continue;
            if (each.sends) {
                if (!each.message) {
                    each.message = std::make_shared<FakeNcclNet::Message>(
                        FakeNcclNet::Message{each.data, each.bytes, false});
                    m_net.m_messages[{id, rank, each.peer}].push_back(each.message);
                }
                each.done = each.message->done;
            } else if (auto &waiting = m_net.m_messages[{id, each.peer, rank}]; !waiting.empty()) {
                FakeNcclNet::Message &message = *waiting.front();
                if (message.bytes != each.bytes) {
                    m_net.blame(std::to_string(message.bytes) + " bytes are sent where "
                        + std::to_string(each.bytes) + " are received");
                    return false;
                }
                std::memcpy(each.data, message.from, message.bytes);
                each.done = message.done = true;
                waiting.pop_front();
            }
            all = all && each.done;
        }
        return all;
    });
}

NcclStatus FakeNccl::allReduce(const void *from, void *to, std::size_t count, NcclType type,
    NcclReduction reduction, NcclComm comm, void *stream)
{
    return collective({{}, InstructionKind::AllReduce, from, to, count, typeOf(type),
                          reduction == NcclReduction::Max ? Combination::Max : Combination::Sum},
        comm, stream);
}

NcclStatus FakeNccl::allGather(
    const void *from, void *to, std::size_t count, NcclType type, NcclComm comm, void *stream)
{
    return collective(
        {{}, InstructionKind::AllGather, from, to, count, typeOf(type), Combination::Sum}, comm, stream);
}

NcclStatus FakeNccl::reduceScatter(const void *from, void *to, std::size_t count, NcclType type,
    NcclReduction reduction, NcclComm comm, void *stream)
{
    return collective({{}, InstructionKind::ReduceScatter, from, to, count, typeOf(type),
                          reduction == NcclReduction::Max ? Combination::Max : Combination::Sum},
        comm, stream);
}

NcclStatus FakeNccl::broadcast(const void *from, void *to, std::size_t count, NcclType type,
    std::int32_t root, NcclComm comm, void *stream)
{
    if (root != 0)
        return kInvalidUsage;
    return collective(
        {{}, InstructionKind::Broadcast, from, to, count, typeOf(type), Combination::Sum}, comm, stream);
}

NcclStatus FakeNccl::send(
    const void *from, std::size_t count, NcclType type, std::int32_t peer, NcclComm comm, void *stream)
{
    const auto bytes = count * static_cast<std::size_t>(sizeOf(typeOf(type)));
    return exchange({true, peer, const_cast<void *>(from), bytes, comm, stream, {}, false});
}

NcclStatus FakeNccl::receive(
    void *to, std::size_t count, NcclType type, std::int32_t peer, NcclComm comm, void *stream)
{
    const auto bytes = count * static_cast<std::size_t>(sizeOf(typeOf(type)));
    return exchange({false, peer, to, bytes, comm, stream, {}, false});
}

} // namespace planloom
