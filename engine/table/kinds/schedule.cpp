#include "engine/table/kinds/schedule.h"

#include "engine/table/json_members.h"
#include "engine/table/text_cursor.h"

#include <nlohmann/json.hpp>

namespace planloom {

const char *nameOf(ScheduleKind kind)
{
    switch (kind) {
    case ScheduleKind::Sequential:
        return "sequential";
    case ScheduleKind::GPipe:
        return "gpipe";
    case ScheduleKind::OneFOneB:
        return "1f1b";
    case ScheduleKind::Interleaved:
        return "interleaved";
    case ScheduleKind::CombinedOneFOneB:
        return "combined-1f1b";
    case ScheduleKind::ZeroBubbleH1:
        return "zb-h1";
    case ScheduleKind::Chimera:
        return "chimera";
    case ScheduleKind::Eager1F1B:
        return "eager-1f1b";
    case ScheduleKind::BreadthFirst:
        return "breadth-first";
    case ScheduleKind::OneFOneBPlus:
        return "1f1b-plus";
    case ScheduleKind::Recycling:
        return "3f1b";
    case ScheduleKind::Hanayo:
        return "hanayo";
    case ScheduleKind::ZeroBubbleH2:
        return "zb-h2";
    case ScheduleKind::ZeroBubbleV:
        return "zb-v";
    case ScheduleKind::VHalf:
        return "v-half";
    case ScheduleKind::VMin:
        return "v-min";
    case ScheduleKind::DualPipe:
        return "dualpipe";
    case ScheduleKind::DualPipeV:
        return "dualpipev";
    case ScheduleKind::Listed:
        return "order";
    }
    return "";
}

bool splitsBackward(ScheduleKind kind)
{
    switch (kind) {
    case ScheduleKind::ZeroBubbleH1:
    case ScheduleKind::ZeroBubbleH2:
    case ScheduleKind::ZeroBubbleV:
    case ScheduleKind::VHalf:
    case ScheduleKind::VMin:
    case ScheduleKind::DualPipe:
    case ScheduleKind::DualPipeV:
        return true;
    default:
        return false;
    }
}

bool splitsBackward(const Schedule &listed)
{
    for (const auto &rank : listed.ranks)
        for (const ScheduledBlock &block : rank)
            if (block.block.pass == Pass::WeightGradient)
                return true;
    return false;
}

bool runsInWaves(ScheduleKind kind)
{
    switch (kind) {
    case ScheduleKind::Hanayo:
    case ScheduleKind::ZeroBubbleV:
    case ScheduleKind::VHalf:
    case ScheduleKind::VMin:
    case ScheduleKind::DualPipeV:
        return true;
    default:
        return false;
    }
}

std::optional<ScheduleKind> scheduleNamed(std::string_view name)
{
    for (const ScheduleKind kind : kAllSchedules)
        if (name == nameOf(kind))
            return kind;
    return std::nullopt;
}

std::string scheduleNames()
{
    std::string names;
    for (std::size_t i = 0; i < kAllSchedules.size(); ++i)
        names += (i == 0                                ? ""
                         : i + 1 < kAllSchedules.size() ? ", "
                                                        : " or ")
            + std::string(nameOf(kAllSchedules[i]));
    return names;
}

namespace {

/// "at 8 micro-batches", if it is there.
Result<ScheduleRule> withCount(TextCursor &cursor, ScheduleRule rule)
{
    if (!cursor.takeWord("at"))
        return rule;
    TRY(const auto count, cursor.integer("a number of micro-batches", 1, kMostCount));
    if (!cursor.takeWord("micro-batches"))
        return cursor.expected("micro-batches");
    rule.microBatches = static_cast<std::int32_t>(count);
    return rule;
}

} // namespace

Result<ScheduleRule> RuleTraits<ScheduleRule>::parse(TextCursor &cursor, std::string_view)
{
    for (const ScheduleKind kind : kAllSchedules) {
        if (cursor.takeWord(nameOf(kind)))
            return withCount(cursor, ScheduleRule{kind});
    }
    if (!cursor.takeWord(nameOf(ScheduleKind::Listed)))
        return cursor.expected(scheduleNames() + ", or order \"0F0 0B0 / 1F0 1B0\"");
    cursor.atEnd(); // spaces
    const std::size_t place = cursor.position();
    TRY(const std::string text, cursor.word("the blocks of each rank in quotes"));
    auto order = scheduleFromText(text);
    if (!order)
        return cursor.at(place, order.error().message, order.error().advice);
    return withCount(cursor, ScheduleRule{ScheduleKind::Listed, *std::move(order)});
}

std::string RuleTraits<ScheduleRule>::print(const ScheduleRule &rule)
{
    std::string text = nameOf(rule.kind);
    if (rule.kind == ScheduleKind::Listed)
        text += " \"" + toString(rule.order) + "\"";
    if (rule.microBatches > 0)
        text += " at " + std::to_string(rule.microBatches) + " micro-batches";
    return text;
}

void RuleTraits<ScheduleRule>::write(const ScheduleRule &rule, nlohmann::json &json)
{
    json["schedule"] = nameOf(rule.kind);
    if (rule.kind == ScheduleKind::Listed)
        json["order"] = toString(rule.order);
    if (rule.microBatches > 0)
        json["micro_batches"] = rule.microBatches;
}

Result<ScheduleRule> RuleTraits<ScheduleRule>::read(const nlohmann::json &json, const std::string &where)
{
    TRY_VOID(requireMembers(json, {"type", "schedule", "order", "micro_batches"}, where));
    TRY(const std::string name, textAt(json, "schedule", where));
    const bool listed = name == nameOf(ScheduleKind::Listed);
    if (!listed && json.contains("order"))
        return wrong(where + "/order", "expected no order beside a schedule that has a name");
    TRY(const auto count, countAt(json, "micro_batches", where, 1, 0));
    if (const auto kind = scheduleNamed(name))
        return ScheduleRule{*kind, {}, count};
    if (!listed)
        return wrong(where + "/schedule", "expected " + scheduleNames() + ", or order");
    TRY(const std::string text, textAt(json, "order", where));
    auto order = scheduleFromText(text);
    if (!order)
        return wrong(where + "/order", order.error().message);
    return ScheduleRule{ScheduleKind::Listed, *std::move(order), count};
}

} // namespace planloom
