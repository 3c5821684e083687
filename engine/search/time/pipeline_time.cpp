#include "engine/search/time/pipeline_time.h"

#include "engine/schedule/schedule_templates.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <queue>

namespace planloom {

namespace {

using Order = std::vector<std::vector<ScheduledBlock>>;

/// One device: a micro-batch forward and backward, then the next.
Order oneByOne(std::int32_t microBatches, bool backward)
{
    Order order(1);
    for (std::int32_t m = 0; m < microBatches; ++m) {
        order.front().push_back({{StageId{0}, SegmentKind::Forward}, m});
        if (backward)
            order.front().push_back({{StageId{0}, SegmentKind::Backward}, m});
    }
    return order;
}

Result<Order> orderOf(
    ScheduleKind schedule, std::int32_t stages, std::int32_t ranks, std::int32_t microBatches, bool backward)
{
    if (stages == 1)
        return oneByOne(microBatches, backward);
    ScheduleSetting setting{.rankCount = ranks, .microBatches = microBatches, .backward = backward};
    for (std::int32_t s = 0; s < stages; ++s)
        setting.rankOf.push_back(s % ranks);
    TRY(Schedule made, makeSchedule(schedule, setting));
    return std::move(made.ranks);
}

} // namespace

LongestWay longestWay(const std::vector<PlayedBlock> &blocks, std::int32_t to, bool including,
    std::size_t stages, std::size_t sends)
{
    LongestWay way{std::vector<StageVisits>(stages), std::vector<SendVisits>(sends)};
    for (std::int32_t at = to; at >= 0; at = blocks[static_cast<std::size_t>(at)].before) {
        const PlayedBlock &own = blocks[static_cast<std::size_t>(at)];
        const SegmentKind pass = own.block.block.pass;
        StageVisits &stage = way.stages[static_cast<std::size_t>(own.block.block.stage.index)];
        if (at != to || including) {
            if (own.waitedAhead) {
                ++stage.ahead;
                break; // nothing before it matters
            }
            ++(pass == SegmentKind::Forward               ? stage.forward
                    : pass == SegmentKind::WeightGradient ? stage.weights
                                                          : stage.backward);
        }
        if (own.send >= 0 && at == to && !including) {
            way.into = own.send;
            way.intoBackward = pass != SegmentKind::Forward;
        } else if (own.send >= 0) {
            SendVisits &send = way.sends[static_cast<std::size_t>(own.send)];
            ++(pass == SegmentKind::Forward ? send.forward : send.backward);
        }
    }
    return way;
}

namespace {

/// When something is there, and whence.
struct Arrival {
    double at = 0;
    std::size_t from = std::numeric_limits<std::size_t>::max(); ///< Slot of a block.
    std::int32_t send = -1;

    void take(double time, std::size_t slot, std::int32_t by)
    {
        if (time > at)
            *this = {time, slot, by};
    }
};

/// What ranks send one another, one after the other each way: what can begin first begins first, as lowering
/// orders it (order.h); of several the earlier micro-batch, and what has less far to go.
class Queues
{
public:
    Queues(const std::vector<StageSend> &sends, std::size_t ranks, std::size_t microBatches)
        : m_sends(sends)
        , m_ranks(ranks)
        , m_microBatches(microBatches)
        , m_ends(2 * ranks)
        , m_arrived(2 * sends.size() * microBatches, kNotYet)
    {
    }

    /// What is to be sent has been made.
    void add(std::int32_t send, std::size_t microBatch, bool back, double made)
    {
        const StageSend &own = m_sends[static_cast<std::size_t>(send)];
        m_next.push({made, {static_cast<std::int32_t>(microBatch), own.to - own.from, send, back}});
    }

    /// When the block that reads it can begin; kNotYet if it was not sent.
    double arrivalOf(std::int32_t send, std::size_t microBatch, bool back) const
    {
        return m_arrived[placeOf(send, microBatch, back)];
    }

