#include "engine/interop/torch_schedule.h"

#include "engine/base/ids.h"
#include "engine/base/words.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace planloom {

namespace {

using Kind = TorchActionKind;

/// Carries a schedule out: every rank goes on until its next action needs what has not been done.
class ScheduleRunner
{
public:
    explicit ScheduleRunner(const TorchSchedule &schedule, const ComputedSchedule &computed)
        : m_schedule(schedule)
        , m_rankOf(computed.setting.rankOf)
        , m_ends(schedule.ranks.size())
        , m_gathered(schedule.ranks.size())
        , m_lanes(schedule.ranks.size())
        , m_toCompute(m_rankOf.size(), 0)
    {
        for (const auto &rank : schedule.ranks)
            for (const auto &action : rank)
                if (action) {
                    m_transfers = m_transfers || isSend(action->kind) || isReceive(action->kind);
                    if (action->kind == Kind::Unshard)
                        m_gathers.insert(action->stage);
                    for (const TorchAction &part : partsOf(*action))
                        if (computes(part.kind))
                            ++m_toCompute[at(part.stage)];
                }
    }

    Result<std::vector<TorchRun>> run()
    {
        TRY_VOID(findPartners());
        std::vector<std::size_t> next(m_schedule.ranks.size(), 0);
        while (true) { // what can start first, so that lanes are taken in order
            std::optional<std::size_t> first;
            std::int64_t least = 0;
            for (std::size_t r = 0; r < next.size(); ++r) {
                const auto &rank = m_schedule.ranks[r];
                while (next[r] < rank.size() && !rank[next[r]])
                    ++next[r];
                if (next[r] == rank.size())
                    continue;
                const TorchAction &action = *rank[next[r]];
                TRY_VOID(refuse(r, next[r], action));
                if (missing(r, action))
                    continue;
                if (const std::int64_t start = startOf(r, action); !first || start < least) {
                    first = r;
                    least = start;
                }
            }
            if (!first)
                break;
            carryOut(*first, next[*first], *m_schedule.ranks[*first][next[*first]], least);
            ++next[*first];
        }
        for (std::size_t r = 0; r < next.size(); ++r)
            if (next[r] < m_schedule.ranks[r].size()) {
                const TorchAction &action = *m_schedule.ranks[r][next[r]];
                return wrong(r, next[r],
                    toString(action) + " never runs: it waits for " + *missing(r, action)
                        + ", which does not come before it",
                    "order the actions of every rank behind what they need");
            }
        std::sort(m_runs.begin(), m_runs.end(), [](const TorchRun &a, const TorchRun &b) {
            return std::tie(a.start, a.rank, a.field) < std::tie(b.start, b.rank, b.field);
        });
        return std::move(m_runs);
    }

private:
    using Key = std::tuple<Kind, std::int32_t, std::int32_t>;

    static Key keyOf(const TorchAction &action) { return {action.kind, action.stage, action.microBatch}; }

    static Error wrong(std::size_t rank, std::size_t field, std::string message, std::string advice)
    {
        return {ErrorCode::InvalidInput, std::move(message), std::move(advice),
            "line:" + std::to_string(rank + 1) + ":" + std::to_string(field + 1)};
    }

    static bool computes(Kind kind) { return kind <= Kind::Backward; }
    static std::vector<TorchAction> partsOf(const TorchAction &action)
    {
        return action.kind == Kind::Overlap ? action.parts : std::vector{action};
    }
    static bool isSend(Kind kind) { return kind == Kind::SendForward || kind == Kind::SendBackward; }
    static bool isReceive(Kind kind) { return kind == Kind::ReceiveForward || kind == Kind::ReceiveBackward; }

