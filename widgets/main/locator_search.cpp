#include "widgets/main/locator_search.h"

#include <QtCore/QCoreApplication>

#include "engine/hardware/device_word.h"
#include "engine/table/selector.h"
#include "engine/table/selector_index.h"
#include "widgets/common/format.h"
#include "widgets/main/fuzzy_match.h"
#include "widgets/table/row_cells.h"

#include <algorithm>

namespace planloom {

namespace {

/// Translates what belongs to no object.
struct LocatorTexts {
    Q_DECLARE_TR_FUNCTIONS(Locator)
};

constexpr std::size_t kOperatorsBetweenLooks = 1024; ///< At the stop token.

/// True for a text that begins as rows do, so that it may be one.
bool readsLikeRow(const QString &text)
{
    const QString first = text.section(QLatin1Char(' '), 0, 0).toLower();
    return text.contains(QLatin1Char(' '))
        && (findRuleWord(first.toStdString()) != nullptr || first == QLatin1String("off")
            || first == QLatin1String("prefer"));
}

void addCommands(const LocatorSources &sources, const QString &query, std::vector<LocatorEntry> &entries)
{
    for (const LocatorCommand &command : sources.commands) {
        const QString whole = (command.text + QLatin1Char(' ') + command.category).toLower();
        int score = fuzzyScore(query, whole);
        if (score == 0 && !command.menu.isEmpty()) // as people remember it: "export picture"
            score = fuzzyScore(query, (command.menu + QLatin1Char(' ') + command.text).toLower());
        if (score == 0)
            continue;
        if (command.recent >= 0)
            score += (query.isEmpty() ? 4000 : 60) - command.recent;
        if (!command.enabled)
            score -= 300;
        LocatorEntry entry;
        entry.kind = LocatorKind::Command;
        entry.title = command.text;
        entry.detail = command.enabled ? command.category
                                       : LocatorTexts::tr("%1 · not possible now").arg(command.category);
        entry.keys = command.keys;
        entry.enabled = command.enabled;
        entry.score = std::max(score, 1);
        entry.command = command.id;
        entries.push_back(std::move(entry));
    }
}

void addRowToWrite(const LocatorSources &sources, const QString &text, std::vector<LocatorEntry> &entries)
{
    if (!sources.context || !readsLikeRow(text))
        return;
    auto proposal =
        std::make_shared<const Proposal>(proposeText(*sources.context, text.toStdString(), sources.selected));
    LocatorEntry entry;
    entry.kind = LocatorKind::Write;
    entry.score = 100'000;
    entry.enabled = proposal->accepted();
    if (proposal->refusal) {
        entry.title = LocatorTexts::tr("Not a row that can be written: %1").arg(text);
        entry.detail = QString::fromStdString(proposal->refusal->message);
    } else if (proposal->edit.empty()) {
        entry.title = LocatorTexts::tr("Nothing to write: %1").arg(text);
        entry.detail = LocatorTexts::tr("the rows say so already");
    } else {
        QStringList rows;
        for (const std::string &row : proposal->rows)
            rows.append(QString::fromStdString(row));
        entry.title = LocatorTexts::tr("Write row: %1").arg(rows.join(QStringLiteral("; ")));
        QString detail = QString::fromStdString(proposal->words);
        for (const std::string &yielding : proposal->yieldingWords)
            detail += QStringLiteral(" · ") + QString::fromStdString(yielding);
        entry.detail = detail;
    }
    entry.proposal = std::move(proposal);
    entries.push_back(std::move(entry));
}

void addOperators(const LocatorSources &sources, const LocatorNames &names, const QString &query,
    std::stop_token stop, std::vector<LocatorEntry> &entries)
{
    if (query.isEmpty())
        return;
    const Graph &graph = *sources.model->graph;
    std::vector<std::pair<int, std::int32_t>> found;
    for (std::size_t i = 0; i < names.names.size(); ++i) {
        if (i % kOperatorsBetweenLooks == 0 && stop.stop_requested())
            return;
        // Forward operators first: the others carry their names.
        const Operator &op = graph.operators[i];
        if (const int score = fuzzyScore(query, names.names[i]))
            found.emplace_back(
                score + (op.direction == Direction::Forward ? 40 : 0), static_cast<std::int32_t>(i));
    }
    const std::size_t most = std::min(found.size(), kMostLocatorEntries);
    std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(most), found.end(),
        [](const auto &a, const auto &b) {
            return a.first != b.first ? a.first > b.first : a.second < b.second;
        });
    for (std::size_t i = 0; i < most; ++i) {
        const Operator &op = graph.operators[static_cast<std::size_t>(found[i].second)];
        LocatorEntry entry;
        entry.kind = LocatorKind::Operator;
        entry.title = QString::fromStdString(op.name);
        entry.detail = QString::fromStdString(typeNameOf(op));
        entry.score = found[i].first;
        entry.op = OperatorId{found[i].second};
        entries.push_back(std::move(entry));
    }
}

void addSelection(const LocatorSources &sources, const QString &query, std::vector<LocatorEntry> &entries)
{
    if (!sources.model || query.isEmpty())
        return;
    LocatorEntry entry;
    entry.kind = LocatorKind::Select;
    entry.score = 100'000;
    const auto selector = parseSelector(query.toStdString());
    const auto fits = selector ? sources.model->index->check(*selector) : Result<void>(selector.error());
    if (!fits) {
        entry.enabled = false;
        entry.title = LocatorTexts::tr("No selection: %1").arg(query);
        entry.detail = QString::fromStdString(fits.error().message);
    } else {
        entry.operators = sources.model->index->select(*selector);
        entry.enabled = !entry.operators.empty();
        entry.title = LocatorTexts::tr("Select %1").arg(query);
        entry.detail = entry.operators.size() == 1
            ? LocatorTexts::tr("1 operator")
            : LocatorTexts::tr("%1 operators").arg(entry.operators.size());
    }
    entries.push_back(std::move(entry));
}

void addRows(const LocatorSources &sources, const QString &query, std::vector<LocatorEntry> &entries)
{
    if (!sources.context)
        return;
    const TableDocument &document = sources.context->document;
    int number = 0;
    for (std::int32_t line = 0; line < document.lineCount(); ++line) {
        const TableLine &row = *document.lines()[static_cast<std::size_t>(line)];
        if (row.isRemark())
            continue;
        ++number;
        const QString text = QString::fromStdString(row.text).trimmed();
        const int score = query == QString::number(number)
            ? 2000
            : fuzzyScore(query, QStringLiteral("%1 %2").arg(number).arg(text.toLower()));
        if (score == 0)
            continue;
        LocatorEntry entry;
        entry.kind = LocatorKind::Row;
        entry.title = text;
        entry.detail = LocatorTexts::tr("row %1").arg(number);
        entry.score = score - (query.isEmpty() ? number : 0);
        entry.line = line;
        entries.push_back(std::move(entry));
    }
}

void addDevices(const LocatorSources &sources, const QString &query, std::vector<LocatorEntry> &entries)
{
    const QString kind =
        sources.plan ? QString::fromStdString(deviceWord(sources.plan->cluster)) : LocatorTexts::tr("device");
    for (std::int32_t device = 0; device < sources.deviceCount; ++device) {
        const QString name = QStringLiteral("%1 %2").arg(kind).arg(device);
        const int score = query == QString::number(device) ? 2000 : fuzzyScore(query, name.toLower());
        if (score == 0)
            continue;
        LocatorEntry entry;
        entry.kind = LocatorKind::Device;
        entry.title = name;
        if (sources.plan && static_cast<std::size_t>(device) < sources.plan->summary.devices.size()) {
            const DeviceSummary &figures = sources.plan->summary.devices[static_cast<std::size_t>(device)];
            entry.detail = LocatorTexts::tr("peak %1, busy %2")
                               .arg(QString::fromStdString(formatBytes(figures.peak)),
                                   QString::fromStdString(formatSeconds(figures.busySeconds)));
        }
        entry.score = score - (query.isEmpty() ? device : 0);
        entry.device = DeviceId{device};
        entries.push_back(std::move(entry));
    }
}

void addTime(const LocatorSources &sources, const QString &query, std::vector<LocatorEntry> &entries)
{
    const auto time = timeFromText(query);
    if (!time || !sources.plan)
        return;
    const double step = sources.plan->summary.stepSeconds;
    LocatorEntry entry;
    entry.kind = LocatorKind::Time;
    entry.nanoseconds = *time;
    entry.title = LocatorTexts::tr("Time %1").arg(QString::fromStdString(formatSeconds(*time * 1e-9)));
    entry.detail = LocatorTexts::tr("of a step of %1").arg(QString::fromStdString(formatSeconds(step)));
    entry.enabled = *time * 1e-9 <= step;
    entry.score = 3000;
    entries.push_back(std::move(entry));
}

} // namespace

