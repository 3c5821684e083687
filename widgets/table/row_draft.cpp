#include "widgets/table/row_draft.h"

#include <QtCore/QCoreApplication>

#include "widgets/table/constraint_table_model.h"

namespace planloom {

namespace {

/// Translates what belongs to no object.
struct DraftTexts {
    Q_DECLARE_TR_FUNCTIONS(planloom::RowDraft)
};

} // namespace

bool RowDraft::takesText(TableColumn column)
{
    switch (column) {
    case TableColumn::Selector:
    case TableColumn::Rule:
    case TableColumn::Value:
    case TableColumn::Strength:
    case TableColumn::Origin:
    case TableColumn::Note:
        return true;
    case TableColumn::On:
    case TableColumn::Number:
    case TableColumn::Binds:
    case TableColumn::Price:
        break;
    }
    return false;
}

const std::string *RowDraft::field(TableColumn column) const
{
    return column == TableColumn::Selector ? &m_cells.selector
        : column == TableColumn::Rule      ? &m_cells.rule
        : column == TableColumn::Value     ? &m_cells.value
        : column == TableColumn::Strength  ? &m_cells.strength
        : column == TableColumn::Origin    ? &m_cells.origin
        : column == TableColumn::Note      ? &m_cells.note
                                           : nullptr;
}

bool RowDraft::write(TableColumn column, const std::string &text)
{
    if (!takesText(column))
        return false;
    const bool startsRow = column == TableColumn::Selector || column == TableColumn::Rule;
    if (startsRow && text.find(' ') != std::string::npos && readLine(text)->row) {
        m_cells = cellsOf(text);
        return true;
    }
    switch (column) {
    case TableColumn::Rule: {
        m_cells.rule = text;
        const RuleWord *word = findRuleWord(text);
        if (word && word->shape != RuleShape::Plain && m_cells.selector.empty())
            m_cells.selector = "all";
        if (word && word->shape == RuleShape::Plain)
            m_cells.selector.clear();
        break;
    }
    case TableColumn::Selector:
        m_cells.selector = text;
        break;
    case TableColumn::Value:
        m_cells.value = text;
        break;
    case TableColumn::Strength:
        m_cells.strength = weightOf(text) == 0 ? std::string{} : text;
        break;
    case TableColumn::Origin:
        m_cells.origin = text;
        break;
    default:
        m_cells.note = text;
        break;
    }
    return true;
}

bool RowDraft::isComplete() const
{
    const RuleWord *word = findRuleWord(m_cells.rule);
    return !m_cells.rule.empty() && (!m_cells.value.empty() || (word && !word->needsValue));
}

QVariant RowDraft::data(TableColumn column, int role) const
{
    const std::string *written = field(column);
    const QString text = written ? QString::fromStdString(*written) : QString();
    switch (role) {
    case Qt::DisplayRole:
        if (column == TableColumn::Number)
            return QStringLiteral("+");
        if (isEmpty() && column == TableColumn::Selector)
            return DraftTexts::tr("new row: choose a rule, or type it whole");
        return text;
    case Qt::EditRole:
        return text;
    case ConstraintTableModel::RuleRole:
        return QString::fromStdString(m_cells.rule);
    case ConstraintTableModel::EnabledRole:
        return !isEmpty();
    case ConstraintTableModel::ProblemRole:
        if (!isEmpty()) {
            const auto problem = checkCells(m_cells);
            if (problem && problem->column == column && !text.isEmpty())
                return QString::fromStdString(problem->message);
        }
        return QString();
    case Qt::TextAlignmentRole:
        return QVariant::fromValue(Qt::Alignment(
            (column == TableColumn::Number ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter));
    case Qt::ToolTipRole:
        return DraftTexts::tr("Type here to add a row");
    case Qt::AccessibleTextRole:
        return DraftTexts::tr("new row, %1: %2")
            .arg(titleOf(column).toLower(), text.isEmpty() ? DraftTexts::tr("empty") : text);
    default:
        return {};
    }
}

} // namespace planloom
