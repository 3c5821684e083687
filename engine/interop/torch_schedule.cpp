#include "engine/interop/torch_schedule.h"

#include "engine/base/ids.h"
#include "engine/base/text.h"
#include "engine/base/words.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <map>
#include <set>

namespace planloom {

namespace {

/// In the order of `TorchActionKind`.
constexpr std::array<std::string_view, 15> kActionNames{"F", "I", "W", "B", "UNSHARD", "RESHARD",
    "REDUCE_GRAD", "WAIT_REDUCE_GRAD", "SEND_F", "RECV_F", "SEND_B", "RECV_B", "WAIT_SEND_F", "WAIT_SEND_B",
    "OVERLAP_F_B"};

bool isCompute(TorchActionKind kind)
{
    return kind <= TorchActionKind::Backward || kind == TorchActionKind::Overlap;
}

bool hasMicroBatch(TorchActionKind kind)
{
    return kind <= TorchActionKind::Backward
        || (kind >= TorchActionKind::SendForward && kind < TorchActionKind::Overlap);
}

Error badField(std::size_t line, std::size_t field, std::string_view text)
{
    return {ErrorCode::InvalidInput, "expected an action, found \"" + std::string(text.substr(0, 40)) + "\"",
        "actions are like 2F0 (stage, kind, micro-batch), 1UNSHARD or (0F1;3B0)OVERLAP_F_B",
        "line:" + std::to_string(line) + ":" + std::to_string(field)};
}

/// Takes digits off the front; nothing if there are none, or too many.
std::optional<std::int32_t> takeNumber(std::string_view &text)
{
    std::int32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || text.front() == '-')
        return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return value;
}

std::optional<TorchAction> actionFrom(std::string_view text, bool isPart = false)
{
    TorchAction action;
    if (!text.empty() && text.front() == '(' && !isPart) {
        const std::size_t close = text.find(')');
        if (close == std::string_view::npos || text.substr(close + 1) != kActionNames.back())
            return std::nullopt;
        std::string_view parts = text.substr(1, close - 1);
        while (!parts.empty()) {
            const std::size_t end = std::min(parts.find(';'), parts.size());
            auto part = actionFrom(trimmed(parts.substr(0, end)), true);
            if (!part)
                return std::nullopt;
            action.parts.push_back(*std::move(part));
            parts.remove_prefix(std::min(end + 1, parts.size()));
        }
        action.kind = TorchActionKind::Overlap;
        return action.parts.empty() ? std::nullopt : std::optional(action);
    }
    const auto stage = takeNumber(text);
    if (!stage)
        return std::nullopt;
    action.stage = *stage;
    const std::size_t length = std::min(text.find_first_of("0123456789"), text.size());
    const auto name = std::find(kActionNames.begin(), kActionNames.end() - 1, text.substr(0, length));
    if (name == kActionNames.end() - 1)
        return std::nullopt;
    action.kind = static_cast<TorchActionKind>(name - kActionNames.begin());
    text.remove_prefix(length);
    if (const auto microBatch = text.empty() ? std::nullopt : takeNumber(text))
        action.microBatch = *microBatch;
    if (!text.empty() || hasMicroBatch(action.kind) != (action.microBatch >= 0))
        return std::nullopt;
    return action;
}

/// The parts of an action that runs several, or itself.
std::vector<TorchAction> partsOf(const TorchAction &action)
{
    return action.kind == TorchActionKind::Overlap ? action.parts : std::vector{action};
}

} // namespace

bool communicates(const TorchSchedule &schedule)
{
    return std::any_of(schedule.ranks.begin(), schedule.ranks.end(), [](const auto &rank) {
        return std::any_of(
            rank.begin(), rank.end(), [](const auto &action) { return action && !isCompute(action->kind); });
    });
}

TorchSchedule computationOf(const TorchSchedule &schedule)
{
    TorchSchedule computation{.lineEnd = schedule.lineEnd};
    for (const auto &rank : schedule.ranks) {
        auto &own = computation.ranks.emplace_back();
        std::copy_if(rank.begin(), rank.end(), std::back_inserter(own),
            [](const auto &action) { return action && isCompute(action->kind); });
    }
    return computation;
}

