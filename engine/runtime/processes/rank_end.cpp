#include "engine/runtime/processes/process_world.h"

#include "engine/runtime/communication/collective_work.h"
#include "engine/runtime/communication/staged_call.h"
#include "engine/runtime/processes/event_json.h"
#include "engine/runtime/processes/rank_outbox.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>
#include <sys/socket.h>

namespace planloom {

class RankEnd::Impl
{
public:
    using Done = Communicator::Done;

    Impl(WorldShared &shared, std::int32_t rank, WorkPool &pool)
        : m_shared(shared)
        , m_rank(rank)
        , m_pool(pool)
        , m_outbox(shared, rank)
    {
    }

    ~Impl()
    {
        if (m_listener.joinable()) {
            RankNotice leave;
            leave.kind = RankNoticeKind::Leave;
            leave.from = m_rank;
            m_outbox.tell(m_rank, leave);
            m_listener.join();
        }
        std::unique_lock lock{m_mutex};
        m_changed.wait(lock, [this] { return m_submitted == 0; });
    }

    std::int32_t rank() const { return m_rank; }
    const RankLayout &layout() const { return m_shared.layout; }
    SharedMemory &memory() { return m_shared.memory; }

    void start(Handlers handlers)
    {
        m_handlers = std::move(handlers);
        m_listener = std::thread{[this] { listen(); }};
    }

    void join(DeviceId device, const CollectiveCall &call, Done done)
    {
        const auto member = memberOf(m_shared.groups, call, device);
        if (!member)
            return done(member.error());
        if (std::max(call.in.shape.size(), call.out.shape.size()) > kMostDimensions)
            return done(Error{ErrorCode::NotSupported,
                "a tensor of more than " + std::to_string(kMostDimensions)
                    + " dimensions cannot go between processes",
                "run in one process", {}});
        Member mine;
        mine.done = std::move(done);
        if (!mine.staged.stage(call, m_shared.memory, m_outbox.parcels()))
            return mine.done(noSharedMemory());
        RankNotice notice;
        notice.kind = RankNoticeKind::Joined;
        notice.from = m_rank;
        notice.group = call.group;
        notice.sequence = call.sequence;
        notice.member = static_cast<std::int32_t>(*member);
        notice.collective = call.kind;
        notice.combination = call.combination;
        notice.dimension = call.dimension;
        notice.gatherDimension = call.gatherDimension;
        notice.in = flat(mine.staged.call().in);
        notice.out = flat(mine.staged.call().out);
        std::shared_ptr<Meeting> ready;
        {
            std::unique_lock lock{m_mutex};
            if (m_aborted) {
                lock.unlock();
                return mine.done(stopped());
            }
            ready =
                arrive(call.group, call.sequence, static_cast<std::size_t>(notice.member), std::move(mine));
        }
        m_outbox.tellOthers(call.group, notice);
        if (ready)
            doParts(*ready);
    }

    void send(DeviceId device, const MessageCall &message, Done done)
    {
        const DeviceId peer = message.key.peer;
        if (!peer.valid() || peer.index >= m_shared.layout.devices)
            return done(noSuchDevice(peer));
        RankNotice notice;
        notice.kind = RankNoticeKind::Message;
        notice.from = m_rank;
        notice.receiver = peer.index;
        notice.sender = device.index;
        notice.tag = message.key.tag;
        notice.microBatch = message.key.microBatch;
        if (!m_outbox.pack(notice, {message.data, message.bytes}, {}))
            return done(noSharedMemory());
        if (aborted())
            return done(stopped());
        if (const std::int32_t rank = m_shared.layout.rankOf(peer); rank != m_rank)
            m_outbox.tell(rank, notice);
        else if (auto deliver = match(notice))
            deliver();
        done({});
    }

    void receive(DeviceId device, const MessageCall &message, Done done)
    {
        const MessageId id{device.index, message.key.peer.index, message.key.tag, message.key.microBatch};
        RankNotice aside;
        {
            std::unique_lock lock{m_mutex};
            if (m_aborted) {
                lock.unlock();
                return done(stopped());
            }
            const auto found = m_messages.find(id);
            if (found == m_messages.end()) {
                m_receivers[id].push_back({message, std::move(done)});
                return;
            }
            aside = found->second.front();
            found->second.pop_front();
            if (found->second.empty())
                m_messages.erase(found);
        }
        done(deliver(aside, message));
    }

