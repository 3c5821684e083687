#include "widgets/table/kinds/rule_cells.h"

namespace planloom {

namespace {

CellEditor *newPrecisionEditor(const std::string &value, const SelectorCompletionsSnapshot &, QWidget *parent)
{
    if (!value.empty() && !precisionPresetNamed(value))
        return nullptr; // single settings are text
    return newChoiceEditor(parent,
        {{"bf16", RuleTexts::tr("bfloat16, gradients and weights of the optimizer in float32")},
            {"fp16", RuleTexts::tr("float16 with a loss scale, the optimizer in float32")},
            {"fp8", RuleTexts::tr("products of 8 bits, stored in bfloat16")},
            {"tf32", RuleTexts::tr("products of 10 bits of mantissa, stored in float32")},
            {"fp32", RuleTexts::tr("float32 throughout")}});
}

} // namespace

constinit const RuleCells kPrecisionCells{
    .word = {.word = "precision", .shape = RuleTraits<PrecisionRule>::shape, .value = "bf16"},
    .meaning = QT_TRANSLATE_NOOP(
        "planloom::ConstraintTable", "the number formats to compute, keep, send and update in"),
    .newEditor = newPrecisionEditor,
};

} // namespace planloom
