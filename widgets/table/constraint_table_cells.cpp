// What the cells of the constraint table say, and the edits that writing into them makes.

#include <QtCore/QCoreApplication>
#include <QtCore/QRegularExpression>

#include "widgets/common/format.h"
#include "widgets/table/constraint_table_model.h"

#include <algorithm>

namespace planloom {

namespace {

/// Translates what belongs to no object.
struct Words {
    Q_DECLARE_TR_FUNCTIONS(planloom::ConstraintTable)
};

QString qt(std::string_view text)
{
    return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
}

/// The note of a remark's line: "# text" -> "text".
QString remarkText(const std::string &line)
{
    QString text = qt(line).trimmed();
    if (text.startsWith(QLatin1Char('#')))
        text.remove(0, 1);
    return text.startsWith(QLatin1Char(' ')) ? text.mid(1) : text;
}

std::string withCell(RowCells cells, TableColumn column, const std::string &text)
{
    switch (column) {
    case TableColumn::On:
        cells.enabled = text != "off";
        break;
    case TableColumn::Selector:
        cells.selector = text;
        break;
    case TableColumn::Rule: {
        const RuleWord *word = findRuleWord(text);
        cells.rule = text;
        if (word && word->shape != RuleShape::Plain && cells.selector.empty())
            cells.selector = "all";
        if (word && word->shape == RuleShape::Plain)
            cells.selector.clear();
        // A value that means nothing under the new rule gives way to one that does.
        if (word && checkValue(text, cells.value))
            cells.value = word->needsValue ? std::string(word->value) : std::string{};
        break;
    }
    case TableColumn::Value:
        cells.value = text;
        break;
    case TableColumn::Strength:
        cells.strength = weightOf(text) == 0 ? std::string{} : text;
        break;
    case TableColumn::Origin:
        cells.origin = text;
        break;
    case TableColumn::Note:
        cells.note = text;
        break;
    case TableColumn::Number:
    case TableColumn::Binds:
    case TableColumn::Price:
        break;
    }
    return lineOf(cells);
}

} // namespace

QString titleOf(TableColumn column)
{
    switch (column) {
    case TableColumn::On:
        return Words::tr("On");
    case TableColumn::Number:
        return QStringLiteral("#");
    case TableColumn::Selector:
        return Words::tr("Selector");
    case TableColumn::Rule:
        return Words::tr("Rule");
    case TableColumn::Value:
        return Words::tr("Value");
    case TableColumn::Strength:
        return Words::tr("Must/Prefer");
    case TableColumn::Binds:
        return Words::tr("Binds");
    case TableColumn::Price:
        return Words::tr("Price");
    case TableColumn::Origin:
        return Words::tr("Origin");
    case TableColumn::Note:
        return Words::tr("Note");
    }
    return {};
}

QString meaningOf(TableColumn column)
{
    switch (column) {
    case TableColumn::On:
        return Words::tr("Whether the row takes part (Space). Order has no meaning: rows hold together wherever they stand.");
    case TableColumn::Number:
        return Words::tr("The row's line in the text. Order has no meaning.");
    case TableColumn::Selector:
        return Words::tr("Which operators the row speaks of: layer:0-5, name:*.attn.*, kind:Linear, all ...");
    case TableColumn::Rule:
        return Words::tr("What is decided: split, place, order ...");
    case TableColumn::Value:
        return Words::tr("How: \"batch by 2 over dp\", \"devices 0,1\" ...");
    case TableColumn::Strength:
        return Words::tr("Rows must hold, or are preferred with a weight: those hold as far as they can, heavier ones first.");
    case TableColumn::Binds:
        return Words::tr("How many operators the rule acts on, on how many devices. None is a warning.");
    case TableColumn::Price:
        return Words::tr("Step time gained if the row were off; found while you pause.");
    case TableColumn::Origin:
        return Words::tr("Who wrote the row: a person's text, a gesture, a gallery plan, an import.");
    case TableColumn::Note:
        return Words::tr("For people.");
    }
    return {};
}

QString meaningOfRule(const QString &word)
{
    struct Meaning {
        const char *word;
        const char *text;
    };
    static constexpr Meaning kMeanings[] = {
        {"split", QT_TRANSLATE_NOOP("planloom::ConstraintTable", "cut operators along a dimension (op-trans)")},
        {"replicate", QT_TRANSLATE_NOOP("planloom::ConstraintTable", "run the same operators several times")},
        {"place", QT_TRANSLATE_NOOP("planloom::ConstraintTable", "choose their devices (op-assign)")},
        {"order", QT_TRANSLATE_NOOP("planloom::ConstraintTable", "run some before others (op-order)")},
        {"stage", QT_TRANSLATE_NOOP("planloom::ConstraintTable", "make them a pipeline stage")},
        {"recompute", QT_TRANSLATE_NOOP("planloom::ConstraintTable", "drop outputs, compute them again: less memory")},
        {"coshard", QT_TRANSLATE_NOOP("planloom::ConstraintTable", "cut further, on the same device, one after another")},
        {"zero1", QT_TRANSLATE_NOOP("planloom::ConstraintTable", "cut the optimizer's state over replicas")},
        {"mesh", QT_TRANSLATE_NOOP("planloom::ConstraintTable", "arrange the devices as a grid with named axes")},
        {"micro-batches", QT_TRANSLATE_NOOP("planloom::ConstraintTable", "run the mini-batch in so many parts")},
        {"schedule", QT_TRANSLATE_NOOP("planloom::ConstraintTable", "the order of a pipeline's blocks")},
        {"in-flight", QT_TRANSLATE_NOOP("planloom::ConstraintTable", "how far a stage warms up")},
        {"limit", QT_TRANSLATE_NOOP("planloom::ConstraintTable", "the most memory or time there is")},
    };
    for (const Meaning &meaning : kMeanings) {
        if (word == QLatin1String(meaning.word))
            return Words::tr(meaning.text);
    }
    return {};
}

QString ConstraintTableModel::noteAt(int row) const
{
    const Entry &entry = at(row);
    prepare(entry);
    QStringList parts;
    for (const TableLineSnapshot &remark : entry.remarks) {
        if (!remark->text.empty() && qt(remark->text).trimmed().size() > 0)
            parts << remarkText(remark->text);
    }
    if (!entry.cells->note.empty())
        parts << qt(entry.cells->note);
    return parts.join(QLatin1Char('\n'));
}

QString ConstraintTableModel::engineSentence(const Error &error) const
{
    QString text = qt(error.message);
    if (!error.advice.empty())
        text += QStringLiteral(". ") + qt(error.advice);
    return withRowNumbers(text);
}

QString ConstraintTableModel::withRowNumbers(const QString &text) const
{
    // The engine numbers rows, people read line numbers.
    static const QRegularExpression kRow(QStringLiteral("row:(\\d+)"));
    auto matches = kRow.globalMatch(text);
    QString result;
    qsizetype end = 0;
    while (matches.hasNext()) {
        const auto match = matches.next();
        result += text.mid(end, match.capturedStart() - end);
        const auto number = static_cast<std::size_t>(match.captured(1).toULongLong());
        result += m_update && number < m_update->rows.size() ? tr("row %1").arg(m_update->rows[number].line + 1)
                                                             : match.captured();
        end = match.capturedEnd();
    }
    return result + text.mid(end);
}

QString ConstraintTableModel::problemText(const Entry &entry, TableColumn column) const
{
    prepare(entry);
    if (entry.problem)
        return entry.problem->column == column ? qt(entry.problem->message) : QString();
    const auto conflict = m_conflicts.find(entry.line);
    if (entry.error) {
        const bool selector = entry.error->where.find("/selector") != std::string::npos;
        if (column != (selector ? TableColumn::Selector : TableColumn::Value))
            return {};
        return conflict != m_conflicts.end() ? conflict->second : engineSentence(*entry.error);
    }
    // A row that others can't hold with, though the engine blames those alone.
    if (conflict != m_conflicts.end() && column == TableColumn::Value)
        return conflict->second;
    return {};
}

QString ConstraintTableModel::warningText(const Entry &entry, TableColumn column) const
{
    if (entry.warning.empty() || column != (entry.leftOut ? TableColumn::Strength : TableColumn::Binds))
        return {};
    return withRowNumbers(qt(entry.warning));
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
    const RowCells &cells = *entry.cells;
    switch (column) {
    case TableColumn::On:
        return {};
    case TableColumn::Number:
        return QString::number(entry.line + 1);
    case TableColumn::Selector:
        return qt(cells.selector);
    case TableColumn::Rule:
        return qt(cells.rule);
    case TableColumn::Value:
        return qt(cells.value);
    case TableColumn::Strength: {
        const auto weight = weightOf(cells.strength);
        if (!weight)
            return qt(cells.strength);
        return *weight == 0 ? tr("must") : *weight == 1 ? tr("prefer") : tr("prefer %1").arg(*weight);
    }
    case TableColumn::Binds: {
        if (!entry.text->row || entry.reach.operators < 0)
            return {};
        if (!hasSelector(entry.text->row->rule))
            return tr("whole plan");
        const QString operators = entry.reach.operators == 1
            ? tr("1 op")
            : tr("%1 ops").arg(qt(formatCount(entry.reach.operators)));
        if (entry.reach.devices < 0)
            return operators;
        return operators + QStringLiteral(" · ")
            + (entry.reach.devices == 1 ? tr("1 device") : tr("%1 devices").arg(qt(formatCount(entry.reach.devices))));
    }
    case TableColumn::Price: {
        if (!entry.text->row || !entry.text->row->enabled)
            return {};
        QString text;
        if (entry.price.state == RowPrice::State::Known) {
            text = qt(formatSeconds(entry.price.seconds));
            if (entry.price.seconds > 0)
                text.prepend(QLatin1Char('+'));
        } else if (entry.price.state == RowPrice::State::Needed) {
            text = tr("needed");
        } else {
            return {};
        }
        if (entry.price.editsAgo == 1)
            text += tr(" · 1 edit ago");
        else if (entry.price.editsAgo > 1)
            text += tr(" · %1 edits ago").arg(entry.price.editsAgo);
        return text;
    }
    case TableColumn::Origin:
        return cells.origin.empty() ? tr("text") : qt(cells.origin);
    case TableColumn::Note:
        return noteAt(static_cast<int>(&entry - m_entries.data())).replace(QLatin1Char('\n'), QStringLiteral(" · "));
    }
    return {};
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
            return qt(entry.cells->origin);
        if (column == TableColumn::Strength)
            return qt(entry.cells->strength);
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
            return meaningOfRule(qt(cellsAt(index.row()).rule));
        if (column == TableColumn::Price) {
            if (entry.price.state == RowPrice::State::Needed || entry.price.state == RowPrice::State::Failed)
                return tr("Without it there is no plan: %1").arg(qt(entry.price.remark));
            return entry.price.state == RowPrice::State::Known
                ? entry.price.seconds >= 0 ? tr("The step would be so much faster with this row off")
                                           : tr("The step would be so much slower with this row off")
                : tr("Not known yet: found while you pause");
        }
        return displayText(entry, column);
    }
    case Qt::TextAlignmentRole:
        if (column == TableColumn::Number || column == TableColumn::Price)
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
    case RuleRole:
        return qt(cellsAt(index.row()).rule);
    case OldRole:
        return column == TableColumn::Price ? entry.price.editsAgo > 0 : column == TableColumn::Binds && m_old;
    case SortRole:
        switch (column) {
        case TableColumn::On:
            return cellsAt(index.row()).enabled ? 0 : 1;
        case TableColumn::Number:
            return entry.line;
        case TableColumn::Strength: {
            const auto weight = weightOf(cellsAt(index.row()).strength);
            return !weight ? -1.0 : *weight == 0 ? 2.0 * kMostWeight : static_cast<double>(*weight);
        }
        case TableColumn::Binds:
            return entry.text->row ? (hasSelector(entry.text->row->rule) ? entry.reach.operators : 1 << 30) : -2;
        case TableColumn::Price:
            return entry.price.state == RowPrice::State::Known ? entry.price.seconds : -1e9;
        default:
            return displayText(entry, column).toLower();
        }
    default:
        return {};
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
    if (role == Qt::TextAlignmentRole && section == static_cast<int>(TableColumn::Price))
        return QVariant::fromValue(Qt::Alignment(Qt::AlignRight | Qt::AlignVCenter));
    return {};
}