    void fail(const Error &error)
    {
        if (m_failed.exchange(true))
            return;
        const std::string text =
            errorEvent(error).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
        for (std::int32_t rank = 0; rank < m_shared.layout.ranks; ++rank) {
            RankNotice notice;
            notice.kind = RankNoticeKind::Failed;
            notice.from = m_rank;
            // A rank whose inbox is full hears of it from the supervisor: nothing may wait here.
            if (rank != m_rank && m_outbox.pack(notice, std::as_bytes(std::span{text}), {}))
                m_outbox.tell(rank, notice, MSG_DONTWAIT);
        }
        abort();
    }

    Result<std::string> broadcastBytes(std::string_view bytes)
    {
        const std::int64_t number = m_exchanges++;
        if (m_rank != 0)
            return awaitBytes(number, 0);
        for (std::int32_t rank = 1; rank < m_shared.layout.ranks; ++rank)
            TRY_VOID(tellBytes(rank, number, bytes));
        return std::string{bytes};
    }

    Result<std::vector<std::string>> gatherBytes(std::string_view bytes)
    {
        const std::int64_t number = m_exchanges++;
        std::vector<std::string> all;
        if (m_rank != 0) {
            TRY_VOID(tellBytes(0, number, bytes));
            return all;
        }
        all.emplace_back(bytes);
        for (std::int32_t rank = 1; rank < m_shared.layout.ranks; ++rank) {
            TRY(auto theirs, awaitBytes(number, rank));
            all.push_back(std::move(theirs));
        }
        return all;
    }

    Result<void> post(std::span<const std::byte> head, std::span<const std::byte> body)
    {
        RankNotice notice;
        notice.kind = RankNoticeKind::Posted;
        notice.from = m_rank;
        if (!m_outbox.pack(notice, head, body))
            return noSharedMemory();
        m_outbox.tell(0, notice);
        return {};
    }

private:
    /// One member's part in a collective, as this rank knows it.
    struct Member {
        StagedCall staged{};
        Done done{}; ///< Only of devices of this rank.
        bool here = false;
    };
    struct Meeting {
        std::int32_t group = 0;
        std::int64_t sequence = 0;
        std::vector<Member> members{};
        std::size_t arrived = 0;
        std::size_t ranksDone = 0;
        std::string problem{}; ///< What is wrong with the buffers: every rank finds the same.
    };
    struct Receiver {
        MessageCall message{};
        Done done{};
    };
    using MeetingId = std::pair<std::int32_t, std::int64_t>; ///< Group and sequence.
    /// Receiver, sender, tag, micro-batch.
    using MessageId = std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int32_t>;

    bool aborted()
    {
        const std::lock_guard lock{m_mutex};
        return m_aborted;
    }

    Result<void> tellBytes(std::int32_t rank, std::int64_t number, std::string_view bytes)
    {
        RankNotice notice;
        notice.kind = RankNoticeKind::Bytes;
        notice.from = m_rank;
        notice.sequence = number;
        if (!m_outbox.pack(notice, std::as_bytes(std::span{bytes}), {}))
            return noSharedMemory();
        if (aborted())
            return stopped();
        m_outbox.tell(rank, notice);
        return {};
    }

    Result<std::string> awaitBytes(std::int64_t number, std::int32_t from)
    {
        std::unique_lock lock{m_mutex};
        const std::pair key{number, from};
        m_changed.wait(lock, [&] { return m_aborted || m_bytes.contains(key); });
        if (const auto found = m_bytes.find(key); found != m_bytes.end()) {
            std::string bytes = std::move(found->second);
            m_bytes.erase(found);
            return bytes;
        }
        return stopped();
    }

    /// A member has come. Needs the lock. @return the meeting, if it was the last one
    std::shared_ptr<Meeting> arrive(
        std::int32_t group, std::int64_t sequence, std::size_t index, Member member)
    {
        const std::shared_ptr<Meeting> meeting = meetingOf(group, sequence);
        member.here = member.done != nullptr;
        meeting->members[index] = std::move(member);
        return ++meeting->arrived == meeting->members.size() ? meeting : nullptr;
    }

    /// Needs the lock.
    std::shared_ptr<Meeting> meetingOf(std::int32_t group, std::int64_t sequence)
    {
        std::shared_ptr<Meeting> &meeting = m_meetings[{group, sequence}];
        if (!meeting) {
            meeting = std::make_shared<Meeting>();
            meeting->group = group;
            meeting->sequence = sequence;
            meeting->members.resize(m_shared.groups[static_cast<std::size_t>(group)].size());
        }
        return meeting;
    }

