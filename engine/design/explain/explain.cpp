#include "engine/design/explain/explain.h"

#include "engine/base/words.h"
#include "engine/conflict/ways_out.h"
#include "engine/table/table_text.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>

namespace planloom {

namespace {

constexpr std::chrono::seconds kForEffects{8};
constexpr std::size_t kMostRows = 16; ///< Of a set that is not minimal.
constexpr std::size_t kMostSimulated = 12; ///< Ways out of one conflict.
constexpr std::string_view kOff = "off "; ///< Before a row that is switched off.

/// "rows 3, 7 and 12"
std::string rowsWords(const std::vector<std::int32_t> &lines)
{
    std::string words = lines.size() == 1 ? "row " : "rows ";
    for (std::size_t i = 0; i < lines.size(); ++i)
        words += (i == 0 ? "" : i + 1 == lines.size() ? " and " : ", ") + std::to_string(lines[i] + 1);
    return words;
}

/// A message with rows by line in place of rows by index: "row 3" may stand in line 5.
std::string byLine(const std::string &message, const std::vector<RowLine> &rows)
{
    constexpr std::string_view kRow = "row ";
    std::string text;
    std::size_t at = 0;
    for (std::size_t found = message.find(kRow); found != std::string::npos; found = message.find(kRow, at)) {
        const std::size_t begin = found + kRow.size();
        text.append(message, at, begin - at);
        at = begin;
        std::size_t row = 0;
        const auto [end, failure] =
            std::from_chars(message.data() + begin, message.data() + message.size(), row);
        if (failure != std::errc{} || row < 1 || row > rows.size())
            continue;
        text += std::to_string(rows[row - 1].line + 1);
        at = static_cast<std::size_t>(end - message.data());
    }
    return text.append(message, at);
}

std::string capitalized(std::string text)
{
    if (!text.empty())
        text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
    return text;
}

/// Requests a stop when it is time, or another token is.
class StopAt
{
public:
    StopAt(std::chrono::steady_clock::time_point until, const std::stop_token &before)
        : m_before(before, [this] { m_source.request_stop(); })
        , m_timer([this, until](const std::stop_token &end) {
            std::mutex mutex;
            std::unique_lock lock(mutex);
            std::condition_variable_any ends;
            if (!ends.wait_until(lock, end, until, [&end] { return end.stop_requested(); }))
                m_source.request_stop();
        })
    {
    }
    std::stop_token token() const { return m_source.get_token(); }

private:
    std::stop_source m_source{};
    std::stop_callback<std::function<void()>> m_before;
    std::jthread m_timer; ///< The last member: it uses what is above.
};

/// Turns what the search found into what people are shown.
class Explainer
{
public:
    Explainer(const PlanAnswer &answer, const ExplainOptions &options, const std::stop_token &stop)
        : m_answer(answer)
        , m_options(options)
        , m_stop(stop)
        , m_table(rowsOf(answer.table))
    {
    }

    Result<std::vector<RowConflict>> explain()
    {
        const Model &model = *m_answer.model;
        TRY(const ConflictAnswer found,
            findConflict(model, m_answer.deviceCount, m_table,
                {.completion = m_options.completion, .space = m_options.space}, m_stop));
        const auto isShown = [](const ConflictSet &set) {
            return set.minimal || set.rows.size() <= kMostRows;
        };
        if (std::none_of(found.sets.begin(), found.sets.end(), isShown))
            return m_answer.conflicts; // no time to narrow them down: pairs say more
        TRY(const auto ways,
            waysOut(model, m_answer.deviceCount, m_table, found.sets,
                {.completion = m_options.completion, .space = m_options.space}, m_stop));
        for (const ConflictSet &set : found.sets)
            m_sets.push_back(linesOf(set.rows));
        std::vector<RowConflict> conflicts;
        for (std::size_t c = 0; c < found.sets.size(); ++c) {
            conflicts.push_back(conflictOf(found.sets[c]));
            // One that leads to what nobody knew of before helps only where there is no other.
            const auto leads = [](const WayOut &way) { return !way.behind; };
            const bool anyLeads = std::any_of(ways[c].begin(), ways[c].end(), leads);
            for (const WayOut &way : ways[c])
                if (!anyLeads || leads(way))
                    conflicts.back().waysOut.push_back(wayOf(way));
            tryNarrowing(conflicts.back());
        }
        return conflicts;
    }

private:
    ConstraintTable rowsOf(const TableDocument &table) const
    {
        return m_options.withoutFound ? rowsWithoutFound(table) : table.table();
    }
    std::int32_t lineOf(RowId row) const { return m_answer.rows[at(row)].line; }
    std::vector<std::int32_t> linesOf(const std::vector<RowId> &rows) const
    {
        std::vector<std::int32_t> lines;
        for (const RowId row : rows)
            lines.push_back(lineOf(row));
        return lines;
    }

