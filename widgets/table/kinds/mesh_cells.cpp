#include "widgets/table/kinds/rule_cells.h"

namespace planloom {

namespace {

void suggestMesh(const ValueChoices &choices, std::vector<std::string> &texts)
{
    for (std::int32_t size = 2; size < choices.deviceCount; size *= 2) {
        if (choices.deviceCount % size == 0)
            texts.push_back(
                "dp=" + std::to_string(choices.deviceCount / size) + " tp=" + std::to_string(size));
    }
    texts.push_back("dp=" + std::to_string(choices.deviceCount));
}

} // namespace

constinit const RuleCells kMeshCells{
    .word = {.word = "mesh", .shape = RuleTraits<MeshRule>::shape, .value = "dp=2 tp=2"},
    .meaning =
        QT_TRANSLATE_NOOP("planloom::ConstraintTable", "arrange the devices as a grid with named axes"),
    .suggest = suggestMesh,
};

} // namespace planloom
