#include "widgets/table/kinds/rule_cells.h"

#include "engine/table/text_cursor.h"

#include <algorithm>

namespace planloom {

namespace {

void suggestPlace(const ValueChoices &choices, std::vector<std::string> &texts)
{
    texts.emplace_back("mesh");
    for (const MeshAxis &axis : choices.mesh) {
        for (std::int32_t i = 0; i < std::min(axis.size, 16); ++i)
            texts.push_back(asWord(axis.name) + "=" + std::to_string(i));
    }
    for (std::int32_t device = 0; device < std::min(choices.deviceCount, 64); ++device)
        texts.push_back("devices " + std::to_string(device));
    if (choices.deviceCount > 1 && choices.deviceCount <= 16) {
        std::string list = "devices 0";
        for (std::int32_t device = 1; device < choices.deviceCount; ++device)
            list += "," + std::to_string(device);
        texts.push_back(list);
    }
}

} // namespace

constinit const RuleCells kPlaceCells{
    .word = {.word = "place", .shape = RuleTraits<OpAssignRule>::shape, .value = "devices 0,1"},
    .meaning = QT_TRANSLATE_NOOP("planloom::ConstraintTable", "choose their devices (op-assign)"),
    .suggest = suggestPlace,
};

} // namespace planloom
