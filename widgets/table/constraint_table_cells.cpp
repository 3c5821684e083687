// What the cells of the constraint table say.

#include "engine/base/place.h"
#include "engine/base/text.h"
#include "widgets/common/format.h"
#include "widgets/common/qt_text.h"
#include "widgets/design/row_sentences.h"
#include "widgets/table/constraint_table_model.h"

#include <algorithm>
#include <cmath>

namespace planloom {

namespace {

constexpr double kNoSeconds = 5e-10; ///< Half of what is simulated: no difference.

/// What a row does to the step, which takes `seconds` longer with it: "binding · saves 509 ms", "binding ·
/// costs 489 µs", or that it does nothing.
QString priceWords(double seconds)
{
    if (std::abs(seconds) < kNoSeconds)
        return ConstraintTableModel::tr("slack");
    const QString time = toQString(formatSeconds(std::abs(seconds)));
    return seconds > 0 ? ConstraintTableModel::tr("binding · costs %1").arg(time)
                       : ConstraintTableModel::tr("binding · saves %1").arg(time);
}

/// The note of a remark's line: "# text" -> "text".
QString remarkText(const std::string &line)
{
    QString text = toQString(line).trimmed();
    if (text.startsWith(QLatin1Char('#')))
        text.remove(0, 1);
    return text.startsWith(QLatin1Char(' ')) ? text.mid(1) : text;
}

} // namespace

QString ConstraintTableModel::noteAt(int row) const
{
    return noteOf(at(row));
}

std::string ConstraintTableModel::noteKeyAt(int row) const
{
    const Entry &entry = at(row);
    prepare(entry);
    std::string key;
    for (const TableLineSnapshot &remark : entry.remarks) {
        const std::size_t begin = remark->text.find_first_not_of(" \t\r#");
        if (begin != std::string::npos)
            key += remark->text.substr(begin) + '\n';
    }
    key += entry.cells().note;
    return lowerCase(key);
}

QString ConstraintTableModel::noteOf(const Entry &entry) const
{
    prepare(entry);
    QStringList parts;
    for (const TableLineSnapshot &remark : entry.remarks) {
        if (!remark->text.empty() && toQString(remark->text).trimmed().size() > 0)
            parts << remarkText(remark->text);
    }
    if (!entry.cells().note.empty())
        parts << toQString(entry.cells().note);
    return parts.join(QLatin1Char('\n'));
}

QString ConstraintTableModel::engineSentence(const Error &error) const
{
    return withRowNumbers(sentences({error.message, error.advice}));
}

QString ConstraintTableModel::withRowNumbers(const QString &text) const
{
    return m_update ? QString::fromStdString(withLineNumbers(text.toStdString(), *m_update)) : text;
}

QString ConstraintTableModel::problemText(const Entry &entry, TableColumn column) const
{
    prepare(entry);
    if (const auto &problem = entry.prepared->problem)
        return problem->column == column ? toQString(problem->message) : QString();
    const auto conflict = m_conflicts.find(entry.line);
    if (const Error *error = entry.error()) {
        const Place place = placeOf(*error);
        const auto *row = std::get_if<RowPlace>(&place);
        const bool selector = row && row->field.starts_with("selector");
        if (column != (selector ? TableColumn::Selector : TableColumn::Value))
            return {};
        return conflict != m_conflicts.end() ? conflict->second : engineSentence(*error);
    }
    // A row that others can't hold with, though the engine blames those alone.
    if (conflict != m_conflicts.end() && column == TableColumn::Value)
        return conflict->second;
    return {};
}

QString ConstraintTableModel::warningText(const Entry &entry, TableColumn column) const
{
    const Complaint *complaint = entry.complaint.get();
    if (!complaint || complaint->warning.empty()
        || column != (complaint->leftOut ? TableColumn::Strength : TableColumn::Binds))
        return {};
    return withRowNumbers(toQString(complaint->warning));
}

QString ConstraintTableModel::problemAt(int row) const
{
    for (int column = 0; column < kTableColumns; ++column) {
        const QString text = problemText(at(row), static_cast<TableColumn>(column));
        if (!text.isEmpty())
            return text;
    }
    return {};
}

QString ConstraintTableModel::warningAt(int row) const
{
    const QString left = warningText(at(row), TableColumn::Strength);
    return left.isEmpty() ? warningText(at(row), TableColumn::Binds) : left;
}

QString ConstraintTableModel::displayText(const Entry &entry, TableColumn column) const
{
    prepare(entry);
    const RowCells &cells = entry.cells();
    switch (column) {
    case TableColumn::On:
        return {};
    case TableColumn::Number:
        return QString::number(entry.line + 1);
    case TableColumn::Selector:
        return toQString(cells.selector);
    case TableColumn::Rule:
        return toQString(cells.rule);
    case TableColumn::Value:
        return toQString(cells.value);
    case TableColumn::Strength: {
        const auto weight = weightOf(cells.strength);
        if (!weight)
            return toQString(cells.strength);
        return *weight == 0 ? tr("must") : *weight == 1 ? tr("prefer") : tr("prefer %1").arg(*weight);
    }
    case TableColumn::Binds: {
        if (!entry.text->row || entry.reach.operators < 0)
            return {};
        if (!hasSelector(entry.text->row->rule))
            return tr("whole plan");
        const QString operators = entry.reach.operators == 1
            ? tr("1 op")
            : tr("%1 ops").arg(toQString(formatCount(entry.reach.operators)));
        if (entry.reach.devices < 0)
            return operators;
        return operators + QStringLiteral(" · ")
            + (entry.reach.devices == 1 ? tr("1 device")
                                        : tr("%1 devices").arg(toQString(formatCount(entry.reach.devices))));
    }
    case TableColumn::Price:
        return solverText(entry);
    case TableColumn::Origin:
        return cells.origin.empty() ? tr("text") : toQString(cells.origin);
    case TableColumn::Note:
        return noteOf(entry).replace(QLatin1Char('\n'), QStringLiteral(" · "));
    }
    return {};
}

/// A limit beside which there is a plan, which breaks it.
bool ConstraintTableModel::isExceeded(const Entry &entry)
{
    return entry.error() && entry.error()->code == ErrorCode::ResourceLimit;
}

/// "in conflict", "exceeded", "chosen", "slack · peak 31 GiB of 80 GiB", "binding · saves 509 ms · 1 edit
/// ago".
QString ConstraintTableModel::solverText(const Entry &entry) const
{
    if (!entry.text->row || !entry.text->row->enabled)
        return {};
    if (isExceeded(entry))
        return tr("exceeded");
    if (entry.error() || m_conflicts.contains(entry.line))
        return tr("in conflict");
    if (entry.text->row->origin == RowOrigin::Solver)
        return tr("chosen");
    QString text;
    if (entry.price.state == RowPrice::State::Known)
        text = priceWords(entry.price.seconds);
    else if (entry.price.state == RowPrice::State::Needed)
        text = tr("binding · needed");
    else if (entry.price.state == RowPrice::State::Asked)
        text = tr("…");
    if (entry.complaint && !entry.complaint->measured.empty())
        text = (entry.price.isFound() ? text : tr("slack")) + QStringLiteral(" · ")
            + toQString(entry.complaint->measured);
    if (!entry.price.isFound() || entry.price.state == RowPrice::State::Failed)
        return text;
    if (entry.price.editsAgo == 1)
        text += tr(" · 1 edit ago");
    else if (entry.price.editsAgo > 1)
        text += tr(" · %1 edits ago").arg(entry.price.editsAgo);
    return text;
}

QString ConstraintTableModel::solverTip(const Entry &entry) const
{
    if (isExceeded(entry))
        return tr("The plan needs more than that: the marked cell says how much, and Problems what helps");
    if (entry.error() || m_conflicts.contains(entry.line))
        return tr("It cannot hold with other rows: the marked cell says why, and Problems what helps");
    if (entry.text->row && entry.text->row->origin == RowOrigin::Solver)
        return tr("The solver chose it for the rows that are yours, and chooses again when they change; Keep "
                  "makes it yours");
    if (entry.price.state == RowPrice::State::Needed || entry.price.state == RowPrice::State::Failed)
        return tr("Without it there is no plan: %1").arg(toQString(entry.price.remark));
    if (entry.price.state != RowPrice::State::Known)
        return tr("Not known yet: found while you pause");
    if (std::abs(entry.price.seconds) < kNoSeconds)
        return tr("The step takes as long with this row off");
    return entry.price.seconds > 0
        ? tr("The step of the best plan would be so much faster with this row off")
        : tr("The step of the best plan would be so much slower with this row off");
}

QString ConstraintTableModel::accessibleText(int row, int column) const
{
    const auto which = static_cast<TableColumn>(column);
    const Entry &entry = at(row);
    QString text = tr("row %1, %2: ").arg(entry.line + 1).arg(titleOf(which).toLower());
    if (which == TableColumn::Number)
        text = tr("row %1").arg(entry.line + 1);
    else if (which == TableColumn::On)
        text += cellsAt(row).enabled ? tr("on") : tr("off");
    else if (const QString shown = displayText(entry, which); shown.isEmpty())
        text += tr("empty");
    else
        text += shown;
    if (const QString problem = problemText(entry, which); !problem.isEmpty())
        text += tr(", error: %1").arg(problem);
    if (const QString warning = warningText(entry, which); !warning.isEmpty())
        text += tr(", warning: %1").arg(warning);
    return text;
}

QVariant ConstraintTableModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid() || index.row() >= rowCount())
        return {};
    const Entry &entry = at(index.row());
    const auto column = static_cast<TableColumn>(index.column());
    switch (role) {
    case Qt::DisplayRole:
        return displayText(entry, column);
    case Qt::EditRole:
        prepare(entry);
        if (column == TableColumn::Origin)
            return toQString(entry.cells().origin);
        if (column == TableColumn::Strength)
            return toQString(entry.cells().strength);
        return column == TableColumn::Note ? noteAt(index.row()) : displayText(entry, column);
    case Qt::CheckStateRole:
        if (column != TableColumn::On)
            return {};
        return static_cast<int>(cellsAt(index.row()).enabled ? Qt::Checked : Qt::Unchecked);
    case Qt::ToolTipRole: {
        QString text = problemText(entry, column);
        if (text.isEmpty())
            text = warningText(entry, column);
        if (!text.isEmpty())
            return text;
        if (column == TableColumn::Rule)
            return meaningOfRule(toQString(cellsAt(index.row()).rule));
        if (column == TableColumn::Price)
            return solverTip(entry);
        return displayText(entry, column);
    }
    case Qt::TextAlignmentRole:
        if (column == TableColumn::Number)
            return QVariant::fromValue(Qt::Alignment(Qt::AlignRight | Qt::AlignVCenter));
        return QVariant::fromValue(Qt::Alignment(Qt::AlignLeft | Qt::AlignVCenter));
    case Qt::AccessibleTextRole:
        return accessibleText(index.row(), index.column());
    case LineRole:
        return entry.line;
    case KeyRole:
        return static_cast<qulonglong>(entry.key);
    case ProblemRole:
        return problemText(entry, column);
    case WarningRole:
        return warningText(entry, column);
    case EnabledRole:
        return cellsAt(index.row()).enabled;
    case ChosenRole:
        return isChosen(index.row());
    case RuleRole:
        return toQString(cellsAt(index.row()).rule);
    case OldRole:
        return column == TableColumn::Price ? entry.price.editsAgo > 0
                                            : column == TableColumn::Binds && m_old;
    case SortRole:
        switch (column) {
        case TableColumn::On:
        case TableColumn::Number:
        case TableColumn::Strength:
        case TableColumn::Binds:
        case TableColumn::Price:
            return sortNumberAt(index.row(), column);
        default:
            return displayText(entry, column).toLower();
        }
    default:
        return {};
    }
}