TableEdit ConstraintTableModel::cellEdit(const std::vector<int> &rows, TableColumn column, const QString &text) const
{
    TableEdit edit;
    std::int32_t shift = 0;
    std::vector<int> sorted(rows);
    std::sort(sorted.begin(), sorted.end());
    for (const int row : sorted) {
        const Entry &entry = at(row);
        const RowCells &cells = cellsAt(row);
        TableSplice splice{entry.line, {}, {}};
        std::string written = text.toStdString();
        if (column == TableColumn::Note) {
            // A note of several lines stands above its row, one of one line behind it; remarks above are part of it.
            const QString plain = text.trimmed();
            if (plain == noteAt(row))
                continue;
            std::int32_t first = entry.line;
            for (std::size_t i = entry.remarks.size(); i-- > 0;) {
                if (!qt(entry.remarks[i]->text).trimmed().isEmpty())
                    first = entry.line - static_cast<std::int32_t>(entry.remarks.size() - i);
            }
            for (std::int32_t line = first; line < entry.line; ++line)
                splice.removed.push_back(m_document.lines()[static_cast<std::size_t>(line)]->text);
            const QStringList lines = plain.split(QLatin1Char('\n'));
            if (lines.size() > 1) {
                for (const QString &line : lines)
                    splice.inserted.push_back("# " + line.toStdString());
                written.clear();
            } else {
                written = plain.toStdString();
            }
            splice.line = first;
        } else {
            written = oneLine(written);
        }
        splice.removed.push_back(entry.text->text);
        std::string line = withCell(cells, column, written);
        // As written, if nothing but spacing would change.
        splice.inserted.push_back(cellsOf(line) == cells ? entry.text->text : std::move(line));
        if (splice.removed == splice.inserted)
            continue;
        splice.line += shift;
        shift += static_cast<std::int32_t>(splice.inserted.size()) - static_cast<std::int32_t>(splice.removed.size());
        edit.splices.push_back(std::move(splice));
    }
    return edit;
}