    /// The pair of the same rows, whose words say on what they meet; null if there is none.
    const RowConflict *pairOf(const std::vector<RowId> &rows) const
    {
        const auto found = std::find_if(m_answer.conflicts.begin(), m_answer.conflicts.end(),
            [&](const RowConflict &pair) { return pair.rows == rows && pair.reason.message.empty(); });
        return found == m_answer.conflicts.end() ? nullptr : &*found;
    }

    RowConflict conflictOf(const ConflictSet &set) const
    {
        RowConflict conflict{.rows = set.rows,
            .lines = linesOf(set.rows),
            .minimal = set.minimal,
            .operators = set.operators,
            .reason = set.reason};
        const std::string reason = byLine(set.reason.message, m_answer.rows);
        if (const RowConflict *pair = pairOf(set.rows)) {
            conflict.words = pair->words;
            conflict.operators = pair->operators;
        } else if (set.rows.size() == 1) {
            conflict.words = capitalized(rowsWords(conflict.lines)) + " can't hold: " + reason;
        } else {
            conflict.words = capitalized(rowsWords(conflict.lines))
                + (set.minimal ? " can't hold together: " : " hold a conflict, not yet narrowed down: ")
                + reason;
        }
        const PlanMeaning plan = planMeaning(*m_answer.model, m_answer.deviceCount, m_table);
        const RowSetting setting{*m_answer.model, m_answer.deviceCount, plan.mesh};
        std::set<DeviceId> devices;
        for (const RowId row : set.rows)
            if (const auto *place = std::get_if<OpAssignRule>(&m_table.rows[at(row)].rule))
                if (const auto domain = RuleMeaning<OpAssignRule>::domainOf(setting, *place))
                    devices.insert(domain->devices.begin(), domain->devices.end());
        conflict.devices.assign(devices.begin(), devices.end());
        return conflict;
    }

    RowWayOut wayOf(const WayOut &way) const
    {
        const std::int32_t line = lineOf(way.row);
        RowWayOut shown{.row = way.row, .holds = way.holds};
        const std::string name = "row " + std::to_string(line + 1);
        if (way.changed) {
            Row bare = *way.changed;
            bare.note.clear();
            shown.text = print(bare);
            shown.words = "make " + name + ": " + shown.text;
            shown.edit = replaceRow(m_answer.table, line, *way.changed);
        } else {
            shown.text = std::string(kOff) + m_answer.rows[at(way.row)].text;
            shown.words = "switch " + name + " off";
            shown.edit = setEnabled(m_answer.table, {line}, false);
        }
        if (!way.left.empty()) {
            shown.left = rowsWords(m_sets[way.left.front()])
                + (m_sets[way.left.front()].size() == 1 ? " still can't hold" : " still can't hold together");
        } else if (way.behind) {
            shown.left = way.behind->message;
        }
        return shown;
    }