std::string toString(const TorchAction &action)
{
    if (action.kind == TorchActionKind::Overlap) {
        std::string parts;
        for (const TorchAction &part : action.parts)
            parts += (parts.empty() ? "" : ";") + toString(part);
        return "(" + parts + ")" + std::string(kActionNames.back());
    }
    return std::to_string(action.stage) + std::string(kActionNames[static_cast<std::size_t>(action.kind)])
        + (action.microBatch < 0 ? "" : std::to_string(action.microBatch));
}

Result<TorchSchedule> readTorchSchedule(std::string_view text)
{
    TorchSchedule schedule;
    if (const std::size_t first = text.find('\n'); first != std::string_view::npos)
        schedule.lineEnd = first > 0 && text[first - 1] == '\r' ? "\r\n" : "\n";
    for (std::size_t line = 1; !text.empty(); ++line) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        std::string_view rest = trimmed(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
        auto &rank = schedule.ranks.emplace_back();
        if (rest.empty())
            continue; // a rank without a step
        for (std::size_t field = 1; true; ++field) {
            const std::size_t comma = std::min(rest.find(','), rest.size());
            std::string_view each = trimmed(rest.substr(0, comma));
            if (each.size() >= 2 && each.front() == '"' && each.back() == '"')
                each = trimmed(each.substr(1, each.size() - 2));
            auto action = actionFrom(each);
            if (!action && !each.empty())
                return badField(line, field, each);
            rank.push_back(std::move(action));
            if (comma == rest.size())
                break;
            rest.remove_prefix(comma + 1);
        }
    }
    if (schedule.ranks.empty())
        return Error{ErrorCode::InvalidInput, "expected a line for each rank, found none",
            "PyTorch writes such files with _dump_csv", "line:1"};
    return schedule;
}

std::string writeTorchSchedule(const TorchSchedule &schedule)
{
    std::string text;
    for (const auto &rank : schedule.ranks) {
        for (std::size_t i = 0; i < rank.size(); ++i)
            text += (i == 0 ? "" : ",") + (rank[i] ? toString(*rank[i]) : std::string{});
        if (rank.size() == 1 && !rank[0])
            text += "\"\""; // one idle step, not none
        text += schedule.lineEnd;
    }
    return text;
}