    /// What this rank's members make of all buffers, once all are known.
    void doParts(Meeting &meeting)
    {
        std::vector<CollectiveCall> calls;
        std::vector<std::size_t> mine;
        for (std::size_t i = 0; i < meeting.members.size(); ++i) {
            calls.push_back(meeting.members[i].staged.call());
            if (meeting.members[i].here)
                mine.push_back(i);
        }
        meeting.problem = misfit(calls);
        if (meeting.problem.empty())
            forEachPiece(static_cast<std::int64_t>(mine.size()),
                [&](std::int64_t each) { memberPart(calls, mine[static_cast<std::size_t>(each)]); });
        RankNotice notice;
        notice.kind = RankNoticeKind::DidPart;
        notice.from = m_rank;
        notice.group = meeting.group;
        notice.sequence = meeting.sequence;
        m_outbox.tellOthers(meeting.group, notice);
        if (const auto complete = didPart(meeting.group, meeting.sequence))
            end(*complete);
    }

    /// A rank has done its part. @return the meeting, if it was the last one
    std::shared_ptr<Meeting> didPart(std::int32_t group, std::int64_t sequence)
    {
        const std::lock_guard lock{m_mutex};
        if (m_aborted)
            return nullptr;
        const std::shared_ptr<Meeting> meeting = meetingOf(group, sequence);
        if (++meeting->ranksDone < m_shared.ranksOf[static_cast<std::size_t>(group)].size())
            return nullptr;
        m_meetings.erase({group, sequence});
        return meeting;
    }

    static void end(Meeting &meeting)
    {
        for (Member &member : meeting.members) {
            if (!member.here)
                continue;
            member.staged.unstage(meeting.problem.empty());
            if (meeting.problem.empty())
                member.done({});
            else
                member.done(damagedPlan(std::string{nameOf(member.staged.call().kind)} + " in group "
                    + std::to_string(meeting.group) + ": " + meeting.problem));
        }
    }

    static Result<void> deliver(const RankNotice &notice, const MessageCall &to)
    {
        const Result<void> outcome = checkLength(notice.bytes, to);
        if (outcome && notice.bytes > 0)
            std::memcpy(to.data, notice.parcel, notice.bytes);
        RankOutbox::unpacked(notice);
        return outcome;
    }

    /// A message has come. @return what hands it over, if it was asked for
    std::function<void()> match(const RankNotice &notice)
    {
        const MessageId id{notice.receiver, notice.sender, notice.tag, notice.microBatch};
        const std::lock_guard lock{m_mutex};
        const auto found = m_receivers.find(id);
        if (found == m_receivers.end()) {
            m_messages[id].push_back(notice);
            return {};
        }
        auto receiver = std::make_shared<Receiver>(std::move(found->second.front()));
        found->second.pop_front();
        if (found->second.empty())
            m_receivers.erase(found);
        return [notice, receiver] { receiver->done(deliver(notice, receiver->message)); };
    }

    void abort()
    {
        std::map<MeetingId, std::shared_ptr<Meeting>> meetings;
        std::map<MessageId, std::deque<Receiver>> receivers;
        {
            const std::lock_guard lock{m_mutex};
            m_aborted = true;
            meetings.swap(m_meetings);
            receivers.swap(m_receivers);
            m_changed.notify_all();
        }
        // Their buffers stay where they are: another rank may be at work on them.
        for (auto &[id, meeting] : meetings)
            for (Member &member : meeting->members)
                if (member.here)
                    member.done(stopped());
        for (auto &[id, waiting] : receivers)
            for (Receiver &receiver : waiting)
                receiver.done(stopped());
    }

    /// Runs `work` on the pool. The listener itself never waits to send, so that it always reads: two ranks
    /// with full inboxes would wait for each other.
    void submit(std::function<void()> work)
    {
        {
            const std::lock_guard lock{m_mutex};
            ++m_submitted;
        }
        m_pool.submit([this, work = std::move(work)] {
            work();
            const std::lock_guard lock{m_mutex};
            if (--m_submitted == 0)
                m_changed.notify_all();
        });
    }

    void listen()
    {
        const int inbox = m_shared.inboxes[static_cast<std::size_t>(m_rank)].reading;
        for (;;) {
            RankNotice notice;
            const ssize_t got = ::recv(inbox, &notice, sizeof(notice), 0);
            if (got < 0 && errno == EINTR)
                continue;
            if (got != static_cast<ssize_t>(sizeof(notice)) || notice.kind == RankNoticeKind::Leave)
                return;
            take(notice);
        }
    }