    /// Sends what can be sent first. What is made later, by blocks that have not run, can no sooner: they
    /// wait for something that waits here.
    /// @return the stage that receives it; nothing if nothing waits
    std::optional<std::int32_t> sendNext()
    {
        while (!m_next.empty()) {
            const Candidate next = m_next.top();
            m_next.pop();
            Transfer transfer = next.transfer;
            if (next.end >= 0) {
                End &end = m_ends[static_cast<std::size_t>(next.end)];
                transfer = end.waiting.top(); // perhaps another by now
                end.waiting.pop();
                end.isProposed = false;
            }
            const StageSend &send = m_sends[static_cast<std::size_t>(transfer.send)];
            const std::int32_t from = endOf(send.from, transfer.back);
            const std::int32_t to = endOf(send.to, transfer.back);
            double &fromFree = m_ends[static_cast<std::size_t>(from)].free;
            double &toFree = m_ends[static_cast<std::size_t>(to)].free;
            const bool begins = std::max(fromFree, toFree) <= next.start;
            if (begins) {
                fromFree = toFree = next.start + (transfer.back ? send.backward : send.forward);
                m_arrived[placeOf(transfer.send, static_cast<std::size_t>(transfer.microBatch),
                    transfer.back)] = next.start + (transfer.back ? send.backwardAhead : send.forwardAhead);
            } else {
                const std::int32_t later = fromFree > toFree ? from : to;
                m_ends[static_cast<std::size_t>(later)].waiting.push(transfer);
                propose(later);
            }
            if (next.end >= 0)
                propose(next.end);
            if (begins)
                return transfer.back ? send.from : send.to;
        }
        return {};
    }

    static constexpr double kNotYet = -1;

private:
    /// In the order in which they go that can begin at the same time.
    struct Transfer {
        std::int32_t microBatch = 0;
        std::int32_t distance = 0; ///< In stages.
        std::int32_t send = 0;
        bool back = false;
        friend auto operator<=>(const Transfer &, const Transfer &) = default;
    };
    using Transfers = std::priority_queue<Transfer, std::vector<Transfer>, std::greater<>>;
    /// One way, at one rank.
    struct End {
        double free = 0; ///< From then on.
        Transfers waiting{}; ///< Until it is free: made before.
        bool isProposed = false; ///< The first of those is a candidate.
    };
    struct Candidate {
        double start = 0; ///< No sooner.
        Transfer transfer{};
        std::int32_t end = -1; ///< That it has waited for.
        friend auto operator<=>(const Candidate &, const Candidate &) = default;
    };

    std::int32_t endOf(std::int32_t stage, bool back) const
    {
        const auto ranks = static_cast<std::int32_t>(m_ranks);
        return stage % ranks + (back ? ranks : 0);
    }
    std::size_t placeOf(std::int32_t send, std::size_t microBatch, bool back) const
    {
        return (static_cast<std::size_t>(send) + (back ? m_sends.size() : 0)) * m_microBatches + microBatch;
    }
    void propose(std::int32_t number)
    {
        End &end = m_ends[static_cast<std::size_t>(number)];
        if (end.isProposed || end.waiting.empty())
            return;
        m_next.push({end.free, end.waiting.top(), number});
        end.isProposed = true;
    }

    const std::vector<StageSend> &m_sends;
    const std::size_t m_ranks;
    const std::size_t m_microBatches;
    std::vector<End> m_ends; ///< By direction and rank.
    std::vector<double> m_arrived; ///< By direction, send and micro-batch.
    std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> m_next{};
};

/// Blocks of all stages, as they run.
class Play
{
public:
    Play(const std::vector<StageTime> &stages, const std::vector<StageSend> &sends, SendOrder order,
        std::int32_t ranks, std::int32_t microBatches, bool splits, std::vector<PlayedBlock> *blocks)
        : m_stages(stages)
        , m_sends(sends)
        , m_ranks(static_cast<std::size_t>(ranks))
        , m_microBatches(static_cast<std::size_t>(microBatches))
        , m_splits(splits)
        , m_forward(stages.size() * m_microBatches, kNotYet)
        , m_back(stages.size() * m_microBatches, kNotYet)
        , m_held(static_cast<std::size_t>(ranks), 0)
        , m_holds(stages.size())
        , m_to(stages.size())
        , m_from(stages.size())
        , m_woken(static_cast<std::size_t>(ranks))
        , m_clock(static_cast<std::size_t>(ranks), 0)
        , m_last(static_cast<std::size_t>(ranks), -1)
        , m_blocks(blocks)
        , m_numbers(blocks ? 2 * m_forward.size() : 0, -1)
    {
        if (order == SendOrder::Queued)
            m_queues.emplace(sends, m_ranks, m_microBatches);
        for (std::size_t i = 0; i < sends.size(); ++i) {
            m_to[static_cast<std::size_t>(sends[i].to)].push_back(static_cast<std::int32_t>(i));
            m_from[static_cast<std::size_t>(sends[i].from)].push_back(static_cast<std::int32_t>(i));
        }
        std::iota(m_woken.rbegin(), m_woken.rend(), std::size_t{0});
        time.lastBackward.assign(stages.size(), 0);
        time.begin.assign(stages.size(), std::numeric_limits<double>::infinity());
        time.lastInput.assign(stages.size(), 0);
        time.end.assign(stages.size(), 0);
        time.held.assign(static_cast<std::size_t>(ranks), 0);
        time.heldBy.resize(stages.size());
    }

