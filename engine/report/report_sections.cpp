#include "engine/report/report_sections.h"

#include "engine/analyse/bound.h"
#include "engine/analyse/communication_lines.h"
#include "engine/analyse/memory_fit.h"
#include "engine/analyse/plan_difference.h"
#include "engine/analyse/waterfall.h"
#include "engine/base/words.h"
#include "engine/design/explain/traced_difference.h"
#include "engine/hardware/cost_model.h"
#include "engine/hardware/framework.h"
#include "engine/report/html_text.h"
#include "engine/simulate/summary.h"
#include "engine/table/table_text.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

namespace planloom {

namespace {

using Cells = std::vector<std::string>;

constexpr std::size_t kMostBars =
    64; ///< Ranks that are drawn; of more, those that hold the same share a bar.
constexpr std::size_t kMostGroups = 2; ///< Of a line of communication.
constexpr std::size_t kMostListedOperators = 200;

std::string percent(double share)
{
    char text[32];
    std::snprintf(text, sizeof text, "%.1f%%", share * 100);
    return text;
}

std::string rate(double bytesPerSecond)
{
    char text[32];
    std::snprintf(text, sizeof text, "%.1f GB/s", bytesPerSecond * 1e-9);
    return text;
}

double shareOf(std::int64_t part, std::int64_t whole)
{
    return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

std::string section(
    const std::string &id, const std::string &title, const std::string &about, const std::string &body)
{
    if (body.empty())
        return {};
    return "<section id=\"" + id + "\" class=\"long\"><h2>" + htmlText(title) + "</h2>\n"
        + (about.empty() ? "" : "<p class=\"about\">" + htmlText(about) + "</p>\n") + body + "</section>\n";
}

/// A heading for each plan where there are two.
std::string planHeading(const Report &report, std::size_t plan)
{
    return report.plans.size() > 1 ? "<h3>" + htmlText(titleOf(report, plan)) + "</h3>\n" : std::string{};
}

/// A figure of a plan, and a few words about it.
struct Figure {
    std::string name{};
    std::string value{};
    std::string note{};
};

std::vector<Figure> figuresOf(const ReportedPlan &plan)
{
    const TimelineSummary summary = summaryOf(plan.timeline);
    const double bound = stepBound(plan.plan, costModelOf(plan.cluster));
    const std::vector<RankMemory> ranks = memoryOfRanks(plan.plan, plan.timeline, plan.cluster);
    const RankMemory *fullest = fullestOf(ranks);
    const bool isBound = bound > 0 && summary.stepSeconds > 0;
    std::vector<Figure> figures{{"step", formatSeconds(summary.stepSeconds),
        isBound ? "no plan below " + formatSeconds(bound) + ": gap at most "
                + percent(std::max(0.0, 1 - bound / summary.stepSeconds))
                : std::string{}}};
    if (fullest)
        figures.push_back({"fullest rank", formatBytes({fullest->peak}),
            "rank " + std::to_string(fullest->rank.index) + ", " + percent(fullest->share()) + " of "
                + formatBytes({fullest->limit}) + (fullest->fits() ? "" : ": does not fit")});
    figures.push_back({"bubble", percent(summary.bubble), "of the devices' time, nothing is computed"});
    const double exposed = summary.exposedCommunicationSeconds;
    figures.push_back({"exposed communication", formatSeconds(exposed),
        percent(summary.stepSeconds > 0 ? exposed / summary.stepSeconds : 0)
            + " of the step, on average over devices"});
    figures.push_back({"sent", formatBytes(summary.sent), "by all devices in one step"});
    const std::int32_t units = plan.plan.units.count;
    figures.push_back({"devices", std::to_string(static_cast<std::int64_t>(plan.plan.devices.size()) * units),
        (units > 1 ? std::to_string(units) + " units alike; " : std::string{}) + deviceNames(plan.cluster)});
    figures.push_back({"pipeline", counted(plan.plan.stageCount, "stage"),
        counted(plan.plan.microBatches, "micro-batch")
            + (plan.plan.updates > 1 ? ", " + counted(plan.plan.updates, "update") : "")});
    const std::string &framework = plan.cluster.framework;
    figures.push_back({"framework", framework.empty() ? "none assumed" : framework,
        framework.empty() ? "kernels as timings have them" : meaningOfFramework(framework)});
    return figures;
}

std::string cardsOf(const ReportedPlan &plan, Medium medium)
{
    if (medium == Medium::Paper) {
        std::vector<Cells> rows;
        for (const Figure &figure : figuresOf(plan))
            rows.push_back(
                {htmlText(figure.name), "<b>" + htmlText(figure.value) + "</b>", htmlText(figure.note)});
        return htmlTable({{"figure"}, {"value"}, {""}}, rows);
    }
    std::string html = "<div class=\"cards\">\n";
    for (const Figure &figure : figuresOf(plan))
        html += "<div class=\"card\"><span class=\"name\">" + htmlText(figure.name) + "</span><b>"
            + htmlText(figure.value) + "</b><span>" + htmlText(figure.note) + "</span></div>\n";
    return html + "</div>\n";
}

std::string valueText(const MetricDifference &metric, double value)
{
    switch (metric.unit) {
    case MetricDifference::Unit::Seconds:
        return formatSeconds(value);
    case MetricDifference::Unit::Bytes:
        return formatBytes({static_cast<std::int64_t>(value)});
    case MetricDifference::Unit::Ratio:
        break;
    }
    return percent(value);
}

std::string changeHtml(const MetricDifference &metric)
{
    char text[48] = "";
    if (metric.unit == MetricDifference::Unit::Ratio)
        std::snprintf(text, sizeof text, "%+.1f points", metric.delta * 100);
    else if (metric.percent)
        std::snprintf(text, sizeof text, "%+.1f%%", *metric.percent);
    if (metric.delta == 0)
        return "the same";
    const bool isBetter = (metric.delta < 0) == metric.lowerIsBetter;
    return std::string("<span class=\"") + (isBetter ? "good" : "bad") + "\">" + text
        + (isBetter ? " better" : " worse") + "</span>";
}

std::string heldColour(std::size_t kind)
{
    return "var(--h" + std::to_string(kind) + ")";
}

std::string bar(const std::string &name, std::int64_t part, std::int64_t whole, const std::string &colour)
{
    char width[32];
    std::snprintf(width, sizeof width, "%.3f", shareOf(part, whole) * 100);
    return "<i style=\"width:" + std::string(width) + "%;--c:" + colour + "\" title=\"" + htmlText(name)
        + "\"></i>";
}

/// Ranks that hold the same, in the order of the first of each.
std::vector<std::pair<RankMemory, std::vector<std::int32_t>>> ranksAlike(const std::vector<RankMemory> &ranks)
{
    std::map<std::tuple<std::int64_t, std::int64_t, std::array<std::int64_t, kHeldAsCount>>, std::size_t>
        known;
    std::vector<std::pair<RankMemory, std::vector<std::int32_t>>> found;
    for (const RankMemory &rank : ranks) {
        const auto [at, isNew] = known.try_emplace({rank.peak, rank.limit, rank.held}, found.size());
        if (isNew)
            found.push_back({rank, {}});
        found[at->second].second.push_back(rank.rank.index);
    }
    return found;
}

std::string barsOf(const std::vector<RankMemory> &ranks)
{
    std::string html;
    std::set<std::size_t> kinds;
    std::int64_t most = 1;
    for (const RankMemory &rank : ranks)
        most = std::max({most, rank.limit, rank.peak});
    const auto add = [&](const std::string &name, const RankMemory &rank) {
        html += "<div class=\"rank\"><span>" + htmlText(name) + "</span><div class=\"bar\">";
        for (std::size_t k = 0; k < kHeldAsCount; ++k) {
            if (rank.held[k] <= 0)
                continue;
            kinds.insert(k);
            html += bar(std::string(nameOf(static_cast<HeldAs>(k))) + " " + formatBytes({rank.held[k]}),
                rank.held[k], most, heldColour(k));
        }
        html += "</div><span" + std::string(rank.fits() ? "" : " class=\"bad\"") + ">"
            + formatBytes({rank.peak}) + " of " + formatBytes({rank.limit}) + "</span></div>\n";
    };
    if (ranks.size() <= kMostBars) {
        for (const RankMemory &rank : ranks)
            add("rank " + std::to_string(rank.rank.index), rank);
    } else {
        auto alike = ranksAlike(ranks);
        std::stable_sort(alike.begin(), alike.end(),
            [](const auto &a, const auto &b) { return a.first.share() > b.first.share(); });
        for (std::size_t i = 0; i < alike.size() && i < kMostBars; ++i)
            add("ranks " + rangesOf(alike[i].second, 3), alike[i].first);
        if (alike.size() > kMostBars)
            html += "<p class=\"note\">and " + std::to_string(alike.size() - kMostBars)
                + " kinds of ranks that hold less</p>\n";
    }
    html += "<div class=\"legend\">";
    for (const std::size_t kind : kinds)
        html += "<span><i style=\"--c:" + heldColour(kind) + "\"></i>" + nameOf(static_cast<HeldAs>(kind))
            + "</span>";
    return html + "</div>\n";
}

std::string communicationTable(const std::vector<CommunicationLine> &lines)
{
    std::vector<Cells> rows;
    for (std::size_t i = 0; i < lines.size() && i < kMostListedLines; ++i) {
        const CommunicationLine &line = lines[i];
        const std::string groups = line.kind == InstructionKind::Send
            ? counted(line.groupCount, "pair")
            : counted(line.groupCount, "group") + " of " + std::to_string(line.shape.ranks);
        rows.push_back({nameOf(line.kind),
            htmlText(groups) + "<br><span class=\"note\">" + htmlText(groupWords(line, kMostGroups))
                + "</span>",
            htmlText(line.link), htmlText(algorithmWords(line)), formatBytes(line.bytes),
            std::to_string(line.count), formatNanoseconds(line.alone.count()),
            formatNanoseconds(line.time.count()), formatNanoseconds(line.exposed.count()),
            rate(busBandwidthOf(line)), formatNanoseconds(line.starts.front().count()),
            htmlText(passWords(line))});
    }
    std::string html = htmlTable(
        {{"what"}, {"groups"}, {"link"}, {"algorithm"}, {"size", true}, {"times", true}, {"once alone", true},
            {"all", true}, {"exposed", true}, {"bus bandwidth", true}, {"first at", true}, {"in"}},
        rows);
    if (lines.size() > kMostListedLines)
        html += "<p class=\"note\">and " + std::to_string(lines.size() - kMostListedLines)
            + " more, each exposed for less: planloom-cli communication lists all</p>\n";
    return html;
}

std::string tableOfRows(const ConstraintTable &table)
{
    std::string html =
        "<div class=\"scroll\"><table class=\"rows\"><thead><tr><th class=\"n\">row</th><th>says</th>"
        "<th>note</th></tr></thead><tbody>\n";
    for (std::size_t r = 0; r < table.rows.size(); ++r) {
        const Row &row = table.rows[r];
        html += std::string("<tr") + (row.enabled ? "" : " class=\"off\"") + "><td class=\"n\">"
            + std::to_string(r + 1) + "</td><td><code>" + htmlText(print(row))
            + "</code></td><td class=\"note\">" + htmlText(row.note)
            + (row.origin == RowOrigin::Solver ? "<em>chosen by the search</em>" : "") + "</td></tr>\n";
    }
    return html + "</tbody></table></div>\n";
}

std::string rowDifferences(const ConstraintTable &a, const ConstraintTable &b)
{
    std::vector<Cells> rows;
    const auto code = [](const ConstraintTable &table, RowId row) {
        return row ? "<code>" + htmlText(print(table.rows[at(row)])) + "</code>" : std::string("&ndash;");
    };
    for (const RowDifference &each : differenceOf(a, b))
        rows.push_back({each.kind == RowDifference::Kind::OnlyInA ? "only in A"
                : each.kind == RowDifference::Kind::OnlyInB       ? "only in B"
                                                                  : "changed",
            code(a, each.a), code(b, each.b)});
    return rows.empty() ? "<p>All rows are the same.</p>\n" : htmlTable({{""}, {"A"}, {"B"}}, rows);
}

Cells sourcedCells(const std::string &name, const std::string &value, const Sourced &figure)
{
    return {htmlText(name), htmlText(value), "<span class=\"note\">" + htmlText(figure.source) + "</span>"};
}

} // namespace

std::string titleOf(const Report &report, std::size_t plan)
{
    const std::string &name = report.plans[plan].name;
    return report.plans.size() > 1 ? std::string("plan ") + (plan == 0 ? "A" : "B") + ": " + name : name;
}

std::string figuresHtml(const Report &report, Medium medium)
{
    if (report.plans.size() == 1)
        return cardsOf(report.plans.front(), medium);
    std::vector<Cells> rows;
    for (const MetricDifference &metric : metricsOf(report.plans[0].timeline, report.plans[1].timeline))
        rows.push_back({htmlText(metric.name), valueText(metric, metric.a), valueText(metric, metric.b),
            changeHtml(metric)});
    std::string html = section("figures", "Figures", "B is held against A.",
        htmlTable({{""}, {"A", true}, {"B", true}, {"change", true}}, rows));
    for (std::size_t p = 0; p < report.plans.size(); ++p)
        html += "<h3>" + htmlText(titleOf(report, p)) + "</h3>\n" + cardsOf(report.plans[p], medium);
    return html;
}

std::string stepPartsHtml(const Report &report, Medium medium)
{
    static const std::array<const char *, kStepPartCount> kColours{
        "forward", "all-reduce", "lane", "again", "optimizer", "other"};
    std::string body;
    std::int64_t longest = 1;
    std::vector<StepParts> parts;
    for (const ReportedPlan &plan : report.plans) {
        parts.push_back(partsOf(plan.plan, plan.timeline));
        longest = std::max(longest, parts.back().step());
    }
    std::vector<Cells> rows(kStepPartCount);
    for (std::size_t p = 0; p < parts.size() && medium == Medium::Screen; ++p) {
        body += planHeading(report, p) + "<div class=\"parts\">";
        for (std::size_t k = 0; k < kStepPartCount; ++k)
            body += bar(std::string(nameOf(static_cast<StepPart>(k))) + " "
                    + formatNanoseconds(parts[p].nanoseconds[k]),
                parts[p].nanoseconds[k], longest, "var(--" + std::string(kColours[k]) + ")");
        body += "</div>\n";
    }
    std::vector<HtmlColumn> columns{{"part"}};
    for (std::size_t p = 0; p < parts.size(); ++p) {
        const std::string side = parts.size() > 1 ? (p == 0 ? "A" : "B") : "time";
        columns.push_back({side, true});
        columns.push_back({"of the step", true});
    }
    for (std::size_t k = 0; k < kStepPartCount; ++k) {
        rows[k].push_back("<i class=\"swatch\" style=\"--c:var(--" + std::string(kColours[k]) + ")\"></i>"
            + nameOf(static_cast<StepPart>(k)));
        for (const StepParts &each : parts) {
            rows[k].push_back(formatNanoseconds(each.nanoseconds[k]));
            rows[k].push_back(percent(shareOf(each.nanoseconds[k], each.step())));
        }
    }
    return section("parts", "Where the time goes", "The step of an average device, cut into parts.",
        body + "<div style=\"max-width:640px\">" + htmlTable(columns, rows) + "</div>\n");
}

std::string memoryHtml(const Report &report, Medium medium)
{
    std::string body;
    for (std::size_t p = 0; p < report.plans.size(); ++p) {
        const ReportedPlan &plan = report.plans[p];
        const std::vector<RankMemory> ranks = memoryOfRanks(plan.plan, plan.timeline, plan.cluster);
        body += planHeading(report, p) + (medium == Medium::Screen ? barsOf(ranks) : std::string{});
        std::vector<HtmlColumn> columns{{"ranks"}, {"peak", true}, {"of", true}};
        std::set<std::size_t> kinds;
        const auto alike = ranksAlike(ranks);
        for (const auto &[rank, members] : alike)
            for (std::size_t k = 0; k < kHeldAsCount; ++k)
                if (rank.held[k] > 0)
                    kinds.insert(k);
        for (const std::size_t kind : kinds)
            columns.push_back({nameOf(static_cast<HeldAs>(kind)), true});
        std::vector<Cells> rows;
        for (std::size_t i = 0; i < alike.size() && i < kMostBars; ++i) {
            const RankMemory &rank = alike[i].first;
            rows.push_back({rangesOf(alike[i].second, 4), formatBytes({rank.peak}), percent(rank.share())});
            for (const std::size_t kind : kinds)
                rows.back().push_back(rank.held[kind] > 0 ? formatBytes({rank.held[kind]}) : "&ndash;");
        }
        const std::string table = htmlTable(columns, rows);
        body += medium == Medium::Screen
            ? "<details open><summary>in figures</summary>" + table + "</details>\n"
            : table;
    }
    return section("memory", "Memory by rank",
        "What each rank holds at the first moment of its peak, and what its device has.", body);
}

std::string communicationHtml(const Report &report)
{
    std::string body;
    for (std::size_t p = 0; p < report.plans.size(); ++p) {
        const ReportedPlan &plan = report.plans[p];
        const auto lines = communicationLines(plan.plan, plan.timeline, plan.cluster);
        body += planHeading(report, p);
        body += lines && !lines->empty() ? communicationTable(*lines)
                                         : std::string("<p>Nothing is communicated.</p>\n");
    }
    return section("communication", "Communication",
        "Sizes as nccl-tests count them; the algorithm is what NCCL's tuning model chooses. Exposed is what "
        "is "
        "communicated while a member computes nothing. Groups that do the same at the same moments share a "
        "line.",
        body);
}

std::string rowsHtml(const Report &report)
{
    std::string body;
    for (std::size_t p = 0; p < report.plans.size(); ++p) {
        const auto &rows = report.plans[p].rows;
        body += planHeading(report, p);
        body += !rows            ? "<p>The plan does not say of which rows it is.</p>\n"
            : rows->rows.empty() ? "<p>The table has no rows.</p>\n"
                                 : tableOfRows(*rows);
    }
    return section("rows", "Rows of the constraint table", {}, body);
}

std::string differenceHtml(const Report &report)
{
    if (report.plans.size() != 2)
        return {};
    const ReportedPlan &a = report.plans[0];
    const ReportedPlan &b = report.plans[1];
    std::string body;
    if (a.rows && b.rows)
        body += "<h3>Rows</h3>\n" + rowDifferences(*a.rows, *b.rows);
    const auto difference = differenceOf(a.plan, b.plan);
    if (!difference)
        return {};
    body += "<h3>Operators</h3>\n<p>"
        + counted(static_cast<std::int64_t>(difference->operators.size()), "operator") + " "
        + (difference->operators.size() == 1 ? "differs" : "differ") + ", " + std::to_string(difference->same)
        + " are the same.</p>\n";
    std::vector<Cells> rows;
    for (std::size_t i = 0; i < difference->operators.size() && i < kMostListedOperators; ++i)
        rows.push_back(
            {htmlText(difference->operators[i].name), htmlText(wordsOf(difference->operators[i]))});
    if (!rows.empty())
        body += htmlTable({{"operator"}, {"how"}}, rows);
    if (difference->operators.size() > kMostListedOperators)
        body += "<p class=\"note\">and " + std::to_string(difference->operators.size() - kMostListedOperators)
            + " more</p>\n";
    return section("differences", "Differences", {}, body);
}

std::string assumptionsHtml(const Report &report)
{
    std::string body;
    for (std::size_t p = 0; p < report.plans.size(); ++p) {
        const Cluster &cluster = report.plans[p].cluster;
        if (p > 0 && cluster == report.plans[0].cluster)
            continue;
        const DeviceModel &device = cluster.device;
        const Interconnect &links = cluster.links;
        std::vector<Cells> rows{
            sourcedCells(
                "memory", formatBytes({static_cast<std::int64_t>(device.memory.value)}), device.memory),
            sourcedCells("memory bandwidth", rate(device.memoryBandwidth.value), device.memoryBandwidth),
            sourcedCells(
                "float16 peak", formatQuantity(device.float16Flops.value) + "FLOP/s", device.float16Flops),
            sourcedCells(
                "share of it by products", percent(device.productEfficiency.value), device.productEfficiency),
            sourcedCells(
                "inside a node", rate(links.intraBandwidth.value) + " a device", links.intraBandwidth),
            sourcedCells(
                "between nodes", rate(links.interBandwidth.value) + " a node", links.interBandwidth)};
        for (const LinkLevel &level : links.outer)
            rows.push_back(
                sourcedCells("between " + level.name + "s", rate(level.bandwidth.value), level.bandwidth));
        for (const FrameworkAssumption &each : assumptionsOfFramework(cluster.framework))
            rows.push_back({htmlText(cluster.framework), htmlText(each.words),
                "<span class=\"note\">" + htmlText(each.source) + "</span>"});
        body += planHeading(report, p) + "<p>" + htmlText(cluster.name + ": " + deviceNames(cluster))
            + "</p>\n" + htmlTable({{"figure"}, {"value"}, {"from"}}, rows);
    }
    return section("assumptions", "What was assumed of the machine", {}, body);
}

std::string tablesHtml(const Report &report)
{
    std::string html;
    for (std::size_t t = 0; t < report.tables.size(); ++t) {
        const ReportTable &table = report.tables[t];
        std::vector<HtmlColumn> columns;
        for (const std::string &heading : table.headings)
            columns.push_back({heading});
        std::vector<Cells> rows;
        for (const auto &row : table.rows) {
            rows.emplace_back();
            for (const std::string &cell : row)
                rows.back().push_back(htmlText(cell));
        }
        html += section("table-" + std::to_string(t + 1), table.title, table.about, htmlTable(columns, rows));
    }
    return html;
}

} // namespace planloom