Result<ComputedSchedule> computedSchedule(const TorchSchedule &torch)
{
    ComputedSchedule computed;
    computed.setting.rankCount = static_cast<std::int32_t>(torch.ranks.size());
    computed.setting.backward = false;
    std::map<std::int32_t, std::int32_t> rankOf;
    std::map<std::int32_t, std::set<std::int32_t>> forwards; // of each stage: micro-batches
    for (std::size_t r = 0; r < torch.ranks.size(); ++r) {
        auto &order = computed.schedule.ranks.emplace_back();
        for (std::size_t i = 0; i < torch.ranks[r].size(); ++i) {
            if (!torch.ranks[r][i])
                continue;
            std::vector<ScheduledBlock> side;
            for (const TorchAction &part : partsOf(*torch.ranks[r][i])) {
                if (!isCompute(part.kind))
                    continue;
                const auto rank = static_cast<std::int32_t>(r);
                if (rankOf.try_emplace(part.stage, rank).first->second != rank)
                    return Error{ErrorCode::InvalidInput,
                        "stage " + std::to_string(part.stage) + " runs on ranks "
                            + std::to_string(rankOf.at(part.stage)) + " and " + std::to_string(rank),
                        "a stage runs on one rank",
                        "line:" + std::to_string(r + 1) + ":" + std::to_string(i + 1)};
                constexpr std::array kPassOf{SegmentKind::Forward, SegmentKind::InputGradient,
                    SegmentKind::WeightGradient, SegmentKind::Backward};
                const SegmentKind pass = kPassOf[static_cast<std::size_t>(part.kind)];
                if (pass == SegmentKind::Forward)
                    forwards[part.stage].insert(part.microBatch);
                else
                    computed.setting.backward = true;
                side.push_back({{StageId{part.stage}, pass}, part.microBatch});
            }
            order.insert(order.end(), side.begin(), side.end());
            if (side.size() == 2)
                computed.schedule.interleaved.emplace_back(side[0], side[1]);
        }
    }
    if (rankOf.empty())
        return Error{ErrorCode::InvalidInput, "nothing is computed in this schedule", {}, "line:1"};
    for (const auto &[stage, own] : forwards)
        computed.setting.microBatches =
            std::max(computed.setting.microBatches, static_cast<std::int32_t>(own.size()));
    for (std::int32_t s = 0; s <= rankOf.rbegin()->first; ++s) {
        const auto own = forwards.find(s);
        const auto count = own == forwards.end() ? 0 : static_cast<std::int32_t>(own->second.size());
        if (count != computed.setting.microBatches || *own->second.rbegin() != count - 1) {
            std::int32_t missing = 0; // the first
            while (count > 0 && own->second.contains(missing))
                ++missing;
            return Error{ErrorCode::InvalidInput,
                "stage " + std::to_string(s) + " has no forward block of micro-batch "
                    + std::to_string(missing) + ", and "
                    + counted(computed.setting.microBatches, "micro-batch") + " in all",
                "every stage runs each micro-batch forward once, from 0 on", "stage:" + std::to_string(s)};
        }
        computed.setting.rankOf.push_back(rankOf.at(s));
    }
    return computed;
}

Result<TorchSchedule> torchSchedule(const Schedule &schedule)
{
    TorchSchedule torch;
    std::map<std::int32_t, std::size_t> rankOf;
    std::map<ScheduledBlock, ScheduledBlock> beside(schedule.interleaved.begin(), schedule.interleaved.end());
    for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
        auto &actions = torch.ranks.emplace_back();
        const auto &order = schedule.ranks[r];
        const auto actionAt = [&](std::size_t i) {
            constexpr auto kindOf = [](SegmentKind pass) {
                switch (pass) {
                case SegmentKind::Forward:
                    return TorchActionKind::Forward;
                case SegmentKind::InputGradient:
                    return TorchActionKind::InputGradient;
                case SegmentKind::WeightGradient:
                    return TorchActionKind::WeightGradient;
                default:
                    return TorchActionKind::Backward;
                }
            };
            return TorchAction{
                order[i].block.stage.index, kindOf(order[i].block.pass), order[i].microBatch, {}};
        };
        // Takes a block, and the gradients of weights behind those of inputs with it.
        const auto takeMerged = [&](std::size_t &i) {
            TorchAction action = actionAt(i++);
            ScheduledBlock weights = order[i - 1];
            weights.block.pass = SegmentKind::WeightGradient;
            if (action.kind == TorchActionKind::InputGradient && i < order.size() && order[i] == weights) {
                action.kind = TorchActionKind::Backward;
                ++i;
            }
            return action;
        };
        for (std::size_t i = 0; i < order.size();) {
            const BlockKey &key = order[i].block;
            if (key.lane != 0 || key.slice != 0 || rankOf.try_emplace(key.stage.index, r).first->second != r)
                return Error{ErrorCode::NotSupported,
                    "PyTorch's schedules have no lanes, no slices and no stages on several ranks, stage "
                        + std::to_string(key.stage.index) + " has",
                    "choose a schedule of whole stages, each on one rank",
                    "stage:" + std::to_string(key.stage.index)};
            const auto other = beside.find(order[i]);
            const bool pair = other != beside.end() && i + 1 < order.size() && order[i + 1] == other->second;
            TorchAction action = takeMerged(i);
            if (pair)
                action = {-1, TorchActionKind::Overlap, -1, {action, takeMerged(i)}};
            actions.emplace_back(std::move(action));
        }
    }
    return torch;
}

} // namespace planloom
