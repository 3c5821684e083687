#include "widgets/table/cell_editors.h"
#include "widgets/table/kinds/rule_cells.h"

#include <QtWidgets/QSpinBox>

namespace planloom {

namespace {

/// "3 stage 0": a number, and the stage it is of.
class InFlightCellEditor : public CountCellEditor
{
public:
    explicit InFlightCellEditor(QWidget *parent)
        : CountCellEditor(1, RuleTexts::tr("Micro-batches in flight"), parent)
        , m_stage(new QSpinBox(this))
    {
        m_stage->setFrame(false);
        m_stage->setRange(-1, static_cast<int>(kMostCount)); // -1 is every stage
        m_stage->setSpecialValueText(RuleTexts::tr("every stage"));
        m_stage->setPrefix(RuleTexts::tr("stage "));
        m_stage->setAccessibleName(RuleTexts::tr("Stage"));
        addField(m_stage, 1);
        connect(m_stage, &QSpinBox::textChanged, this, &InFlightCellEditor::touch);
    }

    QString text() const override
    {
        QString text = CountCellEditor::text();
        if (m_stage->value() >= 0)
            text += QStringLiteral(" stage ") + QString::number(m_stage->value());
        return text;
    }

    void setText(const QString &text) override
    {
        if (const auto rule = ruleOf("in-flight", text.toStdString())) {
            count()->setValue(std::get<InFlightRule>(*rule).count);
            m_stage->setValue(std::get<InFlightRule>(*rule).stage);
        } else {
            m_stage->setValue(-1);
        }
        setUntouched();
    }

private:
    QSpinBox *m_stage;
};

CellEditor *newInFlightEditor(const std::string &value, const SelectorCompletionsSnapshot &, QWidget *parent)
{
    return value.empty() || ruleOf("in-flight", value) ? new InFlightCellEditor(parent) : nullptr;
}

} // namespace

constinit const RuleCells kInFlightCells{
    .word = {.word = "in-flight", .shape = RuleTraits<InFlightRule>::shape, .value = "3 stage 0"},
    .meaning = QT_TRANSLATE_NOOP("planloom::ConstraintTable", "how far a stage warms up"),
    .newEditor = newInFlightEditor,
};

} // namespace planloom
