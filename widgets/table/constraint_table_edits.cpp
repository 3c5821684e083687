// The edits that writing into cells of the constraint table makes, and the words for them.

#include "widgets/common/qt_text.h"
#include "widgets/table/constraint_table_model.h"

#include <algorithm>

namespace planloom {

namespace {

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

TableEdit ConstraintTableModel::cellEdit(
    const std::vector<int> &rows, TableColumn column, const QString &text) const
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
            // A note of several lines stands above its row, one of one line behind it; remarks above are part
            // of it.
            const QString plain = text.trimmed();
            if (plain == noteAt(row))
                continue;
            std::int32_t first = entry.line;
            for (std::size_t i = entry.remarks.size(); i-- > 0;) {
                if (!toQString(entry.remarks[i]->text).trimmed().isEmpty())
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
        shift += static_cast<std::int32_t>(splice.inserted.size())
            - static_cast<std::int32_t>(splice.removed.size());
        edit.splices.push_back(std::move(splice));
    }
    return edit;
}

QString ConstraintTableModel::wordsFor(
    const std::vector<int> &rows, TableColumn column, const QString &text) const
{
    if (column == TableColumn::Strength) {
        const std::int32_t weight = weightOf(text.toStdString()).value_or(1);
        const QString who = rows.size() == 1 ? tr("row %1").arg(at(rows.front()).line + 1)
                                             : tr("%1 rows").arg(static_cast<int>(rows.size()));
        return weight == 0 ? tr("must: %1").arg(who)
            : weight == 1  ? tr("prefer: %1").arg(who)
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
        return text.isEmpty() ? tr("remove the note of row %1").arg(number)
                              : tr("note on row %1").arg(number);
    const auto read = cellsOf(withCell(cellsAt(rows.front()), column, oneLine(text.toStdString())));
    QString row = toQString(read.rule);
    if (!read.selector.empty())
        row += QLatin1Char(' ') + toQString(read.selector);
    if (!read.value.empty())
        row += QStringLiteral(": ") + toQString(read.value);
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
    // In ascending order, all splices are carried out (and undone) in one pass; none moves another.
    std::sort(edit.splices.begin(), edit.splices.end(),
        [](const TableSplice &a, const TableSplice &b) { return a.line < b.line; });
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
