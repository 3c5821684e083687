#include "widgets/table/cell_editors.h"
#include "widgets/table/kinds/rule_cells.h"
#include "widgets/table/kinds/second_selector_editor.h"

namespace planloom {

CellEditor *newSecondSelectorEditor(
    std::string word, const SelectorCompletionsSnapshot &completions, QWidget *parent)
{
    auto *editor = new TextCellEditor(parent);
    editor->setSuggest(
        [word = std::move(word), completions](const std::string &typed) {
            return !typed.empty() && typed.size() < word.size() && word.compare(0, typed.size(), typed) == 0
                ? std::vector<std::string>{word}
                : completions ? completions->find(typed, kMostCompletions)
                              : std::vector<std::string>{};
        },
        true);
    return editor;
}

namespace {

CellEditor *newAlikeEditor(
    const std::string &, const SelectorCompletionsSnapshot &completions, QWidget *parent)
{
    return newSecondSelectorEditor("as", completions, parent);
}

CellEditor *newTogetherEditor(
    const std::string &, const SelectorCompletionsSnapshot &completions, QWidget *parent)
{
    return newSecondSelectorEditor("with", completions, parent);
}

CellEditor *newApartEditor(
    const std::string &, const SelectorCompletionsSnapshot &completions, QWidget *parent)
{
    return newSecondSelectorEditor("from", completions, parent);
}

} // namespace

constinit const RuleCells kAlikeCells{
    .word = {.word = "alike",
        .shape = RuleTraits<AlikeRule>::shape,
        .value = "as layer:0",
        .valueStart = "as"},
    .meaning = QT_TRANSLATE_NOOP("planloom::ConstraintTable", "cut them as others are (op-trans)"),
    .newEditor = newAlikeEditor,
};

constinit const RuleCells kTogetherCells{
    .word = {.word = "together",
        .shape = RuleTraits<DeviceSharingRule>::shape,
        .value = "with layer:0",
        .valueStart = "with"},
    .meaning = QT_TRANSLATE_NOOP("planloom::ConstraintTable", "on the same devices as others (op-assign)"),
    .newEditor = newTogetherEditor,
};

constinit const RuleCells kApartCells{
    .word = {.word = "apart",
        .shape = RuleTraits<DeviceSharingRule>::shape,
        .value = "from layer:0",
        .valueStart = "from"},
    .meaning = QT_TRANSLATE_NOOP("planloom::ConstraintTable", "on no device of others (op-assign)"),
    .newEditor = newApartEditor,
};

} // namespace planloom
