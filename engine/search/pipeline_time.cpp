#include "engine/search/pipeline_time.h"

#include "engine/lowering/schedule_templates.h"

#include <algorithm>
#include <limits>

namespace planloom {

namespace {

using Order = std::vector<std::vector<ScheduledBlock>>;

/// One device: a micro-batch forward and backward, then the next.
Order oneByOne(std::int32_t microBatches, bool backward)
{
    Order order(1);
    for (std::int32_t m = 0; m < microBatches; ++m) {
        order.front().push_back({{StageId{0}, Pass::Forward}, m});
        if (backward)
            order.front().push_back({{StageId{0}, Pass::Backward}, m});
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
        const Pass pass = own.block.block.pass;
        StageVisits &stage = way.stages[static_cast<std::size_t>(own.block.block.stage.index)];
        if (at != to || including) {
            if (own.waitedAhead) {
                ++stage.ahead;
                break; // nothing before it matters
            }
            ++(pass == Pass::Forward               ? stage.forward
                    : pass == Pass::WeightGradient ? stage.weights
                                                   : stage.backward);
        }
        if (own.send >= 0) {
            SendVisits &send = way.sends[static_cast<std::size_t>(own.send)];
            ++(pass == Pass::Forward ? send.forward : send.backward);
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

/// Blocks of all stages, as they run.
class Play
{
public:
    Play(const std::vector<StageTime> &stages, const std::vector<StageSend> &sends, std::int32_t ranks,
        std::int32_t microBatches, bool splits, std::vector<PlayedBlock> *blocks)
        : m_stages(stages)
        , m_sends(sends)
        , m_sendsApart(ranks > 1)
        , m_microBatches(static_cast<std::size_t>(microBatches))
        , m_splits(splits)
        , m_forward(stages.size() * m_microBatches, kNotYet)
        , m_back(stages.size() * m_microBatches, kNotYet)
        , m_held(static_cast<std::size_t>(ranks), 0)
        , m_holds(stages.size())
        , m_to(stages.size())
        , m_from(stages.size())
        , m_clock(static_cast<std::size_t>(ranks), 0)
        , m_last(static_cast<std::size_t>(ranks), -1)
        , m_blocks(blocks)
        , m_numbers(blocks ? 2 * m_forward.size() : 0, -1)
    {
        for (std::size_t i = 0; i < sends.size(); ++i) {
            m_to[static_cast<std::size_t>(sends[i].to)].push_back(static_cast<std::int32_t>(i));
            m_from[static_cast<std::size_t>(sends[i].from)].push_back(static_cast<std::int32_t>(i));
        }
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
        const Pass pass = block.block.pass;
        const std::size_t place = slot(s, m);
        const bool isForward = pass == Pass::Forward;
        if ((pass == Pass::WeightGradient && m_back[place] == kNotYet)
            || (pass != Pass::WeightGradient && !isForward && m_forward[place] == kNotYet))
            return false;
        Arrival input;
        if (pass != Pass::WeightGradient && !arrived(s, m, isForward, input))
            return false;
        const double start = std::max(m_clock[rank], input.at);
        const double seconds = isForward   ? own.forward
            : pass == Pass::WeightGradient ? own.weights
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
            if (pass != Pass::WeightGradient)
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
            return true;
        }
        time.lastBackward[s] = start;
        if (pass != Pass::WeightGradient) {
            m_back[place] = end;
            time.lastInput[s] = start;
        }
        const bool isLast = !m_splits || pass == Pass::WeightGradient;
        std::int64_t more = 0;
        if (pass != Pass::WeightGradient) {
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

    PipelineTime time{};

private:
    static constexpr double kNotYet = -1;

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
                input.take(then + (m_sendsApart ? seconds : 0), base + slot(stage, m), send);
            return then != kNotYet;
        };
        if (isForward ? s > 0 && !from(s - 1, 0, -1) : s + 1 < m_stages.size() && !from(s + 1, 0, -1))
            return false;
        for (const std::int32_t number : (isForward ? m_to : m_from)[s]) {
            const StageSend &send = m_sends[static_cast<std::size_t>(number)];
            if (!from(static_cast<std::size_t>(isForward ? send.from : send.to),
                    isForward ? send.forward : send.backward, number))
                return false;
        }
        return true;
    }

    const std::vector<StageTime> &m_stages;
    const std::vector<StageSend> &m_sends;
    const bool m_sendsApart; ///< Stages on one device send nothing.
    const std::size_t m_microBatches;
    const bool m_splits;
    std::vector<double> m_forward; ///< When forward blocks end, by slot.
    std::vector<double> m_back;
    std::vector<std::int64_t> m_held; ///< By rank.
    std::vector<StageHeld> m_holds; ///< By stage.
    std::vector<std::vector<std::int32_t>> m_to; ///< Sends by the stage that receives.
    std::vector<std::vector<std::int32_t>> m_from; ///< By the stage that sends.
    std::vector<double> m_clock; ///< By rank.
    std::vector<std::int32_t> m_last; ///< By rank: its last block, by number.
    std::vector<PlayedBlock> *m_blocks;
    std::vector<std::int32_t> m_numbers; ///< Of forward, then of backward blocks.
};

} // namespace

Result<PipelineTime> playPipeline(ScheduleKind schedule, const std::vector<StageTime> &stages,
    const std::vector<StageSend> &sends, std::int32_t ranks, std::int32_t microBatches, bool backward,
    std::vector<PlayedBlock> *blocks)
{
    TRY(const Order order,
        orderOf(schedule, static_cast<std::int32_t>(stages.size()), ranks, microBatches, backward));
    bool splits = false;
    for (const auto &rank : order)
        for (const ScheduledBlock &block : rank)
            splits = splits || block.block.pass == Pass::WeightGradient;
    Play play(stages, sends, ranks, microBatches, splits, blocks);
    std::vector<std::size_t> at(order.size(), 0);
    bool moved = true;
    while (moved) {
        moved = false;
        for (std::size_t r = 0; r < order.size(); ++r)
            while (at[r] < order[r].size() && play.run(r, order[r][at[r]])) {
                ++at[r];
                moved = true;
            }
    }
    for (std::size_t r = 0; r < order.size(); ++r)
        if (at[r] < order[r].size())
            return Error{ErrorCode::InvalidInput,
                std::string("schedule ") + nameOf(schedule) + " cannot run these stages", "choose another",
                "schedule"};
    return std::move(play.time);
}

} // namespace planloom