QString ConstraintTableModel::wordsFor(const std::vector<int> &rows, TableColumn column, const QString &text) const
{
    if (column == TableColumn::Strength) {
        const std::int32_t weight = weightOf(text.toStdString()).value_or(1);
        const QString who = rows.size() == 1 ? tr("row %1").arg(at(rows.front()).line + 1)
                                             : tr("%1 rows").arg(static_cast<int>(rows.size()));
        return weight == 0  ? tr("must: %1").arg(who)
            : weight == 1 ? tr("prefer: %1").arg(who)
                          : tr("prefer with weight %1: %2").arg(weight).arg(who);
    }
    if (rows.size() != 1) {
        return text.isEmpty() ? tr("clear the %1 of %2 rows").arg(titleOf(column).toLower()).arg(rows.size())
                              : tr("change the %1 of %2 rows to %3")
                                    .arg(titleOf(column).toLower())
                                    .arg(rows.size())
                                    .arg(text.simplified());
    }
    const int number = at(rows.front()).line + 1;
    if (column == TableColumn::Note)
        return text.isEmpty() ? tr("remove the note of row %1").arg(number) : tr("note on row %1").arg(number);
    const auto read = cellsOf(withCell(cellsAt(rows.front()), column, oneLine(text.toStdString())));
    QString row = qt(read.rule);
    if (!read.selector.empty())
        row += QLatin1Char(' ') + qt(read.selector);
    if (!read.value.empty())
        row += QStringLiteral(": ") + qt(read.value);
    return tr("change row %1 to %2").arg(number).arg(row);
}