    /// The other end of a send or a receive, and the rank that it belongs to; -1 where there is no such
    /// stage.
    std::pair<TorchAction, std::int32_t> partnerOf(const TorchAction &action) const
    {
        const bool forward = action.kind == Kind::SendForward || action.kind == Kind::ReceiveForward;
        TorchAction other = action;
        other.stage += isSend(action.kind) == forward ? 1 : -1;
        other.kind = isSend(action.kind) ? forward ? Kind::ReceiveForward : Kind::ReceiveBackward
            : forward                    ? Kind::SendForward
                                         : Kind::SendBackward;
        const bool exists = other.stage >= 0 && at(other.stage) < m_rankOf.size();
        return {other, exists ? m_rankOf[at(other.stage)] : -1};
    }

    /// Every send has its receive on the other stage's rank, and the other way round; nothing is done twice.
    Result<void> findPartners() const
    {
        std::vector<std::set<Key>> all(m_schedule.ranks.size());
        const auto each = [&](const auto &act) -> Result<void> {
            for (std::size_t r = 0; r < m_schedule.ranks.size(); ++r)
                for (std::size_t i = 0; i < m_schedule.ranks[r].size(); ++i)
                    if (const auto &action = m_schedule.ranks[r][i];
                        action && (isSend(action->kind) || isReceive(action->kind)))
                        TRY_VOID(act(r, i, *action));
            return {};
        };
        TRY_VOID(each([&](std::size_t r, std::size_t i, const TorchAction &action) -> Result<void> {
            if (at(action.stage) >= m_rankOf.size() || m_rankOf[at(action.stage)] != static_cast<int>(r))
                return wrong(r, i,
                    toString(action) + " stands on rank " + std::to_string(r)
                        + ", which does not compute stage " + std::to_string(action.stage),
                    "let the rank of a stage send and receive for it");
            if (!all[r].insert(keyOf(action)).second)
                return wrong(r, i, toString(action) + " is there twice", "send and receive everything once");
            return {};
        }));
        return each([&](std::size_t r, std::size_t i, const TorchAction &action) -> Result<void> {
            const auto [other, rank] = partnerOf(action);
            if (rank >= 0 && all[at(rank)].contains(keyOf(other)))
                return {};
            return wrong(r, i,
                toString(action) + " has no "
                    + (rank < 0 ? "stage at its other end"
                                : toString(other) + " on rank " + std::to_string(rank)),
                "give every send its receive on the rank of the other stage");
        });
    }

    /// What is wrong whatever the other ranks do.
    Result<void> refuse(std::size_t r, std::size_t i, const TorchAction &action) const
    {
        const auto gathered = [&](std::int32_t stage) { return m_gathered[r].contains(stage); };
        if (action.kind == Kind::Unshard && gathered(action.stage))
            return wrong(r, i, toString(action) + ": the weights of the stage are gathered already",
                "let them go with " + std::to_string(action.stage) + "RESHARD before");
        if (action.kind == Kind::Reshard && !gathered(action.stage))
            return wrong(r, i, toString(action) + ": the weights of the stage are not gathered",
                "gather them with " + std::to_string(action.stage) + "UNSHARD before");
        if (action.kind == Kind::ReduceGradients && at(action.stage) < m_rankOf.size()
            && m_rankOf[at(action.stage)] == static_cast<std::int32_t>(r)
            && m_toCompute[at(action.stage)] > 0)
            return wrong(r, i, toString(action) + " comes before the last block of its stage",
                "reduce gradients when all micro-batches have added theirs");
        for (const TorchAction &part : partsOf(action))
            if (computes(part.kind) && m_gathers.contains(part.stage) && !gathered(part.stage))
                return wrong(r, i,
                    toString(action) + " runs while the weights of stage " + std::to_string(part.stage)
                        + " are not gathered",
                    "gather them with " + std::to_string(part.stage) + "UNSHARD before");
        return {};
    }

    /// Something that has to be done on a rank: one of these, the first for words.
    struct Need {
        std::size_t rank = 0;
        std::vector<TorchAction> oneOf{};
    };