std::optional<double> timeFromText(const QString &text)
{
    const QString trimmed = text.trimmed();
    qsizetype digits = 0;
    while (digits < trimmed.size() && (trimmed[digits].isDigit() || trimmed[digits] == QLatin1Char('.')))
        ++digits;
    bool ok = false;
    const double number = trimmed.left(digits).toDouble(&ok);
    if (!ok)
        return std::nullopt;
    const QString unit = trimmed.mid(digits).trimmed();
    for (const auto &[name, nanoseconds] :
        {std::pair{"", 1e6}, {"ns", 1.0}, {"us", 1e3}, {"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}}) {
        if (unit == QString::fromUtf8(name))
            return number * nanoseconds;
    }
    return std::nullopt;
}

LocatorNamesSnapshot locatorNames(const ModelSnapshot &model)
{
    auto names = std::make_shared<LocatorNames>();
    names->model = model;
    names->names.reserve(model->graph->operators.size());
    for (const Operator &op : model->graph->operators)
        names->names.push_back(QString::fromStdString(op.name).toLower());
    return names;
}

LocatorResults searchLocator(const LocatorSources &sources, const QString &text, std::stop_token stop)
{
    LocatorResults results;
    results.text = text;
    results.names = sources.names;
    const QString trimmed = text.trimmed();
    const QChar prefix = trimmed.isEmpty() ? QChar() : trimmed[0];
    const bool device = trimmed.size() >= 2 && prefix.toLower() == QLatin1Char('d')
        && (trimmed[1].isSpace() || trimmed[1].isDigit());
    const bool prefixed = QStringLiteral("@#:>=").contains(prefix) && !prefix.isNull();
    const QString query = (prefixed || device ? trimmed.mid(1).trimmed() : trimmed).toLower();
    const bool all = !prefixed && !device && !sources.commandsOnly;
    auto &entries = results.entries;
    if (prefix == QLatin1Char('>') || all || (sources.commandsOnly && !prefixed && !device))
        addCommands(sources, query, entries);
    if (!prefixed && !stop.stop_requested())
        addRowToWrite(sources, trimmed, entries);
    if (prefix == QLatin1Char('=') && !stop.stop_requested())
        addSelection(sources, trimmed.mid(1).trimmed(), entries);
    if (prefix == QLatin1Char('#') || (all && !query.isEmpty()))
        addRows(sources, query, entries);
    if (device || (all && !query.isEmpty()))
        addDevices(sources, query, entries);
    if (prefix == QLatin1Char(':') || all)
        addTime(sources, query, entries);
    if (sources.model && (prefix == QLatin1Char('@') || all)) {
        if (!results.names || results.names->model != sources.model)
            results.names = locatorNames(sources.model);
        addOperators(sources, *results.names, query, stop, entries);
    }
    std::stable_sort(entries.begin(), entries.end(),
        [](const LocatorEntry &a, const LocatorEntry &b) { return a.score > b.score; });
    if (entries.size() > kMostLocatorEntries)
        entries.resize(kMostLocatorEntries);
    if (entries.empty() && !query.isEmpty() && prefix != QLatin1Char(':') && !stop.stop_requested()) {
        LocatorEntry none;
        none.enabled = false;
        none.title = LocatorTexts::tr("Nothing is called \"%1\"").arg(query);
        entries.push_back(std::move(none));
    }
    return results;
}

} // namespace planloom
