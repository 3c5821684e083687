#include "engine/table/kinds/order/schedule.h"

#include "engine/table/json_members.h"
#include "engine/table/text_cursor.h"

#include <nlohmann/json.hpp>

#include <algorithm>

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

namespace {

template<typename Kinds> std::string oneOfNames(const Kinds &kinds)
{
    std::string names;
    for (std::size_t i = 0; i < kinds.size(); ++i)
        names += (i == 0 ? "" : i + 1 < kinds.size() ? ", " : " or ") + std::string(nameOf(kinds[i]));
    return names;
}

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

std::optional<ScheduleKind> searchedNamed(std::string_view name)
{
    const auto found = std::find_if(kSearchedSchedules.begin(), kSearchedSchedules.end(),
        [&](ScheduleKind kind) { return name == nameOf(kind); });
    return found == kSearchedSchedules.end() ? std::nullopt : std::optional(*found);
}

/// Takes one more down; false where it is there already.
bool addTo(std::vector<ScheduleKind> &among, ScheduleKind kind)
{
    if (std::find(among.begin(), among.end(), kind) != among.end())
        return false;
    among.push_back(kind);
    return true;
}

} // namespace

std::string scheduleNames()
{
    return oneOfNames(kAllSchedules);
}

bool allows(const ScheduleRule &rule, ScheduleKind kind)
{
    return rule.among.empty() || std::find(rule.among.begin(), rule.among.end(), kind) != rule.among.end();
}

Result<ScheduleRule> RuleTraits<ScheduleRule>::parse(TextCursor &cursor, std::string_view)
{
    for (const ScheduleKind kind : kAllSchedules) {
        if (cursor.takeWord(nameOf(kind)))
            return withCount(cursor, ScheduleRule{kind});
    }
    if (cursor.takeWord("solver")) {
        ScheduleRule rule{.chosen = true};
        if (!cursor.takeWord("among"))
            return rule;
        do {
            const auto kind = searchedNamed(cursor.peekWord());
            if (!kind || !addTo(rule.among, *kind))
                return cursor.expected(
                    "schedules that the search chooses from, each once: " + oneOfNames(kSearchedSchedules));
            cursor.takeWord(nameOf(*kind));
        } while (cursor.take(','));
        return rule;
    }
    if (!cursor.takeWord(nameOf(ScheduleKind::Listed)))
        return cursor.expected(scheduleNames() + ", solver, or order \"0F0 0B0 / 1F0 1B0\"");
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
    if (rule.chosen) {
        std::string names;
        for (const ScheduleKind kind : rule.among)
            names += (names.empty() ? " among " : ", ") + std::string(nameOf(kind));
        return "solver" + names;
    }
    std::string text = nameOf(rule.kind);
    if (rule.kind == ScheduleKind::Listed)
        text += " \"" + toString(rule.order) + "\"";
    if (rule.microBatches > 0)
        text += " at " + std::to_string(rule.microBatches) + " micro-batches";
    return text;
}

void RuleTraits<ScheduleRule>::write(const ScheduleRule &rule, nlohmann::json &json)
{
    if (rule.chosen) {
        json["schedule"] = "solver";
        for (const ScheduleKind kind : rule.among)
            json["among"].push_back(nameOf(kind));
        return;
    }
    json["schedule"] = nameOf(rule.kind);
    if (rule.kind == ScheduleKind::Listed)
        json["order"] = toString(rule.order);
    if (rule.microBatches > 0)
        json["micro_batches"] = rule.microBatches;
}

Result<ScheduleRule> RuleTraits<ScheduleRule>::read(const nlohmann::json &json, const std::string &where)
{
    TRY_VOID(requireMembers(json, {"type", "schedule", "order", "micro_batches", "among"}, where));
    TRY(const std::string name, textAt(json, "schedule", where));
    const bool chosen = name == "solver";
    if (!chosen && json.contains("among"))
        return wrong(where + "/among", "expected it only beside solver");
    if (chosen) {
        for (const char *member : {"order", "micro_batches"})
            if (json.contains(member))
                return wrong(where + "/" + member, "expected none where the search chooses");
        ScheduleRule rule{.chosen = true};
        if (!json.contains("among"))
            return rule;
        const nlohmann::json &among = json["among"];
        if (!among.is_array() || among.empty())
            return wrong(where + "/among", "expected a list of schedules");
        for (std::size_t i = 0; i < among.size(); ++i) {
            const auto kind =
                among[i].is_string() ? searchedNamed(among[i].get<std::string>()) : std::nullopt;
            if (!kind || !addTo(rule.among, *kind))
                return wrong(where + "/among/" + std::to_string(i),
                    "expected each once: " + oneOfNames(kSearchedSchedules));
        }
        return rule;
    }
    const bool listed = name == nameOf(ScheduleKind::Listed);
    if (!listed && json.contains("order"))
        return wrong(where + "/order", "expected no order beside a schedule that has a name");
    TRY(const auto count, countAt(json, "micro_batches", where, 1, 0));
    if (const auto kind = scheduleNamed(name))
        return ScheduleRule{*kind, {}, count};
    if (!listed)
        return wrong(where + "/schedule", "expected " + scheduleNames() + ", solver or order");
    TRY(const std::string text, textAt(json, "order", where));
    auto order = scheduleFromText(text);
    if (!order)
        return wrong(where + "/order", order.error().message);
    return ScheduleRule{ScheduleKind::Listed, *std::move(order), count};
}

} // namespace planloom
