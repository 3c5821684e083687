#include "engine/interop/torch_schedule.h"

#include "engine/base/ids.h"
#include "engine/base/words.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace planloom {

namespace {

using Kind = TorchActionKind;

/// Carries a schedule out: every rank goes on until its next action needs what has not been done.
class CommunicationCheck
{
public:
    explicit CommunicationCheck(const TorchSchedule &schedule, const ComputedSchedule &computed)
        : m_schedule(schedule)
        , m_rankOf(computed.setting.rankOf)
        , m_done(schedule.ranks.size())
        , m_gathered(schedule.ranks.size())
    {
        for (const auto &rank : schedule.ranks)
            for (const auto &action : rank)
                if (action) {
                    m_transfers = m_transfers || isSend(action->kind) || isReceive(action->kind);
                    if (action->kind == Kind::Unshard)
                        m_gathers.insert(action->stage);
                }
    }

    Result<void> run()
    {
        TRY_VOID(findPartners());
        std::vector<std::size_t> next(m_schedule.ranks.size(), 0);
        for (bool moved = true; moved;) {
            moved = false;
            for (std::size_t r = 0; r < next.size(); ++r)
                for (; next[r] < m_schedule.ranks[r].size(); ++next[r], moved = true) {
                    const auto &action = m_schedule.ranks[r][next[r]];
                    if (!action)
                        continue;
                    TRY_VOID(refuse(r, next[r], *action));
                    if (missing(r, *action))
                        break;
                    carryOut(r, *action);
                }
        }
        for (std::size_t r = 0; r < next.size(); ++r)
            if (next[r] < m_schedule.ranks[r].size()) {
                const TorchAction &action = *m_schedule.ranks[r][next[r]];
                return wrong(r, next[r],
                    toString(action) + " never runs: it waits for " + *missing(r, action)
                        + ", which does not come before it",
                    "order the actions of every rank behind what they need");
            }
        return {};
    }

private:
    using Key = std::tuple<Kind, std::int32_t, std::int32_t>;

    static Key keyOf(const TorchAction &action) { return {action.kind, action.stage, action.microBatch}; }

    static Error wrong(std::size_t rank, std::size_t field, std::string message, std::string advice)
    {
        return {ErrorCode::InvalidInput, std::move(message), std::move(advice),
            "line:" + std::to_string(rank + 1) + ":" + std::to_string(field + 1)};
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
        for (const TorchAction &part : action.kind == Kind::Overlap ? action.parts : std::vector{action})
            if (part.kind <= Kind::Backward && m_gathers.contains(part.stage) && !gathered(part.stage))
                return wrong(r, i,
                    toString(action) + " runs while the weights of stage " + std::to_string(part.stage)
                        + " are not gathered",
                    "gather them with " + std::to_string(part.stage) + "UNSHARD before");
        return {};
    }

    /// What an action still waits for, in words; nothing if it can run.
    std::optional<std::string> missing(std::size_t r, const TorchAction &action) const
    {
        const auto has = [&](Kind kind, std::int32_t stage, std::int32_t microBatch) {
            return m_done[r].contains({kind, stage, microBatch});
        };
        const auto needs = [&](bool there, Kind kind, std::int32_t stage) {
            return there ? std::optional<std::string>{}
                         : toString(TorchAction{stage, kind, action.microBatch, {}});
        };
        const std::int32_t stage = action.stage;
        const std::int32_t microBatch = action.microBatch;
        const bool backwardDone = has(Kind::Backward, stage, microBatch);
        switch (action.kind) {
        case Kind::Overlap:
            for (const TorchAction &part : action.parts)
                if (auto waits = missing(r, part))
                    return waits;
            return std::nullopt;
        case Kind::Forward:
            return stage == 0 ? std::nullopt : missingFrom(r, action, stage - 1);
        case Kind::Backward:
        case Kind::InputGradient:
            if (!has(Kind::Forward, stage, microBatch))
                return needs(false, Kind::Forward, stage);
            return at(stage) + 1 == m_rankOf.size() ? std::nullopt : missingFrom(r, action, stage + 1);
        case Kind::WeightGradient:
            return needs(has(Kind::InputGradient, stage, microBatch), Kind::InputGradient, stage);
        case Kind::SendForward:
            return needs(has(Kind::Forward, stage, microBatch), Kind::Forward, stage);
        case Kind::SendBackward:
            return needs(
                backwardDone || has(Kind::InputGradient, stage, microBatch), Kind::InputGradient, stage);
        case Kind::ReceiveForward:
        case Kind::ReceiveBackward: {
            const auto [other, rank] = partnerOf(action);
            return needs(m_done[at(rank)].contains(keyOf(other)), other.kind, other.stage);
        }
        case Kind::WaitSendForward:
            return needs(has(Kind::SendForward, stage, microBatch), Kind::SendForward, stage);
        case Kind::WaitSendBackward:
            return needs(has(Kind::SendBackward, stage, microBatch), Kind::SendBackward, stage);
        case Kind::WaitReduceGradients:
            return needs(has(Kind::ReduceGradients, stage, microBatch), Kind::ReduceGradients, stage);
        case Kind::Unshard:
        case Kind::Reshard:
        case Kind::ReduceGradients:
            break;
        }
        return std::nullopt;
    }

    /// As `missing`, of what a block gets from a neighbouring stage: received, or made on the same rank.
    /// Where nothing is sent in the whole schedule, it is there once it is made.
    std::optional<std::string> missingFrom(
        std::size_t r, const TorchAction &action, std::int32_t neighbour) const
    {
        const bool forward = action.kind == Kind::Forward;
        const TorchAction received{
            action.stage, forward ? Kind::ReceiveForward : Kind::ReceiveBackward, action.microBatch, {}};
        const TorchAction made{
            neighbour, forward ? Kind::Forward : Kind::InputGradient, action.microBatch, {}};
        const bool local = !m_transfers || m_rankOf[at(neighbour)] == static_cast<std::int32_t>(r);
        const std::set<Key> &maker = m_done[local ? at(m_rankOf[at(neighbour)]) : r];
        if (m_done[r].contains(keyOf(received)) || maker.contains(keyOf(made))
            || (!forward && maker.contains({Kind::Backward, neighbour, action.microBatch})))
            return std::nullopt;
        return toString(local ? made : received);
    }

    void carryOut(std::size_t r, const TorchAction &action)
    {
        for (const TorchAction &part : action.kind == Kind::Overlap ? action.parts : std::vector{action})
            m_done[r].insert(keyOf(part));
        if (action.kind == Kind::Unshard)
            m_gathered[r].insert(action.stage);
        if (action.kind == Kind::Reshard)
            m_gathered[r].erase(action.stage);
    }

    const TorchSchedule &m_schedule;
    const std::vector<std::int32_t> &m_rankOf; ///< By stage.
    bool m_transfers = false; ///< It says what is sent; else whatever has to be, is.
    std::set<std::int32_t> m_gathers{}; ///< Stages whose weights are gathered for them.
    std::vector<std::set<Key>> m_done; ///< By rank.
    std::vector<std::set<std::int32_t>> m_gathered; ///< By rank: stages whose weights are there.
};

} // namespace

Result<void> checkCommunication(const TorchSchedule &schedule)
{
    if (!communicates(schedule))
        return {};
    TRY(const ComputedSchedule computed, computedSchedule(schedule));
    return CommunicationCheck(schedule, computed).run();
}

} // namespace planloom