double ConstraintTableModel::sortNumberAt(int row, TableColumn column) const
{
    const Entry &entry = at(row);
    switch (column) {
    case TableColumn::On:
        return cellsAt(row).enabled ? 0 : 1;
    case TableColumn::Strength: {
        const auto weight = weightOf(cellsAt(row).strength);
        return !weight ? -1 : *weight == 0 ? 2.0 * kMostWeight : static_cast<double>(*weight);
    }
    case TableColumn::Binds:
        return !entry.text->row ? -2 : hasSelector(entry.text->row->rule) ? entry.reach.operators : 1 << 30;
    case TableColumn::Price:
        return entry.price.state == RowPrice::State::Known ? entry.price.seconds : -1e9;
    default:
        return entry.line;
    }
}

Qt::ItemFlags ConstraintTableModel::flags(const QModelIndex &index) const
{
    if (!index.isValid())
        return {};
    Qt::ItemFlags flags = Qt::ItemIsSelectable | Qt::ItemIsEnabled | Qt::ItemNeverHasChildren;
    switch (static_cast<TableColumn>(index.column())) {
    case TableColumn::On:
        return flags | Qt::ItemIsUserCheckable;
    case TableColumn::Selector: {
        const RuleWord *rule = findRuleWord(cellsAt(index.row()).rule);
        const bool plain = rule && rule->shape == RuleShape::Plain && cellsAt(index.row()).selector.empty();
        return plain ? flags : flags | Qt::ItemIsEditable;
    }
    case TableColumn::Rule:
    case TableColumn::Value:
    case TableColumn::Strength:
    case TableColumn::Origin:
    case TableColumn::Note:
        return flags | Qt::ItemIsEditable;
    default:
        return flags;
    }
}

QVariant ConstraintTableModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || section < 0 || section >= kTableColumns)
        return {};
    if (role == Qt::DisplayRole)
        return titleOf(static_cast<TableColumn>(section));
    if (role == Qt::ToolTipRole)
        return meaningOf(static_cast<TableColumn>(section));
    return {};
}

} // namespace planloom