bool ConstraintTableModel::apply(const QString &words, const TableEdit &edit, const QString &mergeKey) const
{
    return !edit.empty() && m_edit && m_edit(words, edit, mergeKey);
}

bool ConstraintTableModel::writeCells(const std::vector<int> &rows, TableColumn column, const QString &text)
{
    return apply(wordsFor(rows, column, text), cellEdit(rows, column, text));
}

bool ConstraintTableModel::setRowsEnabled(const std::vector<int> &rows, bool enabled)
{
    if (rows.empty())
        return false;
    TableEdit edit;
    std::vector<std::int32_t> lines;
    for (const int row : rows) {
        if (at(row).text->row)
            lines.push_back(at(row).line);
    }
    edit = planloom::setEnabled(m_document, lines, enabled);
    // Lines that are no rows yet are switched by their word as well.
    for (const int row : rows) {
        const Entry &entry = at(row);
        if (entry.text->row || cellsAt(row).enabled == enabled)
            continue;
        RowCells cells = cellsAt(row);
        cells.enabled = enabled;
        edit.splices.push_back({entry.line, {entry.text->text}, {lineOf(cells)}});
    }
    const QString what = rows.size() == 1 ? tr("row %1").arg(at(rows.front()).line + 1)
                                          : tr("%1 rows").arg(static_cast<int>(rows.size()));
    return apply(enabled ? tr("switch on %1").arg(what) : tr("switch off %1").arg(what), edit);
}

bool ConstraintTableModel::setData(const QModelIndex &index, const QVariant &value, int role)
{
    if (!index.isValid() || index.row() >= rowCount())
        return false;
    const auto column = static_cast<TableColumn>(index.column());
    if (role == Qt::CheckStateRole && column == TableColumn::On)
        return setRowsEnabled({index.row()}, value.toInt() == Qt::Checked);
    if (role != Qt::EditRole || !(flags(index) & Qt::ItemIsEditable))
        return false;
    return writeCells({index.row()}, column, value.toString());
}

} // namespace planloom