    /// @return whether it could run
    bool run(std::size_t rank, const ScheduledBlock &block)
    {
        const auto s = static_cast<std::size_t>(block.block.stage.index);
        const auto m = static_cast<std::size_t>(block.microBatch);
        const StageTime &own = m_stages[s];
        const SegmentKind pass = block.block.pass;
        const std::size_t place = slot(s, m);
        const bool isForward = pass == SegmentKind::Forward;
        if ((pass == SegmentKind::WeightGradient && m_back[place] == kNotYet)
            || (pass != SegmentKind::WeightGradient && !isForward && m_forward[place] == kNotYet))
            return false;
        Arrival input;
        if (pass != SegmentKind::WeightGradient && !arrived(s, m, isForward, input))
            return false;
        const double start = std::max(m_clock[rank], input.at);
        const double seconds = isForward          ? own.forward
            : pass == SegmentKind::WeightGradient ? own.weights
                                                  : own.backward + (m_splits ? 0 : own.weights);
        double end = start + seconds;
        const bool waitsAhead = isForward && m == 0 && own.ahead > end;
        if (waitsAhead)
            end = own.ahead;
        if (m_blocks) {
            const bool waited = input.from < m_numbers.size() && input.at > m_clock[rank];
            const auto number = static_cast<std::int32_t>(m_blocks->size());
            m_blocks->push_back({block, start, waited ? m_numbers[input.from] : m_last[rank],
                waited ? input.send : -1, waitsAhead});
            m_last[rank] = number;
            if (pass != SegmentKind::WeightGradient)
                m_numbers[(isForward ? 0 : m_forward.size()) + place] = number;
        }
        m_clock[rank] = end;
        time.makespan = std::max(time.makespan, end);
        time.begin[s] = std::min(time.begin[s], start);
        time.end[s] = end;
        if (isForward) {
            m_forward[place] = end;
            ++m_holds[s].microBatches;
            hold(rank, own.kept);
            giveOn(s, m, true, end);
            return true;
        }
        time.lastBackward[s] = start;
        if (pass != SegmentKind::WeightGradient) {
            m_back[place] = end;
            time.lastInput[s] = start;
            giveOn(s, m, false, end);
        }
        const bool isLast = !m_splits || pass == SegmentKind::WeightGradient;
        std::int64_t more = 0;
        if (pass != SegmentKind::WeightGradient) {
            --m_holds[s].microBatches;
            m_holds[s].deferred += m_splits ? 1 : 0;
            more += (m_splits ? own.deferred : 0) - own.kept;
        }
        if (isLast) {
            more += (m_holds[s].gradients ? 0 : own.gradients) - (m_splits ? own.deferred : 0);
            m_holds[s].deferred -= m_splits ? 1 : 0;
            m_holds[s].gradients = true;
        }
        hold(rank, more);
        return true;
    }

    /// A rank whose next block may run now, since the last time; each at first.
    std::optional<std::size_t> woken()
    {
        if (m_woken.empty() && m_queues)
            if (const auto stage = m_queues->sendNext())
                wake(static_cast<std::size_t>(*stage));
        if (m_woken.empty())
            return {};
        const std::size_t rank = m_woken.back();
        m_woken.pop_back();
        return rank;
    }

    PipelineTime time{};

private:
    static constexpr double kNotYet = Queues::kNotYet;

    void wake(std::size_t stage) { m_woken.push_back(stage % m_ranks); }

    /// What a block has made goes where it is read.
    void giveOn(std::size_t s, std::size_t m, bool isForward, double end)
    {
        if (isForward ? s + 1 < m_stages.size() : s > 0)
            wake(isForward ? s + 1 : s - 1);
        for (const std::int32_t number : (isForward ? m_from : m_to)[s]) {
            const StageSend &send = m_sends[static_cast<std::size_t>(number)];
            if (!isForward && !send.gradients)
                continue;
            if (isQueued(send, isForward))
                m_queues->add(number, m, !isForward, end);
            else
                wake(static_cast<std::size_t>(isForward ? send.to : send.from));
        }
    }
    /// Stages on one rank send one another nothing that waits.
    bool isQueued(const StageSend &send, bool isForward) const
    {
        return m_queues && (isForward ? send.forward : send.backward) > 0
            && static_cast<std::size_t>(send.from) % m_ranks != static_cast<std::size_t>(send.to) % m_ranks;
    }

