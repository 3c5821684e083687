#include "widgets/table/kinds/split_cell_editor.h"

#include <QtWidgets/QAbstractItemView>
#include <QtWidgets/QCheckBox>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QLineEdit>

#include "widgets/table/kinds/rule_cells.h"

#include "engine/table/text_cursor.h"

#include <algorithm>

namespace planloom {

namespace {

/// An editable box that stays narrow.
QComboBox *newBox(QWidget *parent, const QString &name, int characters)
{
    auto *box = new QComboBox(parent);
    box->setEditable(true);
    box->setInsertPolicy(QComboBox::NoInsert);
    box->setAccessibleName(name);
    box->setToolTip(name);
    box->setMinimumContentsLength(characters);
    box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    return box;
}

} // namespace

bool SplitCellEditor::canShow(const std::string &word, const std::string &text)
{
    if (text.empty())
        return true;
    const auto rule = ruleOf(word, text);
    if (!rule)
        return false;
    if (std::holds_alternative<CoshardRule>(*rule) || std::holds_alternative<SliceRule>(*rule))
        return true;
    const auto *split = std::get_if<OpTransRule>(&*rule);
    return split && split->steps.size() == 1 && split->steps.front().kind != SplitKind::Replicate
        && split->steps.front().sizes.empty();
}

SplitCellEditor::SplitCellEditor(std::string word, QWidget *parent)
    : CellEditor(parent)
    , m_word(std::move(word))
    , m_dimension(newBox(this, tr("Dimension"), 8))
    , m_parts(newBox(this, tr("Number of parts"), 4))
{
    const bool withAxis = m_word == "split";
    addField(m_dimension, 3);
    addField(m_parts, 2);
    m_parts->lineEdit()->setPlaceholderText(withAxis ? tr("parts of the axis") : tr("parts"));
    connect(m_dimension, &QComboBox::currentTextChanged, this, [this] {
        fillParts();
        touch();
    });
    connect(m_parts, &QComboBox::currentTextChanged, this, &SplitCellEditor::touch);
    if (m_word == "slice")
        return;
    if (!withAxis) {
        m_keep = new QCheckBox(tr("keep"), this);
        m_keep->setToolTip(tr("Keep what the backward pass reads; else the parts run again there"));
        addField(m_keep);
        connect(m_keep, &QCheckBox::toggled, this, &SplitCellEditor::touch);
        return;
    }
    m_axis = newBox(this, tr("Mesh axis"), 4);
    m_axis->lineEdit()->setPlaceholderText(tr("no axis"));
    addField(m_axis, 2);
    connect(m_axis, &QComboBox::currentTextChanged, this, &SplitCellEditor::touch);
}

QString SplitCellEditor::text() const
{
    QString text = m_dimension->currentText().section(QLatin1Char(' '), 0, 0).trimmed();
    QString parts = m_parts->currentText().trimmed();
    const QString axis = m_axis ? m_axis->currentText().section(QLatin1Char('='), 0, 0).trimmed() : QString();
    if (!parts.isEmpty())
        text += QStringLiteral(" by ") + parts;
    if (!axis.isEmpty())
        text += QStringLiteral(" over ") + QString::fromStdString(asWord(axis.toStdString()));
    if (m_keep && m_keep->isChecked())
        text += QStringLiteral(" keep");
    return text;
}

void SplitCellEditor::setText(const QString &text)
{
    const QSignalBlocker dimension(m_dimension);
    const QSignalBlocker parts(m_parts);
    m_dimension->setEditText({});
    m_parts->setEditText({});
    if (m_axis)
        m_axis->setEditText({});
    if (m_keep) {
        const QSignalBlocker keep(m_keep);
        const auto rule = ruleOf(m_word, text.toStdString());
        const auto *coshard = rule ? std::get_if<CoshardRule>(&*rule) : nullptr;
        m_keep->setChecked(coshard && coshard->keep);
        if (coshard) {
            m_dimension->setEditText(QString::fromStdString(print(coshard->dimension)));
            m_parts->setEditText(QString::number(coshard->parts));
        }
    } else if (const auto rule = ruleOf(m_word, text.toStdString());
               const auto *slice = rule ? std::get_if<SliceRule>(&*rule) : nullptr) {
        m_dimension->setEditText(QString::fromStdString(print(slice->dimension)));
        m_parts->setEditText(QString::number(slice->parts));
    } else if (rule) {
        const SplitStep &step = std::get<OpTransRule>(*rule).steps.front();
        m_dimension->setEditText(step.kind == SplitKind::Value
                ? QStringLiteral("value")
                : QString::fromStdString(print(step.dimension)));
        if (step.parts > 0)
            m_parts->setEditText(QString::number(step.parts));
        if (m_axis)
            m_axis->setEditText(QString::fromStdString(step.axis));
    }
    setUntouched();
}

void SplitCellEditor::setChoices(const ValueChoices &choices)
{
    m_choices = choices;
    const bool wasTouched = isTouched();
    const auto refill = [](QComboBox *box, const QStringList &shown, const QStringList &written) {
        const QString text = box->currentText();
        const int cursor = box->lineEdit()->cursorPosition();
        const bool selected = box->lineEdit()->hasSelectedText();
        const QSignalBlocker blocker(box);
        box->clear();
        for (qsizetype i = 0; i < shown.size(); ++i)
            box->addItem(shown[i], written[i]);
        box->setCurrentIndex(-1);
        box->setEditText(text);
        selected ? box->lineEdit()->selectAll() : box->lineEdit()->setCursorPosition(cursor);
        box->view()->setMinimumWidth(
            box->view()->sizeHintForColumn(0) + box->fontMetrics().averageCharWidth() * 4);
    };
    QStringList shown;
    QStringList written;
    for (const DimensionChoice &dimension : choices.dimensions) {
        written << QString::fromStdString(dimension.name);
        QString text = QString::fromStdString(dimension.name);
        if (const auto size = dimension.marked.find(" ("); size != std::string::npos)
            text += QString::fromStdString(dimension.marked.substr(size));
        shown << text
                + (dimension.operators == 1 ? tr(" · 1 operator")
                                            : tr(" · %1 operators").arg(dimension.operators));
    }
    if (choices.valueSplit && m_axis) {
        shown << tr("value · summands");
        written << QStringLiteral("value");
    }
    refill(m_dimension, shown, written);
    QStringList axes;
    QStringList axisNames;
    for (const MeshAxis &axis : choices.mesh) {
        axisNames << QString::fromStdString(axis.name);
        axes << QString::fromStdString(axis.name) + QLatin1Char('=') + QString::number(axis.size);
    }
    if (m_axis)
        refill(m_axis, axes, axisNames);
    fillParts();
    if (!wasTouched)
        setUntouched();
}

void SplitCellEditor::fillParts()
{
    const std::string name = m_dimension->currentText().section(QLatin1Char(' '), 0, 0).toStdString();
    const auto found = std::find_if(m_choices.dimensions.begin(), m_choices.dimensions.end(),
        [&](const DimensionChoice &dimension) { return dimension.name == name; });
    const QString text = m_parts->currentText();
    const QSignalBlocker blocker(m_parts);
    m_parts->clear();
    if (found != m_choices.dimensions.end()) {
        for (const std::int32_t count : found->counts)
            m_parts->addItem(QString::number(count));
    }
    m_parts->setCurrentIndex(-1);
    m_parts->setEditText(text);
}

} // namespace planloom

#include "moc_split_cell_editor.cpp"
