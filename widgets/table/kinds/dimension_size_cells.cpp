#include "widgets/table/kinds/rule_cells.h"

#include "engine/table/table_text.h"

namespace planloom {

namespace {

/// Each dimension of the model as it is, and with twice and half its size.
void suggestSizes(const ValueChoices &choices, std::vector<std::string> &texts)
{
    for (const InputDimension &dimension : choices.inputDimensions) {
        for (const std::int64_t size : {dimension.size, dimension.size * 2, dimension.size / 2}) {
            if (size >= dimension.least && size <= dimension.most)
                texts.push_back(print(Rule{DimensionSizeRule{dimension.name, size}}));
        }
    }
}

} // namespace

constinit const RuleCells kDimensionSizeCells{
    .word = {.word = "dim", .shape = RuleTraits<DimensionSizeRule>::shape, .value = "batch = 64"},
    .meaning = QT_TRANSLATE_NOOP(
        "planloom::ConstraintTable", "open the model with this size of its inputs: batch, sequence ..."),
    .suggest = suggestSizes,
};

} // namespace planloom
