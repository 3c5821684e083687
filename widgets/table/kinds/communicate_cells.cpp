#include "widgets/table/cell_editors.h"
#include "widgets/table/kinds/rule_cells.h"

namespace planloom {

namespace {

/// As text; behind before or after it is completed as selectors are.
CellEditor *newCommunicateEditor(
    const std::string &, const SelectorCompletionsSnapshot &completions, QWidget *parent)
{
    auto *editor = new TextCellEditor(parent);
    editor->setSuggest(
        [completions](const std::string &typed) {
            std::vector<std::string> texts;
            for (const char *word : {"sends after", "sends before", "reductions after", "reductions before",
                     "gathers after", "gathers before"})
                if (std::string_view(word).substr(0, typed.size()) == typed)
                    texts.emplace_back(word);
            return !texts.empty() ? texts
                : completions     ? completions->find(typed, kMostCompletions)
                                  : std::vector<std::string>{};
        },
        true);
    return editor;
}

} // namespace

constinit const RuleCells kCommunicateCells{
    .word = {.word = "communicate",
        .shape = RuleTraits<CommunicateRule>::shape,
        .value = "sends after layer:1",
        .valueStart = "sends|gathers|reductions"},
    .meaning = QT_TRANSLATE_NOOP("planloom::ConstraintTable",
        "when sends, gathers of weights and reductions of gradients run (op-order)"),
    .newEditor = newCommunicateEditor,
};

} // namespace planloom