    /// Ways to take operators out of one of two rows, where that alone is enough.
    void tryNarrowing(RowConflict &conflict) const
    {
        const RowConflict *pair = pairOf(conflict.rows);
        for (std::size_t i = pair ? pair->lines.size() : 0; pair && i < pair->waysOut.size(); ++i) {
            RowWayOut way = pair->waysOut[i];
            TableDocument changed = m_answer.table;
            if (m_stop.stop_requested() || !changed.apply(way.edit))
                continue;
            const auto completion =
                completePlan(*m_answer.model, m_answer.deviceCount, rowsOf(changed), m_options.completion);
            if (!completion || firstError(*completion))
                continue;
            way.holds = true;
            for (std::size_t row = 0; row < m_table.rows.size() && row < changed.table().rows.size(); ++row)
                if (changed.table().rows[row] != m_table.rows[row]) {
                    way.row = {static_cast<std::int32_t>(row)};
                    Row bare = changed.table().rows[row];
                    bare.note.clear();
                    way.text = print(bare);
                }
            conflict.waysOut.insert(conflict.waysOut.begin(), std::move(way));
        }
    }

    const PlanAnswer &m_answer;
    const ExplainOptions &m_options;
    const std::stop_token &m_stop;
    ConstraintTable m_table{};
    std::vector<std::vector<std::int32_t>> m_sets{}; ///< Lines of each.
};

/// The best first; those whose effect is not known behind those that hold.
void sortByEffect(std::vector<RowWayOut> &ways)
{
    const auto rank = [](const RowWayOut &way) {
        const bool timed = way.stepSeconds > 0;
        return std::tuple(!way.holds, way.overMemory > 0 && timed, !timed, way.stepSeconds);
    };
    std::stable_sort(
        ways.begin(), ways.end(), [&](const RowWayOut &a, const RowWayOut &b) { return rank(a) < rank(b); });
}

bool isSwitchedOff(const RowWayOut &way)
{
    return way.text.starts_with(kOff);
}

} // namespace

Result<std::vector<RowConflict>> explainConflicts(
    const PlanAnswer &answer, const ExplainOptions &options, const std::stop_token &stop)
{
    return Explainer(answer, options, stop).explain();
}

Result<void> rankWaysOut(const PlanRequest &request, const PlanAnswer &answer,
    std::vector<RowConflict> &conflicts, const std::stop_token &stop, const std::function<void()> &changed)
{
    const auto until = std::chrono::steady_clock::now() + kForEffects;
    const StopAt enough(until, request.enough); // searches end with what they have
    // Ways out differ in a row, and so do what searches of them work out.
    const auto memory = request.memory ? request.memory : std::make_shared<SearchMemory>();
    std::map<std::string, RowWayOut> known; // by the table's text: conflicts share ways out
    for (RowConflict &conflict : conflicts) {
        std::size_t simulated = 0;
        for (RowWayOut &way : conflict.waysOut) {
            if (!way.holds || simulated >= kMostSimulated)
                continue;
            PlanRequest tried = request;
            tried.gallery.clear();
            tried.table = answer.table;
            tried.upTo = PlanGrade::Timed;
            tried.explains = false;
            tried.begin = nullptr;
            tried.onBetter = {}; // of the rows asked for
            tried.memory = memory;
            tried.enough = enough.token();
            if (!tried.table.apply(way.edit))
                continue;
            const std::string text = tried.table.text();
            if (!known.contains(text)) {
                if (stop.stop_requested())
                    return cancelled();
                if (std::chrono::steady_clock::now() >= until)
                    break;
                ++simulated;
                RowWayOut effect;
                const auto plan = answerOf(tried, stop);
                if (plan && (*plan)->searchProblem && (*plan)->searchProblem->code == ErrorCode::Cancelled)
                    break; // what was found in time is no plan of theirs
                if (plan && (*plan)->isTimed()) {
                    effect.stepSeconds = (*plan)->summary.stepSeconds;
                    effect.peak = (*plan)->summary.largestPeak;
                    effect.overMemory =
                        memoryUse((*plan)->summary, (*plan)->cluster, (*plan)->execution->units).over;
                } else if (plan) {
                    effect.left = (*plan)->firstError() ? (*plan)->firstError()->message : "";
                }
                known.emplace(text, std::move(effect));
            }
            const RowWayOut &effect = known.at(text);
            way.stepSeconds = effect.stepSeconds;
            way.peak = effect.peak;
            way.overMemory = effect.overMemory;
            if (!effect.left.empty()) {
                way.left = effect.left;
                way.holds = false;
            }
        }
        sortByEffect(conflict.waysOut);
        changed();
    }
    if (stop.stop_requested())
        return cancelled();
    return {};
}

Result<void> searchWithoutLimits(const PlanRequest &request, const PlanAnswer &answer,
    std::vector<RowConflict> &conflicts, const std::stop_token &stop)
{
    std::vector<RowConflict> off = conflicts;
    for (RowConflict &conflict : off)
        std::erase_if(conflict.waysOut, [](const RowWayOut &way) { return !isSwitchedOff(way); });
    TRY_VOID(rankWaysOut(request, answer, off, stop, [] {}));
    for (std::size_t c = 0; c < conflicts.size(); ++c) {
        for (RowWayOut &way : conflicts[c].waysOut)
            for (const RowWayOut &found : off[c].waysOut)
                if (isSwitchedOff(way) && found.text == way.text && found.holds
                    && found.stepSeconds < way.stepSeconds)
                    way = found;
        sortByEffect(conflicts[c].waysOut);
    }
    return {};
}

ConstraintTable rowsWithoutFound(const TableDocument &table)
{
    ConstraintTable rows = table.table();
    for (Row &row : rows.rows)
        row.enabled = row.enabled && row.origin != RowOrigin::Solver;
    return rows;
}

RowConflict noPlanLeft(const PlanAnswer &answer, const std::vector<RowId> &rows, const Error &reason)
{
    RowConflict conflict{.rows = rows, .reason = reason};
    for (const RowId row : rows)
        conflict.lines.push_back(answer.rows[at(row)].line);
    conflict.words = capitalized(rowsWords(conflict.lines))
        + " can't hold with the others: " + byLine(reason.message, answer.rows);
    return conflict;
}

RowConflict brokenLimit(const PlanAnswer &answer, const BrokenLimit &broken)
{
    const RowId row = broken.row;
    const Error &error = broken.error;
    const RowLine &line = answer.rows[at(row)];
    RowConflict conflict{.rows = {row}, .lines = {line.line}, .minimal = true, .reason = error};
    conflict.words = "Row " + std::to_string(line.line + 1) + " does not hold: " + error.message;
    Row raised = answer.table.table().rows[at(row)];
    auto &limit = std::get<LimitRule>(raised.rule);
    if (limit.kind == LimitRule::Kind::Memory && answer.plan) {
        const Bytes least = leastMemory(*answer.plan, answer.deviceCount);
        if (least.count > limit.value)
            conflict.words += "; no plan on " + counted(answer.deviceCount, "device")
                + " does: weights and optimizer states alone are " + formatBytes(least) + " each";
    }
    // Rounded up to what is written in few digits.
    const std::int64_t needed = broken.needed;
    const bool isTime = limit.kind == LimitRule::Kind::Time;
    std::int64_t unit = isTime ? 1 : 1024;
    const std::int64_t step = isTime ? 1000 : 1024;
    while (needed / unit >= step * 4)
        unit *= step;
    limit.value = (needed + unit - 1) / unit * unit;
    const std::string name = "row " + std::to_string(line.line + 1);
    const auto effect = [&](RowWayOut way) {
        way.row = row;
        way.holds = true;
        way.stepSeconds = answer.summary.stepSeconds;
        way.peak = answer.summary.largestPeak;
        return way;
    };
    TableEdit raise = replaceRow(answer.table, line.line, raised);
    raised.note.clear();
    conflict.waysOut.push_back(effect(
        {.words = "make " + name + ": " + print(raised), .edit = std::move(raise), .text = print(raised)}));
    conflict.waysOut.push_back(effect({.words = "switch " + name + " off",
        .edit = setEnabled(answer.table, {line.line}, false),
        .text = std::string(kOff) + line.text}));
    return conflict;
}

} // namespace planloom
