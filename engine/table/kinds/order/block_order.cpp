#include "engine/table/kinds/order/block_order.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace planloom {

namespace {

constexpr std::string_view kPassLetters = "FBIW"; ///< In the order of `kPasses`.
constexpr std::int32_t kMostIndex = 1 << 20;

char letterOf(SegmentKind pass)
{
    return kPassLetters[static_cast<std::size_t>(
        std::find(kPasses.begin(), kPasses.end(), pass) - kPasses.begin())];
}

/// Takes a number off the front.
std::optional<std::int32_t> takeIndex(std::string_view &text)
{
    std::int32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || value < 0 || value > kMostIndex)
        return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return value;
}

std::optional<ScheduledBlock> blockFrom(std::string_view text)
{
    ScheduledBlock block;
    const auto stage = takeIndex(text);
    const std::size_t pass = text.empty() ? kPassLetters.npos : kPassLetters.find(text.front());
    if (!stage || pass == kPassLetters.npos)
        return std::nullopt;
    text.remove_prefix(1);
    const auto microBatch = takeIndex(text);
    if (!microBatch)
        return std::nullopt;
    block.block.stage = StageId{*stage};
    block.block.pass = kPasses[pass];
    block.microBatch = *microBatch;
    for (const auto &[mark, value] :
        {std::pair('.', &block.block.slice), std::pair('@', &block.block.lane)}) {
        if (text.empty() || text.front() != mark)
            continue;
        text.remove_prefix(1);
        const auto index = takeIndex(text);
        if (!index)
            return std::nullopt;
        *value = *index;
    }
    return text.empty() ? std::optional(block) : std::nullopt;
}

} // namespace

std::string toString(const ScheduledBlock &block)
{
    const BlockKey &key = block.block;
    return std::to_string(key.stage.index) + letterOf(key.pass) + std::to_string(block.microBatch)
        + (key.slice == 0 ? "" : "." + std::to_string(key.slice))
        + (key.lane == 0 ? "" : "@" + std::to_string(key.lane));
}

std::string toString(const Schedule &schedule)
{
    std::string text;
    for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
        text += r == 0 ? "" : " / ";
        const auto &order = schedule.ranks[r];
        for (std::size_t i = 0; i < order.size(); ++i) {
            const bool beside = i > 0
                && std::find(schedule.interleaved.begin(), schedule.interleaved.end(),
                       std::pair(order[i - 1], order[i]))
                    != schedule.interleaved.end();
            text += (i == 0 ? "" : beside ? "|" : " ") + toString(order[i]);
        }
    }
    return text;
}

Result<Schedule> scheduleFromText(std::string_view text)
{
    Schedule schedule{.ranks = {{}}};
    bool beside = false;
    while (!text.empty()) {
        const char first = text.front();
        if (first == ' ' || first == '|' || first == '/') {
            beside = first == '|' || (beside && first == ' ');
            if (first == '/')
                schedule.ranks.emplace_back();
            text.remove_prefix(1);
            continue;
        }
        const std::string_view word = text.substr(0, std::min(text.find_first_of(" |/"), text.size()));
        const auto block = blockFrom(word);
        auto &order = schedule.ranks.back();
        if (!block || (beside && order.empty()))
            return Error{ErrorCode::InvalidInput,
                "expected a block such as 2F0, found \"" + std::string(word.substr(0, 40)) + "\"",
                "a block is its stage, F, B, I or W, and its micro-batch; ranks are parted by /, and two "
                "blocks "
                "that run side by side by |",
                ""};
        if (beside)
            schedule.interleaved.emplace_back(order.back(), *block);
        beside = false;
        order.push_back(*block);
        text.remove_prefix(word.size());
    }
    return schedule;
}

} // namespace planloom