    std::vector<Need> needsOf(std::size_t r, const TorchAction &action) const
    {
        const auto own = [&](std::initializer_list<Kind> kinds) {
            Need need{r, {}};
            for (const Kind kind : kinds)
                need.oneOf.push_back({action.stage, kind, action.microBatch, {}});
            return std::vector{need};
        };
        switch (action.kind) {
        case Kind::Overlap: {
            std::vector<Need> all;
            for (const TorchAction &part : action.parts)
                for (Need &need : needsOf(r, part))
                    all.push_back(std::move(need));
            return all;
        }
        case Kind::Forward:
            return action.stage == 0 ? std::vector<Need>{}
                                     : std::vector{needFrom(r, action, action.stage - 1)};
        case Kind::Backward:
        case Kind::InputGradient: {
            auto all = own({Kind::Forward});
            if (at(action.stage) + 1 < m_rankOf.size())
                all.push_back(needFrom(r, action, action.stage + 1));
            return all;
        }
        case Kind::WeightGradient:
            return own({Kind::InputGradient});
        case Kind::SendForward:
            return own({Kind::Forward});
        case Kind::SendBackward:
            return own({Kind::InputGradient, Kind::Backward});
        case Kind::ReceiveForward:
        case Kind::ReceiveBackward: {
            const auto [other, rank] = partnerOf(action);
            return {{at(rank), {other}}};
        }
        case Kind::WaitSendForward:
            return own({Kind::SendForward});
        case Kind::WaitSendBackward:
            return own({Kind::SendBackward});
        case Kind::WaitReduceGradients:
            return own({Kind::ReduceGradients});
        case Kind::Unshard:
        case Kind::Reshard:
        case Kind::ReduceGradients:
            break;
        }
        return {};
    }

    /// What a block gets from a neighbouring stage: received, or made on the same rank. Where nothing is sent
    /// in the whole schedule, it is there once it is made.
    Need needFrom(std::size_t r, const TorchAction &action, std::int32_t neighbour) const
    {
        const bool forward = action.kind == Kind::Forward;
        const std::int32_t rank = m_rankOf[at(neighbour)];
        if (m_transfers && rank != static_cast<std::int32_t>(r))
            return {r,
                {{action.stage, forward ? Kind::ReceiveForward : Kind::ReceiveBackward, action.microBatch,
                    {}}}};
        Need made{
            at(rank), {{neighbour, forward ? Kind::Forward : Kind::InputGradient, action.microBatch, {}}}};
        if (!forward)
            made.oneOf.push_back({neighbour, Kind::Backward, action.microBatch, {}});
        return made;
    }

    /// When the first of what is needed was done; nothing while none is.
    std::optional<std::int64_t> doneAt(const Need &need) const
    {
        for (const TorchAction &each : need.oneOf)
            if (const auto found = m_ends[need.rank].find(keyOf(each)); found != m_ends[need.rank].end())
                return found->second;
        return std::nullopt;
    }

    /// What an action still waits for, in words; nothing if it can run.
    std::optional<std::string> missing(std::size_t r, const TorchAction &action) const
    {
        for (const Need &need : needsOf(r, action))
            if (!doneAt(need))
                return toString(need.oneOf.front());
        return std::nullopt;
    }

    static TorchLane laneOf(Kind kind)
    {
        return computes(kind) || kind == Kind::Overlap ? TorchLane::Compute
            : kind == Kind::Unshard || kind == Kind::Reshard || kind == Kind::ReduceGradients
                || kind == Kind::WaitReduceGradients
            ? TorchLane::Weights
            : TorchLane::Transfers;
    }

    static std::int64_t stepsOf(const TorchAction &action)
    {
        switch (action.kind) {
        case Kind::Overlap: { // side by side
            std::int64_t most = 0;
            for (const TorchAction &part : action.parts)
                most = std::max(most, stepsOf(part));
            return most;
        }
        case Kind::Backward:
            return 2;
        case Kind::Reshard:
        case Kind::WaitReduceGradients:
        case Kind::WaitSendForward:
        case Kind::WaitSendBackward:
            return 0;
        default:
            return 1;
        }
    }

