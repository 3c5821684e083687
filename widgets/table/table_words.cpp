// What the columns of the constraint table are called, and what they and the rules mean.

#include <QtCore/QCoreApplication>

#include "widgets/table/constraint_table_model.h"
#include "widgets/table/kinds/rule_cells.h"

namespace planloom {

namespace {

/// Translates what belongs to no object.
struct ColumnTexts {
    Q_DECLARE_TR_FUNCTIONS(planloom::ConstraintTable)
};

} // namespace

QString titleOf(TableColumn column)
{
    switch (column) {
    case TableColumn::On:
        return ColumnTexts::tr("On");
    case TableColumn::Number:
        return QStringLiteral("#");
    case TableColumn::Selector:
        return ColumnTexts::tr("Selector");
    case TableColumn::Rule:
        return ColumnTexts::tr("Rule");
    case TableColumn::Value:
        return ColumnTexts::tr("Value");
    case TableColumn::Strength:
        return ColumnTexts::tr("Must/Prefer");
    case TableColumn::Binds:
        return ColumnTexts::tr("Binds");
    case TableColumn::Price:
        return ColumnTexts::tr("Solver");
    case TableColumn::Origin:
        return ColumnTexts::tr("Origin");
    case TableColumn::Note:
        return ColumnTexts::tr("Note");
    }
    return {};
}

QString meaningOf(TableColumn column)
{
    switch (column) {
    case TableColumn::On:
        return ColumnTexts::tr("Whether the row takes part (Space). Order has no meaning: rows hold together "
                               "wherever they stand.");
    case TableColumn::Number:
        return ColumnTexts::tr("The row's line in the text. Order has no meaning.");
    case TableColumn::Selector:
        return ColumnTexts::tr(
            "Which operators the row speaks of: layer:0-5, name:*.attn.*, kind:Linear, all ...");
    case TableColumn::Rule:
        return ColumnTexts::tr("What is decided: split, place, order ...");
    case TableColumn::Value:
        return ColumnTexts::tr("How: \"batch by 2 over dp\", \"devices 0,1\" ...");
    case TableColumn::Strength:
        return ColumnTexts::tr(
            "Rows must hold, or are preferred with a weight: those hold as far as they can, "
            "heavier ones first.");
    case TableColumn::Binds:
        return ColumnTexts::tr(
            "How many operators the rule acts on, on how many devices. None is a warning.");
    case TableColumn::Price:
        return ColumnTexts::tr(
            "What the solver says of the row: in conflict, exceeded, binding or slack, and what the step "
            "would take without it (found while you pause); chosen rows are its own.");
    case TableColumn::Origin:
        return ColumnTexts::tr("Who wrote the row: a person's text, a gesture, a gallery plan, an import, "
                               "the search (which may choose anew).");
    case TableColumn::Note:
        return ColumnTexts::tr("For people.");
    }
    return {};
}

QString meaningOfRule(const QString &word)
{
    const RuleCells *cells = findRuleCells(word.toStdString());
    return cells ? RuleTexts::tr(cells->meaning) : QString();
}

} // namespace planloom
