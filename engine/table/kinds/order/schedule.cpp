#include "engine/table/kinds/order/schedule.h"

#include "engine/table/rule_form.h"

#include <algorithm>
#include <array>

namespace planloom {

const char *nameOf(ScheduleKind kind)
{
    constexpr std::array kNames{"sequential", "gpipe", "1f1b", "interleaved", "combined-1f1b", "zb-h1",
        "chimera", "eager-1f1b", "breadth-first", "1f1b-plus", "3f1b", "hanayo", "zb-h2", "zb-v", "v-half",
        "v-min", "dualpipe", "dualpipev", "order"};
    return kNames[static_cast<std::size_t>(kind)];
}

bool splitsBackward(ScheduleKind kind)
{
    using enum ScheduleKind;
    constexpr std::array kThese{ZeroBubbleH1, ZeroBubbleH2, ZeroBubbleV, VHalf, VMin, DualPipe, DualPipeV};
    return std::find(kThese.begin(), kThese.end(), kind) != kThese.end();
}

bool splitsBackward(const Schedule &listed)
{
    for (const auto &rank : listed.ranks)
        for (const ScheduledBlock &block : rank)
            if (block.block.pass == SegmentKind::WeightGradient)
                return true;
    return false;
}

bool runsInWaves(ScheduleKind kind)
{
    using enum ScheduleKind;
    constexpr std::array kThese{Hanayo, ZeroBubbleV, VHalf, VMin, DualPipeV};
    return std::find(kThese.begin(), kThese.end(), kind) != kThese.end();
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

/// Those that the search may choose from, each once.
void describeAmong(RuleForm &form, ScheduleRule &rule)
{
    const std::string what =
        (form.isText() ? "schedules that the search chooses from, each once: " : "each once: ")
        + oneOfNames(kSearchedSchedules);
    const auto schedule = [&](RuleForm &part, ScheduleKind &kind) {
        const std::size_t place = part.place();
        part.choice({}, kind, kSearchedSchedules, what);
        if (std::count(rule.among.begin(), rule.among.end(), kind) > 1)
            part.expected({}, what, place);
    };
    form.list(
        "among", rule.among, schedule, [&](auto, const auto *) { return form.another(',', false); }, true);
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

void RuleTraits<ScheduleRule>::describe(RuleForm &form, ScheduleRule &rule)
{
    // The search, and the blocks of each rank, are named among the schedules.
    constexpr int kSolver = -1;
    constexpr int kListed = static_cast<int>(ScheduleKind::Listed);
    std::vector<int> words;
    for (const ScheduleKind kind : kAllSchedules)
        words.push_back(static_cast<int>(kind));
    words.insert(words.end(), {kSolver, kListed});
    int word = rule.chosen ? kSolver : static_cast<int>(rule.kind);
    form.choice("schedule", word, words,
        scheduleNames() + (form.isText() ? ", solver, or order \"0F0 0B0 / 1F0 1B0\"" : ", solver or order"),
        [](int each) { return each == kSolver ? "solver" : nameOf(static_cast<ScheduleKind>(each)); });
    rule.chosen = word == kSolver;
    if (rule.chosen) {
        form.refuse("order", "none where the search chooses");
        form.refuse("micro_batches", "none where the search chooses");
        if (form.has("among", "among", !rule.among.empty()))
            describeAmong(form, rule);
        return;
    }
    rule.kind = static_cast<ScheduleKind>(word);
    form.refuse("among", "it only beside solver");
    if (word == kListed)
        form.spelled(
            "order", rule.order, "the blocks of each rank in quotes", toString, scheduleFromText, true);
    else
        form.refuse("order", "no order beside a schedule that has a name");
    if (form.has("at", "micro_batches", rule.microBatches > 0)) {
        form.number("micro_batches", rule.microBatches, {"a number of micro-batches", 1});
        form.word("micro-batches", "micro-batches");
    }
}

} // namespace planloom