    std::size_t slot(std::size_t stage, std::size_t microBatch) const
    {
        return stage * m_microBatches + microBatch;
    }

    void hold(std::size_t rank, std::int64_t more)
    {
        m_held[rank] += more;
        if (m_held[rank] <= time.held[rank])
            return;
        time.held[rank] = m_held[rank];
        for (std::size_t s = rank; s < m_holds.size(); s += m_held.size())
            time.heldBy[s] = m_holds[s];
    }

    /// What a block of stage `s` reads of others.
    /// @return whether all of it has been made
    bool arrived(std::size_t s, std::size_t m, bool isForward, Arrival &input) const
    {
        const std::vector<double> &made = isForward ? m_forward : m_back;
        const std::size_t base = isForward ? 0 : m_forward.size();
        const auto from = [&](std::size_t stage, double seconds, std::int32_t send) {
            const double then = made[slot(stage, m)];
            if (then != kNotYet)
                input.take(then + (m_ranks > 1 ? seconds : 0), base + slot(stage, m), send);
            return then != kNotYet;
        };
        if (m_sends.empty()
            && (isForward ? s > 0 && !from(s - 1, 0, -1) : s + 1 < m_stages.size() && !from(s + 1, 0, -1)))
            return false;
        for (const std::int32_t number : (isForward ? m_to : m_from)[s]) {
            const StageSend &send = m_sends[static_cast<std::size_t>(number)];
            if (!isForward && !send.gradients)
                continue;
            const auto stage = static_cast<std::size_t>(isForward ? send.from : send.to);
            if (isQueued(send, isForward)) {
                const double at = m_queues->arrivalOf(number, m, !isForward);
                if (at == kNotYet)
                    return false;
                input.take(at, base + slot(stage, m), number);
            } else if (!from(stage, isForward ? send.forwardAhead : send.backwardAhead, number)) {
                return false;
            }
        }
        return true;
    }

    const std::vector<StageTime> &m_stages;
    const std::vector<StageSend> &m_sends;
    const std::size_t m_ranks; ///< Stages on one send nothing.
    const std::size_t m_microBatches;
    const bool m_splits;
    std::vector<double> m_forward; ///< When forward blocks end, by slot.
    std::vector<double> m_back;
    std::vector<std::int64_t> m_held; ///< By rank.
    std::vector<StageHeld> m_holds; ///< By stage.
    std::vector<std::vector<std::int32_t>> m_to; ///< Sends by the stage that receives.
    std::vector<std::vector<std::int32_t>> m_from; ///< By the stage that sends.
    std::optional<Queues> m_queues{};
    std::vector<std::size_t> m_woken; ///< Ranks.
    std::vector<double> m_clock; ///< By rank.
    std::vector<std::int32_t> m_last; ///< By rank: its last block, by number.
    std::vector<PlayedBlock> *m_blocks;
    std::vector<std::int32_t> m_numbers; ///< Of forward, then of backward blocks.
};

} // namespace

Result<PipelineTime> playPipeline(ScheduleKind schedule, const std::vector<StageTime> &stages,
    const std::vector<StageSend> &sends, SendOrder sendOrder, std::int32_t ranks, std::int32_t microBatches,
    bool backward, std::vector<PlayedBlock> *blocks)
{
    TRY(const Order order,
        orderOf(schedule, static_cast<std::int32_t>(stages.size()), ranks, microBatches, backward));
    bool splits = false;
    for (const auto &rank : order)
        for (const ScheduledBlock &block : rank)
            splits = splits || block.block.pass == SegmentKind::WeightGradient;
    Play play(stages, sends, sendOrder, ranks, microBatches, splits, blocks);
    std::vector<std::size_t> at(order.size(), 0);
    while (const auto rank = play.woken())
        for (std::size_t &next = at[*rank]; next < order[*rank].size(); ++next)
            if (!play.run(*rank, order[*rank][next]))
                break;
    for (std::size_t r = 0; r < order.size(); ++r)
        if (at[r] < order[r].size())
            return Error{ErrorCode::InvalidInput,
                std::string("schedule ") + nameOf(schedule) + " cannot run these stages", "choose another",
                "schedule"};
    return std::move(play.time);
}

} // namespace planloom
