// Editors of values with parts of their own: numbers, splits, limits.

#include <QtWidgets/QAbstractItemView>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QDoubleSpinBox>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QSpinBox>

#include "widgets/table/cell_editors.h"

#include "engine/table/table_quantity.h"
#include "engine/table/table_text.h"
#include "engine/table/text_cursor.h"

#include <algorithm>

namespace planloom {

namespace {

constexpr int kMostCount = 1 << 24;

/// The rule of a value that reads as a row of `rule`.
std::optional<Rule> ruleOf(const char *rule, const std::string &value)
{
    RowCells cells;
    cells.rule = rule;
    cells.selector = "all";
    cells.value = value;
    if (noteBegin(value) != std::string::npos)
        return {};
    auto row = parseRow(lineOf(cells));
    return row ? std::optional<Rule>(std::move(row->rule)) : std::nullopt;
}

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

bool StrengthCellEditor::canShow(const std::string &text)
{
    return weightOf(text).has_value();
}

StrengthCellEditor::StrengthCellEditor(QWidget *parent)
    : CellEditor(parent), m_kind(new QComboBox(this)), m_weight(new QSpinBox(this))
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
    return m_weight->value() == 1 ? QStringLiteral("prefer") : QStringLiteral("prefer %1").arg(m_weight->value());
}

void StrengthCellEditor::setText(const QString &text)
{
    const std::int32_t weight = weightOf(text.toStdString()).value_or(0);
    m_kind->setCurrentIndex(weight > 0 ? 1 : 0);
    m_weight->setValue(std::max(weight, 1));
    m_weight->setEnabled(weight > 0);
    setUntouched();
}

bool CountCellEditor::canShow(Kind kind, const std::string &text)
{
    if (text.empty())
        return true;
    switch (kind) {
    case Kind::MicroBatches: {
        const auto rule = ruleOf("micro-batches", text);
        return rule && !std::get<MicroBatchesRule>(*rule).whole;
    }
    case Kind::Stage:
        return ruleOf("stage", text).has_value();
    case Kind::InFlight:
        return ruleOf("in-flight", text).has_value();
    }
    return false;
}

CountCellEditor::CountCellEditor(Kind kind, QWidget *parent) : CellEditor(parent), m_kind(kind), m_count(new FittingSpinBox(this))
{
    m_count->setFrame(false);
    m_count->setRange(kind == Kind::Stage ? 0 : 1, kMostCount);
    m_count->setAccessibleName(kind == Kind::MicroBatches ? tr("Number of micro-batches")
            : kind == Kind::Stage                         ? tr("Number of the stage")
                                                          : tr("Micro-batches in flight"));
    addField(m_count, 1);
    connect(m_count, &QSpinBox::textChanged, this, &CountCellEditor::touch);
    if (kind != Kind::InFlight)
        return;
    m_stage = new QSpinBox(this);
    m_stage->setFrame(false);
    m_stage->setRange(-1, kMostCount);
    m_stage->setSpecialValueText(tr("every stage"));
    m_stage->setPrefix(tr("stage "));
    m_stage->setAccessibleName(tr("Stage"));
    addField(m_stage, 1);
    connect(m_stage, &QSpinBox::textChanged, this, &CountCellEditor::touch);
}

QString CountCellEditor::text() const
{
    QString text = QString::number(m_count->value());
    if (m_stage && m_stage->value() >= 0)
        text += QStringLiteral(" stage ") + QString::number(m_stage->value());
    return text;
}

void CountCellEditor::setText(const QString &text)
{
    const std::string value = text.toStdString();
    if (m_kind == Kind::InFlight) {
        if (const auto rule = ruleOf("in-flight", value)) {
            m_count->setValue(std::get<InFlightRule>(*rule).count);
            m_stage->setValue(std::get<InFlightRule>(*rule).stage);
        } else {
            m_stage->setValue(-1);
        }
    } else {
        m_count->setValue(text.trimmed().toInt());
    }
    setUntouched();
}

void CountCellEditor::setChoices(const ValueChoices &choices)
{
    if (m_kind != Kind::MicroBatches)
        return;
    static_cast<FittingSpinBox *>(m_count)->fitting = choices.microBatches; // made as one
    QStringList counts;
    for (std::size_t i = 0; i < choices.microBatches.size() && i < 16; ++i)
        counts << QString::number(choices.microBatches[i]);
    m_count->setToolTip(tr("What divides the batch: %1").arg(counts.join(QStringLiteral(", "))));
}

bool SplitCellEditor::canShow(const std::string &text)
{
    if (text.empty())
        return true;
    const auto rule = ruleOf("split", text);
    if (!rule)
        return false;
    const auto *split = std::get_if<OpTransRule>(&*rule);
    return split && split->steps.size() == 1 && split->steps.front().kind != SplitKind::Replicate
        && split->steps.front().sizes.empty();
}

SplitCellEditor::SplitCellEditor(bool withAxis, QWidget *parent)
    : CellEditor(parent), m_dimension(newBox(this, tr("Dimension"), 8)), m_parts(newBox(this, tr("Number of parts"), 4))
{
    addField(m_dimension, 3);
    addField(m_parts, 2);
    m_parts->lineEdit()->setPlaceholderText(withAxis ? tr("parts of the axis") : tr("parts"));
    connect(m_dimension, &QComboBox::currentTextChanged, this, [this] {
        fillParts();
        touch();
    });
    connect(m_parts, &QComboBox::currentTextChanged, this, &SplitCellEditor::touch);
    if (!withAxis)
        return;
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
    if (const auto rule = ruleOf("split", text.toStdString())) {
        const SplitStep &step = std::get<OpTransRule>(*rule).steps.front();
        m_dimension->setEditText(
            step.kind == SplitKind::Value ? QStringLiteral("value") : QString::fromStdString(print(step.dimension)));
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
        box->view()->setMinimumWidth(box->view()->sizeHintForColumn(0) + box->fontMetrics().averageCharWidth() * 4);
    };
    QStringList shown;
    QStringList written;
    for (const DimensionChoice &dimension : choices.dimensions) {
        written << QString::fromStdString(dimension.name);
        QString text = QString::fromStdString(dimension.name);
        if (const auto size = dimension.marked.find(" ("); size != std::string::npos)
            text += QString::fromStdString(dimension.marked.substr(size));
        shown << text + (dimension.operators == 1 ? tr(" · 1 operator") : tr(" · %1 operators").arg(dimension.operators));
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

bool LimitCellEditor::canShow(const std::string &text)
{
    if (text.empty())
        return true;
    const auto rule = ruleOf("limit", text);
    if (!rule)
        return false;
    // Three decimals must be enough.
    const LimitRule limit = std::get<LimitRule>(*rule);
    return limit.value * 8 % (limit.kind == LimitRule::Kind::Memory ? 1 << 20 : 1000) == 0;
}

LimitCellEditor::LimitCellEditor(QWidget *parent)
    : CellEditor(parent), m_kind(new QComboBox(this)), m_amount(new QDoubleSpinBox(this)), m_unit(new QComboBox(this))
{
    m_kind->addItem(tr("memory"), QStringLiteral("memory"));
    m_kind->addItem(tr("time"), QStringLiteral("time"));
    m_kind->setAccessibleName(tr("What is limited"));
    m_amount->setRange(0.001, 1e9);
    m_amount->setDecimals(3);
    m_amount->setStepType(QAbstractSpinBox::AdaptiveDecimalStepType);
    m_amount->setAccessibleName(tr("At most"));
    m_unit->setAccessibleName(tr("Unit"));
    addField(m_kind, 2);
    addField(m_amount, 2);
    addField(m_unit, 1);
    fillUnits();
    connect(m_kind, &QComboBox::currentIndexChanged, this, [this] {
        fillUnits();
        touch();
    });
    connect(m_amount, &QDoubleSpinBox::textChanged, this, &LimitCellEditor::touch);
    connect(m_unit, &QComboBox::currentIndexChanged, this, &LimitCellEditor::touch);
}

void LimitCellEditor::fillUnits()
{
    const QSignalBlocker blocker(m_unit);
    m_unit->clear();
    const bool memory = m_kind->currentIndex() == 0;
    m_unit->addItems(memory ? QStringList{QStringLiteral("MiB"), QStringLiteral("GiB"), QStringLiteral("TiB")}
                            : QStringList{QStringLiteral("us"), QStringLiteral("ms"), QStringLiteral("s")});
    m_unit->setCurrentIndex(1);
}

QString LimitCellEditor::text() const
{
    QString amount = QString::number(m_amount->value(), 'f', 3);
    while (amount.endsWith(QLatin1Char('0')))
        amount.chop(1);
    if (amount.endsWith(QLatin1Char('.')))
        amount.chop(1);
    return m_kind->currentData().toString() + QLatin1Char(' ') + amount + m_unit->currentText();
}

void LimitCellEditor::setText(const QString &text)
{
    const auto rule = ruleOf("limit", text.toStdString());
    const LimitRule limit = rule ? std::get<LimitRule>(*rule) : LimitRule{LimitRule::Kind::Memory, std::int64_t{80} << 30};
    m_kind->setCurrentIndex(limit.kind == LimitRule::Kind::Memory ? 0 : 1);
    fillUnits();
    // The largest unit in which the amount is written exactly.
    const std::vector<std::int64_t> units = limit.kind == LimitRule::Kind::Memory
        ? std::vector<std::int64_t>{std::int64_t{1} << 20, std::int64_t{1} << 30, std::int64_t{1} << 40}
        : std::vector<std::int64_t>{1000, 1'000'000, 1'000'000'000};
    int unit = 0;
    for (int i = 0; i < static_cast<int>(units.size()); ++i) {
        if (limit.value >= units[static_cast<std::size_t>(i)] && limit.value * 8 % units[static_cast<std::size_t>(i)] == 0)
            unit = i;
    }
    m_unit->setCurrentIndex(unit);
    m_amount->setValue(static_cast<double>(limit.value) / static_cast<double>(units[static_cast<std::size_t>(unit)]));
    setUntouched();
}

} // namespace planloom
