#include "widgets/table/kinds/rule_cells.h"

#include "widgets/table/cell_editors.h"

#include "engine/table/table_text.h"
#include "engine/table/text_cursor.h"

#include <algorithm>

namespace planloom {

const RuleCells *findRuleCells(std::string_view word)
{
    const auto found = std::find_if(kAllRuleCells.begin(), kAllRuleCells.end(),
        [&](const RuleCells *cells) { return cells->word.word == word; });
    return found == kAllRuleCells.end() ? nullptr : *found;
}

std::optional<Rule> ruleOf(std::string_view word, const std::string &value)
{
    RowCells cells;
    cells.rule = word;
    cells.selector = "all";
    cells.value = value;
    if (noteBegin(value) != std::string::npos)
        return {};
    auto row = parseRow(lineOf(cells));
    return row ? std::optional<Rule>(std::move(row->rule)) : std::nullopt;
}

CellEditor *newChoiceEditor(QWidget *parent, std::initializer_list<std::pair<const char *, QString>> choices)
{
    auto *editor = new ChoiceCellEditor(parent);
    for (const auto &[text, meaning] : choices)
        editor->addChoice(QString::fromLatin1(text), meaning);
    return editor;
}

void suggestReplicas(const ValueChoices &choices, std::vector<std::string> &texts)
{
    for (const MeshAxis &axis : choices.mesh)
        texts.push_back("over " + asWord(axis.name));
    for (std::int32_t count = 2; count <= choices.deviceCount && count <= 64; count *= 2)
        texts.push_back("by " + std::to_string(count));
}

} // namespace planloom
