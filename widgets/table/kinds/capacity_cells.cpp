#include "widgets/table/kinds/rule_cells.h"

#include "engine/table/table_text.h"

namespace planloom {

namespace {

/// The expected load and more, and all there can be; then what each operator has.
void suggestRooms(const ValueChoices &choices, std::vector<std::string> &texts)
{
    if (choices.rooms.empty())
        return;
    for (const double factor : {1.0, 1.25, 1.5, 2.0})
        texts.push_back(print(Rule{CapacityRule{"all", {.factor = factor}}}));
    texts.push_back(print(Rule{CapacityRule{"all", {.kind = Capacity::Kind::All}}}));
    for (const auto &[name, capacity] : choices.rooms) {
        if (name != "all")
            texts.push_back(print(Rule{CapacityRule{name, capacity}}));
    }
}

} // namespace

constinit const RuleCells kCapacityCells{
    .word = {.word = "capacity", .shape = RuleTraits<CapacityRule>::shape, .value = "all = 1.25x"},
    .meaning = QT_TRANSLATE_NOOP("planloom::ConstraintTable",
        "open the model with this room in every sample for what data choose: the tokens of an expert"),
    .suggest = suggestRooms,
};

} // namespace planloom
