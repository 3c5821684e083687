#include "engine/schedule/schedule_templates.h"

#include "engine/base/ids.h"
#include "engine/base/words.h"
#include "engine/schedule/schedule_shapes.h"

#include <array>
#include <deque>

namespace planloom {

namespace {

/// One rank's order, in the words of DeepSeek's own steps (deepseek-ai/DualPipe, dualpipe.py and
/// dualpipev.py): half 0 is what enters here, half 1 what comes from elsewhere.
class DualRank
{
public:
    /// @param halves  the block keys of both halves, without their pass
    DualRank(std::array<BlockKey, 2> halves, Schedule &schedule)
        : m_halves(halves)
        , m_schedule(schedule)
        , m_order(schedule.ranks.emplace_back())
    {
    }

    void forward(std::size_t half)
    {
        m_order.push_back(block(half, SegmentKind::Forward, m_forwards[half]++));
    }

    /// @param later  gradients of weights wait in a queue
    void backward(std::size_t half, bool later = false)
    {
        m_order.push_back(block(half, SegmentKind::InputGradient, m_backwards[half]));
        m_weights.push_back(block(half, SegmentKind::WeightGradient, m_backwards[half]++));
        if (!later) {
            m_order.push_back(m_weights.back());
            m_weights.pop_back();
        }
    }

    void weights()
    {
        if (m_weights.empty())
            return;
        m_order.push_back(m_weights.front());
        m_weights.pop_front();
    }

    /// Side by side.
    void both(std::size_t forwardHalf, std::size_t backwardHalf)
    {
        forward(forwardHalf);
        const ScheduledBlock first = m_order.back();
        m_schedule.interleaved.emplace_back(
            first, block(backwardHalf, SegmentKind::InputGradient, m_backwards[backwardHalf]));
        backward(backwardHalf);
    }

    /// The eight steps. DualPipe's ranks count from the end that they are nearer to; `half` is how many of
    /// them there are up to the middle (DualPipeV: all), `rank` this one, `entering` the micro-batches of
    /// half 0, and as many of half 1.
    void run(std::int32_t rank, std::int32_t half, std::int32_t entering)
    {
        const std::int32_t inner = half - rank - 1; // ranks between this one and the middle
        for (std::int32_t i = 0; i < 2 * inner; ++i)
            forward(0);
        for (std::int32_t i = 0; i <= rank; ++i) {
            forward(0);
            forward(1);
        }
        for (std::int32_t i = 0; i < inner; ++i) {
            backward(1, true);
            weights();
            forward(1);
        }
        for (std::int32_t i = 0; i < entering - 2 * half + rank + 1; ++i) {
            if (i == 0 && inner == 0) { // both wait for one another here
                forward(0);
                backward(1);
            } else {
                both(0, 1);
            }
            both(1, 0);
        }
        for (std::int32_t i = 0; i < inner; ++i) {
            backward(1);
            both(1, 0);
        }
        bool later = false;
        for (std::int32_t i = 0; i <= rank; ++i) {
            later = later || (i == (rank + 1) / 2 && rank % 2 == 1);
            backward(1, later);
            later = later || (i == (rank + 1) / 2 && rank % 2 == 0);
            backward(0, later);
        }
        for (std::int32_t i = 0; i < inner; ++i) {
            weights();
            backward(0, true);
        }
        for (std::int32_t i = 0; i <= rank; ++i)
            weights();
    }

private:
    ScheduledBlock block(std::size_t half, SegmentKind pass, std::int32_t microBatch) const
    {
        BlockKey key = m_halves[half];
        key.pass = pass;
        return {key, microBatch};
    }

    std::array<BlockKey, 2> m_halves{};
    Schedule &m_schedule;
    std::vector<ScheduledBlock> &m_order;
    std::array<std::int32_t, 2> m_forwards{};
    std::array<std::int32_t, 2> m_backwards{};
    std::deque<ScheduledBlock> m_weights{};
};

Error tooFew(ScheduleKind kind, std::int32_t needed, std::int32_t found)
{
    return {ErrorCode::InvalidInput,
        std::string("a ") + nameOf(kind) + " schedule needs at least " + counted(needed, "micro-batch")
            + " on these ranks, the plan has " + std::to_string(found),
        "choose more micro-batches", ""};
}

} // namespace

Result<Schedule> dualPipeSchedule(const ScheduleSetting &setting)
{
    const std::int32_t p = setting.rankCount;
    if (!isMirrored(setting))
        return notMirrored("a dualpipe schedule");
    if (setting.microBatches < p)
        return tooFew(ScheduleKind::DualPipe, p, setting.microBatches);
    if (!setting.backward)
        return Error{ErrorCode::InvalidInput, "a dualpipe schedule needs a backward pass",
            "use schedule chimera for the forward pass alone", ""};
    Schedule schedule;
    for (std::int32_t r = 0; r < p; ++r) {
        const bool second = r >= p / 2;
        // What enters at the nearer end: lane 0 of the first half, lane 1 of the second.
        const BlockKey own{StageId{r}, SegmentKind::Forward, 0, 0};
        const BlockKey other{StageId{p - 1 - r}, SegmentKind::Forward, 0, 1};
        DualRank rank(second ? std::array{other, own} : std::array{own, other}, schedule);
        rank.run(second ? p - 1 - r : r, p / 2, setting.microBatches);
    }
    return schedule;
}

Result<Schedule> dualPipeVSchedule(const ScheduleSetting &setting)
{
    TRY_VOID(requireOneWave(setting, ScheduleKind::DualPipeV, "a dualpipev schedule"));
    const std::int32_t p = setting.rankCount;
    if (setting.microBatches < 2 * p)
        return tooFew(ScheduleKind::DualPipeV, 2 * p, setting.microBatches);
    if (!setting.backward)
        return Error{ErrorCode::InvalidInput, "a dualpipev schedule needs a backward pass",
            "use schedule hanayo for the forward pass alone", ""};
    Schedule schedule;
    for (std::int32_t r = 0; r < p; ++r) {
        DualRank rank({BlockKey{StageId{r}}, BlockKey{StageId{2 * p - 1 - r}}}, schedule);
        rank.run(r, p, setting.microBatches);
    }
    return schedule;
}

} // namespace planloom
