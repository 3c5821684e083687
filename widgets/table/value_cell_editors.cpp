// Editors of one value with parts of its own: strengths, numbers. Those of one kind of row are in kinds/.

#include <QtWidgets/QComboBox>
#include <QtWidgets/QSpinBox>

#include "widgets/table/cell_editors.h"

#include <algorithm>

namespace planloom {

namespace {

/// Steps from one possible number to the next; others can still be typed.
class FittingSpinBox : public QSpinBox
{
public:
    using QSpinBox::QSpinBox;
    std::vector<std::int32_t> fitting; ///< Ascending; empty takes all.

    void stepBy(int steps) override
    {
        if (fitting.empty())
            return QSpinBox::stepBy(steps);
        auto place = std::lower_bound(fitting.begin(), fitting.end(), value());
        const bool exact = place != fitting.end() && *place == value();
        std::ptrdiff_t index = (place - fitting.begin()) + (steps > 0 && !exact ? steps - 1 : steps);
        index = std::clamp<std::ptrdiff_t>(index, 0, static_cast<std::ptrdiff_t>(fitting.size()) - 1);
        setValue(fitting[static_cast<std::size_t>(index)]);
        selectAll();
    }
};

} // namespace

bool StrengthCellEditor::canShow(const std::string &text)
{
    return weightOf(text).has_value();
}

StrengthCellEditor::StrengthCellEditor(QWidget *parent)
    : CellEditor(parent)
    , m_kind(new QComboBox(this))
    , m_weight(new QSpinBox(this))
{
    m_kind->addItem(tr("must"));
    m_kind->addItem(tr("prefer"));
    m_kind->setFrame(false);
    m_kind->setAccessibleName(tr("Must or prefer"));
    m_weight->setFrame(false);
    m_weight->setRange(1, kMostWeight);
    m_weight->setPrefix(tr("weight "));
    m_weight->setAccessibleName(tr("Weight of the preference"));
    m_weight->setToolTip(tr("Heavier preferences are applied first"));
    m_weight->setEnabled(false);
    addField(m_kind, 1);
    addField(m_weight, 1);
    connect(m_kind, &QComboBox::currentIndexChanged, this, [this](int kind) {
        m_weight->setEnabled(kind == 1);
        touch();
    });
    connect(m_weight, &QSpinBox::textChanged, this, &StrengthCellEditor::touch);
}

QString StrengthCellEditor::text() const
{
    if (m_kind->currentIndex() == 0)
        return {};
    return m_weight->value() == 1 ? QStringLiteral("prefer")
                                  : QStringLiteral("prefer %1").arg(m_weight->value());
}

void StrengthCellEditor::setText(const QString &text)
{
    const std::int32_t weight = weightOf(text.toStdString()).value_or(0);
    m_kind->setCurrentIndex(weight > 0 ? 1 : 0);
    m_weight->setValue(std::max(weight, 1));
    m_weight->setEnabled(weight > 0);
    setUntouched();
}

CountCellEditor::CountCellEditor(int least, const QString &name, QWidget *parent)
    : CellEditor(parent)
    , m_count(new FittingSpinBox(this))
{
    m_count->setFrame(false);
    m_count->setRange(least, static_cast<int>(kMostCount));
    m_count->setAccessibleName(name);
    addField(m_count, 1);
    connect(m_count, &QSpinBox::textChanged, this, &CountCellEditor::touch);
}

QString CountCellEditor::text() const
{
    return QString::number(m_count->value());
}

void CountCellEditor::setText(const QString &text)
{
    m_count->setValue(text.trimmed().toInt());
    setUntouched();
}

void CountCellEditor::setFitting(const std::vector<std::int32_t> &fitting)
{
    static_cast<FittingSpinBox *>(m_count)->fitting = fitting; // made as one
}

} // namespace planloom
