#include "widgets/timeline/timeline_line_editor.h"

#include <QtCore/QAbstractListModel>
#include <QtGui/QKeyEvent>
#include <QtWidgets/QAbstractItemView>
#include <QtWidgets/QCheckBox>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QCompleter>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>

#include "engine/gesture/place_text.h"
#include "widgets/timeline/timeline_proposals.h"

#include <algorithm>

namespace planloom {

namespace {

/// Names of the forward operators, read from the graph when they are asked for.
class OperatorNames : public QAbstractListModel
{
public:
    OperatorNames(GestureContextSnapshot context, QObject *parent)
        : QAbstractListModel(parent)
        , m_context(std::move(context))
    {
        const auto &operators = m_context->graph().operators;
        m_count = static_cast<int>(std::find_if(operators.begin(), operators.end(), [](const Operator &op) {
            return op.direction != Direction::Forward;
        }) - operators.begin());
    }
    int rowCount(const QModelIndex &parent) const override { return parent.isValid() ? 0 : m_count; }
    QVariant data(const QModelIndex &index, int role) const override
    {
        if (!index.isValid() || (role != Qt::DisplayRole && role != Qt::EditRole))
            return {};
        return QString::fromStdString(
            m_context->graph().operators[static_cast<std::size_t>(index.row())].name);
    }

private:
    GestureContextSnapshot m_context;
    int m_count = 0;
};

Proposal refusedLine(std::string words, std::string sentence, std::string advice = {})
{
    Proposal proposal;
    proposal.words = std::move(words);
    proposal.refusal = Error{ErrorCode::InvalidInput, std::move(sentence), std::move(advice), {}};
    return proposal;
}

} // namespace

TimelineLineEditor::TimelineLineEditor(QWidget *canvas)
    : QFrame(canvas)
    , m_layout(new QHBoxLayout(this))
{
    setObjectName(QStringLiteral("timeline.line"));
    setFrameShape(QFrame::StyledPanel);
    setAutoFillBackground(true);
    setBackgroundRole(QPalette::Window);
    m_layout->setContentsMargins(8, 4, 8, 4);
    m_layout->setSpacing(6);
    hide();
}

void TimelineLineEditor::clear()
{
    for (QWidget *child : findChildren<QWidget *>(QString(), Qt::FindDirectChildrenOnly)) {
        m_layout->removeWidget(child);
        child->removeEventFilter(this);
        child->setObjectName(QString()); // found by name no more, until it is gone
        child->hide();
        child->deleteLater();
    }
    m_dimension = m_count = m_axis = m_relation = nullptr;
    m_replicate = m_value = nullptr;
    m_text = nullptr;
}

QLabel *TimelineLineEditor::word(const QString &text)
{
    auto *label = new QLabel(text, this);
    m_layout->addWidget(label);
    return label;
}

QComboBox *TimelineLineEditor::choice(const char *name, const QString &accessible)
{
    auto *box = new QComboBox(this);
    box->setObjectName(QLatin1String(name));
    box->setAccessibleName(accessible);
    box->installEventFilter(this);
    m_layout->addWidget(box);
    connect(box, &QComboBox::currentTextChanged, this, &TimelineLineEditor::propose);
    return box;
}

QLineEdit *TimelineLineEditor::field(const char *name, const QString &accessible)
{
    auto *edit = new QLineEdit(this);
    edit->setObjectName(QLatin1String(name));
    edit->setAccessibleName(accessible);
    edit->setMinimumWidth(edit->fontMetrics().averageCharWidth() * 26);
    edit->installEventFilter(this);
    m_layout->addWidget(edit);
    connect(edit, &QLineEdit::textChanged, this, &TimelineLineEditor::propose);
    return edit;
}

void TimelineLineEditor::open(
    TimelineLine line, GestureContextSnapshot context, std::vector<OperatorId> operators)
{
    m_kind = line;
    m_context = std::move(context);
    m_operators = std::move(operators);
    build();
    if (line != TimelineLine::Filter)
        propose();
}

void TimelineLineEditor::openFilter(const QString &text)
{
    m_kind = TimelineLine::Filter;
    m_context.reset();
    m_operators.clear();
    build();
    m_text->setText(text);
    m_text->selectAll();
}

void TimelineLineEditor::build()
{
    m_building = true;
    clear();
    QWidget *first = nullptr;
    switch (m_kind) {
    case TimelineLine::Split:
    case TimelineLine::Replicate:
        buildSplit(m_kind == TimelineLine::Replicate);
        first = m_kind == TimelineLine::Replicate ? m_count : m_dimension;
        break;
    case TimelineLine::Place:
        word(tr("place on"));
        first = m_text = field("timeline.line.place", tr("Devices"));
        m_text->setPlaceholderText(tr("3, 0-3, h0, tp:2 or free"));
        break;
    case TimelineLine::Order: {
        word(tr("run"));
        m_relation = choice("timeline.line.relation", tr("Before or after"));
        m_relation->addItem(tr("before"));
        m_relation->addItem(tr("after"));
        first = m_text = field("timeline.line.operator", tr("Operator"));
        m_text->setPlaceholderText(tr("name of an operator"));
        auto *completer = new QCompleter(m_text);
        completer->setModel(new OperatorNames(m_context, completer));
        completer->setFilterMode(Qt::MatchContains);
        completer->setCaseSensitivity(Qt::CaseInsensitive);
        m_text->setCompleter(completer);
        break;
    }
    case TimelineLine::Filter:
        word(tr("show lanes with"));
        first = m_text = field("timeline.line.filter", tr("Text of lanes to show"));
        m_text->setPlaceholderText(tr("GPU 3, Stage 1 ..."));
        break;
    }
    m_building = false;
    adjustSize();
    place();
    show();
    raise();
    if (first)
        first->setFocus(Qt::ShortcutFocusReason);
}

void TimelineLineEditor::buildSplit(bool replicate)
{
    m_chips.clear();
    for (DimensionChip &chip : chipsOf(*m_context, m_operators.front())) {
        const bool known = std::any_of(m_chips.begin(), m_chips.end(),
            [&chip](const DimensionChip &other) { return other.dimension == chip.dimension; });
        if (chip.locked.empty() && !known)
            m_chips.push_back(std::move(chip));
    }
    word(tr("split"));
    m_dimension = choice("timeline.line.dimension", tr("Dimension"));
    for (const DimensionChip &chip : m_chips)
        m_dimension->addItem(QString::fromStdString(chip.label));
    word(tr("by"));
    m_count = choice("timeline.line.count", tr("Number of parts"));
    m_count->setEditable(true);
    m_count->lineEdit()->setObjectName(QStringLiteral("timeline.line.count.edit"));
    m_count->lineEdit()->installEventFilter(this);
    m_replicate = new QCheckBox(tr("replicate"), this);
    m_replicate->setObjectName(QStringLiteral("timeline.line.replicate"));
    m_replicate->setChecked(replicate);
    m_value = new QCheckBox(tr("value"), this);
    m_value->setObjectName(QStringLiteral("timeline.line.value"));
    m_value->setEnabled(hasValueSplit(*m_context, m_operators.front()));
    m_value->setToolTip(m_value->isEnabled()
            ? tr("Each part computes a summand of the result")
            : tr("This operator is not linear in its inputs: its value can't be split"));
    for (QCheckBox *box : {m_replicate, m_value}) {
        box->installEventFilter(this);
        m_layout->addWidget(box);
    }
    const auto only = [this](QCheckBox *other) {
        return [this, other](bool on) {
            if (on)
                other->setChecked(false);
            m_dimension->setEnabled(!m_replicate->isChecked() && !m_value->isChecked());
            fillCounts();
            propose();
        };
    };
    connect(m_replicate, &QCheckBox::toggled, this, only(m_value));
    connect(m_value, &QCheckBox::toggled, this, only(m_replicate));
    word(tr("over"));
    m_axis = choice("timeline.line.axis", tr("Mesh axis"));
    m_axis->addItem(tr("no axis"), QString());
    for (const MeshAxis &axis : m_context->mesh) {
        m_axis->addItem(QStringLiteral("%1:%2").arg(QString::fromStdString(axis.name)).arg(axis.size),
            QString::fromStdString(axis.name));
    }
    m_dimension->setEnabled(!replicate);
    connect(m_dimension, &QComboBox::currentTextChanged, this, &TimelineLineEditor::fillCounts);
    fillCounts();
}

void TimelineLineEditor::fillCounts()
{
    const bool building = std::exchange(m_building, true);
    const QString before = m_count->currentText();
    m_count->clear();
    const int index = m_dimension->currentIndex();
    const bool whole = (m_replicate && m_replicate->isChecked()) || (m_value && m_value->isChecked());
    if (whole) {
        for (int count = 2; count <= std::max(m_context->deviceCount, 2); count *= 2)
            m_count->addItem(QString::number(count));
    } else if (index >= 0 && static_cast<std::size_t>(index) < m_chips.size()) {
        for (const std::int32_t count : m_chips[static_cast<std::size_t>(index)].counts)
            m_count->addItem(QString::number(count));
    }
    if (!before.isEmpty())
        m_count->setCurrentText(before);
    m_building = building;
}

Proposal TimelineLineEditor::splitProposal() const
{
    bool number = false;
    const int parts = m_count->currentText().toInt(&number);
    const std::string axis = m_axis->currentData().toString().toStdString();
    if (axis.empty() && (!number || parts < 1)) {
        return refusedLine("split", "\"" + m_count->currentText().toStdString() + "\" is no number of parts",
            "write a whole number, as 2 or 4; 1 takes the split away");
    }
    SplitGesture gesture{.operators = m_operators, .on = m_operators.front(), .parts = parts, .axis = axis};
    if (m_replicate->isChecked()) {
        gesture.kind = SplitKind::Replicate;
    } else if (m_value->isChecked()) {
        gesture.kind = SplitKind::Value;
    } else {
        const int index = m_dimension->currentIndex();
        if (index < 0 || static_cast<std::size_t>(index) >= m_chips.size())
            return refusedLine("split", "this operator has no dimension that can be split");
        gesture.dimension = m_chips[static_cast<std::size_t>(index)].dimension;
    }
    return proposeSplit(*m_context, gesture);
}

Proposal TimelineLineEditor::orderProposal() const
{
    const std::string name = m_text->text().trimmed().toStdString();
    if (name.empty())
        return refusedLine("order", "write the name of the operator to run before or after");
    const OperatorId other = m_context->index().findOperator(name);
    if (!other.valid())
        return refusedLine("order", "there is no operator \"" + name + "\"");
    const bool before = m_relation->currentIndex() == 0;
    return proposeOrder(*m_context,
        {.first = before ? m_operators : std::vector<OperatorId>{other},
            .second = before ? std::vector<OperatorId>{other} : m_operators});
}

Proposal TimelineLineEditor::proposal() const
{
    switch (m_kind) {
    case TimelineLine::Split:
    case TimelineLine::Replicate:
        return splitProposal();
    case TimelineLine::Place: {
        auto place = placeFromText(m_text->text().toStdString(), placeWorldOf(*m_context));
        if (!place) {
            Proposal proposal;
            proposal.words = "place";
            proposal.refusal = std::move(place).error();
            return proposal;
        }
        return proposePlace(*m_context, placeGesture(*place, m_operators));
    }
    case TimelineLine::Order:
        return orderProposal();
    case TimelineLine::Filter:
        break;
    }
    return {};
}

void TimelineLineEditor::propose()
{
    if (m_building)
        return;
    if (m_kind == TimelineLine::Filter)
        Q_EMIT filtered(m_text->text());
    else if (m_context)
        Q_EMIT proposed(proposal());
}

void TimelineLineEditor::place()
{
    const QSize room = parentWidget()->size();
    const QSize wanted = sizeHint();
    const int width = std::min(wanted.width(), room.width() - 8);
    setGeometry(std::max((room.width() - width) / 2, 4),
        std::min(fontMetrics().height() * 2 + 4, std::max(room.height() - wanted.height(), 0)), width,
        wanted.height());
}

bool TimelineLineEditor::eventFilter(QObject *watched, QEvent *event)
{
    if (event->type() != QEvent::KeyPress && event->type() != QEvent::ShortcutOverride)
        return QFrame::eventFilter(watched, event);
    const auto *key = static_cast<QKeyEvent *>(event);
    const bool enter = key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter;
    const bool rowsOff =
        key->key() == Qt::Key_O && key->modifiers() == Qt::AltModifier && m_kind != TimelineLine::Filter;
    if (!enter && !rowsOff && key->key() != Qt::Key_Escape)
        return QFrame::eventFilter(watched, event);
    auto *box = qobject_cast<QComboBox *>(watched);
    if (box && box->view()->isVisible())
        return false;
    event->accept();
    if (event->type() == QEvent::ShortcutOverride)
        return true;
    if (enter)
        Q_EMIT accepted();
    else if (rowsOff)
        Q_EMIT rowsOffToggled();
    else
        Q_EMIT abandoned();
    return true;
}

void TimelineLineEditor::keyPressEvent(QKeyEvent *event)
{
    // What its fields leave over is none of the canvas' business: letters there are commands.
    event->accept();
}

} // namespace planloom

#include "moc_timeline_line_editor.cpp"
