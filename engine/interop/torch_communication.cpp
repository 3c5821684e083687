#include "engine/interop/torch_schedule.h"

#include "engine/base/ids.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace planloom {

namespace {

using Actions = std::vector<TorchAction>;
using Kind = TorchActionKind;

constexpr std::size_t kActiveStages = 3; ///< PyTorch's `max_active_stages`.

Actions leavesOf(const TorchAction &action)
{
    return action.kind == Kind::Overlap ? action.parts : Actions{action};
}

/// Weights of the stages that come next are gathered ahead, those of others let go (`_add_unshard_reshard`).
Actions withWeights(const Actions &actions)
{
    Actions result;
    std::vector<std::int32_t> active; // in the order in which they were gathered
    for (std::size_t i = 0; i < actions.size(); ++i) {
        std::vector<std::int32_t> next;
        for (std::size_t k = i; k < actions.size() && next.size() < kActiveStages; ++k)
            for (const TorchAction &leaf : leavesOf(actions[k]))
                if (std::find(next.begin(), next.end(), leaf.stage) == next.end())
                    next.push_back(leaf.stage);
        const auto before = active;
        for (const std::int32_t stage : before)
            if (std::find(next.begin(), next.end(), stage) == next.end()) {
                std::erase(active, stage);
                result.push_back({stage, Kind::Reshard, -1, {}});
            }
        for (const std::int32_t stage : next)
            if (std::find(before.begin(), before.end(), stage) == before.end()) {
                active.push_back(stage);
                result.push_back({stage, Kind::Unshard, -1, {}});
            }
        result.push_back(actions[i]);
    }
    for (const std::int32_t stage : active)
        result.push_back({stage, Kind::Reshard, -1, {}});
    return result;
}

/// Gradients are reduced behind the last block that makes any of the stage (`_add_reduce_grad`).
Actions withReductions(const Actions &actions, std::int32_t microBatches)
{
    Actions result;
    std::map<std::int32_t, std::int32_t> made; // by stage: micro-batches
    for (const TorchAction &action : actions) {
        result.push_back(action);
        for (const TorchAction &leaf : leavesOf(action))
            if ((leaf.kind == Kind::WeightGradient || leaf.kind == Kind::Backward)
                && ++made[leaf.stage] == microBatches) {
                result.push_back({leaf.stage, Kind::ReduceGradients, -1, {}});
                result.push_back({leaf.stage, Kind::WaitReduceGradients, -1, {}});
            }
    }
    return result;
}

/// The action's key among those that a rank has seen.
using Seen = std::set<std::tuple<Kind, std::int32_t, std::int32_t>>;

/// Sends stand behind what they send, receives where their sender runs (`_add_send_recv`).
Result<std::vector<Actions>> withSends(
    const std::vector<Actions> &ranks, const std::vector<std::int32_t> &rankOf)
{
    const auto last = static_cast<std::int32_t>(rankOf.size()) - 1;
    std::vector<Actions> result(ranks.size());
    std::vector<Seen> seen(ranks.size());
    const auto isBackward = [](Kind kind) { return kind == Kind::Backward || kind == Kind::InputGradient; };
    const auto isReady = [&](const TorchAction &action, const Seen &own) {
        const auto has = [&](Kind kind, std::int32_t stage) {
            return own.contains({kind, stage, action.microBatch});
        };
        if (action.kind == Kind::Forward && action.stage != 0)
            return has(Kind::ReceiveForward, action.stage) || has(Kind::Forward, action.stage - 1);
        if (isBackward(action.kind) && action.stage != last)
            return has(Kind::ReceiveBackward, action.stage) || has(Kind::InputGradient, action.stage + 1)
                || has(Kind::Backward, action.stage + 1);
        return true;
    };
    const auto put = [&](std::size_t rank, const TorchAction &action) {
        result[rank].push_back(action);
        seen[rank].insert({action.kind, action.stage, action.microBatch});
    };
    std::vector<std::size_t> next(ranks.size(), 0);
    for (bool moved = true; moved;) {
        moved = false;
        for (std::size_t r = 0; r < ranks.size(); ++r) {
            if (next[r] == ranks[r].size())
                continue;
            const TorchAction &action = ranks[r][next[r]];
            const Actions leaves = leavesOf(action);
            if (!std::all_of(leaves.begin(), leaves.end(),
                    [&](const TorchAction &leaf) { return isReady(leaf, seen[r]); }))
                continue;
            result[r].push_back(action);
            for (const TorchAction &leaf : leaves) {
                seen[r].insert({leaf.kind, leaf.stage, leaf.microBatch});
                const bool forward = leaf.kind == Kind::Forward;
                const std::int32_t other = leaf.stage + (forward ? 1 : -1);
                if ((!forward && !isBackward(leaf.kind)) || other < 0 || other > last
                    || rankOf[at(other)] == rankOf[at(leaf.stage)])
                    continue;
                put(r, {leaf.stage, forward ? Kind::SendForward : Kind::SendBackward, leaf.microBatch, {}});
                put(at(rankOf[at(other)]),
                    {other, forward ? Kind::ReceiveForward : Kind::ReceiveBackward, leaf.microBatch, {}});
            }
            ++next[r];
            moved = true;
        }
    }
    for (std::size_t r = 0; r < ranks.size(); ++r)
        if (next[r] < ranks[r].size())
            return Error{ErrorCode::InvalidInput,
                "rank " + std::to_string(r) + " stops at " + toString(ranks[r][next[r]])
                    + ": what it needs is never sent before",
                "order the actions of every rank behind what they need", "rank:" + std::to_string(r)};
    return result;
}

/// Each send is waited for behind the backward block that it has to have arrived before, else at the end
/// (`_add_wait_send`).
Actions withWaits(const Actions &actions)
{
    Actions result;
    Actions pending;
    for (const TorchAction &action : actions) {
        result.push_back(action);
        if (action.kind == Kind::SendForward || action.kind == Kind::SendBackward)
            pending.push_back(action);
        for (const TorchAction &leaf : leavesOf(action)) {
            if (leaf.kind != Kind::Backward && leaf.kind != Kind::InputGradient)
                continue;
            const TorchAction send{leaf.stage, Kind::SendForward, leaf.microBatch, {}};
            if (std::erase(pending, send) > 0)
                result.push_back({leaf.stage, Kind::WaitSendForward, leaf.microBatch, {}});
        }
    }
    for (const TorchAction &send : pending)
        result.push_back(
            {send.stage, send.kind == Kind::SendForward ? Kind::WaitSendForward : Kind::WaitSendBackward,
                send.microBatch, {}});
    return result;
}

} // namespace

Result<TorchSchedule> withCommunication(const TorchSchedule &computeOnly)
{
    TRY(const ComputedSchedule computed, computedSchedule(computeOnly));
    std::vector<Actions> ranks;
    for (std::size_t r = 0; r < computeOnly.ranks.size(); ++r) {
        Actions actions;
        for (const auto &action : computeOnly.ranks[r]) {
            if (!action)
                continue;
            if (action->kind > Kind::Backward && action->kind != Kind::Overlap)
                return Error{ErrorCode::InvalidInput,
                    "this schedule has communication already: " + toString(*action) + " on rank "
                        + std::to_string(r),
                    "give a compute-only schedule", "rank:" + std::to_string(r)};
            actions.push_back(*action);
        }
        ranks.push_back(withReductions(withWeights(actions), computed.setting.microBatches));
    }
    TRY(ranks, withSends(ranks, computed.setting.rankOf));
    TorchSchedule result{.lineEnd = computeOnly.lineEnd};
    for (const Actions &actions : ranks) {
        const Actions all = withWaits(actions);
        result.ranks.emplace_back(all.begin(), all.end());
    }
    return result;
}

} // namespace planloom