    void take(const RankNotice &notice)
    {
        switch (notice.kind) {
        case RankNoticeKind::Joined:
            return takeJoined(notice);
        case RankNoticeKind::DidPart:
            if (const auto complete = didPart(notice.group, notice.sequence))
                end(*complete);
            return;
        case RankNoticeKind::Message:
            if (const auto deliver = match(notice))
                deliver();
            return;
        case RankNoticeKind::Bytes: {
            const std::lock_guard lock{m_mutex};
            m_bytes[{notice.sequence, notice.from}] = textOf(notice);
            RankOutbox::unpacked(notice);
            m_changed.notify_all();
            return;
        }
        case RankNoticeKind::Posted:
            m_handlers.posted({notice.parcel, notice.bytes});
            return RankOutbox::unpacked(notice);
        case RankNoticeKind::Failed: {
            const bool first = !m_failed.exchange(true);
            if (first && m_handlers.failed)
                m_handlers.failed(errorIn(nlohmann::json::parse(textOf(notice), nullptr, false)));
            RankOutbox::unpacked(notice);
            return abort();
        }
        case RankNoticeKind::Leave:
            break;
        }
        assert(false);
    }

    void takeJoined(const RankNotice &notice)
    {
        Member member;
        member.staged = StagedCall{callOf(notice)};
        std::shared_ptr<Meeting> ready;
        {
            const std::lock_guard lock{m_mutex};
            if (m_aborted)
                return;
            ready = arrive(
                notice.group, notice.sequence, static_cast<std::size_t>(notice.member), std::move(member));
        }
        if (ready)
            submit([this, ready] { doParts(*ready); });
    }

    WorldShared &m_shared;
    std::int32_t m_rank;
    WorkPool &m_pool;
    RankOutbox m_outbox;
    Handlers m_handlers{};
    std::thread m_listener{};
    std::atomic<bool> m_failed{false}; ///< At this rank or, as far as it knows, at another.
    std::int64_t m_exchanges = 0;
    std::mutex m_mutex{}; ///< Of all below.
    std::condition_variable m_changed{};
    std::map<MeetingId, std::shared_ptr<Meeting>> m_meetings{};
    std::map<MessageId, std::deque<RankNotice>> m_messages{}; ///< That came before they were asked for.
    std::map<MessageId, std::deque<Receiver>> m_receivers{};
    std::map<std::pair<std::int64_t, std::int32_t>, std::string> m_bytes{}; ///< By exchange and rank.
    std::int64_t m_submitted = 0; ///< To the pool, and not done.
    bool m_aborted = false;
};

namespace {

template<typename End> class RankCommunicator final : public Communicator
{
public:
    RankCommunicator(End &end, DeviceId device)
        : m_end(end)
        , m_device(device)
    {
    }

    DeviceId device() const override { return m_device; }
    void join(const CollectiveCall &call, Done done) override { m_end.join(m_device, call, std::move(done)); }
    void send(const MessageCall &message, Done done) override
    {
        m_end.send(m_device, message, std::move(done));
    }
    void receive(const MessageCall &message, Done done) override
    {
        m_end.receive(m_device, message, std::move(done));
    }

private:
    End &m_end;
    DeviceId m_device;
};

} // namespace

std::unique_ptr<RankEnd> ProcessWorld::enter(std::int32_t rank, WorkPool &pool)
{
    return std::unique_ptr<RankEnd>{new RankEnd{std::make_unique<RankEnd::Impl>(*m_shared, rank, pool)}};
}

RankEnd::RankEnd(std::unique_ptr<Impl> impl)
    : m_impl(std::move(impl))
{
}

RankEnd::~RankEnd() = default;

std::int32_t RankEnd::rank() const
{
    return m_impl->rank();
}

const RankLayout &RankEnd::layout() const
{
    return m_impl->layout();
}

SharedMemory &RankEnd::memory()
{
    return m_impl->memory();
}

std::unique_ptr<Communicator> RankEnd::communicator(DeviceId device)
{
    return std::make_unique<RankCommunicator<Impl>>(*m_impl, device);
}

void RankEnd::start(Handlers handlers)
{
    m_impl->start(std::move(handlers));
}

void RankEnd::fail(const Error &error)
{
    m_impl->fail(error);
}

Result<std::string> RankEnd::broadcastBytes(std::string_view bytes)
{
    return m_impl->broadcastBytes(bytes);
}

Result<std::vector<std::string>> RankEnd::gatherBytes(std::string_view bytes)
{
    return m_impl->gatherBytes(bytes);
}

Result<void> RankEnd::post(std::span<const std::byte> head, std::span<const std::byte> body)
{
    return m_impl->post(head, body);
}

} // namespace planloom
