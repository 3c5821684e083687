#include "widgets/table/cell_editors.h"
#include "widgets/table/kinds/rule_cells.h"

#include <QtWidgets/QSpinBox>

namespace planloom {

namespace {

/// Steps from one divisor of the batch to the next.
class MicroBatchesCellEditor : public CountCellEditor
{
public:
    explicit MicroBatchesCellEditor(QWidget *parent)
        : CountCellEditor(1, RuleTexts::tr("Number of micro-batches"), parent)
    {
    }

    void setChoices(const ValueChoices &choices) override
    {
        setFitting(choices.microBatches);
        QStringList counts;
        for (std::size_t i = 0; i < choices.microBatches.size() && i < 16; ++i)
            counts << QString::number(choices.microBatches[i]);
        count()->setToolTip(
            RuleTexts::tr("What divides the batch: %1").arg(counts.join(QStringLiteral(", "))));
    }
};

CellEditor *newMicroBatchesEditor(
    const std::string &value, const SelectorCompletionsSnapshot &, QWidget *parent)
{
    if (!value.empty()) {
        const auto rule = ruleOf("micro-batches", value);
        if (!rule || std::get<MicroBatchesRule>(*rule).whole
            || std::get<MicroBatchesRule>(*rule).updateEvery > 0)
            return nullptr;
    }
    return new MicroBatchesCellEditor(parent);
}

} // namespace

constinit const RuleCells kMicroBatchesCells{
    .word = {.word = "micro-batches", .shape = RuleTraits<MicroBatchesRule>::shape, .value = "4"},
    .meaning = QT_TRANSLATE_NOOP("planloom::ConstraintTable", "run the mini-batch in so many parts"),
    .newEditor = newMicroBatchesEditor,
};

} // namespace planloom