    std::int64_t &freeAt(std::size_t r, TorchLane lane)
    {
        return m_lanes[r].freeAt[static_cast<std::size_t>(lane)];
    }

    /// Of an action that waits for nothing any more. A receive runs while its send does.
    std::int64_t startOf(std::size_t r, const TorchAction &action)
    {
        std::int64_t start = 0;
        for (const Need &need : needsOf(r, action))
            start = std::max(start, doneAt(need).value_or(0));
        if (isReceive(action.kind))
            return start - stepsOf(action);
        const TorchLane lane = laneOf(action.kind);
        if (stepsOf(action) > 0)
            start = std::max(start, freeAt(r, lane));
        if (isSend(action.kind))
            start = std::max(start, freeAt(at(partnerOf(action).second), lane));
        for (const TorchAction &part : partsOf(action))
            if (const auto there = m_gathered[r].find(part.stage);
                computes(part.kind) && there != m_gathered[r].end())
                start = std::max(start, there->second);
        if (action.kind == Kind::Reshard || action.kind == Kind::ReduceGradients)
            start = std::max(start, m_lanes[r].computedUntil[action.stage]);
        return start;
    }

    void carryOut(std::size_t r, std::size_t field, const TorchAction &action, std::int64_t start)
    {
        const TorchLane lane = laneOf(action.kind);
        const std::int64_t end = start + stepsOf(action);
        if (stepsOf(action) > 0 && !isReceive(action.kind))
            freeAt(r, lane) = end;
        if (isSend(action.kind)) // keeps both ends busy
            freeAt(at(partnerOf(action).second), lane) = end;
        for (const TorchAction &part : partsOf(action)) {
            m_ends[r][keyOf(part)] = end;
            if (!computes(part.kind))
                continue;
            m_lanes[r].computedUntil[part.stage] = end;
            --m_toCompute[at(part.stage)];
        }
        if (action.kind == Kind::Unshard)
            m_gathered[r][action.stage] = end;
        if (action.kind == Kind::Reshard)
            m_gathered[r].erase(action.stage);
        m_runs.push_back({static_cast<std::int32_t>(r), static_cast<std::int32_t>(field), lane, start, end});
    }

    struct RankLanes {
        std::array<std::int64_t, 3> freeAt{}; ///< By lane.
        std::map<std::int32_t, std::int64_t> computedUntil{}; ///< By stage.
    };

    const TorchSchedule &m_schedule;
    const std::vector<std::int32_t> &m_rankOf; ///< By stage.
    bool m_transfers = false; ///< It says what is sent; else whatever has to be, is.
    std::set<std::int32_t> m_gathers{}; ///< Stages whose weights are gathered for them.
    std::vector<std::map<Key, std::int64_t>> m_ends; ///< By rank: what was done, and when it ended.
    /// By rank: stages whose weights are there, and since when.
    std::vector<std::map<std::int32_t, std::int64_t>> m_gathered;
    std::vector<RankLanes> m_lanes;
    std::vector<std::int32_t> m_toCompute; ///< By stage: blocks that have not run.
    std::vector<TorchRun> m_runs{};
};

} // namespace

const char *nameOf(TorchLane lane)
{
    switch (lane) {
    case TorchLane::Compute:
        return "compute";
    case TorchLane::Transfers:
        return "transfers";
    case TorchLane::Weights:
        return "weights";
    }
    return "";
}

Result<std::vector<TorchRun>> runTorchSchedule(const TorchSchedule &schedule)
{
    TRY(const ComputedSchedule computed, computedSchedule(schedule));
    return ScheduleRunner(schedule, computed).run();
}

Result<void> checkCommunication(const TorchSchedule &schedule)
{
    if (!communicates(schedule))
        return {};
    TRY_VOID(runTorchSchedule(schedule));
    return {};
}

} // namespace planloom
